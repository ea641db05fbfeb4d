/* The drain: an SQS event of letters (handlers/dispatch/letter.h), as an event source mapping with
 * ReportBatchItemFailures delivers it. Each message is one dispatch, so that one that fails is in no other's
 * way; the answer names every message that is not wholly done.
 *
 * A target that is down has a breaker here too: after a letter failed for it, its route's letters fail at
 * once, and stay invisible for a while, but for one probe every SL_DRAIN_PROBE_MS. */
#ifndef SL_HANDLERS_DISPATCH_DRAIN_H
#define SL_HANDLERS_DISPATCH_DRAIN_H

#include "handlers/dispatch/dispatch.h"

#define SL_DRAIN_PROBE_MS 30000
/* For so long a message is hidden whose target is down. A queue moves a message after at most 1,000 receives:
 * these take ten days, which is as long as the queue keeps it. */
#define SL_DRAIN_HIDDEN_S 900
#define SL_DRAIN_PAUSED_S 3600

struct sl_drain;

struct sl_drain_options {
    struct sl_pipeline *pipeline; /* outlives the drain */
    /* Nobody gets the message for so long; a failure only costs a receive. NULL: it is not hidden. */
    void (*hide)(void *arg, struct sl_span queue_arn, struct sl_span receipt, int64_t seconds,
                 const struct sl_invocation *invocation);
    void *arg;
};

struct sl_drain *sl_drain_new(const struct sl_drain_options *options);
void sl_drain_destroy(struct sl_drain *drain); /* NULL is fine */

/* Whether the event is one of SQS: cheap. */
bool sl_drain_is_event(struct sl_span event);

/* The queue of the event's first message; absent when it does not say. */
struct sl_span sl_drain_queue(struct sl_span event);

struct sl_drained {
    size_t letters, done, records; /* `records`: of those done */
    int64_t oldest_ms;             /* age of the oldest letter that was done; -1: none was */
};

/* Applies the event's letters. The answer is in answer->body; answer->is_ruined has to be heeded. SL_REJECT:
 * it is not an event of letters. SL_RETRY: letters are left, and the configuration does not say that the
 * mapping reports item failures, so that the whole event has to fail. */
enum sl_status sl_drain_event(struct sl_drain *drain, struct sl_span event,
                              const struct sl_invocation *invocation, struct sl_answer *answer,
                              struct sl_drained *out, struct sl_error *error) SL_MUST_USE;

#endif
