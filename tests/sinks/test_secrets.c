/* No secret and no value in logs, codes and texts: every operation of every sink and every source of
 * credentials, whatever the server repeats of what it was sent, wherever it puts it and however it writes it.
 */
#include "tests/support/fault.h"

#include "base/base64.h"
#include "tests/support/honest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Long, as real ones are, and without words that could be looked for by chance. */
#define TOKEN                                                                                                \
    "IQoJb3JpZ2luX2VjEKj//////////wEaCXVzLWVhc3QtMSJHMEUCIQDx7k9Zt0vQ2LhXn3pRc8/YwUe+QmVbJ5sGaTfKoNzH1dWiA6" \
    "Cr4EyBgXPqjS0lMuRtO9kZvFhIxD2w7Lc5nY3KbVe8TzQfUp1JsGm6oHiAaNrXdWtSyCqEvBxRzLk0jP4uYgM9fOc7hT2nIwDe5Q=="
#define SECRET    "vQz8+KxJ3mPw/Yt7RnLc2BdHsG5fUeAo9iZkXq4W"
#define CONTAINER "Cz9qWm4Xt7Bv2Ky5Lr8Pn1Jd6Hs3Gf0TuEaOiUy"
#define WEB       "eyJhbGciOiJub25lIn0.eyJzdWIiOiJRenhKcXo4S3hKIn0.QzXjqvYk72hGfdWsPlmNbRtUoIeA"
#define VALUE     "QzXjqv-Kwyz72_JxqzHv"

static struct fault f;
static char *folder;

/* ---- what is repeated, how, and where ---- */

enum what { OWN_TOKEN, OWN_SIGNATURE, OWN_VALUE, OWN_SECRET, N_WHAT };
enum how { PLAIN, ESCAPED, HALF_ESCAPED, PERCENT, ENTITIES, BASE64, WRAPPED, SECOND_HALF, N_HOW };
enum where {
    IN_MESSAGE,
    IN_LATE_MESSAGE, /* the cut falls into it */
    IN_VERY_LATE_MESSAGE,
    IN_CODE,
    IN_TYPED_CODE, /* behind a namespace */
    IN_HEADER_CODE,
    IN_HTML,
    IN_OTHER_JSON,
    IN_XML_MESSAGE,
    IN_XML_CODE,
    IN_LOCATION,
    IN_REGION,
    IN_ENTRY_MESSAGE, /* with 200, where answers have entries; a reason of a transaction */
    IN_ENTRY_CODE,
    IN_THROTTLING,
    IN_EXPIRY, /* the keys are renewed, and the answer is still about the old ones */
    N_WHERE
};

struct liar {
    enum what what;
    enum how how;
    enum where where;
    char said[4096], coded[32768], body[2 * 32768 + 8192], headers[2 * 32768 + 200];
    size_t requests;
};

static void take_what(struct liar *l, const struct scripted_request *request)
{
    static const char *const headers[] = {"x-amz-security-token", "authorization"};
    bool has_value =
        !memmem(request->body.ptr ? request->body.ptr : "", request->body.len, "\"QueueName\"", 11);
    enum what what = l->what == OWN_VALUE && !has_value ? OWN_SIGNATURE : l->what;
    struct sl_span said = what == OWN_VALUE    ? SL_LIT(VALUE)
                          : what == OWN_SECRET ? SL_LIT(SECRET)
                                               : scripted_header(request, headers[what]);
    if (!said.len) /* of a source: what it was asked with */
        said = scripted_header(request, "authorization");
    if (!said.len)
        said = scripted_header(request, "x-aws-ec2-metadata-token");
    if (!said.len)
        said = request->body.len ? request->body : SL_LIT("-");
    snprintf(l->said, sizeof(l->said), "%.*s", SL_ARG(said));
}

