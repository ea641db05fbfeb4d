#include "sinks/aws/dynamodb.h"

#include "base/json.h"
#include "base/json_write.h"

#define NAME_BYTES 2048

struct batch {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op **ops; /* not yet done, sorted by table */
    size_t n;
};

static bool is_answer(struct sl_span body)
{
    return sl_json_check(body, NULL) == SL_OK;
}

static void add_literal(struct sl_dynamodb_body *body, const char *text)
{
    sl_dynamodb_add(body, sl_span_str(text));
}

static void add_table(struct sl_dynamodb_body *body, struct sl_span table, const char *behind)
{
    struct sl_buffer text;
    sl_buffer_init(&text, NAME_BYTES);
    sl_json_add_string(&text, table);
    sl_buffer_add_str(&text, behind);
    sl_dynamodb_add_text(body, &text);
    sl_buffer_clean_up(&text);
}

static bool is_new_table(const struct batch *b, size_t i)
{
    return i == 0 || !sl_span_eq(b->ops[i - 1]->table, b->ops[i]->table);
}

static void write_body(struct batch *b, bool reads)
{
    struct sl_dynamodb_body *body = &b->work.body;
    body->n = 0;
    add_literal(body, "{\"RequestItems\":{");
    for (size_t i = 0; i < b->n; i++) {
        bool is_new = is_new_table(b, i);
        if (is_new && i)
            add_literal(body, reads ? "]}," : "],");
        if (is_new)
            add_table(body, b->ops[i]->table, reads ? ":{\"ConsistentRead\":true,\"Keys\":[" : ":[");
        else
            add_literal(body, ",");
        bool is_put = b->ops[i]->op->verb == SL_TABLE_PUT;
        if (!reads)
            add_literal(body, is_put ? "{\"PutRequest\":{\"Item\":" : "{\"DeleteRequest\":{\"Key\":");
        sl_dynamodb_add(body, is_put ? b->ops[i]->op->item : b->ops[i]->op->key);
        if (!reads)
            add_literal(body, "}}");
    }
    add_literal(body, reads ? "]}}}" : "]}}");
}

/* The operation of this table whose key the item has; NULL when none. */
static struct sl_dynamodb_op *find(struct batch *b, struct sl_span table, struct sl_span item)
{
    struct sl_span key = {NULL, 0};
    /* A table that was named by its ARN may be named otherwise in the answer; alone, it is the one. */
    bool is_alone = b->n && sl_span_eq(b->ops[0]->table, b->ops[b->n - 1]->table);
    for (size_t i = 0; i < b->n; i++) {
        struct sl_dynamodb_op *op = b->ops[i];
        if (!is_alone && !sl_json_text_is(table, op->table))
            continue;
        if (!key.ptr)
            key = sl_dynamodb_key_of(b->work.apply, op->table, item, op->op->key);
        if (sl_span_eq(key, op->key_text))
            return op;
    }
    return NULL;
}

/* Keeps the first of the ones that are not done: their order stays. */
static void compact(struct batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (!b->ops[i]->is_over)
            b->ops[n++] = b->ops[i];
    b->n = n;
}

static void finish(struct sl_dynamodb_work *work, struct sl_job *job)
{
    struct batch *b = (struct batch *)work;
    bool one_by_one = job->status == SL_REJECT && b->n > 1;
    for (size_t i = 0; i < b->n; i++) {
        sl_job_result(job, b->ops[i]->result);
        b->ops[i]->is_over = !one_by_one;
    }
}

/* What is left is sent again alone; a round that got something done does not count. */
static enum sl_job_next again(struct sl_job *job, struct batch *b, size_t before, const char *what,
                              bool reads)
{
    if (b->n == 0)
        return SL_JOB_DONE;
    job->progressed = b->n < before;
    job->code = "ProvisionedThroughputExceededException";
    job->text = sl_arena_printf(job->call->arena, "%s: %s: %zu of %zu came back as %s, again and again",
                                job->client->name, job->operation, b->n, before, what);
    write_body(b, reads);
    sl_dynamodb_set_body(job, &b->work);
    return SL_JOB_THROTTLED;
}

/* ---- writes ---- */

/* The item or key of {"PutRequest":{"Item":..}} or {"DeleteRequest":{"Key":..}}. */
static struct sl_span item_of(struct sl_span request)
{
    struct sl_span put = sl_answer_member(request, SL_LIT("PutRequest"));
    return put.ptr ? sl_answer_member(put, SL_LIT("Item"))
                   : sl_answer_member(sl_answer_member(request, SL_LIT("DeleteRequest")), SL_LIT("Key"));
}

/* Marks what is named as unprocessed; false when something there is none of ours. */
static bool mark_unprocessed(struct batch *b, struct sl_span tables)
{
    struct sl_answer_walk walk = sl_answer_walk(tables);
    struct sl_span table, list, request;
    while (sl_answer_step(&walk, &table, &list)) {
        struct sl_answer_walk inner = sl_answer_walk(list);
        while (sl_answer_step(&inner, NULL, &request)) {
            struct sl_dynamodb_op *op = find(b, table, item_of(request));
            if (!op)
                return false;
            op->is_over = false;
        }
    }
    return true;
}

