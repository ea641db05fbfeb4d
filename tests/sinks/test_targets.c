/* Targets of every scheme: names and numbers at both of their limits, every character in every place of a
 * name, and what else their text may be. Opening one sends nothing. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)reply;
    fail_msg("%s is asked for: opening a target sends nothing", request->path);
}

/* Whether it opens. What is refused is the environment's fault, with a line that says why. */
static bool opens(const char *url)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_object_port *objects = NULL;
    struct sl_table_port *table = NULL;
    struct sl_queue_port *queue = NULL;
    struct sl_span text = sl_span_str(url);
    enum sl_port_kind kind = sl_target_kind(text);
    enum sl_status status = kind == SL_PORT_OBJECTS ? sl_target_objects(&f.sinks, text, &objects, &error)
                            : kind == SL_PORT_TABLE ? sl_target_table(&f.sinks, text, &table, &error)
                                                    : sl_target_queue(&f.sinks, text, &queue, &error);
    if (objects)
        objects->close(objects);
    if (table)
        table->close(table);
    if (queue)
        queue->close(queue);
    if (status != SL_OK && (status != SL_FATAL || !error.text[0] || !error.code[0]))
        fail_msg("%s: status %d, %s: %s", url, (int)status, error.code, error.text);
    if ((status == SL_OK) != (objects || table || queue))
        fail_msg("%s: status %d", url, (int)status);
    return status == SL_OK;
}

static void expect(const char *url, bool wanted)
{
    if (opens(url) != wanted)
        fail_msg("%s %s", url, wanted ? "does not open" : "opens");
}

static const char *repeated(const char *before, char c, size_t n, const char *after)
{
    char *text = sl_arena_zalloc(f.call.arena, n + 1);
    memset(text, c, n);
    return sl_arena_printf(f.call.arena, "%s%s%s", before, text, after);
}

/* ---- lengths ---- */

static void names_have_their_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        char c;
        size_t least, most;
    } cases[] = {
        {"s3://", "", 'b', 3, 63},
        {"s3://", "/prefix", 'b', 3, 63},
        {"s3://bucket/", "", 'p', 0, 1023},
        {"s3://bucket/", "//", 'p', 0, 1023},
        {"dynamodb://", "", 't', 3, 255},
        {"dynamodb:arn:aws:dynamodb:us-east-1:123456789012:table/", "", 't', 3, 255},
        {"sqs://", "", 'q', 1, 80},
        {"sqs://", ".fifo", 'q', 1, 80},
        {"sqs://123456789012/", "", 'q', 1, 80},
        {"sqs://", "/queue", '1', 12, 12},
        {"sqs://queue?account=", "", '1', 12, 12},
        {"sqs:arn:aws:sqs:us-east-1:", ":queue", '1', 12, 12},
        {"sqs:arn:aws:sqs:us-east-1:123456789012:", "", 'q', 1, 80},
        {"sns:arn:aws:sns:us-east-1:123456789012:", "", 't', 1, 256},
        {"sns:arn:aws:sns:us-east-1:123456789012:", ".fifo", 't', 1, 256},
        {"events://", "", 'b', 1, 256},
        {"events:arn:aws:events:us-east-1:123456789012:event-bus/", "", 'b', 1, 256},
        {"events://bus?source=", "", 's', 1, 256},
        {"kinesis://", "", 's', 1, 128},
        {"kinesis:arn:aws:kinesis:us-east-1:123456789012:stream/", "", 's', 1, 128},
        {"firehose://", "", 's', 1, 64},
        {"firehose:arn:aws:firehose:us-east-1:123456789012:deliverystream/", "", 's', 1, 64},
        {"opensearch://host/", "", 'i', 1, 255},
        {"https://example.com/#id=", "", 'w', 1, 64},
        {"https://example.com/#header.", "=x", 'h', 1, 127},
    };
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t n = cases[i].least; n <= cases[i].most + 1; n++) {
            expect(repeated(cases[i].before, cases[i].c, n, cases[i].after), n <= cases[i].most);
            if (n == cases[i].least && n > 0)
                expect(repeated(cases[i].before, cases[i].c, n - 1, cases[i].after), false);
            n += n > cases[i].least + 1 && n + 2 < cases[i].most ? cases[i].most - n - 2 : 0;
        }
    fault_close(&f);
}

static void numbers_have_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        unsigned least, most;
    } cases[] = {{"batch", 1, 10000},         {"max_bytes", 1024, 16777216}, {"in_flight", 1, 64},
                 {"timeout_ms", 100, 300000}, {"attempts", 1, 10},           {"private", 0, 1}};
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const unsigned values[] = {cases[i].least, cases[i].most, cases[i].most + 1, cases[i].least - 1};
        for (size_t k = 0; k < 4; k++)
            expect(sl_arena_printf(f.call.arena, "https://example.com/#%s=%u", cases[i].option, values[k]),
                   k < 2);
        static const char *const bad[] = {"", "-1", "1x", "x", " 1", "1:", "1/", "99999999999999999999999"};
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
            expect(sl_arena_printf(f.call.arena, "https://example.com/#%s=%s", cases[i].option, bad[k]),
                   false);
    }
    fault_close(&f);
}

