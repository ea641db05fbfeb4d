#include "sinks/aws/dynamodb.h"

#include "base/json.h"
#include "base/json_write.h"
#include "sinks/aws/sinks.h"
#include "sinks/result.h"

#include <stdlib.h>

#define KEY_TEXT_BYTES (32 * 1024)

/* ---- what the requests share ---- */

struct sl_job *sl_dynamodb_job(struct sl_dynamodb_apply *apply, struct sl_dynamodb_work *work,
                               const struct sl_job_kind *kind, const char *operation)
{
    struct sl_job *job = &apply->jobs[apply->n_jobs++];
    *job = (struct sl_job){.kind = kind, .context = work, .operation = operation};
    return job;
}

void sl_dynamodb_set_body(struct sl_job *job, struct sl_dynamodb_work *work)
{
    job->parts = work->body.parts;
    job->n_parts = work->body.n;
}

void sl_dynamodb_condition_failed(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op,
                                  struct sl_span old)
{
    struct sl_arena *arena = apply->call->arena;
    *op->result = (struct sl_result){
        .status = SL_REJECT,
        .condition_failed = true,
        .code = op->op->group ? "ConditionalCheckFailed" : "ConditionalCheckFailedException",
        .text = "the condition does not hold",
    };
    if (op->op->want_item && old.ptr)
        op->result->item = sl_span(sl_arena_copy(arena, old), old.len);
    op->is_over = true;
}

enum sl_status sl_dynamodb_key_text(struct sl_arena *arena, struct sl_span table, struct sl_span key,
                                    struct sl_span *out, struct sl_error *error)
{
    struct sl_buffer text;
    json_t *parsed = sl_item_parse(key, error);
    if (!parsed)
        return SL_REJECT;
    sl_buffer_init(&text, KEY_TEXT_BYTES);
    sl_buffer_add_span(&text, table);
    enum sl_status status = sl_item_key_text(parsed, &text, error);
    *out = sl_span(sl_arena_copy(arena, sl_buffer_span(&text)), text.len);
    sl_buffer_clean_up(&text);
    json_decref(parsed);
    return status;
}

struct sl_span sl_dynamodb_key_of(struct sl_dynamodb_apply *apply, struct sl_span table, struct sl_span item,
                                  struct sl_span like)
{
    struct sl_answer_walk walk = sl_answer_walk(item), wanted;
    struct sl_span name, value, key_name, ignored, out = {NULL, 0};
    struct sl_buffer key;
    sl_buffer_init(&key, KEY_TEXT_BYTES);
    while (sl_answer_step(&walk, &name, &value))
        for (wanted = sl_answer_walk(like); sl_answer_step(&wanted, &key_name, &ignored);)
            if (sl_json_same(name, key_name)) {
                sl_buffer_printf(&key, "%s\"%.*s\":", key.len ? "," : "{", SL_ARG(name));
                sl_buffer_add_span(&key, value);
            }
    sl_buffer_add_char(&key, '}');
    if (sl_dynamodb_key_text(apply->scratch, table, sl_buffer_span(&key), &out, NULL) != SL_OK)
        out = sl_span(NULL, 0);
    sl_buffer_clean_up(&key);
    return out;
}

/* ---- what is refused before anything is sent ---- */

/* "Naming rules": 3 to 255 letters, digits, '_', '-', '.'; or a table's ARN (another account's). */
static bool is_table(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-' || c == '.'))
            return false;
    }
    return name.len >= 3 && name.len <= 255;
}

static enum sl_status check_item(const struct sl_table_op *op, struct sl_error *error)
{
    /* An item's JSON is longer than the item: only what is long needs to be measured. */
    if (op->verb != SL_TABLE_PUT || op->item.len <= SL_ITEM_BYTES)
        return SL_OK;
    json_t *item = sl_item_parse(op->item, error);
    size_t bytes = item ? sl_item_bytes(item) : 0;
    json_decref(item);
    if (!item)
        return SL_REJECT;
    if (bytes > SL_ITEM_BYTES)
        return sl_fail(error, SL_REJECT, "ValidationException", "the item has %zu bytes; an item may have %d",
                       bytes, SL_ITEM_BYTES);
    return SL_OK;
}

static enum sl_status check_op(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op,
                               struct sl_error *error)
{
    bool has_running = false;
    if (!is_table(op->table) && op->op->table.ptr)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "\"%.*s\" is no table name", SL_ARG(op->table));
    for (size_t i = 0; i < op->op->n_sets; i++)
        has_running = has_running || op->op->sets[i].verb == SL_SET_MAX || op->op->sets[i].verb == SL_SET_MIN;
    if (sl_dynamodb_key_text(apply->scratch, op->table, op->op->key, &op->key_text, error) != SL_OK)
        return SL_REJECT;
    if (op->op->group && has_running)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "a running value (greater, lesser) cannot be part of a transaction");
    if (op->op->group && op->op->verb == SL_TABLE_GET)
        return sl_fail(error, SL_REJECT, "ValidationException", "a read cannot be part of a transaction");
    return check_item(op->op, error);
}

