/* The view handler over real dispatch and SQLite: what rows hold, what is refused and parked, whose rows are
 * left alone, and what a change costs. */
#include "base/buffer.h"
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'v','handler':'view','to':'sqlite:${DIR}/db?table=view'" members "}]}"
#define LINES                                                                                                \
    ROUTE(",'each':'lines[*]','key':{'PK':'P#{each.sku}','SK':'O#{PK|key}#{each.id|key}'},'item':{'q':"      \
          "'{each.q}'}")
#define ROWS "SELECT item FROM view WHERE item NOT LIKE '%sluice_rows%' ORDER BY key"

/* ---- what rows hold ---- */

#define OF ",'sluice_of':{'M':{'view':{'S':'v'},'key':{'M':{'PK':{'S':'a'}}}}}"

/* The attributes of the item, besides its key, and the rows. */
static const struct row {
    const char *config, *item, *wanted;
} rows[] = {
    {ROUTE(",'key':{'PK':'{email}','SK':'{PK}'}"), ",'email':{'S':'x'},'n':{'N':'1'}",
     "{'PK':{'S':'x'},'SK':{'S':'a'}" OF ",'email':{'S':'x'},'n':{'N':'1'}}\n"},
    {ROUTE(",'key':{'PK':'{PK}','SK':'{at|number}'},'list':{'table':'l'},'item':{'b':'{b}'}"),
     ",'at':{'S':'07'},'b':{'BOOL':true}", "{'PK':{'S':'a'},'SK':{'N':'7'}" OF ",'b':{'BOOL':true}}\n"},
    {ROUTE(",'key':{'PK':'{PK}'},'drop':['m.x','PK'],'rename':{'n':'o'},'set':{'s':'{n}!'}"),
     ",'m':{'M':{'x':{'N':'1'},'y':{'N':'2'}}},'n':{'N':'1'},'sluice_of':{'S':'mine'}",
     "{'PK':{'S':'a'}" OF ",'m':{'M':{'y':{'N':'2'}}},'o':{'N':'1'},'s':{'S':'1!'}}\n"},
    {ROUTE(",'key':{'PK':'{PK|key}#{x|key}'},'project':[]"), ",'x':{'S':'#%'}",
     "{'PK':{'S':'a#%23%25'}" OF "}\n"},
    {ROUTE(",'key':{'PK':'{PK}'},'item':{'n':'{n}'},'where':{'n':[1]}"), ",'n':{'N':'2'}", ""},
    /* Sets, maps, elements that are no maps, and where they stand. */
    {ROUTE(",'each':'tags[*]','key':{'PK':'T#{each}','SK':'{PK}'},'item':{'i':'{each_index}'}"),
     ",'tags':{'SS':['y','x']}",
     "{'PK':{'S':'T#x'},'SK':{'S':'a'}" OF ",'i':{'N':'1'}}\n{'PK':{'S':'T#y'},'SK':{'S':'a'}" OF
     ",'i':{'N':'0'}}\n"},
    {ROUTE(",'each':'m.of[*]','key':{'PK':'{each_name}','SK':'{PK}'},'item':{'v':'{each}'}"),
     ",'m':{'M':{'of':{'M':{'k\\u00e9\\\"':{'NULL':true},'l':{'L':[{'N':'1'}]}}}}}",
     "{'PK':{'S':'k\xC3\xA9\\\"'},'SK':{'S':'a'}" OF ",'v':{'NULL':true}}\n{'PK':{'S':'l'},'SK':{'S':'a'}" OF
     ",'v':{'L':[{'N':'1'}]}}\n"},
    {ROUTE(",'each':'l[*]','key':{'PK':'{PK|key}#{each_index|key}'},'project':['n']"),
     ",'l':{'L':[{'S':'s'},{'S':'s'}]},'n':{'N':'1'}",
     "{'PK':{'S':'a#0'}" OF ",'n':{'N':'1'}}\n{'PK':{'S':'a#1'}" OF ",'n':{'N':'1'}}\n"},
    {ROUTE(
         ",'each':'l[*]','key':{'PK':'{PK|key}#{each.i|key}'},'item':{'n':'{n}'},'where':{'n':[1],'each':{'i'"
         ":['x','y']}}"),
     ",'l':{'L':[{'M':{'i':{'S':'x'}}},{'M':{'i':{'S':'z'}}},{'S':'x'}]},'n':{'N':'1.0'}",
     "{'PK':{'S':'a#x'}" OF ",'n':{'N':'1.0'}}\n"},
    /* The element hides an attribute of the item that is called so. */
    {ROUTE(",'each':'l[*]','key':{'PK':'{PK|key}#{each|key}'},'item':{'n':'{n}'}"),
     ",'each':{'S':'item'},'l':{'L':[{'S':'x'}]},'n':{'N':'1'},'each_name':{'N':'0'}",
     "{'PK':{'S':'a#x'}" OF ",'n':{'N':'1'}}\n"},
    /* Nothing to walk. */
    {LINES, "", ""},
    {LINES, ",'lines':{'NULL':true}", ""},
    {LINES, ",'lines':{'L':[]}", ""},
};

