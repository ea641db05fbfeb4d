/* One row is repaired, or taken back: what is told of it, and the limit of removals. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/repair/sum.h"
#include "data/repair/undo.h"

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
        {"UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"8\"')", "beyond 38 digits", "8",
         SL_REPAIRED_LEFT, "TooLarge"},
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

/* ---- handlers and tables that answer otherwise ---- */

/* What the handler of the test's own does: it marks its record, or not, and returns. */
static struct {
    bool marks;
    enum sl_status mark, status;
    bool has_reason;
} mine;

static enum sl_status my_repair(void *self, struct sl_slice *slice, struct sl_repair *r,
                                struct sl_error *error)
{
    (void)self;
    (void)r;
    struct sl_error why = SL_NO_ERROR;
    (void)sl_fail(&why, SL_REJECT, "Moved", "the row has moved");
    if (mine.marks)
        sl_host_table.mark(slice, 0, mine.mark, mine.has_reason ? &why : NULL);
    return mine.status == SL_OK ? SL_OK : sl_fail(error, mine.status, "Mine", "the handler will not");
}

static void what_a_handler_says_of_a_row_becomes_its_outcome(void **state)
{
    (void)state;
    static const struct {
        bool marks;
        enum sl_status mark, status;
        bool has_reason;
        enum sl_repaired outcome;
        const char *code; /* NULL: none */
    } cases[] = {
        {false, SL_OK, SL_OK, false, SL_REPAIRED_ALREADY, NULL},
        {true, SL_OK, SL_OK, false, SL_REPAIRED_ALREADY, NULL},
        {false, SL_OK, SL_RETRY, false, SL_REPAIRED_FAILED, "Mine"},
        {false, SL_OK, SL_FATAL, false, SL_REPAIRED_FAILED, "Mine"},
        {false, SL_OK, SL_REJECT, false, SL_REPAIRED_LEFT, "Mine"},
        {true, SL_REJECT, SL_OK, true, SL_REPAIRED_MOVED, "Moved"},
        {true, SL_REJECT, SL_OK, false, SL_REPAIRED_LEFT, "Unknown"},
        {true, SL_RETRY, SL_OK, true, SL_REPAIRED_FAILED, "Moved"},
        {true, SL_REJECT, SL_RETRY, true, SL_REPAIRED_MOVED, "Moved"},
    };
    struct stage *s = stage_new(REPLICA, NULL);
    s->p->routes[0].loaded.handler.repair = my_repair;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_repairs r = {.may_remove = true};
        mine.marks = cases[i].marks;
        mine.mark = cases[i].mark;
        mine.status = cases[i].status;
        mine.has_reason = cases[i].has_reason;
        struct sl_repair_outcome out = repair(s, &r, HAS("a", "2"), "a", arena);
        if (out.outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, sl_repaired_name(out.outcome));
        assert_int_equal(r.outcomes[out.outcome], 1);
        if (cases[i].code)
            assert_string_equal(out.code, cases[i].code);
        assert_int_equal(out.why == NULL, cases[i].code == NULL);
        sl_arena_destroy(arena);
    }
    stage_destroy(s);
}

static struct {
    enum sl_status status, row;
    size_t n;
} expected;

static enum sl_status my_expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    (void)self;
    e->rows = sl_arena_zalloc(e->arena, 2 * sizeof(*e->rows));
    e->n_rows = expected.n;
    e->rows[0].status = expected.row;
    return expected.status == SL_OK ? SL_OK
                                    : sl_fail(error, expected.status, "Mine", "the handler does not know");
}

static void an_undo_needs_one_row_that_can_be_read(void **state)
{
    (void)state;
    static const struct {
        enum sl_status status, row;
        size_t n;
        enum sl_repaired outcome;
        const char *code;
    } cases[] = {
        {SL_FATAL, SL_OK, 1, SL_REPAIRED_FAILED, "Mine"},
        {SL_OK, SL_OK, 0, SL_REPAIRED_LEFT, "NotComparable"},
        {SL_OK, SL_OK, 2, SL_REPAIRED_LEFT, "NotComparable"},
        {SL_OK, SL_REJECT, 1, SL_REPAIRED_LEFT, "NotComparable"},
    };
    struct stage *s = stage_new(REPLICA, NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_handler *h = &s->p->routes[0].loaded.handler, real = *h;
    struct sl_repairs r = {.may_remove = true, .max_removals = 9};
    const struct sl_span none = {NULL, 0};
    h->expect = my_expect;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expected.status = cases[i].status;
        expected.row = cases[i].row;
        expected.n = cases[i].n;
        struct sl_repair_outcome out = undo(s, &r, KEY("a"), none, none, arena);
        assert_int_equal(out.outcome, cases[i].outcome);
        assert_string_equal(out.code, cases[i].code);
    }
    h->expect = NULL;
    assert_string_equal(undo(s, &r, KEY("a"), none, none, arena).code, "NoRepair");
    *h = real;
    h->repair = NULL;
    assert_string_equal(undo(s, &r, KEY("a"), none, none, arena).code, "NoRepair");
    *h = real;
    s->one_in = 1;
    struct sl_repair_outcome out = undo(s, &r, KEY("a"), none, none, arena);
    assert_int_equal(out.outcome, SL_REPAIRED_FAILED);
    assert_string_equal(out.code, "Planned");
    assert_int_equal(r.outcomes[SL_REPAIRED_FAILED], 2);
    assert_int_equal(r.outcomes[SL_REPAIRED_LEFT], 5);
    sl_arena_destroy(arena);
    stage_destroy(s);
}

