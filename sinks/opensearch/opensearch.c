/* opensearch://host/index: opens the target, and runs an apply: operations of one key in their order, all
 * others together, each read before it is written where a condition asks for it. */
#include "sinks/opensearch/opensearch_private.h"

#include "base/utf8.h"
#include "sinks/result.h"
#include "sinks/services.h"

#include <stdlib.h>

/* How often somebody else may write a document between our read and our write. */
#define CONFLICTS_MAX 20
/* The longest wait after a conflict, from the second on. */
#define CONFLICT_WAIT_MS 100

/* ---- what is refused before anything is sent ---- */

static enum sl_status check_group(const struct sl_opensearch_op *op, struct sl_error *error)
{
    if (sl_table_check_verb(op->op, error) != SL_OK)
        return SL_REJECT;
    if (op->op->group)
        return sl_fail(error, SL_FATAL, "NoTransactions", "an OpenSearch index has no transactions");
    if (op->op->table.ptr)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "%.*s: an OpenSearch target is one index, without tables beside it",
                       SL_ARG(op->op->table));
    return SL_OK;
}

static enum sl_status check_names(const struct sl_table_op *op, struct sl_error *error)
{
    bool is_good = true;
    for (size_t i = 0; i < op->n_sets; i++)
        is_good = is_good && sl_utf8_is_valid(op->sets[i].name);
    for (size_t i = 0; i < op->n_tests; i++)
        is_good = is_good && sl_utf8_is_valid(op->tests[i].name);
    return is_good ? SL_OK
                   : sl_fail(error, SL_REJECT, "ValidationException", "an attribute's name is not UTF-8");
}

static enum sl_status check_tests(const struct sl_table_op *op, struct sl_error *error)
{
    bool ignored;
    if (check_names(op, error) != SL_OK)
        return SL_REJECT;
    return op->n_tests ? sl_item_test(op, SL_LIT("{}"), &ignored, error) : SL_OK;
}

/* The document is made once. */
static enum sl_status make_document(struct sl_opensearch_apply *apply, struct sl_opensearch_op *op,
                                    struct sl_span item, struct sl_error *error)
{
    struct sl_opensearch *index = apply->index;
    if (sl_item_read(item, error) != SL_OK || sl_item_has_key(item, op->op->key, error) != SL_OK ||
        (item.len > SL_ITEM_BYTES && sl_table_check_bytes(item, error) != SL_OK) ||
        sl_opensearch_document(index, item, op->hash, error) != SL_OK)
        return SL_REJECT;
    op->document =
        sl_span(sl_arena_copy(apply->scratch, sl_buffer_span(&index->document)), index->document.len);
    return SL_OK;
}

static enum sl_status check_op(struct sl_opensearch_apply *apply, struct sl_opensearch_op *op,
                               struct sl_error *error)
{
    struct sl_buffer key;
    if (check_group(op, error) != SL_OK)
        return error->status;
    sl_buffer_init(&key, SIZE_MAX);
    enum sl_status status = sl_table_key_text(op->op->key, &key, error);
    op->key_text = sl_span(sl_arena_copy(apply->scratch, sl_buffer_span(&key)), key.len);
    sl_buffer_clean_up(&key);
    if (status != SL_OK || check_tests(op->op, error) != SL_OK)
        return SL_REJECT;
    op->id = sl_opensearch_id(apply->index, op->key_text, apply->scratch);
    sl_opensearch_hash(apply->index, op->key_text, op->hash);
    return op->op->verb == SL_TABLE_PUT ? make_document(apply, op, op->op->item, error) : SL_OK;
}

static void check_all(struct sl_opensearch_apply *apply)
{
    for (size_t i = 0; i < apply->n; i++) {
        struct sl_opensearch_op *op = &apply->ops[i];
        struct sl_error error = SL_NO_ERROR;
        op->is_over = check_op(apply, op, &error) != SL_OK;
        if (!op->is_over)
            continue;
        sl_error_context(&error, "%s", apply->index->client.name);
        sl_result_refuse(op->result, apply->call->arena, &error);
    }
}

/* ---- turns: of each key one operation at a time ---- */

static int compare_ops(const void *x, const void *y)
{
    const struct sl_opensearch_op *a = *(struct sl_opensearch_op *const *)x,
                                  *b = *(struct sl_opensearch_op *const *)y;
    size_t n = a->key_text.len < b->key_text.len ? a->key_text.len : b->key_text.len;
    int order = n ? memcmp(a->key_text.ptr, b->key_text.ptr, n) : 0;
    if (order == 0 && a->key_text.len != b->key_text.len)
        order = a->key_text.len < b->key_text.len ? -1 : 1;
    return order ? order : (a > b) - (a < b);
}

static size_t find_turn(struct sl_opensearch_apply *apply, struct sl_opensearch_op **sorted, size_t n)
{
    const struct sl_opensearch_op *last = NULL;
    apply->n_turn = 0;
    for (size_t i = 0; i < n; i++) {
        struct sl_opensearch_op *op = sorted[i];
        if (op->is_over || (last && sl_span_eq(last->key_text, op->key_text)))
            continue;
        last = op;
        apply->turn[apply->n_turn++] = op;
    }
    return apply->n_turn;
}

