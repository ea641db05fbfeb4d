/* Bulks: each entry of the answer is a document's own success or failure, and only what is left is sent
 * again. */
#include "sinks/opensearch/opensearch_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/result.h"

/* The guard is compared and the document replaced in one step, on the shard. The text never changes, so it is
 * compiled once. `f`: only where a lower guard stands. */
#define SCRIPT                                                                                               \
    "def h = ctx._source[params.n]; if (h == null ? !params.f : (h instanceof String && "                    \
    "h.compareTo(params.g) < 0)) { ctx._source = params.d } else { ctx.op = 'none' }"

struct batch {
    struct sl_opensearch_apply *apply;
    struct sl_opensearch_op **ops; /* not yet done */
    size_t n;
    struct sl_span *parts;
    size_t n_parts;
};

/* ---- asking ---- */

/* The action: "create", "index", "delete" or "update". */
static const char *action_of(const struct sl_opensearch_op *op)
{
    const struct sl_table_op *asked = op->op;
    if (op->is_unread)
        return op->is_scripted ? "update" : "create";
    if (asked->verb == SL_TABLE_DELETE)
        return "delete";
    return op->is_read && !op->is_there ? "create" : "index";
}

static struct sl_span action_line(const struct batch *b, const struct sl_opensearch_op *op)
{
    struct sl_arena *arena = b->apply->scratch;
    const char *action = action_of(op);
    const char *more = "";
    if (op->is_scripted)
        more = ",\"retry_on_conflict\":5";
    else if (op->is_read && op->is_there)
        more = sl_arena_printf(arena, ",\"if_seq_no\":%.*s,\"if_primary_term\":%.*s", SL_ARG(op->seq_no),
                               SL_ARG(op->term));
    return sl_span_str(
        sl_arena_printf(arena, "{\"%s\":{\"_id\":\"%.*s\"%s}}\n", action, SL_ARG(op->id), more));
}

/* The test that compares a guard with a text. */
static const struct sl_test *guard_test(const struct sl_table_op *op)
{
    return &op->tests[op->n_tests - 1];
}

static struct sl_span script_head(const struct batch *b, const struct sl_opensearch_op *op)
{
    const struct sl_test *guard = guard_test(op->op);
    struct sl_span text = sl_json_walk_member(guard->value, SL_LIT("S"));
    struct sl_buffer out;
    sl_buffer_init_in(&out, b->apply->scratch, SIZE_MAX);
    sl_buffer_add_str(
        &out, "{\"scripted_upsert\":true,\"upsert\":{},\"script\":{\"lang\":\"painless\",\"source\":\"" SCRIPT
              "\",\"params\":{\"n\":");
    sl_json_add_string(&out, guard->name);
    sl_buffer_printf(&out, ",\"f\":%s,\"g\":", op->op->n_tests == 1 ? "true" : "false");
    sl_buffer_add_span(&out, text);
    sl_buffer_add_str(&out, ",\"d\":");
    return sl_buffer_span(&out);
}

static void add_part(struct batch *b, struct sl_span part)
{
    b->parts[b->n_parts++] = part;
}

static void write_body(struct batch *b)
{
    b->n_parts = 0;
    for (size_t i = 0; i < b->n; i++) {
        struct sl_opensearch_op *op = b->ops[i];
        bool is_scripted = op->is_scripted;
        add_part(b, op->action);
        if (op->op->verb == SL_TABLE_DELETE)
            continue;
        if (is_scripted)
            add_part(b, op->script);
        add_part(b, op->document);
        add_part(b, is_scripted ? SL_LIT("}}}\n") : SL_LIT("\n"));
    }
}

/* ---- the answer ---- */

static struct sl_span text_of(struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    return value.len >= 2 && *value.ptr == '"' ? sl_span(value.ptr + 1, value.len - 2) : sl_span(NULL, 0);
}

/* What the shard says that it did. */
static bool is_done(const struct sl_opensearch_op *op, struct sl_span entry, int status)
{
    struct sl_span result = text_of(entry, "result");
    bool has_proof =
        sl_opensearch_digits(entry, "_seq_no").len && sl_opensearch_digits(entry, "_primary_term").len;
    if (!has_proof)
        return false;
    if (op->op->verb == SL_TABLE_DELETE)
        return (status == 200 && sl_span_is(result, "deleted")) ||
               (status == 404 && sl_span_is(result, "not_found"));
    return (status == 201 && sl_span_is(result, "created")) ||
           (status == 200 && sl_span_is(result, "updated"));
}

/* The document is to be read (again), and its condition judged here. */
static void read_anew(struct sl_opensearch_op *op)
{
    op->was_unread = op->was_unread || op->is_unread;
    op->is_unread = op->is_read = false;
    op->is_turned = true;
}

