/* Reading through the ports when the service is not well: throttled, elsewhere, late, in the wrong order. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

/* ---- a script: one reply after the other, the last one for ever ---- */

struct script {
    struct scripted_reply replies[4];
    size_t n;
};

static void play(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct script *script = arg;
    *reply = script->replies[request->number < script->n ? request->number : script->n - 1];
}

static const struct scripted_reply throttled = {
    .status = 400, .body = SL_LIT("{\"__type\":\"x#ProvisionedThroughputExceededException\"}")};
static const struct scripted_reply slow_down = {.status = 503,
                                                .body = SL_LIT("<Error><Code>SlowDown</Code></Error>")};
static const struct scripted_reply elsewhere = {.status = 301,
                                                .headers = "x-amz-bucket-region: eu-west-3\r\n"};
static const struct scripted_reply honest = {.is_honest = true};

static struct sl_object_piece read_one(const char *etag, uint64_t from)
{
    struct sl_object_port *port = fault_objects(&f, "s3://bucket/p");
    const struct sl_object_read read = {
        .key = SL_LIT("a/b c"), .from = from, .max_bytes = 100, .etag = sl_span_str(etag)};
    struct sl_object_piece piece;
    port->read(port, &read, 1, &piece, &f.call);
    fault_note(&f, &piece.result, 1);
    port->close(port);
    return piece;
}

static struct sl_object_page list_one(struct sl_object_list list)
{
    struct sl_object_port *port = fault_objects(&f, "s3://bucket");
    struct sl_object_page page;
    port->list(port, &list, &page, &f.call);
    fault_note(&f, &page.result, 1);
    port->close(port);
    return page;
}

static struct sl_table_page scan_one(struct sl_table_scan scan)
{
    struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
    struct sl_table_page page;
    port->scan(port, &scan, 1, &page, &f.call);
    fault_note(&f, &page.result, 1);
    port->close(port);
    return page;
}

static struct sl_table_facts describe_one(void)
{
    struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
    struct sl_table_facts facts;
    port->describe(port, sl_span(NULL, 0), &facts, &f.call);
    fault_note(&f, &facts.result, 1);
    port->close(port);
    return facts;
}

/* ---- tests ---- */

