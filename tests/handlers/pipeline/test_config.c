/* sluice.json: each mistake with its exact message, and what a right file becomes. */
#include "tests/support/schema.h"
#include "tests/support/test.h"

#include "base/error.h"
#include "handlers/pipeline/config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const variables[] = {"BUCKET=logs", "EMPTY=", "QUOTE=a\"b\\c", NULL};
static const struct sl_vars vars = {.list = variables};

struct parsed {
    struct sl_arena *arena;
    struct sl_config config;
    struct sl_error error;
};

/* `text` has ' for ". */
static enum sl_status parse_with(struct parsed *p, const char *text, const struct sl_vars *with)
{
    *p = (struct parsed){.arena = sl_arena_new(4096)};
    return sl_config_parse(json_span(text), with, p->arena, &p->config, &p->error);
}

static enum sl_status parse(struct parsed *p, const char *text)
{
    return parse_with(p, text, &vars);
}

#define ROUTE(members)  "{'routes':[{'name':'a','handler':'h'" members "}]}"
#define TOP(members)    "{" members "'routes':[{'name':'a','handler':'h','on_failure':'report'}]}"
#define SECOND(members) "{'on_failure':'report','routes':[{'name':'a','handler':'h'}," members "]}"

static const struct mistake {
    const char *text, *message;
} mistakes[] = {
    {"{'routes':", "line 1, column 10 (byte 10): unexpected token near end of file"},
    {"", "line 1, column 0 (byte 0): '[' or '{' expected near end of file; it is empty; write {\"routes\": "
         "[...]}, or begin with an example of docs/COOKBOOK.md"},
    {" \n",
     "line 2, column 0 (byte 2): '[' or '{' expected near end of file; it is empty; write {\"routes\": "
     "[...]}, or begin with an example of docs/COOKBOOK.md"},
    {"{'routes':[1,]}",
     "line 1, column 14 (byte 14): unexpected token near ']'; the comma before it is one too many"},
    {"{'routes':[1], \n }",
     "line 2, column 2 (byte 18): string or '}' expected near '}'; the comma before it is one too many"},
    {"{'routes':[1 2]}", "line 1, column 14 (byte 14): ']' expected near '2'"},
    {"{'routes':[}", "line 1, column 12 (byte 12): unexpected token near '}'"},
    {"}", "line 1, column 1 (byte 1): '[' or '{' expected near '}'"},
    {"{ // all\n'routes':[]}",
     "line 1, column 3 (byte 3): string or '}' expected near '/'; JSON has no comments"},
    {"{'routes':[] # all\n}", "line 1, column 14 (byte 14): '}' expected near '#'; JSON has no comments"},
    {"{\n'routes': x}", "line 2, column 11 (byte 13): invalid token near 'x'"},
    {"[]", "$: is not an object; write {\"routes\": [...]}"},
    {"{}", "$.routes: is missing: the routes, in the order in which they get each record"},
    {"{'routs':[]}", "$.routs: is not known here; did you mean \"routes\"?"},
    {"{'qwertyuiop':[]}", "$.qwertyuiop: is not known here"},
    {"{'routes':{}}", "$.routes: write an array of 1 to 100 routes"},
    {"{'routes':[]}", "$.routes: write an array of 1 to 100 routes"},
    {"{'routes':[3]}", "$.routes[0]: is not an object; write {\"name\": ..., \"handler\": ...}"},
    {"{'routes':[{}]}",
     "$.routes[0].name: is missing: the route's own name, shown in logs, metrics and parked records"},
    {"{'routes':[{'name':'a'}]}",
     "$.routes[0].handler: is missing: a built-in handler, or a plugin's file name without .so"},
    {"{'routes':[{'name':'a','handlr':'archive','to':'file:x'}]}",
     "$.routes[0].handlr: is not known here; did you mean \"handler\"?"},
    {"{'routes':[{'name':'a b','handler':'h'}]}",
     "$.routes[0].name: \"a b\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"},
    {"{'routes':[{'name':'a','handler':'../h'}]}",
     "$.routes[0].handler: \"../h\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"},
    {"{'routes':[{'name':7,'handler':'h'}]}", "$.routes[0].name: is a number; write a string"},
    {ROUTE(""), "$.routes[0].on_failure: is missing: write a target for rejected records, such as "
                "\"sqs://queue\", or \"report\" if you want none"},
    {ROUTE(",'on_failure':7"), "$.routes[0].on_failure: write a target, a list of targets, or \"report\""},
    {ROUTE(",'on_failure':''"), "$.routes[0].on_failure: write a target, a list of targets, or \"report\""},
    {ROUTE(",'on_failure':[]"),
     "$.routes[0].on_failure: the list is empty; name a target, or write \"report\""},
    {ROUTE(",'on_failure':['sqs://q','report']"),
     "$.routes[0].on_failure[1]: is not a target; write a URL such as \"sqs://queue\""},
    {ROUTE(",'on_failure':'report','when':[]"), "$.routes[0].when: is an array; write an object"},
    {ROUTE(",'on_failure':'report','max_records':0"),
     "$.routes[0].max_records: 0 is out of range; write a number from 1 to 10000"},
    {ROUTE(",'on_failure':'report','max_records':1.5"),
     "$.routes[0].max_records: is a number; write a whole number"},
    {ROUTE(",'on_failure':'report','options':[]"),
     "$.routes[0].options: is not an object; write {\"name\": value, ...}"},
    {ROUTE(",'on_failure':'sqs://${QUEUE}'"),
     "$.routes[0].on_failure: ${QUEUE} is not set in the environment, nor in \"variables\""},
    {ROUTE(",'on_failure':'report','to':[{'x':'${1}'}]"),
     "$.routes[0].to[0].x: \"${\" does not begin a ${NAME}; for the two characters write \"$${\""},
    {ROUTE(",'on_failure':'report','${NO}':1"),
     "$.routes[0].${NO}: ${NO} is not set in the environment, nor in \"variables\""},
    {SECOND("{'name':'a','handler':'h'}"),
     "$.routes[1].name: \"a\" is also the name of $.routes[0]; each route needs its own"},
    {TOP("'max_parked':3,'max_parked':4,"), "$.max_parked: is there twice; keep one"},
    {ROUTE(",'on_failure':'report','to': {'a':'}'} , 'to':1"), "$.routes[0].to: is there twice; keep one"},
    {ROUTE(",'on_failure':'report','options':{'x':1,'y':[{}],'x':2}"),
     "$.routes[0].options.x: is there twice; keep one"},
    {TOP("'on_failure':[7],"), "$.on_failure[0]: is not a target; write a URL such as \"sqs://queue\""},
    {TOP("'on_failure':['a',''],"), "$.on_failure[1]: is not a target; write a URL such as \"sqs://queue\""},
    {TOP("'on_failure':[['a']],"), "$.on_failure[0]: is not a target; write a URL such as \"sqs://queue\""},
    {TOP("'max_parked':12345678901234567890,"),
     "line 1, column 34 (byte 34): too big integer near '12345678901234567890'; write "
     "12345678901234567890.0, with a point, in a condition, and a text for an amount"},
    {"{'routes':[{'name':'','handler':'h'}]}",
     "$.routes[0].name: \"\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"},
    {"{'routes':[{'name':'a','handler':'','on_failure':'report'}]}",
     "$.routes[0].handler: \"\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"},
    {SECOND("{'name':'b','handler':'h'},{'name':'b','handler':'h'}"),
     "$.routes[2].name: \"b\" is also the name of $.routes[1]; each route needs its own"},
    {SECOND("{'name':'b','handler':'h','options':{'a':1,'a':1}}"),
     "$.routes[1].options.a: is there twice; keep one"},
    {TOP("'max_parked':0,"), "$.max_parked: 0 is out of range; write a number from 1 to 1000000"},
    {TOP("'ttl_attribute':'',"), "$.ttl_attribute: is empty; write the attribute's name"},
    {TOP("'ttl_attribute':null,"), "$.ttl_attribute: is null; write a string"},
    {TOP("'trace':'a.',"),
     "$.trace: \"a.\" is not the path of an attribute; write it as \"_otel.traceparent\""},
    {TOP("'view_type':'KEYS_ONLY','trace':'a',"),
     "$.trace: a stream of the view type KEYS_ONLY has no new images, where a writer's context is"},
    {TOP("'view_type':'NEW',"),
     "$.view_type: \"NEW\" is not one of KEYS_ONLY|NEW_IMAGE|OLD_IMAGE|NEW_AND_OLD_IMAGES"},
    {TOP("'report_batch_item_failures':'yes',"),
     "$.report_batch_item_failures: is a string; write true or false"},
    {TOP("'report_batch_item_failure':true,"),
     "$.report_batch_item_failure: is not known here; did you mean \"report_batch_item_failures\"?"},
};

