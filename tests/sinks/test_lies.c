/* Every operation of every sink in AWS in front of a server that lies: none of its answers is taken for a
 * success that it does not prove, none crashes, none is a record's fault, and when the server turns honest
 * the same operations succeed.
 *
 * The lies are made from the honest answers (tests/support/honest.c): every value replaced by every other
 * type, every member and entry left out or doubled, the text cut, other statuses, other services' answers. */
#include "sinks/rewrite.h"
#include "tests/support/fault.h"
#include "tests/support/honest.h"
#include "tests/support/lies.h"
#include "tests/support/mutate.h"
#include "tests/support/operations.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define N LIES_ENTRIES

struct liar {
    bool is_honest;
    const char *operation; /* lies about this one alone */
    struct scripted_reply lie;
    struct sl_buffer truth; /* the honest answer to the last request of that operation */
};

static struct fault f;

static void lie_or_not(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
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

struct port {
    struct sl_object_port *objects;
    struct sl_table_port *table;
    struct sl_queue_port *queue;
};

typedef void (*run_fn)(struct port *port, struct sl_result *results);

static void put_objects(struct port *port, struct sl_result *results)
{
    static const struct sl_object objects[N] = {{.key = {"a", 1}, .body = {"1", 1}},
                                                {.key = {"b", 1}, .body = {"2", 1}},
                                                {.key = {"c", 1}, .body = {"3", 1}}};
    port->objects->apply(port->objects, objects, N, results, &f.call);
}

static void send_messages(struct port *port, struct sl_result *results)
{
    static const struct sl_message messages[N] = {
        {.body = {"{\"n\":1}", 7}}, {.body = {"{\"n\":2}", 7}}, {.body = {"{\"n\":3}", 7}}};
    port->queue->apply(port->queue, messages, N, results, &f.call);
}

static const struct sl_test no_pk = {.verb = SL_ABSENT, .name = {"PK", 2}};

static void run_ops(struct port *port, struct sl_table_op op, bool is_group, struct sl_result *results)
{
    static const char *const keys[N] = {"{'PK':{'S':'0'}}", "{'PK':{'S':'1'}}", "{'PK':{'S':'2'}}"};
    struct sl_table_op ops[N];
    for (int i = 0; i < N; i++) {
        ops[i] = op;
        ops[i].key = ops[i].item = json_span(keys[i]);
        ops[i].group = is_group;
    }
    port->table->apply(port->table, ops, N, results, &f.call);
}

static void put_items(struct port *port, struct sl_result *results)
{
    const struct sl_table_op op = {.verb = SL_TABLE_PUT, .tests = &no_pk, .n_tests = 1, .want_item = true};
    run_ops(port, op, false, results);
}

static void delete_items(struct port *port, struct sl_result *results)
{
    const struct sl_table_op op = {.verb = SL_TABLE_DELETE, .tests = &no_pk, .n_tests = 1};
    run_ops(port, op, false, results);
}

static const struct sl_set add = {.verb = SL_ADD, .name = {"n", 1}, .value = {"{\"N\":\"1\"}", 9}};
static const struct sl_set top = {.verb = SL_SET_MAX, .name = {"n", 1}, .value = {"{\"N\":\"1\"}", 9}};

static void update_items(struct port *port, struct sl_result *results)
{
    run_ops(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .sets = &add, .n_sets = 1}, false, results);
}

static void update_running(struct port *port, struct sl_result *results)
{
    run_ops(port, (struct sl_table_op){.verb = SL_TABLE_UPDATE, .sets = &top, .n_sets = 1}, false, results);
}

static void write_group(struct port *port, struct sl_result *results)
{
    const struct sl_table_op op = {
        .verb = SL_TABLE_UPDATE, .sets = &add, .n_sets = 1, .tests = &no_pk, .n_tests = 1, .want_item = true};
    run_ops(port, op, true, results);
}

static void write_batch(struct port *port, struct sl_result *results)
{
    run_ops(port, (struct sl_table_op){.verb = SL_TABLE_PUT}, false, results);
}

static void read_batch(struct port *port, struct sl_result *results)
{
    run_ops(port, (struct sl_table_op){.verb = SL_TABLE_GET}, false, results);
}

