/* The outcomes of a slice's records, as the built-in handlers report them. */
#include "handlers/builtin/toolkit/outcome.h"

#include "base/arena.h"
#include "base/array.h"

enum state { DONE = 0, MARKED, UNKNOWN };

void sl_outcome_init(struct sl_outcome *o, const struct sl_host *host, struct sl_slice *slice)
{
    *o = (struct sl_outcome){.host = host, .slice = slice};
    o->states = sl_arena_zalloc(slice->arena, slice->n);
}

void sl_outcome_fail(struct sl_outcome *o, size_t i, const struct sl_error *error)
{
    o->host->mark(o->slice, i, error->status, error);
    o->states[i] = MARKED;
    if (error->status == SL_FATAL && o->why.status != SL_FATAL)
        o->why = *error;
}

void sl_outcome_unknown(struct sl_outcome *o, size_t i, const struct sl_error *error)
{
    if (o->states[i] == MARKED)
        return; /* another of its operations has failed for sure */
    o->states[i] = UNKNOWN;
    o->has_unknown = true;
    if (o->why.status == SL_OK)
        o->why = *error;
}

void sl_outcome_shared(struct sl_outcome *o, size_t i, const struct sl_error *error)
{
    if (error->status == SL_REJECT)
        sl_outcome_unknown(o, i, error);
    else
        sl_outcome_fail(o, i, error);
}

/* ---- what sinks say ---- */

void sl_outcome_fail_folded(struct sl_outcome *o, uint32_t last, uint32_t newest, const uint32_t *before,
                            const struct sl_error *error)
{
    for (uint32_t i = last; i != SL_OUTCOME_NO_RECORD; i = before[i]) {
        if (i == newest)
            sl_outcome_fail(o, i, error);
        else
            sl_outcome_shared(o, i, error);
    }
}

void sl_outcome_error(const struct sl_host *host, const struct sl_result *result, struct sl_error *error)
{
    *error = (struct sl_error)SL_NO_ERROR;
    (void)host->fail(error, result->status, result->code ? result->code : "Unknown", "%s",
                     result->text ? result->text : "the sink gave no reason");
}

static bool is_bystander(const struct sl_result *result)
{
    return result->status == SL_OK || result->condition_failed ||
           (result->status == SL_REJECT && result->code && strcmp(result->code, "TransactionCanceled") == 0);
}

const struct sl_result *sl_outcome_cause(const struct sl_result *results, size_t n)
{
    const struct sl_result *refusal = NULL;
    for (size_t i = 0; i < n; i++) {
        if (is_bystander(&results[i]))
            continue;
        if (results[i].status != SL_REJECT)
            return &results[i];
        refusal = refusal ? refusal : &results[i];
    }
    return refusal;
}

/* ---- the end ---- */

enum sl_status sl_outcome_end(struct sl_outcome *o, struct sl_error *error)
{
    if (!o->has_unknown && o->why.status == SL_OK)
        return SL_OK;
    for (size_t i = 0; i < o->slice->n; i++)
        if (o->states[i] == DONE)
            o->host->mark(o->slice, i, SL_OK, NULL);
    return o->host->fail(error, o->why.status, o->why.code, "%s", o->why.text);
}
