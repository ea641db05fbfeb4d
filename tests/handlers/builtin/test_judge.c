/* What handlers say of a row that is, or is not, as the item says: each verdict, in each form of guard, and
 * from a row back to its item. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/verify/compare.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(route) "{'on_failure':'report','report_batch_item_failures':true,'routes':[" route "]}"
#define REPLICA(members)                                                                                     \
    ROUTE("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=rows'" members "}")
#define TOTALS(members)                                                                                      \
    ROUTE("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','ledger':{'table':'rows'}" \
          "," members "}")
#define COUNTER "'counters':[{'key':{'PK':'{g}'},'add':{'n':1,'sum':'{v}'}}]"
#define PAIR                                                                                                 \
    "'counters':[{'key':{'PK':'x'},'add':{'sum':'{v}'}},{'key':{'PK':'x'},'add':{'sum':'{w}'},'where':"      \
    "{'w':[{'exists':true}]}}]"

#define SIDE "'guard':{'table':'side'}"
#define MARK "'tombstones':{'table':'side'}"

#define A(v)         PK("a") ",'g':" S("x") ",'v':" N(v)
#define INSERT(v)    EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(A(v))))
#define REMOVE(seq)  EVENT(RECORD("REMOVE", seq, KEYS(PK("a")) OLD(A("1"))))
#define SEED(v)      "{'Records':[" HAS(A(v)) "]}"
#define HAS(item)    "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" item "}}}"
#define LACKS        "{'eventName':'REMOVE','dynamodb':{'Keys':{" PK("a") "}}}"
#define SORTED(n, v) PK("a") ",'SK':" N(n) ",'v':" N(v)
#define HAS_SORTED(n, v)                                                                                     \
    "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("a") ",'SK':" N(n) "},'NewImage':{" SORTED(n, v) "}}}"
#define INSERT_SORTED(n, v) EVENT(RECORD("INSERT", "5", KEYS(PK("a") ",'SK':" N(n)) NEW(SORTED(n, v))))

#define EDIT(from, to) "UPDATE rows SET item = replace(item, '" from "', '" to "')"
#define FORGE          EDIT("{\"N\":\"1\"}", "{\"N\":\"666\"}")
/* A row that somebody wrote without a guard. */
#define UNGUARD "UPDATE rows SET item = '{\"PK\":{\"S\":\"a\"},\"g\":{\"S\":\"x\"},\"v\":{\"N\":\"1\"}}'"
#define CLEAR   "DELETE FROM rows"

/* ---- asking ---- */

struct answer {
    enum sl_status status; /* of expect(), or of the row */
    bool is_left_out;
    enum sl_verdict verdict;
    bool is_owned, has_guard, has_time;
    char other[200];
};

