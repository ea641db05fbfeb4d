/* What services refuse, whole or in part: throttling, unprocessed items, limits, permissions. */
#include "tests/support/fault.h"

#include "aws/aws.h"
#include "net/retry.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct fault f;

/* The first `times` requests are refused, the others succeed. */
struct refusing {
    size_t times;
    struct scripted_reply refusal, success;
};

static void refuse_first(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct refusing *r = arg;
    *reply = request->number < r->times ? r->refusal : r->success;
}

static struct sl_result put_item(void)
{
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    struct sl_result result = fault_put_item(&f, table, "a");
    table->close(table);
    return result;
}

static struct sl_result put_object(const char *url, bool named)
{
    struct sl_object_port *objects = fault_objects(&f, url);
    struct sl_result result = fault_put_object(&f, objects, "k", FAULT_VALUE, named);
    objects->close(objects);
    return result;
}

static struct sl_result send_message(const char *url, struct sl_message message)
{
    struct sl_queue_port *queue = fault_queue(&f, url);
    struct sl_result result;
    fault_send(&f, queue, &message, 1, &result);
    queue->close(queue);
    return result;
}

/* ---- throttling ---- */

static const struct {
    const char *url;
    struct scripted_reply refusal;
    const char *code;
    size_t attempts;
} throttles[] = {
    {"dynamodb://tbl",
     {.status = 400,
      .body =
          SL_LIT("{\"__type\":\"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException\"}")},
     "ProvisionedThroughputExceededException",
     4},
    {"dynamodb://tbl",
     {.status = 400, .body = SL_LIT("{\"__type\":\"ThrottlingException\"}")},
     "ThrottlingException",
     4},
    {"dynamodb://tbl", {.status = 429, .body = SL_LIT("")}, "Http429", 4},
    {"s3://bucket", {.status = 503, .body = SL_LIT("<Error><Code>SlowDown</Code></Error>")}, "SlowDown", 3},
    {"s3://bucket", {.status = 503, .body = SL_LIT("")}, "Http503", 3},
};

static void throttling_that_ends_is_a_success(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(throttles) / sizeof(throttles[0]); i++)
        for (size_t times = 1; times < throttles[i].attempts; times++) {
            struct refusing r = {times, throttles[i].refusal, {.is_honest = true}};
            fault_open(&f, refuse_first, &r);
            assert_result(i < 3 ? put_item() : put_object(throttles[i].url, false), SL_OK, NULL);
            assert_int_equal(scripted_server_requests(f.server), times + 1);
            fault_close(&f);
        }
}

static void throttling_without_end_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(throttles) / sizeof(throttles[0]); i++) {
        struct refusing r = {SIZE_MAX, throttles[i].refusal, {.is_honest = true}};
        fault_open(&f, refuse_first, &r);
        int64_t began = f.clock.ms;
        assert_result(i < 3 ? put_item() : put_object(throttles[i].url, false), SL_RETRY, throttles[i].code);
        assert_int_equal(scripted_server_requests(f.server), throttles[i].attempts);
        assert_in_range(f.clock.ms - began, 0, 1000 + 2000 + 4000);
        fault_close(&f);
    }
}

/* AWS_MAX_ATTEMPTS, and a deadline that ends the waiting before it begins. */
static void attempts_and_the_deadline_bound_the_retries(void **state)
{
    (void)state;
    struct refusing r = {SIZE_MAX, throttles[0].refusal, {.is_honest = true}};
    fault_open(&f, refuse_first, &r);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "7");
    assert_result(put_item(), SL_RETRY, NULL);
    assert_int_equal(scripted_server_requests(f.server), 7);
    for (int i = 0; i < 50; i++) {
        f.call.deadline_ms = f.clock.ms + 300;
        assert_result(put_item(), SL_RETRY, NULL);
        assert_true(f.clock.ms < f.call.deadline_ms);
    }
    fault_close(&f);
}

/* The quota bucket: 500 tokens, 5 for a throttled retry, so a hundred retries and no more until something
 * succeeds. */