static void rows_hold_what_is_configured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage *s = stage_new(rows[i].config, NULL);
        char event[4096];
        snprintf(event, sizeof(event), EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") "%s"))),
                 rows[i].item);
        stage_deliver_all(s, event);
        char *failed = stage_file(s, "failed.jsonl"),
             *got = *rows[i].wanted ? stage_query(s, "db", ROWS) : strdup("");
        if ((failed && *failed) || strcmp(got, json(rows[i].wanted)) != 0)
            fail_msg("%s: %s: %s, not %s", rows[i].config, failed ? failed : "", got, json(rows[i].wanted));
        free(got);
        free(failed);
        stage_destroy(s);
    }
}

/* ---- what is refused at start ---- */

static void what_cannot_be_is_refused_at_start(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {",'key':{'PK':'{PK}#{SK|key}'}", "key.PK: several places are joined, so each ends with |key"},
        {",'key':{'PK':'{PK|key}{SK|key}'}", "key.PK: between two places stands a '#'"},
        {",'key':{'PK':'{PK|key}-{SK|key}'}", "key.PK: between two places stands a '#'"},
        {",'key':{'PK':'{PK}','SK':'{event}'}", "key.SK: the template names the time or the event"},
        {",'key':{'PK':'{PK}','SK':'{OldImage.a}'}", "key.SK: the template names the time or the event"},
        {",'key':{'PK':'{PK}','SK':''}", "key.SK: expected an attribute name and a template"},
        {",'key':{'sluice_of':'{PK}'}", "key: sluice_of is an attribute that the view itself writes"},
        {",'key':{'PK':'{PK}'},'item':{'sluice_rows':'x'}", "item: sluice_rows is an attribute"},
        {",'key':{'PK':'{PK}'},'set':{'PK':'x'}", "set.PK: \"key\" makes this attribute"},
        {",'key':{'PK':'{PK}'},'item':{'PK':'x'}", "item.PK: \"key\" makes this attribute"},
        {",'key':{'PK':'{PK}'},'item':{'a':'x'},'drop':['b']", "drop: \"item\" makes all that a row holds"},
        {",'key':{'PK':'{PK}'},'item':{'a':'{yyyy}'}", "item.a: the template names the time"},
        {",'key':{'PK':'{PK}'},'each':'a[*]'", "item: with \"each\" say what a row holds"},
        {",'key':{'PK':'{PK}'},'each':'a','item':{'a':'x'}", "each: expected a path that ends with [*]"},
        {",'key':{'PK':'{PK}'},'each':'a[*].b[*]','item':{'a':'x'}", "each: [*] stands once"},
        {",'key':{'PK':'{PK}'},'each':'a..b[*]','item':{'a':'x'}", "each: "},
        {",'key':{'PK':'{PK}','SK':'{n|number}'}", "key.SK: it is a number, and the key of a list"},
        {",'key':{'PK':'{PK}'},'list':{'table':'view'}", "list.table: it is the rows' own table"},
        {",'key':{'PK':'{PK}'},'list':{'key':'K'}", "list.key: only for lists with their own table"},
        {",'key':{'PK':'{PK}'},'list':{'rows':'K'}", "list.rows: unknown member"},
        {",'key':{'PK':'{PK}'},'list':{'table':'l','key':'sluice_order'}", "list.key: sluice_order is an"},
        {",'key':{'PK':'{PK}'},'where':{'a':[{'numeric':['>']}]}", "where.a"},
        {",'key':{'PK':'{PK}'},'expires_attribute':'sluice_of'", "expires_attribute: expected the name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[1024];
        snprintf(config, sizeof(config), ROUTE("%s"), cases[i][0]);
        stage_refused(config, cases[i][1]);
    }
}

