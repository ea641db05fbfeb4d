/* opensearch:// and what comes back: numbers in every spelling, text that is no UTF-8, answers that refuse
 * the whole request, and pages of a scan that are not what was asked for. */
#include "tests/support/fake_opensearch.h"
#include "tests/support/fault.h"
#include "tests/support/honest.h"

#include "base/json.h"
#include "base/number.h"
#include "sinks/item.h"

#include <stdio.h>
#include <stdlib.h>

#define INDEX "opensearch://server/idx?tls=off"

static struct fault f;
static struct fake_opensearch *fake;
static struct sl_table_port *port;

/* What one operation is answered instead; NULL: nothing. */
static struct {
    const char *operation;
    int status; /* 0: 200 */
    const char *body;
} lie;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    fake_opensearch_answer(arg, request, reply);
    if (lie.operation && strcmp(operation, lie.operation) == 0)
        *reply =
            (struct scripted_reply){.status = lie.status ? lie.status : 200, .body = sl_span_str(lie.body)};
}

static void open_index(const char *url)
{
    lie.operation = NULL;
    lie.status = 0;
    fake = fake_opensearch_open();
    fault_open(&f, answer, fake);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    port = fault_table(&f, url);
}

static void close_index(void)
{
    const char *fault = fake_opensearch_fault(fake);
    port->close(port);
    fault_close(&f);
    fake_opensearch_close(fake);
    if (fault)
        fail_msg("%s", fault);
}

static struct sl_result run(enum sl_table_verb verb, const char *item)
{
    struct sl_table_op op = {
        .verb = verb, .key = json_span("{'PK':{'S':'a'}}"), .item = sl_span_str(item), .want_item = true};
    struct sl_result result;
    port->apply(port, &op, 1, &result, &f.call);
    fault_note(&f, &result, 1);
    return result;
}

static const struct scripted_request *last_of(const char *path)
{
    for (size_t i = scripted_server_requests(f.server); i > 0; i--)
        if (strstr(scripted_server_request(f.server, i - 1)->path, path))
            return scripted_server_request(f.server, i - 1);
    fail_msg("nothing asked for %s", path);
    return NULL;
}

/* The document of the last bulk, which must be JSON. */
static struct sl_span last_document(void)
{
    struct sl_span body = last_of("/_bulk")->body;
    const char *line = (const char *)memchr(body.ptr, '\n', body.len) + 1;
    struct sl_span document = sl_span(line, (size_t)(sl_span_end(body) - line - 1));
    if (sl_json_check_loose(document, NULL) != SL_OK)
        fail_msg("no JSON: %.*s", SL_ARG(document));
    return document;
}

/* ---- numbers ---- */

static const char *const numbers[] = {
    "0",
    "-0",
    "1",
    "-1",
    "+1",
    "007",
    "-007",
    "1.50",
    "0.5",
    "-0.5",
    ".5",
    "5.",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1.5e-3",
    "0.0",
    "1e",
    "1e+",
    "e5",
    "-",
    "",
    "1.e5",
    "1.2.3",
    "1-",
    "1,5",
    "0x10",
    "NaN",
    "12345678901234567",
    "1234567890123456789",
    "12345678901234567890",
    "1.2345678901234567",
    "0.30000000000000004",
    "-9223372036854775808",
    "9999999999999999999",
    "99999999999999999999999999999999999999",
    "123456789.12345678901",
    "1000000000000000000000",
    "1\\u0030",
    "\\u0031.5",
    "1\\u002e5",
    "\\u0078",
    "100000000000000000e0",
    "00000000000000000001",
    "1\\u00300000000000000000000",
};

/* Whatever is taken comes back as the same number, and the document is JSON; whatever is none is the
 * record's. */