static struct sl_span read_row(struct stage *s, const struct sl_expected *row, struct sl_span table,
                               struct sl_span key)
{
    struct sl_table_op op = {.verb = SL_TABLE_GET, .table = table, .key = key};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = {.arena = s->arena, .deadline_ms = INT64_MAX / 2};
    row->port->apply(row->port, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
    return result.item;
}

/* What the row compares to decides with the handler: a row that is certainly right is never judged wrong. It
 * is unguarded only where the guard stands in another table, which is read for suspects alone
 * (docs/VERIFY.md). */
/* A whole item that is expected has the attributes of its key. */
static void expect_key(const struct sl_expected *row)
{
    struct sl_value key = {.type = SL_M, .raw = row->key}, item = {.type = SL_M, .raw = row->item}, value;
    struct sl_span name;
    for (struct sl_iter iter = sl_host_table.value_iter(key); sl_host_table.value_next(&iter, &name, &value);)
        assert_true(sl_host_table.value_equal(sl_host_table.value_member(item, name), value));
}

static struct answer ask(struct stage *s, const char *record)
{
    struct test_batch t;
    struct answer out = {.status = SL_OK};
    struct sl_error error = SL_NO_ERROR;
    struct sl_route *route = &s->p->routes[0];
    test_decode(&t, sl_span_str(json(record)), NULL);
    assert_int_equal(t.status, SL_OK);
    const struct sl_record *r = sl_batch_record(&t.batch, 0);
    struct sl_expect e = {.records = &r, .n = 1, .arena = t.arena};
    out.status = route->loaded.handler.expect(route->self, &e, &error);
    if (out.status == SL_OK) {
        const struct sl_expected *row = &e.rows[0];
        struct sl_judge j = {.record = r, .expected = row, .arena = t.arena};
        const struct sl_compare compare = {.arena = t.arena};
        assert_int_equal(e.n_rows, 1);
        assert_int_equal(row->record, 0);
        out.status = row->status;
        out.is_left_out = !row->key.ptr;
        if (row->item.ptr && !row->n_counts)
            expect_key(row);
        if (row->status == SL_OK && row->key.ptr) {
            struct sl_span *names = NULL;
            j.row = read_row(s, row, row->table, row->key);
            j.side = row->side_key.ptr ? read_row(s, row, row->side_table, row->side_key) : sl_span(NULL, 0);
            if (j.row.ptr && row->item.ptr)
                sl_compare_names(&compare, row, j.row, &names, &j.n_names);
            j.names = names;
            assert_int_equal(route->loaded.handler.judge(route->self, &j, &error), SL_OK);
            if (sl_compare_is_right(&compare, row, j.row))
                assert_true(j.verdict == SL_VERDICT_EQUAL ||
                            (j.verdict == SL_VERDICT_UNGUARDED && row->side_table.ptr && !row->guard.ptr));
        }
        out.verdict = j.verdict;
        out.is_owned = j.is_owned;
        out.has_guard = j.guard.ptr != NULL;
        out.has_time = j.written_ms > 0;
        snprintf(out.other, sizeof(out.other), "%.*s", SL_ARG(j.other_key));
    }
    test_batch_clean_up(&t);
    return out;
}

/* ---- verdicts ---- */

#define EQUAL      SL_VERDICT_EQUAL
#define MISSING    SL_VERDICT_MISSING
#define STALE      SL_VERDICT_STALE
#define DIFFERENT  SL_VERDICT_DIFFERENT
#define LEFT_OVER  SL_VERDICT_LEFT_OVER
#define REVIVED    SL_VERDICT_REVIVED
#define UNGUARDED  SL_VERDICT_UNGUARDED
#define COLLISION  SL_VERDICT_COLLISION
#define NOT_JUDGED SL_VERDICT_NOT_JUDGED

/* The replica's item has this guard, which is the other table's. */
#define THEIRS ",'sluice_order':" S("00000000000000000000000000000000000000000005")

static const struct verdict_case {
    const char *config, *events[3], *change; /* what is delivered, and what somebody does then */
    const char *record;                      /* what the source has */
    enum sl_verdict verdict;
} verdicts[] = {
    {REPLICA(""), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA("," MARK), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA("," SIDE), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA(""), {INSERT("1")}, NULL, HAS(A("1.0")), EQUAL},
    {REPLICA(""), {INSERT("1")}, CLEAR, HAS(A("1")), MISSING},
    {REPLICA("," SIDE), {INSERT("1")}, CLEAR, HAS(A("1")), MISSING},
    {REPLICA(""), {INSERT("1"), REMOVE("6")}, NULL, HAS(A("1")), MISSING},
    {REPLICA("," MARK), {INSERT("1"), REMOVE("6")}, NULL, HAS(A("1")), MISSING},
    {REPLICA("," SIDE), {INSERT("1"), REMOVE("6")}, NULL, HAS(A("1")), MISSING},
    {REPLICA(""), {INSERT("1")}, NULL, HAS(A("2")), STALE},
    {REPLICA("," MARK), {INSERT("1")}, NULL, HAS(A("2")), STALE},
    {REPLICA("," SIDE), {INSERT("1")}, NULL, HAS(A("2")), DIFFERENT},
    {REPLICA(""), {INSERT("1")}, FORGE, HAS(A("1")), DIFFERENT},
    {REPLICA("," MARK), {INSERT("1")}, FORGE, HAS(A("1")), DIFFERENT},
    {REPLICA("," SIDE), {INSERT("1")}, FORGE, HAS(A("1")), DIFFERENT},
    {REPLICA(""), {INSERT("1")}, UNGUARD, HAS(A("1")), UNGUARDED},
    {REPLICA(""), {INSERT("1")}, UNGUARD, HAS(A("2")), DIFFERENT},
    {REPLICA("," SIDE), {INSERT("1")}, "DELETE FROM side", HAS(A("1")), UNGUARDED},
    {REPLICA(""), {INSERT("1")}, UNGUARD, HAS(A("1") THEIRS), EQUAL},
    {REPLICA(",'replicated':'copy'"), {INSERT("1")}, UNGUARD, HAS(A("1") THEIRS), UNGUARDED},
    {REPLICA("," SIDE), {INSERT("1")}, "DELETE FROM side", HAS(A("2")), DIFFERENT},
    {REPLICA("," MARK), {INSERT("1")}, UNGUARD, HAS(A("1")), UNGUARDED},
    {REPLICA("," MARK), {INSERT("1"), REMOVE("6")}, "DELETE FROM side", LACKS, EQUAL},
    {REPLICA(""), {INSERT("1")}, NULL, LACKS, LEFT_OVER},
    {REPLICA("," MARK), {INSERT("1")}, NULL, LACKS, LEFT_OVER},
    {REPLICA("," SIDE), {INSERT("1")}, NULL, LACKS, LEFT_OVER},
    {REPLICA(""), {INSERT("1"), REMOVE("6")}, NULL, LACKS, EQUAL},
    {REPLICA("," MARK), {INSERT("1"), REMOVE("6")}, NULL, LACKS, EQUAL},
    {REPLICA("," SIDE), {INSERT("1"), REMOVE("6")}, NULL, LACKS, EQUAL},
    {REPLICA(""), {INSERT("1")}, CLEAR, LACKS, EQUAL},
    {REPLICA(""), {SEED("1")}, NULL, LACKS, REVIVED},
    {REPLICA(""), {SEED("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA(""), {SEED("1")}, NULL, HAS(A("2")), STALE},
    {REPLICA(""),
     {INSERT("1"), REMOVE("6")},
     EDIT("\"PK\"", "\"new\":{\"N\":\"1\"},\"PK\""),
     LACKS,
     NOT_JUDGED},
    {REPLICA(",'where':{'g':['x']}"), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA(",'where':{'g':['y']}"), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {REPLICA(",'key':{'PK':'{PK}'}"), {INSERT_SORTED("1", "1")}, NULL, HAS_SORTED("1", "1"), EQUAL},
    {REPLICA(",'key':{'PK':'{PK}'}"), {INSERT_SORTED("1", "1")}, NULL, HAS_SORTED("1", "2"), STALE},
    {REPLICA(",'key':{'P':'{PK}'}"), {INSERT_SORTED("1", "1")}, NULL, HAS_SORTED("1", "1"), EQUAL},
    {REPLICA(",'key':{'P':'x#{PK}'}," SIDE), {INSERT_SORTED("1", "1")}, NULL, HAS_SORTED("1", "1"), EQUAL},
    {REPLICA(",'key':{'PK':'{PK}'}"), {INSERT_SORTED("2", "1")}, NULL, HAS_SORTED("1", "1"), COLLISION},
    {REPLICA(",'key':{'P':'{PK}'}"), {INSERT_SORTED("2", "1")}, NULL, HAS_SORTED("1", "1"), COLLISION},
    {REPLICA(",'key':{'PK':'{PK}'}," SIDE), {INSERT_SORTED("2", "1")}, NULL, HAS_SORTED("1", "1"), COLLISION},
    {REPLICA(",'key':{'PK':'{PK}'},'drop':['SK']"),
     {INSERT_SORTED("2", "1")},
     NULL,
     HAS_SORTED("1", "1"),
     EQUAL},
    {TOTALS(COUNTER), {INSERT("1")}, NULL, HAS(A("1")), EQUAL},
    {TOTALS(COUNTER), {INSERT("1")}, NULL, HAS(A("1.00")), EQUAL},
    {TOTALS(COUNTER), {INSERT("1")}, NULL, HAS(A("2")), DIFFERENT},
    {TOTALS(COUNTER), {INSERT("1")}, CLEAR, HAS(A("1")), MISSING},
    {TOTALS(COUNTER), {INSERT("1"), REMOVE("6")}, NULL, HAS(A("1")), MISSING},
    {TOTALS(COUNTER), {INSERT("1"), REMOVE("6")}, NULL, LACKS, EQUAL},
    {TOTALS(COUNTER), {INSERT("1")}, NULL, LACKS, LEFT_OVER},
    {TOTALS(COUNTER ",'expired':'keep'"), {INSERT("1")}, NULL, LACKS, NOT_JUDGED},
    {TOTALS(COUNTER ",'expired':'keep'"), {INSERT("1")}, NULL, HAS(A("2")), DIFFERENT},
    {TOTALS(COUNTER ",'missing':'skip','expired':'keep'"), {INSERT("1")}, NULL, HAS(PK("a")), LEFT_OVER},
    {TOTALS(COUNTER ",'missing':'skip'"), {INSERT("1")}, NULL, HAS(PK("a")), LEFT_OVER},
    {TOTALS(COUNTER ",'missing':'skip'"), {INSERT("1")}, CLEAR, HAS(PK("a")), EQUAL},
    {TOTALS(PAIR),
     {EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(A("1") ",'w':" N("2"))))},
     NULL,
     HAS(A("2") ",'w':" N("1")),
     EQUAL},
    {TOTALS(PAIR),
     {EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(A("1") ",'w':" N("2"))))},
     NULL,
     HAS(A("2") ",'w':" N("2")),
     DIFFERENT},
    {TOTALS(PAIR),
     {EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(A("1") ",'w':" N("-1"))))},
     NULL,
     LACKS,
     EQUAL},
};