static void peek_batch(struct port *port, struct sl_result *results)
{
    run_ops(port, (struct sl_table_op){.verb = SL_TABLE_PEEK}, false, results);
}

/* What the honest server has, and nothing else. */
static void read_objects(struct port *port, struct sl_result *results)
{
    static const struct sl_object_read read = {.key = {"a", 1}, .max_bytes = 100};
    const struct sl_object_read reads[N] = {read, read, read};
    struct sl_object_piece pieces[N];
    port->objects->read(port->objects, reads, N, pieces, &f.call);
    for (int i = 0; i < N; i++) {
        results[i] = pieces[i].result;
        bool is_it = sl_span_is(pieces[i].bytes, "0123456789") && sl_span_is(pieces[i].etag, "e1") &&
                     pieces[i].object_bytes == 10;
        assert_true(results[i].status == SL_OK ? is_it : !pieces[i].bytes.ptr);
    }
}

static void list_objects(struct port *port, struct sl_result *results)
{
    for (int i = 0; i < N; i++) {
        struct sl_object_page page;
        port->objects->list(port->objects, &(struct sl_object_list){.prefix = {"p/", 2}, .after = {"p/a", 3}},
                            &page, &f.call);
        results[i] = page.result;
        if (page.result.status != SL_OK) {
            assert_int_equal(page.n, 0);
            continue;
        }
        assert_int_equal(page.n, 2);
        assert_true(sl_span_is(page.entries[0].key, "p/a b+c") && sl_span_is(page.entries[1].key, "p/z"));
        assert_true(sl_span_is(page.entries[0].etag, "e1") && page.entries[1].bytes == 2);
        assert_true(sl_span_is(page.next, "p/z"));
    }
}

static void list_versions(struct port *port, struct sl_result *results)
{
    for (int i = 0; i < N; i++) {
        struct sl_version_page page;
        sl_rewriter_of(port->objects)
            ->list(port->objects, sl_span(NULL, 0), sl_span(NULL, 0), &page, &f.call);
        results[i] = page.result;
        if (page.result.status != SL_OK) {
            assert_int_equal(page.n, 0);
            continue;
        }
        assert_int_equal(page.n, 2);
        assert_true(sl_span_is(page.versions[0].key, "a b+c") && sl_span_is(page.versions[0].version, "v1"));
        assert_true(page.versions[0].bytes == 7 && !page.versions[0].is_latest &&
                    !page.versions[0].is_marker);
        assert_true(page.versions[1].is_latest && page.versions[1].is_marker);
        assert_true(sl_span_is(page.next_key, "a b+c") && sl_span_is(page.next_version, "v2"));
    }
}

static void scan_pages(struct port *port, struct sl_result *results)
{
    static const struct sl_table_scan scan = {.of = 4, .segment = 3};
    const struct sl_table_scan scans[N] = {scan, scan, scan};
    struct sl_table_page pages[N];
    port->table->scan(port->table, scans, N, pages, &f.call);
    for (int i = 0; i < N; i++) {
        results[i] = pages[i].result;
        if (results[i].status != SL_OK)
            assert_true(pages[i].n == 0 && !pages[i].next.ptr);
    }
}

static void scan_consistently(struct port *port, struct sl_result *results)
{
    static const struct sl_table_scan scan = {.of = 4, .segment = 3, .is_consistent = true};
    struct sl_table_page page;
    for (int i = 0; i < N; i++) {
        port->table->scan(port->table, &scan, 1, &page, &f.call);
        results[i] = page.result;
    }
}

static void describe_table(struct port *port, struct sl_result *results)
{
    for (int i = 0; i < N; i++) {
        struct sl_table_facts facts;
        port->table->describe(port->table, sl_span(NULL, 0), &facts, &f.call);
        results[i] = facts.result;
        assert_true(facts.result.status != SL_OK ? facts.n_keys == 0 : facts.n_keys > 0 || facts.items == 7);
    }
}

#define INDEX "opensearch://server/idx?tls=off"

