/* Opening a pipeline: what is refused, with its path, and what a route is then. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/pipeline/route.h"
#include "streams/record.h"

#include <stdio.h>

#define ROUTE(members) "{'on_failure':'report','routes':[{'name':'a'," members "}]}"

static const struct {
    const char *config, *message; /* after the file's name */
} mistakes[] = {
    {ROUTE("'handler':'won'"), "$.routes[0].handler: \"won\" is not a built-in handler (one, two, three, "
                               "once, twice, window, keeper), and won.so is not on "
                               "the handler path (empty); did you mean \"one\"?"},
    {ROUTE("'handler':'one','to':'memo:x'"), "$.routes[0].to: \"memo:x\" is not a queue target (a queue)"},
    {ROUTE("'handler':'one','to':'nothing:x'"), "$.routes[0].to: \"nothing:x\" is not a target"},
    {ROUTE("'handler':'one','on_failure':'memt:x'"),
     "$.routes[0].on_failure: \"memt:x\" is a table; records are parked in a queue or an object store"},
    {ROUTE("'handler':'one','on_failure':['mem:x','what:x']"),
     "$.routes[0].on_failure[1]: \"what:x\" is not a target"},
    {"{'on_failure':'what:x','routes':[{'name':'a','handler':'one'}]}",
     "$.on_failure: \"what:x\" is not a target"},
    {ROUTE("'handler':'one','tow':1"), "$.routes[0].tow: is not known here; did you mean \"to\"?"},
    {ROUTE("'handler':'one','to':5"), "$.routes[0].to: is a number; write a string"},
    {"{'on_failure':'report','view_type':'NEW_IMAGE','routes':[{'name':'a','handler':'one','when':{'changed':"
     "['v']}}]}",
     "$.routes[0].when: a stream of view type NEW_IMAGE does not carry the images that it needs: enable the "
     "stream with NEW_AND_OLD_IMAGES"},
    {"{'on_failure':'report','routes':[{'name':'a','handler':'window'},{'name':'b','handler':'window'}]}",
     "$.routes[1]: keeps a window's state, and so does $.routes[0]; only one route can"},
};

static void mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        rig_refused(mistakes[i].config, &error);
        const char *text = strstr(error.text, "sluice.json: ");
        assert_non_null(text);
        assert_string_equal(text + strlen("sluice.json: "), mistakes[i].message);
    }
}

/* What others' compilers say is theirs; that it has its path is ours. */
static void faults_inside_a_value_have_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *config, *path;
    } faults[] = {
        {ROUTE("'handler':'one','text':'{a'"), "sluice.json: $.routes[0].text: "},
        {ROUTE("'handler':'one','options':{'text':'}'}"), "sluice.json: $.routes[0].options.text: "},
        {ROUTE("'handler':'one','when':{'evens':[]}"),
         "sluice.json: $.routes[0].when.evens: not a condition"},
        {ROUTE("'handler':'one','when':{'$or':[]}"), "sluice.json: $.routes[0].when.$or: not a condition"},
        {ROUTE("'handler':'one','when':{'[0]':1}"), "sluice.json: $.routes[0].when.[0]: not a condition"},
        {ROUTE("'handler':'one','when':{':a':1}"), "sluice.json: $.routes[0].when.:a: not a condition"},
        {ROUTE("'handler':'one','when':{'item':{'$or':1}}"), "sluice.json: $.routes[0].when.item.$or: "},
        {ROUTE("'handler':'one','when':{'events':['REMOVE'],'item':{'a':[1]}}"),
         "sluice.json: $.routes[0].when: no event can meet all of its members"},
        {ROUTE("'handler':'one','when':{'pattern':[{'a':1}]}"), "sluice.json: $.routes[0].when.pattern[0]"},
        {ROUTE("'handler':'one','options':{'only':{'changed':3}}"),
         "sluice.json: $.routes[0].options.only.changed"},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        rig_refused(faults[i].config, &error);
        if (!strstr(error.text, faults[i].path))
            fail_msg("%s: no %s", error.text, faults[i].path);
        assert_int_equal(error.status, SL_FATAL);
    }
}

