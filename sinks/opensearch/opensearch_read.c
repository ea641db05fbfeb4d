/* Multi gets: documents by their ids, as they are now (not as the last refresh shows them). */
#include "sinks/opensearch/opensearch_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/result.h"

struct batch {
    struct sl_opensearch_apply *apply;
    struct sl_opensearch_op **ops;
    size_t n;
    bool is_whole;
    struct sl_span body;
};

/* ---- asking ---- */

/* A filter of source fields would take these for patterns and paths. */
static bool is_plain_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (strchr(".*,\\\"", name.ptr[i]) || (unsigned char)name.ptr[i] < 0x20)
            return false;
    return name.len > 0;
}

static bool are_plain_names(const struct sl_table_op *op)
{
    for (size_t i = 0; i < op->n_tests; i++)
        if (!is_plain_name(op->tests[i].name))
            return false;
    return true;
}

static void add_fields(struct sl_buffer *body, const struct sl_table_op *op)
{
    sl_buffer_add_str(body, ",\"_source\":[\"" SL_OPENSEARCH_TYPES "\"");
    for (size_t i = 0; i < op->n_tests; i++) {
        if (i && sl_span_eq(op->tests[i].name, op->tests[i - 1].name))
            continue;
        sl_buffer_add_char(body, ',');
        sl_json_add_string(body, op->tests[i].name);
    }
    sl_buffer_add_char(body, ']');
}

static void write_body(struct batch *b)
{
    struct sl_buffer body;
    sl_buffer_init_in(&body, b->apply->scratch, SIZE_MAX);
    sl_buffer_add_str(&body, "{\"docs\":[");
    for (size_t i = 0; i < b->n; i++) {
        sl_buffer_add_str(&body, i ? ",{\"_id\":\"" : "{\"_id\":\"");
        sl_buffer_add_span(&body, b->ops[i]->id);
        sl_buffer_add_char(&body, '"');
        if (!b->is_whole)
            add_fields(&body, b->ops[i]->op);
        sl_buffer_add_char(&body, '}');
    }
    sl_buffer_add_str(&body, "]}");
    b->body = sl_buffer_span(&body);
}

/* ---- the answer ---- */

static bool is_about(struct sl_span doc, const struct sl_opensearch_op *op)
{
    struct sl_span id = sl_json_walk_member(doc, SL_LIT("_id"));
    return id.len >= 2 && *id.ptr == '"' && sl_json_same(sl_span(id.ptr + 1, id.len - 2), op->id);
}

static struct sl_span keep(struct batch *b, struct sl_span text)
{
    return sl_span(sl_arena_copy(b->apply->scratch, text), text.len);
}

static bool take_found(struct batch *b, struct sl_opensearch_op *op, struct sl_span doc)
{
    struct sl_span seq_no = sl_opensearch_digits(doc, "_seq_no"),
                   term = sl_opensearch_digits(doc, "_primary_term"),
                   source = sl_json_walk_member(doc, SL_LIT("_source"));
    if (!seq_no.len || !term.len || !source.len || *source.ptr != '{')
        return false;
    op->is_there = true;
    op->seq_no = keep(b, seq_no);
    op->term = keep(b, term);
    op->item = sl_opensearch_item(source, b->is_whole ? b->apply->call->arena : b->apply->scratch);
    return true;
}

/* False: the entry is not understood. */
static bool take_doc(struct batch *b, struct sl_opensearch_op *op, struct sl_span doc)
{
    struct sl_span found = sl_json_walk_member(doc, SL_LIT("found"));
    op->is_there = false;
    op->item = sl_span(NULL, 0);
    if (!is_about(doc, op))
        return false;
    if (sl_span_is(found, "true")) {
        if (!take_found(b, op, doc))
            return false;
    } else if (!sl_span_is(found, "false")) {
        return false;
    }
    op->is_read = true;
    return true;
}

