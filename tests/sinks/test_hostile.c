/* Hostile text in every field of every sink: nothing of it becomes syntax of a request.
 *
 * Every case sends two operations, one with the hostile text and one without. With HOSTILE_DUMP=FILE, the
 * cases, their results and the requests are written there as lines of JSON, and check_hostile.py parses the
 * requests back with parsers of its own. */
#include "tests/support/fault.h"

#include "base/base64.h"
#include "base/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Base64 of "canary-webhook-key-012345". */
#define HOOK_KEY "Y2FuYXJ5LXdlYmhvb2sta2V5LTAxMjM0NQ=="

static struct fault f;
static FILE *dump;
static char large[1024 * 1024];

/* {large, sizeof(large)} is the last. */
static const struct sl_span texts[] = {
    SL_LIT("plain"),
    SL_LIT(""),
    SL_LIT("x\",\"MessageBody\":\"EVIL"),
    SL_LIT("\"}],\"Entries\":[{\"Id\":\"9"),
    SL_LIT("\\\",\\u0022 \\"),
    SL_LIT("a\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1"),
    SL_LIT("a\tb\nc"),
    SL_LIT("a\0b"),
    SL_LIT("\x01\x1f\x7f"),
    SL_LIT("&Action=DeleteTopic&=%41%00+%"),
    SL_LIT("<x>&amp;</x>]]>"),
    SL_LIT("'; DROP TABLE rows; --"),
    SL_LIT("%s%n%p{PK}${PATH}"),
    SL_LIT("\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\xe2\x80\xae"),
    SL_LIT("\xf0\x9f\x98\x80\xc3\xa4\xef\xbf\xbd"),
    SL_LIT("\xef\xbf\xbe"),
    SL_LIT("\xff\xfe"),
    SL_LIT("\xc0\xaf"),
    SL_LIT("\xed\xa0\x80"),
    SL_LIT("a\xf0\x9f\x98"),
    SL_LIT("{\"a\":1}"),
    SL_LIT("{\"a\":1}}"),
    {large, sizeof(large)},
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

/* ---- the dump ---- */

static void print_bytes(const char *name, struct sl_span bytes)
{
    char *text = calloc(1, (bytes.len + 2) / 3 * 4 + 1);
    sl_base64_encode_to(bytes, text);
    fprintf(dump, "\"%s\":\"%s\",", name, text);
    free(text);
}

static void write_request(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    reply->is_honest = true;
    if (!dump)
        return;
    fprintf(dump, "{");
    print_bytes("path", sl_span_str(request->path));
    print_bytes("head", sl_span_str(request->head));
    print_bytes("body", request->body);
    fprintf(dump, "\"method\":\"%s\"}\n", request->method);
}

/* After the case's requests. */
static void write_case(const char *sink, const char *field, struct sl_span text,
                       const struct sl_result results[2])
{
    for (int i = 0; i < 2; i++)
        if (results[i].status != SL_OK && results[i].status != SL_REJECT)
            fail_msg("%s, %s: status %d, %s: %s", sink, field, (int)results[i].status, results[i].code,
                     results[i].text);
    if (results[1].status != SL_OK)
        fail_msg("%s, %s: the harmless neighbour is refused: %s", sink, field, results[1].text);
    if (!dump)
        return;
    fprintf(dump, "{\"sink\":\"%s\",\"field\":\"%s\",", sink, field);
    print_bytes("text", text);
    print_bytes("why", sl_span_str(results[0].text ? results[0].text : ""));
    fprintf(dump, "\"status\":%d,\"code\":\"%s\"}\n", (int)results[0].status,
            results[0].code ? results[0].code : "");
    fflush(dump);
}

static void open_all(void)
{
    const char *path = getenv("HOSTILE_DUMP");
    dump = path ? fopen(path, "a") : NULL;
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = "\"\\A\n"[i % 4];
    fault_open(&f, write_request, NULL);
    fault_set(&f, "HOOK_KEY", "whsec_" HOOK_KEY);
}

static void close_all(void)
{
    fault_close(&f);
    if (dump)
        fclose(dump);
}

/* ---- queues ---- */

static const char *const queues[][2] = {
    {"sqs", "sqs://123456789012/queue"},
    {"sqs fifo", "sqs://123456789012/queue.fifo"},
    {"sns", "sns:arn:aws:sns:us-east-1:123456789012:topic"},
    {"sns fifo", "sns:arn:aws:sns:us-east-1:123456789012:topic.fifo"},
    {"events", "events://default"},
    {"kinesis", "kinesis://stream"},
    {"firehose", "firehose://stream?newline=0"},
    {"webhook", "http://server/hook?a=b#secret=HOOK_KEY&header.X-Team=a%20b"},
    {"webhook array", "http://server/hook#secret=HOOK_KEY&batch=10&id=array"},
};

static void send(const char *sink, struct sl_queue_port *queue, const char *field, struct sl_span text)
{
    struct sl_message_attribute attribute = {SL_LIT("name"), SL_LIT("value")};
    struct sl_message messages[2] = {
        {.body = SL_LIT("{\"n\":0}"), .order = SL_LIT("o0"), .dedupe = SL_LIT("d0")},
        {.body = SL_LIT("{\"n\":1}"), .order = SL_LIT("o1"), .dedupe = SL_LIT("d1")}};
    struct sl_message *m = &messages[0];
    struct sl_result results[2];
    if (strncmp(field, "attribute", 9) == 0) {
        m->attributes = &attribute;
        m->n_attributes = 1;
    }
    *(strcmp(field, "body") == 0             ? &m->body
      : strcmp(field, "order") == 0          ? &m->order
      : strcmp(field, "dedupe") == 0         ? &m->dedupe
      : strcmp(field, "subject") == 0        ? &m->subject
      : strcmp(field, "attribute name") == 0 ? &attribute.name
                                             : &attribute.value) = text;
    queue->apply(queue, messages, 2, results, &f.call);
    write_case(sink, field, text, results);
    sl_arena_reset(f.call.arena);
}

static void hostile_messages(void **state)
{
    (void)state;
    static const char *const fields[] = {"body",    "order",          "dedupe",
                                         "subject", "attribute name", "attribute value"};
    open_all();
    for (size_t q = 0; q < sizeof(queues) / sizeof(queues[0]); q++) {
        struct sl_queue_port *queue = fault_queue(&f, queues[q][1]);
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            for (size_t k = 0; k < N_TEXTS; k++)
                send(queues[q][0], queue, fields[i], texts[k]);
        queue->close(queue);
    }
    close_all();
}

/* ---- objects ---- */

static void hostile_objects(void **state)
{
    (void)state;
    static const char *const fields[] = {"key", "body", "content_type", "content_encoding"};
    open_all();
    struct sl_object_port *port = fault_objects(&f, "s3://bucket/pre?tags=a=b%26c%0d%0a,d=%22");
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            struct sl_object objects[2] = {{.key = SL_LIT("a"), .body = SL_LIT("x")},
                                           {.key = SL_LIT("b"), .body = SL_LIT("y")}};
            struct sl_result results[2];
            const char *text = sl_arena_copy(f.call.arena, texts[k]);
            if (i == 0)
                objects[0].key = texts[k];
            if (i == 1)
                objects[0].body = texts[k];
            if (i == 2)
                objects[0].content_type = text;
            if (i == 3)
                objects[0].content_encoding = text;
            port->apply(port, objects, 2, results, &f.call);
            write_case("s3", fields[i], i < 2 ? texts[k] : sl_span_str(text), results);
            sl_arena_reset(f.call.arena);
        }
    port->close(port);
    close_all();
}