/* ---- what is parked ---- */

/* A list of so many lines, whose ids begin with `prefix`; the caller frees it. */
static char *elements(const char *prefix, unsigned n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 22);
    sl_buffer_add_str(&text, "{'L':[");
    for (unsigned i = 0; i < n; i++)
        sl_buffer_printf(&text, "%s{'M':{'id':{'S':'%s%u'},'sku':{'S':'s'}}}", i ? "," : "", prefix, i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    return text.ptr;
}

#define MAKE(text, ...) assert_true(asprintf(&(text), __VA_ARGS__) > 0)

/* Delivers an item with these lines between two good ones, and expects the reason for which it is parked. */
static void parks(const char *config, const char *list, const char *code, const char *why)
{
    struct stage *s = stage_new(config, NULL);
    char *event = NULL;
    MAKE(event,
         EVENT(RECORD("INSERT", "1",
                      KEYS(PK("x")) NEW(PK("x") ",'lines':{'L':[{'M':{'id':{'S':'1'},'sku':{'S':"
                                                "'s'}}}]}")),
               RECORD("INSERT", "2", KEYS(PK("a")) NEW(PK("a") ",'lines':%s")),
               RECORD("INSERT", "3",
                      KEYS(PK("y")) NEW(PK("y") ",'lines':{'L':[{'M':{'id':{'S':'1'},'sku':{'S':"
                                                "'s'}}}]}"))),
         list);
    stage_deliver_all(s, event);
    char *failed = stage_file(s, "failed.jsonl"), *got = stage_query(s, "db", ROWS);
    if (!failed || !strstr(failed, code) || !strstr(failed, why))
        fail_msg("no %s, %s in %s", code, why, failed);
    if (!strstr(got, "O#x#1") || !strstr(got, "O#y#1") || strstr(got, "O#a#"))
        fail_msg("%s: %s", code, got);
    free(failed);
    free(got);
    free(event);
    stage_destroy(s);
}

static void what_makes_no_rows_is_parked(void **state)
{
    (void)state;
    char *many = elements("", 99);
    char *very_many = elements("", 5000);
    parks(LINES, "{'S':'x'}", "NotAList", "each: lines is no list, set or map");
    parks(LINES, "{'L':[{'M':{'id':{'S':'1'},'sku':{'S':'s'}}},{'M':{'id':{'S':'2'}}}]}", "MissingAttribute",
          "each[1]: key.PK: the item lacks what the template names");
    parks(LINES, "{'L':[{'S':'x'}]}", "MissingAttribute", "each[0]: key.PK");
    parks(
        ROUTE(
            ",'each':'lines[*]','key':{'PK':'{each.sku}','SK':'O#{PK|key}#{each.id|key}'},'item':{'q':'1'}"),
        "{'L':[{'M':{'id':{'S':'1'},'sku':{'BOOL':true}}}]}", "KeyType",
        "each[0]: key.PK: a key attribute is");
    parks(
        LINES,
        "{'L':[{'M':{'id':{'S':'1'},'sku':{'S':'s'}}},{'M':{'id':{'S':'2'},'sku':{'S':'s'}}},{'M':{'id':{'S':"
        "'1'},'sku':{'S':'s'}}}]}",
        "DuplicateRow", "make a row of the same key");
    parks(LINES, many, "TooManyRows", "puts and deletes 99 rows, and one transaction holds 98");
    parks(LINES, very_many, "TooManyRows", "5000 rows");
    free(many);
    free(very_many);
}

#define TEN(x) x x x x x x x x x x
#define NINETY                                                                                               \
    TEN("{lines[0].q}{lines[0].q}{lines[0].q}{lines[0].q}{lines[0].q}{lines[0].q}{lines[0].q}{lines[0].q}{"  \
        "lines[0].q}")