static void end(struct sl_opensearch_op *op, enum sl_status status,
                const struct sl_opensearch_refusal *refusal)
{
    op->is_over = true;
    *op->result = (struct sl_result){.status = status, .code = refusal->code, .text = refusal->text};
}

/* What is left failed for now. */
struct left {
    size_t n;
    bool is_busy;
    const char *code, *text;
};

static void take_error(struct sl_job *job, struct sl_opensearch_op *op, struct sl_span error, int status,
                       struct left *left)
{
    struct sl_opensearch_refusal refusal = sl_opensearch_refuse(job, error, status);
    switch (refusal.fault) {
    case SL_OPENSEARCH_CONFLICT:
        op->conflicts++;
        read_anew(op);
        return;
    case SL_OPENSEARCH_RECORDS:
        end(op, SL_REJECT, &refusal);
        return;
    case SL_OPENSEARCH_TARGETS:
        end(op, SL_FATAL, &refusal);
        return;
    case SL_OPENSEARCH_DOUBT:
        end(op, SL_FATAL, &refusal);
        op->doubt = refusal.code;
        op->doubt_text = refusal.text;
        return;
    default:
        left->n++;
        left->is_busy = left->is_busy || refusal.fault == SL_OPENSEARCH_BUSY;
        left->code = refusal.code;
        left->text = refusal.text;
    }
}

/* {"index":{"_id":..,"status":200,"result":"updated",..}}, or with an error. False: it is not understood. */
static bool take_entry(struct sl_job *job, struct sl_opensearch_op *op, struct sl_span item,
                       struct left *left)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, entry, more, status = {NULL, 0}, id;
    if (!walk.is_object || !sl_json_walk_next(&walk, &name, &entry) ||
        sl_json_walk_next(&walk, &more, &more) || !sl_span_is(name, action_of(op)))
        return false;
    id = text_of(entry, "_id");
    status = sl_opensearch_digits(entry, "status");
    if (!id.ptr || !sl_json_same(id, op->id) || status.len != 3)
        return false;
    int code = (status.ptr[0] - '0') * 100 + (status.ptr[1] - '0') * 10 + status.ptr[2] - '0';
    struct sl_span error = sl_json_walk_member(entry, SL_LIT("error"));
    if (error.ptr) {
        if (code < 400 || *error.ptr != '{')
            return false;
        take_error(job, op, error, code, left);
        return true;
    }
    if (op->is_scripted && code == 200 && sl_span_is(text_of(entry, "result"), "noop")) {
        read_anew(op); /* the guard stands: the item may be wanted */
        return true;
    }
    if (!is_done(op, entry, code))
        return false;
    op->is_over = true;
    op->was_created = op->is_unread && code == 201;
    *op->result = (struct sl_result){.status = SL_OK};
    struct sl_client *client = job->client;
    sl_contrast_succeeded(&client->contrast, job->operation, 0, sl_aws_now_ms(client->aws));
    return true;
}

/* Of an answer that turns out to be broken nothing counts. */
static void forget(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct sl_opensearch_op *op = b->ops[i];
        op->is_unread = op->was_sent_unread;
        op->is_read = op->was_sent_read;
        op->is_over = op->is_turned = op->was_created = false;
        op->doubt = NULL;
    }
}

static void compact(struct batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (!b->ops[i]->is_over && !b->ops[i]->is_turned)
            b->ops[n++] = b->ops[i];
    b->n = n;
}

/* Only what is left is sent again; a round that got something done does not count as an attempt. */
static enum sl_job_next again(struct sl_job *job, struct batch *b, const struct left *left)
{
    size_t before = b->n;
    compact(b);
    if (b->n == 0)
        return SL_JOB_DONE;
    job->progressed = b->n < before;
    job->code = left->code;
    job->text = left->text;
    job->is_many = b->n > 1;
    write_body(b);
    job->n_parts = b->n_parts;
    return left->is_busy ? SL_JOB_THROTTLED : SL_JOB_AGAIN;
}

static enum sl_job_next answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body), item;
    struct left left = {.n = 0};
    size_t n = 0;
    bool is_good = true;
    if (!sl_answer_is_json(body) || !sl_json_walk(body).is_object)
        return SL_JOB_BROKEN;
    struct sl_span items = sl_json_walk_member(body, SL_LIT("items"));
    if (!items.len || *items.ptr != '[')
        return SL_JOB_BROKEN;
    struct sl_json_walk walk = sl_json_walk(items);
    while (is_good && sl_json_walk_next(&walk, NULL, &item)) {
        struct sl_json_walk one = sl_json_walk(item);
        struct sl_span verb, entry;
        if (sl_json_walk_next(&one, &verb, &entry) && sl_opensearch_is_elsewhere(b->apply->index, entry)) {
            forget(b);
            return sl_opensearch_moved(b->apply->index, job);
        }
        is_good = n < b->n && take_entry(job, b->ops[n++], item, &left);
    }
    if (!is_good || n != b->n) {
        forget(b);
        return SL_JOB_BROKEN;
    }
    return again(job, b, &left);
}