static void refuse(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op, const struct sl_error *error)
{
    struct sl_arena *arena = apply->call->arena;
    sl_result_fail(op->result, arena, error->status, sl_arena_copy(arena, sl_span_str(error->code)), "%s: %s",
                   apply->table->client.name, error->text);
    op->result->not_sent = true;
    op->is_over = true;
}

static void check_all(struct sl_dynamodb_apply *apply)
{
    for (size_t i = 0; i < apply->n; i++) {
        struct sl_dynamodb_op *op = &apply->ops[i];
        struct sl_error error = {.status = SL_OK};
        if (check_op(apply, op, &error) != SL_OK)
            refuse(apply, op, &error);
    }
}

/* ---- groups ---- */

static const char *group_problem(const struct sl_dynamodb_op *ops, size_t n)
{
    if (n > SL_DYNAMODB_ACTIONS)
        return "a transaction has 100 operations at most";
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(ops[i].key_text, ops[k].key_text))
                return "a transaction holds one operation for each item";
    return NULL;
}

static void begin_group(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *ops, size_t n)
{
    bool refused = false;
    for (size_t i = 0; i < n; i++)
        refused = refused || ops[i].is_over;
    const char *problem = refused ? NULL : group_problem(ops, n);
    for (size_t i = 0; i < n && (refused || problem); i++) {
        struct sl_error error = {.status = SL_OK};
        if (ops[i].is_over)
            continue;
        sl_fail(&error, SL_REJECT, problem ? "ValidationException" : "TransactionCanceled", "%s",
                problem ? problem : "another operation of the transaction was refused");
        refuse(apply, &ops[i], &error);
    }
    if (!refused && !problem)
        sl_dynamodb_group(apply, ops, n);
}

static void begin_groups(struct sl_dynamodb_apply *apply)
{
    for (size_t i = 0, end; i < apply->n; i = end) {
        end = i + 1;
        if (!apply->ops[i].op->group)
            continue;
        while (end < apply->n && apply->ops[end].op->group == apply->ops[i].op->group)
            end++;
        begin_group(apply, &apply->ops[i], end - i);
    }
}

/* ---- chains: operations on one key whose order counts ---- */

/* One pass over the chains: what goes out now, and what each waits for. */
struct pass {
    struct sl_dynamodb_apply *apply;
    struct sl_dynamodb_op **sorted; /* the ungrouped ones, by key, then by place */
    size_t n;
    struct sl_dynamodb_op **writes, **reads;
    size_t n_writes, n_reads;
    bool one_by_one; /* batches were refused: from now on each alone */
};

