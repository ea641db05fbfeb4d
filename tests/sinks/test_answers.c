/* What services say, shape by shape: where a bucket is, what a table is, what a request consumed, and how an
 * answer names a table. */
#include "tests/support/fault.h"
#include "tests/support/honest.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

struct script {
    struct scripted_reply replies[4]; /* then honest ones */
    size_t n;
};

static void play(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct script *script = arg;
    if (request->number < script->n)
        *reply = script->replies[request->number];
    else
        *reply = (struct scripted_reply){.is_honest = true};
}

/* ---- a bucket that is elsewhere ---- */

static enum sl_status run_objects(struct sl_object_port *port, int operation)
{
    const struct sl_object object = {.key = SL_LIT("k"), .body = SL_LIT("x")};
    const struct sl_object_read read = {.key = SL_LIT("k"), .max_bytes = 100};
    const struct sl_object_removal removal = {.key = SL_LIT("k")};
    struct sl_result result;
    struct sl_object_piece piece;
    struct sl_object_page page;
    switch (operation) {
    case 0:
        port->apply(port, &object, 1, &result, &f.call);
        return result.status;
    case 1:
        port->read(port, &read, 1, &piece, &f.call);
        return piece.result.status;
    case 2:
        port->list(port, &(struct sl_object_list){.prefix = SL_LIT("p/")}, &page, &f.call);
        return page.result.status;
    default:
        port->remove(port, &removal, 1, &result, &f.call);
        return result.status;
    }
}

static void a_bucket_elsewhere_is_found(void **state)
{
    (void)state;
#define ERROR(code, more) "<Error><Code>" code "</Code><Message>m</Message>" more "</Error>"
    static const struct {
        int status;
        const char *headers, *body;
        const char *region; /* where it is looked for then; NULL: nowhere */
    } cases[] = {
        {301, "x-amz-bucket-region: eu-west-3\r\n", "", "eu-west-3"},
        {307, "x-amz-bucket-region: eu-west-3\r\n", "", "eu-west-3"},
        {301, NULL, ERROR("PermanentRedirect", "<Region>eu-west-3</Region>"), "eu-west-3"},
        {400, NULL, ERROR("AuthorizationHeaderMalformed", "<Region>ap-south-1</Region>"), "ap-south-1"},
        {400, "x-amz-bucket-region: eu-west-3\r\n", ERROR("IllegalLocationConstraintException", ""),
         "eu-west-3"},
        {400, "x-amz-bucket-region: us-east-1\r\n", ERROR("AuthorizationHeaderMalformed", ""), "us-east-1"},
        {400, NULL, ERROR("AuthorizationHeaderMalformed", ""), NULL},
        {301, NULL, ERROR("PermanentRedirect", "<Region>evil.example/</Region>"), NULL},
        {403, "x-amz-bucket-region: eu-west-3\r\n", ERROR("AccessDenied", ""), NULL},
    };
    for (int operation = 0; operation < 4; operation++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct script script = {.n = 1};
            script.replies[0] = (struct scripted_reply){
                .status = cases[i].status, .headers = cases[i].headers, .body = sl_span_str(cases[i].body)};
            fault_open(&f, play, &script);
            struct sl_object_port *port = fault_objects(&f, "s3://bucket");
            enum sl_status status = run_objects(port, operation);
            assert_int_equal(status, cases[i].region ? SL_OK : SL_FATAL);
            size_t n = scripted_server_requests(f.server);
            assert_int_equal(n, cases[i].region ? 2 : 1);
            const char *scope =
                sl_arena_printf(f.call.arena, "/%s/s3/", cases[i].region ? cases[i].region : "us-east-1");
            assert_non_null(strstr(scripted_server_request(f.server, n - 1)->head, scope));
            /* It is remembered. */
            if (cases[i].region)
                assert_int_equal(run_objects(port, operation), SL_OK);
            assert_int_equal(scripted_server_requests(f.server), cases[i].region ? 3 : 1);
            port->close(port);
            fault_close(&f);
        }
}