static void the_quota_bounds_all_requests(void **state)
{
    (void)state;
    struct refusing r = {SIZE_MAX, throttles[0].refusal, {.is_honest = true}};
    fault_open(&f, refuse_first, &r);
    f.call.deadline_ms = INT64_MAX;
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    for (int i = 0; i < 200; i++)
        assert_result(fault_put_item(&f, table, "a"), SL_RETRY, NULL);
    assert_int_equal(scripted_server_requests(f.server), 200 + SL_RETRY_BUCKET / SL_RETRY_COST_THROTTLE);
    table->close(table);
    fault_close(&f);
}

static void a_server_may_ask_for_more_patience(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t least, most;
    } cases[] = {{"x-amz-retry-after: 3000\r\n", 3000, 3000},
                 {"x-amz-retry-after: 60000\r\n", 5000, 6000}, /* 5 s more than our own wait at most */
                 {"x-amz-retry-after: 0\r\n", 0, 1000},
                 {"x-amz-retry-after: soon\r\n", 0, 1000},
                 {"x-amz-retry-after: -5\r\n", 0, 1000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct refusing r = {1, throttles[0].refusal, {.is_honest = true}};
        r.refusal.headers = cases[i].header;
        fault_open(&f, refuse_first, &r);
        int64_t began = f.clock.ms;
        assert_result(put_item(), SL_OK, NULL);
        assert_in_range(f.clock.ms - began, cases[i].least, cases[i].most);
        fault_close(&f);
    }
}

static void waits_fill_the_jitter_band(void **state)
{
    (void)state;
    struct sl_clock_virtual clock;
    sl_clock_virtual_init(&clock, 0, 7);
    const struct {
        enum sl_retry_kind kind;
        unsigned base, retry;
        int64_t top;
    } bands[] = {{SL_RETRY_TRANSIENT, 25, 0, 25},    {SL_RETRY_TRANSIENT, 50, 1, 100},
                 {SL_RETRY_TRANSIENT, 25, 3, 200},   {SL_RETRY_THROTTLE, 25, 0, 1000},
                 {SL_RETRY_THROTTLE, 50, 2, 4000},   {SL_RETRY_THROTTLE, 50, 9, 20000},
                 {SL_RETRY_TRANSIENT, 50, 60, 20000}};
    for (size_t b = 0; b < sizeof(bands) / sizeof(bands[0]); b++) {
        int64_t sum = 0, least = INT64_MAX, most = 0;
        for (int i = 0; i < 10000; i++) {
            int64_t wait = sl_retry_wait_ms(&clock.clock, bands[b].kind, bands[b].base, bands[b].retry,
                                            sl_span(NULL, 0));
            sum += wait;
            least = wait < least ? wait : least;
            most = wait > most ? wait : most;
        }
        assert_in_range(most, bands[b].top * 95 / 100, bands[b].top);
        assert_in_range(least, 0, bands[b].top / 20);
        assert_in_range(sum / 10000, bands[b].top * 47 / 100, bands[b].top * 53 / 100);
    }
}

/* ---- unprocessed items: a table in memory that takes a random part of each batch ---- */

enum { ITEMS = 90 };

struct picky {
    unsigned times[ITEMS]; /* that it was accepted */
    size_t largest;
    uint64_t seed;
    struct sl_buffer body;
    bool takes_none;
};

static int number_of(json_t *request)
{
    json_t *put = json_object_get(json_object_get(request, "PutRequest"), "Item");
    json_t *key = put ? put : json_object_get(json_object_get(request, "DeleteRequest"), "Key");
    return (int)strtol(json_string_value(json_object_get(json_object_get(key, "PK"), "S")), NULL, 10);
}

static void take_some(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct picky *p = arg;
    json_t *root = json_loadb(request->body.ptr, request->body.len, 0, NULL);
    json_t *list = json_object_get(json_object_get(root, "RequestItems"), "tbl"), *entry,
           *left = json_array();
    size_t i;
    p->largest = json_array_size(list) > p->largest ? json_array_size(list) : p->largest;
    json_array_foreach(list, i, entry)
    {
        if (p->takes_none || sl_random_step(&p->seed) % 3 == 0)
            json_array_append(left, entry);
        else
            p->times[number_of(entry)]++;
    }
    json_t *answer = json_array_size(left) ? json_pack("{s:{s:O}}", "UnprocessedItems", "tbl", left)
                                           : json_pack("{s:{}}", "UnprocessedItems");
    char *text = json_dumps(answer, JSON_COMPACT);
    sl_buffer_reset(&p->body);
    sl_buffer_add_str(&p->body, text);
    *reply = (struct scripted_reply){.status = 200, .body = sl_buffer_span(&p->body), .with_crc = true};
    free(text);
    json_decref(answer);
    json_decref(left);
    json_decref(root);
}