static void every_row_is_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        const struct verdict_case *c = &verdicts[i];
        struct stage *s = stage_new(c->config, NULL);
        for (size_t k = 0; k < 3 && c->events[k]; k++)
            stage_deliver_all(s, c->events[k]);
        if (c->change)
            stage_change(s, "db", c->change);
        struct answer got = ask(s, c->record);
        if (got.status != SL_OK || got.verdict != c->verdict)
            fail_msg("case %zu: %s, %s: status %d, verdict %d instead of %d", i, c->config, c->record,
                     got.status, (int)got.verdict, (int)c->verdict);
        /* (What was delivered, and nobody touched.) */
        if (!c->change && !c->events[1] && !got.is_left_out && got.verdict != SL_VERDICT_COLLISION) {
            assert_true(got.has_guard == got.is_owned);
            assert_true(got.has_time == (got.has_guard && strstr(c->events[0], "SequenceNumber") != NULL));
        }
        assert_true((got.verdict == SL_VERDICT_COLLISION) ==
                    (strcmp(got.other, "{\"PK\":{\"S\":\"a\"},\"SK\":{\"N\":\"2\"}}") == 0));
        stage_destroy(s);
    }
}

/* ---- what is not judged ---- */

static const struct {
    const char *config, *code; /* NULL: the route can be compared */
} routes[] = {
    {REPLICA(""), NULL},
    {REPLICA(",'guard':'none'"), "NoGuard"},
    {TOTALS(COUNTER), NULL},
    {TOTALS(COUNTER ",'per':'event'"), "NoLedger"},
    {TOTALS(COUNTER ",'mode':'at-least-once'"), "NoLedger"},
    {TOTALS("'counters':[{'key':{'PK':'x'},'running_max':{'m':'{v}'}}]"), "NoLedger"},
    {TOTALS("'counters':[{'key':{'PK':'x'},'running_max':{'m':'{v}'},'add':{'n':1}}]"), NULL},
    {TOTALS("'counters':[{'key':{'PK':'x'},'running_min':{'m':'{v}'}},{'key':{'PK':'y'},'add':{'n':1}}]"),
     NULL},
    {TOTALS("'counters':[{'key':{'PK':'x'},'running_max':{'m':'{v}'},'distinct':{'d':'{v}'}}]"), NULL},
    {TOTALS("'counters':[{'key':{'PK':'x','SK':'y'},'running_max':{'m':'{v}'},'members':{'by':'{v}'}}]"),
     NULL},
};