/* A guard in another table is read beside the row; one that moved is a change since. */
static void an_undo_with_guards_beside_is_a_write_like_any(void **state)
{
    (void)state;
    struct stage *s =
        stage_new("{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r',"
                  "'handler':'replicate','to':'sqlite:${DIR}/db?table=rows','guard':{'table':'g'}}]}",
                  NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.may_remove = true, .max_removals = 9};
    stage_deliver_all(s, PUT("a", "1"));
    struct sl_span before = row_of(s, "a", arena);
    stage_change(s, "db", "UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"2\"')");
    assert_int_equal(undo(s, &r, KEY("a"), before, row_of(s, "a", arena), arena).outcome,
                     SL_REPAIRED_WRITTEN);
    assert_true(sl_span_eq(row_of(s, "a", arena), before));
    sl_arena_destroy(arena);
    stage_destroy(s);
}

/* Each call on the total's table fails. */
static size_t table_calls, failing_table_call;

static enum stage_fate fate(struct stage *s)
{
    (void)s;
    return ++table_calls == failing_table_call ? STAGE_FAILS_BEFORE : STAGE_WELL;
}

static void a_total_that_cannot_be_read_or_written_is_told(void **state)
{
    (void)state;
    struct stage *s = stage_new(TOTALS(""), NULL);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_repairs r = {.is_plan = false};
    struct sl_repair_outcome out;
    struct sl_span added;
    stage_deliver_all(s, PUT("a", "1"));
    const struct sl_repair_sum sum = {.route = &s->p->routes[0],
                                      .key = sl_span_str(json("{'PK':{'S':'all'}}")),
                                      .attribute = SL_LIT("sum"),
                                      .difference = SL_LIT("7"),
                                      .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
    s->at_table = fate;
    for (failing_table_call = 1; failing_table_call <= 2; failing_table_call++) {
        table_calls = 0;
        sl_repair_sum(&r, &sum, arena, &added, &out);
        assert_int_equal(out.outcome, SL_REPAIRED_FAILED);
        assert_string_equal(out.code, "Planned");
    }
    char *row = stage_query(s, "db", "SELECT item FROM rows");
    assert_non_null(strstr(row, "\"sum\":{\"N\":\"1\"}"));
    free(row);
    sl_arena_destroy(arena);
    stage_destroy(s);
}

/* In the source table a row that is gone would come back as an item: only the route itself marks its rows. */
static void a_total_in_the_source_table_is_not_made_anew(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        enum sl_repaired outcome;
    } cases[] = {{",'own_rows':'mark'", SL_REPAIRED_LEFT}, {"", SL_REPAIRED_WRITTEN}};
    for (size_t i = 0; i < 2; i++) {
        struct stage *s = stage_new(
            json_printf(
                "{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?"
                "table=rows','ledger':{'table':'ledger'},'counters':[{'key':{'PK':'all'},'add':{'sum':'{v}'}}"
                "]"
                "%s}]}",
                cases[i].members),
            NULL);
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_repairs r = {.is_plan = false};
        struct sl_repair_outcome out;
        struct sl_span added;
        const struct sl_repair_sum sum = {.route = &s->p->routes[0],
                                          .key = sl_span_str(json("{'PK':{'S':'all'}}")),
                                          .attribute = SL_LIT("sum"),
                                          .difference = SL_LIT("-7"),
                                          .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000};
        sl_repair_sum(&r, &sum, arena, &added, &out);
        assert_int_equal(out.outcome, cases[i].outcome);
        if (cases[i].outcome == SL_REPAIRED_LEFT)
            assert_string_equal(out.code, "NoRow");
        else
            assert_span_is(added, "7");
        sl_arena_destroy(arena);
        stage_destroy(s);
    }
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
        cmocka_unit_test(what_a_handler_says_of_a_row_becomes_its_outcome),
        cmocka_unit_test(an_undo_needs_one_row_that_can_be_read),
        cmocka_unit_test(an_undo_with_guards_beside_is_a_write_like_any),
        cmocka_unit_test(a_total_that_cannot_be_read_or_written_is_told),
        cmocka_unit_test(a_total_in_the_source_table_is_not_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
