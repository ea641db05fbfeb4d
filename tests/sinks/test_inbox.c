/* Reading and emptying a queue, and removing objects, in front of a server that lies: nothing is taken for
 * done that the answer does not prove, and no message is given out that is not one. When the server turns
 * honest the same requests succeed. What a real service does is tests/cli/check_redrive.py's. */
#include "sinks/queues/inbox.h"

#include "base/json.h"
#include "tests/support/fault.h"
#include "tests/support/honest.h"
#include "tests/support/mutate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define N 2 /* entries of each request */

static struct fault f;

struct liar {
    const char *operation; /* lies about this one alone */
    bool is_honest;
    struct scripted_reply lie;
    struct sl_buffer truth;
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct liar *liar = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    if (strcmp(operation, liar->operation) != 0) {
        reply->is_honest = true;
        return;
    }
    honest_answer(request, reply, &liar->truth);
    if (!liar->is_honest)
        *reply = liar->lie;
}

/* ---- the operations ---- */

struct place {
    struct sl_inbox *inbox;
    struct sl_object_port *objects;
};

static const char *const receipts[N] = {"r-1", "r-2"};

static void remove_messages(struct place *p, struct sl_result *results)
{
    sl_inbox_remove(p->inbox, receipts, N, results, &f.call);
}

static void hide_messages(struct place *p, struct sl_result *results)
{
    static const int64_t seconds[N] = {0, 60};
    sl_inbox_hide(p->inbox, receipts, seconds, N, results, &f.call);
}

static void remove_objects(struct place *p, struct sl_result *results)
{
    static const struct sl_object_removal removals[N] = {{.key = {"a", 1}},
                                                         {.key = {"b", 1}, .etag = {"e1", 2}}};
    p->objects->remove(p->objects, removals, N, results, &f.call);
}

static void set_both(struct sl_result *results, enum sl_status status, const struct sl_error *error)
{
    static struct sl_error kept;
    kept = *error;
    for (int i = 0; i < N; i++)
        results[i] = (struct sl_result){.status = status,
                                        .code = status == SL_OK ? NULL : kept.code,
                                        .text = status == SL_OK ? NULL : kept.text};
}

/* What the honest server has, and nothing else. */
static void receive(struct place *p, struct sl_result *results)
{
    const struct sl_inbox_receive how = {.requests = 1, .wait_s = 0, .hidden_s = 30};
    struct sl_inbox_message *list;
    struct sl_error error = SL_NO_ERROR;
    size_t n;
    enum sl_status status = sl_inbox_receive(p->inbox, &how, &f.call, &list, &n, &error);
    set_both(results, status, &error);
    assert_true(status == SL_OK || n == 0);
    for (size_t i = 0; i < n; i++) {
        bool is_one = strcmp(list[i].id, "m-1") == 0;
        assert_true(is_one || strcmp(list[i].id, "m-2") == 0);
        assert_string_equal(list[i].receipt, is_one ? "r-1" : "r-2");
        assert_true(sl_span_is(list[i].body, is_one ? "one" : "two"));
        assert_int_equal(list[i].receives, is_one ? 1 : 3);
        assert_int_equal(list[i].sent_ms, is_one ? INT64_C(1795208640123) : INT64_C(1795208640124));
        assert_string_equal(list[i].group, "g");
    }
    results[1].not_sent = n == 0; /* told apart: nothing came */
}

static void describe(struct place *p, struct sl_result *results)
{
    struct sl_inbox_facts facts;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_inbox_describe(p->inbox, &f.call, &facts, &error);
    set_both(results, status, &error);
    if (status != SL_OK)
        return;
    /* That there is no policy is believed only when the answer has none. */
    assert_true(facts.max_receives == 5 || facts.max_receives == 0);
    assert_true((facts.max_receives == 5) == (facts.moves_to != NULL));
}

enum proof { BY_ID, BY_SHAPE, BY_STATUS };