static void write_how(struct liar *l)
{
    struct sl_buffer out = {.ptr = l->coded, .room = sizeof(l->coded), .max = sizeof(l->coded) - 1};
    struct sl_span said = sl_span_str(l->said);
    if (l->how == SECOND_HALF)
        said = sl_span_from(said, said.len / 2);
    if (l->how == BASE64) {
        out.len = sl_base64_encode_to(said, l->coded);
    }
    for (size_t i = 0; i < said.len && l->how != BASE64; i++) {
        unsigned char c = (unsigned char)said.ptr[i];
        if (l->how == ESCAPED || (l->how == HALF_ESCAPED && i % 3 == 1))
            sl_buffer_printf(&out, "\\u%04x", c);
        else if (l->how == PERCENT)
            sl_buffer_printf(&out, "%%%02X", c);
        else if (l->how == ENTITIES)
            sl_buffer_printf(&out, "&#%u;", c);
        else {
            if (l->how == WRAPPED && i && i % 40 == 0)
                sl_buffer_add_str(&out, "\\r\\n ");
            if (c == '"' || c == '\\')
                sl_buffer_add_char(&out, '\\');
            sl_buffer_add_char(&out, (char)c);
        }
    }
    l->coded[out.len] = '\0';
}

static void json_error(struct liar *l, const char *code, size_t late)
{
    char words[5000] = "";
    while (strlen(words) + 12 < late)
        stpcpy(words + strlen(words), "the request ");
    snprintf(l->body, sizeof(l->body),
             "{\"__type\":\"com.amazon.coral#%s\",\"message\":\"%s%s is not valid\"}", code, words, l->coded);
}

static void entries_error(struct liar *l, const char *operation, const char *code, const char *message)
{
    char *b = l->body;
    size_t room = sizeof(l->body);
    if (strcmp(operation, "SendMessageBatch") == 0)
        snprintf(b, room,
                 "{\"Failed\":[{\"Id\":\"0\",\"Code\":\"%s\",\"Message\":\"%s\",\"SenderFault\":true}]}",
                 code, message);
    else if (strcmp(operation, "PublishBatch") == 0)
        snprintf(
            b, room,
            "<PublishBatchResponse><PublishBatchResult><Successful/><Failed><member><Id>0</Id><Code>%s</Code>"
            "<Message>%s</Message><SenderFault>true</SenderFault></member></Failed></PublishBatchResult>"
            "</PublishBatchResponse>",
            code, message);
    else
        snprintf(b, room,
                 "{\"FailedEntryCount\":1,\"FailedRecordCount\":1,\"FailedPutCount\":1,\"%s\":[{"
                 "\"ErrorCode\":\"%s\","
                 "\"ErrorMessage\":\"%s\"}]}",
                 strcmp(operation, "PutEvents") == 0    ? "Entries"
                 : strcmp(operation, "PutRecords") == 0 ? "Records"
                                                        : "RequestResponses",
                 code, message);
}

/* False where the operation's answers have no entries. */
static bool put_entries(struct liar *l, const char *operation, struct scripted_reply *reply)
{
    static const char *const with[] = {"SendMessageBatch", "PublishBatch", "PutEvents", "PutRecords",
                                       "PutRecordBatch"};
    const char *code = l->where == IN_ENTRY_CODE ? l->coded : "NewRefusal";
    const char *message = l->where == IN_ENTRY_CODE ? "no" : l->coded;
    for (size_t i = 0; i < 5; i++)
        if (strcmp(operation, with[i]) == 0) {
            entries_error(l, operation, code, message);
            reply->status = 200;
            return true;
        }
    if (strcmp(operation, "TransactWriteItems") != 0)
        return false;
    snprintf(l->body, sizeof(l->body),
             "{\"__type\":\"TransactionCanceledException\",\"CancellationReasons\":[{\"Code\":\"%s\","
             "\"Message\":\"%s\"}]}",
             l->where == IN_ENTRY_CODE ? l->coded : "ValidationError", message);
    return true;
}