/* What the target and the object say goes into the headers. */
static void a_put_says_what_the_object_is(void **state)
{
    (void)state;
    static const struct {
        const char *url, *type, *encoding;
        bool named;
        const char *headers[6]; /* name, value, ... */
    } cases[] = {
        {"s3://bucket", NULL, NULL, false, {"content-type", "application/octet-stream"}},
        {"s3://bucket",
         "text/plain",
         "gzip",
         false,
         {"content-type", "text/plain", "content-encoding", "gzip"}},
        {"s3://bucket", NULL, NULL, true, {"if-none-match", "*"}},
        {"s3://bucket?if_none_match=1", NULL, NULL, false, {"if-none-match", "*"}},
        {"s3://bucket?storage_class=GLACIER_IR&sse=AES256",
         NULL,
         NULL,
         false,
         {"x-amz-storage-class", "GLACIER_IR", "x-amz-server-side-encryption", "AES256"}},
        {"s3://bucket?kms_key=k",
         NULL,
         NULL,
         false,
         {"x-amz-server-side-encryption", "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id", "k"}},
        {"s3://bucket?tags=a=1,b%20c=%26", NULL, NULL, false, {"x-amz-tagging", "a=1&b%20c=%26"}},
    };
    static const char *const optional[] = {"content-encoding", "if-none-match", "x-amz-storage-class",
                                           "x-amz-server-side-encryption", "x-amz-tagging"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n = 0};
        fault_open(&f, play, &script);
        struct sl_object_port *port = fault_objects(&f, cases[i].url);
        const struct sl_object object = {.key = SL_LIT("k"),
                                         .body = SL_LIT("123456789"),
                                         .content_type = cases[i].type,
                                         .content_encoding = cases[i].encoding,
                                         .content_named = cases[i].named};
        struct sl_result result;
        port->apply(port, &object, 1, &result, &f.call);
        assert_result(result, SL_OK, NULL);
        const struct scripted_request *request = scripted_server_request(f.server, 0);
        assert_span_is(scripted_header(request, "x-amz-checksum-crc32"), "y/Q5Jg==");
        size_t wanted = 0, there = 0;
        for (size_t k = 0; k < 6 && cases[i].headers[k]; k += 2) {
            assert_span_is(scripted_header(request, cases[i].headers[k]), cases[i].headers[k + 1]);
            for (size_t o = 0; o < 5; o++)
                wanted += strcmp(optional[o], cases[i].headers[k]) == 0;
        }
        for (size_t o = 0; o < 5; o++)
            there += scripted_header(request, optional[o]).ptr != NULL;
        assert_int_equal(there, wanted);
        port->close(port);
        fault_close(&f);
    }
}

/* A type or an encoding that cannot be a header's value is refused before it is sent. */
static void a_header_has_its_characters(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++)
        for (int at = 0; at < 3; at++) {
            struct script script = {.n = 0};
            char value[4] = "aaa";
            value[at] = (char)c;
            bool is_good = c > ' ' ? c <= '~' : c == ' ' && at == 1;
            struct sl_object objects[2] = {{.key = SL_LIT("k"), .content_type = value},
                                           {.key = SL_LIT("l"), .content_encoding = value}};
            struct sl_result results[2];
            if (is_good && c != ' ' && c % 16)
                continue; /* a request for some of them */
            fault_open(&f, play, &script);
            struct sl_object_port *port = fault_objects(&f, "s3://bucket");
            port->apply(port, objects, 2, results, &f.call);
            for (int i = 0; i < 2; i++) {
                assert_result(results[i], is_good ? SL_OK : SL_REJECT, is_good ? NULL : "InvalidArgument");
                assert_int_equal(results[i].not_sent, !is_good);
            }
            port->close(port);
            fault_close(&f);
        }
}

/* ---- what a table is ---- */

#define TABLE(more)                                                                                          \
    "{'Table':{'TableName':'tbl','TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/tbl',"            \
    "'ItemCount':1,'TableSizeBytes':2," more "}}"