/* 400,000 bytes in the row, and 50 rows of 100,000 bytes. */
static void rows_that_are_too_large_are_parked(void **state)
{
    (void)state;
    char *text = calloc(1, 420000), *list = NULL;
    memset(text, 'x', 409600);
    MAKE(list, "{'L':[{'M':{'id':{'S':'1'},'sku':{'S':'s'},'q':{'S':'%s'}}}]}", text);
    parks(LINES, list, "RowTooLarge", "each[0]: the row has more than 409600 bytes");
    free(list);
    text[100000] = '\0';
    char *others = elements("o", 49);
    MAKE(list, "{'L':[{'M':{'id':{'S':'0'},'sku':{'S':'s'},'q':{'S':'%s'}}},%s", text,
         others + strlen("{'L':["));
    free(others);
    parks(ROUTE(",'each':'lines[*]','key':{'PK':'P#{each.sku}','SK':'O#{PK|key}#{each.id|key}'},'item':{'q':"
                "'{lines[0].q}'}"),
          list, "TransactionTooLarge", "and one transaction holds 4194304");
    /* Nine million bytes of text, of one element. */
    parks(ROUTE(",'each':'lines[*]','key':{'PK':'P#{each.sku}','SK':'O#{PK|key}#{each.id|key}'},'item':{'q':"
                "'" NINETY "'}"),
          list, "TooLarge", "each[0]: item.q: the text of a template");
    free(text);
    free(list);
}

