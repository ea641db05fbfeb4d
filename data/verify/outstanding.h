/* Letters of routes that are set aside: while one waits, nobody can say whether its route is right. What is
 * equal may have to change yet, and what is different may be on its way.
 *
 * SQS counts its messages only roughly, and late. So a route's letters are taken for drained when queue and
 * dead-letter queue were empty (visible, in flight, delayed) in SL_OUTSTANDING_LOOKS looks over
 * SL_OUTSTANDING_MS: every change that was set aside before the first of these looks has been applied. */
#ifndef SL_DATA_VERIFY_OUTSTANDING_H
#define SL_DATA_VERIFY_OUTSTANDING_H

#include "handlers/pipeline/route.h"

#define SL_OUTSTANDING_LOOKS 3
#define SL_OUTSTANDING_MS    120000

struct sl_outstanding;

/* Of the chosen routes (by number; NULL: all) that have a queue. SL_REJECT: a queue cannot be opened. */
enum sl_status sl_outstanding_open(struct sl_pipeline *p, const bool *is_chosen, struct sl_outstanding **out,
                                   struct sl_error *error) SL_MUST_USE;
void sl_outstanding_close(struct sl_outstanding *o); /* NULL is fine */

/* Wall time: what was set aside before it has been applied. INT64_MAX: the route is never set aside. 1:
 * letters wait, or nobody knows. Looks at the queue when it is time for that. */
int64_t sl_outstanding_settled_ms(struct sl_outstanding *o, const char *route);

/* Waits until it is known whether letters of any route wait, two minutes at most (and not when one does).
 * Returns whether none does; else `route` and `letters` are of the first of which some do (or, -1, of which
 * nobody knows, with `why`). `stop`: ends the wait; NULL: nothing does. */
struct sl_outstanding_route {
    const char *route, *why;
    int64_t letters;
};
bool sl_outstanding_settle(struct sl_outstanding *o, const volatile int *stop,
                           struct sl_outstanding_route *out);

/* For a repair: a letter may hold a change that is older than the repair and beats it, and the newer one may
 * be lost. SL_REJECT, code "SetAside": some wait, or nobody knows; `leave_out` names what leaves a route out
 * ("--routes"). A wait that `stop` ended is SL_OK. */
enum sl_status sl_outstanding_refuse(struct sl_outstanding *o, const volatile int *stop,
                                     const char *leave_out, struct sl_error *error) SL_MUST_USE;

#endif