#define KEY                                                                                                  \
    "'KeySchema':[{'AttributeName':'PK','KeyType':'HASH'}],'AttributeDefinitions':[{'AttributeName':'PK','"  \
    "AttributeType':'S'}],"
#define TWO "'KeySchema':[{'AttributeName':'PK','KeyType':'HASH'},{'AttributeName':'SK','KeyType':'RANGE'}],"
#define THREE                                                                                                \
    "'KeySchema':[{'AttributeName':'PK','KeyType':'HASH'},{'AttributeName':'SK','KeyType':'RANGE'},{"        \
    "'AttributeName':'X','KeyType':'RANGE'}],"
#define TYPES(sk)                                                                                            \
    "'AttributeDefinitions':[{'AttributeName':'SK','AttributeType':'" sk                                     \
    "'},{'AttributeName':'PK','AttributeType':'B'}],"
#define DEMAND "'BillingModeSummary':{'BillingMode':'PAY_PER_REQUEST'}"
#define UNITS  "'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':7}"

static void a_table_is_what_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool good, on_demand;
        size_t keys;
    } cases[] = {
        {TABLE(KEY DEMAND), true, true, 1},
        {TABLE(TWO TYPES("N") DEMAND), true, true, 2},
        {TABLE(KEY UNITS), true, false, 1},
        {TABLE(KEY "'BillingModeSummary':{'BillingMode':'PROVISIONED'}," UNITS), true, false, 1},
        {TABLE(KEY DEMAND ",'LatestStreamArn':'arn:aws:x'"), true, true, 1},
        {TABLE(KEY DEMAND ",'LatestStreamArn':'x'"), false, false, 0},
        {TABLE(KEY DEMAND ",'LatestStreamArn':5"), false, false, 0},
        {TABLE(KEY "'BillingModeSummary':{'BillingMode':'FREE'}," UNITS), false, false, 0},
        {TABLE(KEY "'x':1"), false, false, 0},
        {TABLE(KEY "'ProvisionedThroughput':{'ReadCapacityUnits':5}"), false, false, 0},
        {TABLE(KEY "'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':'7'}"), false, false,
         0},
        {TABLE(TWO TYPES("X") DEMAND), false, false, 0},
        {TABLE(TWO TYPES("NS") DEMAND), false, false, 0},
        {TABLE(THREE TYPES("N") DEMAND), false, false, 0},
        {TABLE("'KeySchema':[]," TYPES("N") DEMAND), false, false, 0},
        {TABLE("'KeySchema':[{'AttributeName':'PK','KeyType':'RANGE'}]," TYPES("N") DEMAND), false, false, 0},
        {TABLE("'KeySchema':[{'AttributeName':'','KeyType':'HASH'}]," TYPES("N") DEMAND), false, false, 0},
        {"{'Table':{'TableName':'other','TableArn':'arn:aws:x','ItemCount':1,'TableSizeBytes':2," KEY DEMAND
         "}}",
         false, false, 0},
        {"{'Table':{'TableName':'tbl','TableArn':'x','ItemCount':1,'TableSizeBytes':2," KEY DEMAND "}}",
         false, false, 0},
        {"{'Table':{'TableName':'tbl','TableArn':'arn:aws:x','ItemCount':-1,'TableSizeBytes':2," KEY DEMAND
         "}}",
         false, false, 0},
        {"{'Table':{'TableName':'tbl','TableArn':'arn:aws:x','ItemCount':1234567890123456789,'TableSizeBytes'"
         ":2," KEY DEMAND "}}",
         false, false, 0},
        {"{'Table':{'TableName':'tbl','TableArn':'arn:aws:x','ItemCount':123456789012345678,'TableSizeBytes':"
         "2," KEY DEMAND "}}",
         true, true, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n = 1};
        struct sl_table_facts facts;
        script.replies[0] = (struct scripted_reply){.status = 200, .body = json_span(cases[i].body)};
        fault_open(&f, play, &script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        port->describe(port, i % 2 ? SL_LIT("tbl") : sl_span(NULL, 0), &facts, &f.call);
        if ((facts.result.status == SL_OK) != cases[i].good)
            fail_msg("case %zu: status %d", i, (int)facts.result.status);
        assert_int_equal(facts.n_keys, cases[i].keys);
        assert_int_equal(facts.is_on_demand, cases[i].on_demand);
        bool has_units = cases[i].good && !cases[i].on_demand;
        assert_true(facts.read_units == (has_units ? 5 : 0) && facts.write_units == (has_units ? 7 : 0));
        port->close(port);
        fault_close(&f);
    }
}