static void lie(struct liar *l, const struct scripted_request *request, struct scripted_reply *reply)
{
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    take_what(l, request);
    write_how(l);
    *reply = (struct scripted_reply){.status = 400};
    json_error(l, "NewRefusalException", 0);
    l->headers[0] = '\0';
    for (char *p = l->coded; *p && l->where >= IN_HEADER_CODE; p++)
        if (*p == '\r' || *p == '\n')
            *p = ' ';
    switch (l->where) {
    case IN_LATE_MESSAGE:
        json_error(l, "NewRefusalException", 390);
        break;
    case IN_VERY_LATE_MESSAGE:
        json_error(l, "NewRefusalException", 4080);
        break;
    case IN_CODE:
        snprintf(l->body, sizeof(l->body), "{\"__type\":\"%s\"}", l->coded);
        break;
    case IN_TYPED_CODE:
        json_error(l, l->coded, 0);
        break;
    case IN_HEADER_CODE:
        snprintf(l->headers, sizeof(l->headers), "x-amzn-errortype: %s\r\n", l->coded);
        l->body[0] = '\0';
        break;
    case IN_HTML:
        snprintf(l->body, sizeof(l->body), "<html><h1>%s</h1><Error><Code>%s</Code></Error></html>", l->coded,
                 l->coded);
        reply->status = 403;
        break;
    case IN_OTHER_JSON:
        snprintf(l->body, sizeof(l->body), "{\"error\":\"%s\",\"message\":\"%s\"}", l->coded, l->coded);
        break;
    case IN_XML_MESSAGE:
        snprintf(l->body, sizeof(l->body), "<Error><Code>NewRefusal</Code><Message>%s</Message></Error>",
                 l->coded);
        break;
    case IN_XML_CODE:
        snprintf(l->body, sizeof(l->body), "<ErrorResponse><Error><Code>%s</Code></Error></ErrorResponse>",
                 l->coded);
        break;
    case IN_LOCATION:
        snprintf(l->headers, sizeof(l->headers), "Location: http://127.0.0.1:1/%s\r\n", l->coded);
        reply->status = 301;
        break;
    case IN_REGION:
        snprintf(l->headers, sizeof(l->headers), "x-amz-bucket-region: %s\r\nDate: %s\r\n", l->coded,
                 l->coded);
        snprintf(l->body, sizeof(l->body), "<Error><Code>PermanentRedirect</Code><Region>%s</Region></Error>",
                 l->coded);
        reply->status = 301;
        break;
    case IN_ENTRY_MESSAGE:
    case IN_ENTRY_CODE:
        put_entries(l, operation, reply);
        break;
    case IN_THROTTLING:
        json_error(l, "ThrottlingException", 0);
        break;
    case IN_EXPIRY:
        json_error(l, "ExpiredTokenException", 0);
        break;
    default:
        break;
    }
    reply->headers = l->headers;
    reply->body = sl_span_str(l->body);
}

/* ---- what must not be found ---- */

/* Each run of `run` bytes of the text. */
static void assert_absent(const char *log, struct sl_span text, size_t run, const char *of)
{
    for (size_t i = 0; i + run <= text.len; i++)
        if (memmem(log, strlen(log), text.ptr + i, run))
            fail_msg("%s: \"%.*s\" is in a log line or a result:\n%s", of, (int)run, text.ptr + i, log);
}

static void look_for_all(const struct liar *l, const char *of)
{
    off_t len = lseek(f.fd, 0, SEEK_END);
    char *log = calloc(1, (size_t)len + 1);
    assert_int_equal(pread(f.fd, log, (size_t)len, 0), len);
    assert_true(len > 0);
    assert_absent(log, SL_LIT(TOKEN), 16, of);
    assert_absent(log, SL_LIT(SECRET), 16, of);
    assert_absent(log, SL_LIT(CONTAINER), 16, of);
    assert_absent(log, SL_LIT(WEB), 16, of);
    assert_absent(log, SL_LIT(VALUE), 4, of);
    /* What the server wrote: escapes make it longer, and base64 by a third. */
    size_t swell = l->how == ESCAPED    ? 6
                   : l->how == PERCENT  ? 3
                   : l->how == ENTITIES ? 5
                   : l->how == BASE64   ? 2
                                        : 1;
    bool is_form = strncmp(l->said, "Action=", 7) == 0; /* its words are ours */
    if (!is_form)
        assert_absent(log, sl_span_str(l->coded), (strcmp(l->said, VALUE) == 0 ? 4 : 16) * swell, of);
    free(log);
}