/* ---- one round ---- */

static bool needs_reading(const struct sl_opensearch_op *op)
{
    const struct sl_table_op *asked = op->op;
    return asked->n_tests || asked->verb == SL_TABLE_UPDATE || asked->verb == SL_TABLE_CHECK ||
           sl_table_is_read(asked);
}

static bool may_go_unread(const struct sl_opensearch_apply *apply, const struct sl_opensearch_op *op)
{
    if (op->was_unread || !sl_opensearch_is_guarded(op->op))
        return false;
    return apply->index->is_scripted || (apply->index->expects_absent && op->op->n_tests == 2);
}

static void read_turn(struct sl_opensearch_apply *apply, bool whole)
{
    struct sl_opensearch_op **ops = sl_arena_alloc(apply->scratch, (apply->n_turn + 1) * sizeof(*ops));
    size_t n = 0;
    for (size_t i = 0; i < apply->n_turn; i++) {
        struct sl_opensearch_op *op = apply->turn[i];
        bool is_whole = op->wants_all || !sl_opensearch_reads_some(op->op);
        op->is_unread = may_go_unread(apply, op);
        if (!op->is_over && !op->is_read && needs_reading(op) && !op->is_unread && is_whole == whole)
            ops[n++] = op;
    }
    if (n)
        sl_opensearch_read(apply, ops, n, whole);
}

static void refuse(struct sl_opensearch_apply *apply, struct sl_opensearch_op *op, struct sl_error *error)
{
    sl_error_context(error, "%s", apply->index->client.name);
    sl_result_refuse(op->result, apply->call->arena, error);
    op->result->not_sent = false;
    op->is_over = true;
}

/* The condition does not hold. */
static void fail_condition(struct sl_opensearch_apply *apply, struct sl_opensearch_op *op)
{
    bool has_part = op->is_there && !op->wants_all && sl_opensearch_reads_some(op->op);
    if (op->op->want_item && has_part) {
        op->wants_all = true; /* read once more: it may hold by then */
        op->is_read = false;
        return;
    }
    sl_table_condition_failed(op->result, apply->call->arena, op->op, op->item);
    op->is_over = true;
}

/* Reads end here, and what needs no write; the others get what they write. */
static void judge(struct sl_opensearch_apply *apply, struct sl_opensearch_op *op)
{
    struct sl_error error = SL_NO_ERROR;
    bool holds = true;
    struct sl_span item = op->item;
    if (sl_item_test(op->op, item, &holds, &error) != SL_OK) {
        refuse(apply, op, &error);
        return;
    }
    if (!holds) {
        fail_condition(apply, op);
        return;
    }
    bool is_write = !sl_table_is_read(op->op) && op->op->verb != SL_TABLE_CHECK;
    apply->n_found += is_write && op->is_there;
    apply->n_absent += is_write && !op->is_there;
    if (!is_write || (op->op->verb == SL_TABLE_DELETE && !op->is_there)) {
        *op->result =
            (struct sl_result){.status = SL_OK, .item = sl_table_is_read(op->op) ? item : sl_span(NULL, 0)};
        op->is_over = true;
    } else if (op->op->verb == SL_TABLE_UPDATE) {
        struct sl_span base = item.ptr ? item : op->op->key;
        if (sl_item_update(op->op, base, apply->scratch, &item, &error) != SL_OK ||
            make_document(apply, op, item, &error) != SL_OK)
            refuse(apply, op, &error);
    }
}

static void judge_turn(struct sl_opensearch_apply *apply)
{
    for (size_t i = 0; i < apply->n_turn; i++)
        if (apply->turn[i]->is_read && !apply->turn[i]->is_over)
            judge(apply, apply->turn[i]);
}

static void write_turn(struct sl_opensearch_apply *apply)
{
    struct sl_opensearch_op **ops = sl_arena_alloc(apply->scratch, (apply->n_turn + 1) * sizeof(*ops));
    size_t n = 0;
    for (size_t i = 0; i < apply->n_turn; i++) {
        struct sl_opensearch_op *op = apply->turn[i];
        if (!op->is_over && (op->is_read || op->is_unread || !needs_reading(op)))
            ops[n++] = op;
    }
    if (n)
        sl_opensearch_write(apply, ops, n);
}

/* After a conflict somebody else writes the same documents: the more often, the longer the wait. */
static void heed_conflicts(struct sl_opensearch_apply *apply)
{
    struct sl_clock *clock = apply->index->client.aws->clock;
    unsigned most = 0;
    for (size_t i = 0; i < apply->n_turn; i++) {
        struct sl_opensearch_op *op = apply->turn[i];
        if (op->is_over)
            continue;
        most = op->conflicts > most ? op->conflicts : most;
        if (op->conflicts >= CONFLICTS_MAX) {
            sl_result_fail(op->result, apply->call->arena, SL_RETRY, "VersionConflict",
                           "%s: Bulk: the document was changed by others in every attempt",
                           apply->index->client.name);
            op->is_over = true;
        }
    }
    int64_t wait =
        most > 1 ? (int64_t)(clock->random(clock) % (CONFLICT_WAIT_MS * most / CONFLICTS_MAX + 2)) : 0;
    if (wait && clock->now_ms(clock) + wait < apply->call->deadline_ms)
        clock->sleep_ms(clock, wait);
}

