/* What the routes of a configuration hold of some items, and how it goes: one line a route. */
#ifndef SL_CLI_ERASE_ROUTES_H
#define SL_CLI_ERASE_ROUTES_H

#include "base/buffer.h"
#include "cli/command.h"
#include "cli/keys.h"

struct sl_erase_job {
    struct sl_command *command; /* its pipeline is open */
    const struct sl_named_keys *keys;
    const char *run;
    struct sl_span secret;
    const struct sl_flag_list *consumers; /* for repair, */
    int64_t max_lag_s;                    /* as well; below 0: not given */
    bool is_plan;

    /* What was found: JSON members for the report, and lines for people. */
    struct sl_buffer routes, person;
    size_t n_person;
};

/* Route by route, then the places of parked records. SL_OK also where a person has something to do. */
enum sl_status sl_erase_routes(struct sl_erase_job *job, struct sl_error *error) SL_MUST_USE;

#define SL_ERASE_ROWS 100 /* that are read together */

/* Reads rows: one result for each GET, in the arena; an error is the first one's. */
enum sl_status sl_erase_get(struct sl_table_port *port, struct sl_clock *clock, const struct sl_table_op *ops,
                            size_t n, struct sl_arena *arena, struct sl_result **out,
                            struct sl_error *error) SL_MUST_USE;

/* A line of what a person has to do; printed, and kept for the report. */
void sl_erase_ask(struct sl_erase_job *job, const char *where, const char *format, ...) SL_PRINTF(3, 4);

/* --match: the keys of the archived items of which an image matches, as lines. SL_REJECT: it is no pattern,
 * or there is no archive of whole changes. */
enum sl_status sl_erase_match(struct sl_command *command, const char *pattern, struct sl_buffer *out,
                              struct sl_error *error) SL_MUST_USE;

#endif
