/* A verification as a command: what `sluice verify` does, and what `sluice repair` does while it writes. */
#ifndef SL_CLI_VERIFY_SESSION_H
#define SL_CLI_VERIFY_SESSION_H

#include "cli/command.h"
#include "cli/verify/consumer.h"
#include "cli/verify/report.h"
#include "data/source/budget.h"
#include "data/verify/ground.h"
#include "data/verify/outstanding.h"

struct sl_verify_session {
    struct sl_command command;
    const char *routes, *sample, *match, *checkpoint, *verified;
    struct sl_flag_list consumers, items, ignored, ttl;
    int64_t max_lag_s, segments, read_units, wait_s;
    bool is_json, shows_values, is_plan, is_quiet;
    bool with_totals, with_archives; /* these come after the items */
    const char *temp;                /* folder, for archives */

    /* Of `sluice repair`; NULL for `sluice verify`. `found` gets each finding before it is printed. `begun`
     * may name items, when `only_items` is set; `end` prints and returns the exit status. */
    bool only_items;
    void (*found)(struct sl_verify_session *v, const struct sl_finding *finding);
    void (*total)(struct sl_verify_session *v, struct sl_span line); /* the same for a line of the totals */
    enum sl_status (*begun)(struct sl_verify_session *v, struct sl_error *error);
    int (*end)(struct sl_verify_session *v, bool is_whole);

    struct sl_verify_ground ground;
    struct sl_consumers progress;
    struct sl_verify_options options;
    struct sl_verify *work;
    struct sl_report report;
    struct sl_outstanding *outstanding;
    struct sl_outstanding_route letters; /* `route` is not NULL: of this one letters wait */
    struct sl_budget budget;             /* of read units */
    double paid_units;                   /* of `ground.units`, so far */
    int64_t saved_ms;
    bool *is_trusted;            /* by route of `work`: a repair may go on */
    struct sl_error wrong_table; /* of a repair that is not begun: nothing shows that the source is the right
                                    one */
};

/* Of the numbers of both verbs. */
extern const struct sl_flag_range sl_verify_session_ranges[];

/* The most rows that sl_verify_session_flags sets. */
#define SL_VERIFY_SESSION_FLAGS 32

/* Sets the defaults, and the rows of the flags that both verbs have; returns how many. */
size_t sl_verify_session_flags(struct sl_verify_session *v, struct sl_flag *rows);

/* Begins the command, and opens the pipeline alone. */
enum sl_status sl_verify_session_pipeline(struct sl_verify_session *v, struct sl_error *error) SL_MUST_USE;

/* Opens all, runs, and returns the exit status. */
int sl_verify_session_run(struct sl_verify_session *v) SL_MUST_USE;

void sl_verify_session_clean_up(struct sl_verify_session *v);

#endif