/* ---- what a request consumed ---- */

static void what_was_consumed_is_summed(void **state)
{
    (void)state;
    static const struct {
        const char *consumed;
        double units;
    } cases[] = {
        {"{'CapacityUnits':1.5}", 1.5},
        {"[{'CapacityUnits':1.5},{'CapacityUnits':20}]", 21.5},
        {"[5,{'CapacityUnits':2},[],{'x':1}]", 2},
        {"{'CapacityUnits':'1'}", 0},
        {"{'CapacityUnits':-1}", 0},
        {"{'CapacityUnits':1111111111111111111111111111111}", 1111111111111111111111111111111.0},
        {"{'CapacityUnits':11111111111111111111111111111111}", 0},
        {"{}", 0},
        {"null", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n = 1};
        struct sl_table_units units = {0, 0};
        const char *body = sl_span_str(json_printf("{'ConsumedCapacity':%s}", cases[i].consumed)).ptr;
        script.replies[0] = (struct scripted_reply){.status = 200, .body = sl_span_str(body)};
        fault_open(&f, play, &script);
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        port->units = &units;
        assert_int_equal(fault_put_item(&f, port, "a").status, SL_OK);
        assert_non_null(memmem(scripted_server_request(f.server, 0)->body.ptr,
                               scripted_server_request(f.server, 0)->body.len, "ReturnConsumedCapacity", 22));
        assert_true(units.write == cases[i].units && units.read == 0);
        port->close(port);
        fault_close(&f);
    }
}

/* A condition that failed is billed by the larger of the two items, in KB that were begun. */
static void a_failed_condition_is_billed(void **state)
{
    (void)state;
    static const struct {
        size_t put, had;
        double units;
    } cases[] = {{10, 10, 1},   {1024, 10, 1}, {1025, 10, 2}, {10, 1024, 1},
                 {10, 2049, 3}, {3000, 0, 3},  {10, 0, 1}};
    static const struct sl_test test = {.verb = SL_PRESENT, .name = {"v", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n = 1};
        struct sl_table_units units = {0, 0};
        struct sl_result result;
        fault_open(&f, play, &script);
        char *put = sl_arena_zalloc(f.call.arena, 4000), *had = sl_arena_zalloc(f.call.arena, 4000);
        memset(put, 'p', cases[i].put - 4);
        memset(had, 'h', cases[i].had ? cases[i].had - 4 : 0);
        const char *old =
            cases[i].had
                ? sl_arena_printf(f.call.arena, ",\"Item\":{\"PK\":{\"S\":\"a\"},\"v\":{\"S\":\"%s\"}}", had)
                : "";
        script.replies[0] = (struct scripted_reply){
            .status = 400,
            .body = sl_span_str(sl_arena_printf(
                f.call.arena, "{\"__type\":\"x#ConditionalCheckFailedException\",\"message\":\"m\"%s}",
                old))};
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        struct sl_table_op op = {
            .verb = SL_TABLE_PUT, .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"), .tests = &test, .n_tests = 1};
        op.item =
            sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"a\"},\"v\":{\"S\":\"%s\"}}", put));
        port->units = &units;
        port->apply(port, &op, 1, &result, &f.call);
        assert_true(result.condition_failed);
        assert_true(units.write == cases[i].units);
        port->close(port);
        fault_close(&f);
    }
}

/* ---- names ---- */

