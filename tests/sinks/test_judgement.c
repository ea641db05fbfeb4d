/* Whose fault a refusal is: every operation of every sink, every kind of refusal, in every surrounding. What
 * is expected follows from the rule (docs/SINKS.md, "What an error means"), not from a list. */
#include "tests/support/fault.h"

#include "aws/contrast.h"
#include "tests/support/honest.h"

#include <stdio.h>

#define UNKNOWN "BrandNewRefusalException"
#define MOST    (SL_CONTRAST_REFUSALS + 3) /* operations of one apply */

static struct fault f;

/* ---- operations ---- */

enum table_case {
    NO_TABLE,
    PUT_IF,
    DELETE_IF,
    UPDATE,
    PUT,
    GET,
    PEEK,
    TRANSACTION,
    READ,
    LIST,
    SCAN,
    DESCRIBE
};

/* Of a refusal: the last is a reason of a transaction that was cancelled. */
enum shape { JSON, XML, REASONS };

static const struct operation {
    const char *name, *url;
    enum table_case table;
    enum shape shape;
    const char *records, *environments; /* codes that are known; NULL: the request itself has none */
} operations[] = {
    {"PutObject", "s3://bucket/p", NO_TABLE, XML, "EntityTooLarge", "NoSuchBucket"},
    {"PutItem", "dynamodb://tbl", PUT_IF, JSON, "ItemCollectionSizeLimitExceededException",
     "ResourceNotFoundException"},
    {"DeleteItem", "dynamodb://tbl", DELETE_IF, JSON, "ItemCollectionSizeLimitExceededException",
     "AccessDeniedException"},
    {"UpdateItem", "dynamodb://tbl", UPDATE, JSON, "ItemCollectionSizeLimitExceededException",
     "KMSDisabledException"},
    {"BatchWriteItem", "dynamodb://tbl", PUT, JSON, "ItemCollectionSizeLimitExceededException",
     "ResourceNotFoundException"},
    {"BatchGetItem", "dynamodb://tbl", GET, JSON, NULL, "ResourceNotFoundException"},
    {"BatchGetItem", "dynamodb://tbl", PEEK, JSON, NULL, "ResourceNotFoundException"},
    {"TransactWriteItems", "dynamodb://tbl", TRANSACTION, JSON, NULL, "IdempotentParameterMismatchException"},
    {"TransactWriteItems", "dynamodb://tbl", TRANSACTION, REASONS, "ItemCollectionSizeLimitExceeded",
     "AccessDenied"},
    {"SendMessageBatch", "sqs://123456789012/queue", NO_TABLE, JSON, "InvalidMessageContents",
     "QueueDeletedRecently"},
    {"PublishBatch", "sns:arn:aws:sns:us-east-1:123456789012:topic", NO_TABLE, XML, "InvalidMessageContents",
     "KMSOptInRequired"},
    {"PutEvents", "events://default", NO_TABLE, JSON, NULL, "OperationDisabledException"},
    {"PutRecords", "kinesis://stream", NO_TABLE, JSON, NULL, "KMSNotFoundException"},
    {"PutRecordBatch", "firehose://stream", NO_TABLE, JSON, NULL, "InvalidKMSResourceException"},
};

#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

struct target {
    const struct operation *operation;
    struct sl_object_port *objects;
    struct sl_table_port *table;
    struct sl_queue_port *queue;
};

static struct target open_target(const struct operation *operation, const char *reject)
{
    struct target t = {.operation = operation};
    const char *url =
        sl_arena_printf(f.call.arena, "%s%s%s", operation->url, reject[0] ? "?reject=" : "", reject);
    switch (sl_target_kind(sl_span_str(url))) {
    case SL_PORT_OBJECTS:
        t.objects = fault_objects(&f, url);
        break;
    case SL_PORT_TABLE:
        t.table = fault_table(&f, url);
        break;
    default:
        t.queue = fault_queue(&f, url);
    }
    return t;
}

static void close_target(struct target *t)
{
    if (t->objects)
        t->objects->close(t->objects);
    if (t->table)
        t->table->close(t->table);
    if (t->queue)
        t->queue->close(t->queue);
}

