/* Every place of a configuration, with values of every other kind, at and beyond every limit, with members
 * too many and too few: what docs/sluice.schema.json refuses, the parser refuses, and its message names the
 * place. What the schema takes, the parser takes, but for what a schema cannot say. */
#include "handlers/pipeline/pipeline.h"
#include "tests/support/schema.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Together they have every option, and every member that an option has. (What the schema has to look ahead
 * for stands apart, as it leaves open whether the whole fits.) */
static const char *const whole[] = {
    "{'on_failure':['sqs://q','s3://b/x'],'report_batch_item_failures':true,'ttl_attribute':'ttl',"
    "'trace':'`a.b`[0].traceparent','trace_to':'xray:',"
    "'max_parked':5,'deadline_reserve_ms':500,'$schema':'x','variables':{'X':'y'},'routes':[{'name':'a','"
    "handler':'archive',"
    "'on_failure':'sqs://q','max_records':100,'max_bytes':2048,'to':'s3://b/x','format':'record',"
    "'key':'{table}/','missing':'skip','compression':'none','level':1},"
    "{'name':'b','handler':'notify','to':'sqs://q','options':{'body':'json'}}]}",
    "{'on_failure':'report','view_type':'NEW_AND_OLD_IMAGES','routes':[{'name':'n','handler':'notify',"
    "'to':'sqs://q','message':'{a}','escape':'json','body':'record','subject':'s {a}','group':'{a}',"
    "'dedupe':'{b}','missing':'empty'}]}",
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'dynamodb://replica',"
    "'guard':'inline','guard_attribute':'g','write_attribute':'w','deleted_attribute':'d',"
    "'expires_attribute':'e','tombstones':{'table':'marks','key':'K'},'tombstone_days':20,'epoch':1,"
    "'source':'dynamodb://source','set':{'s':'{x}'},'rename':{'o':'n','p':'q'},"
    "'key':{'PK':'{tenant}#{id}','SK':'{id}'},'expired':'keep','replicated':'copy','unsigned':'copy'}]}",
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'dynamodb://replica',"
    "'guard':{'table':'guards','key':'K'},'project':['a','b']}]}",
    "{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'dynamodb://totals',"
    "'counters':[{'key':{'PK':'{a}','SK':'x'},'add':{'n':1,'sum':'{b}'},"
    "'running_max':{'top':'{b}'},'running_min':{'low':'1.5'},'distinct':{'c':'{c}'},'members':{'by':'{b}'}},"
    "{'key':{'PK':'y','SK':'x'},'add':{'n':1}}],'per':'item','mode':'exact',"
    "'ledger':{'table':'ledger','key':'L','name':'t'},'forget_after_days':30,'expires_attribute':'e',"
    "'expired':'subtract','epoch':2,'missing':'skip','empty':'keep','shards':3,'own_rows':'mark'}]}",
    "{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'sqlite:x?table=t',"
    "'counters':[{'key':{'PK':'x'},'add':{'n':1}}],'per':'event','mode':'at-least-once'}]}",
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'dynamodb://replica',"
    "'when':{'events':['INSERT']},'where':{'status':['OPEN']},'drop':['a.b','l[*].c']},"
    "{'name':'n','handler':'notify','to':'sqs://q','attributes':{'k.l':'{a}','m':'x'}},"
    "{'name':'t','handler':'aggregate','to':'dynamodb://totals','counters':[{'key':{'PK':'x'},'add':{'n':1},"
    "'when':{'a':{'S':['x']}},'where':{'status':['OPEN']}}]}]}",
    "{'on_failure':'report','routes':[{'name':'v','handler':'view','to':'dynamodb://view',"
    "'key':{'PK':'P#{each.sku}','SK':'O#{id|key}#{each.n|key}'},'each':'lines[*]','where':{'each':{'n':[1]}},"
    "'item':{'n':'{each.n}'},'missing':'skip','list':{'table':'lists','key':'K','name':'n'},"
    "'expires_attribute':'e','tombstone_days':20,'epoch':1,'expired':'keep'}]}",
    "{'on_failure':'report','routes':[{'name':'v','handler':'view','to':'dynamodb://view',"
    "'key':{'PK':'{email}','SK':'{id}'},'project':['a','b'],'drop':['b.c'],'rename':{'a':'x'},"
    "'set':{'s':'{x}'},'list':{'name':'n'}}]}",
};

