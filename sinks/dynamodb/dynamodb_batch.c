/* BatchWriteItem and BatchGetItem: what came back as unprocessed is sent again alone. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_write.h"
#include "sinks/result.h"

#define NAME_BYTES 2048

struct batch {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op **ops; /* not yet done, those of a table together */
    size_t n;
    size_t found; /* where the next one is looked for first */
};

static void add_literal(struct sl_dynamodb_body *body, const char *text)
{
    sl_dynamodb_add(body, sl_span_str(text));
}

static void add_table(struct sl_dynamodb_body *body, struct sl_span table, const char *after)
{
    struct sl_buffer text;
    sl_buffer_init(&text, NAME_BYTES);
    sl_json_add_string(&text, table);
    sl_buffer_add_str(&text, after);
    sl_dynamodb_add_text(body, &text);
    sl_buffer_clean_up(&text);
}

static bool is_new_table(const struct batch *b, size_t i)
{
    return i == 0 || !sl_span_eq(b->ops[i - 1]->table, b->ops[i]->table);
}

static const char *after_table(const struct sl_dynamodb_op *op)
{
    return op->op->verb == SL_TABLE_GET ? ":{\"ConsistentRead\":true,\"Keys\":["
                                        : ":{\"ConsistentRead\":false,\"Keys\":[";
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
            add_table(body, b->ops[i]->table, !reads ? ":[" : after_table(b->ops[i]));
        else
            add_literal(body, ",");
        bool is_put = b->ops[i]->op->verb == SL_TABLE_PUT;
        if (!reads)
            add_literal(body, is_put ? "{\"PutRequest\":{\"Item\":" : "{\"DeleteRequest\":{\"Key\":");
        sl_dynamodb_add(body, is_put ? b->ops[i]->op->item : b->ops[i]->op->key);
        if (!reads)
            add_literal(body, "}}");
    }
    add_literal(body, reads ? "]}}" : "]}");
    sl_dynamodb_add(body, sl_dynamodb_asks_units(b->work.apply));
    add_literal(body, "}");
}

/* The operation on this table whose key the item has; NULL when the request had none. */
static struct sl_dynamodb_op *find(struct batch *b, struct sl_span table, struct sl_span item)
{
    struct sl_span key = {NULL, 0}, last = {NULL, 0};
    bool is_of_table = false;
    for (size_t k = 0; k < b->n; k++) {
        /* Answers come mostly in the order of the request; its operations are together by table. */
        size_t i = (b->found + k) % b->n;
        struct sl_dynamodb_op *op = b->ops[i];
        if (op->table.ptr != last.ptr || op->table.len != last.len)
            is_of_table = sl_dynamodb_is_table(table, op->table);
        last = op->table;
        if (!is_of_table)
            continue;
        if (!key.ptr)
            key = sl_dynamodb_key_of(b->work.apply, op->table, item, op->op->key);
        if (key.ptr && sl_span_eq(key, op->key_text)) {
            b->found = i + 1;
            return op;
        }
    }
    return NULL;
}

/* What a list in the answer says of an operation. False: it is not one of the request's, or was named
 * before. */
typedef bool (*entry_fn)(struct batch *b, struct sl_span table, struct sl_span entry);

/* Calls `take` for each entry of {"TABLE":[entry, ...], ...}, where the list is the member `inside` of the
 * table's value if that is not NULL. False when it has another shape, or `take` refuses one. */
static bool read_tables(struct batch *b, struct sl_span tables, const char *inside, entry_fn take)
{
    struct sl_json_walk walk = sl_json_walk(tables);
    struct sl_span table, list, entry;
    while (sl_json_walk_next(&walk, &table, &list)) {
        if (inside)
            list = sl_json_walk_member(list, sl_span_str(inside));
        if (!list.len || *list.ptr != '[')
            return false;
        struct sl_json_walk inner = sl_json_walk(list);
        while (sl_json_walk_next(&inner, NULL, &entry))
            if (!take(b, table, entry))
                return false;
    }
    return true;
}

/* Keeps those that are not done, in their order. */
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
    if (b->n == 1)
        sl_dynamodb_finish_op(b->ops[0], job);
    for (size_t i = 0; i < b->n && b->n > 1; i++) {
        sl_result_job(b->ops[i]->result, job);
        b->ops[i]->is_doubted = false;
        b->ops[i]->is_over = !one_by_one;
    }
}

/* Only what is left is sent again; a round that got something done does not count as an attempt. */
static enum sl_job_next again(struct sl_job *job, struct batch *b, size_t before, const char *what,
                              bool reads)
{
    if (b->n == 0)
        return SL_JOB_DONE;
    job->progressed = b->n < before;
    job->code = "ProvisionedThroughputExceededException";
    job->text = sl_arena_printf(job->call->arena, "%s: %s: %zu of %zu were returned as %s in every attempt",
                                job->client->name, job->operation, b->n, before, what);
    job->is_many = b->n > 1;
    write_body(b, reads);
    sl_dynamodb_set_body(job, &b->work);
    return SL_JOB_THROTTLED;
}

/* ---- writes ---- */

