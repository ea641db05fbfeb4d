/* Findings of a verification, set right through the routes' own writes. */
#include "data/repair/findings.h"

#include "base/json.h"
#include "data/verify/source.h"

/* Two rows of 400 KB, each byte escaped to six at worst. */
#define ROWS_BYTES ((size_t)16 * 1024 * 1024)

void sl_finding_repairs_init(struct sl_finding_repairs *r)
{
    sl_buffer_init(&r->item, ROWS_BYTES);
    sl_buffer_init(&r->mended, ROWS_BYTES);
    sl_buffer_init(&r->side, ROWS_BYTES);
}

void sl_finding_repairs_clean_up(struct sl_finding_repairs *r)
{
    sl_buffer_clean_up(&r->item);
    sl_buffer_clean_up(&r->mended);
    sl_buffer_clean_up(&r->side);
}

/* Do the rows belong together, and say which route's they are? Then one is not put back alone. */
static bool says_whose(const struct sl_route *route)
{
    return sl_route_makes(route) == SL_MAKES_TOTALS || sl_route_makes(route) == SL_MAKES_VIEW;
}

/* May the row be another route's? Routes of different handlers tell their own rows apart. */
static bool is_shared(const struct sl_finding_repairs *r, const struct sl_route *route)
{
    const struct sl_pipeline *p = r->pipeline;
    for (size_t i = 0; i < p->n; i++) {
        const struct sl_route *other = &p->routes[i];
        if (other != route && strcmp(other->stats.handler, route->stats.handler) == 0 && !says_whose(route) &&
            sl_verify_is_same_table(other->stats.target, route->stats.target))
            return true;
    }
    return false;
}

void sl_repair_leave(struct sl_repairs *r, struct sl_repair_outcome *out, const char *code, const char *why)
{
    *out = (struct sl_repair_outcome){.outcome = SL_REPAIRED_LEFT, .code = code, .why = why};
    r->outcomes[SL_REPAIRED_LEFT]++;
}

static bool keep_row(struct sl_finding_repairs *r, const struct sl_finding *finding,
                     const struct sl_repair_row *row, struct sl_arena *arena)
{
    struct sl_repair_outcome planned;
    struct sl_repairs plan = r->rows;
    plan.is_plan = true;
    if (!r->keep || r->rows.is_plan || says_whose(row->route))
        return true;
    sl_repair_row(&plan, row, arena, &planned);
    if (planned.outcome != SL_REPAIRED_WRITTEN && planned.outcome != SL_REPAIRED_REMOVED)
        return true;
    r->is_full = !r->keep(r->arg, finding, planned.written);
    return !r->is_full;
}

/* Rows of one item were seen with the same side row, which the repair of the first one changed. */
static void take_side(struct sl_finding_repairs *r, const struct sl_finding *finding,
                      struct sl_repair_row *row)
{
    sl_buffer_reset(&r->item);
    sl_buffer_printf(&r->item, "%s\n%.*s\n%.*s", finding->route, SL_ARG(finding->source_key),
                     SL_ARG(row->side));
    if (sl_span_eq(sl_buffer_span(&r->item), sl_buffer_span(&r->mended)))
        row->side = sl_buffer_span(&r->side);
}

static void keep_side(struct sl_finding_repairs *r, struct sl_span side)
{
    if (!side.ptr)
        return;
    sl_buffer_reset(&r->mended);
    sl_buffer_add_span(&r->mended, sl_buffer_span(&r->item));
    sl_buffer_reset(&r->side);
    sl_buffer_add_span(&r->side, side);
}

void sl_repair_finding(struct sl_finding_repairs *r, const struct sl_finding *finding, int64_t deadline_ms,
                       struct sl_arena *arena, struct sl_repair_outcome *out)
{
    enum sl_verdict verdict = finding->judge->verdict;
    struct sl_repair_row row = {.route = sl_route_find(r->pipeline, sl_span_str(finding->route)),
                                .record = finding->judge->record,
                                .key = finding->expected->key,
                                .row = finding->judge->row,
                                .side = finding->judge->side,
                                .deadline_ms = deadline_ms};
    take_side(r, finding, &row);
    if (verdict == SL_VERDICT_COLLISION && !says_whose(row.route))
        sl_repair_leave(&r->rows, out, "Collision",
                        "two items of the source have this key in the target: change the route's \"key\"");
    else if (sl_finding_is_removal(verdict) && is_shared(r, row.route))
        sl_repair_leave(&r->rows, out, "SeveralOwners",
                        "another route writes the same table, and the row may be its own");
    else if (r->is_full || !keep_row(r, finding, &row, arena))
        sl_repair_leave(&r->rows, out, "NotKept", "what has to be kept of the write could not be");
    else
        sl_repair_row(&r->rows, &row, arena, out);
    if (!r->rows.is_plan)
        keep_side(r, out->side);
}

bool sl_finding_line_is_of_totals(struct sl_span line)
{
    struct sl_span kind = sl_json_find(line, "kind");
    return sl_span_is(kind, "\"sum\"") || sl_span_is(kind, "\"values\"") || sl_span_is(kind, "\"members\"");
}

enum sl_status sl_repair_take_line(struct sl_verify *verify, struct sl_pipeline *pipeline,
                                   struct sl_span line, struct sl_arena *arena, enum sl_finding_line *what,
                                   struct sl_error *error)
{
    *what = SL_FINDING_NONE;
    enum sl_status status = sl_json_check_loose(line, error);
    if (status != SL_OK)
        return status;
    struct sl_span result = sl_json_find(line, "result"), route = sl_json_find(line, "route");
    struct sl_span key = sl_json_find(line, "source_key");
    if (!sl_span_is(result, "\"different\""))
        return SL_OK;
    if (sl_finding_line_is_of_totals(line) || sl_span_is(sl_json_find(line, "handler"), "\"archive\"")) {
        *what = SL_FINDING_OTHER;
        return SL_OK;
    }
    if (route.len < 2 || !key.ptr || *key.ptr != '{')
        return sl_fail(error, SL_REJECT, "NoFinding", "a difference without \"route\" or \"source_key\"");
    const char *name = sl_arena_copy(arena, sl_span(route.ptr + 1, route.len - 2));
    if (!sl_route_find(pipeline, sl_span_str(name)))
        return sl_fail(error, SL_REJECT, "NoRoute", "the configuration has no route \"%s\"", name);
    *what = SL_FINDING_TAKEN;
    return sl_verify_item(verify, name, key, error);
}

bool sl_finding_line_is_removal(struct sl_span line)
{
    struct sl_span kind = sl_json_find(line, "kind");
    for (int verdict = 0; verdict < SL_VERDICT_NOT_JUDGED; verdict++) {
        const char *name = sl_finding_kind((enum sl_verdict)verdict);
        if (sl_finding_is_removal((enum sl_verdict)verdict) && kind.len == strlen(name) + 2 &&
            memcmp(kind.ptr + 1, name, strlen(name)) == 0)
            return true;
    }
    return false;
}