/* Attributes may have names of 64 KB: an update and a condition on some are sent whole. */
static void long_names_are_sent_whole(void **state)
{
    (void)state;
    enum { N = 3, LONG = 55000 };
    for (int what = 0; what < 2; what++) {
        struct script script = {.n = 0};
        struct sl_set sets[N];
        struct sl_test tests[N];
        struct sl_result result;
        fault_open(&f, play, &script);
        for (int i = 0; i < N; i++) {
            char *name = sl_arena_alloc(f.call.arena, LONG);
            memset(name, 'k' + i, LONG);
            sets[i] = (struct sl_set){SL_SET, sl_span(name, LONG), SL_LIT("{\"N\":\"1\"}")};
            tests[i] = (struct sl_test){.verb = SL_PRESENT, .name = sl_span(name, LONG)};
        }
        struct sl_table_op op = {.verb = what ? SL_TABLE_DELETE : SL_TABLE_UPDATE,
                                 .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                                 .sets = sets,
                                 .n_sets = what ? 0 : N,
                                 .tests = tests,
                                 .n_tests = what ? N : 0};
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        port->apply(port, &op, 1, &result, &f.call);
        assert_result(result, SL_OK, NULL);
        struct sl_span body = scripted_server_request(f.server, 0)->body;
        assert_int_equal(sl_json_check(body, NULL), SL_OK);
        for (int i = 0; i < N; i++)
            assert_non_null(memmem(body.ptr, body.len, sets[i].name.ptr, LONG));
        port->close(port);
        fault_close(&f);
    }
}

/* ---- answers that hold items ---- */

#define LARGE (380 * 1024) /* bytes of an item, of which DynamoDB may write each as six */

/* {"PK":{"S":"0"},"v":{"S":"\u0001..."}} */
static const char *large_item(const char *key)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, f.call.arena, SIZE_MAX);
    sl_buffer_printf(&out, "{\"PK\":{\"S\":\"%s\"},\"v\":{\"S\":\"", key);
    for (size_t i = 0; i < LARGE; i++)
        sl_buffer_add(&out, "\\u0001", 6);
    sl_buffer_add(&out, "\"}}", 4);
    return out.ptr;
}

/* The largest item there is comes back whole: as what was read, and as what made a condition fail. */
static void a_large_item_comes_whole(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "{\"Responses\":{\"tbl\":[%s]},\"UnprocessedKeys\":{}}",
        "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":%s}",
        ("{\"__type\":\"x#TransactionCanceledException\",\"CancellationReasons\":[{\"Code\":"
         "\"ConditionalCheckFailed\",\"Item\":%s}]}"),
    };
    static const struct sl_test test = {.verb = SL_ABSENT, .name = {"v", 1}};
    for (size_t i = 0; i < 3; i++) {
        struct script script = {.n = 1};
        struct sl_result result;
        fault_open(&f, play, &script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        const char *item = large_item("a"), *at = strstr(forms[i], "%s");
        script.replies[0] = (struct scripted_reply){
            .status = i ? 400 : 200,
            .body = sl_span_str(
                sl_arena_printf(f.call.arena, "%.*s%s%s", (int)(at - forms[i]), forms[i], item, at + 2))};
        struct sl_table_op op = {.verb = i ? SL_TABLE_DELETE : SL_TABLE_GET,
                                 .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                                 .group = i == 2,
                                 .tests = &test,
                                 .n_tests = i > 0,
                                 .want_item = i > 0};
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        port->apply(port, &op, 1, &result, &f.call);
        assert_int_equal(result.status, i ? SL_REJECT : SL_OK);
        assert_int_equal(result.condition_failed, i > 0);
        assert_true(sl_span_eq(result.item, sl_span_str(item)));
        port->close(port);
        fault_close(&f);
    }
}