static void numbers_come_back(void **state)
{
    (void)state;
    for (int is_text = 0; is_text < 2; is_text++)
        for (int is_set = 0; is_set < 2; is_set++) {
            open_index(is_text ? INDEX "&numbers=text" : INDEX);
            for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                struct sl_number put, got;
                char plain[400];
                size_t n = sl_json_unescape_to(sl_span_str(numbers[i]), plain);
                bool is_number = sl_number_parse(sl_span(plain, n), &put) == NULL;
                struct sl_result result =
                    run(SL_TABLE_PUT, json_printf(is_set ? "{'PK':{'S':'a'},'n':{'NS':['%s']}}"
                                                         : "{'PK':{'S':'a'},'n':{'N':'%s'}}",
                                                  numbers[i]));
                if (result.status != (is_number ? SL_OK : SL_REJECT))
                    fail_msg("%s: %s, %s", numbers[i], sl_status_name(result.status), result.text);
                if (!is_number)
                    continue;
                (void)last_document();
                result = run(SL_TABLE_GET, "");
                assert_result(result, SL_OK, NULL);
                struct sl_span value = sl_item_attribute(result.item, SL_LIT("n"));
                struct sl_span head = is_set ? SL_LIT("{\"NS\":[\"") : SL_LIT("{\"N\":\"");
                assert_true(sl_span_starts(value, head));
                value = sl_span(value.ptr + head.len, value.len - head.len - (is_set ? 3 : 2));
                if (sl_number_parse(value, &got) || sl_number_compare(&put, &got) != 0)
                    fail_msg("%s came back as %.*s", numbers[i], SL_ARG(value));
            }
            close_index();
        }
}

static void sets_of_numbers_come_back_in_their_order(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "['1','12345678901234567890','2']",
        "['12345678901234567890','12345678901234567891']",
        "['0.1','0.30000000000000004','1E-7']",
        "['1','2','3']",
    };
    for (int is_text = 0; is_text < 2; is_text++) {
        open_index(is_text ? INDEX "&numbers=text" : INDEX);
        for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
            const char *item = json_printf("{'PK':{'S':'a'},'n':{'NS':%s}}", sets[i]);
            assert_result(run(SL_TABLE_PUT, item), SL_OK, NULL);
            struct sl_result result = run(SL_TABLE_GET, "");
            const struct sl_test same = {SL_EQ, SL_LIT("n"),
                                         sl_item_attribute(sl_span_str(item), SL_LIT("n"))};
            bool is_same = false;
            assert_int_equal(sl_item_test(&(struct sl_table_op){.tests = &same, .n_tests = 1}, result.item,
                                          &is_same, NULL),
                             SL_OK);
            if (!is_same)
                fail_msg("%s came back as %.*s", item, SL_ARG(result.item));
        }
        close_index();
    }
}

/* A reader that knows 64 bits and doubles loses no digit of 15, and none of a whole number of 18: only beside
 * longer ones the number stands a second time, as it was. */
static void only_a_long_number_stands_twice(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        bool is_long;
    } cases[] = {{"1.23456789012345", false},        {"1.234567890123456", true},
                 {"0.000000123456789012345", false}, {"123456789012345678", false},
                 {"1234567890123456789", true},      {"1.50", false},
                 {"-1.23456789012345", false},       {"-1.234567890123456", true}};
    open_index(INDEX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *item = json_printf("{'PK':{'S':'a'},'n':{'N':'%s'}}", cases[i].number);
        assert_result(run(SL_TABLE_PUT, item), SL_OK, NULL);
        struct sl_span document = last_document();
        if ((memmem(document.ptr, document.len, "sluice_types", 12) != NULL) != cases[i].is_long)
            fail_msg("%s: %.*s", cases[i].number, SL_ARG(document));
        assert_span_is(run(SL_TABLE_GET, "").item, item);
    }
    close_index();
}

/* ---- text ---- */

/* Bytes that are no UTF-8, which DynamoDB stores in names: they harm no other text of the item. */
static void text_that_is_no_utf8_stays_where_it_is(void **state)
{
    (void)state;
    static const char *const odd[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\\ud800", "\xf5\x80\x80\x80"};
    open_index(INDEX);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        const char *item = json_printf("{'PK':{'S':'a'},'odd':{'S':'%s'},'good':{'S':'caf\xC3\xA9 \\\\ "
                                       "\\n'},'m':{'M':{'%s':{'N':'1'}}}}",
                                       odd[i], odd[i]);
        assert_result(run(SL_TABLE_PUT, item), SL_OK, NULL);
        struct sl_span document = last_document();
        assert_non_null(memmem(document.ptr, document.len, "\"good\":\"caf\xC3\xA9", 13));
        struct sl_result result = run(SL_TABLE_GET, "");
        assert_result(result, SL_OK, NULL);
        assert_span_is(sl_item_attribute(result.item, SL_LIT("good")), json("{'S':'caf\xC3\xA9 \\\\ \\n'}"));
    }
    close_index();
}

/* ---- whole requests that are refused ---- */