static void mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct parsed p;
        assert_int_equal(parse(&p, mistakes[i].text), SL_FATAL);
        assert_string_equal(p.error.text, mistakes[i].message);
        sl_arena_destroy(p.arena);
    }
}

static void right_file_is_read(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse(&p,
                           "{'max_parked':null,'view_type':'OLD_IMAGE','ttl_attribute':'expires',"
                           "'report_batch_item_failures':true,'on_failure':['sqs://q','s3://${BUCKET}/x'],"
                           "'routes':[{'name':'one','handler':'h','when':{'expired': true},'max_records':7},"
                           "{'name':'two','handler':'h2','on_failure':'report','options':{'x':1}}]}"),
                     SL_OK);
    const struct sl_config *c = &p.config;
    assert_int_equal(c->max_parked, -1);
    assert_true(c->max_parked_is_set && c->reports_failures);
    assert_int_equal(c->view, SL_VIEW_OLD_IMAGE);
    assert_span_is(c->ttl_attribute, "expires");
    assert_int_equal(c->reserve_ms, -1);
    assert_int_equal(c->n_routes, 2);
    assert_string_equal(c->routes[0].name, "one");
    assert_int_equal(c->routes[0].max_records, 7);
    assert_int_equal(c->routes[0].on_failure.n, 2);
    assert_span_is(c->routes[0].on_failure.urls[1], "s3://logs/x");
    assert_true(c->routes[1].on_failure.is_report);
    assert_null(c->routes[0].options.object);
    assert_non_null(c->routes[1].options.object);
    sl_arena_destroy(p.arena);
}