static const struct sl_job_kind kind = {answered, sl_opensearch_refused};

/* A request that is refused whole may hold one document that is to blame: each is sent alone. */
static void finish(struct batch *b, const struct sl_job *job)
{
    bool one_by_one = job->status == SL_REJECT && b->n > 1;
    for (size_t i = 0; i < b->n; i++) {
        struct sl_opensearch_op *op = b->ops[i];
        if (op->is_over || op->is_turned)
            continue;
        sl_result_job(op->result, job);
        op->is_over = !one_by_one;
        op->is_alone = one_by_one;
    }
}

/* ---- batches ---- */

static size_t bytes_of(const struct sl_opensearch_op *op)
{
    return op->action.len + op->script.len + op->document.len + 4;
}

static size_t count_batch(struct sl_opensearch_op **ops, size_t n)
{
    size_t bytes = 0, i = 0;
    for (; i < n && i < SL_OPENSEARCH_BULK_DOCS; i++) {
        bytes += bytes_of(ops[i]);
        if (i && (bytes > SL_OPENSEARCH_BULK_BYTES || ops[i]->is_alone || ops[0]->is_alone))
            break;
    }
    return i;
}

static struct sl_job begin(struct batch *b)
{
    struct sl_job job = sl_opensearch_job(b->apply->index, &kind, "Bulk", "/_bulk");
    b->parts = sl_arena_alloc(b->apply->scratch, 4 * b->n * sizeof(*b->parts));
    write_body(b);
    job.context = b;
    job.parts = b->parts;
    job.n_parts = b->n_parts;
    job.is_many = b->n > 1;
    job.is_no_proof = true;
    if (sl_opensearch_is_alias(b->apply->index))
        job.query = "require_alias=true"; /* else a write through one that is gone would make an index */
    job.answer_bytes = SL_OPENSEARCH_ANSWER_BYTES + b->n * SL_OPENSEARCH_ENTRY_BYTES;
    return job;
}

static void prepare(const struct batch *b, struct sl_opensearch_op *op)
{
    op->is_turned = false;
    op->was_sent_unread = op->is_unread;
    op->was_sent_read = op->is_read;
    op->is_scripted = op->is_unread && b->apply->index->is_scripted;
    op->script = op->is_scripted ? script_head(b, op) : sl_span(NULL, 0);
    op->action = action_line(b, op);
}

void sl_opensearch_write(struct sl_opensearch_apply *apply, struct sl_opensearch_op **ops, size_t n)
{
    struct batch *batches = sl_arena_zalloc(apply->scratch, (n + 1) * sizeof(*batches));
    struct sl_job *jobs = sl_arena_zalloc(apply->scratch, (n + 1) * sizeof(*jobs));
    size_t n_jobs = 0;
    for (size_t i = 0; i < n; i++)
        prepare(&(struct batch){.apply = apply}, ops[i]);
    for (size_t i = 0; i < n; n_jobs++) {
        struct batch *b = &batches[n_jobs];
        *b = (struct batch){.apply = apply, .ops = ops + i, .n = count_batch(ops + i, n - i)};
        i += b->n;
        jobs[n_jobs] = begin(b);
    }
    sl_job_run(&apply->index->client, jobs, n_jobs, apply->call);
    for (size_t i = 0; i < n_jobs; i++)
        finish(&batches[i], &jobs[i]);
}

/* {"S":"..."} without escapes. */
static bool is_plain_text(struct sl_span value)
{
    struct sl_json_walk walk = sl_json_walk(value);
    struct sl_span tag, content;
    return walk.is_object && sl_json_walk_next(&walk, &tag, &content) && sl_span_is(tag, "S") &&
           *content.ptr == '"' && !memchr(content.ptr, '\\', content.len);
}

bool sl_opensearch_is_guarded(const struct sl_table_op *op)
{
    if (op->verb != SL_TABLE_PUT || op->n_tests < 1 || op->n_tests > 2)
        return false;
    const struct sl_test *guard = guard_test(op);
    bool is_first = op->n_tests == 1 || (op->any_test && op->tests[0].verb == SL_ABSENT &&
                                         sl_span_eq(op->tests[0].name, guard->name));
    return is_first && guard->verb == SL_LT && is_plain_text(guard->value);
}
