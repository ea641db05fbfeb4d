/* replicate's "set" and "drop" with paths: attributes that are made, masked or left out, over real dispatch
 * and the real SQLite sink; and that every way to an item makes the same one. */
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'" members "}]}"
#define PLAIN(members) ROUTE(",'guard':'none'" members)

static const char *const variables[] = {"KEY=k3y", NULL};

static char *replica(struct stage *s)
{
    return stage_query(s, "db", "SELECT item FROM replica ORDER BY key");
}

static void expect_row(struct stage *s, const char *wanted)
{
    char *got = replica(s);
    assert_string_equal(got, json(wanted));
    free(got);
}

/* The attributes of the item, besides its key, and the replica's row of it. */
struct row {
    const char *config, *item, *wanted;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct stage *s = stage_new(rows[i].config, variables);
        char event[4096];
        snprintf(event, sizeof(event), EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") "%s"))),
                 rows[i].item);
        stage_deliver_all(s, event);
        assert_int_equal(s->answer.parked, 0);
        expect_row(s, rows[i].wanted);
        stage_destroy(s);
    }
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

static void attributes_are_made_of_the_item(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {PLAIN(",'set':{'day':'{at|date:yyyy-mm-dd}'}"), ",'at':{'N':'1763672640'}",
         "{'PK':{'S':'a'},'at':{'N':'1763672640'},'day':{'S':'2025-11-20'}}\n"},
        /* The type of one place stays; of |number it is N. */
        {PLAIN(",'set':{'c':'{m}','n':'{s|number}','d':'{x|number|default:0}','t':'{n}'}"),
         ",'m':{'M':{'x':{'SS':['b','a']}}},'s':{'S':'07.5'},'n':{'N':'1.50'}",
         "{'PK':{'S':'a'},'m':{'M':{'x':{'SS':['b','a']}}},'s':{'S':'07.5'},'c':{'M':{'x':{'SS':['b','a']}}},"
         "'n':{'N':'7.5'},'d':{'N':'0'},'t':{'N':'1.50'}}\n"},
        /* In the place of an attribute, and the other way round: all look at the source's item. */
        {PLAIN(",'set':{'b':'{c|upper}','c':'{b}'}"), ",'b':{'S':'1'},'c':{'S':'x'}",
         "{'PK':{'S':'a'},'b':{'S':'X'},'c':{'S':'1'}}\n"},
        /* What is missing is left out, also where the item has an attribute of that name. */
        {PLAIN(",'set':{'b':'{b|after:#}','d':'{e}','f':'x{e}'}"), ",'b':{'S':'secret'}",
         "{'PK':{'S':'a'}}\n"},
        {PLAIN(",'set':{'b':'{b|trim}'}"), ",'b':{'S':'\\u00e9\\\"\\n\\ud834\\udd1e '}",
         "{'PK':{'S':'a'},'b':{'S':'\xC3\xA9\\\"\\n\xF0\x9D\x84\x9E'}}\n"},
        {PLAIN(",'set':{'b':'{b|trim}'}"), ",'b':{'S':' '}", "{'PK':{'S':'a'},'b':{'S':''}}\n"},
        {PLAIN(",'set':{'b':'{PK}-{Keys.PK}-{NewImage.PK}','j':'{Keys|json}'}"), "",
         "{'PK':{'S':'a'},'b':{'S':'a-a-a'},'j':{'S':'{\\\"PK\\\":\\\"a\\\"}'}}\n"},
        {PLAIN(",'set':{'all':'{NewImage|json}'},'project':[]"), ",'b':{'L':[{'N':'1'}]}",
         "{'PK':{'S':'a'},'all':{'S':'{\\\"PK\\\":\\\"a\\\",\\\"b\\\":[1]}'}}\n"},
        {PLAIN(",'set':{'z':'{b}'},'project':['c']"), ",'b':{'S':'1'},'c':{'S':'2'}",
         "{'PK':{'S':'a'},'c':{'S':'2'},'z':{'S':'1'}}\n"},
        {PLAIN(",'set':{'z':'{b}'},'drop':['b']"), ",'b':{'S':'1'}", "{'PK':{'S':'a'},'z':{'S':'1'}}\n"},
        {PLAIN(",'set':{'b':'{b|lower}'},'rename':{'b':'c'}"), ",'b':{'S':'X'}",
         "{'PK':{'S':'a'},'c':{'S':'X'},'b':{'S':'x'}}\n"},
        {PLAIN(",'set':{'PK':'{PK|upper}'},'rename':{'PK':'id'}"), "", "{'id':{'S':'a'},'PK':{'S':'A'}}\n"},
        {PLAIN(",'set':{'PK':'{PK|upper}'},'key':{'id':'{PK}'}"), "", "{'id':{'S':'a'},'PK':{'S':'A'}}\n"},
        {PLAIN(",'key':{'id':'{PK|upper}','n':'{PK|number|default:7}'}"), "",
         "{'id':{'S':'A'},'n':{'N':'7'},'PK':{'S':'a'}}\n"},
        {PLAIN(",'set':{'mail':'{mail|hmac:KEY|slice:0:8}'}"), ",'mail':{'S':'ann@example.org'}",
         "{'PK':{'S':'a'},'mail':{'S':'4f30882c'}}\n"},
    };
    CHECK(rows);
}

