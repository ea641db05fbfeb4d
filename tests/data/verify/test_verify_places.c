/* Tables that refuse, items that never stand still, and places: what is known of each item outlives the
 * process, and nothing that cannot be read looks right. */
#include "tests/data/verify/own_handler.h"

/* ---- what a table answers ---- */

static void a_key_that_the_source_refuses_is_told(void **state)
{
    (void)state;
    static const struct {
        struct sl_result result;
        const char *line;
    } cases[] = {
        {{.status = SL_REJECT}, "'code':'BadKey','why':'the source refuses the item\\'s key'"},
        {{.status = SL_REJECT, .code = "Odd", .text = "not this"}, "'code':'Odd','why':'not this'"},
    };
    for (size_t i = 0; i < 2; i++) {
        open_world("");
        put_source("a", "");
        instead = cases[i].result;
        assert_counts(verify_all(), 0, 0, 0, 0, 1, 0);
        assert_line(cases[i].line);
        close_world();
    }
}

static void a_table_that_fails_ends_it(void **state)
{
    (void)state;
    static const struct {
        struct sl_result result;
        const char *code, *text;
    } cases[] = {
        {{.status = SL_RETRY, .code = "Later", .text = "not now"}, "Later", "not now"},
        {{.status = SL_FATAL, .code = "Gone", .text = "no such table"}, "Gone", "no such table"},
    };
    for (size_t i = 0; i < 2; i++)
        for (int scans = 0; scans < 2; scans++) {
            struct sl_error error = SL_NO_ERROR;
            open_world("");
            put_source("a", "");
            *(scans ? &scan_fails : &instead) = cases[i].result;
            struct sl_verify *v = verify_open();
            assert_int_equal(steps(v, &error), cases[i].result.status);
            assert_string_equal(error.code, cases[i].code);
            assert_string_equal(error.text, cases[i].text);
            sl_verify_close(v);
            close_world();
        }
    open_world("");
    goes_round = true;
    struct sl_error error = SL_NO_ERROR;
    struct sl_verify *v = verify_open();
    assert_int_equal(steps(v, &error), SL_FATAL);
    assert_string_equal(error.code, "EndlessScan");
    sl_verify_close(v);
    seen_source.scan = NULL;
    sl_error_clear(&error);
    assert_int_equal(sl_verify_open(&options, sl_span(NULL, 0), &v, &error), SL_FATAL);
    assert_null(v);
    assert_string_equal(error.code, "NoScan");
    options.only_items = true;
    v = verify_open();
    sl_verify_close(v);
    close_world();
}

static void an_item_without_its_key_is_told(void **state)
{
    (void)state;
    open_world("");
    put_source("a", "");
    put_row("a", "");
    stage_change(the, "source.db",
                 json("INSERT INTO s VALUES (\\'{'PK':{'S':'b'}}\\', \\'{'v':{'N':'1'}}\\')"));
    assert_counts(verify_all(), 1, 0, 0, 0, 1, 0);
    assert_line("'code':'NoKey','why':'an item of the source has no attribute PK'");
    close_world();
}

/* A row of the target that would not be the route's is no matter of it. */
static void rows_that_the_route_would_not_make_are_passed_over(void **state)
{
    (void)state;
    open_world(",'when':{'pattern':[{'dynamodb':{'Keys':{'PK':{'S':[{'prefix':'i'}]}}}}]}");
    put_source("i1", "");
    put_row("i1", "");
    put_source("z1", "");
    put_row("z2", "");
    put_row("i2", "");
    assert_counts(verify_all(), 1, 1, 0, 0, 0, 1);
    assert_line("'source_key':{'PK':{'S':'i2'}},'kind':'left over'");
    close_world();
}

/* ---- what never stands still, and what nobody knows ---- */

static int moves;

static void move(void)
{
    put_source("a", json_printf(",'v':{'N':'%d'}", ++moves));
}

static void an_item_that_is_always_written_is_unsettled(void **state)
{
    (void)state;
    open_world("");
    put_source("a", "");
    put_row("a", ",'v':{'N':'-1'}");
    before_read = move;
    assert_counts(verify_all(), 0, 0, 0, 1, 0, 0);
    assert_line("{'result':'unsettled','route':'r'");
    assert_line("'looks':5,");
    before_read = NULL;
    options.through_ms = NULL;
    assert_counts(verify_all(), 0, 0, 1, 0, 0, 0);
    assert_line("{'result':'pending','route':'r'");
    /* An item beside it is told, and one that is right is not. */
    put_source("t", "");
    put_row("t", "");
    options.through_ms = through;
    assert_counts(verify_all(), 0, 2, 0, 0, 0, 0);
    assert_int_equal(n_lines, 2);
    close_world();
}

