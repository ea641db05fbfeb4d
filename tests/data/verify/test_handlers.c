/* Whatever a handler says of its rows, each item is counted once, under what can be known of it. */
#include "tests/data/verify/own_handler.h"

/* ---- what a handler says ---- */

static void an_item_is_counted_once_under_what_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        bool is_in_source, is_row;
        uint64_t counts[6]; /* as assert_counts has them */
        const char *line;
    } cases[] = {
        {"a", true, true, {1}, NULL},
        {"a", true, false, {0, 1}, "'kind':'missing'"},
        {"a", false, true, {0, 1}, "'direction':'backward','source_key':{'PK':{'S':'a'}},'kind':'left over'"},
        {"m", true, false, {1}, NULL},
        {"o", true, false, {0, 0, 0, 0, 0, 1}, NULL},
        {"o", false, true, {0}, NULL}, /* (it is found in the target, and nobody can say whose it is) */
        {"r", true, false, {0, 0, 0, 0, 1}, "'code':'Unfit','why':'the item does not fit'"},
        {"r", false, true, {0, 0, 0, 0, 1}, "'code':'Unfit'"},
        {"k", true, false, {0, 0, 0, 0, 1}, "'code':'NoSuchKey','why':'the target refuses the row\\'s key'"},
        {"t", true, true, {0, 1}, "'kind':'missing','key':{'PK':{'S':'second'}}"},
        {"none", false, true, {0}, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_world("");
        if (cases[i].is_in_source)
            put_source(cases[i].id, ",'v':{'N':'1'}");
        if (cases[i].is_row)
            put_row(cases[i].id, ",'v':{'N':'1'}");
        assert_counts_are(verify_all(), cases[i].counts, (int)i);
        assert_int_equal(n_lines, cases[i].line != NULL);
        if (cases[i].line)
            assert_line(cases[i].line);
        close_world();
    }
    /* Of two rows each is told, and the item counts once. */
    open_world("");
    put_source("t", "");
    assert_counts(verify_all(), 0, 1, 0, 0, 0, 0);
    assert_int_equal(n_lines, 2);
    close_world();
}

static void what_a_handler_cannot_do_is_told(void **state)
{
    (void)state;
    static const enum sl_status statuses[] = {SL_RETRY, SL_REJECT, SL_FATAL};
    for (size_t i = 0; i < 3; i++) {
        struct sl_error error = SL_NO_ERROR;
        open_world("");
        put_source("a", "");
        handler.expect = statuses[i];
        struct sl_verify *v = verify_open();
        assert_int_equal(steps(v, &error), statuses[i] == SL_RETRY ? SL_RETRY : SL_FATAL);
        assert_string_equal(error.code, "Mine");
        assert_string_equal(error.text, "route r: the test's handler will not");
        assert_counts(*sl_verify_route(v, 0), 0, 0, 0, 0, 0, 0);
        sl_verify_close(v);
        handler.expect = SL_OK;
        handler.judge = statuses[i];
        assert_counts(verify_all(), 0, 0, 0, 0, 1, 0);
        assert_line("'source_key':{'PK':{'S':'a'}},'code':'Mine','why':'the test\\'s handler will not'");
        handler.judge = SL_OK;
        handler.trace = statuses[i];
        put_row("a", "");
        assert_counts(verify_all(), 1, 0, 0, 0, 1, 0);
        assert_line("'direction':'backward','code':'Mine'");
        close_world();
    }
}

/* Without judge, the comparison alone says what it is. Without trace, or where nothing can be scanned, the
 * target is not looked at backward. */
static void a_handler_may_offer_less(void **state)
{
    (void)state;
    open_world("");
    struct sl_handler *h = &the->p->routes[0].loaded.handler;
    put_source("a", "");
    put_source("b", ",'v':{'N':'1'}");
    put_row("b", ",'v':{'N':'2'}");
    put_row("c", "");
    h->judge = NULL;
    assert_counts(verify_all(), 0, 3, 0, 0, 0, 0);
    assert_line("'kind':'left over'");
    h->trace = NULL;
    assert_counts(verify_all(), 0, 2, 0, 0, 0, 0);
    h->trace = trace;
    void (*scan_target)(struct sl_table_port *, const struct sl_table_scan *, size_t, struct sl_table_page *,
                        const struct sl_call *) = target->scan;
    target->scan = NULL;
    assert_counts(verify_all(), 0, 2, 0, 0, 0, 0);
    target->scan = scan_target;
    handler.hides_tables = true;
    struct sl_verify *hidden = verify_open();
    assert_string_equal(sl_verify_route(hidden, 0)->reason, "route r: the test's handler will not");
    assert_true(sl_verify_progress(hidden).is_scan);
    sl_verify_close(hidden);
    h->expect = NULL;
    struct sl_verify *v = verify_open();
    assert_string_equal(sl_verify_route(v, 0)->reason,
                        "the handler replicate does not tell what should be there");
    sl_verify_close(v);
    close_world();
}

