/* Why records were parked or failed, as our bootstrap reports it (runtime/report.h). Other runtimes report
 * nothing. */
#ifndef SL_LIVE_SANDBOX_NOTES_H
#define SL_LIVE_SANDBOX_NOTES_H

#include "base/types.h"

#include <jansson.h>

struct sl_note {
    bool is_parked; /* durably; else the invocation failed at this record */
    char *request_id, *route, *id, *code, *text;
};

/* Zeroed at first. Notes live from an invocation's report until they are forgotten, so there are only those
 * of the invocations that are under way. */
struct sl_notes {
    struct sl_note *list;
    size_t n, room;
};

/* Adds those of one line of the report. */
void sl_notes_add(struct sl_notes *notes, const json_t *report);
void sl_notes_forget(struct sl_notes *notes, const char *request_id);
void sl_notes_clean_up(struct sl_notes *notes); /* zeroed memory is fine */

#endif