/* How an honest answer proves what was done. */
enum proof {
    BY_OBJECT, /* any object that is not in the shape of an error */
    BY_SHAPE,  /* every value counts */
    BY_PLACE,  /* a list with an entry for each, in order */
    BY_ID,     /* lists whose entries name what was sent */
    BY_XML,    /* the same in XML */
    BY_HEAD,   /* headers alone */
    BY_RANGE,  /* headers, about the body */
    BY_LIST,   /* XML that is whole, in order, and says how much it is */
    BY_PAGE,   /* items that are items, as many as it says, and the key of a next page */
    BY_FACTS,  /* every value counts, but for numbers */
    BY_SEARCH, /* documents in their order, of shards that have all answered */
    BY_INDEX,  /* what is told of the index; it may be one that cannot be used */
    BY_STATUS, /* any complete 2xx; the body means nothing */
};

static const struct operation {
    const char *name, *url;
    run_fn run;
    enum proof proof;
} operations[] = {
    {"PutObject", "s3://bucket", put_objects, BY_HEAD},
    {"PutItem", "dynamodb://tbl", put_items, BY_OBJECT},
    {"DeleteItem", "dynamodb://tbl", delete_items, BY_OBJECT},
    {"UpdateItem", "dynamodb://tbl", update_items, BY_OBJECT},
    {"UpdateItem", "dynamodb://tbl", update_running, BY_OBJECT},
    {"TransactWriteItems", "dynamodb://tbl", write_group, BY_OBJECT},
    {"BatchWriteItem", "dynamodb://tbl", write_batch, BY_SHAPE},
    {"BatchGetItem", "dynamodb://tbl", read_batch, BY_SHAPE},
    {"BatchGetItem", "dynamodb://tbl", peek_batch, BY_SHAPE},
    {"GetObject", "s3://bucket", read_objects, BY_RANGE},
    {"ListObjectsV2", "s3://bucket", list_objects, BY_LIST},
    {"ListObjectVersions", "s3://bucket", list_versions, BY_LIST},
    {"Scan", "dynamodb://tbl", scan_pages, BY_PAGE},
    {"DescribeTable", "dynamodb://tbl", describe_table, BY_FACTS},
    {"GetAlias", INDEX, write_batch, BY_INDEX},
    {"GetMapping", INDEX, write_batch, BY_INDEX},
    {"MultiGet", INDEX, read_batch, BY_SHAPE},
    {"MultiGet", INDEX, put_items, BY_SHAPE},
    {"Bulk", INDEX, write_batch, BY_SHAPE},
    {"Search", INDEX, scan_pages, BY_SEARCH},
    {"Refresh", INDEX, scan_consistently, BY_FACTS},
    {"Stats", INDEX, describe_table, BY_FACTS},
    {"SendMessageBatch", "sqs://123456789012/queue", send_messages, BY_ID},
    {"SendMessageBatch", "sqs://123456789012/queue.fifo", send_messages, BY_ID},
    {"GetQueueUrl", "sqs://queue", send_messages, BY_SHAPE},
    {"PublishBatch", "sns:arn:aws:sns:us-east-1:123456789012:topic", send_messages, BY_XML},
    {"PublishBatch", "sns:arn:aws:sns:us-east-1:123456789012:topic.fifo", send_messages, BY_XML},
    {"PutEvents", "events://default", send_messages, BY_PLACE},
    {"PutRecords", "kinesis://stream", send_messages, BY_PLACE},
    {"PutRecordBatch", "firehose://stream", send_messages, BY_PLACE},
    {"POST", "http://server/hook", send_messages, BY_STATUS},
    {"POST", "http://server/hook#batch=3", send_messages, BY_STATUS},
};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* ---- one lie ---- */

struct stage {
    const struct operation *operation;
    struct liar liar;
    struct port port;
    struct sl_buffer truth; /* its honest answer */
    size_t lies;
};

static void open_stage(struct stage *stage, const struct operation *operation)
{
    *stage =
        (struct stage){.operation = operation, .liar = {.is_honest = true, .operation = operation->name}};
    sl_buffer_init(&stage->liar.truth, 1024 * 1024);
    sl_buffer_init(&stage->truth, 1024 * 1024);
    fault_open(&f, lie_or_not, &stage->liar);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
}