static void routes_that_cannot_be_compared_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct stage *s = stage_new(routes[i].config, NULL);
        struct sl_error error = SL_NO_ERROR;
        struct sl_expect e = {.arena = s->arena};
        const struct sl_route *route = &s->p->routes[0];
        enum sl_status status = route->loaded.handler.expect(route->self, &e, &error);
        if (status != (routes[i].code ? SL_REJECT : SL_OK) ||
            (routes[i].code && strcmp(error.code, routes[i].code)))
            fail_msg("%s: %d %s", routes[i].config, (int)status, error.code);
        if (!routes[i].code) {
            assert_int_equal(e.n_rows, 1);
            assert_non_null(e.rows[0].port);
            assert_null(e.rows[0].key.ptr);
            assert_true(e.rows[0].guard.ptr && (e.rows[0].own || e.rows[0].counts));
        }
        stage_destroy(s);
    }
}

#define OF_OURS ",'sluice_deleted':{'BOOL':true}"

/* Items that no row has to be like, and items of which nobody can say it. */
static const struct {
    const char *config, *record;
    enum sl_status status;
    bool is_left_out;
} left_out[] = {
    {REPLICA(""), HAS(A("1") OF_OURS), SL_OK, true},
    {REPLICA(",'replicated':'copy'"), HAS(A("1") OF_OURS), SL_OK, true},
    {REPLICA("," SIDE), HAS(A("1") OF_OURS), SL_OK, false},
    {REPLICA(",'key':{'PK':'{nope}'}"), HAS(A("1")), SL_REJECT, true},
    {REPLICA(",'key':{'PK':'{nope}'}"), LACKS, SL_REJECT, true},
    {REPLICA(",'key':{'PK':'{nope}'},'where':{'g':['y']}"), HAS(A("1")), SL_OK, true},
    {TOTALS(COUNTER), HAS(A("1") ",'sluice_row':" S("t")), SL_OK, false},
    {TOTALS(COUNTER ",'own_rows':'mark'"), HAS(A("1") ",'sluice_row':" S("t")), SL_OK, true},
    {TOTALS(COUNTER ",'own_rows':'mark'"), HAS(A("1")), SL_OK, false},
    {TOTALS(COUNTER), HAS(PK("a")), SL_REJECT, true},
    {TOTALS(COUNTER), HAS(A("1") ",'v':" S("text")), SL_REJECT, true},
};