/* A mistake in a later route: no target of an earlier one was opened. */
static void nothing_is_opened_before_all_is_checked(void **state)
{
    (void)state;
    static const char *const later[] = {"'handler':'nothing'", "'handler':'two','text':'{'",
                                        "'handler':'two','when':{'x':1}", "'handler':'two','x':1"};
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        char config[400];
        struct sl_error error = SL_NO_ERROR;
        snprintf(
            config, sizeof(config),
            "{'on_failure':'mem:dlq','routes':[{'name':'a','handler':'one','to':'mem:x'},{'name':'b',%s}]}",
            later[i]);
        assert_int_equal(rig_refused(config, &error), 0);
        assert_non_null(strstr(error.text, "$.routes[1]"));
    }
}

static void a_closed_pipeline_leaves_no_file_open(void **state)
{
    (void)state;
    size_t before = 0;
    for (int i = 0; i < 3; i++) {
        rig_destroy(rig_new("{'on_failure':'report','routes':[{'name':'a','handler':'one'}]}"));
        before = before ? before : test_open_files();
    }
    assert_int_equal(test_open_files(), before);
}

static void routes_say_what_they_are(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'report','ttl_attribute':'expires','routes':[{'name':'a',"
                              "'handler':'one','to':'mem:x'},{'name':'b','handler':'two'}]}");
    assert_int_equal(sl_pipeline_routes(rig->p), 2);
    assert_string_equal(sl_pipeline_stats(rig->p, 0).target, "mem:x");
    assert_string_equal(sl_pipeline_stats(rig->p, 1).target, "");
    assert_string_equal(sl_pipeline_stats(rig->p, 1).handler, "two");
    assert_span_is(sl_pipeline_ttl_attribute(rig->p), "expires");
    assert_false(sl_pipeline_reports_failures(rig->p));
    rig_event(rig, 7, NULL);
    rig_run(rig, 1000);
    struct sl_route_stats stats = sl_pipeline_stats(rig->p, 1);
    assert_true(stats.matched == 7 && stats.applied == 7 && stats.calls == 1 && !stats.parked &&
                !stats.failed);
    sl_pipeline_stats_reset(rig->p);
    assert_int_equal(sl_pipeline_stats(rig->p, 1).applied, 0);
    assert_string_equal(sl_pipeline_stats(rig->p, 0).target, "mem:x");
    rig_destroy(rig);
}

/* The summary shows the first target that a route writes to, whatever its other options are. */
static void a_route_shows_its_first_target(void **state)
{
    (void)state;
    static const struct {
        const char *members, *target;
    } cases[] = {
        {"", ""},
        {"'text':'{PK}'", ""},
        {"'other':'mem:y'", "mem:y"},
        {"'to':'mem:x','other':'mem:y'", "mem:x"},
        {"'first':'mem:z','other':'mem:y','to':'mem:x','text':'{PK}'", "mem:x"},
        {"'options':{'text':'{PK}','other':'mem:y'}", "mem:y"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig =
            rig_new(json_printf("{'on_failure':'report','routes':[{'name':'a','handler':'one'%s%s}]}",
                                cases[i].members[0] ? "," : "", cases[i].members));
        assert_string_equal(sl_pipeline_stats(rig->p, 0).target, cases[i].target);
        rig_destroy(rig);
    }
}

/* A handler names its option; where that is in the file, the pipeline adds. */
static void what_a_handler_says_has_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *members, *says, *message;
    } cases[] = {
        {"'to':'mem:x'", "refuse to: is bad", "$.routes[0].to: is bad"},
        {"'options':{'to':'mem:x'}", "refuse to: is bad", "$.routes[0].options.to: is bad"},
        {"'text':'x'", "refuse to: is bad", "$.routes[0].to: is bad"},
        {"'to':'mem:x'", "refuse to[2].a: is bad", "$.routes[0].to[2].a: is bad"},
        {"'to':'mem:x'", "refuse to.a: is bad", "$.routes[0].to.a: is bad"},
        {"'to':'mem:x'", "refuse to is bad", "$.routes[0]: to is bad"},
        {"'to':'mem:x'", "refuse to", "$.routes[0]: to"},
        {"'to':'mem:x'", "refuse too: is bad", "$.routes[0]: too: is bad"},
        {"'to':'mem:x'", "refuse : is bad", "$.routes[0]: : is bad"},
        {"'to':'mem:x'", "refuse", "$.routes[0]: the handler one could not be opened and gave no reason"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        rig_refused(
            json_printf("{'on_failure':'report','routes':[{'name':'a','handler':'one','first':'%s',%s}]}",
                        cases[i].says, cases[i].members),
            &error);
        assert_string_equal(strstr(error.text, "sluice.json: ") + strlen("sluice.json: "), cases[i].message);
        assert_int_equal(error.status, SL_FATAL);
    }
}

static enum sl_status silent_per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    (void)error;
    out->needs_table = true;
    return *(const enum sl_status *)self;
}