static void paths_are_left_out(void **state)
{
    (void)state;
#define CARD ",'card':{'M':{'no':{'S':'4711'},'to':{'M':{'y':{'N':'26'},'m':{'N':'1'}}}}},'b':{'S':'x'}"
#define LINES                                                                                                \
    ",'lines':{'L':[{'M':{'sku':{'S':'p1'},'card':{'S':'1'}}},{'S':'t'},{'M':{'card':{'S':'2'}}},{'L':[{'M'" \
    ":{'card':"                                                                                              \
    "{'S':'3'}}}]}]}"
    static const struct row rows[] = {
        {PLAIN(",'drop':['card.no']"), CARD,
         "{'PK':{'S':'a'},'card':{'M':{'to':{'M':{'y':{'N':'26'},'m':{'N':'1'}}}}},'b':{'S':'x'}}\n"},
        {PLAIN(",'drop':['card.to.y','card.no','card.none','none.a','b.c']"), CARD,
         "{'PK':{'S':'a'},'card':{'M':{'to':{'M':{'m':{'N':'1'}}}}},'b':{'S':'x'}}\n"},
        {PLAIN(",'drop':['card.to.y','card.to.m','card.no']"), CARD,
         "{'PK':{'S':'a'},'card':{'M':{'to':{'M':{}}}},'b':{'S':'x'}}\n"},
        {PLAIN(",'drop':['card.no','card']"), CARD, "{'PK':{'S':'a'},'b':{'S':'x'}}\n"},
        {PLAIN(",'drop':['card.to.y','card.to']"), CARD,
         "{'PK':{'S':'a'},'card':{'M':{'no':{'S':'4711'}}},'b':{'S':'x'}}\n"},
        {PLAIN(",'drop':['card.no'],'rename':{'card':'c'},'project':['card']"), CARD,
         "{'PK':{'S':'a'},'c':{'M':{'to':{'M':{'y':{'N':'26'},'m':{'N':'1'}}}}}}\n"},
        {PLAIN(",'drop':['lines[*].card']"), LINES,
         "{'PK':{'S':'a'},'lines':{'L':[{'M':{'sku':{'S':'p1'}}},{'S':'t'},{'M':{}},{'L':[{'M':{'card':{'S':'"
         "3'}}}]}]}}\n"},
        {PLAIN(",'drop':['lines[*][*].card']"), LINES,
         "{'PK':{'S':'a'},'lines':{'L':[{'M':{'sku':{'S':'p1'},'card':{'S':'1'}}},{'S':'t'},{'M':{'card':{'S'"
         ":'2'}}},"
         "{'L':[{'M':{}}]}]}}\n"},
        {PLAIN(",'drop':['lines.card']"), LINES, "{'PK':{'S':'a'}" LINES "}\n"},
        {PLAIN(",'drop':['`a.b`','m.`c.d`']"),
         ",'a.b':{'S':'1'},'a':{'M':{'b':{'S':'2'}}},'m':{'M':{'c.d':{'S':'3'}}}",
         "{'PK':{'S':'a'},'a':{'M':{'b':{'S':'2'}}},'m':{'M':{}}}\n"},
        /* What an earlier release left out stays out. */
        {PLAIN(",'drop':['a.b']"), ",'a.b':{'S':'1'},'a':{'M':{'b':{'S':'2'},'c':{'S':'3'}}}",
         "{'PK':{'S':'a'},'a':{'M':{'c':{'S':'3'}}}}\n"},
        {PLAIN(",'drop':['m.\\u00e9']"), ",'m':{'M':{'\\u00e9':{'S':'1'},'\\u0065':{'S':'2'}}}",
         "{'PK':{'S':'a'},'m':{'M':{'\\u0065':{'S':'2'}}}}\n"},
    };
    CHECK(rows);
}

