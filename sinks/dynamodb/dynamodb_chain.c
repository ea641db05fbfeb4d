/* Chains: operations on one key, whose order counts. They go out in passes, one write of each chain a pass.
 */
#include "sinks/dynamodb/dynamodb_private.h"

#include <stdlib.h>

/* One pass over the chains. */
struct pass {
    struct sl_dynamodb_apply *apply;
    struct sl_dynamodb_op **sorted; /* the ungrouped ones, by key, then by place */
    size_t n;
    struct sl_dynamodb_op **writes, **reads;
    size_t n_writes, n_reads;
    size_t n_peeks;  /* the last ones of `reads` */
    bool one_by_one; /* batches were refused: from now on each operation is sent alone */
};

/* By table and key, then by place. */
static int compare_ops(const void *x, const void *y)
{
    const struct sl_dynamodb_op *a = *(struct sl_dynamodb_op *const *)x,
                                *b = *(struct sl_dynamodb_op *const *)y;
    int order = sl_span_compare(a->key_text, b->key_text);
    return order ? order : (a > b) - (a < b);
}

static bool is_plain_write(const struct sl_dynamodb_op *op)
{
    return op->op->n_tests == 0 && (op->op->verb == SL_TABLE_PUT || op->op->verb == SL_TABLE_DELETE ||
                                    op->op->verb == SL_TABLE_UPDATE);
}

static bool replaces(const struct sl_dynamodb_op *op)
{
    return op->op->verb != SL_TABLE_UPDATE;
}

static void begin_write(struct pass *pass, struct sl_dynamodb_op *op)
{
    if (replaces(op) && !pass->one_by_one)
        pass->writes[pass->n_writes++] = op;
    else
        sl_dynamodb_single(pass->apply, op);
}

/* The operation of a chain that is sent now: the last that replaces the item, since it overwrites those
 * before it; else the first update. NULL when the chain has no plain write left. */
static struct sl_dynamodb_op *head_of(struct sl_dynamodb_op **chain, size_t n)
{
    struct sl_dynamodb_op *head = NULL;
    for (size_t i = 0; i < n; i++)
        if (!chain[i]->is_over && is_plain_write(chain[i]) && (!head || replaces(chain[i])))
            head = chain[i];
    return head;
}

/* The read of a chain that is sent: a consistent one answers for the others too. NULL when it has none. */
static struct sl_dynamodb_op *read_of(struct sl_dynamodb_op **chain, size_t n)
{
    struct sl_dynamodb_op *read = NULL;
    for (size_t i = 0; i < n; i++)
        if (sl_table_is_read(chain[i]->op) &&
            (!read || (read->op->verb == SL_TABLE_PEEK && chain[i]->op->verb == SL_TABLE_GET)))
            read = chain[i];
    return read;
}

/* The reads grow from the front, the peeks from the back: they go out in requests of their own. */
static void begin_read(struct pass *pass, struct sl_dynamodb_op *op)
{
    if (op->op->verb == SL_TABLE_PEEK)
        pass->reads[pass->n - ++pass->n_peeks] = op;
    else
        pass->reads[pass->n_reads++] = op;
}

static void begin_chain(struct pass *pass, struct sl_dynamodb_op **chain, size_t n)
{
    struct sl_dynamodb_op *head = head_of(chain, n), *read = read_of(chain, n);
    if (head)
        begin_write(pass, head);
    if (read && !read->is_over)
        begin_read(pass, read);
    for (size_t i = 0; i < n; i++) {
        struct sl_dynamodb_op *op = chain[i];
        if (op->is_over || is_plain_write(op) || sl_table_is_read(op->op))
            continue;
        if (op->op->verb == SL_TABLE_CHECK)
            sl_dynamodb_group(pass->apply, op, 1);
        else
            sl_dynamodb_single(pass->apply, op);
    }
}

static void follow_head(struct sl_dynamodb_op **chain, size_t n, const struct sl_dynamodb_op *head)
{
    enum sl_status status = head->result->status;
    for (size_t i = 0; i < n; i++) {
        struct sl_dynamodb_op *op = chain[i];
        if (op->is_over || !is_plain_write(op))
            continue;
        bool is_overwritten = op < head && replaces(head);
        if (status == SL_REJECT || (status == SL_OK && !is_overwritten))
            continue; /* its turn comes in a later pass */
        *op->result = *head->result;
        op->result->not_sent = status != SL_OK;
        op->is_over = true;
    }
}

/* All reads of a key get the answer of the one that was sent. */
static void share_read(struct sl_dynamodb_op **chain, size_t n)
{
    const struct sl_dynamodb_op *sent = read_of(chain, n);
    for (size_t i = 0; sent && sent->is_over && i < n; i++) {
        if (!sl_table_is_read(chain[i]->op))
            continue;
        *chain[i]->result = *sent->result;
        chain[i]->is_over = true;
    }
}

