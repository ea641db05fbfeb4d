/* Transactions of the aggregate handler: how many items fit into one, by operations and by bytes, and that
 * many groups in one slice are all told apart. */
#include "base/buffer.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"

/* Items `from` to `to` - 1, each with a name of its own, `who`, one of 97 groups, and what all share. */
static void deliver_items(struct stage *s, size_t from, size_t to)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 64 << 20);
    for (size_t i = from; i < to; i++)
        sl_buffer_printf(
            &text,
            "%s{'eventID':'e%zu','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'i%zu'}},"
            "'NewImage':{'PK':{'S':'i%zu'},'who':{'S':'w%zu'},'group':{'S':'%zu'},'all':{'S':'x'},"
            "'total':{'N':'2'}},"
            "'SequenceNumber':'%zu','StreamViewType':'NEW_AND_OLD_IMAGES'}}",
            i > from ? "," : "{'Records':[", i, i, i, i, i % 97, i + 1);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    json_quote(text.ptr);
    s->groups = s->largest_group = 0;
    stage_deliver(s, sl_span_str(text.ptr));
    if (s->answer.is_error || s->answer.checkpoint != s->n)
        fail_msg("checkpoint %zu of %zu: %s", s->answer.checkpoint, s->n, s->answer.error.text);
    assert_int_equal(s->answer.parked, 0);
    sl_buffer_clean_up(&text);
}

static size_t number(struct stage *s, const char *sql)
{
    char *text = stage_query(s, "db", sql);
    size_t n = strtoul(text, NULL, 10);
    free(text);
    return n;
}

/* A transaction takes 100 operations. Each item has rows of its own, the first of which is the ledger's, and
 * shares others with all: as many items fit as these leave room for, and one more begins a second one. */
static void a_transaction_is_filled_to_its_limit(void **state)
{
    (void)state;
    static const struct {
        const char *route;
        size_t own, shared;
    } cases[] = {
        {ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'n':1,'sum':'{total}'}}]"), 1, 1},
        {ROUTE("'ledger':{'table':'l'},'counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]"), 1, 1},
        {ROUTE("'per':'event','counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]"), 1, 1},
        {ROUTE("'shards':3,'counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]"), 1, 1},
        {ROUTE("'counters':[{'key':{'PK':'A'},'add':{'n':1}},{'key':{'PK':'B'},'add':{'n':1}}]"), 1, 2},
        {ROUTE("'counters':[{'key':{'PK':'G{who}'},'add':{'n':1}}]"), 2, 0},
        {ROUTE("'counters':[{'key':{'PK':'G{who}'},'add':{'n':1}},{'key':{'PK':'B'},'add':{'n':1}}]"), 2, 1},
        /* A value has a row, and changes its group's, which nothing else may change. */
        {ROUTE("'counters':[{'key':{'PK':'ALL'},'distinct':{'d':'{all}'}}]"), 1, 2},
        {ROUTE("'counters':[{'key':{'PK':'ALL'},'distinct':{'d':'{who}'}}]"), 2, 1},
        {ROUTE("'counters':[{'key':{'PK':'G{who}'},'distinct':{'d':'{who}'}}]"), 3, 0},
        {ROUTE("'counters':[{'key':{'PK':'G{who}'},'add':{'n':1},'distinct':{'d':'{who}','e':'{all}'}}]"), 4,
         0},
        {ROUTE("'counters':[{'key':{'PK':'ALL','SK':'-'},'add':{'n':1},'members':{'by':'{total}'}}]"), 2, 1},
        {ROUTE("'counters':[{'key':{'PK':'ALL','SK':'-'},'members':{'by':'{total}'}}]"), 2, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t fit = (100 - cases[i].shared) / cases[i].own;
        for (size_t items = fit - 1; items <= fit + 1; items++) {
            struct stage *s = stage_new(cases[i].route, NULL);
            size_t full = items < fit ? items : fit;
            deliver_items(s, 0, items);
            if (s->groups != (items > fit ? 2 : 1) ||
                s->largest_group != full * cases[i].own + cases[i].shared)
                fail_msg("case %zu, %zu items: %zu transactions, %zu operations", i, items, s->groups,
                         s->largest_group);
            stage_destroy(s);
        }
    }
}

/* A transaction takes 4 MB. The ledger's row of an item names the rows of all its totals, here 40 with long
 * keys: 60 of them would have too many bytes, although not too many operations. The stage looks at each. */