/* The first entry that is an error, absent when none is. */
static struct sl_span error_of(struct sl_span docs)
{
    struct sl_json_walk walk = sl_json_walk(docs);
    struct sl_span doc, error;
    while (sl_json_walk_next(&walk, NULL, &doc))
        if ((error = sl_json_walk_member(doc, SL_LIT("error"))).ptr)
            return error;
    return sl_span(NULL, 0);
}

/* An entry's error is about its shard or the index, never about the record. */
static enum sl_job_next failed(struct sl_job *job, struct sl_span error)
{
    struct sl_opensearch_refusal refusal = sl_opensearch_refuse(job, error, 0);
    job->code = refusal.code;
    job->text = refusal.text;
    return refusal.fault == SL_OPENSEARCH_TARGETS ? SL_JOB_FATAL
           : refusal.fault == SL_OPENSEARCH_BUSY  ? SL_JOB_THROTTLED
                                                  : SL_JOB_AGAIN;
}

static enum sl_job_next answered(struct sl_job *job)
{
    struct batch *b = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body), doc;
    if (!sl_answer_is_json(body) || !sl_json_walk(body).is_object)
        return SL_JOB_BROKEN;
    struct sl_span docs = sl_json_walk_member(body, SL_LIT("docs"));
    if (!docs.len || *docs.ptr != '[')
        return SL_JOB_BROKEN;
    struct sl_span error = error_of(docs);
    if (error.ptr)
        return failed(job, error);
    struct sl_json_walk walk = sl_json_walk(docs);
    size_t n = 0;
    while (sl_json_walk_next(&walk, NULL, &doc)) {
        if (sl_opensearch_is_elsewhere(b->apply->index, doc))
            return sl_opensearch_moved(b->apply->index, job);
        if (n == b->n || !take_doc(b, b->ops[n++], doc))
            return SL_JOB_BROKEN;
    }
    return n == b->n ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static const struct sl_job_kind kind = {answered, sl_opensearch_refused};

static void finish(struct batch *b, const struct sl_job *job)
{
    for (size_t i = 0; i < b->n && job->status != SL_OK; i++) {
        struct sl_opensearch_op *op = b->ops[i];
        sl_result_job(op->result, job);
        op->is_read = false;
        op->is_over = true;
    }
}

static struct sl_job begin(struct batch *b)
{
    struct sl_job job = sl_opensearch_job(b->apply->index, &kind, "MultiGet", "/_mget");
    write_body(b);
    job.query = "preference=_primary";
    job.context = b;
    job.parts = &b->body;
    job.n_parts = 1;
    job.of_no_record = true; /* an id is nobody's fault */
    job.answer_bytes = SL_OPENSEARCH_ANSWER_BYTES +
                       b->n * (b->is_whole ? SL_OPENSEARCH_ITEM_BYTES : SL_OPENSEARCH_ENTRY_BYTES);
    return job;
}

void sl_opensearch_read(struct sl_opensearch_apply *apply, struct sl_opensearch_op **ops, size_t n,
                        bool whole)
{
    size_t most = whole ? SL_OPENSEARCH_READS : SL_OPENSEARCH_GUARDS, n_jobs = (n + most - 1) / most;
    struct batch *batches = sl_arena_zalloc(apply->scratch, (n_jobs + 1) * sizeof(*batches));
    struct sl_job *jobs = sl_arena_zalloc(apply->scratch, (n_jobs + 1) * sizeof(*jobs));
    for (size_t i = 0; i < n_jobs; i++) {
        size_t left = n - i * most;
        batches[i] = (struct batch){
            .apply = apply, .ops = ops + i * most, .n = left < most ? left : most, .is_whole = whole};
        jobs[i] = begin(&batches[i]);
    }
    sl_job_run(&apply->index->client, jobs, n_jobs, apply->call);
    for (size_t i = 0; i < n_jobs; i++)
        finish(&batches[i], &jobs[i]);
}

bool sl_opensearch_reads_some(const struct sl_table_op *op)
{
    return op->verb != SL_TABLE_UPDATE && !sl_table_is_read(op) && op->n_tests <= 4 && are_plain_names(op);
}