static void what_passes_is_tried_again(void **state)
{
    (void)state;
    struct script s3 = {{slow_down, slow_down, honest}, 3}, table = {{throttled, throttled, honest}, 3};
    fault_open(&f, play, &s3);
    assert_result(read_one(NULL, 0).result, SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
    fault_open(&f, play, &s3);
    assert_result(list_one((struct sl_object_list){.prefix = SL_LIT("p/")}).result, SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
    fault_open(&f, play, &table);
    assert_result(scan_one((struct sl_table_scan){.of = 0}).result, SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
    fault_open(&f, play, &table);
    assert_result(describe_one().result, SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
}

static void what_does_not_pass_is_retryable(void **state)
{
    (void)state;
    struct script always = {{throttled}, 1};
    fault_open(&f, play, &always);
    struct sl_table_page page = scan_one((struct sl_table_scan){.of = 0});
    assert_result(page.result, SL_RETRY, "ProvisionedThroughputExceededException");
    assert_true(page.n == 0 && !page.next.ptr);
    fault_close(&f);
}

static void a_bucket_elsewhere_is_followed(void **state)
{
    (void)state;
    struct script moved = {{elsewhere, honest}, 2};
    fault_open(&f, play, &moved);
    assert_result(read_one(NULL, 0).result, SL_OK, NULL);
    assert_non_null(strstr(scripted_server_request(f.server, 1)->head, "/eu-west-3/s3/"));
    fault_close(&f);
    fault_open(&f, play, &moved);
    assert_result(list_one((struct sl_object_list){.prefix = SL_LIT("p/")}).result, SL_OK, NULL);
    assert_non_null(strstr(scripted_server_request(f.server, 1)->head, "/eu-west-3/s3/"));
    fault_close(&f);
    struct script always = {{elsewhere}, 1};
    fault_open(&f, play, &always);
    assert_int_equal(read_one(NULL, 0).result.status, SL_FATAL); /* it is followed once */
    assert_int_equal(scripted_server_requests(f.server), 2);
    fault_close(&f);
}

static void nothing_is_begun_without_time(void **state)
{
    (void)state;
    struct script script = {{honest}, 1};
    fault_open(&f, play, &script);
    f.call.deadline_ms = f.clock.ms;
    assert_true(read_one(NULL, 0).result.not_sent);
    assert_true(list_one((struct sl_object_list){.prefix = SL_LIT("p/")}).result.not_sent);
    assert_true(scan_one((struct sl_table_scan){.of = 0}).result.not_sent);
    assert_result(describe_one().result, SL_RETRY, "DeadlineExceeded");
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

static void a_request_says_what_is_wanted(void **state)
{
    (void)state;
    struct script script = {{honest}, 1};
    fault_open(&f, play, &script);
    (void)read_one(NULL, 0);
    const struct scripted_request *request = scripted_server_request(f.server, 0);
    assert_string_equal(request->method, "GET");
    assert_string_equal(request->path, "/bucket/p/a/b%20c");
    assert_span_is(scripted_header(request, "range"), "bytes=0-99");
    assert_span_is(scripted_header(request, "x-amz-checksum-mode"), "ENABLED");
    assert_null(scripted_header(request, "if-match").ptr);
    (void)read_one("e1", 5);
    request = scripted_server_request(f.server, 1);
    assert_span_is(scripted_header(request, "range"), "bytes=5-104");
    assert_span_is(scripted_header(request, "if-match"), "\"e1\"");
    assert_null(scripted_header(request, "x-amz-checksum-mode").ptr);
    fault_close(&f);
    fault_open(&f, play, &script);
    (void)list_one((struct sl_object_list){.prefix = SL_LIT("p/ä&+"), .after = SL_LIT("p/b c"), .limit = 7});
    assert_string_equal(
        scripted_server_request(f.server, 0)->path,
        "/bucket?list-type=2&encoding-type=url&max-keys=7&prefix=p%2F%C3%A4%26%2B&start-after="
        "p%2Fb%20c");
    fault_close(&f);
    const struct sl_span names[] = {SL_LIT("a.b"), SL_LIT("status")};
    fault_open(&f, play, &script);
    (void)scan_one((struct sl_table_scan){.table = SL_LIT("other"),
                                          .segment = 2,
                                          .of = 3,
                                          .after = SL_LIT("{\"PK\":{\"S\":\"k\"}}"),
                                          .is_consistent = true,
                                          .limit = 9,
                                          .names = names,
                                          .n_names = 2});
    assert_span_is(
        scripted_server_request(f.server, 0)->body,
        json("{'TableName':'other','ConsistentRead':true,'ReturnConsumedCapacity':'TOTAL','Segment':2,"
             "'TotalSegments':3,'Limit':9,'ExclusiveStartKey':{'PK':{'S':'k'}},"
             "'ProjectionExpression':'#n0,#n1','ExpressionAttributeNames':{'#n0':'a.b','#n1':'status'}}"));
    (void)scan_one((struct sl_table_scan){.of = 1});
    fault_close(&f);
}

/* ---- answers that are right in themselves ---- */

static struct scripted_reply reply_of(int status, const char *headers, const char *body)
{
    return (struct scripted_reply){
        .status = status, .headers = headers, .body = sl_span_str(*body == '{' ? json(body) : body)};
}

static struct sl_table_page scan_of(const char *body, struct sl_table_scan scan)
{
    struct script script = {{reply_of(200, NULL, body)}, 1};
    fault_open(&f, play, &script);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    struct sl_table_page page = scan_one(scan);
    page.items = NULL; /* they go with the call's arena */
    page.result.text = page.result.code = NULL;
    fault_close(&f);
    return page;
}

#define PAGE(key)                                                                                            \
    "{'Items':[{'PK':{'S':'b'}}],'Count':1,'ScannedCount':1,'LastEvaluatedKey':{'PK':{'S':'" key "'}}}"

static void a_page_that_leads_back_is_not_followed(void **state)
{
    (void)state;
    const struct sl_table_scan after_b = {.after = SL_LIT("{\"PK\":{\"S\":\"b\"}}")};
    assert_int_equal(scan_of(PAGE("b"), after_b).result.status, SL_RETRY);
    assert_int_equal(scan_of(PAGE("c"), after_b).result.status, SL_OK);
    assert_int_equal(scan_of(PAGE("b"), (struct sl_table_scan){.of = 0}).result.status, SL_OK);
}

static void a_page_is_no_longer_than_was_asked(void **state)
{
    (void)state;
    const char *two = "{'Items':[{'PK':{'S':'a'}},{'PK':{'S':'b'}}],'Count':2,'ScannedCount':2}";
    assert_int_equal(scan_of(two, (struct sl_table_scan){.limit = 1}).result.status, SL_RETRY);
    assert_int_equal(scan_of(two, (struct sl_table_scan){.limit = 2}).n, 2);
}

static void an_item_without_a_wanted_attribute_is_empty(void **state)
{
    (void)state;
    const struct sl_span name = SL_LIT("a");
    const char *empty = "{'Items':[{},{}],'Count':2,'ScannedCount':2}";
    assert_int_equal(scan_of(empty, (struct sl_table_scan){.names = &name, .n_names = 1}).n, 2);
    assert_int_equal(scan_of(empty, (struct sl_table_scan){.of = 0}).result.status, SL_RETRY);
}

static void blanks_and_unknown_members_are_fine(void **state)
{
    (void)state;
    struct sl_table_page page =
        scan_of("{ 'X' : [1,{'Items':5}] , 'Items' : [ { 'PK' : { 'S' : 'a' } , 'l' : { 'L' : [ ] } } , "
                "{ 'PK' : { 'N' : '1' } } ] , 'Count' : 2 , 'ScannedCount' : 2 } ",
                (struct sl_table_scan){.of = 0});
    assert_int_equal(page.result.status, SL_OK);
    assert_int_equal(page.n, 2);
}

/* Whatever byte of a page is another one: what is no JSON is no page, and what is left out is no item. */
static void a_page_is_json(void **state)
{
    (void)state;
    static const char page[] = "{'Items':[{'PK':{'S':'a'}}],'Count':1,'ScannedCount':1}";
    assert_int_equal(scan_of(page, (struct sl_table_scan){.of = 0}).n, 1);
    for (size_t i = 0; i < strlen(page); i++) {
        char changed[sizeof(page)];
        memcpy(changed, page, sizeof(page));
        size_t name = (size_t)(strstr(page, "PK") - page), text = (size_t)(strstr(page, "a'}") - page);
        bool is_content = i == name || i == name + 1 || i == text; /* any other will do */
        changed[i] = '~';
        struct sl_table_page got = scan_of(changed, (struct sl_table_scan){.of = 0});
        assert_int_equal(got.result.status, is_content ? SL_OK : SL_RETRY);
        assert_int_equal(got.n, is_content ? 1 : 0);
    }
}

/* A name that is no table's is the configuration's fault, whoever asks, and no record's. */
static void a_name_that_is_no_table_s_is_the_target_s_fault(void **state)
{
    (void)state;
    static const char *const names[] = {"ab", "a b", "a/b", ""};
    struct script script = {{honest}, 1};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct sl_table_page page;
        struct sl_table_facts facts;
        struct sl_result results[3];
        struct sl_table_op op = {
            .verb = SL_TABLE_GET, .table = sl_span_str(names[i]), .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}")};
        fault_open(&f, play, &script);
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        port->apply(port, &op, 1, &results[0], &f.call);
        port->scan(port, &(struct sl_table_scan){.table = op.table}, 1, &page, &f.call);
        port->describe(port, op.table, &facts, &f.call);
        results[1] = page.result;
        results[2] = facts.result;
        for (size_t k = 0; k < 3; k++) {
            assert_result(results[k], SL_FATAL, "InvalidTarget");
            assert_true(results[k].not_sent);
        }
        assert_int_equal(scripted_server_requests(f.server), 0);
        port->close(port);
        fault_close(&f);
    }
}

/* 32 containers of a value, and no more. */
static void depth_has_a_limit(void **state)
{
    (void)state;
    for (int depth = 31; depth <= 33; depth++) {
        struct sl_buffer text;
        sl_buffer_init(&text, 65536);
        sl_buffer_add_str(&text, "{'Items':[{'a':");
        for (int i = 0; i < depth; i++)
            sl_buffer_add_str(&text, i % 2 ? "{'L':[" : "{'M':{'m':");
        sl_buffer_add_str(&text, "{'S':'x'}");
        for (int i = depth; i-- > 0;)
            sl_buffer_add_str(&text, i % 2 ? "]}" : "}}");
        sl_buffer_add_str(&text, "}],'Count':1,'ScannedCount':1}");
        sl_buffer_add_char(&text, '\0');
        assert_int_equal(scan_of(text.ptr, (struct sl_table_scan){.of = 0}).result.status,
                         depth <= 32 ? SL_OK : SL_RETRY);
        sl_buffer_clean_up(&text);
    }
}

static struct sl_object_piece piece_of(struct scripted_reply reply, uint64_t from)
{
    struct script script = {{reply}, 1};
    fault_open(&f, play, &script);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    struct sl_object_piece piece = read_one(NULL, from);
    piece.result.text = NULL;
    fault_close(&f);
    return piece;
}

static void the_end_of_an_object_is_known(void **state)
{
    (void)state;
    const char *body = "<Error><Code>InvalidRange</Code><ActualObjectSize>7</ActualObjectSize></Error>";
    struct sl_object_piece piece = piece_of(reply_of(416, NULL, body), 7);
    assert_int_equal(piece.result.status, SL_OK);
    assert_int_equal(piece.object_bytes, 7);
    assert_int_equal(piece.bytes.len, 0);
    assert_int_equal(piece_of(reply_of(416, NULL, body), 6).result.status, SL_RETRY);
    piece = piece_of(
        reply_of(416, "content-range: bytes */3\r\n", "<Error><Code>InvalidRange</Code></Error>"), 5);
    assert_int_equal(piece.result.status, SL_OK);
    assert_int_equal(piece.object_bytes, 3);
    assert_int_equal(piece_of(reply_of(416, NULL, "<html>no</html>"), 7).result.status, SL_FATAL);
    assert_int_equal(piece_of(reply_of(404, NULL, "<html>no</html>"), 0).result.status, SL_FATAL);
    assert_int_equal(piece_of(reply_of(404, NULL, "<Error><Code>NoSuchKey</Code></Error>"), 0).result.status,
                     SL_REJECT);
}

/* A checksum of parts, and one beside a part of the object, are of something else. */
static void a_checksum_of_something_else_is_no_lie(void **state)
{
    (void)state;
    struct scripted_reply parts =
        reply_of(206, "etag: \"e\"\r\ncontent-range: bytes 0-9/10\r\nx-amz-checksum-crc32: AAAAAA==-2\r\n",
                 "0123456789");
    struct scripted_reply rest =
        reply_of(206, "etag: \"e\"\r\ncontent-range: bytes 5-14/15\r\nx-amz-checksum-crc32: AAAAAA==\r\n",
                 "0123456789");
    assert_int_equal(piece_of(parts, 0).result.status, SL_OK);
    assert_int_equal(piece_of(rest, 5).result.status, SL_OK);
}

#define ENTRY(key, size) "<Contents><Key>" key "</Key><Size>" size "</Size></Contents>"
#define DATED(key, size)                                                                                     \
    "<Contents><Key>" key "</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><Size>" size           \
    "</Size></Contents>"
#define LIST(count, more, rest)                                                                              \
    "<ListBucketResult><KeyCount>" count "</KeyCount><IsTruncated>" more "</IsTruncated>" rest               \
    "</ListBucketResult>"

static void folders_markers_are_left_out(void **state)
{
    (void)state;
    struct script script = {
        {reply_of(200, NULL,
                  LIST("4", "true",
                       ENTRY("p/", "0") DATED("p/a&amp;+%20", "3") ENTRY("p/b/", "2") ENTRY("p/c/", "0")))},
        1};
    fault_open(&f, play, &script);
    struct sl_object_page page = list_one((struct sl_object_list){.prefix = SL_LIT("p/")});
    assert_result(page.result, SL_OK, NULL);
    assert_int_equal(page.n, 2);
    assert_span_is(page.entries[0].key, "p/a&+%20"); /* not encoded: the answer does not say so */
    assert_int_equal(page.entries[0].modified_s, 1767323045);
    assert_span_is(page.entries[1].key, "p/b/");
    assert_int_equal(page.entries[1].modified_s, 0);
    assert_span_is(page.next, "p/c/"); /* the page goes on after what was left out */
    fault_close(&f);
}

/* ---- what S3 answers, piece by piece ---- */

/* A range as it was asked for, and no other, with the object's tag. */
static void a_piece_is_the_range_that_was_asked_for(void **state)
{
    (void)state;
    static char body[102];
    static const struct {
        int status;
        const char *headers, *xml; /* XML: of a refusal */
        uint64_t from;
        size_t bytes;
        const char *etag; /* NULL: it is not believed */
    } cases[] = {
        {206, "etag: \"e1\"\r\ncontent-range: bytes 5-9/10\r\n", NULL, 5, 5, "e1"},
        {206, "etag: e1\r\ncontent-range: bytes 5-9/10\r\n", NULL, 5, 5, "e1"},
        {206, "etag: \"e1\r\ncontent-range: bytes 5-9/10\r\n", NULL, 5, 5, "\"e1"},
        {206, "etag: \"\r\ncontent-range: bytes 5-9/10\r\n", NULL, 5, 5, "\""},
        {206, "etag: e1\r\ncontent-range: bytes 0-99/500\r\n", NULL, 0, 100, "e1"},
        {206, "etag: e1\r\ncontent-range: bytes 0-100/500\r\n", NULL, 0, 101, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 0-98/500\r\n", NULL, 0, 99, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-9/10\r\n", NULL, 5, 4, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-9/10\r\n", NULL, 4, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-9/11\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes5-9/10\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes x-9/10\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5_9/10\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-x/10\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-9:10\r\n", NULL, 5, 5, NULL},
        {206, "etag: e1\r\ncontent-range: bytes 5-9/\r\n", NULL, 5, 5, NULL},
        {416, "content-range: bytes */5\r\n", "<Error><Code>InvalidRange</Code></Error>", 5, 0, ""},
        {416, "content-range: bytes */4\r\n", "<Error><Code>InvalidRange</Code></Error>", 5, 0, ""},
        {416, "content-range: bytes */6\r\n", "<Error><Code>InvalidRange</Code></Error>", 5, 0, NULL},
        {416, "content-range: bytes */5x\r\n", "<Error><Code>InvalidRange</Code></Error>", 5, 0, NULL},
        {416, NULL, "<Error><Code>InvalidRange</Code><ActualObjectSize>5</ActualObjectSize></Error>", 5, 0,
         ""},
        {416, NULL, "<Error><Code>InvalidRange</Code></Error>", 5, 0, NULL},
        {412, NULL, "<Error><Code>PreconditionFailed</Code></Error>", 5, 0, NULL}, /* nothing was asked */
    };
    memset(body, 'x', sizeof(body));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_span text = cases[i].xml ? sl_span_str(cases[i].xml) : sl_span(body, cases[i].bytes);
        struct script script = {{{.status = cases[i].status, .headers = cases[i].headers, .body = text}}, 1};
        fault_open(&f, play, &script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        struct sl_object_piece piece = read_one(NULL, cases[i].from);
        if ((piece.result.status == SL_OK) != (cases[i].etag != NULL))
            fail_msg("case %zu: %s", i, piece.result.text ? piece.result.text : "taken");
        if (cases[i].etag) {
            assert_span_is(piece.etag, cases[i].etag);
            assert_int_equal(piece.bytes.len, cases[i].bytes);
        } else {
            assert_result(piece.result, SL_RETRY, "BrokenAnswer");
        }
        fault_close(&f);
    }
}

static void a_list_says_how_many_it_has(void **state)
{
    (void)state;
    static const struct {
        const char *count, *more;
        bool is_good;
    } cases[] = {
        {"0", "false", true},
        {"00", "false", true},
        {"", "false", false},
        {"0x", "false", false},
        {"/", "false", false},
        {":", "false", false},
        {"1", "false", false},
        {"1001", "false", false},
        {"0", "true", false},
        {"0", "maybe", false},
        {"0", "", false},
        {"0000000000000000000", "false", false},
        {"000000000000000000", "false", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *xml = json_printf("<ListBucketResult><KeyCount>%s</KeyCount><IsTruncated>%s</IsTruncated>"
                                      "</ListBucketResult>",
                                      cases[i].count, cases[i].more);
        struct script script = {{{.status = 200, .body = sl_span_str(xml)}}, 1};
        fault_open(&f, play, &script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        struct sl_object_page page = list_one((struct sl_object_list){.limit = 0});
        if ((page.result.status == SL_OK) != cases[i].is_good)
            fail_msg("%s", xml);
        assert_true(page.n == 0 && !page.next.ptr);
        fault_close(&f);
    }
}

/* What cannot be a header's value is not sent as one: the object would be removed without the condition. */
static void a_tag_that_is_none_removes_nothing(void **state)
{
    (void)state;
    static const struct sl_span tags[] = {{"a\nb", 3}, {"a\0b", 3}, {"a\x7f", 2}, {"\x1f", 1}};
    struct script script = {{{.status = 204}}, 1};
    fault_open(&f, play, &script);
    struct sl_object_port *port = fault_objects(&f, "s3://bucket/p");
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        const struct sl_object_removal removal = {.key = SL_LIT("a"), .etag = tags[i]};
        struct sl_result result;
        port->remove(port, &removal, 1, &result, &f.call);
        assert_result(result, SL_REJECT, "InvalidArgument");
        assert_true(result.not_sent);
    }
    assert_int_equal(scripted_server_requests(f.server), 0);
    port->close(port);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_passes_is_tried_again),
        cmocka_unit_test(what_does_not_pass_is_retryable),
        cmocka_unit_test(a_bucket_elsewhere_is_followed),
        cmocka_unit_test(nothing_is_begun_without_time),
        cmocka_unit_test(a_request_says_what_is_wanted),
        cmocka_unit_test(a_page_that_leads_back_is_not_followed),
        cmocka_unit_test(a_page_is_no_longer_than_was_asked),
        cmocka_unit_test(an_item_without_a_wanted_attribute_is_empty),
        cmocka_unit_test(blanks_and_unknown_members_are_fine),
        cmocka_unit_test(a_page_is_json),
        cmocka_unit_test(a_name_that_is_no_table_s_is_the_target_s_fault),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(the_end_of_an_object_is_known),
        cmocka_unit_test(a_checksum_of_something_else_is_no_lie),
        cmocka_unit_test(folders_markers_are_left_out),
        cmocka_unit_test(a_piece_is_the_range_that_was_asked_for),
        cmocka_unit_test(a_list_says_how_many_it_has),
        cmocka_unit_test(a_tag_that_is_none_removes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
