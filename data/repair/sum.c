/* The row is read, and the number added. */
#include "data/repair/sum.h"

#include "base/number.h"
#include "base/span.h"
#include "data/repair/findings.h"
#include "streams/value.h"
#include "data/verify/totals.h"

static void fail(struct sl_repair_outcome *out, enum sl_repaired outcome, const char *code, const char *why)
{
    *out = (struct sl_repair_outcome){.outcome = outcome, .code = code, .why = why};
}

static bool apply(struct sl_table_port *port, const struct sl_table_op *op, const struct sl_repair_sum *sum,
                  struct sl_arena *arena, struct sl_result *result)
{
    const struct sl_call call = {.arena = arena, .deadline_ms = sum->deadline_ms};
    *result = (struct sl_result){.status = SL_OK};
    port->apply(port, op, 1, result, &call);
    return result->status == SL_OK;
}

static struct sl_span negative(struct sl_span number, struct sl_arena *arena)
{
    return *number.ptr == '-' ? sl_span_from(number, 1)
                              : sl_span_str(sl_arena_printf(arena, "-%.*s", SL_ARG(number)));
}

/* A row that is made anew in the source table would be taken for an item. */
static bool is_marked(const struct sl_route *route)
{
    return sl_span_is(sl_options_text(&route->options, "own_rows"), "mark");
}

static void add(struct sl_table_port *port, const struct sl_repair_sum *sum, struct sl_arena *arena,
                struct sl_span *added, struct sl_repair_outcome *out)
{
    struct sl_span more = negative(sum->difference, arena);
    struct sl_span mark = sl_span_str(sl_arena_printf(arena, SL_TOTALS_MARK "%.*s", SL_ARG(sum->attribute)));
    struct sl_set sets[] = {{.verb = SL_ADD,
                             .name = sum->attribute,
                             .value = sl_span_str(sl_arena_printf(arena, "{\"N\":\"%.*s\"}", SL_ARG(more)))},
                            {.verb = SL_ADD, .name = mark, .value = SL_LIT("{\"N\":\"1\"}")}};
    struct sl_test test = {.verb = SL_ABSENT, .name = mark};
    struct sl_result result;
    if (sum->mark.ptr)
        test = (struct sl_test){SL_EQ, mark, sum->mark};
    const struct sl_table_op op = {
        .verb = SL_TABLE_UPDATE, .key = sum->key, .sets = sets, .n_sets = 2, .tests = &test, .n_tests = 1};
    *added = more;
    *out = (struct sl_repair_outcome){.outcome = SL_REPAIRED_WRITTEN};
    if (apply(port, &op, sum, arena, &result))
        return;
    if (result.condition_failed)
        fail(out, SL_REPAIRED_MOVED, "Moved", "another repair has added to the total; verify it again");
    else
        fail(out, SL_REPAIRED_FAILED, result.code, result.text);
}

static void repair(const struct sl_repairs *r, const struct sl_repair_sum *sum, struct sl_arena *arena,
                   struct sl_span *added, struct sl_repair_outcome *out)
{
    struct sl_table_port *table = sl_options_get(&sum->route->options, "to")->table;
    struct sl_table_op get = {.verb = SL_TABLE_GET, .key = sum->key};
    struct sl_result result;
    if (sl_span_is(sum->difference, SL_TOTALS_BEYOND)) {
        fail(out, SL_REPAIRED_LEFT, "TooLarge", "no number of 38 digits sets it right; look at its rows");
        return;
    }
    struct sl_number number;
    if (sl_number_parse(sum->difference, &number)) {
        fail(out, SL_REPAIRED_LEFT, "NoDifference", "the finding says no number as its difference");
        return;
    }
    if (!apply(table, &get, sum, arena, &result)) {
        fail(out, SL_REPAIRED_FAILED, result.code, result.text);
        return;
    }
    struct sl_value row = {.type = result.item.ptr ? SL_M : SL_NONE, .raw = result.item};
    struct sl_value held = sl_value_member(row, sum->attribute);
    if (held.type != SL_NONE && held.type != SL_N) {
        fail(out, SL_REPAIRED_LEFT, "NoNumber", "the attribute is not a number");
    } else if (row.type == SL_NONE && is_marked(sum->route)) {
        fail(out, SL_REPAIRED_LEFT, "NoRow",
             "the row is gone, and in the source table only the route itself may make one");
    } else if (r->is_plan) {
        *added = negative(sum->difference, arena);
        *out = (struct sl_repair_outcome){.outcome = SL_REPAIRED_WRITTEN};
    } else {
        add(table, sum, arena, added, out);
    }
}

void sl_repair_sum(struct sl_repairs *r, const struct sl_repair_sum *sum, struct sl_arena *arena,
                   struct sl_span *added, struct sl_repair_outcome *out)
{
    *added = sl_span(NULL, 0);
    repair(r, sum, arena, added, out);
    r->outcomes[out->outcome]++;
}

/* One of those that write these totals. */
static struct sl_route *route_to(struct sl_pipeline *pipeline, struct sl_span target)
{
    for (size_t i = 0; i < pipeline->n; i++)
        if (sl_route_makes(&pipeline->routes[i]) == SL_MAKES_TOTALS &&
            sl_span_is(target, pipeline->routes[i].stats.target))
            return &pipeline->routes[i];
    return NULL;
}

void sl_repair_audit_sum(struct sl_repairs *r, struct sl_pipeline *pipeline, const struct sl_audit_sum *sum,
                         int64_t deadline_ms, struct sl_arena *arena, struct sl_span *added,
                         struct sl_repair_outcome *out)
{
    const struct sl_repair_sum what = {.route = route_to(pipeline, sum->target),
                                       .key = sum->key,
                                       .attribute = sum->attribute,
                                       .difference = sum->difference,
                                       .mark = sum->mark,
                                       .deadline_ms = deadline_ms};
    *added = sl_span(NULL, 0);
    if (!sl_span_is(sum->kind, "sum"))
        sl_repair_leave(r, out, "NoRows",
                        "only a backfill into a new ledger and an empty table makes these rows anew");
    else if (!what.route)
        sl_repair_leave(r, out, "NoRoute", "no route writes these totals");
    else
        sl_repair_sum(r, &what, arena, added, out);
}
