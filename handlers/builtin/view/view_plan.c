/* From the rows that an item has to those that it should have: one transaction with the list. */
#include "handlers/builtin/view/view_private.h"

#include <inttypes.h>
#include <stdio.h>

#define TRANSACTION_BYTES ((size_t)4 << 20) /* TransactWriteItems */

/* ---- conditions ---- */

/* The row is absent, or ours: the name of one of its key's attributes, which every row has. */
static void test_owner(const struct view *v, struct sl_span of, struct sl_arena *arena,
                       struct sl_table_op *op)
{
    struct sl_test *tests = v->host->alloc(arena, 2 * sizeof(*tests));
    tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = v->keys[0].name};
    tests[1] = (struct sl_test){SL_EQ, SL_LIT(VIEW_OF), of};
    op->tests = tests;
    op->n_tests = 2;
    op->any_test = true;
}

/* The list is as it was read. A repair keeps the order, and counts. */
static void test_list(const struct view *v, const struct view_list *list, struct sl_arena *arena,
                      struct sl_table_op *op)
{
    struct sl_test *tests = v->host->alloc(arena, 2 * sizeof(*tests));
    op->tests = tests;
    op->n_tests = list->exists ? 2 : 1;
    op->want_item = true;
    tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = v->list_keys[0]};
    if (!list->exists)
        return;
    char *text = v->host->alloc(arena, 32);
    snprintf(text, 32, "{\"N\":\"%" PRId64 "\"}", list->repairs);
    tests[0] = (struct sl_test){SL_EQ, SL_LIT(VIEW_ORDER), sl_order_of(v->host, arena, list->order).value};
    tests[1] =
        (struct sl_test){list->repairs ? SL_EQ : SL_ABSENT, SL_LIT(VIEW_LIST_REPAIRS), sl_span_str(text)};
}

/* ---- operations ---- */

static void add(const struct view *v, struct view_plan *p, struct sl_arena *arena, struct sl_span key,
                struct sl_span item)
{
    struct sl_table_op *op = &p->ops[p->n_ops++];
    *op = (struct sl_table_op){.verb = item.ptr ? SL_TABLE_PUT : SL_TABLE_DELETE, .key = key, .item = item};
    test_owner(v, p->of, arena, op);
    p->n_puts += item.ptr != NULL;
    p->n_deletes += item.ptr == NULL;
}

static bool is_foreign(const struct view_plan *p, struct sl_span key)
{
    for (size_t i = 0; i < p->n_foreign; i++)
        if (sl_span_eq(p->foreign[i], key))
            return true;
    return false;
}

static bool is_touched(const struct view_plan *p, struct sl_span key)
{
    return p->touched.ptr && sl_span_eq(p->touched, key);
}

static void add_puts(const struct view *v, struct view_plan *p, struct sl_arena *arena)
{
    for (size_t i = 0; i < p->rows->n; i++) {
        const struct view_row *row = &p->rows->list[i];
        const struct view_row *listed = view_rows_find(&p->list->rows, row->key);
        if (!listed || memcmp(listed->digest, row->digest, VIEW_DIGEST_BYTES) != 0 || is_touched(p, row->key))
            add(v, p, arena, row->key, row->item);
    }
}

static void add_deletes(const struct view *v, struct view_plan *p, struct sl_arena *arena)
{
    const struct sl_span none = {NULL, 0};
    for (size_t i = 0; i < p->list->rows.n; i++) {
        struct sl_span key = p->list->rows.list[i].key;
        if (!view_rows_find(p->rows, key) && !is_foreign(p, key))
            add(v, p, arena, key, none);
    }
    if (p->touched.ptr && !view_rows_find(p->rows, p->touched) && !view_rows_find(&p->list->rows, p->touched))
        add(v, p, arena, p->touched, none);
}

/* ---- limits ---- */

static enum sl_status check_limits(const struct view *v, const struct view_plan *p, struct sl_error *error)
{
    size_t n = p->n_ops - 1, bytes = 0;
    if (n > VIEW_ROWS_MAX)
        return v->host->fail(error, SL_REJECT, "TooManyRows",
                             "the change puts and deletes %zu rows, and one transaction holds %d: let fewer "
                             "elements change at once, or keep them in items of their own",
                             n, VIEW_ROWS_MAX);
    for (size_t i = 0; i < p->n_ops; i++) {
        struct sl_value item = {.type = SL_M, .raw = p->ops[i].item};
        size_t of_op = item.raw.ptr ? v->host->item_bytes(item) : p->ops[i].key.len;
        bytes += of_op;
        if (i == 0 && of_op > v->table->max_item_bytes)
            return v->host->fail(error, SL_REJECT, "ListTooLarge",
                                 "the item has %zu rows, and the list of them is larger than an item of %zu "
                                 "bytes: make shorter keys, or fewer rows",
                                 p->rows->n, v->table->max_item_bytes);
    }
    if (bytes > TRANSACTION_BYTES)
        return v->host->fail(error, SL_REJECT, "TransactionTooLarge",
                             "the change writes %zu bytes, and one transaction holds %zu: make the rows "
                             "smaller with \"item\", \"project\" or \"drop\"",
                             bytes, TRANSACTION_BYTES);
    return SL_OK;
}

enum sl_status view_plan_make(const struct view *v, struct view_plan *p, struct sl_arena *arena,
                              struct sl_error *error)
{
    const struct view_list_text text = {p->list_key, p->of, p->order.value, p->repairs, p->rows};
    size_t room = p->rows->n + p->list->rows.n + 2;
    p->ops = v->host->alloc(arena, room * sizeof(*p->ops));
    p->ops[0] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                     .table = v->list_table,
                                     .key = p->list_key,
                                     .item = view_list_item(v, &text, arena)};
    test_list(v, p->list, arena, &p->ops[0]);
    p->n_ops = 1;
    p->n_puts = p->n_deletes = 0;
    add_puts(v, p, arena);
    add_deletes(v, p, arena);
    return check_limits(v, p, error);
}