static void variable_stays_inside_its_string(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse(&p, ROUTE(",'on_failure':'sqs://${QUOTE}-$${BUCKET}-${BUCKET}${EMPTY}'")), SL_OK);
    assert_span_is(p.config.routes[0].on_failure.urls[0], "sqs://a\"b\\c-${BUCKET}-logs");
    sl_arena_destroy(p.arena);
}

/* A place is "${NAME}"; "$${" is a "${" that is none. */
static void places_of_variables_are_well_formed(void **state)
{
    (void)state;
    static const char bad[] =
        "$.on_failure: \"${\" does not begin a ${NAME}; for the two characters write \"$${\"";
    static const struct {
        const char *text, *becomes, *message; /* one of the two */
    } cases[] = {
        {"${BUCKET}", "logs", NULL},
        {"${BUCKET}${BUCKET}", "logslogs", NULL},
        {"a$b{c}$", "a$b{c}$", NULL},
        {"$${BUCKET}", "${BUCKET}", NULL},
        {"$${", "${", NULL},
        {"$$${BUCKET}", "$${BUCKET}", NULL},
        {"x${EMPTY}y", "xy", NULL},
        {"${QUOTE}", "a\"b\\c", NULL},
        {"${", NULL, bad},
        {"${}", NULL, bad},
        {"${BUCKET", NULL, bad},
        {"${BUCKET-}", NULL, bad},
        {"${0A}", NULL, bad},
        {"${9}", NULL, bad},
        {"${a:b}", NULL, bad},
        {"${BUCKET}${", NULL, bad},
        {"${A0}", NULL, "$.on_failure: ${A0} is not set in the environment, nor in \"variables\""},
        {"${_a}", NULL, "$.on_failure: ${_a} is not set in the environment, nor in \"variables\""},
        {"${BUCKETS}", NULL, "$.on_failure: ${BUCKETS} is not set in the environment, nor in \"variables\""},
        {"${BUCKE}", NULL, "$.on_failure: ${BUCKE} is not set in the environment, nor in \"variables\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct parsed p;
        const char *config =
            json_printf("{'on_failure':'%s','routes':[{'name':'a','handler':'h'}]}", cases[i].text);
        assert_int_equal(parse(&p, config), cases[i].message ? SL_FATAL : SL_OK);
        if (cases[i].message)
            assert_string_equal(p.error.text, cases[i].message);
        else
            assert_span_is(p.config.routes[0].on_failure.urls[0], cases[i].becomes);
        sl_arena_destroy(p.arena);
    }
}

/* ---- limits ---- */

static void names_have_up_to_64_letters(void **state)
{
    (void)state;
    for (size_t n = 63; n <= 66; n++) {
        char name[80];
        struct parsed p;
        memset(name, 'n', n);
        name[n] = '\0';
        for (int which = 0; which < 2; which++) {
            const char *config =
                json_printf("{'on_failure':'report','routes':[{'name':'%s','handler':'%s'}]}",
                            which ? "a" : name, which ? name : "h");
            assert_int_equal(parse(&p, config), n <= 64 ? SL_OK : SL_FATAL);
            assert_true(n <= 64 || strstr(p.error.text, "is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"));
            sl_arena_destroy(p.arena);
        }
    }
}

static void a_file_has_up_to_100_routes(void **state)
{
    (void)state;
    for (size_t n = 99; n <= 101; n++) {
        struct sl_buffer text;
        struct parsed p;
        sl_buffer_init(&text, 1 << 16);
        sl_buffer_add_str(&text, "{'on_failure':'report','routes':[");
        for (size_t i = 0; i < n; i++)
            sl_buffer_printf(&text, "%s{'name':'r%zu','handler':'h'}", i ? "," : "", i);
        sl_buffer_add_str(&text, "]}");
        sl_buffer_add_char(&text, '\0');
        assert_int_equal(parse(&p, text.ptr), n <= 100 ? SL_OK : SL_FATAL);
        assert_int_equal(p.config.n_routes, n <= 100 ? n : 0);
        assert_string_equal(p.error.text, n <= 100 ? "" : "$.routes: write an array of 1 to 100 routes");
        sl_arena_destroy(p.arena);
        sl_buffer_clean_up(&text);
    }
}

static void view_types_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    static const enum sl_view views[] = {SL_VIEW_KEYS_ONLY, SL_VIEW_NEW_IMAGE, SL_VIEW_OLD_IMAGE,
                                         SL_VIEW_NEW_AND_OLD_IMAGES};
    for (size_t i = 0; i <= 4; i++) {
        struct parsed p;
        const char *member = i < 4 ? json_printf("'view_type':'%s',", names[i]) : "";
        assert_int_equal(
            parse(&p, json_printf("{%s'routes':[{'name':'a','handler':'h','on_failure':'report'}]}", member)),
            SL_OK);
        assert_int_equal(p.config.view, i < 4 ? views[i] : SL_VIEW_UNKNOWN);
        sl_arena_destroy(p.arena);
    }
}