static void move_second(void)
{
    put_row("second", json_printf(",'v':{'N':'%d'}", ++moves));
}

/* Two looks that saw one row move did not see the same, whichever row of the item it is. */
static void a_row_that_moves_beside_one_that_stands_still_is_seen(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    open_world("");
    put_source("t", "");
    put_row("t", "");
    options.only_items = true;
    struct sl_verify *v = verify_open();
    sl_verify_suspect(v, 0, SL_LIT("{\"PK\":{\"S\":\"t\"}}"), true);
    before_read = move_second;
    assert_int_equal(steps(v, &error), SL_OK);
    assert_int_equal(sl_verify_route(v, 0)->unsettled, 1);
    assert_int_equal(sl_verify_route(v, 0)->different, 0);
    sl_verify_close(v);
    close_world();
}

/* ---- places ---- */

/* Page by page, in another process each time, forward and backward, in a pair: nothing is lost or counted
 * twice. */
static void a_place_holds_all_that_was_known(void **state)
{
    (void)state;
    size_t kills = 0;
    open_world("");
    handler.has_guard = page_by_page = true;
    for (int i = 0; i < 20; i++) {
        put_source(json_printf("a%d", i), ",'my_guard':{'N':'1'}");
        put_row(json_printf("%c%d", i % 4 ? 'a' : 'b', i), ",'my_guard':{'N':'1'}");
    }
    struct sl_verify *v = verify_open();
    while (!sl_verify_progress(v).is_done) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_buffer place;
        bool looks = sl_verify_progress(v).suspects > 0;
        for (int i = 0; i < (looks ? 3 : 1); i++)
            assert_int_equal(sl_verify_step(v, INT64_MAX / 2, &error), SL_OK);
        sl_buffer_init(&place, 1 << 20);
        sl_verify_place(v, &place);
        sl_verify_close(v);
        if (sl_verify_open(&options, sl_buffer_span(&place), &v, &error) != SL_OK)
            fail_msg("%s: %.*s", error.text, SL_ARG(sl_buffer_span(&place)));
        sl_buffer_clean_up(&place);
        assert_true(++kills < 1000);
    }
    assert_true(kills > 5);
    assert_int_equal(sl_verify_route(v, 0)->kinds[SL_VERDICT_MISSING], 5);
    assert_counts(*sl_verify_route(v, 0), 15, 5, 0, 0, 0, 0);
    sl_verify_close(v);
    close_world();
}

#define PLACE(numbers, active, routes, suspects)                                                             \
    "{" numbers ",'active':" active ",'routes':" routes ",'suspects':" suspects "}"
#define NUMBERS "'segments':4,'first':0,'n':4,'table':0,'begun':3,'ended':1,'items':1,'rows':0"
#define COUNTS                                                                                               \
    "{'r':{'pair':true,'equal':1,'different':2,'pending':3,'unsettled':4,'not_comparable':5,'left_out':6,"   \
    "'kinds':[0,1]}}"
#define AT_THE_END "'segments':4,'first':0,'n':4,'table':2,'begun':0,'ended':0,'items':1,'rows':0"
#define UNPAIRED   "{'r':{'pair':false,'equal':1,'kinds':[]}}"
#define LEFT_OVER  "[{'route':0,'forward':false,'key':'{\\\"PK\\\":{\\\"S\\\":\\\"z\\\"}}'}]"
#define SUSPECTS   "[{'route':0,'forward':true,'key':'x'}]"

