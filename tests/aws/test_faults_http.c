/* What goes wrong on the wire: cut and reset answers, closed connections, a wrong clock, expired keys. */
#include "tests/support/fault.h"

#include "base/gzip.h"
#include "aws/aws.h"
#include "aws/job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct fault f;

/* What the server answers, and to which request something else. */
struct script {
    struct scripted_reply usual, special;
    size_t special_from, special_to; /* numbers of requests */
};

static void follow_script(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct script *script = arg;
    bool special = request->number >= script->special_from && request->number < script->special_to;
    *reply = special ? script->special : script->usual;
}

static const struct scripted_reply done = {.status = 200, .body = {"{}", 2}, .with_crc = true};

/* Every sink that answers in a form of its own, with what its service says to one entry. */
static const struct side {
    const char *url, *answer, *headers;
} sides[] = {
    {"dynamodb://tbl", "{}", NULL},
    {"s3://bucket/prefix", "", "etag: \"1\"\r\n"},
    {"sqs://123456789012/queue", "{'Successful':[{'Id':'0','MessageId':'m'}]}", NULL},
    {"sns:arn:aws:sns:us-east-1:123456789012:topic",
     "<PublishBatchResponse><PublishBatchResult><Failed/><Successful><member><Id>0</Id>"
     "<MessageId>m</MessageId></member></Successful></PublishBatchResult></PublishBatchResponse>",
     NULL},
    {"events://default", "{'FailedEntryCount':0,'Entries':[{'EventId':'e'}]}", NULL},
    {"kinesis://stream", "{'FailedRecordCount':0,'Records':[{'SequenceNumber':'1','ShardId':'s'}]}", NULL},
    {"firehose://stream", "{'FailedPutCount':0,'RequestResponses':[{'RecordId':'r'}]}", NULL},
    {"http://server/hook", "", NULL},
};
#define N_SIDES (sizeof(sides) / sizeof(sides[0]))

static struct scripted_reply usual(size_t side)
{
    return (struct scripted_reply){
        .status = 200, .headers = sides[side].headers, .body = json_span(sides[side].answer)};
}

/* One write through whatever port the URL opens. */
static struct sl_result write_one(const char *url)
{
    struct sl_result result = {.status = SL_OK};
    struct sl_message message = {.body = json_span("{'v':'" FAULT_VALUE "'}"), .dedupe = SL_LIT("1")};
    if (sl_target_kind(sl_span_str(url)) == SL_PORT_TABLE) {
        struct sl_table_port *table = fault_table(&f, url);
        result = fault_put_item(&f, table, "a");
        table->close(table);
    } else if (sl_target_kind(sl_span_str(url)) == SL_PORT_OBJECTS) {
        struct sl_object_port *objects = fault_objects(&f, url);
        result = fault_put_object(&f, objects, "k", FAULT_VALUE, false);
        objects->close(objects);
    } else {
        struct sl_queue_port *queue = fault_queue(&f, url);
        fault_send(&f, queue, &message, 1, &result);
        queue->close(queue);
    }
    return result;
}

static size_t attempts_of(const char *url)
{
    return strncmp(url, "dynamodb", 8) == 0 ? 4 : 3;
}

/* ---- broken answers ---- */

/* The answer as it goes out, so that every place in it can be cut. */
static size_t answer_bytes(const char *body, bool crc)
{
    size_t head = strlen("HTTP/1.1 200 Scripted\r\ncontent-length: \r\n\r\n");
    char number[32];
    size_t digits = (size_t)snprintf(number, sizeof(number), "%zu", strlen(body));
    size_t line = crc ? (size_t)snprintf(number, sizeof(number), "x-amz-crc32: %lu\r\n",
                                         (unsigned long)sl_crc32(0, sl_span_str(body)))
                      : 0;
    return head + digits + line + strlen(body);
}