static void write_ninety(struct sl_result *results)
{
    struct sl_table_op ops[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        const char *key = json_printf("{'PK':{'S':'%d'}}", i);
        ops[i] = (struct sl_table_op){.verb = i % 5 ? SL_TABLE_PUT : SL_TABLE_DELETE,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(key)};
    }
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, ITEMS, results, &f.call);
    table->close(table);
    fault_note(&f, results, ITEMS);
}

static void unprocessed_items_are_resent_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct picky p = {.seed = seed};
        struct sl_result results[ITEMS];
        sl_buffer_init(&p.body, 1024 * 1024);
        fault_open(&f, take_some, &p);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "30"); /* of rounds that get nothing done */
        write_ninety(results);
        for (int i = 0; i < ITEMS; i++) {
            assert_result(results[i], SL_OK, NULL);
            assert_int_equal(p.times[i], 1); /* and never again once it was accepted */
        }
        assert_int_equal(p.largest, 25);
        fault_close(&f);
        sl_buffer_clean_up(&p.body);
    }
}

static void items_never_processed_are_reported(void **state)
{
    (void)state;
    struct picky p = {.seed = 1, .takes_none = true};
    struct sl_result results[ITEMS];
    sl_buffer_init(&p.body, 1024 * 1024);
    fault_open(&f, take_some, &p);
    write_ninety(results);
    for (int i = 0; i < ITEMS; i++)
        assert_result(results[i], SL_RETRY, "ProvisionedThroughputExceededException");
    assert_int_equal(scripted_server_requests(f.server), 4 * 4);
    fault_close(&f);
    sl_buffer_clean_up(&p.body);
}

/* ---- limits ---- */

static void answer_well(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.is_honest = true};
}

static void object_keys_have_1024_bytes_at_most(void **state)
{
    (void)state;
    char key[1100];
    fault_open(&f, answer_well, NULL);
    struct sl_object_port *objects = fault_objects(&f, "s3://bucket/pre/fix");
    for (size_t len = 1015; len <= 1017; len++) { /* and "pre/fix/" before it */
        memset(key, 'k', len);
        key[len] = '\0';
        struct sl_result result = fault_put_object(&f, objects, key, "x", false);
        assert_result(result, len <= 1016 ? SL_OK : SL_REJECT, len <= 1016 ? NULL : "KeyTooLong");
        assert_int_equal(result.not_sent, len > 1016);
    }
    assert_int_equal(scripted_server_requests(f.server), 2);
    objects->close(objects);
    fault_close(&f);
}

static void messages_have_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        size_t body; /* the largest that fits, without attributes */
    } limits[] = {
        {"sqs://123456789012/queue", 1024 * 1024},
        {"sns:arn:aws:sns:us-east-1:123456789012:topic", 256 * 1024},
        {"events://default?source=me",
         256 * 1024 - 1 - 14 - 2 - 22 - 14}, /* time, source, detail-type, wrapper */
        {"firehose://stream?newline=0", 1000 * 1024},
        {"firehose://stream", 1000 * 1024 - 1},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        fault_open(&f, answer_well, NULL);
        for (size_t len = limits[i].body - 1; len <= limits[i].body + 1; len++) {
            char *body = malloc(len + 1);
            memset(body, 'x', len);
            memcpy(body, "{", 1);
            struct sl_result result =
                send_message(limits[i].url, (struct sl_message){.body = sl_span(body, len)});
            bool fits = len <= limits[i].body;
            assert_result(result, fits ? SL_OK : SL_REJECT, fits ? NULL : "MessageTooLong");
            assert_int_equal(result.not_sent, !fits);
            free(body);
        }
        assert_int_equal(scripted_server_requests(f.server), 2);
        fault_close(&f);
    }
}

