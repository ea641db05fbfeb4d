/* Notes the traces of the records that a route took. */
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/links.h"

enum { UNKNOWN, NOT_SAMPLED, SAMPLED };

static void add(struct sl_links *links, struct sl_arena *arena, const struct sl_trace_context *trace)
{
    if (!links->list)
        links->list = sl_arena_alloc(arena, SL_LINKS_MAX * sizeof(*links->list));
    if (links->n < SL_LINKS_MAX)
        links->list[links->n++] = *trace;
    else
        links->dropped++;
}

static bool read(const struct sl_dispatch *d, size_t index, struct sl_trace_context *trace)
{
    return sl_record_trace(sl_batch_record(d->batch, index), &d->p->config.trace, trace) &&
           sl_traceparent_is_sampled(trace->traceparent);
}

void sl_dispatch_links(const struct sl_run *run)
{
    struct sl_dispatch *d = run->d;
    struct sl_trace_context trace = {.traceparent = {NULL, 0}};
    if (!d->links || !d->p->config.trace.parent.ptr)
        return;
    struct sl_links *links = &d->links->routes[run->route - d->p->routes];
    if (!d->sampled)
        d->sampled = sl_arena_zalloc(d->arena, d->n);
    for (size_t i = 0; i < run->n; i++) {
        const size_t index = run->entries[i].index;
        unsigned char *sampled = &d->sampled[index];
        bool is_new = *sampled == UNKNOWN;
        if (is_new || (*sampled == SAMPLED && links->n < SL_LINKS_MAX))
            *sampled = read(d, index, &trace) ? SAMPLED : NOT_SAMPLED;
        if (*sampled != SAMPLED)
            continue;
        add(links, d->arena, &trace);
        if (is_new)
            add(&d->links->all, d->arena, &trace);
    }
}
