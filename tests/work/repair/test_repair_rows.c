/* One row is repaired, or taken back: what is told of it, and the limit of removals. */
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "work/repair/sum.h"
#include "work/repair/undo.h"

#include <stdio.h>
#include <stdlib.h>

#define REPLICA                                                                                              \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=rows'}]}"

#define ITEM(id, v)  PK(id) ",'v':" N(v)
#define PUT(id, seq) EVENT(RECORD("INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, "1"))))
#define HAS(id, v)   "{'eventName':'INSERT','dynamodb':{'Keys':{" PK(id) "},'NewImage':{" ITEM(id, v) "}}}"
#define LACKS(id)    "{'eventName':'REMOVE','dynamodb':{'Keys':{" PK(id) "}}}"
#define KEY(id)      "{" PK(id) "}"

/* The row of an item, in the arena; absent: there is none. */
static struct sl_span row_of(const struct stage *s, const char *id, struct sl_arena *arena)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT item FROM rows WHERE key LIKE '%%\"%s\"%%'", id);
    char *text = stage_query(s, "db", sql);
    struct sl_span row = {text, strcspn(text, "\n")};
    row = row.len ? sl_span(sl_arena_copy(arena, row), row.len) : sl_span(NULL, 0);
    free(text);
    return row;
}

static bool is_there(const struct stage *s, const char *id, struct sl_arena *arena)
{
    struct sl_span row = row_of(s, id, arena);
    return row.ptr && !memmem(row.ptr, row.len, "sluice_deleted", 14);
}

static struct sl_repair_outcome repair(struct stage *s, struct sl_repairs *r, const char *record,
                                       const char *id, struct sl_arena *arena)
{
    struct test_batch t;
    struct sl_repair_outcome out;
    test_decode(&t, sl_span_str(json(record)), NULL);
    assert_int_equal(t.status, SL_OK);
    const struct sl_repair_row row = {.route = &s->p->routes[0],
                                      .record = sl_batch_record(&t.batch, 0),
                                      .row = row_of(s, id, arena),
                                      .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
    sl_repair_row(r, &row, arena, &out);
    out.written = out.written.ptr ? sl_span(sl_arena_copy(arena, out.written), out.written.len) : out.written;
    test_batch_clean_up(&t);
    return out;
}

static void as_many_rows_go_as_may(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA, NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true, .max_removals = 2};
    stage_deliver_all(s, PUT("a", "1"));
    stage_deliver_all(s, PUT("b", "2"));
    stage_deliver_all(s, PUT("c", "3"));
    assert_int_equal(repair(s, &r, LACKS("a"), "a", arena).outcome, SL_REPAIRED_REMOVED);
    assert_int_equal(repair(s, &r, LACKS("b"), "b", arena).outcome, SL_REPAIRED_REMOVED);
    struct sl_repair_outcome third = repair(s, &r, LACKS("c"), "c", arena);
    assert_int_equal(third.outcome, SL_REPAIRED_LEFT);
    assert_string_equal(third.code, "MaxDeletes");
    assert_true(is_there(s, "c", arena));
    assert_int_equal(repair(s, &r, HAS("c", "9"), "c", arena).outcome, SL_REPAIRED_WRITTEN);
    assert_int_equal(repair(s, &r, LACKS("d"), "d", arena).outcome, SL_REPAIRED_ALREADY);
    r.may_remove = false;
    third = repair(s, &r, LACKS("c"), "c", arena);
    assert_string_equal(third.code, "WouldRemove");
    assert_int_equal(r.outcomes[SL_REPAIRED_REMOVED], 2);
    assert_int_equal(r.outcomes[SL_REPAIRED_WRITTEN], 1);
    assert_int_equal(r.outcomes[SL_REPAIRED_ALREADY], 1);
    assert_int_equal(r.outcomes[SL_REPAIRED_LEFT], 2);
    sl_arena_destroy(arena);
    stage_destroy(s);
}