static void open_port(struct stage *stage)
{
    struct port *port = &stage->port;
    const char *url = stage->operation->url;
    switch (sl_target_kind(sl_span_str(url))) {
    case SL_PORT_OBJECTS:
        port->objects = fault_objects(&f, url);
        break;
    case SL_PORT_TABLE:
        port->table = fault_table(&f, url);
        break;
    default:
        port->queue = fault_queue(&f, url);
    }
}

static void close_port(struct stage *stage)
{
    if (stage->port.objects)
        stage->port.objects->close(stage->port.objects);
    if (stage->port.table)
        stage->port.table->close(stage->port.table);
    if (stage->port.queue)
        stage->port.queue->close(stage->port.queue);
    stage->port = (struct port){0};
}

static void close_stage(struct stage *stage)
{
    fault_close(&f);
    sl_buffer_clean_up(&stage->liar.truth);
    sl_buffer_clean_up(&stage->truth);
}

static void must_all_succeed(struct stage *stage, const char *when)
{
    struct sl_result results[N];
    stage->liar.is_honest = true;
    stage->operation->run(&stage->port, results);
    for (int i = 0; i < N; i++)
        if (results[i].status != SL_OK)
            fail_msg("%s, %s: entry %d: status %d, %s: %s", stage->operation->name, when, i,
                     (int)results[i].status, results[i].code, results[i].text);
}

/* To a webhook every 2xx is the truth, when it is short enough to be read. */
static bool is_true_by_status(const struct stage *stage, const struct scripted_reply *lie)
{
    return stage->operation->proof == BY_STATUS && lie->status / 100 == 2 && lie->body.len <= 1024 * 1024;
}

/* `proven[i]`: the answer does prove entry i. NULL: it proves nothing. */
static void try_lie(struct stage *stage, struct scripted_reply lie, const bool *proven)
{
    struct sl_result results[N];
    open_port(stage);
    static const bool all[N] = {true, true, true};
    proven = is_true_by_status(stage, &lie) ? all : proven;
    stage->liar.is_honest = false;
    stage->liar.lie = lie;
    stage->lies++;
    stage->operation->run(&stage->port, results);
    fault_note(&f, results, N);
    for (int i = 0; i < N; i++) {
        bool good = proven && proven[i] ? results[i].status == SL_OK
                                        : (results[i].status == SL_RETRY || results[i].status == SL_FATAL) &&
                                              results[i].code && results[i].text;
        if (!good)
            fail_msg("%s (%s): entry %d has status %d, %s (%s) after HTTP %d %.300s", stage->operation->name,
                     stage->operation->url, i, (int)results[i].status,
                     results[i].code ? results[i].code : "-", results[i].text ? results[i].text : "-",
                     lie.status, lie.body.len ? lie.body.ptr : "with an empty body");
        if (lie.status < 400 && results[i].status == SL_FATAL && stage->operation->proof != BY_INDEX)
            fail_msg("%s: entry %d is FATAL after HTTP %d", stage->operation->name, i, lie.status);
    }
    must_all_succeed(stage, "after the server turned honest");
    close_port(stage);
    sl_arena_reset(f.call.arena);
}

static void try_body(struct stage *stage, int status, const char *body)
{
    /* An ETag, so that of S3's answers the body alone is wrong. */
    try_lie(
        stage,
        (struct scripted_reply){.status = status, .headers = "etag: \"1\"\r\n", .body = sl_span_str(body)},
        NULL);
}

/* ---- lies in the text ---- */

static const char *const texts[] = {
    " ",
    "OK",
    "[]",
    "[{}]",
    "5",
    "null",
    "true",
    "\"x\"",
    "{",
    "{}{}",
    "{}x",
    "{\"a\":1,}",
    "\xff\xfe{}",
    "<html><body>Sign in to the guest network</body></html>",
    "<!DOCTYPE html><title>502</title>",
    "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>",
    "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidParameter</Code></Error></ErrorResponse>",
    "{\"__type\":\"com.amazon.coral.service#InternalFailure\"}",
    "{\"__type\":\"ThrottlingException\",\"message\":\"Rate exceeded\"}",
    "{\"message\":\"Internal server error\"}",
    "{\"Message\":\"User is not authorized\"}",
    "{\"code\":\"AccessDenied\"}",
    "{\"Code\":\"AccessDenied\",\"Message\":\"no\"}",
    "<PublishBatchResponse/>",
    "<PublishBatchResponse><PublishBatchResult/></PublishBatchResponse>",
    ("<PublishBatchResponse><PublishBatchResult><Successful/><Failed/></PublishBatchResult>"
     "</PublishBatchResponse>"),
};

