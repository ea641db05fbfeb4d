/* Work items: pieces of a larger job that AWS Step Functions hands to many invocations at once.
 *
 * An event whose only member is "sluice" is a work item:
 *
 *   {"sluice":{"plan":{"run":"NAME","given":{...}}}}     checks the source, writes the list of pieces
 *   {"sluice":{"piece":{...}}}                           one piece, or what is left of it, until the deadline
 *   {"sluice":{"sum":{"results":"KEY","pieces":n,"items":n}}}  adds the pieces' results up
 *
 * docs/SEEDING.md has the members. Whoever sends items may choose which piece of the configured source is
 * read and where it begins, not another source, and not where anything is written. A piece may be done twice,
 * or by two invocations at once: what it writes is a function of the item alone, and guarded.
 *
 * Errors become function errors. SL_RETRY has the code "TryAgain": the same item may succeed later. */
#ifndef SL_RUNTIME_WORK_WORK_H
#define SL_RUNTIME_WORK_WORK_H

#include "handlers/dispatch/dispatch.h"

struct sl_work;

struct sl_work_options {
    const struct sl_vars *vars;
    struct sl_clock *clock;
    struct sl_log *log;
    struct sl_sinks *sinks;
    struct sl_pipeline *pipeline; /* opened; outlives the work */
};

/* `*out` is NULL when SLUICE_WORK_ITEMS is not 1. On failure: SL_FATAL, an init error. */
enum sl_status sl_work_open(const struct sl_work_options *options, struct sl_work **out,
                            struct sl_error *error) SL_MUST_USE;
void sl_work_close(struct sl_work *work); /* NULL is fine */

/* Whether the event is an object whose first member is "sluice": cheap, and never true for an event of AWS's.
 */
bool sl_work_is_item(struct sl_span event);

/* Does the item; `*is_ruined` is set when nothing that this process did can be trusted. The answer's JSON
 * goes to `answer`, which is empty. `work` may be NULL: then every item is refused. */
enum sl_status sl_work_do(struct sl_work *work, struct sl_span event, const struct sl_invocation *invocation,
                          struct sl_answer *answer, struct sl_error *error) SL_MUST_USE;

/* Refuses an event that is not a work item, for a function that takes nothing else. */
enum sl_status sl_work_refuse_event(struct sl_error *error);

#endif