static const struct operation {
    const char *name;
    void (*run)(struct place *p, struct sl_result *results);
    enum proof proof;
} operations[] = {
    {"DeleteMessageBatch", remove_messages, BY_ID},
    {"ChangeMessageVisibilityBatch", hide_messages, BY_ID},
    {"ReceiveMessage", receive, BY_SHAPE},
    {"GetQueueAttributes", describe, BY_SHAPE},
    {"GetQueueUrl", receive, BY_SHAPE},
    {"DeleteObject", remove_objects, BY_STATUS},
};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* ---- one lie ---- */

struct stage {
    const struct operation *operation;
    struct liar liar;
    struct place place;
    json_t *truth; /* NULL: the honest answer is no JSON */
    size_t lies;
};

static void open_place(struct stage *stage)
{
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_inbox_open(&f.sinks, SL_LIT("sqs://queue.fifo"), &stage->place.inbox, &error), SL_OK);
    stage->place.objects = fault_objects(&f, "s3://bucket");
}

static void close_place(struct stage *stage)
{
    sl_inbox_close(stage->place.inbox);
    stage->place.objects->close(stage->place.objects);
}

static void must_succeed(struct stage *stage)
{
    struct sl_result results[N];
    stage->liar.is_honest = true;
    stage->operation->run(&stage->place, results);
    for (int i = 0; i < N; i++)
        if (results[i].status != SL_OK)
            fail_msg("%s: an honest answer: status %d, %s: %s", stage->operation->name,
                     (int)results[i].status, results[i].code, results[i].text);
}

/* `proven[i]`: the answer does prove entry i. NULL: it proves nothing. */
static void try_lie(struct stage *stage, struct scripted_reply lie, const bool *proven)
{
    struct sl_result results[N];
    open_place(stage);
    stage->liar.is_honest = false;
    stage->liar.lie = lie;
    stage->lies++;
    stage->operation->run(&stage->place, results);
    fault_note(&f, results, N);
    for (int i = 0; i < N; i++)
        if ((results[i].status == SL_OK) != (proven && proven[i]))
            fail_msg("%s: entry %d has status %d, %s after HTTP %d %.400s", stage->operation->name, i,
                     (int)results[i].status, results[i].code ? results[i].code : "-", lie.status,
                     lie.body.len ? lie.body.ptr : "with an empty body");
    must_succeed(stage);
    close_place(stage);
    sl_arena_reset(f.call.arena);
}

static void tell_wrong_texts(struct stage *stage)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "[]",
                                        "5",
                                        "null",
                                        "{",
                                        "{}{}",
                                        "{\"a\":1,}",
                                        "\xff{}",
                                        "<html><body>Sign in to the guest network</body></html>",
                                        "{\"__type\":\"com.amazon.coral.service#InternalFailure\"}",
                                        "{\"message\":\"Rate exceeded\"}",
                                        "{\"Messages\":{}}",
                                        "{\"Messages\":[{}]}",
                                        "{\"Messages\":[[]]}",
                                        "{\"Messages\":5}",
                                        "{\"Successful\":{}}",
                                        "{\"Successful\":5,\"Failed\":[]}"};
    /* An object without a list of messages is an empty receive. */
    size_t n =
        sizeof(texts) / sizeof(texts[0]) - (strcmp(stage->operation->name, "ReceiveMessage") == 0 ? 2 : 0);
    for (size_t i = 0; i < n; i++)
        for (int status = 200; status <= 204; status += 2)
            if (status != 204 || (*texts[i] && stage->operation->proof != BY_STATUS))
                try_lie(stage, (struct scripted_reply){.status = status, .body = sl_span_str(texts[i])},
                        NULL);
}