/* By DynamoDB's formula, and not by the text of its JSON, in which a quote takes two bytes. */
static void a_row_is_measured_as_dynamodb_does(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'key':{'PK':'K#{PK}'},'item':{'q':'{q}'}"), NULL);
    char *quotes = calloc(1, 600001), *event = NULL;
    for (size_t i = 0; i < 600000; i += 2)
        memcpy(quotes + i, "\\\"", 2);
    MAKE(event, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'q':{'S':'%s'}"))), quotes);
    stage_deliver_all(s, event);
    char *got = stage_query(s, "db", "SELECT length(item) > 600000 FROM view WHERE key LIKE '%K#a%'");
    assert_int_equal(s->answer.parked, 0);
    assert_string_equal(got, "1\n");
    free(got);
    free(quotes);
    free(event);
    stage_destroy(s);
}

/* It grows until its list is larger than an item may be; then it may shrink. */
static void a_list_that_is_too_large_is_parked(void **state)
{
    (void)state;
    struct stage *s = stage_new(LINES, NULL);
    char id[701] = "", *failed = NULL;
    memset(id, 'i', 700);
    for (unsigned n = 1; n < 10 && !(failed && *failed); n++) {
        char *list = elements(id, n * 98), *event = NULL;
        MAKE(event, EVENT(RECORD("MODIFY", "%u", KEYS(PK("a")) NEW(PK("a") ",'lines':%s"))), n, list, n);
        stage_deliver_all(s, event);
        free(failed);
        failed = stage_file(s, "failed.jsonl");
        free(event);
        free(list);
    }
    assert_non_null(strstr(failed, "ListTooLarge"));
    assert_non_null(strstr(failed, "the item has 588 rows, and the list of them is larger"));
    free(failed);
    stage_deliver_all(s, EVENT(RECORD("MODIFY", "99", KEYS(PK("b")) NEW(PK("b")))));
    stage_destroy(s);
}

/* ---- whose rows they are ---- */

#define ORDER(event, number, id, old, new) RECORD(event, number, KEYS(PK(id)) old new)
#define LINE(id, sku)                      "{'M':{'id':{'S':'" id "'},'sku':{'S':'" sku "'}}}"
#define WITH(lines)                        ",'lines':{'L':[" lines "]}"

static void a_row_of_somebody_else_is_not_touched(void **state)
{
    (void)state;
    struct stage *s = stage_new(LINES, NULL);
    stage_deliver_all(
        s, EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") WITH(LINE("1", "s") "," LINE("2", "s"))))));
    stage_change(s, "db",
                 "UPDATE view SET item = '{\"PK\":{\"S\":\"P#s\"},\"SK\":{\"S\":\"O#a#1\"}}' WHERE key LIKE "
                 "'%O#a#1%'");
    /* It is let go with its element, and stands in the way of it. */
    stage_deliver_all(s, EVENT(ORDER("MODIFY", "2", "a", OLD(PK("a") WITH(LINE("1", "s") "," LINE("2", "s"))),
                                     NEW(PK("a") WITH(LINE("3", "s"))))));
    assert_int_equal(s->answer.parked, 0);
    char *got = stage_query(s, "db", "SELECT key FROM view WHERE key LIKE '%O#a%' ORDER BY key");
    assert_string_equal(
        got, json("{'PK':{'S':'P#s'},'SK':{'S':'O#a#1'}}\n{'PK':{'S':'P#s'},'SK':{'S':'O#a#3'}}\n"));
    free(got);
    stage_deliver_all(s, EVENT(ORDER("MODIFY", "3", "a", OLD(PK("a") WITH(LINE("3", "s"))),
                                     NEW(PK("a") WITH(LINE("1", "s"))))));
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(failed);
    assert_non_null(strstr(failed, "Collision"));
    free(failed);
    got = stage_query(s, "db", "SELECT item FROM view WHERE key LIKE '%O#a#1%'");
    assert_string_equal(got, json("{'PK':{'S':'P#s'},'SK':{'S':'O#a#1'}}\n"));
    free(got);
    stage_destroy(s);
}

/* ---- another process at the same time ---- */

/* Before call `at` of the table, the list says another order: `lists` of them, one a call. */
static struct rival {
    unsigned calls, at, lists;
    const char *order;
} rival;

static enum stage_fate meanwhile(struct stage *s)
{
    unsigned n = rival.calls++;
    char sql[256];
    if (n < rival.at || n >= rival.at + rival.lists)
        return STAGE_WELL;
    snprintf(sql, sizeof(sql),
             "UPDATE view SET item = json_set(item, '$.sluice_order.S', '%0*d%s') WHERE item LIKE "
             "'%%sluice_rows%%'",
             38, 0,
             rival.order ? rival.order
             : n % 2     ? "01"
                         : "02");
    stage_change(s, "db", sql);
    return STAGE_WELL;
}

static void a_list_that_moves_is_taken_as_it_is(void **state)
{
    (void)state;
    static const struct {
        struct rival rival;
        bool is_written, is_retried;
    } cases[] = {
        {{.at = 1, .lists = 1, .order = "04"}, true, false},  /* an older change came in between */
        {{.at = 1, .lists = 1, .order = "05"}, false, false}, /* the same one */
        {{.at = 1, .lists = 1, .order = "99"}, false, false}, /* a newer one */
        {{.at = 1, .lists = 11}, true, false},
        {{.at = 1, .lists = 100000}, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(LINES, NULL);
        stage_deliver_all(s, EVENT(ORDER("INSERT", "3", "a", "", NEW(PK("a") WITH(LINE("1", "s"))))));
        rival = cases[i].rival;
        s->at_table = meanwhile;
        char *event = strdup(EVENT(ORDER("MODIFY", "5", "a", "", NEW(PK("a") WITH(LINE("2", "s"))))));
        json_quote(event);
        stage_deliver(s, sl_span_str(event));
        s->at_table = NULL;
        char *got = stage_query(s, "db", ROWS), *log = stage_log(s);
        if ((strstr(got, "O#a#2") != NULL) != cases[i].is_written ||
            (stage_checkpoint(s) == 0) != cases[i].is_retried ||
            (strstr(log, "the item's rows changed between 12 requests") != NULL) != cases[i].is_retried)
            fail_msg("case %zu: %s\n%s", i, got, log);
        free(event);
        free(got);
        free(log);
        stage_destroy(s);
    }
}

/* Nobody knows what rows such an item has: nothing is written, and nobody's record is to blame. */
static void a_list_that_somebody_else_wrote_stops_the_route(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "json_remove(item, '$.sluice_order')",
        "json_set(item, '$.sluice_order', json('{\"N\":\"1\"}'))",
        "json_set(item, '$.sluice_order.S', 'yesterday')",
        "json_set(item, '$.sluice_order.S', ':000001:1')",
        "json_remove(item, '$.sluice_rows')",
        "json_set(item, '$.sluice_rows', json('{\"S\":\"\"}'))",
        "json_set(item, '$.sluice_rows.L[0]', json('{\"S\":\"x\"}'))",
        "json_remove(item, '$.sluice_rows.L[0].M.key')",
        "json_remove(item, '$.sluice_rows.L[0].M.key.M.SK')",
        "json_set(item, '$.sluice_rows.L[0].M.key.M.SK', json('{\"BOOL\":true}'))",
        "json_remove(item, '$.sluice_rows.L[0].M.digest')",
        "json_set(item, '$.sluice_rows.L[0].M.digest', json('{\"S\":\"AAAAAAAAAAAAAAAAAAAAAA==\"}'))",
        "json_set(item, '$.sluice_rows.L[0].M.digest.B', 'AAAA')",
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct stage *s = stage_new(LINES, NULL);
        char sql[512],
            *event = strdup(EVENT(ORDER("MODIFY", "2", "a", "", NEW(PK("a") WITH(LINE("2", "s"))))));
        json_quote(event);
        stage_deliver_all(s, EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") WITH(LINE("1", "s"))))));
        snprintf(sql, sizeof(sql), "UPDATE view SET item = %s WHERE key LIKE '%%sluice:view%%'", changes[i]);
        stage_change(s, "db", sql);
        stage_deliver(s, sl_span_str(event));
        char *log = stage_log(s), *got = stage_query(s, "db", ROWS), *failed = stage_file(s, "failed.jsonl");
        if (!strstr(log, "a list of an item's rows was not written by this view") || !strstr(got, "O#a#1") ||
            strstr(got, "O#a#2") || (failed && *failed))
            fail_msg("%s: %s%s%s", changes[i], log, got, failed);
        free(log);
        free(got);
        free(failed);
        free(event);
        stage_destroy(s);
    }
}

/* A record that was set aside before the epoch was raised is older than all since. */
static void a_late_record_has_the_epoch_of_its_time(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'key':{'PK':'{PK}'},'item':{'n':'{n}'},'epoch':1"), NULL);
    struct test_batch batch;
    struct sl_mark mark = {.is_set = false};
    struct sl_error error = SL_NO_ERROR;
    const struct sl_route *route = &s->p->routes[0];
    stage_deliver_all(s, EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") ",'n':{'N':'1'}"))));
    const struct sl_record *late = test_record(
        &batch, "MODIFY", KEYS(PK("a")) NEW(PK("a") ",'n':{'N':'9'}") ",'SequenceNumber':'9'", "");
    for (int64_t epoch = 0; epoch >= -1; epoch--) {
        struct sl_slice_call call = {.marks = &mark,
                                     .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                                               .records = &late,
                                               .n = 1,
                                               .deadline_ms = s->clock.ms + 60000,
                                               .arena = s->arena,
                                               .request_id = "",
                                               .epoch = epoch}};
        assert_int_equal(route->loaded.handler.handle(route->self, &call.slice, &error), SL_OK);
        char *got = stage_query(s, "db", ROWS);
        assert_int_equal(strstr(got, epoch == 0 ? "\"1\"" : "\"9\"") != NULL, 1);
        free(got);
    }
    test_batch_clean_up(&batch);
    stage_destroy(s);
}

/* ---- what a change costs ---- */

static void a_change_costs_what_it_alters(void **state)
{
    (void)state;
    struct stage *s = stage_new(LINES, NULL);
    char *fifty = elements("", 50), *event = NULL;
    MAKE(event, EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") ",'lines':%s"))), fifty);
    stage_deliver_all(s, event);
    assert_int_equal(s->spent.writes, 51);
    assert_int_equal(s->groups, 1);
    s->spent.writes = s->spent.reads = 0;
    /* Nothing of the view's. */
    free(event);
    MAKE(event,
         EVENT(
             ORDER("MODIFY", "2", "a", OLD(PK("a") ",'lines':%s"), NEW(PK("a") ",'x':{'N':'1'},'lines':%s"))),
         fifty, fifty);
    stage_deliver_all(s, event);
    assert_int_equal(s->spent.writes + s->spent.reads, 0);
    /* One line of fifty. */
    char *other = strdup(fifty);
    memcpy(strstr(other, "'s'"), "'t'", 3);
    free(event);
    MAKE(event, EVENT(ORDER("MODIFY", "3", "a", OLD(PK("a") ",'lines':%s"), NEW(PK("a") ",'lines':%s"))),
         fifty, other);
    stage_deliver_all(s, event);
    assert_int_equal(s->spent.writes, 3); /* the list, the row that came, and the one that went */
    assert_int_equal(s->spent.reads, 1);
    /* Without the old image the list says what there is to do: nothing but its order. */
    s->spent.writes = s->spent.reads = 0;
    free(event);
    MAKE(event, EVENT(ORDER("MODIFY", "4", "a", "", NEW(PK("a") ",'lines':%s"))), other);
    stage_deliver_all(s, event);
    assert_int_equal(s->spent.writes, 1);
    /* It comes again. */
    stage_deliver_all(s, event);
    assert_int_equal(s->spent.writes, 1);
    assert_int_equal(s->spent.reads, 2);
    free(fifty);
    free(other);
    free(event);
    stage_destroy(s);
}

/* Every way to look at an attribute: a change of it alone is seen. */
static void a_change_of_what_is_read_is_not_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *route, *old, *new; /* of the images, besides the key and 'l' */
    } cases[] = {
        {",'key':{'PK':'{x|key}#{PK|key}'},'item':{'n':'1'}", "'x':{'S':'1'}", "'x':{'S':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{x}'}", "'x':{'N':'1'}", "'x':{'N':'11'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{`a.b`}'}", "'a.b':{'N':'1'},'a':{'N':'1'}",
         "'a.b':{'N':'2'},'a':{'N':'1'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{x.y[0].`z.z`}'}",
         "'x':{'M':{'y':{'L':[{'M':{'z.z':{'N':'1'}}}]}}}",
         "'x':{'M':{'y':{'L':[{'M':{'z.z':{'N':'2'}}}]}}}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{`x.x`.y}'}", "'x.x':{'M':{'y':{'N':'1'}}}",
         "'x.x':{'M':{'y':{'N':'2'}}}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{NewImage.x}'}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{NewImage|json}'}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'{x|default:no}'}", "'y':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'project':['x.x']", "'x.x':{'N':'1'}", "'x.x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'project':['x'],'rename':{'x':'y'}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'project':['z'],'set':{'n':'{x}'}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'project':['each'],'set':{'n':'1'}", "'each':{'N':'1'}", "'each':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'1'},'where':{'x':[1]}", "'x':{'N':'1'}", "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'1'},'where':{'x.y':[1]}", "'x':{'M':{'y':{'N':'1'}}}",
         "'x':{'M':{'y':{'N':'2'}}}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'1'},'where':{'`x.y`':[1]}", "'x.y':{'N':'1'}", "'x.y':{'N':'2'}"},
        {",'key':{'PK':'{PK}'},'item':{'n':'1'},'where':{'$or':[{'x':[1]},{'z':[1]}]}", "'x':{'N':'1'}",
         "'x':{'N':'2'}"},
        {",'key':{'PK':'{PK|key}#{each|key}'},'each':'x[*]','item':{'n':'1'}", "'x':{'SS':['a']}",
         "'x':{'SS':['b']}"},
        {",'key':{'PK':'{PK|key}#{each|key}'},'each':'x.y[*]','item':{'n':'1'}",
         "'x':{'M':{'y':{'SS':['a']}}}", "'x':{'M':{'y':{'SS':['b']}}}"},
        {",'key':{'PK':'{PK|key}#{each|key}'},'each':'`x.y`[*]','item':{'n':'1'}", "'x.y':{'SS':['a']}",
         "'x.y':{'SS':['b']}"},
        {",'key':{'PK':'{PK|key}#{each|key}'},'each':'x[*]','item':{'n':'1'},'where':{'each':['a']}",
         "'x':{'SS':['a']}", "'x':{'SS':['b']}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[1024], event[2048];
        snprintf(config, sizeof(config), ROUTE("%s"), cases[i].route);
        struct stage *s = stage_new(config, NULL);
        snprintf(event, sizeof(event), EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") ",%s"))),
                 cases[i].old);
        stage_deliver_all(s, event);
        size_t writes = s->spent.writes;
        snprintf(event, sizeof(event),
                 EVENT(ORDER("MODIFY", "2", "a", OLD(PK("a") ",%s"), NEW(PK("a") ",%s"))), cases[i].old,
                 cases[i].new);
        stage_deliver_all(s, event);
        if (writes == 0 || s->spent.writes == writes)
            fail_msg("%s: %zu writes, and %zu", cases[i].route, writes, s->spent.writes);
        stage_destroy(s);
    }
}

/* ---- removals ---- */

static void what_expired_goes_or_stays_as_configured(void **state)
{
    (void)state;
    static const struct {
        const char *expired, *rows;
    } cases[] = {{"", ""}, {",'expired':'keep'", "1\n"}};
    for (size_t i = 0; i < 2; i++) {
        char config[512];
        snprintf(config, sizeof(config), ROUTE(",'key':{'PK':'K#{PK}'},'item':{'n':'{n}'}%s"),
                 cases[i].expired);
        struct stage *s = stage_new(config, NULL);
        stage_deliver_all(s, EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") ",'n':{'N':'1'}"))));
        stage_deliver_all(
            s, EVENT("{'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'},'eventID'"
                     ":'e2','eventName':'REMOVE','eventSource':'aws:dynamodb','awsRegion':'eu-west-1',"
                     "'dynamodb':{'Keys':{'PK':{'S':'a'}},'OldImage':{'PK':{'S':'a'},'n':{'N':'1'}},"
                     "'SequenceNumber':'2','SizeBytes':1,'StreamViewType':'NEW_AND_OLD_IMAGES'}}"));
        char *got = stage_query(s, "db", "SELECT 1 FROM view WHERE item NOT LIKE '%sluice_rows%'");
        assert_string_equal(got, cases[i].rows);
        free(got);
        /* An item that comes anew and makes no row takes the old one away. */
        stage_deliver_all(s, EVENT(ORDER("INSERT", "3", "a", "", NEW(PK("a") ",'n':{'N':'2'}"))));
        got = stage_query(s, "db", "SELECT item FROM view WHERE item NOT LIKE '%sluice_rows%'");
        assert_non_null(strstr(got, json("'n':{'N':'2'}")));
        free(got);
        stage_destroy(s);
    }
}

/* Only a record shows what the source's key is. */
static void a_key_that_is_not_unique_stops_the_route(void **state)
{
    (void)state;
    static const char *const keys[] = {"{'PK':'{email}'}", "{'PK':'{PK|lower}'}", "{'PK':'{a.PK}'}"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char config[512];
        snprintf(config, sizeof(config), ROUTE(",'key':%s"), keys[i]);
        struct stage *s = stage_new(config, NULL);
        char *event = strdup(EVENT(ORDER("INSERT", "1", "a", "", NEW(PK("a") ",'email':{'S':'e'}"))));
        json_quote(event);
        stage_deliver(s, sl_span_str(event));
        char *log = stage_log(s);
        assert_true(s->answer.is_error || s->answer.parked == 0);
        if (!strstr(log, "key: no template has a place {PK} or {PK|key}"))
            fail_msg("%s: %s", keys[i], log);
        free(log);
        free(event);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_what_is_configured),
        cmocka_unit_test(what_cannot_be_is_refused_at_start),
        cmocka_unit_test(what_makes_no_rows_is_parked),
        cmocka_unit_test(rows_that_are_too_large_are_parked),
        cmocka_unit_test(a_row_is_measured_as_dynamodb_does),
        cmocka_unit_test(a_list_that_is_too_large_is_parked),
        cmocka_unit_test(a_row_of_somebody_else_is_not_touched),
        cmocka_unit_test(a_list_that_moves_is_taken_as_it_is),
        cmocka_unit_test(a_list_that_somebody_else_wrote_stops_the_route),
        cmocka_unit_test(a_late_record_has_the_epoch_of_its_time),
        cmocka_unit_test(a_change_costs_what_it_alters),
        cmocka_unit_test(a_change_of_what_is_read_is_not_skipped),
        cmocka_unit_test(what_expired_goes_or_stays_as_configured),
        cmocka_unit_test(a_key_that_is_not_unique_stops_the_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