/* ---- values stay out of errors ---- */

/* Services quote what they refuse: values stay out of texts, names and reasons stay in. */
static void values_in_refusals_stay_out_of_errors(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "The parameter cannot be converted to a numeric value: " FAULT_VALUE,
        "Value '" FAULT_VALUE "' at 'item.v' failed to satisfy constraint",
        "bad value (" FAULT_VALUE ") and key " FAULT_KEY,
        "token " FAULT_TOKEN " secret " FAULT_SECRET,
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        char body[600];
        snprintf(body, sizeof(body), "{\"__type\":\"ValidationException\",\"message\":\"%s\"}", messages[i]);
        struct refusing r = {SIZE_MAX, {.status = 400, .body = sl_span_str(body)}, {.is_honest = true}};
        fault_open(&f, refuse_first, &r);
        struct sl_result result = put_item();
        assert_result(result, i == 0 ? SL_REJECT : SL_FATAL, "ValidationException");
        assert_null(strstr(result.text, FAULT_VALUE));
        if (i == 0)
            assert_non_null(strstr(result.text, "cannot be converted to a numeric value"));
        fault_close(&f);
    }
}

/* An unknown code that repeats a value is logged as its status, and reject= releases what is logged. */
static void what_a_masked_code_is_called_releases_it(void **state)
{
    (void)state;
    static const char body[] = "{\"__type\":\"XcanaryException\",\"message\":\"no\"}";
    struct refusing r = {SIZE_MAX, {.status = 400, .body = SL_LIT(body)}, {.is_honest = true}};
    fault_open(&f, refuse_first, &r);
    struct sl_result result = put_item();
    assert_result(result, SL_FATAL, "Http400");
    assert_non_null(strstr(result.text, "reject=Http400"));
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl?reject=Http400");
    assert_result(fault_put_item(&f, table, "a"), SL_REJECT, "Http400");
    table->close(table);
    fault_close(&f);
}

/* ---- objects that exist already ---- */

static struct sl_result put_refused(int status, const char *code, size_t times, bool named, const char *url)
{
    char body[300];
    snprintf(body, sizeof(body),
             "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>x</Message></Error>", code);
    struct refusing r = {times, {.status = status, .body = sl_span_str(body)}, {.is_honest = true}};
    fault_open(&f, refuse_first, &r);
    return put_object(url, named);
}

static void an_object_already_there_is_a_success_for_named_content_alone(void **state)
{
    (void)state;
    assert_result(put_refused(412, "PreconditionFailed", SIZE_MAX, true, "s3://bucket"), SL_OK, NULL);
    const struct scripted_request *request = scripted_server_request(f.server, 0);
    assert_span_is(scripted_header(request, "if-none-match"), "*");
    fault_close(&f);
    assert_result(put_refused(412, "PreconditionFailed", SIZE_MAX, false, "s3://bucket?if_none_match=1"),
                  SL_REJECT, "PreconditionFailed");
    fault_close(&f);
    assert_result(put_refused(200, "", 0, false, "s3://bucket"), SL_OK, NULL);
    assert_null(scripted_header(scripted_server_request(f.server, 0), "if-none-match").ptr);
    fault_close(&f);
}

/* A proxy's page with that status says nothing of the object. */
static void a_page_with_412_stores_nothing(void **state)
{
    (void)state;
    static const char *const bodies[] = {"<html><body>412 Precondition Failed</body></html>", "",
                                         "<Error><Code>SomethingElse</Code></Error>"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct refusing r = {SIZE_MAX, {.status = 412, .body = sl_span_str(bodies[i])}, {.is_honest = true}};
        fault_open(&f, refuse_first, &r);
        assert_result(put_object("s3://bucket", true), SL_FATAL, NULL);
        fault_close(&f);
    }
}