/* Always cut: never a success, and the attempts end. Cut once: the next attempt succeeds. */
static void cut_everywhere(bool resets)
{
    for (size_t s = 0; s < N_SIDES; s++) {
        struct script script = {.usual = usual(s)};
        size_t len = answer_bytes(sides[s].answer, false) + (sides[s].headers ? strlen(sides[s].headers) : 0);
        fault_open(&f, follow_script, &script);
        for (size_t cut = 1; cut < len; cut++) {
            script.special = script.usual;
            script.special.cut = cut;
            script.special.resets = resets;
            script.special_from = scripted_server_requests(f.server);
            script.special_to = script.special_from + (cut % 16 == 0 ? SIZE_MAX / 2 : 1);
            struct sl_result result = write_one(sides[s].url);
            size_t sent = scripted_server_requests(f.server) - script.special_from;
            if (cut % 16 == 0) {
                assert_result(result, SL_RETRY, NULL);
                assert_false(result.not_sent);
                assert_in_range(sent, attempts_of(sides[s].url), attempts_of(sides[s].url) + 1);
            } else {
                assert_result(result, SL_OK, NULL);
                assert_in_range(sent, 2, 3); /* libcurl itself tries anew when nothing at all came back */
            }
            sl_arena_reset(f.call.arena);
        }
        fault_close(&f);
    }
}

static void an_answer_cut_at_any_byte_is_no_success(void **state)
{
    (void)state;
    cut_everywhere(false);
}

static void an_answer_reset_at_any_byte_is_no_success(void **state)
{
    (void)state;
    cut_everywhere(true);
}

static void a_wrong_crc_is_retried(void **state)
{
    (void)state;
    struct script script = {.usual = done, .special = done, .special_to = 1};
    script.special.flip = true;
    fault_open(&f, follow_script, &script);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 2);
    script.special_to = SIZE_MAX;
    assert_result(write_one("dynamodb://tbl"), SL_RETRY, "ChecksumMismatch");
    assert_int_equal(scripted_server_requests(f.server), 2 + 4);
    script.special.headers = "x-amz-crc32: junk\r\n";
    script.special.with_crc = false;
    assert_result(write_one("dynamodb://tbl"), SL_RETRY, "ChecksumMismatch");
    fault_close(&f);
}

static void a_wrong_length_is_retried(void **state)
{
    (void)state;
    for (int64_t more = -1; more <= 1; more += 2) {
        struct script script = {.usual = done, .special = done, .special_to = SIZE_MAX};
        script.special.more = more;
        script.special.closes = true;
        fault_open(&f, follow_script, &script);
        assert_result(write_one("dynamodb://tbl"), SL_RETRY, NULL);
        fault_close(&f);
    }
}

static void chunks_are_taken_whole_only(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    script.usual.chunked = true;
    fault_open(&f, follow_script, &script);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    size_t len =
        strlen("HTTP/1.1 200 Scripted\r\nx-amz-crc32: 2745614147\r\ntransfer-encoding: chunked\r\n\r\n") +
        strlen("2\r\n{}\r\n0\r\n\r\n");
    /* libcurl does not miss the very last byte, a newline after the last chunk. */
    for (size_t cut = len - 12; cut < len - 1; cut++) {
        script.usual.cut = cut;
        assert_result(write_one("dynamodb://tbl"), SL_RETRY, NULL);
    }
    fault_close(&f);
}

static void an_answer_of_another_shape_is_retried(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "", "{", "nonsense", "[]", "{}", "<html>", "{'Successful':3}", "null", "{'Entries':[]}"};
    for (size_t s = 2; s + 1 < N_SIDES; s++) /* the last is a webhook: its answers have no shape */
        for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++) {
            struct script script = {.usual = {.status = 200, .body = json_span(bodies[b])}};
            fault_open(&f, follow_script, &script);
            assert_result(write_one(sides[s].url), SL_RETRY, NULL);
            fault_close(&f);
        }
}

/* Slow, but getting on: it is waited for. */
static void slow_bytes_are_waited_for(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    script.usual.byte_ms = 2;
    fault_open(&f, follow_script, &script);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 1);
    fault_close(&f);
}

/* The deadline holds on the real clock too: an answer that does not end does not keep the caller. */
static void deadline_ends_an_answer_without_end(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    script.usual.byte_ms = 1000;
    fault_open(&f, follow_script, &script);
    struct sl_clock *real = sl_clock_system();
    int64_t began = real->now_ms(real);
    f.call.deadline_ms = f.clock.ms + 200;
    assert_result(write_one("dynamodb://tbl"), SL_RETRY, NULL);
    assert_in_range(real->now_ms(real) - began, 150, 60000); /* it would take more than a minute to its end */
    f.call.deadline_ms = f.clock.ms;
    struct sl_result result = write_one("dynamodb://tbl");
    assert_result(result, SL_RETRY, "DeadlineExceeded");
    assert_true(result.not_sent);
    fault_close(&f);
}