#define MOST (1024 * 1024) /* bytes of a file; four times as many with its variables */

static void a_file_has_up_to_a_megabyte(void **state)
{
    (void)state;
    char *folder = test_folder(), path[200];
    snprintf(path, sizeof(path), "%s/sluice.json", folder);
    for (size_t n = MOST - 1; n <= MOST + 1; n++) {
        char *text = calloc(1, n + 1);
        struct sl_error error = SL_NO_ERROR;
        struct sl_config config;
        struct sl_arena *arena = sl_arena_new(4096);
        memset(text, ' ', n);
        const char *right = json(TOP(""));
        memcpy(text, right, strlen(right));
        test_write(path, text);
        assert_int_equal(sl_config_read(path, &vars, arena, &config, &error), n <= MOST ? SL_OK : SL_FATAL);
        assert_int_equal(strstr(error.text, "sluice.json: is larger than 1048576 bytes") != NULL, n > MOST);
        sl_arena_destroy(arena);
        free(text);
    }
    test_folder_remove(folder);
}

static void variables_may_make_it_four_times_as_long(void **state)
{
    (void)state;
    char *value = calloc(1, MOST + 3);
    memcpy(value, "X=", 2);
    memset(value + 2, 'x', MOST);
    const char *list[] = {value, NULL};
    for (size_t n = 3; n <= 4; n++) {
        struct parsed p;
        const char *config = json_printf("{'on_failure':'%s%s','routes':[{'name':'a','handler':'h'}]}",
                                         "${X}${X}${X}", n > 3 ? "${X}" : "");
        assert_int_equal(parse_with(&p, config, &(struct sl_vars){.list = list}), n > 3 ? SL_FATAL : SL_OK);
        assert_string_equal(p.error.text,
                            n > 3 ? "$: is larger than 4194304 bytes once its variables are filled in" : "");
        sl_arena_destroy(p.arena);
    }
    free(value);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    char *folder = test_folder(), wanted[300];
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_config config;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_config_read(folder, &vars, arena, &config, &error), SL_FATAL);
    snprintf(wanted, sizeof(wanted),
             "%s: cannot be read: Is a directory; name the configuration: --config FILE, in a function "
             "SLUICE_CONFIG",
             folder);
    assert_string_equal(error.text, wanted);
    assert_string_equal(error.code, "ConfigurationNotFound");
    sl_arena_destroy(arena);
    test_folder_remove(folder);
}