static void a_plan_says_what_would_be_and_writes_nothing(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA, NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true, .max_removals = 1, .is_plan = true};
    stage_deliver_all(s, PUT("a", "1"));
    struct sl_span before = row_of(s, "a", arena);
    assert_int_equal(repair(s, &r, HAS("a", "2"), "a", arena).outcome, SL_REPAIRED_WRITTEN);
    assert_int_equal(repair(s, &r, LACKS("a"), "a", arena).outcome, SL_REPAIRED_REMOVED);
    assert_true(sl_span_eq(before, row_of(s, "a", arena)));
    sl_arena_destroy(arena);
    stage_destroy(s);
}

static void a_table_that_fails_is_told(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA, NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true};
    stage_deliver_all(s, PUT("a", "1"));
    s->one_in = 1;
    struct sl_repair_outcome out = repair(s, &r, HAS("a", "2"), "a", arena);
    assert_int_equal(out.outcome, SL_REPAIRED_FAILED);
    assert_string_equal(out.code, "Planned");
    sl_arena_destroy(arena);
    stage_destroy(s);
}

static void a_handler_without_repair_is_left_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new("{'on_failure':'report','routes':[{'name':'r','handler':'archive',"
                                "'to':'file:${DIR}/a','format':'record'}]}",
                                NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true};
    struct sl_repair_outcome out;
    const struct sl_repair_row row = {.route = &s->p->routes[0]};
    sl_repair_row(&r, &row, arena, &out);
    assert_int_equal(out.outcome, SL_REPAIRED_LEFT);
    assert_string_equal(out.code, "NoRepair");
    sl_arena_destroy(arena);
    stage_destroy(s);
}

/* ---- taking back ---- */

static struct sl_repair_outcome undo(struct stage *s, struct sl_repairs *r, const char *key,
                                     struct sl_span before, struct sl_span after, struct sl_arena *arena)
{
    struct sl_repair_outcome out;
    const struct sl_undo line = {.route = &s->p->routes[0],
                                 .source_key = sl_span_str(json(key)),
                                 .before = before,
                                 .after = after,
                                 .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
    sl_undo_row(r, &line, arena, &out);
    return out;
}

static void a_repair_that_was_not_touched_since_is_taken_back(void **state)
{
    (void)state;
    static const char *const records[] = {HAS("a", "2"), LACKS("a")};
    for (size_t i = 0; i < 2; i++) {
        struct stage *s = stage_new(REPLICA, NULL);
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_repairs r = {.may_remove = true, .max_removals = 9};
        stage_deliver_all(s, PUT("a", "1"));
        struct sl_span before = row_of(s, "a", arena);
        struct sl_repair_outcome done = repair(s, &r, records[i], "a", arena);
        /* Where it was planned, the tombstone's time was another. */
        s->clock.ms += 5000;
        assert_int_equal(undo(s, &r, KEY("a"), before, done.written, arena).outcome, SL_REPAIRED_WRITTEN);
        struct sl_span now = row_of(s, "a", arena);
        assert_non_null(memmem(now.ptr, now.len, "\"v\":{\"N\":\"1\"}", 13));
        assert_int_equal(undo(s, &r, KEY("a"), before, done.written, arena).outcome, SL_REPAIRED_MOVED);
        sl_arena_destroy(arena);
        stage_destroy(s);
    }
}

static void a_row_that_changed_since_its_repair_stays(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA, NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true, .max_removals = 9};
    stage_deliver_all(s, PUT("a", "1"));
    struct sl_span before = row_of(s, "a", arena);
    struct sl_repair_outcome done = repair(s, &r, HAS("a", "2"), "a", arena);
    stage_deliver_all(s, EVENT(RECORD("MODIFY", "7", KEYS(PK("a")) NEW(ITEM("a", "7")) OLD(ITEM("a", "1")))));
    assert_int_equal(undo(s, &r, KEY("a"), before, done.written, arena).outcome, SL_REPAIRED_MOVED);
    assert_int_equal(undo(s, &r, "{'PK':{'X':1}}", before, done.written, arena).outcome, SL_REPAIRED_LEFT);
    struct sl_span now = row_of(s, "a", arena);
    assert_non_null(memmem(now.ptr, now.len, "\"v\":{\"N\":\"7\"}", 13));
    sl_arena_destroy(arena);
    stage_destroy(s);
}

/* ---- totals ---- */

#define TOTALS(members)                                                                                      \
    "{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=rows'," \
    "'ledger':{'table':'ledger'},'counters':[{'key':{'PK':'all'},'add':{'sum':'{v}'}}]" members "}]}"

