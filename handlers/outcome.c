#include "handlers/outcome.h"

#include <string.h>

enum state { DONE, MARKED, UNKNOWN };

void sl_outcome_init(struct sl_outcome *o, const struct sl_host *host, struct sl_slice *slice)
{
    *o = (struct sl_outcome){.host = host, .slice = slice};
    o->states = host->alloc(slice->arena, slice->n);
    memset(o->states, DONE, slice->n);
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
    o->states[i] = UNKNOWN;
    o->has_unknown = true;
    if (o->why.status == SL_OK)
        o->why = *error;
}

void sl_outcome_error(const struct sl_host *host, const struct sl_result *result, struct sl_error *error)
{
    *error = (struct sl_error){.offset = SIZE_MAX};
    (void)host->fail(error, result->status, result->code ? result->code : "Unknown", "%s",
                     result->text ? result->text : "the sink gave no reason");
}

enum sl_status sl_outcome_end(struct sl_outcome *o, struct sl_error *error)
{
    if (!o->has_unknown && o->why.status == SL_OK)
        return SL_OK;
    for (size_t i = 0; i < o->slice->n; i++)
        if (o->states[i] == DONE)
            o->host->mark(o->slice, i, SL_OK, NULL);
    return o->host->fail(error, o->why.status, o->why.code, "%s", o->why.text);
}