static void some_items_are_not_compared(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
        struct stage *s = stage_new(left_out[i].config, NULL);
        struct answer got = ask(s, left_out[i].record);
        if (got.status != left_out[i].status || got.is_left_out != left_out[i].is_left_out)
            fail_msg("case %zu, %s: %d %d", i, left_out[i].record, (int)got.status, got.is_left_out);
        stage_destroy(s);
    }
}

/* ---- from a row to its item ---- */

#define ROW_KEY         "{\"PK\":{\"S\":\"a\"}}"
#define UNIT(name, key) "{'PK':" S("sluice:ledger:" name ":" key)
#define COUNTED         ",'sums':{'L':[{'M':{}}]}}"

static const struct {
    const char *config, *row;
    size_t n;         /* of the source's key attributes, PK, SK and one more */
    const char *key;  /* NULL: it stands for no item */
    const char *code; /* NULL: it says */
} traces[] = {
    {REPLICA(""), "{" A("1") "}", 1, ROW_KEY, NULL},
    {REPLICA(""), "{" SORTED("2", "1") "}", 2, "{\"PK\":{\"S\":\"a\"},\"SK\":{\"N\":\"2\"}}", NULL},
    {REPLICA(""), "{" SORTED("2", "1") ",'X':" S("x") "}", 3, NULL, "KeyNotKept"},
    {REPLICA(""), "{" A("1") "}", 2, NULL, "KeyNotKept"},
    {REPLICA(""), "{'PK':{'BOOL':true}}", 1, NULL, "KeyNotKept"},
    {REPLICA(""), "{" A("1") OF_OURS "}", 1, NULL, NULL},
    {REPLICA(""), "{" PK("a") ",'g':" S("sluice_deleted") "}", 1, ROW_KEY, NULL},
    {REPLICA("," SIDE), "{" A("1") OF_OURS "}", 1, ROW_KEY, NULL},
    {REPLICA(",'rename':{'PK':'id'}"), "{'id':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'rename':{'PK':'id'}"), "{" A("1") "}", 1, NULL, "KeyNotKept"},
    {REPLICA(",'key':{'P':'{PK}'}"), "{'P':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'key':{'P':'x','Q':'{PK}'}"), "{'P':" S("x") ",'Q':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'key':{'P':'xPKx','Q':'{PK}'}"), "{'P':" S("xPKx") ",'Q':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'key':{'P':'{PK|upper}','Q':'{PK}'}"), "{'P':" S("A") ",'Q':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'key':{'P':'x#{PK}'}"), "{'P':" S("x#a") ",'PK':" S("a") "}", 1, ROW_KEY, NULL},
    {REPLICA(",'key':{'P':'x#{PK}'}"), "{'P':" S("x#a") "}", 1, NULL, "KeyNotKept"},
    {REPLICA(",'key':{'PK':'x#{PK}'}"), "{'PK':" S("x#a") "}", 1, NULL, "KeyNotKept"},
    {REPLICA(",'key':{'P':'x#{PK}'},'drop':['PK']"), "{" A("1") "}", 1, NULL, "KeyNotKept"},
    {REPLICA(",'key':{'P':'x#{PK}'},'project':['v']"), "{" A("1") "}", 1, NULL, "KeyNotKept"},
    {REPLICA(",'key':{'P':'x#{PK}'},'project':['PK']"), "{" A("1") "}", 1, ROW_KEY, NULL},
    {TOTALS(COUNTER), UNIT("other", "x") COUNTED, 1, NULL, NULL},
    {TOTALS(COUNTER), UNIT("t", "") COUNTED, 1, NULL, "LongKey"},
    {TOTALS(COUNTER), UNIT("t", "0123456789abcdef") COUNTED, 1, NULL, "LongKey"},
    {TOTALS(COUNTER), "{" A("1") "}", 1, NULL, NULL},
    {TOTALS(COUNTER), "{'PK':" N("1") COUNTED, 1, NULL, NULL},
};