static void refusals_of_requests_have_their_class(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        enum sl_status is;
        const char *code, *says; /* NULL: any */
    } cases[] = {
        {401, "", SL_FATAL, "Http401", NULL},
        {403, "<html>no</html>", SL_FATAL, "Http403", NULL},
        {403, "{}", SL_FATAL, "Http403", NULL},
        {400, "", SL_FATAL, "Http400", "the answer is empty"},
        {400, "{'error':'a text','status':400}", SL_FATAL, "Http400", NULL},
        {400, "{'error':{'type':''},'status':400}", SL_FATAL, "Http400", NULL},
        {400, "{'error':{'type':5},'status':400}", SL_FATAL, "Http400", NULL},
        {400, "{'error':{'type':'no code!'},'status':400}", SL_FATAL, "Http400", NULL},
        {400, "{'error':{'type':'new_exception','reason':5},'status':400}", SL_FATAL, "new_exception", NULL},
        {400, "{'error':{'type':'new_exception','reason':'one','caused_by':{'reason':'two'}}}", SL_FATAL,
         "new_exception", "new_exception: one: two"},
        {400, "{'error':{'type':'new_exception','caused_by':{'reason':'the service'}}}", SL_FATAL,
         "new_exception", "the service"},
        {400, "{'error':{'type':'new_exception','reason':'a\\u0000b'}}", SL_FATAL, "new_exception", "a?b"},
        {400, "{'error':{'type':'new_exception'},'status':400", SL_FATAL, "Http400", NULL}, /* cut */
        {404, "{'error':{'type':'new_exception'}}", SL_FATAL, "new_exception", NULL},
        {408, "{'error':{'type':'new_exception'}}", SL_RETRY, "new_exception", NULL},
        {409, "{'error':{'type':'new_exception'}}", SL_RETRY, "new_exception", NULL},
        {429, "{'error':{'type':'new_exception'}}", SL_RETRY, "new_exception", NULL},
        {500, "{'error':{'type':'new_exception'}}", SL_RETRY, "new_exception", NULL},
        {502, "<html>", SL_RETRY, "Http502", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        lie.operation = "Bulk";
        lie.status = cases[i].status;
        lie.body = json(cases[i].body);
        struct sl_result result = run(SL_TABLE_PUT, json("{'PK':{'S':'a'}}"));
        if (result.status != cases[i].is || strcmp(result.code, cases[i].code) != 0 || !result.text ||
            (cases[i].says && !strstr(result.text, cases[i].says)))
            fail_msg("%d %s: %s %s: %s", cases[i].status, cases[i].body, sl_status_name(result.status),
                     result.code, result.text);
        assert_false(result.not_sent);
        lie.operation = NULL; /* and then it is well */
        assert_result(run(SL_TABLE_PUT, json("{'PK':{'S':'a'}}")), SL_OK, NULL);
        close_index();
    }
}

/* ---- pages ---- */

#define LOW  "'00000000000000000000000000000001'"
#define HIGH "'f0000000000000000000000000000001'"
#define PAGE(hits)                                                                                           \
    "{'timed_out':false,'_shards':{'total':1,'successful':1,'failed':0},'hits':{'total':{'value':0},'hits'"  \
    ":" hits "}}"
#define HIT(sort) "{'_id':'x','_source':{'PK':'x'},'sort':" sort "}"

static struct sl_table_page scan(struct sl_table_scan asked)
{
    struct sl_table_page page;
    port->scan(port, &asked, 1, &page, &f.call);
    fault_note(&f, &page.result, 1);
    return page;
}