static void variable_says_that_failures_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *member;
        enum sl_status status;
        bool reports;
    } cases[] = {
        {NULL, "", SL_OK, false},
        {NULL, "'report_batch_item_failures':true,", SL_OK, true},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=true", "", SL_OK, true},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=1", "", SL_OK, true},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=", "'report_batch_item_failures':true,", SL_OK, true},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=false", "'report_batch_item_failures':true,", SL_OK, false},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=0", "'report_batch_item_failures':true,", SL_OK, false},
        {"SLUICE_REPORT_BATCH_ITEM_FAILURES=yes", "", SL_FATAL, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *list[] = {cases[i].variable, NULL};
        char text[300];
        struct parsed p;
        snprintf(text, sizeof(text), "{%s'on_failure':'report','routes':[{'name':'a','handler':'h'}]}",
                 cases[i].member);
        assert_int_equal(parse_with(&p, text, &(struct sl_vars){.list = list}), cases[i].status);
        assert_int_equal(p.config.reports_failures, cases[i].reports);
        sl_arena_destroy(p.arena);
    }
}

static void file_mistakes_are_named(void **state)
{
    (void)state;
    char *folder = test_folder(), path[200], wanted[400];
    snprintf(path, sizeof(path), "%s/sluice.json", folder);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_config config;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_config_read(path, &vars, arena, &config, &error), SL_FATAL);
    snprintf(wanted, sizeof(wanted),
             "%s: cannot be read: No such file or directory; name the configuration: --config FILE, in a "
             "function SLUICE_CONFIG",
             path);
    assert_string_equal(error.text, wanted);
    test_write(path, json("{'routes':1}"));
    sl_error_clear(&error);
    assert_int_equal(sl_config_read(path, &vars, arena, &config, &error), SL_FATAL);
    snprintf(wanted, sizeof(wanted), "%s: $.routes: write an array of 1 to 100 routes", path);
    assert_string_equal(error.text, wanted);
    sl_arena_destroy(arena);
    test_folder_remove(folder);
}

/* ---- a handler's rows ---- */

static const struct sl_option rows[] = {
    {.name = "to", .type = SL_OPTION_OBJECTS, .flags = SL_OPTION_REQUIRED, .help = "where"},
    {.name = "format",
     .type = SL_OPTION_ENUM,
     .values = "record|item",
     .fallback = "record",
     .help = "lines"},
    {.name = "level", .type = SL_OPTION_INTEGER, .min = -1, .max = 9, .fallback = "6"},
    {.name = "any", .type = SL_OPTION_INTEGER},
    {.name = "strict", .type = SL_OPTION_BOOL, .fallback = "true"},
    {.name = "secret", .type = SL_OPTION_ENUM, .values = "x|y", .flags = SL_OPTION_SECRET},
    {.name = "key", .type = SL_OPTION_TEMPLATE},
    {.name = "extra", .type = SL_OPTION_JSON},
    {.type = SL_OPTION_END},
};

static enum sl_status take(struct parsed *p, struct sl_option_set *set, const char *members)
{
    char text[1000];
    snprintf(text, sizeof(text), "{'routes':[{'name':'a','handler':'h','on_failure':'report'%s}]}", members);
    if (parse(p, text) != SL_OK)
        return p->error.status;
    const struct sl_config_route *route = &p->config.routes[0];
    sl_options_init(set, rows, p->arena);
    enum sl_status status = sl_options_take(set, &route->members, &p->error);
    if (status == SL_OK && route->options.object)
        status = sl_options_take(set, &route->options, &p->error);
    return status == SL_OK ? sl_options_end(set, route->path, &p->error) : status;
}

static const struct mistake option_mistakes[] = {
    {"", "$.routes[0].to: is missing: where"},
    {",'to':''", "$.routes[0].to: is empty (object store target)"},
    {",'to':[]", "$.routes[0].to: is an array; write a string"},
    {",'to':'a','options':{'to':'b'}", "$.routes[0].options.to: is also given at $.routes[0].to; keep one"},
    {",'to':'a','format':'recrod'",
     "$.routes[0].format: \"recrod\" is not one of record|item; did you mean \"record\"?"},
    {",'to':'a','format':'rec'", "$.routes[0].format: \"rec\" is not one of record|item"},
    {",'to':'a','secret':'hush'", "$.routes[0].secret: is not one of x|y"},
    {",'to':'a','options':{'level':10}",
     "$.routes[0].options.level: 10 is out of range; write a number from -1 to 9"},
    {",'to':'a','level':true", "$.routes[0].level: is true or false; write a whole number"},
    {",'to':'a','level':null", "$.routes[0].level: is null; write a whole number"},
    {",'to':'a','strict':1", "$.routes[0].strict: is a number; write true or false"},
    {",'to':'a','fromat':'item'", "$.routes[0].fromat: is not known here; did you mean \"format\"?"},
    {",'to':'a','options':{'stirct':1}",
     "$.routes[0].options.stirct: is not known here; did you mean \"strict\"?"},
    {",'to':'a','on_failures':1", "$.routes[0].on_failures: is not known here; did you mean \"on_failure\"?"},
    {",'to':'a','options':{'when':{}}", "$.routes[0].options.when: is not known here"},
    {",'to':'a','message':'x'", "$.routes[0].message: is not known here; it is an option of notify"},
};