/* What the parser says where a schema has nothing to say: one option beside another, texts of a language. */
static const char *const beyond[] = {"only ",
                                     "without its image",
                                     "spread the counters",
                                     "a table that has both",
                                     "not with ",
                                     " too",
                                     "replace each other",
                                     "is not such a target",
                                     "is also the name of",
                                     "is not a built-in handler",
                                     "is the replica itself",
                                     "so it cannot be their key",
                                     "the replica cannot keep these rows",
                                     "two attributes become",
                                     "makes this attribute",
                                     "which replicate itself writes",
                                     "counters[0] has others",
                                     "no amount that is 1",
                                     "is not a number"};

/* ---- a pipeline that opens nothing ---- */

static size_t n_open; /* ports */

static void close_objects(struct sl_object_port *port)
{
    (void)port;
    n_open--;
}

static void close_table(struct sl_table_port *port)
{
    (void)port;
    n_open--;
}

static void close_queue(struct sl_queue_port *port)
{
    (void)port;
    n_open--;
}

static enum sl_status no_target(struct sl_span url, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "InvalidConfiguration", "\"%.*s\" is not such a target", SL_ARG(url));
}

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    static struct sl_object_port port = {
        .size = sizeof(port), .max_body_bytes = 1 << 20, .close = close_objects};
    (void)sinks;
    if (sl_target_kind(url) != SL_PORT_OBJECTS)
        return no_target(url, error);
    n_open++;
    *out = &port;
    return SL_OK;
}

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    static struct sl_table_port port = {
        .size = sizeof(port), .max_item_bytes = 400 << 10, .close = close_table, .can = SL_TABLE_ALL};
    (void)sinks;
    if (sl_target_kind(url) != SL_PORT_TABLE)
        return no_target(url, error);
    n_open++;
    *out = &port;
    return SL_OK;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    static struct sl_queue_port port = {
        .size = sizeof(port), .max_message_bytes = 256 << 10, .close = close_queue};
    (void)sinks;
    if (sl_target_kind(url) != SL_PORT_QUEUE)
        return no_target(url, error);
    n_open++;
    *out = &port;
    return SL_OK;
}

static const struct sl_openers openers = {
    .kind = sl_target_kind, .objects = open_objects, .table = open_table, .queue = open_queue};

struct trial {
    json_t *schema;
    char *folder, *config_path;
    struct sl_log log;
    struct sl_clock_virtual clock;
    struct sl_sinks sinks;
    size_t refused, taken;
};

static bool opens(struct trial *t, const char *text, struct sl_error *error)
{
    static const char *const nowhere[] = {NULL};
    static const struct sl_vars none = {.list = nowhere};
    struct sl_pipeline_options options = {.config_path = t->config_path,
                                          .vars = &none,
                                          .clock = &t->clock.clock,
                                          .log = &t->log,
                                          .sinks = &t->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "",
                                          .openers = &openers};
    struct sl_pipeline *p = NULL;
    test_write(t->config_path, text);
    bool is_open = sl_pipeline_open(&options, &p, error) == SL_OK;
    sl_pipeline_close(p);
    if (n_open != 0)
        fail_msg("%zu targets stay open: %s", n_open, text);
    return is_open;
}

/* ---- what is expected ---- */

static bool is_beyond(const char *text)
{
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
        if (strstr(text, beyond[i]))
            return true;
    return false;
}

/* The message's path is the place's, or of what is in it or around it; what is missing may be missed at
 * another place, by its name. */
static bool names_place(const char *text, const char *place)
{
    const char *path = strstr(text, "sluice.json: $");
    if (!path)
        return false;
    path += strlen("sluice.json: ");
    size_t n = 0;
    while (path[n] && path[n] == place[n])
        n++;
    const char *member = strrchr(place, '.');
    bool is_missing = member && strstr(path, member + 1) && (strstr(path, "missing") || strstr(path, "set "));
    return !place[n] || strchr(": ", path[n]) || is_missing;
}

/* The changed configuration; `place` is where. */
static void expect(struct trial *t, const json_t *config, const char *place)
{
    struct sl_error error = SL_NO_ERROR;
    char *text = json_dumps(config, JSON_COMPACT);
    enum test_schema_verdict fits = test_schema_fits(t->schema, t->schema, config);
    bool is_open = opens(t, text, &error);
    if (fits == TEST_SCHEMA_NO && is_open)
        fail_msg("%s: the schema refuses what the parser takes:\n%.600s", place, text);
    if (fits == TEST_SCHEMA_YES && !is_open && !is_beyond(error.text))
        fail_msg("%s: the schema takes what the parser refuses: %s\n%.600s", place, error.text, text);
    if (fits == TEST_SCHEMA_NO && !names_place(error.text, place))
        fail_msg("%s is wrong, and the message is: %s\n%.600s", place, error.text, text);
    assert_true(is_open || (error.status == SL_FATAL && !strcmp(error.code, "InvalidConfiguration")));
    t->refused += fits == TEST_SCHEMA_NO;
    t->taken += fits == TEST_SCHEMA_YES;
    free(text);
}