/* What should be there of the record's item. */
static struct sl_expected expected_of(struct stage *s, const char *record, struct test_batch *t)
{
    test_decode(t, sl_span_str(json(record)), NULL);
    const struct sl_record *r = sl_batch_record(&t->batch, 0);
    struct sl_expect e = {.records = &r, .n = 1, .arena = t->arena};
    struct sl_error error = SL_NO_ERROR;
    struct sl_route *route = &s->p->routes[0];
    assert_int_equal(route->loaded.handler.expect(route->self, &e, &error), SL_OK);
    return e.rows[0];
}

/* What the handler says should be there is what it writes: of a change, of an item that was read back, of the
 * same change late and again. */
static void every_way_makes_the_same_item(void **state)
{
    (void)state;
#define SHAPE                                                                                                \
    ",'set':{'n':'{s|split:#:1|number}','k':'{Keys.PK}','m':'{m}','s':'{s|sha256|slice:0:4}'},'drop':['m.x'" \
    "],"                                                                                                     \
    "'rename':{'r':'q'}"
#define SHAPED ",'s':{'S':'a#07'},'m':{'M':{'x':{'S':'1'},'y':{'S':'2'}}},'r':{'N':'1'}"
    static const char *const configs[] = {ROUTE(SHAPE), ROUTE(SHAPE ",'guard':{'table':'guards'}"),
                                          ROUTE(SHAPE ",'tombstones':{'table':'marks'}"),
                                          ROUTE(SHAPE ",'key':{'ID':'{PK|upper}'}")};
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct stage *s = stage_new(configs[i], variables);
        struct test_batch t;
        const char *record = RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") SHAPED));
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") SHAPED)),
                                   RECORD("MODIFY", "2", KEYS(PK("a")) NEW(PK("a") SHAPED) OLD(PK("a")))));
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") SHAPED))));
        struct sl_expected wanted = expected_of(s, record, &t);
        char *row = replica(s);
        assert_non_null(
            strstr(row, json("'q':{'N':'1'},'n':{'N':'7'},'k':{'S':'a'},'m':{'M':{'x':{'S':'1'},'y':")));
        /* The row is what was expected, and what is ours in front of it. */
        assert_true(strlen(row) > wanted.item.len);
        struct sl_span end = sl_span(row + strlen(row) - wanted.item.len, wanted.item.len - 1);
        if (memcmp(end.ptr, wanted.item.ptr + 1, end.len) != 0)
            fail_msg("%.*s is not the end of %s", SL_ARG(wanted.item), row);
        free(row);
        test_batch_clean_up(&t);
        stage_destroy(s);
    }
}

static void items_that_are_read_back_are_made_alike(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'s',"
        "'handler':'replicate','to':'sqlite:${DIR}/db?table=source','guard':'none',"
        "'when':{'pattern':[{'dynamodb':{'StreamViewType':['NEW_AND_OLD_IMAGES']}}]}},"
        "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica','guard':'none',"
        "'source':'sqlite:${DIR}/db?table=source','set':{'b':'{b.c|upper}{b.d[1]}','k':'{NewImage.PK}'},"
        "'when':{'pattern':[{'dynamodb':{'StreamViewType':['KEYS_ONLY']}}]}}]}",
        NULL);
    stage_deliver_all(
        s, EVENT(RECORD("INSERT", "1",
                        KEYS(PK("a"))
                            NEW(PK("a") ",'b':{'M':{'c':{'S':'x'},'d':{'L':[{'N':'1'},{'N':'2'}]}}}"))));
    stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "INSERT", "1", KEYS(PK("a")))));
    expect_row(s, "{'PK':{'S':'a'},'b':{'S':'X2'},'k':{'S':'a'}}\n");
    stage_destroy(s);
}