static void option_mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(option_mistakes) / sizeof(option_mistakes[0]); i++) {
        struct parsed p;
        struct sl_option_set set;
        assert_int_equal(take(&p, &set, option_mistakes[i].text), SL_FATAL);
        assert_string_equal(p.error.text, option_mistakes[i].message);
        sl_arena_destroy(p.arena);
    }
}

static void options_are_read(void **state)
{
    (void)state;
    struct parsed p;
    struct sl_option_set set;
    assert_int_equal(
        take(&p, &set, ",'to':'file:out','any':-5,'options':{'strict':false,'extra':{'a':[1, 2],'a':3}}"),
        SL_OK);
    assert_span_is(sl_options_get(&set, "to")->text, "file:out");
    assert_span_is(sl_options_get(&set, "format")->text, "record");
    assert_int_equal(sl_options_get(&set, "level")->integer, 6);
    assert_int_equal(sl_options_get(&set, "any")->integer, -5);
    assert_false(sl_options_get(&set, "strict")->boolean);
    assert_span_is(sl_options_get(&set, "extra")->text, json("{'a':[1, 2],'a':3}"));
    assert_false(sl_options_get(&set, "key")->is_set);
    assert_null(sl_options_get(&set, "nothing"));
    sl_arena_destroy(p.arena);
}

static void bad_tables_are_named(void **state)
{
    (void)state;
    static const struct {
        struct sl_option rows[3];
        const char *message;
    } cases[] = {
        {{{.name = NULL, .type = SL_OPTION_TEXT}}, "row 0 (\"\") of its option table: it has no name"},
        {{{.name = "A", .type = SL_OPTION_TEXT}},
         "row 0 (\"A\") of its option table: its name is not made of a-z, 0-9 and _"},
        {{{.name = "a", .type = 99}}, "row 0 (\"a\") of its option table: its type is not known"},
        {{{.name = "a", .type = SL_OPTION_ENUM}}, "row 0 (\"a\") of its option table: it has no values"},
        {{{.name = "a", .type = SL_OPTION_TEXT}, {.name = "a", .type = SL_OPTION_BOOL}},
         "row 1 (\"a\") of its option table: its name is there twice"},
        {{{.name = "a", .type = SL_OPTION_INTEGER, .min = 2, .max = 1}},
         "row 0 (\"a\") of its option table: its min is above its max"},
        {{{.name = "a", .type = SL_OPTION_INTEGER, .min = 1, .max = 2, .fallback = "3"}},
         "row 0 (\"a\") of its option table: its fallback is not a number in range"},
        {{{.name = "a", .type = SL_OPTION_BOOL, .fallback = "yes"}},
         "row 0 (\"a\") of its option table: its fallback is neither true nor false"},
        {{{.name = "a", .type = SL_OPTION_ENUM, .values = "x|y", .fallback = "z"}},
         "row 0 (\"a\") of its option table: its fallback is not one of its values"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_options_check_rows(cases[i].rows, &error), SL_FATAL);
        assert_string_equal(error.text, cases[i].message);
    }
    assert_int_equal(sl_options_check_rows(rows, NULL), SL_OK);
    assert_int_equal(sl_options_check_rows(NULL, NULL), SL_OK);
}

static void near_names_are_found(void **state)
{
    (void)state;
    static const char *const names[] = {"archive", "replicate", "aggregate", "notify", NULL};
    assert_string_equal(sl_options_closest_name("archvie", NULL, names), "archive");
    assert_string_equal(sl_options_closest_name("notfy", NULL, names), "notify");
    assert_string_equal(sl_options_closest_name("replica", NULL, names), "replicate");
    assert_null(sl_options_closest_name("sqlite", NULL, names));
    assert_null(sl_options_closest_name("x", NULL, (const char *const[]){"abcd", NULL}));
}