/* ---- broken connections ---- */

static void a_request_reset_at_any_byte_is_sent_again(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SIDES; s++) {
        struct script script = {.usual = usual(s)};
        fault_open(&f, follow_script, &script);
        assert_result(write_one(sides[s].url), SL_OK, NULL);
        const struct scripted_request *request = scripted_server_request(f.server, 0);
        size_t len =
            strlen(request->method) + strlen(request->path) + strlen(request->head) + request->body.len + 12;
        for (size_t bytes = 0; bytes < len; bytes += s == 0 ? 1 : 23) {
            scripted_server_reset_requests(f.server, bytes, 1);
            assert_result(write_one(sides[s].url), SL_OK, NULL);
            sl_arena_reset(f.call.arena);
        }
        scripted_server_reset_requests(f.server, 100, 1000);
        assert_result(write_one(sides[s].url), SL_RETRY, "ConnectionError");
        fault_close(&f);
    }
}

/* The peer closed it while it was idle: replaced without an attempt being counted or a retry being paid for.
 */
static void a_connection_closed_while_idle_costs_no_attempt(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    fault_open(&f, follow_script, &script);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    for (int i = 0; i < 20; i++) {
        assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
        scripted_server_close_idle(f.server);
    }
    assert_int_equal(scripted_server_requests(f.server), 20);
    assert_int_equal(scripted_server_connections(f.server), 20);
    fault_close(&f);
}

/* It closes in the very moment of the next request, after it was read: nothing came back on a kept
 * connection. */
static void a_connection_closed_instead_of_an_answer_is_replaced(void **state)
{
    (void)state;
    struct script script = {.usual = done, .special = done, .special_from = 1, .special_to = 2};
    fault_open(&f, follow_script, &script);
    script.special.cut = 1;
    script.special.resets = true;
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(scripted_server_requests(f.server), 3);
    fault_close(&f);
}

static void a_connection_kept_through_a_freeze_is_not_trusted(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    fault_open(&f, follow_script, &script);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(scripted_server_connections(f.server), 1);
    f.clock.ms += 15 * 60 * 1000;
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(scripted_server_connections(f.server), 2); /* what was kept is not trusted */
    const struct scripted_request *last = scripted_server_request(f.server, 2);
    assert_true(sl_span_starts(scripted_header(last, "x-amz-date"), SL_LIT("20261120T2119")));
    fault_close(&f);
}

static void a_refused_connection_is_retried_and_nothing_was_sent(void **state)
{
    (void)state;
    struct script script = {.usual = done};
    fault_open(&f, follow_script, &script);
    fault_set(&f, "AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    struct sl_result result = write_one("dynamodb://tbl");
    assert_result(result, SL_RETRY, "ConnectionError");
    assert_true(result.not_sent);
    fault_set(&f, "AWS_ENDPOINT_URL", "http://no-such-host.invalid");
    result = write_one("sqs://123456789012/q");
    assert_result(result, SL_RETRY, "ConnectionError");
    assert_true(result.not_sent);
    fault_close(&f);
}

static enum sl_job_next take_it(struct sl_job *job)
{
    (void)job;
    return SL_JOB_DONE;
}

/* A control character in a header would begin another one: whatever a sink overlooks, the request is never
 * written. */
static void a_header_with_a_control_character_is_never_sent(void **state)
{
    (void)state;
    static const char *const values[] = {"text/plain\r\nx-amz-acl: public-read", "a\nb", "a\tb", "a\x7f"};
    static const struct sl_job_kind kind = {take_it, NULL};
    struct script script = {.usual = done};
    struct sl_error error = SL_NO_ERROR;
    struct sl_client client;
    struct sl_url url;
    fault_open(&f, follow_script, &script);
    assert_int_equal(sl_url_parse(SL_LIT("test:"), f.call.arena, &url, &error), SL_OK);
    const struct sl_client_options options = {.service = &sl_service_s3, .url = &url};
    assert_int_equal(sl_client_init(&client, sl_sinks_aws(&f.sinks), &options, &error), SL_OK);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const struct sl_sigv4_field field = {SL_LIT("x-amz-meta-a"), sl_span_str(values[i])};
        struct sl_job job = {.kind = &kind, .operation = "PutObject", .fields = &field, .n_fields = 1};
        sl_job_run(&client, &job, 1, &f.call);
        assert_int_equal(job.status, SL_FATAL);
        assert_string_equal(job.code, "InvalidHeader");
        assert_non_null(strstr(job.text, "the header x-amz-meta-a holds a control character"));
        assert_true(job.not_sent);
    }
    assert_int_equal(scripted_server_requests(f.server), 0);
    sl_client_clean_up(&client);
    fault_close(&f);
}

