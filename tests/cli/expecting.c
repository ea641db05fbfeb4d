/* A plugin that tells what should be there: a short row for each item, "n" twice the item's. */
#include <sluice/handler.h>
#include <stdio.h>

struct short_rows {
    const struct sl_host *host;
    struct sl_table_port *table;
};

static enum sl_status short_open(const struct sl_host *host, struct sl_route *route, void **self,
                                 struct sl_error *error)
{
    struct short_rows *s = (struct short_rows *)host->alloc(host->route_arena(route), sizeof(*s));
    (void)error;
    s->host = host;
    s->table = host->option_table(route, "to");
    *self = s;
    return SL_OK;
}

/* {"PK":...,"SK":...,"n":{"N":"14"}}; absent for an item that has no "cost". */
static struct sl_span row_of(const struct short_rows *s, const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_span none = {NULL, 0}, keys = s->host->record_image(r, SL_KEYS).raw;
    int64_t cost;
    char n[64];
    if (s->host->record_event(r) == SL_REMOVE ||
        !s->host->value_int64(s->host->record_attribute(r, SL_NEW_IMAGE, SL_LIT("cost")), &cost))
        return none;
    snprintf(n, sizeof(n), ",\"n\":{\"N\":\"%lld\"}}", (long long)(2 * cost));
    struct sl_span parts[] = {{keys.ptr, keys.len - 1}, sl_span_str(n)};
    return s->host->join(arena, parts, 2);
}

static enum sl_status short_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct short_rows *s = (const struct short_rows *)self;
    (void)error;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_table_op op = {.key = s->host->record_image(slice->records[i], SL_KEYS).raw};
        struct sl_result result = {.status = SL_OK};
        struct sl_call call = {slice->arena, slice->deadline_ms};
        op.item = row_of(s, slice->records[i], slice->arena);
        op.verb = op.item.ptr ? SL_TABLE_PUT : SL_TABLE_DELETE;
        s->table->apply(s->table, &op, 1, &result, &call);
        s->host->mark_result(slice, i, &result);
    }
    return SL_OK;
}

static enum sl_status short_expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    const struct short_rows *s = (const struct short_rows *)self;
    (void)error;
    e->n_rows = e->n ? e->n : 1;
    e->rows = (struct sl_expected *)s->host->alloc(e->arena, e->n_rows * sizeof(*e->rows));
    for (size_t i = 0; i < e->n_rows; i++) {
        struct sl_expected row = {.record = i, .port = s->table};
        if (e->n) {
            row.key = s->host->record_image(e->records[i], SL_KEYS).raw;
            row.item = row_of(s, e->records[i], e->arena);
        }
        e->rows[i] = row;
    }
    return SL_OK;
}

/* A row's key is its item's. */
static enum sl_status short_trace(void *self, struct sl_trace *t, struct sl_error *error)
{
    const struct short_rows *s = (const struct short_rows *)self;
    struct sl_value row = {.type = SL_M, .raw = t->row};
    struct sl_span parts[9] = {
        SL_LIT("{\"PK\":"), s->host->value_json(s->host->value_member(row, SL_LIT("PK")), t->arena),
        SL_LIT(",\"SK\":"), s->host->value_json(s->host->value_member(row, SL_LIT("SK")), t->arena),
        SL_LIT("}")};
    (void)error;
    t->key = s->host->join(t->arena, parts, 5);
    return SL_OK;
}

static const struct sl_option options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL, "the table"},
    {.type = SL_OPTION_END},
};

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "expecting",
    .summary = "a short row for each item",
    .options = options,
    .open = short_open,
    .handle = short_handle,
    .expect = short_expect,
    .trace = short_trace,
};