static void schema_and_help_come_from_the_rows(void **state)
{
    (void)state;
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    static const struct sl_handler handler = {.abi = SL_HANDLER_ABI, .name = "h", .options = rows};
    sl_config_schema((const struct sl_handler *const[]){&handler, NULL}, &text);
    json_t *schema = json_loadb(text.ptr, text.len, 0, NULL);
    assert_non_null(schema);
    const char *kind, *minimum;
    json_t *own = json_object_get(json_object_get(schema, "$defs"), "h");
    int max;
    assert_int_equal(json_unpack(own, "{s:{s:{s:s},s:{s:i},s:{s:[{s:[s]}]}}}", "properties", "to", "$ref",
                                 &kind, "level", "maximum", &max, "format", "anyOf", "enum", &minimum),
                     0);
    assert_string_equal(kind, "#/$defs/objects");
    assert_int_equal(max, 9);
    json_decref(schema);
    sl_buffer_reset(&text);
    sl_options_help(rows + 1, &text);
    sl_buffer_add_char(&text, '\0');
    assert_non_null(strstr(text.ptr, "| `format` | record\\|item | `record` | lines |\n"));
    assert_non_null(strstr(text.ptr, "| `level` | integer, -1 to 9 | `6` |  |\n"));
    sl_buffer_clean_up(&text);
}

/* A plugin may have no rows at all, or an empty list of them: its routes have what every route has. */
static void a_handler_without_options_has_none(void **state)
{
    (void)state;
    static const struct sl_option empty[] = {{.type = SL_OPTION_END}};
    static const struct sl_handler bare = {.abi = SL_HANDLER_ABI, .name = "bare"},
                                   none = {.abi = SL_HANDLER_ABI, .name = "none", .options = empty},
                                   some = {.abi = SL_HANDLER_ABI, .name = "some", .options = rows};
    static const struct {
        const char *route;
        enum test_schema_verdict verdict;
    } cases[] = {
        {"'handler':'bare'", TEST_SCHEMA_YES},
        {"'handler':'bare','to':'file:x'", TEST_SCHEMA_NO},
        {"'handler':'none'", TEST_SCHEMA_YES},
        {"'handler':'none','level':3", TEST_SCHEMA_NO},
        {"'handler':'some','to':'file:x'", TEST_SCHEMA_YES},
        {"'handler':'some'", TEST_SCHEMA_NO},
    };
    const struct sl_handler *const handlers[] = {&bare, &some, &none, NULL};
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    sl_config_schema(handlers, &text);
    json_t *schema = json_loadb(text.ptr, text.len, 0, NULL);
    assert_non_null(schema);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *config =
            json_printf("{'on_failure':'report','routes':[{'name':'a',%s}]}", cases[i].route);
        json_t *value = json_loads(config, 0, NULL);
        if (test_schema_fits(schema, schema, value) != cases[i].verdict)
            fail_msg("%s: %d", config, (int)test_schema_fits(schema, schema, value));
        json_decref(value);
    }
    json_decref(schema);
    sl_buffer_clean_up(&text);
}

/* ---- variables of the configuration ---- */

#define VARIABLES(members)                                                                                   \
    "{'variables':{" members "},'on_failure':'report','routes':[{'name':'a','handler':'h'}]}"

static size_t asked;

/* Knows one secret. */
static enum sl_status read_secret(void *arg, struct sl_span reference, const char **out,
                                  struct sl_error *error)
{
    assert_ptr_equal(arg, &asked);
    asked++;
    *out = "a\"secret";
    if (sl_span_is(reference, "ssm:/known") || sl_span_is(reference, "secretsmanager:s:known"))
        return SL_OK;
    return sl_fail(error, SL_RETRY, "Nowhere", "%.*s: nobody knows it", SL_ARG(reference));
}