static void trace(struct stage *s, size_t i, const char *row, size_t n)
{
    static const struct sl_span names[] = {{"PK", 2}, {"SK", 2}, {"X", 1}};
    struct sl_error error = SL_NO_ERROR;
    struct sl_trace t = {.row = sl_span_str(row), .key_names = names, .n_key_names = n, .arena = s->arena};
    const struct sl_route *route = &s->p->routes[0];
    enum sl_status status = route->loaded.handler.trace(route->self, &t, &error);
    const char *wanted = traces[i].key, *code = traces[i].code;
    if (status != (code ? SL_REJECT : SL_OK) || (code && strcmp(error.code, code) != 0))
        fail_msg("case %zu, %s: %d %s", i, row, (int)status, error.code);
    if (status == SL_OK && (wanted ? !sl_span_is(t.key, wanted) : t.key.ptr != NULL))
        fail_msg("case %zu, %s: \"%.*s\"", i, row, SL_ARG(t.key));
}

static void a_row_leads_to_its_item(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
        struct stage *s = stage_new(traces[i].config, NULL);
        trace(s, i, json(traces[i].row), traces[i].n);
        stage_destroy(s);
    }
}

/* The ledger's rows as they are written: of an item that counts, and of one that does not any more. */
static void a_row_of_the_ledger_leads_to_its_item(void **state)
{
    (void)state;
    struct stage *s = stage_new(TOTALS(COUNTER), NULL);
    for (int removes = 0; removes < 2; removes++) {
        stage_deliver_all(s, removes ? REMOVE("6") : INSERT("1"));
        char *row = stage_query(s, "db", "SELECT item FROM rows");
        row[strcspn(row, "\n")] = '\0';
        struct sl_span name = SL_LIT("PK");
        struct sl_error error = SL_NO_ERROR;
        struct sl_trace t = {
            .row = sl_span_str(row), .key_names = &name, .n_key_names = 1, .arena = s->arena};
        assert_int_equal(s->p->routes[0].loaded.handler.trace(s->p->routes[0].self, &t, &error), SL_OK);
        if (removes)
            assert_null(t.key.ptr);
        else
            assert_span_is(t.key, ROW_KEY);
        free(row);
    }
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_judged),
        cmocka_unit_test(routes_that_cannot_be_compared_say_so),
        cmocka_unit_test(some_items_are_not_compared),
        cmocka_unit_test(a_row_leads_to_its_item),
        cmocka_unit_test(a_row_of_the_ledger_leads_to_its_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
