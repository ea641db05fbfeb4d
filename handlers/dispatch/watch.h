/* Handlers that may die at their work: what dispatch reports of each call, and what it asks about records
 * that an earlier process died of. runtime/contain/contain.h implements it; without a watch dispatch does the
 * same work unwatched. */
#ifndef SL_HANDLERS_DISPATCH_WATCH_H
#define SL_HANDLERS_DISPATCH_WATCH_H

#include "handlers/dispatch/trial.h"

struct sl_call_watch {
    bool has_suspects; /* there may be suspect records: ask is_suspect for each */

    /* Around each call of a handler. `enter` is cheap: no system call. */
    void (*enter)(struct sl_call_watch *watch, const char *route, const struct sl_record *const *records,
                  size_t n);
    void (*leave)(struct sl_call_watch *watch);
    /* After each call of a handler's function: are the descriptors of this process still its own? If not,
     * nothing more is done in it, and `leave` is not called: the next process tries the records alone. */
    bool (*is_whole)(struct sl_call_watch *watch);

    /* Before the records of a batch. All are borrowed until the next one. */
    void (*begin)(struct sl_call_watch *watch, const struct sl_batch *batch, const char *request_id,
                  const char *trace_id);
    bool (*is_suspect)(struct sl_call_watch *watch, const char *route, const struct sl_record *record);
    void (*try_alone)(struct sl_call_watch *watch, const struct sl_trial_order *order, struct sl_trial *out);
    /* The trial has shown that the record is at fault: for the time being, try_alone returns it again,
     * without a trial. */
    void (*prove)(struct sl_call_watch *watch, const struct sl_trial_order *order,
                  const struct sl_trial *trial);
};

#endif
