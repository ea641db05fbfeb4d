/* Calls of ports and handlers, on behalf of the verification. */
#include "base/span.h"
#include "streams/value.h"
#include "data/verify/verify_private.h"

int64_t sl_verify_wall_ms(const struct sl_verify *v)
{
    return v->clock->wall_ns(v->clock) / 1000000;
}

struct sl_call sl_verify_call(const struct sl_verify *v, int64_t deadline_ms)
{
    return (struct sl_call){.arena = v->arena, .deadline_ms = deadline_ms};
}

enum sl_status sl_verify_expect(struct sl_verify *v, struct verified *r,
                                const struct sl_record *const *records, size_t n, struct sl_expect *out,
                                struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    *out = (struct sl_expect){
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(*out)}, .records = records, .n = n, .arena = v->arena};
    sl_route_enter(r->route);
    enum sl_status status = r->route->loaded.handler.expect(r->route->self, out, &why);
    sl_route_leave(r->route);
    if (status == SL_OK)
        return SL_OK;
    sl_error_seal(&why);
    return sl_fail(error, status == SL_RETRY ? SL_RETRY : SL_FATAL, why.code, "route %s: %s", r->report.name,
                   why.text);
}

enum sl_status sl_verify_read(struct sl_verify *v, struct sl_table_port *port, enum sl_table_verb verb,
                              const struct sl_table_op *ops, size_t n, int64_t deadline_ms,
                              const struct sl_result **out, struct sl_error *error)
{
    struct sl_call call = sl_verify_call(v, deadline_ms);
    struct sl_result *results = sl_arena_zalloc(v->arena, (n + 1) * sizeof(*results));
    struct sl_table_op *reads = sl_arena_alloc(v->arena, (n + 1) * sizeof(*reads));
    for (size_t i = 0; i < n; i++) {
        reads[i] = ops[i];
        reads[i].verb = verb;
    }
    *out = results;
    if (n)
        port->apply(port, reads, n, results, &call);
    for (size_t i = 0; i < n; i++)
        if (results[i].status == SL_RETRY || results[i].status == SL_FATAL)
            return sl_fail(error, results[i].status, results[i].code, "%s", results[i].text);
    return SL_OK;
}

/* The rows of one port, from row `first` on: ops, and which row each is of. */
struct gathered {
    struct sl_table_op *ops;
    size_t *at, n;
};

static void gather(const struct sl_expected *rows, size_t n, size_t first, bool sides, const bool *is_done,
                   struct gathered *out)
{
    out->n = 0;
    for (size_t i = first; i < n; i++) {
        const struct sl_expected *row = &rows[i];
        if (row->status != SL_OK || !row->key.ptr || is_done[i] || row->port != rows[first].port)
            continue;
        out->at[out->n] = i;
        out->ops[out->n++] = (struct sl_table_op){.table = row->table, .key = row->key};
        if (!sides || !row->side_key.ptr)
            continue;
        out->at[out->n] = n + i;
        out->ops[out->n++] = (struct sl_table_op){.table = row->side_table, .key = row->side_key};
    }
}

enum sl_status sl_verify_read_rows(struct sl_verify *v, const struct sl_expected *rows, size_t n,
                                   enum sl_table_verb verb, bool sides, int64_t deadline_ms,
                                   const struct sl_result **out, struct sl_error *error)
{
    struct sl_result *results = sl_arena_zalloc(v->arena, (2 * n + 1) * sizeof(*results));
    bool *is_done = sl_arena_zalloc(v->arena, n + 1);
    struct gathered g = {.ops = sl_arena_alloc(v->arena, (2 * n + 1) * sizeof(*g.ops)),
                         .at = sl_arena_alloc(v->arena, (2 * n + 1) * sizeof(*g.at))};
    *out = results;
    for (size_t i = 0; i < n; i++) {
        const struct sl_result *read;
        if (rows[i].status != SL_OK || !rows[i].key.ptr || is_done[i])
            continue;
        gather(rows, n, i, sides, is_done, &g);
        enum sl_status status = sl_verify_read(v, rows[i].port, verb, g.ops, g.n, deadline_ms, &read, error);
        if (status != SL_OK)
            return status;
        for (size_t k = 0; k < g.n; k++) {
            results[g.at[k]] = read[k];
            is_done[g.at[k] % n] = true;
        }
    }
    return SL_OK;
}

bool sl_verify_is_past(const struct sl_verify *v, struct sl_span item)
{
    int64_t at_s, limit_s = sl_verify_wall_ms(v) / 1000 + SL_VERIFY_TTL_MARGIN_S;
    struct sl_value image = {.type = SL_M, .raw = item};
    for (size_t i = 0; i < v->o.n_ttl_attributes && item.ptr; i++)
        if (sl_value_int64(sl_value_member(image, v->o.ttl_attributes[i]), &at_s) && at_s > 0 &&
            at_s <= limit_s)
            return true;
    return false;
}