/* ---- characters ---- */

/* Each character first, between and last. What a URL or an ARN gives another meaning is left out. */
static void names_have_their_characters(void **state)
{
    (void)state;
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789",
                      upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const struct {
        const char *before, *inside,
            *outside; /* beside lower-case letters and digits; `outside`: first and last */
        bool has_upper;
        const char *meaning;
    } cases[] = {
        {"s3://", "-.", "", false, "/?#%&+"},
        {"dynamodb://", "-._", "-._", true, "/?#%&+"},
        {"sqs://", "-_", "-_", true, "/?#%&+"},
        {"sns:arn:aws:sns:us-east-1:123456789012:", "-_", "-_", true, "?#%&+:"},
        {"events://", "-._/", "-._/", true, "?#%&+"},
        {"kinesis://", "-._", "-._", true, "?#%&+"},
        {"firehose://", "-._", "-._", true, "?#%&+"},
        {"opensearch://host/", "-._", "", false, "?#%&+"},
        {"https://example.com/#id=", "-_", "-_", true, "?#%&+"},
    };
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int c = 1; c < 256; c++) {
            if (strchr(cases[i].meaning, c))
                continue;
            bool is_letter = strchr(lower, c) || (cases[i].has_upper && strchr(upper, c));
            bool is_inside = is_letter || strchr(cases[i].inside, c),
                 is_outside = is_letter || strchr(cases[i].outside, c);
            /* An index may end with what it may not begin with. */
            bool is_last = strncmp(cases[i].before, "opensearch", 10) == 0 ? is_inside : is_outside;
            expect(sl_arena_printf(f.call.arena, "%sab%cab", cases[i].before, c), is_inside);
            expect(sl_arena_printf(f.call.arena, "%s%cabab", cases[i].before, c), is_outside);
            expect(sl_arena_printf(f.call.arena, "%sabab%c", cases[i].before, c), is_last);
        }
    fault_close(&f);
}

/* A webhook's URL is printable ASCII without what URLs must escape; a header is a token and a text. */
static void webhooks_have_their_characters(void **state)
{
    (void)state;
    fault_open(&f, answer, NULL);
    for (int c = 1; c < 256; c++) {
        bool is_plain = c > ' ' && c < 0x7F && !strchr("\"<>\\^`{|}", c);
        bool is_token = c > ' ' && c < 0x7F && !strchr("\"(),/:;<=>?@[\\]{}", c);
        if (c != '#')
            expect(sl_arena_printf(f.call.arena, "https://example.com/a%cb", c), is_plain);
        if (!strchr("&=%+", c))
            expect(sl_arena_printf(f.call.arena, "https://example.com/#header.x%cy=v", c), is_token);
        expect(sl_arena_printf(f.call.arena, "https://example.com/#header.x=v%%%02Xw", (unsigned)c),
               c >= ' ' && c != 0x7F);
    }
    fault_close(&f);
}

/* ---- everything else ---- */

static const char *const good[] = {
    "s3://bucket?style=path&if_none_match=1&storage_class=GLACIER_IR&sse=aws:kms&kms_key=k",
    "s3://bucket?style=virtual&if_none_match=0&sse=AES256",
    "s3://bucket?sse=aws:kms:dsse&kms_key=k",
    "s3://bucket?kms_key=alias/k",
    "s3://1.2.3-4/a/b/?tags=a=1",
    "s3://bucket?tags=a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=",
    "s3://bucket?tags=",
    "events://bus?source=aws",
    "events://bus?source=my.aws.source",
    "firehose://stream?newline=0",
    "firehose://stream?newline=1",
    "sqs://https://sqs.us-west-2.amazonaws.com/123456789012/queue",
    "sqs://http://127.0.0.1:9324/123456789012/queue.fifo",
    "sqs:arn:aws:sqs:us-east-1:123456789012:queue.fifo",
    "opensearch://search-x.us-east-1.es.amazonaws.com/idx",
    "https://example.com/#reject=Http400,Http401,Http499,Http422",
    "https://example.com/#header.content-type=text%2Fplain&header.x=1",
    "https://sqs.example.com/x",
    "http://localhost./x",
    "http://a.localhost:8080/x",
    "http://127.1.2.3/x",
};