/* ---- the apply ---- */

static void judge_doubts(struct sl_opensearch_apply *apply)
{
    struct sl_client *client = &apply->index->client;
    size_t n = 0;
    for (size_t i = 0; i < apply->n; i++)
        n += apply->ops[i].doubt != NULL;
    bool vouched = n && sl_contrast_vouches(&client->contrast, "Bulk", 0, n, sl_aws_now_ms(client->aws));
    for (size_t i = 0; i < apply->n && n; i++) {
        struct sl_opensearch_op *op = &apply->ops[i];
        if (!op->doubt)
            continue;
        op->result->status = vouched ? SL_REJECT : SL_FATAL;
        if (!vouched)
            op->result->text = sl_client_unknown_text(apply->call->arena, op->doubt_text, op->doubt);
    }
}

/* Whether the next writes are likely to meet nothing: a backfill, a table that only grows. */
static void learn(struct sl_opensearch_apply *apply)
{
    size_t n = apply->n_found + apply->n_absent;
    for (size_t i = 0; i < apply->n; i++) {
        n += apply->ops[i].was_created;
        apply->n_absent += apply->ops[i].was_created;
    }
    if (n >= 8)
        apply->index->expects_absent = apply->n_absent >= n - n / 8;
}

static void run(struct sl_opensearch_apply *apply)
{
    struct sl_opensearch_op **sorted = sl_arena_alloc(apply->scratch, (apply->n + 1) * sizeof(*sorted));
    apply->turn = sl_arena_alloc(apply->scratch, (apply->n + 1) * sizeof(*apply->turn));
    for (size_t i = 0; i < apply->n; i++)
        sorted[i] = &apply->ops[i];
    qsort(sorted, apply->n, sizeof(*sorted), compare_ops);
    while (find_turn(apply, sorted, apply->n)) {
        read_turn(apply, false);
        read_turn(apply, true);
        judge_turn(apply);
        write_turn(apply);
        heed_conflicts(apply);
    }
    judge_doubts(apply);
    learn(apply);
}

static void fail_all(struct sl_opensearch_apply *apply, const struct sl_result *why)
{
    for (size_t i = 0; i < apply->n; i++)
        if (!apply->ops[i].is_over)
            *apply->ops[i].result = *why;
}

static void apply_ops(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                      struct sl_result *results, const struct sl_call *call)
{
    struct sl_opensearch *index = (struct sl_opensearch *)port;
    struct sl_arena *scratch = index->client.aws->scratch;
    struct sl_opensearch_apply a = {.index = index, .call = call, .scratch = scratch, .n = n};
    struct sl_result why;
    if (n == 0)
        return;
    a.ops = sl_arena_zalloc(scratch, n * sizeof(*a.ops));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        a.ops[i].op = &ops[i];
        a.ops[i].result = &results[i];
    }
    sl_contrast_begin(&index->client.contrast);
    check_all(&a);
    for (size_t i = 0; i < n && !index->key_names[0].ptr; i++)
        if (!a.ops[i].is_over)
            sl_opensearch_learn_key(index, ops[i].key);
    if (sl_opensearch_resolve(index, call, &why) == SL_OK)
        run(&a);
    else
        fail_all(&a, &why);
    sl_arena_reset(scratch);
}

static void close_port(struct sl_table_port *port)
{
    struct sl_opensearch *index = (struct sl_opensearch *)port;
    sl_client_clean_up(&index->client);
    sl_buffer_clean_up(&index->document);
    sl_buffer_clean_up(&index->types);
    sl_buffer_clean_up(&index->unescaped);
    sl_arena_destroy(index->arena);
    free(index);
}

enum sl_status sl_opensearch_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                  struct sl_error *error)
{
    struct sl_opensearch *index = calloc(1, sizeof(*index));
    if (!index)
        sl_die("out of memory: an index");
    index->arena = sl_arena_new(1024);
    sl_buffer_init(&index->document, SL_OPENSEARCH_BULK_BYTES);
    sl_buffer_init(&index->types, SL_OPENSEARCH_BULK_BYTES);
    sl_buffer_init(&index->unescaped, SIZE_MAX);
    index->port = (struct sl_table_port){.size = sizeof(index->port),
                                         .max_item_bytes = SL_ITEM_BYTES,
                                         .apply = apply_ops,
                                         .close = close_port,
                                         .scan = sl_opensearch_scan,
                                         .describe = sl_opensearch_describe,
                                         .can = SL_TABLE_UPDATES | SL_TABLE_TESTS};
    if (sl_opensearch_read_target(index, sinks, url, error) != SL_OK) {
        close_port(&index->port);
        return SL_FATAL;
    }
    *out = &index->port;
    return SL_OK;
}
