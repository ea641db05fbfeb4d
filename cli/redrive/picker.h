/* Which messages a run takes: --match FIELD=VALUE, --route, --since, --limit. */
#ifndef SL_CLI_REDRIVE_PICKER_H
#define SL_CLI_REDRIVE_PICKER_H

#include "cli/flags.h"
#include "cli/redrive/mail.h"

struct sl_picker {
    const struct sl_flag_list *matches;
    const char *route; /* NULL: any */
    int64_t since_ms;  /* since 1970; 0: any */
    int64_t limit;     /* messages; -1: all */
    int64_t taken;
};

/* The fields that --match knows, for help and errors. */
#define SL_PICKER_FIELDS "code, route, table, handler, kind, id or group"

/* Checks the matches, and reads `since`: a time, or a span like 90m, 24h, 7d before `now_ms`; NULL: none. */
enum sl_status sl_picker_init(struct sl_picker *picker, const char *since, int64_t now_ms,
                              struct sl_error *error) SL_MUST_USE;

/* Sets UNMATCHED on every letter of a message of which one does not match: a message is taken whole or not at
 * all. What cannot be read stays as it is. Counts the messages that were taken. */
void sl_picker_pick(struct sl_picker *picker, struct sl_mail *mail);

/* So many were taken that no more will be. */
bool sl_picker_is_full(const struct sl_picker *picker);

/* "parked", "event", "pointer", "unreadable" */
const char *sl_picker_kind(const struct sl_letter *letter);

#endif