static int compare_ops(const void *x, const void *y)
{
    const struct sl_dynamodb_op *a = *(struct sl_dynamodb_op *const *)x,
                                *b = *(struct sl_dynamodb_op *const *)y;
    size_t n = a->key_text.len < b->key_text.len ? a->key_text.len : b->key_text.len;
    int order = n ? memcmp(a->key_text.ptr, b->key_text.ptr, n) : 0;
    if (order == 0 && a->key_text.len != b->key_text.len)
        order = a->key_text.len < b->key_text.len ? -1 : 1;
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

/* The operation of a chain that goes out now: the last that replaces the item, since it makes those before it
 * moot; else the first update. NULL when the chain has no plain write left. */
static struct sl_dynamodb_op *head_of(struct sl_dynamodb_op **chain, size_t n)
{
    struct sl_dynamodb_op *head = NULL;
    for (size_t i = 0; i < n; i++)
        if (!chain[i]->is_over && is_plain_write(chain[i]) && (!head || replaces(chain[i])))
            head = chain[i];
    return head;
}

static void begin_chain(struct pass *pass, struct sl_dynamodb_op **chain, size_t n)
{
    struct sl_dynamodb_op *head = head_of(chain, n);
    bool is_read = false;
    if (head)
        begin_write(pass, head);
    for (size_t i = 0; i < n; i++) {
        struct sl_dynamodb_op *op = chain[i];
        if (op->is_over || is_plain_write(op))
            continue;
        if (op->op->verb == SL_TABLE_CHECK)
            sl_dynamodb_group(pass->apply, op, 1);
        else if (op->op->verb != SL_TABLE_GET)
            sl_dynamodb_single(pass->apply, op);
        else if (!is_read)
            pass->reads[pass->n_reads++] = op;
        is_read = is_read || op->op->verb == SL_TABLE_GET;
    }
}

static void follow_head(struct sl_dynamodb_op **chain, size_t n, const struct sl_dynamodb_op *head)
{
    enum sl_status status = head->result->status;
    for (size_t i = 0; i < n; i++) {
        struct sl_dynamodb_op *op = chain[i];
        if (op->is_over || !is_plain_write(op))
            continue;
        bool is_moot = op < head && replaces(head);
        if (status == SL_REJECT || (status == SL_OK && !is_moot))
            continue; /* its turn is to come */
        *op->result = *head->result;
        op->result->not_sent = status != SL_OK;
        op->is_over = true;
    }
}

/* Every read of a key has the answer of the one that was sent. */
static void share_read(struct sl_dynamodb_op **chain, size_t n)
{
    const struct sl_dynamodb_op *sent = NULL;
    for (size_t i = 0; i < n; i++) {
        if (chain[i]->op->verb != SL_TABLE_GET)
            continue;
        if (!sent)
            sent = chain[i];
        if (!sent->is_over)
            return;
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

/* The heads that this pass sent, by chain: what they came to is what their chains go on from. */
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
    pass->n_writes = pass->n_reads = 0;
    for (size_t i = 0, n, chain = 0; i < pass->n; i += n, chain++) {
        n = chain_length(pass, i);
        heads[chain] = head_of(&pass->sorted[i], n);
        begin_chain(pass, &pass->sorted[i], n);
    }
    if (pass->n_writes == 1)
        sl_dynamodb_single(pass->apply, pass->writes[0]);
    else
        sl_dynamodb_batch_writes(pass->apply, pass->writes, pass->n_writes);
    sl_dynamodb_batch_reads(pass->apply, pass->reads, pass->n_reads,
                            pass->one_by_one ? 1 : SL_DYNAMODB_READS);
}

/* A batch that was refused as a whole leaves its operations open: each is sent alone, so that the bad one is
 * found and the good ones are applied. */
static bool any_refused(const struct pass *pass)
{
    for (size_t i = 0; i < pass->n_writes; i++)
        if (!pass->writes[i]->is_over)
            return true;
    for (size_t i = 0; i < pass->n_reads; i++)
        if (!pass->reads[i]->is_over)
            return true;
    return false;
}

static void run_passes(struct sl_dynamodb_apply *apply)
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
    begin_groups(apply);
    do {
        begin_pass(&pass, heads);
        run_jobs(apply);
        pass.one_by_one = pass.one_by_one || any_refused(&pass);
    } while (close_chains(&pass, heads));
}

static void apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct sl_dynamodb *table = (struct sl_dynamodb *)port;
    struct sl_arena *scratch = table->client.aws->scratch;
    struct sl_dynamodb_apply a = {.table = table, .call = call, .scratch = scratch, .n = n};
    if (n == 0)
        return;
    a.ops = sl_arena_zalloc(scratch, n * sizeof(*a.ops));
    a.jobs = sl_arena_zalloc(scratch, n * sizeof(*a.jobs));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        a.ops[i] = (struct sl_dynamodb_op){
            .op = &ops[i], .result = &results[i], .table = ops[i].table.ptr ? ops[i].table : table->name};
    }
    check_all(&a);
    run_passes(&a);
    sl_arena_reset(scratch);
}

/* ---- opening ---- */

static void close_port(struct sl_table_port *port)
{
    struct sl_dynamodb *table = (struct sl_dynamodb *)port;
    sl_client_clean_up(&table->client);
    sl_arena_destroy(table->arena);
    free(table);
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME */
static bool is_table_arn(struct sl_span arn, struct sl_span *region)
{
    struct sl_span rest = arn;
    for (unsigned i = 0; i < 5; i++) {
        const char *colon = rest.len ? memchr(rest.ptr, ':', rest.len) : NULL;
        if (!colon)
            return false;
        if (i == 3)
            *region = sl_span(rest.ptr, (size_t)(colon - rest.ptr));
        rest = sl_span_from(rest, (size_t)(colon - rest.ptr) + 1);
    }
    return sl_span_starts(arn, SL_LIT("arn:")) && sl_span_starts(rest, SL_LIT("table/")) &&
           is_table(sl_span_from(rest, strlen("table/")));
}

static enum sl_status open_table(struct sl_dynamodb *table, struct sl_sinks *sinks, struct sl_span url_text,
                                 struct sl_error *error)
{
    struct sl_url url;
    struct sl_span region = {NULL, 0};
    struct sl_span text = sl_span(sl_arena_copy(table->arena, url_text), url_text.len);
    if (sl_url_parse(text, table->arena, &url, error) != SL_OK)
        return SL_FATAL;
    if (!is_table(url.rest) && !is_table_arn(url.rest, &region))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: \"%.*s\" is no table name (3 to 255 letters, digits, '_', '-', '.') and no "
            "table's ARN; write it as dynamodb://TABLE?region=REGION",
            SL_ARG(url.whole), SL_ARG(url.rest));
    table->name = url.rest;
    if (sl_client_init(&table->client, sinks, &sl_service_dynamodb, &url, region, error) != SL_OK)
        return SL_FATAL;
    return sl_url_done(&url, SL_CLIENT_PARAMS, error);
}

enum sl_status sl_dynamodb_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error)
{
    struct sl_dynamodb *table = calloc(1, sizeof(*table));
    if (!table)
        sl_die("out of memory: a table");
    table->arena = sl_arena_new(1024);
    table->port = (struct sl_table_port){
        .size = sizeof(table->port), .max_item_bytes = SL_ITEM_BYTES, .apply = apply, .close = close_port};
    if (open_table(table, sinks, url, error) != SL_OK) {
        close_port(&table->port);
        return SL_FATAL;
    }
    *out = &table->port;
    return SL_OK;
}