/* ---- operations ---- */

static const struct operation {
    const char *name, *url;
    enum sl_table_verb verb;
    bool is_tested, is_grouped;
} operations[] = {
    {"PutObject", "s3://bucket/p", 0, false, false},
    {"PutItem", "dynamodb://tbl", SL_TABLE_PUT, true, false},
    {"DeleteItem", "dynamodb://tbl", SL_TABLE_DELETE, true, false},
    {"UpdateItem", "dynamodb://tbl", SL_TABLE_UPDATE, false, false},
    {"BatchWriteItem", "dynamodb://tbl", SL_TABLE_PUT, false, false},
    {"BatchGetItem", "dynamodb://tbl", SL_TABLE_GET, false, false},
    {"BatchGetItem", "dynamodb://tbl", SL_TABLE_PEEK, false, false},
    {"Scan", "dynamodb://tbl", 0, false, false},
    {"GetObject", "s3://bucket/p", 0, false, false},
    {"ListObjectsV2", "s3://bucket/p", 0, false, false},
    {"TransactWriteItems", "dynamodb://tbl", SL_TABLE_PUT, false, true},
    {"SendMessageBatch", "sqs://123456789012/queue", 0, false, false},
    {"SendMessageBatch, FIFO", "sqs://123456789012/queue.fifo", 0, false, false},
    {"GetQueueUrl", "sqs://queue", 0, false, false},
    {"PublishBatch", "sns:arn:aws:sns:us-east-1:123456789012:topic", 0, false, false},
    {"PutEvents", "events://default", 0, false, false},
    {"PutRecords", "kinesis://stream", 0, false, false},
    {"PutRecordBatch", "firehose://stream", 0, false, false},
    {"POST", "http://server/hook?token=" TOKEN "#header.X-Token=" SECRET, 0, false, false},
};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static struct sl_result apply_table(const struct operation *o)
{
    static const struct sl_test is_new = {.verb = SL_ABSENT, .name = {"PK", 2}};
    static const struct sl_set set = {
        .verb = SL_SET, .name = {"v", 1}, .value = {"{\"S\":\"" VALUE "\"}", 30}};
    struct sl_table_op op = {.verb = o->verb,
                             .key = SL_LIT("{\"PK\":{\"S\":\"" VALUE "\"}}"),
                             .item = SL_LIT("{\"PK\":{\"S\":\"" VALUE "\"},\"v\":{\"S\":\"" VALUE "\"}}"),
                             .tests = &is_new,
                             .n_tests = o->is_tested,
                             .group = o->is_grouped};
    struct sl_set one = set;
    one.value = SL_LIT("{\"S\":\"" VALUE "\"}");
    if (o->verb == SL_TABLE_UPDATE) {
        op.sets = &one;
        op.n_sets = 1;
    }
    struct sl_result result;
    struct sl_table_port *table = fault_table(&f, o->url);
    table->apply(table, &op, 1, &result, &f.call);
    table->close(table);
    return result;
}

static struct sl_result scan_one(const struct operation *o)
{
    const struct sl_span name = SL_LIT(VALUE);
    const struct sl_table_scan scan = {
        .after = SL_LIT("{\"PK\":{\"S\":\"" VALUE "\"}}"), .names = &name, .n_names = 1};
    struct sl_table_page page;
    struct sl_table_port *table = fault_table(&f, o->url);
    table->scan(table, &scan, 1, &page, &f.call);
    table->close(table);
    return page.result;
}