static void tell_wrong_statuses(struct stage *stage)
{
    static const int statuses[] = {201, 202, 203, 206, 207, 301, 400, 403, 404, 409, 412, 429, 500, 503};
    char *text = stage->truth ? json_dumps(stage->truth, 0) : strdup("<html>");
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        try_lie(stage, (struct scripted_reply){.status = statuses[i], .body = sl_span_str(text)}, NULL);
    free(text);
}

static void tell_cut_texts(struct stage *stage)
{
    char *text = stage->truth ? json_dumps(stage->truth, 0) : NULL;
    for (size_t i = 0; text && i < strlen(text); i += 7)
        try_lie(stage, (struct scripted_reply){.status = 200, .body = {text, i}}, NULL);
    free(text);
}

/* ---- lies in the structure ---- */

static size_t count_id(const json_t *list, int id)
{
    char text[8];
    size_t n = 0, i;
    json_t *entry;
    snprintf(text, sizeof(text), "%d", id);
    json_array_foreach(list, i, entry)
    {
        const char *have = json_string_value(json_object_get(entry, "Id"));
        n += have && strcmp(have, text) == 0;
    }
    return n;
}

static bool is_list(const json_t *list)
{
    return !list || json_is_array(list) || json_is_null(list);
}

/* By a reading of its own. */
static void find_proven(const json_t *told, bool *proven)
{
    const json_t *done = json_object_get(told, "Successful"), *failed = json_object_get(told, "Failed");
    for (int i = 0; i < N; i++)
        proven[i] = is_list(done) && is_list(failed) && count_id(done, i) == 1 && count_id(failed, i) == 0;
}

static bool is_text(const json_t *object, const char *name)
{
    return json_string_length(json_object_get(object, name)) > 0;
}

static bool is_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    return json_is_integer(value) ||
           (text && *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 16);
}

/* A list of messages, each whole, none twice; or no list. The function under test compares their contents. */
static bool is_delivery(const json_t *told)
{
    const json_t *list = json_object_get(told, "Messages"), *m;
    size_t i, n_ids = 0;
    if (!json_is_object(told) || !is_list(list))
        return false;
    json_array_foreach(list, i, m)
    {
        const json_t *a = json_object_get(m, "Attributes");
        const char *md5 = json_string_value(json_object_get(m, "MD5OfBody"));
        const char *body = json_string_value(json_object_get(m, "Body"));
        bool is_one = body && strcmp(body, "one") == 0;
        if (!is_text(m, "MessageId") || !is_text(m, "ReceiptHandle") || !is_text(a, "MessageGroupId") ||
            !is_number(a, "ApproximateReceiveCount") || !is_number(a, "SentTimestamp") || !body || !md5 ||
            strcmp(md5, is_one ? "f97c5d29941bfb1b2fdab0874906ab82" : "b8a9f715dbb64fd5c56e7783c6820a61"))
            return false;
        n_ids += strcmp(json_string_value(json_object_get(m, "MessageId")), "m-1") == 0;
    }
    return n_ids <= 1 && json_array_size(list) <= 2;
}

/* Whether the change leaves an answer that is whole, with other texts: nobody can know that they are lies. */
static bool is_another_truth(const struct stage *stage, const json_t *told, const struct json_mutation *m)
{
    const json_t *attributes = json_object_get(told, "Attributes");
    const char *arn = json_string_value(json_object_get(attributes, "QueueArn"));
    if (stage->operation->proof == BY_ID)
        return false;
    if (strcmp(stage->operation->name, "ReceiveMessage") == 0)
        return is_delivery(told) ? m->change == JSON_REPLACED : false;
    if (strcmp(stage->operation->name, "GetQueueAttributes") == 0)
        return arn && strncmp(arn, "arn:", 4) == 0 && !strstr(m->path, "RedrivePolicy");
    return false;
}