/* ---- skew: the server's clock is `off_s` ahead of ours; it takes 5 minutes ---- */

struct skewed {
    int64_t off_s;
    const char *code;
    char date[64];
    size_t refusals;
};

static void check_date(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct skewed *skewed = arg;
    struct sl_span date = scripted_header(request, "x-amz-date");
    struct tm tm = {.tm_year = 0};
    assert_non_null(strptime(date.ptr, "%Y%m%dT%H%M%SZ", &tm));
    time_t theirs = (time_t)(FAULT_EPOCH_S + f.clock.ms / 1000 - 1 + skewed->off_s);
    int64_t apart = (int64_t)theirs - (int64_t)timegm(&tm);
    struct tm now;
    gmtime_r(&theirs, &now);
    strftime(skewed->date, sizeof(skewed->date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &now);
    *reply = done;
    reply->headers = skewed->date;
    if (apart >= -300 && apart <= 300)
        return;
    skewed->refusals++;
    reply->status = 403;
    reply->body = json_span(skewed->code);
}

static void a_clock_twenty_minutes_off_is_corrected_once(void **state)
{
    (void)state;
    static const char *const codes[] = {
        "{'__type':'com.amazon.coral.service#InvalidSignatureException',"
        "'message':'Signature expired: token " FAULT_TOKEN "'}",
        "<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>",
        "{'__type':'RequestExpired'}",
        "{'__type':'RequestInTheFuture'}",
        "{'__type':'SignatureDoesNotMatch'}",
    };
    for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++)
        for (int64_t off = -1200; off <= 1200; off += 2400) {
            struct skewed skewed = {.off_s = off, .code = codes[c]};
            fault_open(&f, check_date, &skewed);
            fault_set(&f, "AWS_MAX_ATTEMPTS", "1"); /* the correction does not count as an attempt */
            int64_t before = f.clock.ms;
            assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
            assert_int_equal(scripted_server_requests(f.server), 2);
            assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);          /* learned */
            assert_result(write_one("sqs://123456789012/q"), SL_RETRY, NULL); /* not an answer of SQS */
            assert_int_equal(skewed.refusals, 1);
            assert_int_equal(f.clock.ms, before); /* nobody waited, and deadlines are on the steady clock */
            fault_close(&f);
        }
}

/* One host whose clock is wrong changes nothing for the others, and is remembered by all its clients. */
static void a_wrong_clock_belongs_to_its_host(void **state)
{
    (void)state;
    struct skewed wrong = {.off_s = 7200, .code = "{'__type':'RequestExpired'}"}, right = {.code = ""};
    fault_open(&f, check_date, &wrong);
    struct scripted_server *other = scripted_server_start(check_date, &right);
    const char *url = sl_arena_printf(f.call.arena, "dynamodb://tbl?endpoint=%s", scripted_server_url(other));
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_result(write_one(url), SL_OK, NULL);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_result(write_one(url), SL_OK, NULL);
    assert_int_equal(wrong.refusals, 1);
    assert_int_equal(right.refusals, 0);
    fault_close(&f);
    scripted_server_stop(other);
}