/* All writes of a batch are left out, and come back in the answer: it is understood. */
static void what_is_left_out_comes_whole(void **state)
{
    (void)state;
    enum { N = 3 };
    struct script script = {.n = 1};
    struct sl_table_op ops[N];
    struct sl_result results[N];
    struct sl_buffer body;
    fault_open(&f, play, &script);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    sl_buffer_init_in(&body, f.call.arena, SIZE_MAX);
    sl_buffer_add_str(&body, "{\"UnprocessedItems\":{\"tbl\":[");
    for (int i = 0; i < N; i++) {
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(json_printf("{'PK':{'S':'%d'}}", i))};
        ops[i].item = sl_span_str(large_item(sl_arena_printf(f.call.arena, "%d", i)));
        sl_buffer_printf(&body, "%s{\"PutRequest\":{\"Item\":%s}}", i ? "," : "", ops[i].item.ptr);
    }
    sl_buffer_add_str(&body, "]}}");
    script.replies[0] = (struct scripted_reply){.status = 200, .body = sl_buffer_span(&body)};
    struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
    port->apply(port, ops, N, results, &f.call);
    for (int i = 0; i < N; i++)
        assert_result(results[i], SL_RETRY, "ProvisionedThroughputExceededException");
    assert_int_equal(scripted_server_requests(f.server), 1);
    port->close(port);
    fault_close(&f);
}

/* ---- how an answer names a table ---- */

#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/tbl"

static void a_table_by_arn_is_named_either_way(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        bool good;
    } cases[] = {{ARN, true}, {"tbl", true}, {"tb", false}, {"table/tbl", false}, {"tbl2", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n = 1};
        struct sl_table_op ops[2];
        struct sl_result results[2];
        const char *body = json_printf(
            "{'Responses':{'%s':[{'PK':{'S':'1'},'v':{'N':'1'}}]},'UnprocessedKeys':{}}", cases[i].table);
        script.replies[0] = (struct scripted_reply){.status = 200, .body = sl_span_str(body)};
        fault_open(&f, play, &script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        struct sl_table_port *port = fault_table(&f, "dynamodb:" ARN);
        for (int k = 0; k < 2; k++)
            ops[k] = (struct sl_table_op){.verb = SL_TABLE_GET,
                                          .key = sl_span_str(json_printf("{'PK':{'S':'%d'}}", k))};
        port->apply(port, ops, 2, results, &f.call);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(results[k].status, cases[i].good ? SL_OK : SL_RETRY);
            assert_int_equal(results[k].item.ptr != NULL, cases[i].good && k == 1);
        }
        port->close(port);
        fault_close(&f);
    }
}

/* All reads of one key in a call are one: consistent if any of them is. */
static void reads_of_one_key_are_one(void **state)
{
    (void)state;
    for (unsigned gets = 0; gets < 8; gets++) {
        struct script script = {.n = 0};
        struct sl_table_op ops[3];
        struct sl_result results[3];
        fault_open(&f, play, &script);
        struct sl_table_port *port = fault_table(&f, "dynamodb://tbl");
        for (unsigned k = 0; k < 3; k++)
            ops[k] =
                (struct sl_table_op){.verb = gets >> k & 1 ? SL_TABLE_GET : SL_TABLE_PEEK,
                                     .key = json_span(k % 2 ? "{'PK':{'N':'1.0'}}" : "{'PK':{'N':'1'}}")};
        port->apply(port, ops, 3, results, &f.call);
        for (int k = 0; k < 3; k++)
            assert_result(results[k], SL_OK, NULL);
        assert_int_equal(scripted_server_requests(f.server), 1);
        struct sl_span body = scripted_server_request(f.server, 0)->body;
        assert_int_equal(memmem(body.ptr, body.len, "\"ConsistentRead\":true", 21) != NULL, gets > 0);
        port->close(port);
        fault_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_elsewhere_is_found),  cmocka_unit_test(a_put_says_what_the_object_is),
        cmocka_unit_test(a_header_has_its_characters),  cmocka_unit_test(a_table_is_what_is_said),
        cmocka_unit_test(what_was_consumed_is_summed),  cmocka_unit_test(a_failed_condition_is_billed),
        cmocka_unit_test(long_names_are_sent_whole),    cmocka_unit_test(a_large_item_comes_whole),
        cmocka_unit_test(what_is_left_out_comes_whole), cmocka_unit_test(a_table_by_arn_is_named_either_way),
        cmocka_unit_test(reads_of_one_key_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