static size_t chain_length(const struct pass *pass, size_t begin)
{
    size_t end = begin + 1;
    while (end < pass->n && sl_span_eq(pass->sorted[end]->key_text, pass->sorted[begin]->key_text))
        end++;
    return end - begin;
}

/* Continues each chain from the result of its head. Returns whether an operation is left. */
static bool close_chains(struct pass *pass, struct sl_dynamodb_op **heads)
{
    bool any_left = false;
    for (size_t i = 0, n, chain = 0; i < pass->n; i += n, chain++) {
        n = chain_length(pass, i);
        if (heads[chain] && heads[chain]->is_over)
            follow_head(&pass->sorted[i], n, heads[chain]);
        share_read(&pass->sorted[i], n);
        for (size_t k = i; k < i + n; k++)
            any_left = any_left || !pass->sorted[k]->is_over;
    }
    return any_left;
}

static void run_jobs(struct sl_dynamodb_apply *apply)
{
    sl_job_run(&apply->table->client, apply->jobs, apply->n_jobs, apply->call);
    for (size_t i = 0; i < apply->n_jobs; i++) {
        struct sl_dynamodb_work *work = apply->jobs[i].context;
        work->finish(work, &apply->jobs[i]);
    }
    apply->n_jobs = 0;
}

static void begin_pass(struct pass *pass, struct sl_dynamodb_op **heads)
{
    pass->n_writes = pass->n_reads = pass->n_peeks = 0;
    for (size_t i = 0, n, chain = 0; i < pass->n; i += n, chain++) {
        n = chain_length(pass, i);
        heads[chain] = head_of(&pass->sorted[i], n);
        begin_chain(pass, &pass->sorted[i], n);
    }
    if (pass->n_writes == 1)
        sl_dynamodb_single(pass->apply, pass->writes[0]);
    else
        sl_dynamodb_batch_writes(pass->apply, pass->writes, pass->n_writes);
    size_t per_request = pass->one_by_one ? 1 : SL_DYNAMODB_READS;
    sl_dynamodb_batch_reads(pass->apply, pass->reads, pass->n_reads, per_request);
    sl_dynamodb_batch_reads(pass->apply, pass->reads + pass->n - pass->n_peeks, pass->n_peeks, per_request);
}

static bool is_any_open(struct sl_dynamodb_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ops[i]->is_over && !ops[i]->is_doubted)
            return true;
    return false;
}

/* A batch that was refused as a whole leaves its operations open. Each is then sent alone, so that the bad
 * one is found and the good ones are applied. */
static bool any_refused(const struct pass *pass)
{
    return is_any_open(pass->writes, pass->n_writes) || is_any_open(pass->reads, pass->n_reads) ||
           is_any_open(pass->reads + pass->n - pass->n_peeks, pass->n_peeks);
}

static size_t count_open(const struct pass *pass)
{
    size_t n = 0;
    for (size_t i = 0; i < pass->n; i++)
        n += !pass->sorted[i]->is_over;
    return n;
}

/* Nothing else is going on that could vouch for them. */
static void end_doubted(struct pass *pass)
{
    for (size_t i = 0; i < pass->n; i++)
        pass->sorted[i]->is_over = pass->sorted[i]->is_over || pass->sorted[i]->is_doubted;
}

/* What is refused without contrast is sent again as long as the passes get something done. */
static void run_pass(struct pass *pass, struct sl_dynamodb_op **heads)
{
    size_t open = count_open(pass);
    bool one_by_one = pass->one_by_one;
    begin_pass(pass, heads);
    run_jobs(pass->apply);
    pass->one_by_one = one_by_one || any_refused(pass);
    if (pass->one_by_one == one_by_one && count_open(pass) == open)
        end_doubted(pass);
}

void sl_dynamodb_run(struct sl_dynamodb_apply *apply)
{
    struct sl_arena *scratch = apply->scratch;
    size_t bytes = apply->n * sizeof(struct sl_dynamodb_op *);
    struct pass pass = {.apply = apply};
    pass.sorted = sl_arena_alloc(scratch, bytes);
    pass.writes = sl_arena_alloc(scratch, bytes);
    pass.reads = sl_arena_alloc(scratch, bytes);
    struct sl_dynamodb_op **heads = sl_arena_alloc(scratch, bytes);
    for (size_t i = 0; i < apply->n; i++)
        if (!apply->ops[i].is_over && !apply->ops[i].op->group)
            pass.sorted[pass.n++] = &apply->ops[i];
    qsort(pass.sorted, pass.n, sizeof(*pass.sorted), compare_ops);
    do {
        run_pass(&pass, heads);
    } while (close_chains(&pass, heads));
}