/* Of the second of two segments, at most two documents. */
static void a_page_is_what_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool is_good;
    } cases[] = {
        {PAGE("[]"), true},
        {PAGE("[" HIT("[" HIGH "]") "]"), true},
        {PAGE("[" HIT("[" HIGH "]") "," HIT("[" HIGH "]") "]"), true},
        {PAGE("[" HIT("[" HIGH "]") "," HIT("[" HIGH "]") "," HIT("[" HIGH "]") "]"), false},
        {PAGE("[" HIT("[" LOW "]") "]"), false}, /* of the other segment */
        {PAGE("[" HIT("['ff000000000000000000000000000000']") "," HIT("[" HIGH "]") "]"), false},
        {PAGE("[" HIT("[]") "]"), false},
        {PAGE("[" HIT("[" HIGH "," HIGH "]") "]"), false},
        {PAGE("[" HIT("[5]") "]"), false},
        {PAGE("[" HIT("['F0000000000000000000000000000001']") "]"), false},
        {PAGE("[" HIT("['f000000000000000000000000000000/']") "]"), false},
        {PAGE("[" HIT("['f000000000000000000000000000000:']") "]"), false},
        {PAGE("[" HIT("['f000000000000000000000000000000`']") "]"), false},
        {PAGE("[" HIT("['f000000000000000000000000000000g']") "]"), false},
        {PAGE("[" HIT("['f00000000000000000000000000000001']") "]"), false},
        {PAGE("[{'_id':'x','_source':{'PK':'x'}}]"), false},
        {PAGE("[{'_id':'x','sort':[" HIGH "]}]"), false},
        {PAGE("[{'_id':'x','_source':'PK','sort':[" HIGH "]}]"), false},
        {PAGE("{}"), false},
        {"{'timed_out':false,'_shards':{'total':1,'successful':1,'failed':0},'hits':{}}", false},
        {"{'timed_out':false,'_shards':{'failed':0}}", false},
        {"{'timed_out':false,'_shards':{'total':2,'successful':1,'failed':0},'hits':{'hits':[]}}", false},
        {"{'timed_out':true,'_shards':{'total':1,'successful':1,'failed':0},'hits':{'hits':[]}}", false},
        {"{'timed_out':false,'_shards':{'failed':1},'hits':{'hits':[]}}", false},
        {"{'timed_out':false,'_shards':{},'hits':{'hits':[]}}", false},
        {"{'_shards':{'total':1,'successful':1,'failed':0},'hits':{'hits':[]}}", false},
        {"[]", false},
        {"<html>", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        lie.operation = "Search";
        lie.body = json(cases[i].body);
        struct sl_table_page page = scan((struct sl_table_scan){.segment = 1, .of = 2, .limit = 2});
        if ((page.result.status == SL_OK) != cases[i].is_good)
            fail_msg("%s: %s", cases[i].body, page.result.text ? page.result.text : "taken");
        if (!cases[i].is_good) {
            assert_result(page.result, SL_RETRY, "BrokenAnswer");
            assert_true(page.n == 0 && !page.next.ptr);
        }
        close_index();
    }
}

/* Where a segment ends the next one begins. */
static void a_segment_ends_where_the_next_begins(void **state)
{
    (void)state;
    static const struct {
        const char *hash;
        uint32_t segment;
    } cases[] = {{"00000000000000000000000000000000", 0}, {"3fffffffffffffffffffffffffffffff", 0},
                 {"40000000000000000000000000000000", 1}, {"7fffffffffffffffffffffffffffffff", 1},
                 {"80000000000000000000000000000000", 2}, {"c0000000000000000000000000000000", 3},
                 {"ffffffffffffffffffffffffffffffff", 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t segment = 0; segment < 4; segment++) {
            bool is_of_it = segment == cases[i].segment;
            open_index(INDEX);
            lie.operation = "Search";
            lie.body = json_printf(PAGE("[" HIT("['%s']") "]"), cases[i].hash);
            struct sl_table_page page = scan((struct sl_table_scan){.segment = segment, .of = 4, .limit = 2});
            assert_result(page.result, is_of_it ? SL_OK : SL_RETRY, is_of_it ? NULL : "BrokenAnswer");
            assert_int_equal(page.n, is_of_it);
            close_index();
        }
}

/* The documents without a digest, which come last: their number must be said, and so many must come. */
static void strangers_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *total, *code; /* NULL: it is fine */
    } cases[] = {
        {"{'value':0}", NULL},
        {"{}", "BrokenAnswer"},
        {"5", "BrokenAnswer"},
        {"{'value':'0'}", "BrokenAnswer"},
        {"{'value':-1}", "BrokenAnswer"},
        {"{'value':3}", "BrokenAnswer"},
        {"{'value':10000000000000000000}", "BrokenAnswer"},
        {"{'value':1000000000000000000}", "Strangers"},
        {"{'value':10001}", "Strangers"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        struct sl_span after = scan((struct sl_table_scan){.limit = 0}).next;
        assert_non_null(after.ptr);
        lie.operation = "Search";
        lie.body = json_printf("{'timed_out':false,'_shards':{'total':1,'successful':1,'failed':0},'hits':{'"
                               "total':%s,'hits':[]}}",
                               cases[i].total);
        struct sl_table_page page = scan((struct sl_table_scan){.after = after});
        enum sl_status wanted = !cases[i].code                            ? SL_OK
                                : strcmp(cases[i].code, "Strangers") == 0 ? SL_FATAL
                                                                          : SL_RETRY;
        assert_result(page.result, wanted, cases[i].code);
        assert_null(page.next.ptr);
        close_index();
    }
}