static void a_place_of_another_verification_is_refused(void **state)
{
    (void)state;
    static const char *const good =
        PLACE(NUMBERS, "[{'segment':1,'after':'{}'},{'segment':0}]", COUNTS, SUSPECTS);
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"{'segments'", "['segments'"}, {"'segments':4", "'segments':5"},
        {"'first':0", "'first':1"},     {"'n':4", "'n':3"},
        {"'table':0", "'table':-1"},    {"'table':0", "'table':3"},
        {"'begun':3", "'begun':5"},     {"'begun':3", "'begun':-2"},
        {"'ended':1", "'ended':4"},     {"'ended':1", "'ended':-1"},
        {"'segment':1", "'segment':4"}, {"'segment':1", "'segment':-1"},
        {"'after':'{}'", "'after':7"},  {"{'segment':0}", "{},{},{},{}"},
        {"{'r':{", "{'q':{"},           {"{'r':{", "{'more':{},'r':{"},
        {"'route':0", "'route':1"},     {"'route':0", "'route':-1"},
        {"'key':'x'", "'key':7"},       {"'begun':3", "'begun':4"},
        {",{'segment':0}", ""},
    };
    struct sl_error error = SL_NO_ERROR;
    struct sl_verify *v;
    open_world("");
    if (sl_verify_open(&options, json_span(good), &v, &error) != SL_OK)
        fail_msg("%s", error.text);
    assert_counts(*sl_verify_route(v, 0), 1, 2, 3, 4, 5, 6);
    assert_int_equal(sl_verify_progress(v).suspects, 1);
    assert_int_equal(sl_verify_progress(v).segments_done, 1);
    sl_verify_close(v);
    /* A row that was found in the target, of a table that nobody follows. */
    assert_int_equal(
        sl_verify_open(&options, json_span(PLACE(AT_THE_END, "[]", UNPAIRED, LEFT_OVER)), &v, &error), SL_OK);
    assert_int_equal(steps(v, &error), SL_OK);
    assert_int_equal(sl_verify_route(v, 0)->equal, 1); /* what is found backward and right is no item */
    sl_verify_close(v);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const char *at = strstr(good, changes[i].from);
        assert_non_null(at);
        const char *bad =
            json_printf("%.*s%s%s", (int)(at - good), good, changes[i].to, at + strlen(changes[i].from));
        sl_error_clear(&error);
        if (sl_verify_open(&options, sl_span_str(bad), &v, &error) != SL_REJECT)
            fail_msg("%s -> %s is taken", changes[i].from, changes[i].to);
        assert_null(v);
        assert_string_equal(error.code, "BadCheckpoint");
        assert_non_null(strstr(error.text, "or remove the file to begin anew"));
    }
    close_world();
}

/* ---- many suspects ---- */

static void more_suspects_than_fit_wait_or_are_refused(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    open_world("");
    put_source("a", "");
    struct sl_verify *v = verify_open();
    size_t room = sl_verify_room(v);
    assert_int_equal(room, SL_VERIFY_SUSPECTS / SL_VERIFY_PAGES);
    for (int i = 0; i < SL_VERIFY_SUSPECTS; i++) {
        char key[40];
        snprintf(key, sizeof(key), "{\"PK\":{\"S\":\"z%d\"}}", i);
        sl_verify_suspect(v, 0, sl_span_str(key), true);
        if (i == SL_VERIFY_SUSPECTS - 2001 || i == SL_VERIFY_SUSPECTS - 2000)
            assert_int_equal(sl_verify_room(v), i == SL_VERIFY_SUSPECTS - 2001 ? 500 : 0);
    }
    assert_int_equal(sl_verify_item(v, NULL, SL_LIT("{\"PK\":{\"S\":\"z7\"}}"), &error), SL_OK);
    assert_int_equal(sl_verify_item(v, NULL, SL_LIT("{\"PK\":{\"S\":\"a\"}}"), &error), SL_REJECT);
    assert_string_equal(error.code, "TooMany");
    /* No page is read before they have been looked at. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(sl_verify_step(v, INT64_MAX / 2, &error), SL_OK);
    assert_int_equal(sl_verify_progress(v).items, 0);
    assert_int_equal(sl_verify_route(v, 0)->equal, 300);
    sl_verify_close(v);
    close_world();
}

/* ---- a wait that others use up ---- */

static void time_passes(void)
{
    the->clock.ms += 20;
}

/* Four groups of suspects, each of which takes longer than a suspect waits: all get their two looks. */
static void the_wait_is_for_the_consumer_not_for_other_suspects(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    open_world("");
    options.wait_ms = 0;
    options.only_items = true;
    struct sl_verify *v = verify_open();
    for (int i = 0; i < 350; i++) {
        char id[8], key[40];
        snprintf(id, sizeof(id), "i%d", i);
        snprintf(key, sizeof(key), "{\"PK\":{\"S\":\"%s\"}}", id);
        put_source(id, "");
        sl_verify_suspect(v, 0, sl_span_str(key), true);
    }
    before_read = time_passes;
    assert_int_equal(steps(v, &error), SL_OK);
    assert_int_equal(sl_verify_route(v, 0)->different, 350);
    assert_int_equal(sl_verify_route(v, 0)->pending, 0);
    sl_verify_close(v);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_the_source_refuses_is_told),
        cmocka_unit_test(a_table_that_fails_ends_it),
        cmocka_unit_test(an_item_without_its_key_is_told),
        cmocka_unit_test(rows_that_the_route_would_not_make_are_passed_over),
        cmocka_unit_test(an_item_that_is_always_written_is_unsettled),
        cmocka_unit_test(a_row_that_moves_beside_one_that_stands_still_is_seen),
        cmocka_unit_test(a_place_holds_all_that_was_known),
        cmocka_unit_test(a_place_of_another_verification_is_refused),
        cmocka_unit_test(more_suspects_than_fit_wait_or_are_refused),
        cmocka_unit_test(the_wait_is_for_the_consumer_not_for_other_suspects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