/* A bad one carries the word in its key, or at the front of its body, where base64 keeps it. */
static struct sl_span text_of(size_t i, bool is_bad)
{
    return sl_span_str(sl_arena_printf(f.call.arena, "%s%zu", is_bad ? "poison" : "decent", i));
}

static struct sl_table_op table_op(enum table_case is, struct sl_span text, size_t i)
{
    static const struct sl_test is_new = {.verb = SL_ABSENT, .name = {"PK", 2}};
    static const struct sl_set set = {.verb = SL_SET, .name = {"v", 1}, .value = {"{\"N\":\"1\"}", 9}};
    struct sl_span key =
        sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"%.*s\"}}", SL_ARG(text)));
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = key, .item = key};
    if (is == DELETE_IF)
        op.verb = SL_TABLE_DELETE;
    if (is == PUT_IF || is == DELETE_IF) {
        op.tests = &is_new;
        op.n_tests = 1;
    }
    if (is == UPDATE) {
        op.verb = SL_TABLE_UPDATE;
        op.sets = &set;
        op.n_sets = 1;
    }
    if (is == GET || is == PEEK)
        op.verb = is == GET ? SL_TABLE_GET : SL_TABLE_PEEK;
    if (is == TRANSACTION)
        op.group = (uint32_t)i + 1;
    return op;
}

/* What no record asks for. */
static void look(struct target *t, struct sl_result *result)
{
    struct sl_object_piece piece;
    struct sl_object_page objects;
    struct sl_table_page items;
    struct sl_table_facts facts;
    switch (t->operation->table) {
    case READ:
        t->objects->read(t->objects, &(struct sl_object_read){.key = SL_LIT("a"), .max_bytes = 100}, 1,
                         &piece, &f.call);
        *result = piece.result;
        return;
    case LIST:
        t->objects->list(t->objects, &(struct sl_object_list){.prefix = SL_LIT("p")}, &objects, &f.call);
        *result = objects.result;
        return;
    case SCAN:
        t->table->scan(t->table, &(struct sl_table_scan){.of = 0}, 1, &items, &f.call);
        *result = items.result;
        return;
    default:
        t->table->describe(t->table, sl_span(NULL, 0), &facts, &f.call);
        *result = facts.result;
    }
}

static void apply(struct target *t, size_t n, const bool *is_bad, struct sl_result *results)
{
    for (size_t i = 0; t->operation->table >= READ && i < n; i++)
        look(t, &results[i]);
    if (t->operation->table >= READ)
        return;
    struct sl_object objects[MOST];
    struct sl_table_op ops[MOST];
    struct sl_message messages[MOST];
    for (size_t i = 0; i < n; i++) {
        struct sl_span text = text_of(i, is_bad[i]);
        objects[i] = (struct sl_object){.key = text, .body = text};
        ops[i] = table_op(t->operation->table, text, i);
        messages[i] = (struct sl_message){.body = text};
    }
    if (t->objects)
        t->objects->apply(t->objects, objects, n, results, &f.call);
    if (t->table)
        t->table->apply(t->table, ops, n, results, &f.call);
    if (t->queue)
        t->queue->apply(t->queue, messages, n, results, &f.call);
    fault_note(&f, results, n);
}

/* ---- answers ---- */

enum answer {
    NEW_CODE,
    RECORDS_CODE,
    ENVIRONMENTS_CODE,
    PASSING_CODE,
    PAGE_400,
    PAGE_403,
    NAMELESS,
    NEW_500,
    PAGE_502,
    N_ANSWERS
};

static const char *const answer_names[] = {"an unknown code", "a record's code", "the environment's code",
                                           "throttling",      "HTML, 400",       "HTML, 403",
                                           "JSON, no code",   "unknown, 500",    "HTML, 502"};

struct script {
    const struct operation *operation;
    const char *refuses; /* the operation that is refused for any content; NULL: what has the word */
    enum answer answer;
    char text[300];
    struct sl_buffer body;
};