/* ---- changes of one place ---- */

/* A place in a configuration: a member of an object, or an element of an array. */
struct place {
    json_t *config, *parent;
    const char *name; /* NULL: `index` */
    size_t index;
    const char *path;
};

static json_t *value_of(const struct place *p)
{
    return p->name ? json_object_get(p->parent, p->name) : json_array_get(p->parent, p->index);
}

static void put(const struct place *p, json_t *value)
{
    if (p->name)
        json_object_set_new(p->parent, p->name, value);
    else
        json_array_set_new(p->parent, p->index, value);
}

static void expect_with(struct trial *t, const struct place *p, json_t *value)
{
    json_t *was = json_incref(value_of(p));
    put(p, value);
    expect(t, p->config, p->path);
    put(p, was);
}

static json_t *letters(size_t n)
{
    char text[300];
    memset(text, 'n', n);
    return json_stringn(text, n);
}

static void other_kinds(struct trial *t, const struct place *p)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "false",
                                         "0",
                                         "7",
                                         "-7",
                                         "1.5",
                                         "\"\"",
                                         "\"x\"",
                                         "\"{\"",
                                         "\"}\"",
                                         "\"{a}\"",
                                         "\"a\\\"b\"",
                                         "\"1e5\"",
                                         "\"-{a}e2\"",
                                         "\"{NewImage.a}\"",
                                         "[]",
                                         "{}",
                                         "[7]",
                                         "[\"\"]",
                                         "[\"x\"]",
                                         "{\"x\":7}",
                                         "{\"\":\"{a}\"}",
                                         "{\"x\":\"{a}\"}",
                                         "{\"x\":\"\"}",
                                         "{\"a\":\"{a}\",\"b\":\"{b}\",\"c\":\"{c}\"}",
                                         "{\"a\":\"{a}\",\"b\":\"{b}\"}",
                                         "{\"a\\\"\":\"{a}\"}"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        expect_with(t, p, json_loads(values[i], JSON_DECODE_ANY, NULL));
    for (size_t n = 254; n < 258; n++) {
        expect_with(t, p, letters(n));
        json_t *named = json_object(), *name = letters(n);
        json_object_set_new(named, json_string_value(name), json_string("{a}"));
        expect_with(t, p, named);
        json_decref(name);
    }
    expect_with(t, p, letters(64));
    expect_with(t, p, letters(65));
}

/* Every limit that the schema has, and beside it: at each integer. */
static void limits(struct trial *t, const struct place *p, const json_t *schema)
{
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)schema, name, value)
    {
        bool is_limit = strcmp(name, "minimum") == 0 || strcmp(name, "maximum") == 0;
        for (int by = -1; is_limit && json_is_integer(value) && by <= 1; by++)
            expect_with(t, p, json_integer(json_integer_value(value) + by));
        limits(t, p, value);
    }
    json_array_foreach(schema, i, value) limits(t, p, value);
}

/* Every word that the schema has. */
static void words(struct trial *t, const struct place *p, const json_t *schema)
{
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(json_object_get(schema, "enum"), i, value) expect_with(t, p, json_deep_copy(value));
    json_object_foreach((json_t *)schema, name, value) words(t, p, value);
    json_array_foreach(schema, i, value) words(t, p, value);
}

static void without(struct trial *t, const struct place *p)
{
    json_t *was = json_incref(value_of(p));
    if (p->name)
        json_object_del(p->parent, p->name);
    else
        json_array_remove(p->parent, p->index);
    expect(t, p->config, p->path);
    if (p->name)
        json_object_set_new(p->parent, p->name, was);
    else
        json_array_insert_new(p->parent, p->index, was);
}

/* One member more, and as many elements as there may be, and one more. */
static void more(struct trial *t, const struct place *p, const json_t *value)
{
    static const size_t sizes[] = {2, 39, 40, 41, 100, 101};
    if (json_is_object(value)) {
        json_t *wider = json_deep_copy(value);
        json_object_set_new(wider, "unheard_of", json_string("{a}"));
        expect_with(t, p, wider);
    }
    for (size_t i = 0; json_is_array(value) && json_array_size(value) > 0 && i < 6; i++) {
        json_t *longer = json_array();
        for (size_t k = 0; k < sizes[i]; k++)
            json_array_append(longer, json_array_get(value, 0));
        expect_with(t, p, longer);
    }
}