static struct sl_result read_one(const struct operation *o)
{
    const struct sl_object_read read = {
        .key = SL_LIT("tenant/" VALUE "/part"), .max_bytes = 100, .etag = SL_LIT("e")};
    const struct sl_object_list list = {.prefix = SL_LIT("tenant/" VALUE), .after = SL_LIT(VALUE)};
    struct sl_object_piece piece = {.bytes = {NULL, 0}};
    struct sl_object_page page = {.n = 0};
    struct sl_object_port *objects = fault_objects(&f, o->url);
    if (strcmp(o->name, "GetObject") == 0)
        objects->read(objects, &read, 1, &piece, &f.call);
    else
        objects->list(objects, &list, &page, &f.call);
    objects->close(objects);
    return strcmp(o->name, "GetObject") == 0 ? piece.result : page.result;
}

static struct sl_result apply_one(const struct operation *o)
{
    struct sl_result result = {.status = SL_OK};
    if (strcmp(o->name, "Scan") == 0) {
        result = scan_one(o);
    } else if (strcmp(o->name, "GetObject") == 0 || strcmp(o->name, "ListObjectsV2") == 0) {
        result = read_one(o);
    } else if (sl_target_kind(sl_span_str(o->url)) == SL_PORT_TABLE) {
        result = apply_table(o);
    } else if (sl_target_kind(sl_span_str(o->url)) == SL_PORT_OBJECTS) {
        struct sl_object_port *objects = fault_objects(&f, o->url);
        struct sl_object object = {.key = SL_LIT("tenant/" VALUE "/part"),
                                   .body = SL_LIT("{\"v\":\"" VALUE "\"}")};
        objects->apply(objects, &object, 1, &result, &f.call);
        objects->close(objects);
    } else {
        const struct sl_message_attribute attribute = {.name = SL_LIT("a"), .value = SL_LIT(VALUE)};
        struct sl_message message = {.body = SL_LIT("{\"v\":\"" VALUE "\"}"),
                                     .order = SL_LIT(VALUE),
                                     .subject = SL_LIT(VALUE),
                                     .attributes = &attribute,
                                     .n_attributes = 1};
        struct sl_queue_port *queue = fault_queue(&f, o->url);
        queue->apply(queue, &message, 1, &result, &f.call);
        queue->close(queue);
    }
    fault_note(&f, &result, 1);
    return result;
}

static void answer_lying(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    lie(arg, request, reply);
}

static void set_keys(void)
{
    fault_set(&f, "AWS_ACCESS_KEY_ID", "AKIAQZXJKWYZ72JXQZHV");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", SECRET);
    fault_set(&f, "AWS_SESSION_TOKEN", TOKEN);
}

static void no_operation_repeats_what_it_sent(void **state)
{
    (void)state;
    static struct liar l;
    for (size_t o = 0; o < N_OPERATIONS; o++) {
        fault_open(&f, answer_lying, &l);
        set_keys();
        fault_set(&f, "AWS_MAX_ATTEMPTS", "2");
        for (size_t i = 0; i < (size_t)N_WHAT * N_HOW * N_WHERE; i++) {
            char of[200];
            l.what = (enum what)(i / N_HOW / N_WHERE);
            l.how = (enum how)(i / N_WHERE % N_HOW);
            l.where = (enum where)(i % N_WHERE);
            assert_int_equal(ftruncate(f.fd, 0), 0);
            lseek(f.fd, 0, SEEK_SET);
            struct sl_result result = apply_one(&operations[o]);
            snprintf(of, sizeof(of), "%s, what %d, how %d, where %d", operations[o].name, (int)l.what,
                     (int)l.how, (int)l.where);
            assert_int_not_equal(result.status, SL_OK);
            look_for_all(&l, of);
            sl_arena_reset(f.call.arena);
        }
        fault_close(&f);
    }
}

/* ---- sources of credentials ---- */

/* One place lies; the others answer honestly. */
struct source {
    struct liar liar;
    const char *lies_at; /* in the path, or in the body */
};

