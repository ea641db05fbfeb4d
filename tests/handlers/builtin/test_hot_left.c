/* Sums on their way to hot rows, in delta rows, that a killed process left: the process that gets one of its
 * records adds them up, and deletes a row in which no item is left then. */
#include "base/buffer.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':[{'name':'t',"     \
    "'handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[{'key':{'PK':'all'},'add':{"     \
    "'n':1,'sum':'{total}'},'distinct':{'kinds':'{g}'}},{'key':{'PK':'{g}'},'add':{'n':1,'sum':'{total}'}}"  \
    "]" members "}]}"

/* Three transactions of a hundred rows, less the rows of two groups: as many as make a row hot. */
#define ITEMS 294

/* One change of each item from `from` on, without the image before it; `group` NULL: a removal. Its total is
 * one more than its order. */
static char *changes(const char *event, unsigned order, size_t from, size_t to, const char *group)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fputs("{'Records':[", out);
    for (size_t i = from; i < to; i++) {
        fprintf(out,
                "%s{'eventID':'e%u-%zu','eventName':'%s','dynamodb':{'Keys':{'PK':{'S':'i%zu'}},"
                "'SequenceNumber':'%u%04zu','StreamViewType':'NEW_IMAGE'",
                i == from ? "" : ",", order, i, event, i, order, i);
        if (group)
            fprintf(out, ",'NewImage':{'PK':{'S':'i%zu'},'total':{'N':'%u'},'g':{'S':'%s'}}", i, order + 1,
                    group);
        fputs("}}", out);
    }
    fputs("]}", out);
    fclose(out);
    return text;
}

static void deliver_all(struct stage *s, char *event)
{
    stage_deliver_all(s, event);
    free(event);
}

/* What folds do, and nothing else, is a transaction that begins with the removal of a delta row. */
static bool no_fold(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    (void)s;
    for (size_t i = 0; i < n && ops[0].verb == SL_TABLE_DELETE; i++)
        results[i] = (struct sl_result){.status = SL_RETRY, .code = "Throttled", .text = "not now"};
    return ops[0].verb == SL_TABLE_DELETE;
}

/* Another process finds the delta rows that this one leaves, and of its records only `again` is redelivered. */
static void leave(struct stage *s, char *event, char *again)
{
    s->for_table = no_fold;
    stage_deliver(s, sl_span_str(json(event)));
    s->for_table = NULL;
    assert_int_equal(stage_checkpoint(s), 0);
    char *left = stage_query(s, "db", "SELECT count(*) FROM totals WHERE key LIKE '%sluice:delta:t:%'");
    assert_string_equal(left, "3\n");
    free(left);
    free(event);
    stage_reopen(s, NULL);
    deliver_all(s, again);
}

static void expect_rows(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db",
                            "SELECT json_extract(key,'$.PK.S'), json_extract(item,'$.n.N'), "
                            "json_extract(item,'$.sum.N'), json_extract(item,'$.kinds.N') FROM totals WHERE "
                            "key NOT LIKE '%sluice:ledger:%' AND key NOT LIKE '%sluice:distinct:%' "
                            "AND key NOT LIKE '%sluice:event:%' AND key NOT LIKE '%sluice:source:%' "
                            "ORDER BY key");
    assert_string_equal(got, wanted);
    free(got);
}

/* Whatever is counted, items or events. */
static void what_is_left_is_added_when_one_record_comes_again(void **state)
{
    (void)state;
    static const char *const routes[] = {ROUTE(""), ROUTE(",'per':'event'"), ROUTE(",'empty':'delete'")};
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct stage *s = stage_new(routes[i], NULL);
        leave(s, changes("INSERT", 1, 0, ITEMS, "x"), changes("INSERT", 1, ITEMS - 1, ITEMS, "x"));
        expect_rows(s, "all|294|588|1\nx|294|588|(null)\n");
        deliver_all(s, changes("INSERT", 1, 0, ITEMS, "x"));
        expect_rows(s, "all|294|588|1\nx|294|588|(null)\n");
        stage_destroy(s);
    }
}