/* Whatever a plugin returns that is not OK, its route takes no items, and says why. */
static void a_plugin_that_refuses_items_needs_no_reason(void **state)
{
    (void)state;
    for (enum sl_status status = SL_OK; status <= SL_FATAL; status++) {
        struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'a','handler':'one'}]}");
        struct sl_route *route = &rig->p->routes[0];
        struct sl_per_item facts;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_route_per_item(route, &facts, &error), SL_REJECT);
        assert_string_equal(error.text,
                            "the handler one does not say that what it makes follows from the items "
                            "alone");
        sl_error_clear(&error);
        route->loaded.handler.per_item = silent_per_item;
        route->self = &status;
        assert_int_equal(sl_route_per_item(route, &facts, &error), status == SL_OK ? SL_OK : SL_REJECT);
        assert_int_equal(error.status, status == SL_OK ? SL_OK : SL_REJECT);
        assert_string_equal(error.text,
                            status == SL_OK ? "" : "the handler one cannot take items, and gave no reason");
        assert_true(facts.needs_table);
        assert_null(rig->log.route);
        rig_destroy(rig);
    }
}

static enum sl_status silent_accepts(void *self, enum sl_view view, struct sl_error *error)
{
    (void)error;
    return view == SL_VIEW_KEYS_ONLY ? SL_OK : *(const enum sl_status *)self;
}

/* Whatever a plugin returns that is not OK, its route cannot work with the stream, and says why. Each view
 * type is asked about for itself. */
static void a_plugin_that_refuses_a_view_type_needs_no_reason(void **state)
{
    (void)state;
    for (enum sl_status status = SL_OK; status <= SL_FATAL; status++) {
        struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'a','handler':'one'}]}");
        struct sl_route *route = &rig->p->routes[0];
        enum sl_status wanted = status == SL_OK ? SL_OK : SL_FATAL;
        route->loaded.handler.accepts = silent_accepts;
        route->self = &status;
        for (int times = 0; times < 2; times++) {
            struct sl_error error = SL_NO_ERROR;
            assert_int_equal(sl_route_accepts(route, SL_VIEW_KEYS_ONLY, &error), SL_OK);
            assert_int_equal(error.status, SL_OK);
            assert_int_equal(sl_route_accepts(route, SL_VIEW_NEW_IMAGE, &error), wanted);
            assert_int_equal(error.status, wanted);
            assert_string_equal(
                error.text, status == SL_OK ? "" : "the handler one cannot work with the stream's view type");
            assert_null(rig->log.route);
        }
        rig_destroy(rig);
    }
}

static size_t bytes_of(const struct rig *rig, size_t index)
{
    return sl_record_text(sl_batch_record(&rig->batch, index), SL_FIELD_RAW).len;
}

/* And these alone are counted, with their bytes. */
static void condition_chooses_the_records(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'report','routes':[{'name':'a','handler':'one',"
                              "'when':{'pattern':[{'dynamodb':{'NewImage':{'v':{'N':['3','5']}}}}]}}]}");
    rig_event(rig, 10, NULL);
    rig_run(rig, 1000);
    assert_int_equal(rig->handlers[RIG_ONE].n_applied, 2);
    assert_int_equal(rig->handlers[RIG_ONE].applied[0], 3);
    assert_int_equal(rig->handlers[RIG_ONE].applied[1], 5);
    rig_run(rig, 1000);
    struct sl_route_stats stats = sl_pipeline_stats(rig->p, 0);
    assert_int_equal(stats.matched, 4);
    assert_int_equal(stats.applied, 4);
    assert_int_equal(stats.bytes, 2 * (bytes_of(rig, 3) + bytes_of(rig, 5)));
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(faults_inside_a_value_have_their_path),
        cmocka_unit_test(nothing_is_opened_before_all_is_checked),
        cmocka_unit_test(a_closed_pipeline_leaves_no_file_open),
        cmocka_unit_test(routes_say_what_they_are),
        cmocka_unit_test(a_route_shows_its_first_target),
        cmocka_unit_test(what_a_handler_says_has_its_place),
        cmocka_unit_test(a_plugin_that_refuses_items_needs_no_reason),
        cmocka_unit_test(a_plugin_that_refuses_a_view_type_needs_no_reason),
        cmocka_unit_test(condition_chooses_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