static void a_race_is_retried(void **state)
{
    (void)state;
    assert_result(put_refused(409, "ConditionalRequestConflict", 2, true, "s3://bucket"), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
    assert_result(put_refused(409, "ConditionalRequestConflict", SIZE_MAX, true, "s3://bucket"), SL_RETRY,
                  NULL);
    fault_close(&f);
}

/* ---- what nobody can retry ---- */

static void refusals_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        enum sl_status is;
        const char *code;
    } cases[] = {
        {400, "{'__type':'x#AccessDeniedException','Message':'no'}", SL_FATAL, "AccessDeniedException"},
        {400, "{'__type':'x#ResourceNotFoundException'}", SL_FATAL, "ResourceNotFoundException"},
        {400,
         "{'__type':'x#ValidationException','message':'The provided key element does not match the schema'}",
         SL_FATAL, "ValidationException"},
        {400, "{'__type':'x#ValidationException','message':'Item size has exceeded'}", SL_REJECT,
         "ValidationException"},
        {400, "{'code':'NewKindOfRefusal'}", SL_FATAL, "NewKindOfRefusal"},
        {403, "", SL_FATAL, "Http403"},
        {404, "<html>not here</html>", SL_FATAL, "Http404"},
        {302, "", SL_FATAL, "Http302"},
        {418, "{}", SL_FATAL, "Http418"},
        {500, "{'__type':'InternalServerError'}", SL_RETRY, "InternalServerError"},
        {501, "", SL_RETRY, "Http501"},
        {502, "", SL_RETRY, "Http502"},
        {405, "", SL_FATAL, "Http405"},
        {400, "{'__type':'UnrecognizedClientException','message':'" FAULT_TOKEN "'}", SL_FATAL,
         "UnrecognizedClientException"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct refusing r = {
            SIZE_MAX, {.status = cases[i].status, .body = json_span(cases[i].body)}, {.is_honest = true}};
        /* A page of something before the service may pass too. */
        bool is_tried_again =
            cases[i].is == SL_RETRY || (cases[i].status >= 400 && strncmp(cases[i].code, "Http", 4) == 0);
        fault_open(&f, refuse_first, &r);
        assert_result(put_item(), cases[i].is, cases[i].code);
        assert_int_equal(scripted_server_requests(f.server), is_tried_again ? 4 : 1);
        fault_close(&f);
    }
}

/* Said once: what was not begun is not sent into the same wall. */
static void no_permission_ends_the_run(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct refusing r = {SIZE_MAX,
                         {.status = 403, .body = SL_LIT("<Error><Code>AccessDenied</Code></Error>")},
                         {.is_honest = true}};
    struct sl_object objects[COUNT];
    struct sl_result results[COUNT];
    fault_open(&f, refuse_first, &r);
    struct sl_object_port *port = fault_objects(&f, "s3://bucket");
    for (size_t i = 0; i < COUNT; i++)
        objects[i] = (struct sl_object){.key = sl_span_str(sl_arena_printf(f.call.arena, "%zu", i))};
    port->apply(port, objects, COUNT, results, &f.call);
    for (size_t i = 0; i < COUNT; i++)
        assert_result(results[i], SL_FATAL, "AccessDenied");
    assert_true(results[COUNT - 1].not_sent);
    assert_in_range(scripted_server_requests(f.server), 1, 16);
    port->close(port);
    fault_close(&f);
}

/* A bucket elsewhere: found once, and asked there from then on. */
static void other_region(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    struct sl_span authorization = scripted_header(request, "authorization");
    *reply = (struct scripted_reply){.is_honest = true};
    if (memmem(authorization.ptr, authorization.len, "/eu-west-3/s3/", 14))
        return;
    *reply = (struct scripted_reply){.status = 301,
                                     .headers = "x-amz-bucket-region: eu-west-3\r\n",
                                     .body = SL_LIT("<Error><Code>PermanentRedirect</Code></Error>")};
}