/* ---- tables ---- */

/* {"PK":{"S":"a"},"v":{"S":text}}, or with the text as the attribute's name. */
static struct sl_span item_with(struct sl_span name, struct sl_span value)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, f.call.arena, 16 * sizeof(large));
    sl_buffer_add_str(&out, "{\"PK\":{\"S\":\"a\"},");
    sl_json_add_string(&out, name);
    sl_buffer_add_str(&out, ":{\"S\":");
    sl_json_add_string(&out, value);
    sl_buffer_add_str(&out, "}}");
    return sl_buffer_span(&out);
}

static struct sl_span key_with(struct sl_span value)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, f.call.arena, 16 * sizeof(large));
    sl_buffer_add_str(&out, "{\"PK\":{\"S\":");
    sl_json_add_string(&out, value);
    sl_buffer_add_str(&out, "}}");
    return sl_buffer_span(&out);
}

struct table_case {
    const char *field;
    struct sl_table_op op;
    struct sl_set set;
    struct sl_test test;
};

/* False: the operation has no such field. */
static bool set_field(struct table_case *c, struct sl_span text)
{
    const char *field = c->field;
    struct sl_table_op *op = &c->op;
    if (strcmp(field, "value") == 0)
        op->item = item_with(SL_LIT("v"), text);
    else if (strcmp(field, "name") == 0)
        op->item = item_with(text, SL_LIT("v"));
    else if (strcmp(field, "item") == 0)
        op->item = text;
    else if (strcmp(field, "key") == 0)
        op->key = op->item = key_with(text);
    else if (strcmp(field, "key json") == 0)
        op->key = text;
    else if (strcmp(field, "set name") == 0)
        c->set.name = text;
    else if (strcmp(field, "set value") == 0)
        c->set.value = text;
    else if (strcmp(field, "test name") == 0)
        c->test.name = text;
    else
        c->test.value = text;
    bool is_update = op->verb == SL_TABLE_UPDATE, has_item = op->verb == SL_TABLE_PUT;
    if ((strncmp(field, "set", 3) == 0 && !is_update) || (strncmp(field, "test", 4) == 0 && !op->n_tests))
        return false;
    return has_item || (op->item.ptr == c->op.key.ptr || strcmp(field, "value") != 0);
}