static void try_mutation(struct stage *stage, int node, struct json_mutation m)
{
    bool proven[N] = {false};
    m.node = node;
    json_t *told = json_mutate(stage->truth, &m);
    char *text = told ? json_dumps(told, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("");
    bool has_left_out_policy = m.change == JSON_LEFT_OUT && strstr(m.path, "RedrivePolicy");
    if (stage->operation->proof == BY_ID)
        find_proven(told, proven);
    else if (strcmp(stage->operation->name, "ReceiveMessage") == 0)
        proven[0] = proven[1] = is_delivery(told);
    else if (strcmp(stage->operation->name, "GetQueueAttributes") == 0)
        proven[0] = proven[1] = has_left_out_policy;
    if (!json_equal(told, stage->truth) && !is_another_truth(stage, told, &m))
        try_lie(stage, (struct scripted_reply){.status = 200, .body = sl_span_str(text)}, proven);
    free(text);
    json_decref(told);
}

static void tell_wrong_structures(struct stage *stage)
{
    json_t *const with[] = {json_integer(5),
                            json_string("x"),
                            json_array(),
                            json_object(),
                            json_null(),
                            json_true(),
                            json_string(""),
                            json_pack("[i]", 0),
                            json_pack("[[]]"),
                            json_pack("[{}]"),
                            json_string("{\"maxReceiveCount\":0}")};
    int nodes = stage->truth ? json_count(stage->truth) : 0;
    for (int node = 0; node < nodes; node++) {
        try_mutation(stage, node, (struct json_mutation){.change = JSON_LEFT_OUT});
        try_mutation(stage, node, (struct json_mutation){.change = JSON_DOUBLED});
        for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
            try_mutation(stage, node, (struct json_mutation){.change = JSON_REPLACED, .with = with[i]});
    }
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        json_decref(with[i]);
}

/* ---- the tests ---- */

static void open_stage(struct stage *stage, const struct operation *operation)
{
    *stage =
        (struct stage){.operation = operation, .liar = {.is_honest = true, .operation = operation->name}};
    sl_buffer_init(&stage->liar.truth, 1024 * 1024);
    fault_open(&f, answer, &stage->liar);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
}

static void no_lie_is_taken_for_done(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        struct stage stage;
        open_stage(&stage, &operations[i]);
        open_place(&stage);
        must_succeed(&stage);
        close_place(&stage);
        stage.truth =
            json_loadb(stage.liar.truth.ptr ? stage.liar.truth.ptr : "", stage.liar.truth.len, 0, NULL);
        tell_wrong_texts(&stage);
        tell_wrong_statuses(&stage);
        tell_cut_texts(&stage);
        tell_wrong_structures(&stage);
        print_message("%s: %zu lies\n", operations[i].name, stage.lies);
        json_decref(stage.truth);
        fault_close(&f);
        sl_buffer_clean_up(&stage.liar.truth);
    }
}

/* Part of a batch fails for good, part of it for now: each is told by itself, and only the latter is sent
 * again. */
static void entries_are_told_one_by_one(void **state)
{
    (void)state;
    struct stage stage;
    struct sl_result results[N];
    open_stage(&stage, &operations[0]);
    open_place(&stage);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "2");
    stage.liar.is_honest = false;
    stage.liar.lie = (struct scripted_reply){
        .status = 200,
        .body = json_span("{'Successful':[{'Id':'1'}],'Failed':[{'Id':'0','SenderFault':true,"
                          "'Code':'ReceiptHandleIsInvalid','Message':'canary'}]}")};
    remove_messages(&stage.place, results);
    assert_result(results[0], SL_REJECT, "ReceiptHandleIsInvalid");
    assert_null(strstr(results[0].text, "canary"));
    assert_int_equal(results[1].status, SL_OK);
    size_t before = scripted_server_requests(f.server);
    stage.liar.lie.body = json_span("{'Successful':[{'Id':'1'}],'Failed':[{'Id':'0','SenderFault':false,"
                                    "'Code':'InternalError'}]}");
    remove_messages(&stage.place, results);
    assert_int_equal(results[0].status, SL_RETRY);
    assert_int_equal(results[1].status, SL_OK);
    size_t last = scripted_server_requests(f.server) - 1;
    assert_true(last >= before + 1);
    assert_null(memmem(scripted_server_request(f.server, last)->body.ptr,
                       scripted_server_request(f.server, last)->body.len, "r-2", 3));
    close_place(&stage);
    fault_close(&f);
    sl_buffer_clean_up(&stage.liar.truth);
}