static void a_bucket_elsewhere_is_followed(void **state)
{
    (void)state;
    fault_open(&f, other_region, NULL);
    struct sl_object_port *port = fault_objects(&f, "s3://bucket");
    assert_result(fault_put_object(&f, port, "a", "x", false), SL_OK, NULL);
    assert_result(fault_put_object(&f, port, "b", "x", false), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    port->close(port);
    fault_close(&f);
    struct refusing r = {
        SIZE_MAX, {.status = 301, .headers = "x-amz-bucket-region: eu-west-3\r\n"}, {.is_honest = true}};
    fault_open(&f, refuse_first, &r); /* sent back and forth: the client stops */
    assert_result(put_object("s3://bucket", false), SL_FATAL, "Http301");
    assert_int_equal(scripted_server_requests(f.server), 2);
    fault_close(&f);
}

/* What the service says of its copy has to agree. */
static void a_wrong_checksum_of_an_object_is_no_success(void **state)
{
    (void)state;
    struct refusing r = {1,
                         {.status = 200, .headers = "etag: \"1\"\r\nx-amz-checksum-crc32: AAAAAA==\r\n"},
                         {.is_honest = true}};
    fault_open(&f, refuse_first, &r);
    assert_result(put_object("s3://bucket", false), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 2);
    fault_close(&f);
}

enum { BODIES = 10, BODIES_AT_A_TIME = 4 };

static void answer_together(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    size_t together = request->number + 1 < BODIES ? BODIES_AT_A_TIME : 1;
    *reply = (struct scripted_reply){.is_honest = true, .together = together};
}

/* Of bodies of 8 MiB, four are on the wire at a time: each needs a connection. */
static void bodies_on_the_wire_are_bounded(void **state)
{
    (void)state;
    enum { BYTES = 8 * 1024 * 1024 };
    struct sl_object objects[BODIES];
    struct sl_result results[BODIES];
    char *body = calloc(1, BYTES);
    fault_open(&f, answer_together, NULL);
    for (int i = 0; i < BODIES; i++)
        objects[i] = (struct sl_object){.key = sl_span_str(sl_arena_printf(f.call.arena, "k%d", i)),
                                        .body = sl_span(body, BYTES)};
    struct sl_object_port *port = fault_objects(&f, "s3://bucket");
    port->apply(port, objects, BODIES, results, &f.call);
    for (int i = 0; i < BODIES; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_int_equal(scripted_server_connections(f.server), BODIES_AT_A_TIME);
    port->close(port);
    fault_close(&f);
    free(body);
}

static void options_become_headers(void **state)
{
    (void)state;
    fault_open(&f, answer_well, NULL);
    assert_result(
        put_object("s3://bucket/p?storage_class=GLACIER_IR&kms_key=alias/k&tags=a=b%20c,d=e", false), SL_OK,
        NULL);
    const struct scripted_request *request = scripted_server_request(f.server, 0);
    assert_string_equal(request->path, "/bucket/p/k");
    assert_span_is(scripted_header(request, "x-amz-storage-class"), "GLACIER_IR");
    assert_span_is(scripted_header(request, "x-amz-server-side-encryption"), "aws:kms");
    assert_span_is(scripted_header(request, "x-amz-server-side-encryption-aws-kms-key-id"), "alias/k");
    assert_span_is(scripted_header(request, "x-amz-tagging"), "a=b%20c&d=e");
    assert_span_is(scripted_header(request, "x-amz-checksum-crc32"), "fNXlyg==");
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throttling_that_ends_is_a_success),
        cmocka_unit_test(throttling_without_end_is_reported),
        cmocka_unit_test(attempts_and_the_deadline_bound_the_retries),
        cmocka_unit_test(the_quota_bounds_all_requests),
        cmocka_unit_test(a_server_may_ask_for_more_patience),
        cmocka_unit_test(waits_fill_the_jitter_band),
        cmocka_unit_test(unprocessed_items_are_resent_alone),
        cmocka_unit_test(items_never_processed_are_reported),
        cmocka_unit_test(object_keys_have_1024_bytes_at_most),
        cmocka_unit_test(messages_have_their_limits),
        cmocka_unit_test(values_in_refusals_stay_out_of_errors),
        cmocka_unit_test(an_object_already_there_is_a_success_for_named_content_alone),
        cmocka_unit_test(a_page_with_412_stores_nothing),
        cmocka_unit_test(what_a_masked_code_is_called_releases_it),
        cmocka_unit_test(a_race_is_retried),
        cmocka_unit_test(refusals_are_told_apart),
        cmocka_unit_test(no_permission_ends_the_run),
        cmocka_unit_test(a_bucket_elsewhere_is_followed),
        cmocka_unit_test(a_wrong_checksum_of_an_object_is_no_success),
        cmocka_unit_test(bodies_on_the_wire_are_bounded),
        cmocka_unit_test(options_become_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