/* {"PutRequest":{"Item":..}} or {"DeleteRequest":{"Key":..}}, as it was sent: it is left to do. */
static bool leave_write(struct batch *b, struct sl_span table, struct sl_span request)
{
    struct sl_span put = sl_json_walk_member(request, SL_LIT("PutRequest"));
    struct sl_span key =
        put.ptr ? sl_json_walk_member(put, SL_LIT("Item"))
                : sl_json_walk_member(sl_json_walk_member(request, SL_LIT("DeleteRequest")), SL_LIT("Key"));
    struct sl_dynamodb_op *op = find(b, table, key);
    if (!op || !op->is_over || (op->op->verb == SL_TABLE_PUT) != (put.ptr != NULL))
        return false;
    op->is_over = false;
    return true;
}

/* (After a broken answer the next one, or finish, sets what was set here.) */
static enum sl_job_next writes_answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span answer, left = {NULL, 0};
    size_t before = b->n;
    if (sl_answer_object(job, &answer))
        left = sl_answer_container(answer, "UnprocessedItems", '{');
    for (size_t i = 0; i < b->n; i++)
        b->ops[i]->is_over = true;
    if (!left.ptr || !read_tables(b, left, NULL, leave_write))
        return SL_JOB_BROKEN;
    sl_dynamodb_count(job, false);
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

/* Reads return items, 16 MB of them at most; of writes, those that were left out are returned. */
static size_t answer_bytes(const struct batch *b, bool reads)
{
    const size_t all = (size_t)16 * 1024 * 1024 * SL_DYNAMODB_ESCAPED;
    size_t bytes = reads ? b->n * SL_DYNAMODB_ITEM_BYTES : 0;
    for (size_t i = 0; !reads && i < b->work.body.n; i++)
        bytes += b->work.body.parts[i].len * SL_DYNAMODB_ESCAPED;
    return SL_DYNAMODB_ANSWER_BYTES + (bytes < all ? bytes : all);
}

static void launch(struct batch *b, bool reads, const struct sl_job_kind *kind)
{
    struct sl_job *job =
        sl_dynamodb_job(b->work.apply, &b->work, kind, reads ? "BatchGetItem" : "BatchWriteItem");
    for (size_t i = 0; i < b->n; i++) {
        *b->ops[i]->result = (struct sl_result){.status = SL_OK};
        sl_dynamodb_add_place(job, b->ops[i]);
    }
    job->is_many = b->n > 1;
    write_body(b, reads);
    sl_dynamodb_set_body(job, &b->work);
    job->answer_bytes = answer_bytes(b, reads);
}

void sl_dynamodb_batch_writes(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n)
{
    struct batch *b = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        /* An item's JSON is longer than the item, so the request stays within the service's limit. */
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

/* An operation is over when it is proven: its item is there; or its table is named, and the key is not left
 * out: then there is no item. */
static bool take_item(struct batch *b, struct sl_span table, struct sl_span item)
{
    struct sl_dynamodb_op *op = find(b, table, item);
    if (!op || op->is_over || sl_item_read(item, NULL) != SL_OK)
        return false;
    op->is_over = true;
    op->result->item = sl_span(sl_arena_copy(b->work.apply->call->arena, item), item.len);
    return true;
}

static bool leave_read(struct batch *b, struct sl_span table, struct sl_span key)
{
    struct sl_dynamodb_op *op = find(b, table, key);
    if (!op || op->is_over || op->is_left)
        return false;
    return op->is_left = true;
}

/* False when an operation is neither found, nor left, nor of a table that the answer names. */
static bool take_absent(struct batch *b, struct sl_span responses)
{
    for (size_t i = 0; i < b->n; i++) {
        struct sl_dynamodb_op *op = b->ops[i];
        struct sl_json_walk walk = sl_json_walk(responses);
        struct sl_span table, ignored;
        bool is_named = op->is_over || op->is_left;
        while (!is_named && sl_json_walk_next(&walk, &table, &ignored))
            is_named = sl_dynamodb_is_table(table, op->table);
        if (!is_named)
            return false;
        op->is_over = !op->is_left;
    }
    return true;
}

static void forget_reads(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->ops[i]->is_over = b->ops[i]->is_left = false;
        b->ops[i]->result->item = sl_span(NULL, 0);
    }
}

static enum sl_job_next reads_answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span answer, items = {NULL, 0}, left = {NULL, 0};
    size_t before = b->n;
    forget_reads(b);
    if (sl_answer_object(job, &answer)) {
        items = sl_answer_container(answer, "Responses", '{');
        left = sl_answer_container(answer, "UnprocessedKeys", '{');
    }
    if (!left.ptr || !read_tables(b, items, NULL, take_item) || !read_tables(b, left, "Keys", leave_read) ||
        !take_absent(b, items))
        return SL_JOB_BROKEN;
    sl_dynamodb_count(job, true);
    compact(b);
    return again(job, b, before, "UnprocessedKeys", true);
}

static const struct sl_job_kind reads_kind = {reads_answered, NULL};

void sl_dynamodb_batch_reads(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op **ops, size_t n,
                             size_t per_request)
{
    for (size_t i = 0; i < n; i += per_request) {
        struct batch *b = new_batch(apply, per_request);
        while (b->n < per_request && i + b->n < n) {
            b->ops[b->n] = ops[i + b->n];
            b->n++;
        }
        launch(b, true, &reads_kind);
    }
}
