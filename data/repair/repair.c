/* One call of a handler's repair(), and what became of the row. */
#include "data/repair/repair.h"

#include "handlers/pipeline/host.h"

const char *sl_repaired_name(enum sl_repaired outcome)
{
    static const char *const names[] = {"written", "removed", "already right", "moved", "left", "failed"};
    return names[outcome];
}

static struct sl_repair_outcome outcome_of(const struct sl_mark *mark, enum sl_status status,
                                           const struct sl_error *error)
{
    const struct sl_error *why = mark->is_set ? mark->why : error;
    struct sl_repair_outcome out = {.outcome = SL_REPAIRED_FAILED};
    status = mark->is_set ? mark->status : status;
    if (status == SL_REJECT)
        out.outcome = why && strcmp(why->code, "Moved") == 0 ? SL_REPAIRED_MOVED : SL_REPAIRED_LEFT;
    out.code = why ? why->code : "Unknown";
    out.why = why ? why->text : "the handler gave no reason";
    return out;
}

static enum sl_status call(const struct sl_repair_row *row, struct sl_repair *ask, struct sl_arena *arena,
                           struct sl_repair_outcome *out)
{
    struct sl_mark mark = {.is_set = false};
    struct sl_error *error = sl_arena_zalloc(arena, sizeof(*error));
    struct sl_slice_call call = {.marks = &mark,
                                 .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                                           .records = &row->record,
                                           .n = 1,
                                           .deadline_ms = row->deadline_ms,
                                           .arena = arena,
                                           .request_id = ""}};
    sl_error_clear(error);
    sl_route_enter(row->route);
    enum sl_status status = row->route->loaded.handler.repair(row->route->self, &call.slice, ask, error);
    sl_route_leave(row->route);
    sl_error_seal(error);
    if (status == SL_OK && !(mark.is_set && mark.status != SL_OK))
        return SL_OK;
    *out = outcome_of(&mark, status, error);
    return SL_REJECT;
}

static void left(struct sl_repair_outcome *out, const char *code, const char *why)
{
    *out = (struct sl_repair_outcome){.outcome = SL_REPAIRED_LEFT, .code = code, .why = why};
}

void sl_repair_row(struct sl_repairs *r, const struct sl_repair_row *row, struct sl_arena *arena,
                   struct sl_repair_outcome *out)
{
    static const enum sl_repaired of_effect[] = {SL_REPAIRED_ALREADY, SL_REPAIRED_WRITTEN,
                                                 SL_REPAIRED_REMOVED};
    struct sl_span written = {NULL, 0}, side = {NULL, 0};
    enum sl_repair_effect effect = SL_REPAIR_NOTHING;
    struct sl_repair ask = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(ask)},
                            .seen = &row->row,
                            .sides = &row->side,
                            .wanted = row->is_undo ? &row->back : NULL,
                            .may_remove = r->may_remove && r->outcomes[SL_REPAIRED_REMOVED] < r->max_removals,
                            .is_plan = r->is_plan,
                            .effects = &effect,
                            .written = &written,
                            .keys = &row->key,
                            .sides_written = &side};
    if (!row->route->loaded.handler.repair)
        left(out, "NoRepair", "the handler cannot repair its rows");
    else if (call(row, &ask, arena, out) == SL_OK)
        *out = (struct sl_repair_outcome){.outcome = of_effect[effect], .side = side, .written = written};
    else if (r->may_remove && !ask.may_remove && strcmp(out->code, "WouldRemove") == 0)
        left(out, "MaxDeletes", "as many rows were removed as may be (--max-deletes)");
    r->outcomes[out->outcome]++;
}