static enum sl_job_next writes_answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    size_t before = b->n;
    if (!is_answer(body))
        return SL_JOB_BROKEN;
    struct sl_span left = sl_answer_member(body, SL_LIT("UnprocessedItems"));
    for (size_t i = 0; i < b->n; i++)
        b->ops[i]->is_over = true;
    if (!mark_unprocessed(b, left)) {
        for (size_t i = 0; i < b->n; i++)
            b->ops[i]->is_over = false;
        return SL_JOB_BROKEN;
    }
    compact(b);
    return again(job, b, before, "UnprocessedItems", false);
}

static const struct sl_job_kind writes_kind = {writes_answered, NULL};

static struct batch *new_batch(struct sl_dynamodb_apply *apply, size_t room)
{
    struct batch *b = sl_arena_zalloc(apply->scratch, sizeof(*b));
    b->work = (struct sl_dynamodb_work){.apply = apply, .finish = finish, .body = {.arena = apply->scratch}};
    b->ops = sl_arena_alloc(apply->scratch, room * sizeof(*b->ops));
    return b;
}

static void launch(struct batch *b, bool reads, const struct sl_job_kind *kind)
{
    struct sl_job *job =
        sl_dynamodb_job(b->work.apply, &b->work, kind, reads ? "BatchGetItem" : "BatchWriteItem");
    for (size_t i = 0; i < b->n; i++)
        *b->ops[i]->result = (struct sl_result){.status = SL_OK};
    write_body(b, reads);
    sl_dynamodb_set_body(job, &b->work);
}

/* Tables stand together, so that each is named once in a request. */
static void sort_by_table(struct sl_dynamodb_op **ops, size_t n)
{
    for (size_t begin = 0; begin < n;) {
        size_t end = begin + 1;
        for (size_t i = end; i < n; i++)
            if (sl_span_eq(ops[i]->table, ops[begin]->table)) {
                struct sl_dynamodb_op *swap = ops[end];
                ops[end++] = ops[i];
                ops[i] = swap;
            }
        begin = end;
    }
}

void sl_dynamodb_batch_writes(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n)
{
    struct batch *b = NULL;
    size_t bytes = 0;
    sort_by_table(ops, n);
    for (size_t i = 0; i < n; i++) {
        /* Its JSON is longer than the item, so the service's limit holds. */
        size_t more = ops[i]->op->verb == SL_TABLE_PUT ? ops[i]->op->item.len : ops[i]->op->key.len;
        if (b && (b->n == SL_DYNAMODB_WRITES || bytes + more > SL_DYNAMODB_WRITE_BYTES)) {
            launch(b, false, &writes_kind);
            b = NULL;
        }
        if (!b) {
            b = new_batch(apply, SL_DYNAMODB_WRITES);
            bytes = 0;
        }
        b->ops[b->n++] = ops[i];
        bytes += more;
    }
    if (b)
        launch(b, false, &writes_kind);
}

/* ---- reads ---- */

static bool take_items(struct batch *b, struct sl_span responses)
{
    struct sl_answer_walk walk = sl_answer_walk(responses);
    struct sl_span table, list, item;
    while (sl_answer_step(&walk, &table, &list)) {
        struct sl_answer_walk inner = sl_answer_walk(list);
        while (sl_answer_step(&inner, NULL, &item)) {
            struct sl_dynamodb_op *op = find(b, table, item);
            if (!op)
                return false;
            op->result->item = sl_span(sl_arena_copy(b->work.apply->call->arena, item), item.len);
        }
    }
    return true;
}

static bool mark_unread(struct batch *b, struct sl_span tables)
{
    struct sl_answer_walk walk = sl_answer_walk(tables);
    struct sl_span table, request, key;
    while (sl_answer_step(&walk, &table, &request)) {
        struct sl_answer_walk inner = sl_answer_walk(sl_answer_member(request, SL_LIT("Keys")));
        while (sl_answer_step(&inner, NULL, &key)) {
            struct sl_dynamodb_op *op = find(b, table, key);
            if (!op)
                return false;
            op->is_over = false;
        }
    }
    return true;
}

static enum sl_job_next reads_answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    size_t before = b->n;
    if (!is_answer(body) || !sl_answer_member(body, SL_LIT("Responses")).ptr)
        return SL_JOB_BROKEN;
    for (size_t i = 0; i < b->n; i++)
        b->ops[i]->is_over = true;
    if (!take_items(b, sl_answer_member(body, SL_LIT("Responses"))) ||
        !mark_unread(b, sl_answer_member(body, SL_LIT("UnprocessedKeys")))) {
        for (size_t i = 0; i < b->n; i++)
            b->ops[i]->is_over = false;
        return SL_JOB_BROKEN;
    }
    compact(b);
    return again(job, b, before, "UnprocessedKeys", true);
}

static const struct sl_job_kind reads_kind = {reads_answered, NULL};

void sl_dynamodb_batch_reads(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n,
                             size_t per_request)
{
    sort_by_table(ops, n);
    for (size_t i = 0; i < n; i += per_request) {
        struct batch *b = new_batch(apply, per_request);
        while (b->n < per_request && i + b->n < n) {
            b->ops[b->n] = ops[i + b->n];
            b->n++;
        }
        launch(b, true, &reads_kind);
    }
}