/* Ten receipts to a request, each receipt once; and what a request says of the receive. */
static void requests_are_as_the_service_wants_them(void **state)
{
    (void)state;
    struct stage stage;
    const char *many[25];
    struct sl_result results[25];
    int64_t seconds[25];
    open_stage(&stage, &operations[1]);
    open_place(&stage);
    for (int i = 0; i < 25; i++) {
        many[i] = sl_arena_printf(f.call.arena, "receipt-%02d.", i);
        seconds[i] = 100 + i;
    }
    sl_inbox_hide(stage.place.inbox, many, seconds, 25, results, &f.call);
    size_t n = scripted_server_requests(f.server), entries = 0;
    assert_int_equal(n, 4); /* the first is GetQueueUrl */
    for (size_t i = 1; i < n; i++) {
        struct sl_span body = scripted_server_request(f.server, i)->body;
        json_t *asked = json_loadb(body.ptr, body.len, 0, NULL), *list = json_object_get(asked, "Entries"),
               *entry;
        size_t k;
        assert_true(json_array_size(list) == 10 || json_array_size(list) == 5);
        json_array_foreach(list, k, entry)
        {
            int number = -1;
            assert_int_equal(
                sscanf(json_string_value(json_object_get(entry, "ReceiptHandle")), "receipt-%d.", &number),
                1);
            assert_int_equal(json_integer_value(json_object_get(entry, "VisibilityTimeout")), 100 + number);
            entries += (size_t)1 << number;
        }
        json_decref(asked);
    }
    assert_int_equal(entries, (1u << 25) - 1);
    for (int i = 0; i < 25; i++)
        assert_int_equal(results[i].status, SL_OK);
    receive(&stage.place, results);
    struct sl_span body = scripted_server_request(f.server, n)->body;
    json_t *asked = json_loadb(body.ptr, body.len, 0, NULL);
    assert_int_equal(json_string_length(json_object_get(asked, "ReceiveRequestAttemptId")), 36);
    assert_int_equal(json_integer_value(json_object_get(asked, "VisibilityTimeout")), 30);
    assert_int_equal(json_integer_value(json_object_get(asked, "MaxNumberOfMessages")), 10);
    assert_int_equal(json_array_size(json_object_get(asked, "MessageSystemAttributeNames")), 3);
    json_decref(asked);
    /* Two receives that bring the same messages bring each once. */
    const struct sl_inbox_receive how = {.requests = 2, .hidden_s = 30};
    struct sl_inbox_message *list;
    struct sl_error error = SL_NO_ERROR;
    size_t got;
    assert_int_equal(sl_inbox_receive(stage.place.inbox, &how, &f.call, &list, &got, &error), SL_OK);
    assert_int_equal(got, 2);
    assert_string_not_equal(list[0].id, list[1].id);
    close_place(&stage);
    fault_close(&f);
    sl_buffer_clean_up(&stage.liar.truth);
}

#define EACH(code)                                                                                           \
    "{'Failed':[{'Id':'0','Code':'" code "','SenderFault':true},{'Id':'1','Code':'" code                     \
    "','SenderFault':true}]}"