static void answer_source(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    static const char keys[] = "{\"AccessKeyId\":\"ASIAQZXJKWYZ72JXQZHV\",\"SecretAccessKey\":\"" SECRET
                               "\",\"Token\":\"" TOKEN "\",\"Expiration\":\"2026-11-21T04:00:00Z\"}";
    struct source *s = arg;
    if (strstr(request->path, s->lies_at) ||
        (request->body.len && memmem(request->body.ptr, request->body.len, s->lies_at, strlen(s->lies_at)))) {
        lie(&s->liar, request, reply);
        return;
    }
    *reply = (struct scripted_reply){.status = 200, .body = sl_span_str(keys)};
    if (strcmp(request->path, "/latest/api/token") == 0)
        reply->body = SL_LIT(CONTAINER);
    else if (strcmp(request->path, "/latest/meta-data/iam/security-credentials/") == 0)
        reply->body = SL_LIT("my-role");
}

static const struct setting {
    const char *name, *lies_at;
    const char *vars[8]; /* names and values; "@" stands for the server, "~" for the folder */
} settings[] = {
    {"container",
     "/keys",
     {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "@/keys", "AWS_CONTAINER_AUTHORIZATION_TOKEN", CONTAINER}},
    {"container, file",
     "/keys",
     {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "@/keys", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "~/token"}},
    {"instance, token",
     "/api/token",
     {"AWS_EC2_METADATA_DISABLED", "", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "@"}},
    {"instance, role",
     "/security-credentials",
     {"AWS_EC2_METADATA_DISABLED", "", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "@"}},
    {"instance, keys",
     "/my-role",
     {"AWS_EC2_METADATA_DISABLED", "", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "@"}},
    {"web identity",
     "AssumeRoleWithWebIdentity",
     {"AWS_WEB_IDENTITY_TOKEN_FILE", "~/web", "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r"}},
    {"a profile's role", "AssumeRole", {"AWS_CONFIG_FILE", "~/config", "AWS_PROFILE", "role"}},
};

static void use(const struct setting *setting)
{
    char value[1024];
    fault_set(&f, "AWS_ACCESS_KEY_ID", "");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", "");
    fault_set(&f, "AWS_SESSION_TOKEN", "");
    fault_set(&f, "HOME", folder);
    for (size_t i = 0; i + 1 < 8 && setting->vars[i]; i += 2) {
        const char *v = setting->vars[i + 1];
        snprintf(value, sizeof(value), "%s%s",
                 *v == '@'   ? scripted_server_url(f.server)
                 : *v == '~' ? folder
                             : v,
                 *v == '@' || *v == '~' ? v + 1 : "");
        fault_set(&f, setting->vars[i], value);
    }
}

static void no_source_repeats_what_it_was_asked_with(void **state)
{
    (void)state;
    static struct source s;
    char path[600];
    folder = test_folder();
    snprintf(path, sizeof(path), "%s/token", folder);
    test_write(path, CONTAINER "\n");
    snprintf(path, sizeof(path), "%s/web", folder);
    test_write(path, WEB "\n");
    snprintf(path, sizeof(path), "%s/config", folder);
    test_write(path,
               "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n"
               "[profile base]\naws_access_key_id = AKIAQZXJKWYZ72JXQZHV\naws_secret_access_key = " SECRET
               "\naws_session_token = " TOKEN "\n");
    for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++)
        for (size_t i = 0; i < (size_t)N_HOW * N_WHERE; i++) {
            s.lies_at = settings[k].lies_at;
            s.liar.what = OWN_TOKEN;
            s.liar.how = (enum how)(i / N_WHERE);
            s.liar.where = (enum where)(i % N_WHERE);
            fault_open(&f, answer_source, &s);
            use(&settings[k]);
            fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
            struct sl_result result = apply_one(&operations[1]);
            assert_int_not_equal(result.status, SL_OK);
            look_for_all(&s.liar, settings[k].name);
            fault_close(&f);
        }
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operation_repeats_what_it_sent),
        cmocka_unit_test(no_source_repeats_what_it_was_asked_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