static bool is_true(const struct stage *stage, const char *text)
{
    return sl_span_is(sl_buffer_span(&stage->truth), text);
}

static void tell_wrong_texts(struct stage *stage)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        try_body(stage, 200, texts[i]);
    try_lie(stage, (struct scripted_reply){.status = 200}, NULL);
    if (stage->operation->proof != BY_OBJECT)
        try_body(stage, 200, "{}");
}

/* Another 2xx, with all that the honest answer has. */
static void tell_wrong_statuses(struct stage *stage)
{
    static const int statuses[] = {201, 202, 203, 204, 206, 207, 226};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        try_lie(stage,
                (struct scripted_reply){.status = statuses[i],
                                        .headers = "etag: \"1\"\r\n",
                                        .body = statuses[i] == 204 ? sl_span(NULL, 0)
                                                                   : sl_buffer_span(&stage->truth)},
                NULL);
}

/* The text ends early, and the length says that it is whole. */
static void tell_cut_texts(struct stage *stage)
{
    size_t len = stage->truth.len, step = len < 64 ? 1 : 7;
    for (size_t n = 1; n < len; n += step)
        try_body(stage, 200, sl_arena_copy(f.call.arena, sl_span(stage->truth.ptr, n)));
}

static void tell_too_much(struct stage *stage)
{
    size_t len = 2 * 1024 * 1024;
    char *text = malloc(len + 1);
    for (int kind = 0; kind < 3; kind++) {
        memset(text, kind == 0 ? '[' : kind == 1 ? 'x' : ' ', len);
        text[len] = '\0';
        memcpy(text, kind == 0 ? "[" : kind == 1 ? "\"" : "<", 1);
        try_lie(stage, (struct scripted_reply){.status = 200, .body = sl_span(text, len)}, NULL);
    }
    free(text);
}

/* What the others answer. */
static void tell_others_answers(struct stage *stage, const char *const *truths)
{
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        bool is_ours = is_true(stage, truths[i]);
        if (!is_ours && *truths[i] && (stage->operation->proof != BY_OBJECT || *truths[i] != '{'))
            try_body(stage, 200, truths[i]);
    }
}

/* ---- lies in the structure ---- */

/* Members that prove nothing, and may be anything or missing. */
static bool is_idle(const struct json_mutation *m, enum proof proof)
{
    static const char *const idle[] = {"/ShardId", "/SequenceNumberX"};
    for (size_t i = 0; i < 2; i++)
        if (strstr(m->path, idle[i]))
            return true;
    if (m->change == JSON_REPLACED && json_is_integer(m->was) && json_is_integer(m->with) &&
        (strstr(m->path, "/_seq_no") || strstr(m->path, "/_primary_term")))
        return true; /* any will do */
    if (proof == BY_INDEX && strcmp(m->path, "/idx/aliases") == 0 && json_is_object(m->with))
        return true; /* what else leads to the index */
    if (strncmp(m->path, "/_shards/", 9) == 0)
        return false;
    if (proof == BY_FACTS)
        return (m->change == JSON_LEFT_OUT &&
                (strstr(m->path, "/LatestStreamArn") || strcmp(m->path, "/Table/KeySchema/1") == 0)) ||
               (m->change == JSON_REPLACED && json_is_integer(m->was) && json_is_integer(m->with)) ||
               (m->change == JSON_DOUBLED && strstr(m->path, "/AttributeDefinitions/"));
    if (proof != BY_PLACE)
        return false;
    /* An id is any text; a count that is missing contradicts nothing. */
    return (m->change == JSON_REPLACED && json_is_string(m->was) && json_is_string(m->with)) ||
           (m->change == JSON_LEFT_OUT && json_is_integer(m->was));
}