/* Code, and what follows from it. */
static void refusals_are_told(void **state)
{
    (void)state;
    static const struct {
        size_t operation;
        int status;
        const char *body;
        enum sl_status is;
        const char *code;
    } cases[] = {
        {2, 400, "{'__type':'com.amazonaws.sqs#OverLimit','message':'x'}", SL_REJECT, "OverLimit"},
        {2, 400, "{'__type':'com.amazonaws.sqs#QueueDoesNotExist','message':'x'}", SL_FATAL, NULL},
        {2, 403, "{'__type':'com.amazonaws.sqs#AccessDenied','message':'x'}", SL_FATAL, NULL},
        {3, 403, "{'__type':'com.amazonaws.sqs#AccessDenied','message':'x'}", SL_FATAL, NULL},
        {0, 200, EACH("RequestThrottled"), SL_RETRY, "RequestThrottled"},
        {0, 200, EACH("InternalError"), SL_RETRY, "InternalError"},
        {0, 200, EACH("ReceiptHandleIsInvalid"), SL_REJECT, "ReceiptHandleIsInvalid"},
        {0, 200, "{'Failed':[{'Id':'0'},{'Id':'1'}]}", SL_RETRY, NULL},
        {0, 200, "{'Successful':[{'Id':'1'},{'Id':'0'},{'Id':'0'}]}", SL_RETRY, "BrokenAnswer"},
        {0, 200, "{'Successful':[{'Id':'1'},{'Id':'2'}]}", SL_RETRY, "BrokenAnswer"},
        {5, 403, "<Error><Code>AccessDenied</Code><Message>x</Message></Error>", SL_FATAL, "AccessDenied"},
        {5, 404, "<Error><Code>NoSuchKey</Code><Message>x</Message></Error>", SL_OK, NULL},
        {5, 404, "<Error><Code>NoSuchBucket</Code><Message>x</Message></Error>", SL_FATAL, "NoSuchBucket"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage stage;
        struct sl_result results[N];
        open_stage(&stage, &operations[cases[i].operation]);
        open_place(&stage);
        stage.liar.is_honest = false;
        stage.liar.lie = (struct scripted_reply){.status = cases[i].status,
                                                 .body = *cases[i].body == '<' ? sl_span_str(cases[i].body)
                                                                               : json_span(cases[i].body)};
        stage.operation->run(&stage.place, results);
        if (results[0].status != cases[i].is)
            fail_msg("%s: %s: %d", stage.operation->name, cases[i].body, (int)results[0].status);
        if (cases[i].code)
            assert_string_equal(results[0].code, cases[i].code);
        close_place(&stage);
        fault_close(&f);
        sl_buffer_clean_up(&stage.liar.truth);
    }
}

/* An object that was replaced after it was read stays. */
static void a_replaced_object_stays(void **state)
{
    (void)state;
    struct stage stage;
    struct sl_result results[N];
    open_stage(&stage, &operations[5]);
    open_place(&stage);
    stage.liar.is_honest = false;
    stage.liar.lie = (struct scripted_reply){
        .status = 412, .body = SL_LIT("<Error><Code>PreconditionFailed</Code><Message>x</Message></Error>")};
    remove_objects(&stage.place, results);
    assert_true(results[0].status != SL_OK); /* nothing was asked of that one: S3 cannot say so */
    assert_result(results[1], SL_REJECT, "PreconditionFailed");
    for (size_t i = 0; i < scripted_server_requests(f.server); i++) {
        const struct scripted_request *request = scripted_server_request(f.server, i);
        struct sl_span etag = scripted_header(request, "if-match");
        assert_string_equal(request->method, "DELETE");
        if (strcmp(request->path, "/bucket/b") == 0)
            assert_true(sl_span_is(etag, "\"e1\""));
        else
            assert_null(etag.ptr);
    }
    close_place(&stage);
    fault_close(&f);
    sl_buffer_clean_up(&stage.liar.truth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lie_is_taken_for_done),
        cmocka_unit_test(entries_are_told_one_by_one),
        cmocka_unit_test(requests_are_as_the_service_wants_them),
        cmocka_unit_test(refusals_are_told),
        cmocka_unit_test(a_replaced_object_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
