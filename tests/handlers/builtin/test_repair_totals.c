/* What `sluice verify` and `sluice repair` ask of totals, where it cannot be answered: rows that nobody
 * understands, records without keys or twice, routes without a ledger of items, and a ledger that cannot be
 * written. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members, counter)                                                                              \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t','handler':'aggregate',"  \
    "'to':'sqlite:${DIR}/db?table=totals','ledger':{'table':'rows'},'counters':[{'key':{'PK':'{g}'},"        \
    "'add':{'n':1,'sum':'{v}'}" counter "}]" members "}]}"

#define A(v)     PK("a") ",'g':" S("x") ",'v':" N(v)
#define HAS(v)   "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" A(v) "}}}"
#define LACKS    "{'eventName':'REMOVE','dynamodb':{'Keys':{" PK("a") "}}}"
#define NO_KEYS  "{'Item':{" A("1") "}}" /* a line of an export */
#define HAS_B(g) "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("b") "},'NewImage':{" PK("b") g "}}}"
#define AT(place)                                                                                            \
    "{'eventName':'INSERT','eventSourceARN':'arn:aws:dynamodb:" place                                        \
    "/stream/x','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" A("13") "}}}"
#define FROM(own)  AT("eu-west-1:123456789012:table/" own)
#define LOCAL(own) AT("ddblocal:000000000000:table/" own) /* DynamoDB Local, for every Region and account */

/* ---- asking ---- */

enum { RECORDS = 2 };

struct asked {
    enum sl_status status; /* of the call */
    struct sl_error error;
    struct {
        enum sl_status status;
        char code[64];
        bool has_written;
        enum sl_repair_effect effect;
    } records[RECORDS];
};

struct question {
    const char *records[RECORDS]; /* NULL: there is one */
    const char *seen[RECORDS];    /* the ledger's rows; NULL: none */
    bool is_undo;
};

static struct asked repair(struct stage *s, const struct question *q)
{
    struct test_batch t[RECORDS];
    const struct sl_record *records[RECORDS];
    struct sl_span seen[RECORDS], sides[RECORDS] = {{NULL, 0}}, written[RECORDS],
                                  wanted[RECORDS] = {{NULL, 0}};
    struct sl_mark marks[RECORDS] = {{.is_set = false}};
    enum sl_repair_effect effects[RECORDS];
    struct asked out = {.error = SL_NO_ERROR};
    size_t n = q->records[1] ? 2 : 1;
    struct sl_route *route = &s->p->routes[0];
    for (size_t i = 0; i < n; i++) {
        test_decode(&t[i], json_span(q->records[i]), NULL);
        if (t[i].status != SL_OK)
            fail_msg("%s: %s", q->records[i], t[i].error.text);
        records[i] = sl_batch_record(&t[i].batch, 0);
        seen[i] = q->seen[i] ? sl_span_str(q->seen[i]) : sl_span(NULL, 0);
    }
    struct sl_slice_call call = {.marks = marks,
                                 .slice = {.abi = SL_HANDLER_ABI,
                                           .records = records,
                                           .n = n,
                                           .arena = t[0].arena,
                                           .deadline_ms = s->clock.ms + 10000,
                                           .request_id = ""}};
    struct sl_repair ask = {.wanted = q->is_undo ? wanted : NULL,
                            .seen = seen,
                            .sides = sides,
                            .written = written,
                            .effects = effects};
    out.status = route->loaded.handler.repair(route->self, &call.slice, &ask, &out.error);
    for (size_t i = 0; i < n; i++) {
        out.records[i].status = marks[i].is_set ? marks[i].status : SL_OK;
        out.records[i].has_written = written[i].ptr != NULL;
        out.records[i].effect = effects[i];
        snprintf(out.records[i].code, sizeof(out.records[i].code), "%s",
                 marks[i].is_set && marks[i].why ? marks[i].why->code : "");
    }
    for (size_t i = 0; i < n; i++)
        test_batch_clean_up(&t[i]);
    return out;
}

static struct stage *totals_of_one(const char *config)
{
    struct stage *s = stage_new(config, NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(A("10")))));
    return s;
}

/* The ledger's row of the item; the caller frees it. */
static char *ledger_row(struct stage *s)
{
    char *text = stage_query(s, "db", "SELECT item FROM rows WHERE key LIKE '%sluice:ledger%'");
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void expect_sum(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db",
                            "SELECT group_concat(json_extract(item,'$.n.N') || ' ' || "
                            "json_extract(item,'$.sum.N')) FROM totals");
    got[strcspn(got, "\n")] = '\0';
    assert_string_equal(got, wanted);
    free(got);
}