static void every_place(struct trial *t, json_t *config, json_t *parent, const char *path);

static void one_place(struct trial *t, const struct place *p)
{
    json_t *value = value_of(p);
    bool is_condition = p->name && (strcmp(p->name, "when") == 0 || strcmp(p->name, "where") == 0);
    /* (Another handler's name would make all its options wrong.) */
    if (p->name && strcmp(p->name, "handler") == 0)
        return;
    without(t, p);
    if (is_condition) {
        expect_with(t, p, json_integer(7));
        expect_with(t, p, json_array());
        return;
    }
    other_kinds(t, p);
    more(t, p, value);
    if (json_is_integer(value))
        limits(t, p, t->schema);
    if (json_is_string(value) && json_object_get(p->parent, "handler"))
        words(t, p,
              json_object_get(json_object_get(t->schema, "$defs"),
                              json_string_value(json_object_get(p->parent, "handler"))));
    every_place(t, p->config, value, p->path);
}

static void every_place(struct trial *t, json_t *config, json_t *parent, const char *path)
{
    char below[600];
    json_t *copy = json_deep_copy(parent), *value;
    const char *name;
    size_t i;
    json_object_foreach(copy, name, value)
    {
        snprintf(below, sizeof(below), "%s.%s", path, name);
        one_place(t, &(struct place){config, parent, name, 0, below});
    }
    json_array_foreach(copy, i, value)
    {
        snprintf(below, sizeof(below), "%s[%zu]", path, i);
        one_place(t, &(struct place){config, parent, NULL, i, below});
    }
    json_decref(copy);
}

static void set_up(struct trial *t)
{
    *t = (struct trial){.folder = test_folder_in_memory(),
                        .schema = json_load_file("docs/sluice.schema.json", 0, NULL)};
    assert_non_null(t->schema);
    if (asprintf(&t->config_path, "%s/sluice.json", t->folder) < 0)
        abort();
    sl_clock_virtual_init(&t->clock, 1, 1);
    sl_log_init(&t->log, STDERR_FILENO, SL_OFF, SL_LOG_TEXT, &t->clock.clock);
}

static void clean_up(struct trial *t)
{
    sl_log_clean_up(&t->log);
    test_folder_remove(t->folder);
    free(t->config_path);
    json_decref(t->schema);
}

/* ---- names ---- */

/* The names of members, by characters and ends: those that destinations and expressions do not take. */
struct naming {
    const char *config; /* %s is the name */
    bool (*takes)(char c);
    bool has_inner_dots; /* not at an end, and not two of them */
};

static bool is_service_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_quotable(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

#define ROUTE(members) "{'on_failure':'report','routes':[{'name':'r'," members "}]}"
#define TOTALS         "'handler':'aggregate','to':'dynamodb://t','counters':[{'key':{'PK':'x'},"
#define REPLICA        "'handler':'replicate','to':'dynamodb://t',"

static const struct naming namings[] = {
    {ROUTE("'handler':'notify','to':'sqs://q','attributes':{'%s':'x'}"), is_service_char, true},
    {ROUTE(TOTALS "'add':{'%s':1}}]"), is_quotable, false},
    {ROUTE(TOTALS "'running_max':{'%s':1}}]"), is_quotable, false},
    {ROUTE(TOTALS "'distinct':{'%s':'{a}'}}]"), is_quotable, false},
    {ROUTE(TOTALS "'add':{'n':1}}],'ledger':{'name':'%s'}"), is_quotable, false},
    {ROUTE(TOTALS "'add':{'n':1}}],'ledger':{'table':'l','key':'%s'}"), is_quotable, false},
    {ROUTE(TOTALS "'add':{'n':1}}],'expires_attribute':'%s'"), is_quotable, false},
    {ROUTE("'handler':'aggregate','to':'dynamodb://t','counters':[{'key':{'%s':'x'},'add':{'n':1}}]"),
     is_quotable, false},
    {ROUTE(REPLICA "'guard':{'table':'%s'}"), is_quotable, false},
    {ROUTE(REPLICA "'tombstones':{'table':'m','key':'%s'}"), is_quotable, false},
    {ROUTE(REPLICA "'guard_attribute':'%s'"), is_quotable, false},
    {ROUTE(REPLICA "'rename':{'old':'%s'}"), is_quotable, false},
    {ROUTE(REPLICA "'key':{'%s':'{a}'}"), is_quotable, false},
    {ROUTE(REPLICA "'set':{'%s':'{a}'}"), is_quotable, false},
};

static void expect_name(struct trial *t, const struct naming *naming, const char *name, bool is_taken)
{
    struct sl_error error = SL_NO_ERROR;
    char text[1200], written[600];
    json_t *string = json_string(name);
    char *quoted = json_dumps(string, JSON_ENCODE_ANY);
    snprintf(written, sizeof(written), "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    const char *config = json(naming->config), *at = strstr(config, "%s");
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - config), config, written, at + 2);
    if (opens(t, text, &error) != is_taken)
        fail_msg("%s is %s\n%s", text, is_taken ? "refused" : "taken", error.text);
    free(quoted);
    json_decref(string);
}

