/* Letters: records that a route set aside while its target was down, as messages of a queue.
 *
 *   {"sluiceSetAside":1,"time":"...","account":"123456789012","region":"eu-west-1","table":"orders",
 *    "route":"search","handler":"replicate","target":"opensearch://...","epoch":0,"requestId":"...",
 *    "functionArn":"...","code":"ConnectionError","message":"...","records":[{...},...]}
 *
 * `records` are as they came, of one route and one batch, in their order. Members are only added within one
 * format number. A letter belongs to account, Region, table, route and target; what one side does not say
 * matches. (The stream's label is no part of it: a table whose stream was switched off and on has another.)
 *
 * A letter that belongs to another route, target or table, or to a later epoch, is neither applied nor
 * parked: its message fails, and ends in the dead-letter queue for people to look at. */
#ifndef SL_HANDLERS_DISPATCH_LETTER_H
#define SL_HANDLERS_DISPATCH_LETTER_H

#include "handlers/dispatch/dispatch.h"

#define SL_LETTER_FORMAT 1
/* Records of a letter, unless it is of one: SQS bills a request for each 64 KB. */
#define SL_LETTER_BYTES ((size_t)200 * 1024)

/* Where records come from; what the record does not say is "". */
struct sl_letter_origin {
    struct sl_span account, region, table;
};
struct sl_letter_origin sl_letter_origin_of(const struct sl_record *record);

/* Whether the text is an object whose first member is "sluiceSetAside": cheap, and true for nothing else. */
bool sl_letter_is(struct sl_span text);

/* Is the code one with which a target refuses everything? */
bool sl_aside_is_environment(const char *code);

enum sl_letter_outcome {
    SL_LETTER_DONE,  /* every record is applied, or durably parked */
    SL_LETTER_LATER, /* its route is paused, or its target is down still */
    SL_LETTER_FAILED /* a record of it fails, or it is not one of this pipeline's: `error` says why */
};

/* Applies a letter: all of its records, by its route alone. Everything of it lives in invocation->arena,
 * whose `late` is set here. `age_ms`: since it was set aside; -1: not known. `checkpoint` and the like of
 * `answer` are those of its batch; is_ruined has to be heeded. */
enum sl_letter_outcome sl_letter_apply(struct sl_pipeline *p, struct sl_span text,
                                       const struct sl_invocation *invocation, struct sl_answer *answer,
                                       int64_t *age_ms, struct sl_error *error);

#endif