/* Refused again with a corrected clock, or by one that is not the reason: nothing is sent for ever. */
static void only_a_clock_that_is_off_is_corrected_and_once(void **state)
{
    (void)state;
    static const struct {
        int64_t off_s;
        size_t requests;
    } cases[] = {{0, 1}, {239, 1}, {-239, 1}, {240, 2}, {-240, 2}, {86400, 2}, {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char date[64] = "";
        time_t theirs = (time_t)(FAULT_EPOCH_S + (cases[i].off_s == INT64_MAX ? 0 : cases[i].off_s));
        struct tm tm;
        gmtime_r(&theirs, &tm);
        if (cases[i].off_s != INT64_MAX) /* else no date is said */
            strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
        struct script script = {
            .usual = {.status = 403, .headers = date, .body = json_span("{'__type':'RequestExpired'}")}};
        fault_open(&f, follow_script, &script);
        assert_result(write_one("dynamodb://tbl"), SL_FATAL, "RequestExpired");
        assert_int_equal(scripted_server_requests(f.server), cases[i].requests);
        fault_close(&f);
    }
}

/* Several were signed before the first answer: the difference is learned once, not added by each. */
static void many_at_once_learn_one_clock(void **state)
{
    (void)state;
    enum { N = 4 };
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    struct skewed skewed = {.off_s = 3600, .code = "{'__type':'RequestExpired'}"};
    struct sl_table_op ops[N];
    struct sl_result results[N];
    fault_open(&f, check_date, &skewed);
    for (size_t i = 0; i < N; i++) { /* a condition: each is a request of its own */
        const char *key = sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"%zu\"}}", i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(key),
                                      .tests = &absent,
                                      .n_tests = 1};
    }
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, N, results, &f.call);
    for (size_t i = 0; i < N; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_in_range(skewed.refusals, 2, N);
    assert_int_equal(scripted_server_requests(f.server), N + skewed.refusals);
    table->close(table);
    fault_close(&f);
}

/* ---- a proxy that does not let us through: nothing of the request left this process ---- */

static void a_refused_tunnel_sent_nothing(void **state)
{
    (void)state;
    static const int statuses[] = {403, 407, 502};
    for (size_t i = 0; i < 3; i++) {
        struct script script = {.usual = {.status = statuses[i], .body = SL_LIT("<html>no</html>")}};
        fault_open(&f, follow_script, &script);
        fault_set(&f, "HTTPS_PROXY", scripted_server_url(f.server));
        struct sl_result result = write_one("dynamodb://tbl?endpoint=https://dynamodb.test.invalid");
        assert_result(result, SL_RETRY, "ConnectionError");
        assert_string_equal(scripted_server_request(f.server, 0)->method, "CONNECT");
        assert_true(result.not_sent);
        assert_non_null(strstr(result.text, "nothing was sent"));
        fault_close(&f);
    }
}

/* A refusal for which our clock is not the reason: no second attempt, and its message is not shown. */
static void a_wrong_signature_is_not_taken_for_skew(void **state)
{
    (void)state;
    struct script script = {
        .usual = {.status = 403,
                  .body = json_span(
                      "{'__type':'InvalidSignatureException',"
                      "'message':'The Canonical String should have been x-amz-security-token:" FAULT_TOKEN
                      " " FAULT_KEY "'}")}};
    fault_open(&f, follow_script, &script);
    assert_result(write_one("dynamodb://tbl"), SL_FATAL, "InvalidSignatureException");
    assert_int_equal(scripted_server_requests(f.server), 1);
    fault_close(&f);
}

/* ---- keys from the container's endpoint, which returns new ones each time ---- */

struct renewing {
    size_t given;    /* keys handed out */
    size_t accepted; /* the least of them that is still taken */
    size_t expired;  /* refusals */
    char body[400];
};

static void give_or_check(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct renewing *r = arg;
    if (strcmp(request->path, "/keys") == 0) {
        snprintf(r->body, sizeof(r->body),
                 "{'AccessKeyId':'" FAULT_KEY "%zu','SecretAccessKey':'" FAULT_SECRET
                 "','Token':'" FAULT_TOKEN "','Expiration':'2026-11-21T04:00:00Z'}",
                 ++r->given);
        *reply = (struct scripted_reply){.status = 200, .body = json_span(r->body)};
        return;
    }
    struct sl_span authorization = scripted_header(request, "authorization");
    const char *key = strstr(authorization.ptr, "Credential=" FAULT_KEY);
    assert_non_null(key);
    size_t number = (size_t)strtoul(key + strlen("Credential=" FAULT_KEY), NULL, 10);
    *reply = done;
    if (number >= r->accepted)
        return;
    r->expired++;
    reply->status = 400;
    reply->body = json_span("{'__type':'com.amazon.coral.service#ExpiredTokenException',"
                            "'message':'The security token " FAULT_TOKEN " is expired'}");
}

static void open_renewing(struct renewing *r)
{
    char url[128];
    fault_open(&f, give_or_check, r);
    fault_set(&f, "AWS_ACCESS_KEY_ID", "");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", "");
    fault_set(&f, "AWS_SESSION_TOKEN", "");
    snprintf(url, sizeof(url), "%s/keys", scripted_server_url(f.server));
    fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
}