/* `when` may look at more than the key: then the end state is not the item's alone. */
static void a_route_that_cannot_be_compared_refuses_its_items(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    open_world(",'when':{'pattern':[{'dynamodb':{'NewImage':{'v':{'N':['1']}}}}]}");
    put_source("a", "");
    options.only_items = true;
    struct sl_verify *v = verify_open();
    assert_non_null(sl_verify_route(v, 0)->reason);
    assert_int_equal(sl_verify_item(v, NULL, SL_LIT("{\"PK\":{\"S\":\"a\"}}"), &error), SL_OK);
    assert_int_equal(sl_verify_item(v, "r", SL_LIT("{\"PK\":{\"S\":\"a\"}}"), &error), SL_REJECT);
    assert_string_equal(error.code, "NotComparable");
    assert_non_null(strstr(error.text, "the route r cannot be compared: "));
    assert_true(sl_verify_progress(v).is_done);
    sl_verify_close(v);
    close_world();
}

static void a_collision_names_the_other_item(void **state)
{
    (void)state;
    open_world("");
    handler.verdict = SL_VERDICT_COLLISION;
    put_source("a", "");
    assert_counts(verify_all(), 0, 1, 0, 0, 0, 0);
    assert_line("'kind':'collision','key':{'PK':{'S':'a'}},'other_source_key':{'PK':{'S':'other'}}");
    handler.verdict = (enum sl_verdict)15; /* of no release */
    assert_counts(verify_all(), 0, 1, 0, 0, 0, 0);
    assert_line("'kind':'different'");
    close_world();
}

/* A person reads a hundred lines; the count is of all. */
static void what_cannot_be_compared_is_counted_to_the_end(void **state)
{
    (void)state;
    open_world("");
    for (int i = 0; i < 103; i++)
        put_source(json_printf("r%d", i), "");
    assert_counts(verify_all(), 0, 0, 0, 0, 103, 0);
    assert_int_equal(n_lines, 100);
    close_world();
}

/* ---- TTL and pairs ---- */

static void whether_an_expired_item_is_there_is_not_judged(void **state)
{
    (void)state;
    static const struct {
        const char *attributes;
        int64_t after_s; /* now */
        bool is_judged;
    } cases[] = {
        {",'ttl':{'N':'%lld'}", -100, false},  {",'ttl':{'N':'%lld'}", 60, false},
        {",'ttl':{'N':'%lld'}", 62, true},     {",'ttl':{'S':'%lld'}", -100, true},
        {",'other':{'N':'%lld'}", -100, true}, {",'ttl':{'N':'-%lld'}", -100, true},
        {",'also':{'N':'%lld'}", -100, false},
    };
    static const struct sl_span names[] = {{"ttl", 3}, {"also", 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int there = 0; there < 2; there++) {
            char attributes[80];
            open_world("");
            options.ttl_attributes = names;
            options.n_ttl_attributes = 2;
            int64_t now_s = the->clock.clock.wall_ns(&the->clock.clock) / 1000000000;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(attributes, sizeof(attributes), cases[i].attributes,
                     (long long)(now_s + cases[i].after_s));
#pragma GCC diagnostic pop
            if (there)
                put_row("a", attributes);
            else
                put_source("a", attributes);
            struct sl_verify_route r = verify_all();
            if (r.different != cases[i].is_judged || r.equal != (!there && !cases[i].is_judged))
                fail_msg("%s, %d: %s", attributes, there, lines);
            /* What the row holds is judged all the same. */
            put_row("a", attributes);
            put_source("a", json_printf("%s,'v':{'N':'1'}", attributes));
            assert_counts(verify_all(), 0, 1, 0, 0, 0, 0);
            close_world();
        }
}

/* Guards on the source's items say that the target is followed, too: what has none there is the other side's.
 */
static void in_a_pair_rows_without_a_guard_are_the_other_sides(void **state)
{
    (void)state;
    for (int pair = 0; pair < 2; pair++)
        for (int owned = 0; owned < 2; owned++) {
            open_world("");
            handler.has_guard = true;
            handler.is_owned = owned;
            put_source("a", pair ? ",'my_guard':{'N':'1'}" : ",'v':{'N':'1'}");
            put_row("a", pair ? ",'my_guard':{'N':'1'}" : ",'v':{'N':'1'},'my_guard':{'N':'1'}");
            put_row("b", "");
            struct sl_verify_route r = verify_all();
            assert_int_equal(r.kinds[SL_VERDICT_LEFT_OVER], !pair || owned);
            close_world();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_is_counted_once_under_what_is_known),
        cmocka_unit_test(what_a_handler_cannot_do_is_told),
        cmocka_unit_test(a_handler_may_offer_less),
        cmocka_unit_test(a_route_that_cannot_be_compared_refuses_its_items),
        cmocka_unit_test(a_collision_names_the_other_item),
        cmocka_unit_test(what_cannot_be_compared_is_counted_to_the_end),
        cmocka_unit_test(whether_an_expired_item_is_there_is_not_judged),
        cmocka_unit_test(in_a_pair_rows_without_a_guard_are_the_other_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