/* What a route without "set" makes of the row, which has a guard. */
static char *copy_of(const char *row)
{
    struct stage *s = stage_new(ROUTE(""), NULL);
    char event[2048], *got;
    snprintf(event, sizeof(event), EVENT(RECORD("INSERT", "9", KEYS(PK("a")) ",'NewImage':%s")), row);
    stage_deliver_all(s, event);
    got = replica(s);
    stage_destroy(s);
    return got;
}

/* An echo is known by the signature of the item that was written, with what was made. */
static void made_attributes_are_signed(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'set':{'b':'{b|upper}'}"), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'b':{'S':'x'}"))));
    char *row = replica(s), *got;
    row[strcspn(row, "\n")] = '\0';
    char *made = strstr(row, "\"X\"");
    assert_non_null(made);
    got = copy_of(row);
    assert_string_equal(got, "");
    free(got);
    made[1] = 'y'; /* edited: a user's */
    got = copy_of(row);
    assert_non_null(strstr(got, "\"b\":{\"S\":\"y\"}"));
    free(got);
    free(row);
    stage_destroy(s);
}

static void an_attribute_of_the_key_cannot_be_made(void **state)
{
    (void)state;
    struct stage *s = stage_new(PLAIN(",'set':{'PK':'{PK|upper}'}"), NULL);
    stage_deliver(s, json_span(EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a"))))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_string_equal(s->answer.error.code, "SetOnKey");
    assert_non_null(strstr(s->answer.error.text, "set.PK: it is an attribute of the items' key"));
    stage_destroy(s);
}

static void nothing_is_expected_of_items_left_out(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE(",'key':{'id':'{PK|after:ORDER#}'},'where':{'b':[{'exists':true}]}"), NULL);
    struct test_batch t;
    struct sl_expected row = expected_of(s, RECORD("INSERT", "1", KEYS(PK("USER#1")) NEW(PK("USER#1"))), &t);
    assert_int_equal(row.status, SL_OK);
    assert_null(row.key.ptr);
    test_batch_clean_up(&t);
    row = expected_of(s, RECORD("INSERT", "1", KEYS(PK("USER#1")) NEW(PK("USER#1") ",'b':{'S':'x'}")), &t);
    assert_int_equal(row.status, SL_REJECT);
    assert_string_equal(row.code, "MissingAttribute");
    test_batch_clean_up(&t);
    row = expected_of(s, RECORD("INSERT", "1", KEYS(PK("ORDER#1")) NEW(PK("ORDER#1"))), &t);
    assert_int_equal(row.status, SL_OK);
    assert_non_null(row.key.ptr);
    assert_null(row.item.ptr);
    test_batch_clean_up(&t);
    stage_destroy(s);
}

/* Many kinds of items are in one table, and a key is made of one kind alone. */
static void items_left_out_need_no_key(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE(",'key':{'id':'{PK|after:ORDER#}'},'where':{'PK':[{'prefix':'ORDER#'}]}"), NULL);
    stage_deliver_all(
        s,
        EVENT(RECORD("INSERT", "1", KEYS(PK("USER#1")) NEW(PK("USER#1"))),
              RECORD("MODIFY", "2", KEYS(PK("USER#1")) NEW(PK("USER#1") ",'b':{'S':'x'}") OLD(PK("USER#1"))),
              RECORD("REMOVE", "3", KEYS(PK("USER#1")) OLD(PK("USER#1"))),
              RECORD("INSERT", "4", KEYS(PK("ORDER#7")) NEW(PK("ORDER#7")))));
    assert_int_equal(s->answer.parked, 0);
    char *row = replica(s);
    assert_non_null(strstr(row, "\"id\":{\"S\":\"7\"}"));
    free(row);
    stage_destroy(s);
    s = stage_new(ROUTE(",'key':{'id':'{PK|after:ORDER#}'},'where':{'b':[{'exists':true}]}"), NULL);
    stage_deliver_all(s,
                      EVENT(RECORD("INSERT", "1", KEYS(PK("USER#1")) NEW(PK("USER#1"))),
                            RECORD("MODIFY", "2",
                                   KEYS(PK("USER#1")) NEW(PK("USER#1") ",'b':{'S':'x'}") OLD(PK("USER#1")))));
    assert_int_equal(s->answer.parked, 1); /* the replica should hold it, and cannot */
    stage_destroy(s);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE(",'set':[]"), "set: expected an object of attribute names and templates"},
        {ROUTE(",'set':{}"), "set: expected an object"},
        {ROUTE(",'set':{'a':1}"), "set.a: expected an attribute name and a template"},
        {ROUTE(",'set':{'a\\\"':'x'}"), "expected an attribute name and a template"},
        {ROUTE(",'set':{'a':'{b|lowr}'}"),
         "$.routes[0].set.a: \"lowr\" is not a function; did you mean \"lower\"?"},
        {ROUTE(",'set':{'a':'{b|hmac:NOT_THERE}'}"), "the environment variable NOT_THERE is not set"},
        {ROUTE(",'set':{'a':'{b|hmac:deadbeefcafe}'}"),
         "the environment variable that is named here is not set"},
        {ROUTE(",'set':{'a':'{b|hmac:GEZDGNBVGY3TQOJQ}'}"),
         "the environment variable that is named here is not set"},
        {ROUTE(",'set':{'a':'{yyyy}'}"), "set.a: the template names the time or the event of a change"},
        {ROUTE(",'set':{'a':'{sequence|sha256}'}"), "set.a: the template names the time or the event"},
        {ROUTE(",'set':{'a':'{OldImage.b}'}"), "set.a: the template names"},
        {ROUTE(",'set':{'a':'{OldImage|json}'}"), "set.a: the template names"},
        {ROUTE(",'set':{'a':'{ttl}'}"), "set.a: the template names"},
        {ROUTE(",'set':{'a':'{table}'}"), "set.a: the template names"},
        {ROUTE(",'set':{'a':'x'},'rename':{'b':'a'}"), "set.a: rename.b makes this attribute"},
        {ROUTE(",'set':{'a':'x'},'key':{'a':'{b}'}"), "set.a: \"key\" makes this attribute"},
        {ROUTE(",'set':{'sluice_order':'x'}"), "set.sluice_order: sluice_order is the guard_attribute"},
        {ROUTE(",'set':{'gone':'x'},'deleted_attribute':'gone'"), "set.gone: gone is the deleted_attribute"},
        {ROUTE(",'key':{'a':'{NewImage|json}'}"), "key.a: use attributes of the source's key only"},
        {ROUTE(",'drop':['$.a.b']"), "drop[0]: a path begins with an attribute's name, not with $"},
        {ROUTE(",'drop':['a[0]']"), "drop[0]: an element's place moves when others come and go; write [*]"},
        {ROUTE(",'drop':['b','a[*]']"), "drop[1]: a path ends with a name"},
        {ROUTE(",'drop':['a.']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['.a']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['']"), "$.routes[0].drop[0]: expected an attribute name"},
        {ROUTE(",'drop':['`a']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['``']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['a`b`']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['a[*]b']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['`a`b']"), "drop[0]: expected a path such as"},
        {ROUTE(",'drop':['[*]']"), "drop[0]: a path begins with an attribute's name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        stage_refused(cases[i].config, cases[i].message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_made_of_the_item),
        cmocka_unit_test(paths_are_left_out),
        cmocka_unit_test(every_way_makes_the_same_item),
        cmocka_unit_test(items_that_are_read_back_are_made_alike),
        cmocka_unit_test(made_attributes_are_signed),
        cmocka_unit_test(an_attribute_of_the_key_cannot_be_made),
        cmocka_unit_test(items_left_out_need_no_key),
        cmocka_unit_test(nothing_is_expected_of_items_left_out),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