static void a_transaction_has_no_more_bytes_than_the_service_takes(void **state)
{
    (void)state;
    struct sl_buffer config;
    sl_buffer_init(&config, 1 << 20);
    sl_buffer_add_str(
        &config, "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t','handler'"
                 ":'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[");
    for (int i = 0; i < 40; i++)
        sl_buffer_printf(&config, "%s{'key':{'PK':'%02d%01800d'},'add':{'n':1}}", i ? "," : "", i, 0);
    sl_buffer_add_str(&config, "]}]}");
    sl_buffer_add_char(&config, '\0');
    struct stage *s = stage_new(config.ptr, NULL);
    deliver_items(s, 0, 1);
    deliver_items(s, 1, 60);
    assert_in_range(s->groups, 2, 5);
    assert_int_equal(number(s, "SELECT sum(json_extract(item,'$.n.N')) FROM totals WHERE key NOT LIKE "
                               "'%sluice:%'"),
                     40 * 60);
    sl_buffer_clean_up(&config);
    stage_destroy(s);
}

static void nothing_is_refused(struct stage *s, const struct sl_table_op *ops, size_t n,
                               struct sl_result *results)
{
    (void)s, (void)ops;
    for (size_t i = 0; i < n; i++)
        if (results[i].status == SL_REJECT)
            fail_msg("refused: %s", results[i].text);
}

/* An item has 400 KB: here 98 hot rows, each with 20 amounts of long names, would need more in one delta row,
 * and be refused. */
static void a_delta_row_has_no_more_bytes_than_an_item_may_have(void **state)
{
    (void)state;
    struct sl_buffer config;
    sl_buffer_init(&config, 1 << 20);
    sl_buffer_add_str(
        &config,
        "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t','handler'"
        ":'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[{'key':{'PK':'ALL'},'add':{'n'"
        ":1}},{'key':{'PK':'G{group}'},'add':{");
    for (int i = 0; i < 20; i++)
        sl_buffer_printf(&config, "%s'%0230d':1", i ? "," : "", i);
    sl_buffer_add_str(&config, "}}]}]}");
    sl_buffer_add_char(&config, '\0');
    struct stage *s = stage_new(config.ptr, NULL);
    s->after_table = nothing_is_refused;
    deliver_items(s, 0, 300);
    assert_int_equal(number(s, "SELECT json_extract(item,'$.n.N') FROM totals WHERE key LIKE '%\"ALL\"%'"),
                     300);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE key LIKE '%{\"S\":\"G%'"), 97);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE key LIKE '%sluice:delta:%'"), 0);
    sl_buffer_clean_up(&config);
    stage_destroy(s);
}

/* The totals of items go up, down and stay, so that each transaction adds nothing to their row: then it has
 * no delta row. */
static void what_cancels_out_has_no_delta_row(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'sum':'{total}'}}]"), NULL);
    struct sl_buffer text;
    deliver_items(s, 0, 297);
    stage_change(
        s, "db",
        "CREATE TABLE puts (key TEXT); CREATE TRIGGER watch AFTER INSERT ON totals WHEN NEW.key LIKE "
        "'%sluice:delta:%' BEGIN INSERT INTO puts VALUES (NEW.key); END");
    sl_buffer_init(&text, 1 << 20);
    for (int i = 0; i < 297; i++)
        sl_buffer_printf(&text,
                         "%s" RECORD("MODIFY", "%d",
                                     KEYS(PK("i%d")) NEW(PK("i%d") ",'total':" N("%d"))
                                         OLD(PK("i%d") ",'total':" N("2"))),
                         i ? "," : "{'Records':[", i + 1000, i, i, 1 + i % 3, i, i + 1000);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    stage_deliver_all(s, text.ptr);
    assert_int_equal(number(s, "SELECT count(*) FROM puts"), 0);
    assert_int_equal(number(s, "SELECT json_extract(item,'$.sum.N') FROM totals WHERE key LIKE '%ALL%'"),
                     594);
    sl_buffer_clean_up(&text);
    stage_destroy(s);
}

/* More groups than the handler remembers by what their keys are made of: each still has one row. */
static void thousands_of_groups_in_a_slice_are_told_apart(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE("'mode':'at-least-once','counters':[{'key':{'PK':'A{who}'},'add':{'n':1}},"
                        "{'key':{'PK':'B{who}'},'add':{'n':1,'sum':'{total}'}}]"),
                  NULL);
    deliver_items(s, 0, 2500);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE json_extract(item,'$.n.N') = '1'"), 5000);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE json_extract(item,'$.sum.N') = '2' AND key "
                               "LIKE '%\"Bw%'"),
                     2500);
    deliver_items(s, 0, 2500);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE json_extract(item,'$.n.N') = '2'"), 5000);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_is_filled_to_its_limit),
        cmocka_unit_test(a_transaction_has_no_more_bytes_than_the_service_takes),
        cmocka_unit_test(a_delta_row_has_no_more_bytes_than_an_item_may_have),
        cmocka_unit_test(what_cancels_out_has_no_delta_row),
        cmocka_unit_test(thousands_of_groups_in_a_slice_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