/* ---- repairs ---- */

static void a_record_that_cannot_be_repaired_is_rejected_alone(void **state)
{
    (void)state;
    static const struct {
        const char *other, *code;
    } cases[] = {{NO_KEYS, "NoKeys"},
                 {HAS("99"), "Twice"},
                 {HAS_B(",'g':" S("x")), "MissingAttribute"},
                 {HAS_B(",'g':" S("x") ",'v':" S("y")), "NotANumber"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = totals_of_one(ROUTE("", ""));
        char *seen = ledger_row(s);
        struct asked got =
            repair(s, &(struct question){.records = {HAS("13"), cases[i].other}, .seen = {seen, NULL}});
        assert_int_equal(got.status, SL_OK);
        assert_int_equal(got.records[0].status, SL_OK);
        assert_int_equal(got.records[0].effect, SL_REPAIR_WRITTEN);
        assert_true(got.records[0].has_written);
        assert_int_equal(got.records[1].status, SL_REJECT);
        assert_string_equal(got.records[1].code, cases[i].code);
        assert_int_equal(got.records[1].effect, SL_REPAIR_NOTHING);
        assert_false(got.records[1].has_written);
        expect_sum(s, "1 13");
        free(seen);
        stage_destroy(s);
    }
}

static void a_row_that_nobody_understands_is_not_repaired(void **state)
{
    (void)state;
    static const char *const rows[] = {"{}", "{'order':{'S':'1'},'sums':{'L':[]}}"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage *s = totals_of_one(ROUTE("", ""));
        struct asked got = repair(s, &(struct question){.records = {HAS("13")}, .seen = {json(rows[i])}});
        assert_int_equal(got.status, SL_FATAL);
        assert_string_equal(got.error.code, "LedgerRow");
        assert_false(got.records[0].has_written);
        expect_sum(s, "1 10");
        stage_destroy(s);
    }
}

static void what_has_no_ledger_of_items_is_not_repaired(void **state)
{
    (void)state;
    static const char *const configs[] = {ROUTE(",'per':'event'", ""), ROUTE(",'mode':'at-least-once'", "")};
    for (size_t i = 0; i < 2; i++) {
        struct stage *s = stage_new(configs[i], NULL);
        struct asked got = repair(s, &(struct question){.records = {HAS("13")}, .seen = {NULL}});
        assert_int_equal(got.status, SL_REJECT);
        assert_string_equal(got.error.code, "NoLedger");
        stage_destroy(s);
    }
    struct stage *s = stage_new(ROUTE("", ""), NULL);
    struct asked got = repair(s, &(struct question){.records = {HAS("13")}, .is_undo = true});
    assert_int_equal(got.status, SL_REJECT);
    assert_string_equal(got.error.code, "NoUndo");
    stage_destroy(s);
}

static void a_repair_from_another_table_or_epoch_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *records[RECORDS], *epoch, *code;
    } cases[] = {{{FROM("others")}, "2", "TwoTables"},
                 {{FROM("orders"), FROM("others")}, "2", "TwoTables"},
                 {{FROM("orders")}, "1", "LedgerEpoch"},
                 {{FROM("orders")}, "2", ""},
                 {{LOCAL("orders")}, "2", ""},
                 {{LOCAL("others")}, "2", "TwoTables"},
                 {{HAS("13")}, "2", ""}}; /* it does not say */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = totals_of_one(ROUTE(",'epoch':2", ""));
        char *seen = ledger_row(s);
        stage_reopen(s, json_printf(ROUTE(",'epoch':%s", ""), cases[i].epoch));
        struct asked got = repair(
            s, &(struct question){.records = {cases[i].records[0], cases[i].records[1]}, .seen = {seen}});
        assert_int_equal(got.status, *cases[i].code ? SL_FATAL : SL_OK);
        assert_string_equal(got.error.code, cases[i].code);
        expect_sum(s, *cases[i].code ? "1 10" : "1 13");
        free(seen);
        stage_destroy(s);
    }
}

/* Whatever fails, before it took effect or after, a repair of what is seen afterwards sets it right. */
struct plan {
    size_t calls, fails_at;
    bool after;
};