static void variables_have_three_sources(void **state)
{
    (void)state;
    static const struct {
        const char *list[3], *members, *value; /* of X; NULL: it is not there */
        size_t asked;
    } cases[] = {
        {{NULL}, "'X':'own'", "own", 0},
        {{NULL}, "'X':''", "", 0},
        {{NULL}, "'Y':'own'", NULL, 0},
        {{"X=outer"}, "'X':'own'", "outer", 0},
        {{"X="}, "'X':'own'", "", 0},
        {{"SLUICE_VARIABLES={\"X\":\"given\"}"}, "'X':'own'", "given", 0},
        {{"X=outer", "SLUICE_VARIABLES={\"X\":\"given\"}"}, "", "outer", 0},
        {{"A=b"}, "'X':'a ${A} $${A}'", "a b ${A}", 0},
        {{"A=q\"q"}, "'X':'${A}'", "q\"q", 0},
        {{NULL}, "'X':'${ssm:/known}'", "a\"secret", 1},
        {{NULL}, "'X':'${secretsmanager:s:known}','Y':'${ssm:/known}'", "a\"secret", 2},
        {{"X=outer"}, "'X':'${ssm:/known}'", "outer", 0},
        {{"SLUICE_VARIABLES={\"X\":\"${ssm:/known}\"}"}, "'X':'${ssm:/unknown}'", "a\"secret", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *list[] = {cases[i].list[0], cases[i].list[1], NULL};
        const struct sl_vars with = {.list = list, .secret = read_secret, .arg = &asked};
        struct parsed p;
        char text[300];
        snprintf(text, sizeof(text), VARIABLES("%s"), cases[i].members);
        asked = 0;
        if (parse_with(&p, text, &with) != SL_OK)
            fail_msg("%s: %s", text, p.error.text);
        const char *value = sl_vars_get(&p.config.vars, "X");
        assert_int_equal(value == NULL, cases[i].value == NULL);
        if (value)
            assert_string_equal(value, cases[i].value);
        assert_int_equal(asked, cases[i].asked);
        sl_arena_destroy(p.arena);
    }
}

static void wrong_variables_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *given, *members, *message;
    } cases[] = {
        {NULL, "'':'x'", "$.variables.: is not the name of a variable"},
        {NULL, "'1A':'x'", "$.variables.1A: is not the name of a variable"},
        {NULL, "'A B':'x'", "$.variables.A B: is not the name of a variable"},
        {NULL, "'AWS_REGION':'x'", "$.variables.AWS_REGION: is read before the configuration"},
        {NULL, "'SLUICE_METRICS':'x'", "$.variables.SLUICE_METRICS: is read before the configuration"},
        {NULL, "'X':5", "$.variables.X: is not a text"},
        {NULL, "'X':null", "$.variables.X: is not a text"},
        {NULL, "'X':'a','X':'b'", "$.variables.X: is there twice"},
        {NULL, "'Y':'a','X':'${Y}'", "$.variables.X: ${Y} is not set"}, /* only the environment's */
        {NULL, "'X':'${Y'", "$.variables.X: \"${\" does not begin"},
        {NULL, "'X':'a ${ssm:/known}'", "$.variables.X: a secret is the whole value"},
        {NULL, "'X':'${ssm:/known} ${ssm:/known}'", "$.variables.X: a secret is the whole value"},
        {NULL, "'X':'${ssm:/known'", "$.variables.X: a secret is the whole value"},
        {NULL, "'X':'${ssm:/unknown}'", "$.variables.X: ssm:/unknown: nobody knows it"},
        {"SLUICE_VARIABLES=[]", "", "the variable SLUICE_VARIABLES is not a JSON object"},
        {"SLUICE_VARIABLES={", "", "the variable SLUICE_VARIABLES is not a JSON object"},
        {"SLUICE_VARIABLES={\"X\":1}", "", "the variable SLUICE_VARIABLES.X: is not a text"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *list[] = {cases[i].given, NULL};
        const struct sl_vars with = {.list = list, .secret = read_secret, .arg = &asked};
        struct parsed p;
        char text[300];
        snprintf(text, sizeof(text), VARIABLES("%s"), cases[i].members);
        assert_int_equal(parse_with(&p, text, &with), strstr(text, "/unknown") ? SL_RETRY : SL_FATAL);
        if (strncmp(p.error.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: %s", text, p.error.text);
        sl_arena_destroy(p.arena);
    }
    struct parsed p;
    assert_int_equal(parse(&p, "{'variables':[],'on_failure':'report','routes':[]}"), SL_FATAL);
    assert_non_null(strstr(p.error.text, "$.variables: is not an object"));
    sl_arena_destroy(p.arena);
    assert_int_equal(parse(&p, ROUTE(",'on_failure':'sqs://${ssm:/known}'")), SL_FATAL);
    assert_non_null(
        strstr(p.error.text, "$.routes[0].on_failure: a secret is the whole value of a variable"));
    sl_arena_destroy(p.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_have_three_sources),
        cmocka_unit_test(wrong_variables_are_named),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(right_file_is_read),
        cmocka_unit_test(variable_stays_inside_its_string),
        cmocka_unit_test(places_of_variables_are_well_formed),
        cmocka_unit_test(names_have_up_to_64_letters),
        cmocka_unit_test(a_file_has_up_to_100_routes),
        cmocka_unit_test(view_types_are_read),
        cmocka_unit_test(a_file_has_up_to_a_megabyte),
        cmocka_unit_test(variables_may_make_it_four_times_as_long),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(variable_says_that_failures_are_reported),
        cmocka_unit_test(file_mistakes_are_named),
        cmocka_unit_test(option_mistakes_are_named),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(bad_tables_are_named),
        cmocka_unit_test(near_names_are_found),
        cmocka_unit_test(schema_and_help_come_from_the_rows),
        cmocka_unit_test(a_handler_without_options_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