static void try_mutation(struct stage *stage, const json_t *truth, int node, struct json_mutation m)
{
    bool proven[N] = {false};
    m.node = node;
    json_t *told = json_mutate(truth, &m);
    char *text = told ? json_dumps(told, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("");
    json_t *same = json_equal(told, truth) ? told : NULL;
    if (stage->operation->proof == BY_ID)
        lies_find_sent(told, proven);
    if (stage->operation->proof == BY_PAGE)
        proven[0] = proven[1] = proven[2] = lies_is_page(told);
    if (stage->operation->proof == BY_SEARCH)
        proven[0] = proven[1] = proven[2] = lies_is_search(told);
    if (m.path[0] == '\0' && m.node >= 0)
        fail_msg("there is no node %d", node);
    if (!same && !is_idle(&m, stage->operation->proof))
        try_lie(stage, (struct scripted_reply){.status = 200, .body = sl_span_str(text)}, proven);
    free(text);
    json_decref(told);
}

static void tell_wrong_structures(struct stage *stage)
{
    json_t *truth = json_loadb(stage->truth.ptr, stage->truth.len, 0, NULL);
    if (!truth)
        return;
    json_t *const with[] = {json_integer(5),
                            json_string("x"),
                            json_array(),
                            json_object(),
                            json_null(),
                            json_true(),
                            json_string(""),
                            json_pack("[i]", 0),
                            json_pack("[[]]"),
                            json_pack("{s:{}}", "tbl"),
                            json_pack("{s:[{}]}", "tbl")};
    int nodes = json_count(truth);
    for (int node = 0; node < nodes; node++) {
        try_mutation(stage, truth, node, (struct json_mutation){.change = JSON_LEFT_OUT});
        try_mutation(stage, truth, node, (struct json_mutation){.change = JSON_DOUBLED});
        for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
            if (stage->operation->proof != BY_OBJECT || !json_is_object(with[i]))
                try_mutation(stage, truth, node,
                             (struct json_mutation){.change = JSON_REPLACED, .with = with[i]});
    }
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        json_decref(with[i]);
    json_decref(truth);
}

/* Nobody knows which of two members of one name counts. */
static void tell_twins(struct stage *stage)
{
    static const bool nothing[N] = {false};
    struct lies_twins twins = lies_twins_of(sl_buffer_span(&stage->truth));
    while (lies_twins_next(&twins))
        try_lie(stage, (struct scripted_reply){.status = 200, .body = sl_buffer_span(&twins.lie)}, nothing);
}

/* ---- lies of one operation ---- */

static void tell_specials(struct stage *stage)
{
    for (const struct lies_special *special = lies_specials; special->operation; special++) {
        if (strcmp(special->operation, stage->operation->name) != 0 ||
            (special->is_of_sums && stage->operation->run != update_items))
            continue;
        const char *body = *special->body == '<' ? special->body : json(special->body);
        try_lie(stage, (struct scripted_reply){.status = special->status, .body = sl_span_str(body)},
                special->proven);
    }
}

static void tell_wrong_ranges(struct stage *stage)
{
    if (stage->operation->proof != BY_RANGE)
        return;
    for (size_t i = 0; lies_ranges[i]; i++)
        try_lie(
            stage,
            (struct scripted_reply){.status = 206, .headers = lies_ranges[i], .body = SL_LIT("0123456789")},
            NULL);
    const char *right = "etag: \"e1\"\r\ncontent-range: bytes 0-9/10\r\n";
    try_lie(stage, (struct scripted_reply){.status = 206, .headers = right}, NULL);
    try_lie(stage, (struct scripted_reply){.status = 206, .headers = right, .body = SL_LIT("012345678")},
            NULL);
    try_lie(stage, (struct scripted_reply){.status = 206, .headers = right, .body = SL_LIT("0123456789a")},
            NULL);
    try_lie(stage, (struct scripted_reply){.status = 200, .headers = right, .body = SL_LIT("0123456789")},
            NULL);
}

static void tell_wrong_heads(struct stage *stage)
{
    static const char *const heads[] = {NULL, "etag: \r\n", "x-etag: \"1\"\r\n",
                                        "etag: \"1\"\r\nx-amz-checksum-crc32: AAAAAA==\r\n"};
    if (stage->operation->proof != BY_HEAD)
        return;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        try_lie(stage, (struct scripted_reply){.status = 200, .headers = heads[i]}, NULL);
}

/* ---- the tests ---- */

static const char *truths[N_OPERATIONS];

static void find_truth(struct stage *stage)
{
    open_port(stage);
    must_all_succeed(stage, "of an honest server");
    sl_buffer_add_span(&stage->truth, sl_buffer_span(&stage->liar.truth));
    close_port(stage);
}

static void no_lie_is_taken_for_a_success(void **state)
{
    (void)state;
    struct stage stage;
    size_t lies = 0;
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        open_stage(&stage, &operations[i]);
        find_truth(&stage);
        truths[i] = strndup(stage.truth.ptr ? stage.truth.ptr : "", stage.truth.len);
        close_stage(&stage);
    }
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        open_stage(&stage, &operations[i]);
        find_truth(&stage);
        tell_wrong_texts(&stage);
        tell_wrong_statuses(&stage);
        tell_cut_texts(&stage);
        tell_too_much(&stage);
        tell_others_answers(&stage, truths);
        tell_wrong_structures(&stage);
        tell_twins(&stage);
        tell_wrong_heads(&stage);
        tell_wrong_ranges(&stage);
        tell_specials(&stage);
        lies += stage.lies;
        print_message("%s %s: %zu lies\n", operations[i].name, operations[i].url, stage.lies);
        close_stage(&stage);
    }
    print_message("%zu lies\n", lies);
    for (size_t i = 0; i < N_OPERATIONS; i++)
        free((char *)(uintptr_t)truths[i]);
}