static enum stage_fate planned(struct stage *s)
{
    struct plan *plan = s->context;
    return ++plan->calls != plan->fails_at ? STAGE_WELL
           : plan->after                   ? STAGE_FAILS_AFTER
                                           : STAGE_FAILS_BEFORE;
}

static void a_repair_that_failed_is_made_again(void **state)
{
    (void)state;
    for (size_t k = 0; k < 12; k++) {
        struct plan plan = {.fails_at = 1 + k / 2, .after = k % 2};
        struct stage *s = totals_of_one(ROUTE("", ""));
        char *seen = ledger_row(s);
        s->at_table = planned;
        s->context = &plan;
        struct asked got = repair(s, &(struct question){.records = {FROM("orders")}, .seen = {seen}});
        s->at_table = NULL;
        bool is_done = got.status == SL_OK && got.records[0].status == SL_OK;
        assert_int_equal(is_done, plan.calls < plan.fails_at);
        if (is_done)
            expect_sum(s, "1 13");
        free(seen);
        seen = ledger_row(s);
        got = repair(s, &(struct question){.records = {FROM("orders")}, .seen = {seen}});
        assert_int_equal(got.status, SL_OK);
        assert_int_equal(got.records[0].status, SL_OK);
        expect_sum(s, "1 13");
        free(seen);
        stage_destroy(s);
    }
}

/* A value's row that holds less than the repair takes away may have been read too early: then the ledger's
 * row is looked at again. As it was seen, the repair is tried some times more; a row that moved is left
 * alone. */
static void a_repair_that_was_read_too_early_looks_at_the_row_again(void **state)
{
    (void)state;
#define OF_LEDGER " WHERE key LIKE '%sluice:ledger%'"
    static const struct {
        const char *change, *code;
    } cases[] = {{"DELETE FROM rows WHERE key LIKE '%nobody%'", "ValueRow"},
                 {"UPDATE rows SET item = "
                  "json_set(item,'$.order.S','0000000000000000000000000000000000000009')" OF_LEDGER,
                  "Moved"},
                 {"DELETE FROM rows" OF_LEDGER, "Moved"},
                 {"UPDATE rows SET item = json_remove(item,'$.order')" OF_LEDGER, "LedgerRow"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = totals_of_one(ROUTE(",'missing':'skip'", ",'distinct':{'d':'{v}'}"));
        char *seen = ledger_row(s);
        stage_change(s, "db", "DELETE FROM rows WHERE key LIKE '%sluice:distinct%'");
        stage_change(s, "db", cases[i].change);
        struct asked got = repair(s, &(struct question){.records = {HAS("13")}, .seen = {seen}});
        const char *code = *got.records[0].code ? got.records[0].code : got.error.code;
        if (strcmp(code, cases[i].code) != 0)
            fail_msg("case %zu: %s", i, code);
        expect_sum(s, "1 10");
        free(seen);
        stage_destroy(s);
    }
}

/* ---- judging ---- */

static void a_row_that_nobody_understands_is_not_judged(void **state)
{
    (void)state;
    static const struct {
        const char *record, *row, *code;
    } cases[] = {{HAS("1"), "{}", "LedgerRow"},
                 {LACKS, "{'order':{'S':'x'},'sums':{'L':[]}}", "LedgerRow"},
                 {HAS_B(",'g':" S("x")), NULL, "MissingAttribute"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE("", ""), NULL);
        struct test_batch t;
        struct sl_error error = SL_NO_ERROR;
        struct sl_route *route = &s->p->routes[0];
        test_decode(&t, json_span(cases[i].record), NULL);
        struct sl_judge j = {.record = sl_batch_record(&t.batch, 0),
                             .row = cases[i].row ? json_span(cases[i].row) : sl_span(NULL, 0),
                             .arena = t.arena};
        assert_int_not_equal(route->loaded.handler.judge(route->self, &j, &error), SL_OK);
        assert_string_equal(error.code, cases[i].code);
        test_batch_clean_up(&t);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_cannot_be_repaired_is_rejected_alone),
        cmocka_unit_test(a_row_that_nobody_understands_is_not_repaired),
        cmocka_unit_test(what_has_no_ledger_of_items_is_not_repaired),
        cmocka_unit_test(a_repair_from_another_table_or_epoch_is_refused),
        cmocka_unit_test(a_repair_that_failed_is_made_again),
        cmocka_unit_test(a_repair_that_was_read_too_early_looks_at_the_row_again),
        cmocka_unit_test(a_row_that_nobody_understands_is_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