static void an_expired_token_is_renewed_once(void **state)
{
    (void)state;
    for (size_t at = 1; at < 6; at++) {
        struct renewing r = {.accepted = 1};
        open_renewing(&r);
        for (size_t i = 0; i < 6; i++) {
            if (i == at)
                r.accepted = 2;
            assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
        }
        assert_int_equal(r.expired, 1);
        assert_int_equal(r.given, 2);
        assert_int_equal(scripted_server_requests(f.server), 6 + 1 + 2);
        fault_close(&f);
    }
}

static void a_token_that_stays_expired_is_fatal(void **state)
{
    (void)state;
    struct renewing r = {.accepted = 1000};
    open_renewing(&r);
    assert_result(write_one("dynamodb://tbl"), SL_FATAL, "ExpiredTokenException");
    assert_int_equal(r.expired, 2);
    assert_int_equal(r.given, 2);
    fault_close(&f);
    struct script script = {
        .usual = {.status = 400, .body = json_span("{'__type':'ExpiredTokenException'}")}};
    fault_open(&f, follow_script, &script); /* the environment's keys cannot be renewed */
    assert_result(write_one("dynamodb://tbl"), SL_FATAL, "ExpiredTokenException");
    assert_int_equal(scripted_server_requests(f.server), 1);
    fault_close(&f);
}

/* Sixteen requests in flight learn of it together: still one renewal. */
static void one_renewal_serves_all_in_flight(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct renewing r = {.accepted = 1};
    struct sl_table_op ops[COUNT];
    struct sl_result results[COUNT];
    const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    open_renewing(&r);
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    r.accepted = 2;
    for (size_t i = 0; i < COUNT; i++) {
        const char *key = json_printf("{'PK':{'S':'%zu'}}", i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(key),
                                      .tests = &absent,
                                      .n_tests = 1};
    }
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, COUNT, results, &f.call);
    for (size_t i = 0; i < COUNT; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_int_equal(r.given, 2);
    assert_in_range(r.expired, 1, 16);
    table->close(table);
    fault_close(&f);
}

static void keys_are_renewed_before_they_end(void **state)
{
    (void)state;
    struct renewing r = {.accepted = 0};
    open_renewing(&r);
    const int64_t minute = 60 * 1000, end = (int64_t)7 * 3600 * 1000 - 4 * minute; /* 04:00, from 21:04 */
    f.call.deadline_ms = INT64_MAX;
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    f.clock.ms = end - 16 * minute;
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(r.given, 1);
    f.clock.ms = end - 14 * minute;
    assert_result(write_one("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(r.given, 2);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_cut_at_any_byte_is_no_success),
        cmocka_unit_test(an_answer_reset_at_any_byte_is_no_success),
        cmocka_unit_test(a_wrong_crc_is_retried),
        cmocka_unit_test(a_wrong_length_is_retried),
        cmocka_unit_test(chunks_are_taken_whole_only),
        cmocka_unit_test(an_answer_of_another_shape_is_retried),
        cmocka_unit_test(slow_bytes_are_waited_for),
        cmocka_unit_test(deadline_ends_an_answer_without_end),
        cmocka_unit_test(a_request_reset_at_any_byte_is_sent_again),
        cmocka_unit_test(a_connection_closed_while_idle_costs_no_attempt),
        cmocka_unit_test(a_connection_closed_instead_of_an_answer_is_replaced),
        cmocka_unit_test(a_connection_kept_through_a_freeze_is_not_trusted),
        cmocka_unit_test(a_refused_connection_is_retried_and_nothing_was_sent),
        cmocka_unit_test(a_header_with_a_control_character_is_never_sent),
        cmocka_unit_test(a_clock_twenty_minutes_off_is_corrected_once),
        cmocka_unit_test(a_wrong_clock_belongs_to_its_host),
        cmocka_unit_test(a_refused_tunnel_sent_nothing),
        cmocka_unit_test(only_a_clock_that_is_off_is_corrected_and_once),
        cmocka_unit_test(many_at_once_learn_one_clock),
        cmocka_unit_test(a_wrong_signature_is_not_taken_for_skew),
        cmocka_unit_test(an_expired_token_is_renewed_once),
        cmocka_unit_test(a_token_that_stays_expired_is_fatal),
        cmocka_unit_test(one_renewal_serves_all_in_flight),
        cmocka_unit_test(keys_are_renewed_before_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
