/* One row is read, compared with what the repair left, and put back. */
#include "data/repair/undo.h"

#include "base/span.h"
#include "streams/record.h"
#include "streams/value.h"

static struct sl_value row_of(struct sl_span json)
{
    return (struct sl_value){.type = json.ptr ? SL_M : SL_NONE, .raw = json};
}

static void fail(struct sl_repair_outcome *out, enum sl_repaired outcome, const char *code, const char *why)
{
    *out = (struct sl_repair_outcome){.outcome = outcome, .code = code, .why = why};
}

/* The row that the handler keeps for the item. */
static bool find_row(const struct sl_undo *undo, const struct sl_record *record, struct sl_arena *arena,
                     struct sl_expected *row, struct sl_repair_outcome *out)
{
    const struct sl_handler *handler = &undo->route->loaded.handler;
    struct sl_error *error = sl_arena_zalloc(arena, sizeof(*error));
    struct sl_expect e = {
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(e)}, .records = &record, .n = 1, .arena = arena};
    sl_error_clear(error);
    if (!handler->expect || !handler->repair) {
        fail(out, SL_REPAIRED_LEFT, "NoRepair", "the handler cannot repair its rows");
        return false;
    }
    sl_route_enter(undo->route);
    enum sl_status status = handler->expect(undo->route->self, &e, error);
    sl_route_leave(undo->route);
    if (status != SL_OK)
        fail(out, SL_REPAIRED_FAILED, error->code, error->text);
    else if (e.n_rows != 1 || e.rows[0].status != SL_OK)
        fail(out, SL_REPAIRED_LEFT, "NotComparable", "the handler does not keep one row for the item");
    else
        *row = e.rows[0];
    return status == SL_OK && e.n_rows == 1 && row->status == SL_OK;
}

/* `items`: the row and its side row. */
static bool read_rows(const struct sl_expected *row, int64_t deadline_ms, struct sl_arena *arena,
                      struct sl_span items[2], struct sl_repair_outcome *out)
{
    struct sl_table_op ops[] = {{.verb = SL_TABLE_GET, .table = row->table, .key = row->key},
                                {.verb = SL_TABLE_GET, .table = row->side_table, .key = row->side_key}};
    struct sl_result results[2] = {{.status = SL_OK}, {.status = SL_OK}};
    const struct sl_call call = {.arena = arena, .deadline_ms = deadline_ms};
    row->port->apply(row->port, ops, row->side_key.ptr ? 2 : 1, results, &call);
    for (size_t i = 0; i < 2; i++) {
        items[i] = results[i].item;
        if (results[i].status == SL_OK)
            continue;
        fail(out, SL_REPAIRED_FAILED, results[i].code, results[i].text);
        return false;
    }
    return true;
}

/* A tombstone says when it may go, by the clock of its write: its guard tells it apart. */
static bool is_as_left(const struct sl_expected *row, struct sl_span item, struct sl_span after)
{
    struct sl_value is = row_of(item), was = row_of(after);
    if (row->absence.ptr && sl_value_member(was, row->absence).type != SL_NONE)
        return sl_value_member(is, row->absence).type != SL_NONE &&
               sl_value_equal(sl_value_member(is, row->guard), sl_value_member(was, row->guard));
    return sl_value_equal(is, was);
}

static void undo_found(struct sl_repairs *r, const struct sl_undo *undo, const struct sl_record *record,
                       struct sl_arena *arena, struct sl_repair_outcome *out)
{
    struct sl_expected row = {.status = SL_REJECT};
    struct sl_span items[2];
    if (!find_row(undo, record, arena, &row, out) || !read_rows(&row, undo->deadline_ms, arena, items, out)) {
        r->outcomes[out->outcome]++;
        return;
    }
    if (!is_as_left(&row, items[0], undo->after)) {
        *out = (struct sl_repair_outcome){
            .outcome = SL_REPAIRED_MOVED, .code = "Moved", .why = "the row is not as the repair left it"};
        r->outcomes[out->outcome]++;
        return;
    }
    const struct sl_repair_row back = {.route = undo->route,
                                       .record = record,
                                       .row = items[0],
                                       .side = items[1],
                                       .is_undo = true,
                                       .back = undo->before,
                                       .deadline_ms = undo->deadline_ms};
    sl_repair_row(r, &back, arena, out);
}

void sl_undo_row(struct sl_repairs *r, const struct sl_undo *undo, struct sl_arena *arena,
                 struct sl_repair_outcome *out)
{
    const struct sl_items_keys none = {.n = 0};
    struct sl_items_entry entry = {.key = undo->source_key};
    struct sl_error *error = sl_arena_zalloc(arena, sizeof(*error));
    struct sl_batch batch;
    sl_error_clear(error);
    if (sl_items_decode(&entry, 1, &none, SL_LIT(SL_REPLAYED_ARN), arena, &batch, error) == SL_OK) {
        undo_found(r, undo, sl_batch_record(&batch, 0), arena, out);
        return;
    }
    fail(out, SL_REPAIRED_LEFT, error->code, error->text);
    r->outcomes[out->outcome]++;
}