static void a_row_that_anothers_sums_empty_is_deleted(void **state)
{
    (void)state;
    static const struct {
        const char *members, *event, *group; /* of the last changes; NULL: removals */
        const char *rows;
    } cases[] = {
        {",'empty':'delete'", "REMOVE", NULL, ""},
        {",'empty':'keep'", "REMOVE", NULL, "all|0|0|0\nx|0|0|(null)\n"},
        {",'empty':'delete'", "MODIFY", "y", "all|294|882|1\ny|294|882|(null)\n"},
        {",'empty':'keep'", "MODIFY", "y", "all|294|882|1\nx|0|0|(null)\ny|294|882|(null)\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE("%s"), cases[i].members), NULL);
        deliver_all(s, changes("INSERT", 1, 0, ITEMS, "x"));
        expect_rows(s, "all|294|588|1\nx|294|588|(null)\n");
        leave(s, changes(cases[i].event, 2, 0, ITEMS, cases[i].group),
              changes(cases[i].event, 2, 7, 8, cases[i].group));
        expect_rows(s, cases[i].rows);
        deliver_all(s, changes(cases[i].event, 2, 0, ITEMS, cases[i].group));
        expect_rows(s, cases[i].rows);
        stage_destroy(s);
    }
}

/* One item is still in the row. */
static void a_row_that_anothers_sums_do_not_empty_stays(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'empty':'delete'"), NULL);
    deliver_all(s, changes("INSERT", 1, 0, ITEMS + 1, "x"));
    leave(s, changes("REMOVE", 2, 0, ITEMS, NULL), changes("REMOVE", 2, 0, 1, NULL));
    expect_rows(s, "all|1|2|1\nx|1|2|(null)\n");
    stage_destroy(s);
}

/* Delta rows are pending while another process takes away. It does not know them: the counts of a row are 0,
 * and what its sums hold then is owed by the fold. */
static void a_row_is_not_empty_while_sums_are_on_their_way(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'empty':'delete'"), NULL);
    deliver_all(s, changes("INSERT", 1, 500, 501, "x"));
    char *first = changes("MODIFY", 2, 500, 501, "x"), *more = changes("INSERT", 2, 0, ITEMS, "x");
    size_t room = strlen(first) + strlen(more);
    char *both = malloc(room);
    snprintf(both, room, "%.*s,%s", (int)strlen(first) - 2, first, more + strlen("{'Records':["));
    s->for_table = no_fold;
    stage_deliver(s, sl_span_str(json(both)));
    s->for_table = NULL;
    stage_reopen(s, NULL);
    deliver_all(s, changes("REMOVE", 3, 500, 501, NULL));
    stage_reopen(s, NULL);
    deliver_all(s, changes("INSERT", 2, 0, ITEMS, "x")); /* delivered again: it folds what is left */
    expect_rows(s, "all|294|882|1\nx|294|882|(null)\n");
    free(both);
    free(more);
    free(first);
    stage_destroy(s);
}

/* Of a value that is in delta rows alone, another process takes one away: nobody changed its row. */
static void a_value_on_its_way_is_waited_for(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    leave(s, changes("INSERT", 1, 0, ITEMS, "x"), changes("REMOVE", 2, 5, 6, NULL));
    expect_rows(s, "all|293|586|1\nx|293|586|(null)\n");
    deliver_all(s, changes("REMOVE", 3, 0, ITEMS, NULL));
    expect_rows(s, "all|0|0|0\nx|0|0|(null)\n");
    stage_destroy(s);
}

/* A fold adds to a hundred rows at most. Delta rows of many rows need many folds, each of which is made at
 * once: the next round is for those that another process refused. */
static void many_folds_need_no_second_try(void **state)
{
    (void)state;
    struct stage *s =
        stage_new("{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?"
                  "table=totals','counters':[{'key':{'PK':'all'},'add':{'n':1}},{'key':{'PK':'{g}'},'add':{"
                  "'n':1}}]}]}",
                  NULL);
    struct sl_buffer text;
    sl_buffer_init(&text, 8 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < 19 * 99; i++)
        sl_buffer_printf(
            &text,
            "%s{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'i%zu'}},'NewImage':{'PK':{'S'"
            ":'i%zu'},'g':{'S':'g%zu'}},'SequenceNumber':'%zu'}}",
            i ? "," : "", i, i, i % 97, i + 1);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    int64_t began_ms = s->clock.ms;
    s->groups = s->largest_group = 0;
    stage_deliver_all(s, text.ptr);
    assert_int_equal(s->clock.ms, began_ms);
    assert_int_equal(s->groups, 19 + 10);
    assert_int_equal(s->largest_group, 100); /* two delta rows, and the rows of 98 sums */
    char *got = stage_query(s, "db",
                            "SELECT count(*), sum(json_extract(item,'$.n.N')) FROM totals WHERE key LIKE "
                            "'%\"g%' OR key LIKE '%\"all\"%'");
    assert_string_equal(got, "98|3762\n");
    free(got);
    sl_buffer_clean_up(&text);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_added_when_one_record_comes_again),
        cmocka_unit_test(a_row_that_anothers_sums_empty_is_deleted),
        cmocka_unit_test(a_row_that_anothers_sums_do_not_empty_stays),
        cmocka_unit_test(a_row_is_not_empty_while_sums_are_on_their_way),
        cmocka_unit_test(a_value_on_its_way_is_waited_for),
        cmocka_unit_test(many_folds_need_no_second_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