static void names_are_those_that_can_be_written(void **state)
{
    (void)state;
    static const char *const dotted[] = {".a", "a.", "a..b", ".", "AWS.a", "aws.", "amazon.x", "AMAZON.y"};
    static const char *const fine[] = {"a.b", "aws", "awsx.a", "aws-a", "amazon", "amazons.x", "0", "-"};
    struct trial t;
    set_up(&t);
    for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++) {
        for (int c = 1; c < 128; c++) {
            char name[] = {'a', (char)c, 'b', '\0'}, first[] = {(char)c, 'b', '\0'};
            expect_name(&t, &namings[i], name, namings[i].takes((char)c));
            expect_name(&t, &namings[i], first,
                        namings[i].takes((char)c) && !(namings[i].has_inner_dots && c == '.'));
        }
        for (size_t k = 0; k < sizeof(dotted) / sizeof(dotted[0]); k++) {
            expect_name(&t, &namings[i], dotted[k], !namings[i].has_inner_dots);
            expect_name(&t, &namings[i], fine[k], true);
        }
        expect_name(&t, &namings[i], "", false);
        for (size_t n = 254; n <= 257; n++) {
            json_t *name = letters(n);
            expect_name(&t, &namings[i], json_string_value(name),
                        n <= (namings[i].has_inner_dots ? 256 : 255));
            json_decref(name);
        }
    }
    clean_up(&t);
}

/* ---- the tests ---- */

static json_t *whole_config(size_t i)
{
    json_t *config = json_loads(json(whole[i]), 0, NULL);
    assert_non_null(config);
    return config;
}

static void what_the_schema_refuses_is_refused_by_its_path(void **state)
{
    (void)state;
    struct trial t;
    set_up(&t);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        json_t *config = whole_config(i);
        if (test_schema_fits(t.schema, t.schema, config) == TEST_SCHEMA_NO)
            fail_msg("the schema refuses %s", whole[i]);
        if (!opens(&t, json(whole[i]), &error))
            fail_msg("%s\n%s", error.text, whole[i]);
        every_place(&t, config, config, "$");
        json_decref(config);
    }
    assert_true(t.refused > 5000 && t.taken > 1500);
    clean_up(&t);
}

static void find_names(const json_t *value, json_t *names)
{
    const char *name;
    json_t *below;
    size_t i;
    json_object_foreach((json_t *)value, name, below)
    {
        json_object_set_new(names, name, json_true());
        find_names(below, names);
    }
    json_array_foreach(value, i, below) find_names(below, names);
}

/* A new option has to be in the configurations above. */
static void every_member_of_the_schema_is_tried(void **state)
{
    (void)state;
    static const char *const owners[] = {"archive", "replicate", "aggregate",       "notify",
                                         "counter", "side",      "aggregate.ledger"};
    struct trial t;
    json_t *names = json_object(), *schema;
    const char *name;
    set_up(&t);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        json_t *config = whole_config(i);
        find_names(config, names);
        json_decref(config);
    }
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        const json_t *def = json_object_get(json_object_get(t.schema, "$defs"), owners[i]);
        assert_non_null(def);
        json_object_foreach(json_object_get(def, "properties"), name, schema)
        {
            if (!json_object_get(names, name))
                fail_msg("%s.%s is in no configuration of this test", owners[i], name);
        }
    }
    json_object_foreach(json_object_get(t.schema, "properties"), name, schema)
    {
        if (!json_object_get(names, name))
            fail_msg("%s is in no configuration of this test", name);
    }
    json_decref(names);
    clean_up(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_schema_refuses_is_refused_by_its_path),
        cmocka_unit_test(names_are_those_that_can_be_written),
        cmocka_unit_test(every_member_of_the_schema_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