/* The schemes are in the refusal of an unknown one: "(s3:, file:)". */
static void every_scheme_is_in_the_table(void **state)
{
    (void)state;
    /* https is http's own row: the server here speaks no TLS. PostgreSQL does not speak HTTP:
     * check_postgres.py lies there. */
    static const char *const local[] = {"file", "sqlite", "jsonl", "stdout", "https", "postgres"};
    struct sl_object_port *objects;
    struct sl_table_port *table;
    struct sl_queue_port *queue;
    struct sl_error errors[3] = {SL_NO_ERROR, SL_NO_ERROR, SL_NO_ERROR};
    struct stage stage;
    open_stage(&stage, &operations[0]);
    assert_int_equal(sl_target_objects(&f.sinks, SL_LIT("none:x"), &objects, &errors[0]), SL_FATAL);
    assert_int_equal(sl_target_table(&f.sinks, SL_LIT("none:x"), &table, &errors[1]), SL_FATAL);
    assert_int_equal(sl_target_queue(&f.sinks, SL_LIT("none:x"), &queue, &errors[2]), SL_FATAL);
    for (int i = 0; i < 3; i++) {
        char *at = strrchr(errors[i].text, '('), *rest = NULL;
        assert_non_null(at);
        for (char *name = strtok_r(at, "(), ", &rest); name; name = strtok_r(NULL, "(), ", &rest)) {
            size_t n = strcspn(name, ":");
            bool found = false;
            for (size_t k = 0; k < sizeof(local) / sizeof(local[0]); k++)
                found = found || (strlen(local[k]) == n && strncmp(local[k], name, n) == 0);
            for (size_t k = 0; k < N_OPERATIONS; k++)
                found = found || (strncmp(operations[k].url, name, n) == 0 && operations[k].url[n] == ':');
            if (!found)
                fail_msg("the scheme %s is not in this test's table: add its operations", name);
        }
    }
    close_stage(&stage);
}

static void every_operation_is_in_the_table(void **state)
{
    (void)state;
    /* The last ones are told lies in test_inbox.c. */
    static const char *names[N_OPERATIONS + 5] = {[N_OPERATIONS] = "DeleteObject",
                                                  "DeleteMessageBatch",
                                                  "ChangeMessageVisibilityBatch",
                                                  "GetQueueAttributes"};
    for (size_t i = 0; i < N_OPERATIONS; i++)
        names[i] = operations[i].name;
    operations_are_known("sinks", names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lie_is_taken_for_a_success),
        cmocka_unit_test(every_scheme_is_in_the_table),
        cmocka_unit_test(every_operation_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