static void what_is_missing_is_added_once(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *difference, *sum;
        enum sl_repaired outcome;
        const char *code;
    } cases[] = {
        {"UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"8\"')", "7", "1", SL_REPAIRED_WRITTEN,
         ""},
        {"UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"-2.5\"')", "-3.5", "1",
         SL_REPAIRED_WRITTEN, ""},
        {"DELETE FROM rows", "-1", "1", SL_REPAIRED_WRITTEN, ""},
        {"UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"S\":\"x\"')", "-1", "x", SL_REPAIRED_LEFT,
         "NoNumber"},
    };
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_plan = i % 2;
        struct stage *s = stage_new(TOTALS(""), NULL);
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_repairs r = {.is_plan = is_plan};
        struct sl_repair_outcome out;
        struct sl_span added;
        char wanted[64];
        stage_deliver_all(s, PUT("a", "1"));
        stage_change(s, "db", cases[i / 2].sql);
        char *before = stage_query(s, "db", "SELECT item FROM rows");
        const struct sl_repair_sum sum = {.route = &s->p->routes[0],
                                          .key = sl_span_str(json("{'PK':{'S':'all'}}")),
                                          .attribute = SL_LIT("sum"),
                                          .difference = sl_span_str(cases[i / 2].difference),
                                          .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
        sl_repair_sum(&r, &sum, arena, &added, &out);
        assert_int_equal(out.outcome, cases[i / 2].outcome);
        assert_string_equal(out.code ? out.code : "", cases[i / 2].code);
        char *after = stage_query(s, "db", "SELECT item FROM rows");
        snprintf(wanted, sizeof(wanted), "\"sum\":{\"%s\":\"%s\"}", *cases[i / 2].sum == 'x' ? "S" : "N",
                 cases[i / 2].sum);
        if (is_plan)
            assert_string_equal(before, after);
        else
            assert_non_null(strstr(after, wanted));
        free(before);
        free(after);
        sl_arena_destroy(arena);
        stage_destroy(s);
    }
}

/* The total as it was scanned; meanwhile it is counted on, and another repair may have been there. */
static void a_total_is_added_to_by_one_repair(void **state)
{
    (void)state;
    struct stage *s = stage_new(TOTALS(""), NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.is_plan = false};
    struct sl_repair_outcome out;
    struct sl_span added;
    stage_deliver_all(s, PUT("a", "1"));
    stage_change(s, "db", "UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"8\"')");
    stage_deliver_all(s, PUT("b", "2"));
    const struct sl_repair_sum sum = {.route = &s->p->routes[0],
                                      .key = sl_span_str(json("{'PK':{'S':'all'}}")),
                                      .attribute = SL_LIT("sum"),
                                      .difference = SL_LIT("7"),
                                      .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
    sl_repair_sum(&r, &sum, arena, &added, &out);
    assert_int_equal(out.outcome, SL_REPAIRED_WRITTEN);
    for (int known = 0; known < 2; known++) { /* one that scanned before it, and one that scanned after it */
        struct sl_repair_sum other = sum;
        other.mark = known ? SL_LIT("{\"N\":\"1\"}") : other.mark;
        other.difference = SL_LIT("2");
        sl_repair_sum(&r, &other, arena, &added, &out);
        assert_int_equal(out.outcome, known ? SL_REPAIRED_WRITTEN : SL_REPAIRED_MOVED);
        char *after = stage_query(s, "db", "SELECT item FROM rows");
        assert_non_null(strstr(after, known ? "\"sum\":{\"N\":\"0\"}" : "\"sum\":{\"N\":\"2\"}"));
        free(after);
    }
    sl_arena_destroy(arena);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_rows_go_as_may),
        cmocka_unit_test(a_plan_says_what_would_be_and_writes_nothing),
        cmocka_unit_test(a_table_that_fails_is_told),
        cmocka_unit_test(a_handler_without_repair_is_left_alone),
        cmocka_unit_test(a_repair_that_was_not_touched_since_is_taken_back),
        cmocka_unit_test(what_is_missing_is_added_once),
        cmocka_unit_test(a_total_is_added_to_by_one_repair),
        cmocka_unit_test(a_row_that_changed_since_its_repair_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