static void hostile_operations(void **state)
{
    (void)state;
    static const char *const fields[] = {"value",    "name",      "item",      "key",       "key json",
                                         "set name", "set value", "test name", "test value"};
    static const enum sl_table_verb verbs[] = {SL_TABLE_PUT, SL_TABLE_PUT, SL_TABLE_UPDATE, SL_TABLE_UPDATE};
    static const char *const sinks[] = {"batch", "conditional", "update", "group"};
    open_all();
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            for (size_t k = 0; k < N_TEXTS; k++) {
                struct table_case c = {
                    .field = fields[i],
                    .op = {.verb = verbs[s],
                           .group = s == 3 ? 1 : 0,
                           .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                           .n_sets = s >= 2,
                           .n_tests = s == 1 || s == 3},
                    .set = {.verb = SL_SET, .name = SL_LIT("n"), .value = SL_LIT("{\"N\":\"1\"}")},
                    .test = {.verb = SL_EQ, .name = SL_LIT("t"), .value = SL_LIT("{\"N\":\"1\"}")}};
                c.op.item = c.op.key;
                if (!set_field(&c, texts[k]) || (s >= 2 && i < 3))
                    continue;
                c.op.sets = &c.set;
                c.op.tests = &c.test;
                struct sl_table_op ops[2] = {c.op,
                                             {.verb = SL_TABLE_PUT, .key = SL_LIT("{\"PK\":{\"S\":\"z\"}}")}};
                struct sl_result results[2];
                ops[1].item = ops[1].key;
                table->apply(table, ops, 2, results, &f.call);
                write_case(sinks[s], fields[i], texts[k], results);
                sl_arena_reset(f.call.arena);
            }
    table->close(table);
    close_all();
}

/* Documents: what is hostile in an item, its key, or a guard that is read. */
static void hostile_documents(void **state)
{
    (void)state;
    static const char *const fields[] = {"value",    "name",      "item",      "key",
                                         "key json", "test name", "test value"};
    open_all();
    struct sl_table_port *table = fault_table(&f, "opensearch://server/idx?tls=off");
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            struct table_case c = {
                .field = fields[i],
                .op = {.verb = SL_TABLE_PUT, .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"), .n_tests = i >= 5},
                .test = {.verb = SL_NE, .name = SL_LIT("t"), .value = SL_LIT("{\"N\":\"1\"}")}};
            c.op.item = c.op.key;
            if (!set_field(&c, texts[k]))
                continue;
            const struct sl_test absent = {.verb = SL_ABSENT, .name = SL_LIT("t")};
            const struct sl_test tests[] = {absent, c.test};
            c.op.tests = tests;
            c.op.n_tests *= 2;
            c.op.any_test = true;
            struct sl_table_op ops[2] = {c.op,
                                         {.verb = SL_TABLE_PUT, .key = SL_LIT("{\"PK\":{\"S\":\"z\"}}")}};
            struct sl_result results[2];
            ops[1].item = ops[1].key;
            table->apply(table, ops, 2, results, &f.call);
            write_case("document", fields[i], texts[k], results);
            sl_arena_reset(f.call.arena);
        }
    table->close(table);
    close_all();
}

/* ---- reading ---- */

static void hostile_reads(void **state)
{
    (void)state;
    static const char *const fields[] = {"key", "etag"};
    open_all();
    struct sl_object_port *port = fault_objects(&f, "s3://bucket/pre");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            struct sl_object_read reads[2] = {{.key = SL_LIT("a"), .max_bytes = 100},
                                              {.key = SL_LIT("b"), .max_bytes = 100}};
            struct sl_object_piece pieces[2];
            *(i == 0 ? &reads[0].key : &reads[0].etag) = texts[k];
            port->read(port, reads, 2, pieces, &f.call);
            /* The honest object has another entity tag: its answer to this one is not understood. */
            if (i == 1 && pieces[0].result.status == SL_RETRY)
                pieces[0].result = (struct sl_result){.status = SL_OK};
            write_case("read", fields[i], texts[k], (struct sl_result[]){pieces[0].result, pieces[1].result});
            sl_arena_reset(f.call.arena);
        }
    port->close(port);
    close_all();
}