static const char *const bad[] = {
    "s3:bucket",
    "s3://",
    "s3://192.168.0.1",
    "s3://123",
    "s3://a..b",
    "s3://bucket//a",
    "s3://bucket/a//b",
    "s3://bucket/./b",
    "s3://bucket/a/..",
    "s3://bucket?style=host",
    "s3://bucket?if_none_match=2",
    "s3://bucket?if_none_match=10",
    "s3://bucket?sse=aws",
    "s3://bucket?sse=AES256&kms_key=k",
    "s3://bucket?storage_class=a%20b",
    "s3://bucket?kms_key=%C3%A4",
    "s3://bucket?tags=a",
    "s3://bucket?tags==1",
    "s3://bucket?tags=a=1,,b=2",
    "s3://bucket?tags=a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10,k=11",
    "s3://bucket?what=1",
    "s3://bucket?in_flight=0",
    "s3://bucket?in_flight=65",
    "dynamodb:arn:aws:dynamodb:us-east-1:123456789012:table/tbl:x",
    "dynamodb:arn:aws:dynamodb:us-east-1:123456789012:index/tbl",
    "dynamodb:arn:aws:dynamodb:us-east-1:123456789012:table/tbl/index/i",
    "dynamodb://tbl?what=1",
    "dynamodb://tbl?region=not%20one",
    "sqs://12345678901x/queue",
    "sqs://queue?account=12345678901x",
    "sqs://https://sqs.us-west-2.amazonaws.com/1/queue",
    "sqs://.fifo",
    "sqs://a.fifo.fifo",
    "sqs://",
    "sns://topic",
    "sns:arn:aws:sqs:us-east-1:123456789012:topic",
    "sns:arn:aws:sns:us-east-1:123456789012:topic:subscription",
    "sns:arn:aws:sns:us-east-1:123456789012:.fifo",
    "events://bus?source=",
    "events://bus?source=aws.x",
    "events:arn:aws:events:us-east-1:123456789012:rule/bus",
    "kinesis:arn:aws:kinesis:us-east-1:123456789012:deliverystream/s",
    "firehose:arn:aws:firehose:us-east-1:123456789012:stream/s",
    "firehose://stream?newline=2",
    "firehose://stream?newline=",
    "kinesis://stream?newline=1",
    "https://sqs.us-east-1.amazonaws.com/123456789012/queue",
    "https://example.com/#reject=Http408",
    "https://example.com/#reject=Http425",
    "https://example.com/#reject=Http429",
    "https://example.com/#reject=Http500",
    "https://example.com/#reject=Http4a0",
    "https://example.com/#reject=Http40a",
    "https://example.com/#reject=Http4/0",
    "https://example.com/#reject=Http40:",
    "https://example.com/#reject=Http4000",
    "https://example.com/#reject=Http40",
    "https://example.com/#reject=http400",
    "https://example.com/#reject=Http400,Http401,Http402,Http403,Http404,Http405,Http406,Http407,Http409",
    "https://example.com/#header.x=1&header.X=2",
    "https://example.com/#header.Host=x",
    "https://example.com/#header.x=",
    "https://example.com/#secret=lower-case",
    "https://example.com/#secret=whsec_AAAA",
    "https://example.com/#proxy=2",
    "http://localhostx/x",
    "http://xlocalhost/x",
    "http://localhost.example.com/x",
};