/* A place that a page named is gone on from; any other key has a digest; what is no key is refused. */
static void a_scan_goes_on_from_any_key(void **state)
{
    (void)state;
    static const struct {
        const char *after, *asks; /* a part of the request; NULL: none is sent */
    } cases[] = {
        {"{'sluice_hash':{'S':" HIGH "}}", "'search_after':[" HIGH "]"},
        {"{'sluice_hash':{'S':'x'}}", "'search_after':['"},
        {"{'sluice_hash':{'S':'$'}}", "'from':0"},
        {"{'sluice_hash':{'S':'$3'}}", "'from':3"},
        {"{'sluice_hash':{'S':'$9999'}}", "'size':1,'from':9999"},
        {"{'sluice_hash':{'S':'$1x'}}", "'from':0"},
        {"{'sluice_hash':{'S':'$1-'}}", "'from':0"},
        {"{'sluice_hash':{'S':'$1234567'}}", "'search_after':['"},
        {"{'PK':{'S':'a'}}", "'search_after':['"},
        {"{'PK':{'N':'5'}}", "'search_after':['"},
        {"{'PK':{'BOOL':true}}", NULL},
        {"{}", NULL},
        {"5", NULL},
    };
    open_index(INDEX);
    struct sl_span next = scan((struct sl_table_scan){.limit = 0}).next;
    char strangers = ((const char *)memmem(next.ptr, next.len, "\"S\":\"", 5))[5];
    lie.operation = "Search";
    lie.body = json(PAGE("[]"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char after[100];
        snprintf(after, sizeof(after), "%s", json(cases[i].after));
        for (char *p = after; (p = strchr(p, '$')) != NULL;)
            *p = strangers;
        size_t before = scripted_server_requests(f.server);
        struct sl_table_page page = scan((struct sl_table_scan){.after = sl_span_str(after)});
        if (!cases[i].asks) {
            assert_int_equal(page.result.status, SL_REJECT);
            assert_int_equal(scripted_server_requests(f.server), before);
            continue;
        }
        assert_result(page.result, SL_OK, NULL);
        struct sl_span body = last_of("/_search")->body;
        const char *wanted = json(cases[i].asks);
        if (!memmem(body.ptr, body.len, wanted, strlen(wanted)))
            fail_msg("%s: %.*s", after, SL_ARG(body));
    }
    close_index();
}

/* A scan that must see all is not begun when it is not certain that it does. */
static void a_refresh_must_be_whole(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool is_good;
    } cases[] = {
        {"{'_shards':{'total':2,'successful':1,'failed':0}}", true},
        {"{'_shards':{'total':2,'successful':1,'failed':1}}", false},
        {"{'_shards':{'total':2,'successful':1}}", false},
        {"{'_shards':{'failed':0},'more':1}", false},
        {"{'shards':{'failed':0}}", false},
        {"{}", false},
        {"[]", false},
        {"{'_shards':{'failed':0}", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        lie.operation = "Refresh";
        lie.body = json(cases[i].body);
        struct sl_table_page page = scan((struct sl_table_scan){.is_consistent = true});
        assert_result(page.result, cases[i].is_good ? SL_OK : SL_RETRY,
                      cases[i].is_good ? NULL : "BrokenAnswer");
        lie.operation = NULL;
        assert_result(scan((struct sl_table_scan){.is_consistent = true}).result, SL_OK, NULL);
        close_index();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(sets_of_numbers_come_back_in_their_order),
        cmocka_unit_test(only_a_long_number_stands_twice),
        cmocka_unit_test(text_that_is_no_utf8_stays_where_it_is),
        cmocka_unit_test(refusals_of_requests_have_their_class),
        cmocka_unit_test(a_page_is_what_was_asked_for),
        cmocka_unit_test(a_segment_ends_where_the_next_begins),
        cmocka_unit_test(strangers_are_counted),
        cmocka_unit_test(a_scan_goes_on_from_any_key),
        cmocka_unit_test(a_refresh_must_be_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