static bool has(struct sl_span text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

static void refuse(struct script *s, struct scripted_reply *reply)
{
    static const int statuses[] = {400, 400, 400, 400, 400, 403, 400, 500, 502};
    const char *code = s->answer == RECORDS_CODE        ? s->operation->records
                       : s->answer == ENVIRONMENTS_CODE ? s->operation->environments
                       : s->answer == PASSING_CODE      ? "ThrottlingException"
                                                        : UNKNOWN;
    bool is_page = s->answer == PAGE_400 || s->answer == PAGE_403 || s->answer == PAGE_502;
    const char *form =
        is_page                          ? "<html><head><title>%s</title></head></html>"
        : s->answer == NAMELESS          ? "{\"message\":\"%s\"}"
        : s->operation->shape == XML     ? "<ErrorResponse><Error><Code>%s</Code></Error></ErrorResponse>"
        : s->operation->shape == REASONS ? "{\"__type\":\"x#TransactionCanceledException\",\"Message\":\"m\","
                                           "\"CancellationReasons\":[{\"Code\":\"%s\",\"Message\":\"no\"}]}"
                                         : "{\"__type\":\"com.amazonaws.x#%s\",\"message\":\"no\"}";
    int n = is_page || s->answer == NAMELESS ? snprintf(s->text, sizeof(s->text), "%s", form) : 0;
    if (n == 0) {
        const char *at = strstr(form, "%s");
        snprintf(s->text, sizeof(s->text), "%.*s%s%s", (int)(at - form), form, code, at + 2);
    }
    *reply = (struct scripted_reply){.status = statuses[s->answer], .body = sl_span_str(s->text)};
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct script *s = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    bool is_bad = s->refuses ? strcmp(operation, s->refuses) == 0
                             : has(request->body, "poison") || has(request->body, "cG9pc29u") ||
                                   strstr(request->path, "poison");
    if (is_bad)
        refuse(s, reply);
    else
        honest_answer(request, reply, &s->body);
}

/* ---- surroundings ---- */

enum surrounding { ALONE, BESIDE, ALL_BAD, LATELY, LONG_AGO, BREAKS, RELEASED, RELEASED_ALL, N_SURROUNDINGS };

static const char *const surrounding_names[] = {"alone",
                                                "beside successes",
                                                "all refused",
                                                "30 s after a success",
                                                "61 s after a success",
                                                "all refused after a success",
                                                "released",
                                                "all released"};

/* The rule. */
static enum sl_status expected(enum answer answer, enum surrounding where, bool of_no_record)
{
    bool is_released = !of_no_record && (where == RELEASED || where == RELEASED_ALL);
    bool has_contrast = !of_no_record && (where == BESIDE || where == LATELY);
    switch (answer) {
    case PASSING_CODE:
        return SL_RETRY;
    case NEW_500:
        return is_released ? SL_REJECT : SL_RETRY;
    case PAGE_502:
        return SL_RETRY;
    case RECORDS_CODE:
        return of_no_record ? SL_FATAL : SL_REJECT;
    case NEW_CODE:
        return is_released || has_contrast ? SL_REJECT : SL_FATAL;
    default:
        return SL_FATAL;
    }
}

static bool is_of_the_record(enum answer answer, enum surrounding where)
{
    return answer == RECORDS_CODE || (answer == NEW_CODE && where == BESIDE);
}

static void check(const struct script *s, enum surrounding where, const struct sl_result *results, size_t n,
                  const bool *is_bad)
{
    for (size_t i = 0; i < n; i++) {
        enum sl_status status = results[i].status;
        enum sl_status wanted = is_bad[i] ? expected(s->answer, where, s->refuses != NULL) : SL_OK;
        bool fits = status == wanted;
        if (!is_bad[i] && !is_of_the_record(s->answer, where))
            fits = status != SL_REJECT; /* nothing is given up beside the environment's failure */
        if (!fits)
            fail_msg("%s, %s, %s: operation %zu of %zu is %d instead of %d: %s", s->operation->name,
                     answer_names[s->answer], surrounding_names[where], i, n, (int)status, (int)wanted,
                     results[i].text ? results[i].text : "-");
        assert_true(status == SL_OK || (results[i].code && results[i].text));
    }
}

static void run_case(struct script *s, enum surrounding where)
{
    static const bool good[MOST] = {false};
    bool is_bad[MOST] = {false};
    struct sl_result results[MOST];
    size_t n = where == BESIDE || where == ALL_BAD || where == RELEASED_ALL ? 4 : where == BREAKS ? MOST : 1;
    for (size_t i = 0; i < n; i++)
        is_bad[i] = s->refuses || where != BESIDE || i == 2;
    fault_open(&f, answer, s);
    sl_buffer_init(&s->body, 64 * 1024);
    struct target t = open_target(s->operation, where == RELEASED || where == RELEASED_ALL ? UNKNOWN : "");
    if (!s->refuses && (where == LATELY || where == LONG_AGO || where == BREAKS)) {
        apply(&t, 1, good, results);
        assert_result(results[0], SL_OK, NULL);
        f.clock.ms += where == LATELY ? 30000 : where == LONG_AGO ? 61000 : 1000;
    }
    apply(&t, n, is_bad, results);
    check(s, where, results, n, is_bad);
    close_target(&t);
    fault_close(&f);
    sl_buffer_clean_up(&s->body);
}

static void each_refusal_is_judged_by_the_rule(void **state)
{
    (void)state;
    for (size_t o = 0; o < N_OPERATIONS; o++)
        for (enum answer a = 0; a < N_ANSWERS; a++)
            for (enum surrounding w = 0; w < N_SURROUNDINGS; w++)
                if (a != RECORDS_CODE || operations[o].records)
                    run_case(&(struct script){.operation = &operations[o], .answer = a}, w);
}

/* What is asked for the target itself is no record's fault, whatever the answer. */
static void what_no_record_asked_for_rejects_none(void **state)
{
    (void)state;
    static const struct operation asked[] = {
        {"GetQueueUrl", "sqs://queue", NO_TABLE, JSON, "InvalidParameterValue", "QueueDoesNotExist"},
        {"GetObject", "s3://bucket", READ, XML, "EntityTooLarge", "NoSuchBucket"},
        {"ListObjectsV2", "s3://bucket", LIST, XML, "KeyTooLongError", "AccessDenied"},
        {"Scan", "dynamodb://tbl", SCAN, JSON, "ConditionalCheckFailedException",
         "ResourceNotFoundException"},
        {"DescribeTable", "dynamodb://tbl", DESCRIBE, JSON, "ItemCollectionSizeLimitExceededException",
         "AccessDeniedException"},
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        for (enum answer a = 0; a < N_ANSWERS; a++)
            for (enum surrounding w = 0; w < N_SURROUNDINGS; w++)
                run_case(&(struct script){.operation = &asked[i], .answer = a, .refuses = asked[i].name}, w);
}

/* A lone success vouches for a few refusals, each of them in an apply of its own, and for no more. */
static void a_success_vouches_for_few(void **state)
{
    (void)state;
    for (size_t o = 0; o < N_OPERATIONS; o++) {
        static const bool good = false, bad = true;
        struct script s = {.operation = &operations[o], .answer = NEW_CODE};
        struct sl_result result;
        fault_open(&f, answer, &s);
        sl_buffer_init(&s.body, 64 * 1024);
        struct target t = open_target(s.operation, "");
        for (int round = 0; round < 2; round++) {
            apply(&t, 1, &good, &result);
            for (int i = 0; i <= SL_CONTRAST_REFUSALS; i++) {
                apply(&t, 1, &bad, &result);
                assert_result(result, i < SL_CONTRAST_REFUSALS ? SL_REJECT : SL_FATAL, UNKNOWN);
            }
        }
        assert_non_null(strstr(result.text, "reject=" UNKNOWN));
        close_target(&t);
        fault_close(&f);
        sl_buffer_clean_up(&s.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_is_judged_by_the_rule),
        cmocka_unit_test(what_no_record_asked_for_rejects_none),
        cmocka_unit_test(a_success_vouches_for_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