static void other_texts_are_right_or_wrong(void **state)
{
    (void)state;
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        expect(good[i], true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(bad[i], false);
    fault_close(&f);
}

/* A key has 24 to 64 bytes (Standard Webhooks); two of them are used at once. */
static void secrets_have_their_lengths(void **state)
{
    (void)state;
    fault_open(&f, answer, NULL);
    for (size_t n = 23; n <= 65; n++) {
        char base64[100] = "whsec_";
        for (size_t i = 0; i < (n + 2) / 3 * 4; i++)
            base64[6 + i] = i < (n * 4 + 2) / 3 ? 'A' : '=';
        fault_set(&f, "HOOK_KEY", base64);
        expect("https://example.com/#secret=HOOK_KEY", n >= 24 && n <= 64);
        expect("https://example.com/#secret=HOOK_KEY,HOOK_KEY", n >= 24 && n <= 64);
        expect("https://example.com/#secret=HOOK_KEY,HOOK_OTHER", false);
        fault_set(&f, "HOOK_KEY", base64 + 6);
        expect("https://example.com/#secret=HOOK_KEY", false);
    }
    expect(repeated("https://example.com/#header_env.x=", 'V', 300, ""), false);
    expect("https://example.com/#header_env.x=HOOK_KEY", true);
    expect("https://example.com/#header_env.x=HOOK_NONE", false);
    f.sinks.is_dry = true;
    expect("https://example.com/#header_env.x=HOOK_NONE", true);
    expect("https://example.com/#secret=HOOK_NONE", true);
    expect("https://example.com/#secret=", true);
    fault_close(&f);
}

/* Each scheme is of one kind, and the others refuse it by name. */
static void a_scheme_is_of_one_kind(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        enum sl_port_kind kind;
        bool is_local;
    } cases[] = {
        {"s3://bucket", SL_PORT_OBJECTS, false},
        {"file:/tmp/x", SL_PORT_OBJECTS, true},
        {"dynamodb://table", SL_PORT_TABLE, false},
        {"sqlite:/tmp/x.db?table=t", SL_PORT_TABLE, true},
        {"opensearch://h/i", SL_PORT_TABLE, false},
        {"sqs://queue", SL_PORT_QUEUE, false},
        {"sns:arn:aws:sns:us-east-1:123456789012:t", SL_PORT_QUEUE, false},
        {"events://bus", SL_PORT_QUEUE, false},
        {"kinesis://stream", SL_PORT_QUEUE, false},
        {"firehose://stream", SL_PORT_QUEUE, false},
        {"https://example.com/", SL_PORT_QUEUE, false},
        {"http://localhost/", SL_PORT_QUEUE, false},
        {"jsonl:/tmp/x.jsonl", SL_PORT_QUEUE, true},
        {"stdout:", SL_PORT_QUEUE, true},
        {"what://is-this", SL_PORT_NONE, false},
        {"nothing", SL_PORT_NONE, false},
        {"", SL_PORT_NONE, false},
    };
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_span url = sl_span_str(cases[i].url);
        struct sl_object_port *objects = NULL;
        struct sl_table_port *table = NULL;
        struct sl_queue_port *queue = NULL;
        assert_int_equal(sl_target_kind(url), cases[i].kind);
        assert_int_equal(sl_target_is_local(url), cases[i].is_local);
        struct sl_error errors[4] = {SL_NO_ERROR, SL_NO_ERROR, SL_NO_ERROR, SL_NO_ERROR};
        assert_int_equal(sl_target_check(url, &errors[0]), SL_OK);
        if (cases[i].kind != SL_PORT_OBJECTS)
            assert_int_equal(sl_target_objects(&f.sinks, url, &objects, &errors[1]), SL_FATAL);
        if (cases[i].kind != SL_PORT_TABLE)
            assert_int_equal(sl_target_table(&f.sinks, url, &table, &errors[2]), SL_FATAL);
        if (cases[i].kind != SL_PORT_QUEUE)
            assert_int_equal(sl_target_queue(&f.sinks, url, &queue, &errors[3]), SL_FATAL);
        static const char *const words[] = {"", "an object store is needed", "a table is needed",
                                            "a queue is needed"};
        for (size_t k = 1; k < 4; k++)
            if (cases[i].kind != (enum sl_port_kind)k)
                assert_non_null(strstr(errors[k].text, words[k]));
    }
    sl_sinks_prepare(&f.sinks);
    sl_sinks_trace(&f.sinks, "Root=1-5759e988-bd862e3fe1be46a994272793");
    expect("dynamodb://table", true);
    sl_sinks_prepare(&f.sinks);
    sl_sinks_trace(&f.sinks, "Root=1-5759e988-bd862e3fe1be46a994272793");
    fault_close(&f);
}

static void local_targets_are_checked_by_their_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {"file:",
                                        "file://x",
                                        "sqlite:",
                                        "sqlite:x.db",
                                        "sqlite:x.db?table=",
                                        "sqlite:x.db?table=a b",
                                        "sqlite://x.db?table=t",
                                        "jsonl:",
                                        "jsonl://x",
                                        "stdout:x",
                                        "stdout:?x=1",
                                        "file:x?y=1",
                                        "jsonl:x?y=1",
                                        "sqlite:x.db?table=t&y=1"};
    static const char *const right[] = {"file:x", "sqlite:x.db?table=t", "jsonl:x", "stdout:"};
    fault_open(&f, answer, NULL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        if (sl_target_check(sl_span_str(wrong[i]), &error) != SL_FATAL || !error.text[0])
            fail_msg("%s is not refused", wrong[i]);
        expect(wrong[i], false);
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_int_equal(sl_target_check(sl_span_str(right[i]), NULL), SL_OK);
    expect(repeated("sqlite:/nowhere/x.db?table=", 't', 256, ""), false);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_lengths),
        cmocka_unit_test(numbers_have_their_limits),
        cmocka_unit_test(names_have_their_characters),
        cmocka_unit_test(webhooks_have_their_characters),
        cmocka_unit_test(other_texts_are_right_or_wrong),
        cmocka_unit_test(secrets_have_their_lengths),
        cmocka_unit_test(a_scheme_is_of_one_kind),
        cmocka_unit_test(local_targets_are_checked_by_their_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