/* The honest list begins with "p/". */
static void hostile_lists(void **state)
{
    (void)state;
    static const char *const fields[] = {"prefix", "after"};
    open_all();
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    struct sl_object_port *port = fault_objects(&f, "s3://bucket");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            struct sl_object_list lists[2] = {{.prefix = SL_LIT("p")}, {.prefix = SL_LIT("p/")}};
            struct sl_object_page pages[2];
            *(i == 0 ? &lists[0].prefix : &lists[0].after) = texts[k];
            port->list(port, &lists[0], &pages[0], &f.call);
            port->list(port, &lists[1], &pages[1], &f.call);
            if (pages[0].result.status == SL_RETRY) /* what was listed does not fit the prefix */
                pages[0].result = (struct sl_result){.status = SL_OK};
            write_case("list", fields[i], texts[k], (struct sl_result[]){pages[0].result, pages[1].result});
            sl_arena_reset(f.call.arena);
        }
    port->close(port);
    close_all();
}

static void hostile_scans(void **state)
{
    (void)state;
    static const char *const fields[] = {"key", "key json", "name"};
    open_all();
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            const struct sl_span names[] = {SL_LIT("a"), texts[k]};
            struct sl_table_scan scans[2] = {{.of = 2}, {.of = 2, .segment = 1}};
            struct sl_table_page pages[2];
            scans[0].names = i == 2 ? names : NULL;
            scans[0].n_names = i == 2 ? 2 : 0;
            scans[0].after = i == 0 ? key_with(texts[k]) : i == 1 ? texts[k] : sl_span(NULL, 0);
            table->scan(table, scans, 2, pages, &f.call);
            write_case("scan", fields[i], texts[k], (struct sl_result[]){pages[0].result, pages[1].result});
            sl_arena_reset(f.call.arena);
        }
    table->close(table);
    close_all();
}

/* ---- targets ---- */

static void hostile_targets_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "sqs://123456789012/a\"b",
        "sqs://123456789012/a%0d%0ab",
        "sqs://1234/queue",
        "sqs://queue?account=1%22",
        "sns:arn:aws:sns:us-east-1:123456789012:a&b",
        "events://a\"b",
        "kinesis://a\"b",
        "firehose://a\"b",
        "dynamodb://a\"b",
        "opensearch://h/a\"b",
        "opensearch://h/a%22b",
        "opensearch://h%0d%0a/idx",
        "opensearch://h\r\nX-Evil: 1/idx",
        "s3://bu%22cket",
        "s3://bucket?storage_class=A%0d%0aX-Evil:1",
        "s3://bucket?kms_key=a%0ab",
        "s3://bucket?kms_key=a%01b",
        "s3://bucket/a//b",
        "http://server/a b",
        "http://server/a\r\nX-Evil: 1",
        "http://server/a#header.X%0d%0aX-Evil=1",
        "http://server/a#header.X=1%0d%0aX-Evil:1",
        "http://server/a#header.X:Y=1",
        "http://server/a#header.Content-Length=1",
        "http://server/a#header.Transfer-Encoding=chunked",
        "http://server/a#header.Webhook-Id=1",
        "http://server/a#header_env.X=HOOK_EVIL",
        "http://server/a#id=a.b",
        "http://server/a#id=a%0ab",
        "http://server/{path}",
    };
    open_all();
    fault_set(&f, "HOOK_EVIL", "1\r\nX-Evil: 1");
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct sl_span url = fault_target(&f, urls[i]);
        struct sl_object_port *objects = NULL;
        struct sl_table_port *table = NULL;
        struct sl_queue_port *queue = NULL;
        enum sl_port_kind kind = sl_target_kind(url);
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = kind == SL_PORT_OBJECTS ? sl_target_objects(&f.sinks, url, &objects, &error)
                                : kind == SL_PORT_TABLE ? sl_target_table(&f.sinks, url, &table, &error)
                                                        : sl_target_queue(&f.sinks, url, &queue, &error);
        if (status != SL_FATAL)
            fail_msg("%s is not refused", urls[i]);
    }
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_messages),   cmocka_unit_test(hostile_objects),
        cmocka_unit_test(hostile_operations), cmocka_unit_test(hostile_documents),
        cmocka_unit_test(hostile_reads),      cmocka_unit_test(hostile_lists),
        cmocka_unit_test(hostile_scans),      cmocka_unit_test(hostile_targets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
