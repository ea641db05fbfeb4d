/* A table in memory, by the port's contract: conditions, updates, transactions. */
#include "tests/simulation/sim.h"

#include "base/decimal.h"
#include "base/span.h"
#include "base/number.h"
#include "streams/record.h"

struct sl_value sim_attribute(struct sl_span item, const char *name)
{
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = item.ptr ? SL_M : SL_NONE, .raw = item});
    struct sl_span member;
    struct sl_value value;
    while (item.ptr && sl_value_next(&iter, &member, &value))
        if (sl_span_is(member, name))
            return value;
    return (struct sl_value){.type = SL_NONE};
}

const struct sim_row *sim_find_row(const struct sim_table *table, const char *name, const char *part_of_key,
                                   const struct sim_row *after)
{
    for (size_t i = after ? (size_t)(after - table->rows) + 1 : 0; i < table->n; i++) {
        const struct sim_row *row = &table->rows[i];
        if (!row->is_gone && sl_span_is(row->table, name) &&
            memmem(row->key.ptr, row->key.len, part_of_key, strlen(part_of_key)))
            return row;
    }
    return NULL;
}

/* Numbers by value, text without its escapes. */
static bool is_same_key(struct sl_span a, struct sl_span b)
{
    return sl_span_eq(a, b) || sl_value_equal((struct sl_value){.type = SL_M, .raw = a},
                                              (struct sl_value){.type = SL_M, .raw = b});
}

static bool is_read(const struct sl_table_op *op)
{
    return op->verb == SL_TABLE_GET || op->verb == SL_TABLE_PEEK;
}

static struct sim_row absent = {.is_gone = true};

/* The handlers' own keys are always written in one way, and most reads of them find nothing. */
static struct sim_row *row_of(struct sim *s, struct sim_table *table, const struct sl_table_op *op)
{
    bool is_own = memmem(op->key.ptr, op->key.len, "\"sluice:", 8) != NULL;
    for (size_t i = 0; i < table->n; i++)
        if (sl_span_eq(table->rows[i].table, op->table) &&
            (is_own ? sl_span_eq(table->rows[i].key, op->key) : is_same_key(table->rows[i].key, op->key)))
            return &table->rows[i];
    if (is_own && is_read(op))
        return &absent;
    if (table->n == SIM_ROWS) {
        sim_violation(s, "more than %d rows", SIM_ROWS);
        return &table->rows[0];
    }
    table->rows[table->n] =
        (struct sim_row){.table = sl_span(sl_arena_copy(s->arena, op->table), op->table.len),
                         .key = sl_span(sl_arena_copy(s->arena, op->key), op->key.len),
                         .is_gone = true};
    return &table->rows[table->n++];
}

static struct sim_table *table_of(struct sim *s, enum sim_port port)
{
    return port == SIM_PORT_REPLICA ? &s->replica : port == SIM_PORT_VIEW ? &s->rows : &s->totals;
}

/* ---- conditions ---- */

static struct sl_value value_of(struct sl_span json)
{
    struct sl_value value = {.type = SL_NONE};
    char list[4096];
    if (json.len + 2 > sizeof(list))
        return value;
    /* An attribute value is read as a list of one. */
    list[0] = '[';
    memcpy(list + 1, json.ptr, json.len);
    list[json.len + 1] = ']';
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_L, .raw = sl_span(list, json.len + 2)});
    sl_value_next(&iter, NULL, &value);
    value.raw = sl_span(json.ptr + (value.raw.ptr - list - 1), value.raw.len);
    return value;
}

static int compare(struct sl_value a, struct sl_value b)
{
    if (a.type == SL_N) {
        struct sl_number x, y;
        if (sl_number_parse(a.raw, &x) || sl_number_parse(b.raw, &y))
            return 0;
        return sl_number_compare(&x, &y);
    }
    size_t n = a.raw.len < b.raw.len ? a.raw.len : b.raw.len;
    int order = memcmp(a.raw.ptr, b.raw.ptr, n);
    return order ? order : (a.raw.len > b.raw.len) - (a.raw.len < b.raw.len);
}

static bool test_holds(const struct sl_test *test, struct sl_span item)
{
    char name[128];
    memcpy(name, test->name.ptr, test->name.len);
    name[test->name.len] = '\0';
    struct sl_value held = sim_attribute(item, name);
    if (test->verb == SL_ABSENT || test->verb == SL_PRESENT)
        return (held.type == SL_NONE) == (test->verb == SL_ABSENT);
    struct sl_value wanted = value_of(test->value);
    if (held.type == SL_NONE || held.type != wanted.type)
        return test->verb == SL_NE && held.type != SL_NONE;
    if (test->verb == SL_EQ || test->verb == SL_NE)
        return sl_value_equal(held, wanted) == (test->verb == SL_EQ);
    int order = compare(held, wanted);
    switch (test->verb) {
    case SL_LT:
        return order < 0;
    case SL_LE:
        return order <= 0;
    default:
        return order > 0;
    }
}

static bool condition_holds(const struct sl_table_op *op, const struct sim_row *row)
{
    struct sl_span item = row->is_gone ? (struct sl_span){0} : row->item;
    bool any = false, all = true;
    for (size_t i = 0; i < op->n_tests; i++) {
        bool holds = test_holds(&op->tests[i], item);
        any = any || holds;
        all = all && holds;
    }
    return op->n_tests == 0 || (op->any_test ? any : all);
}

/* ---- writing ---- */

static void add_number(struct sim *s, struct sl_value held, struct sl_value more, struct sl_buffer *out)
{
    struct sl_decimal *sum = sl_decimal_new(s->arena);
    struct sl_span text;
    if (held.type == SL_N)
        sl_decimal_add(sum, held.raw, false);
    sl_decimal_add(sum, more.raw, false);
    if (!sl_decimal_text(sum, s->arena, &text))
        sim_violation(s, "a sum is out of range");
    sl_buffer_printf(out, "{\"N\":\"%.*s\"}", SL_ARG(text));
}

static bool is_set_by(const struct sl_table_op *op, struct sl_span name)
{
    for (size_t i = 0; i < op->n_sets; i++)
        if (sl_span_eq(op->sets[i].name, name))
            return true;
    return false;
}

/* The members that stay, then the members that are set. */
static struct sl_span update(struct sim *s, const struct sl_table_op *op, const struct sim_row *row)
{
    struct sl_span item = row->is_gone ? op->key : row->item, name;
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = item});
    struct sl_value value;
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 20);
    sl_buffer_add_char(&out, '{');
    while (sl_value_next(&iter, &name, &value)) {
        if (is_set_by(op, name))
            continue;
        static const char *const tags[] = {
            [SL_S] = "S",   [SL_N] = "N",   [SL_B] = "B",   [SL_BOOL] = "BOOL", [SL_NULL] = "NULL",
            [SL_SS] = "SS", [SL_NS] = "NS", [SL_BS] = "BS", [SL_L] = "L",       [SL_M] = "M"};
        const char *quote = value.type == SL_S || value.type == SL_N || value.type == SL_B ? "\"" : "";
        sl_buffer_printf(&out, "%s\"%.*s\":{\"%s\":%s%.*s%s}", out.len > 1 ? "," : "", SL_ARG(name),
                         tags[value.type], quote, SL_ARG(value.raw), quote);
    }
    for (size_t i = 0; i < op->n_sets; i++) {
        const struct sl_set *set = &op->sets[i];
        if (set->verb == SL_UNSET)
            continue;
        char held[128];
        memcpy(held, set->name.ptr, set->name.len);
        held[set->name.len] = '\0';
        sl_buffer_printf(&out, "%s\"%s\":", out.len > 1 ? "," : "", held);
        if (set->verb == SL_ADD)
            add_number(s, row->is_gone ? (struct sl_value){0} : sim_attribute(row->item, held),
                       value_of(set->value), &out);
        else
            sl_buffer_add_span(&out, set->value);
    }
    sl_buffer_add_char(&out, '}');
    struct sl_span text = sl_span(sl_arena_copy(s->arena, sl_buffer_span(&out)), out.len);
    sl_buffer_clean_up(&out);
    return text;
}

static void write_row(struct sim *s, const struct sl_table_op *op, struct sim_row *row)
{
    switch (op->verb) {
    case SL_TABLE_PUT:
        row->item = sl_span(sl_arena_copy(s->arena, op->item), op->item.len);
        row->is_gone = false;
        break;
    case SL_TABLE_UPDATE:
        row->item = update(s, op, row);
        row->is_gone = false;
        break;
    case SL_TABLE_DELETE:
        row->is_gone = true;
        break;
    default:
        break;
    }
}

/* ---- a call ---- */

static bool is_poison(const struct sl_table_op *op)
{
    return op->verb == SL_TABLE_PUT && op->item.ptr && memmem(op->item.ptr, op->item.len, "\"pr\":", 5);
}

static void refuse(const struct sl_table_op *op, const struct sim_row *row, const struct sl_call *call,
                   struct sl_result *result)
{
    *result = (struct sl_result){
        .status = SL_REJECT, .condition_failed = true, .code = "ConditionalCheckFailed", .text = "no"};
    if (op->want_item && !row->is_gone)
        result->item = sl_span(sl_arena_copy(call->arena, row->item), row->item.len);
}

/* Operations [from, to) are a transaction: all or none. */
static void apply_together(struct sim *s, const struct sim_table_call *c, size_t from, size_t to)
{
    struct sim_table *table = table_of(s, c->port);
    bool good = true;
    for (size_t i = from; i < to; i++) {
        struct sim_row *row = row_of(s, table, &c->ops[i]);
        c->results[i] = (struct sl_result){.status = SL_OK};
        if (is_poison(&c->ops[i]))
            c->results[i] = (struct sl_result){
                .status = SL_REJECT, .code = "ValidationException", .text = "refused for good"};
        else if (!condition_holds(&c->ops[i], row))
            refuse(&c->ops[i], row, c->call, &c->results[i]);
        good = good && c->results[i].status == SL_OK;
    }
    for (size_t i = from; i < to; i++) {
        struct sim_row *row = row_of(s, table, &c->ops[i]);
        if (good && is_read(&c->ops[i]) && !row->is_gone)
            c->results[i].item = sl_span(sl_arena_copy(c->call->arena, row->item), row->item.len);
        else if (good)
            write_row(s, &c->ops[i], row);
        else if (c->results[i].status == SL_OK)
            c->results[i] = (struct sl_result){
                .status = SL_REJECT, .code = "TransactionCanceled", .text = "another operation was refused"};
    }
}

static void answer_all(struct sl_result *results, size_t from, size_t to, enum sl_status status,
                       const char *code)
{
    for (size_t i = from; i < to; i++)
        results[i] = (struct sl_result){.status = status, .code = code, .text = "as planned"};
}

void sim_table_apply(struct sim *s, const struct sim_table_call *c)
{
    enum sim_fault fault = sim_meets(s, c->port, c->call->deadline_ms);
    for (size_t i = 0, end; i < c->n; i = end) {
        end = i + 1;
        while (c->ops[i].group && end < c->n && c->ops[end].group == c->ops[i].group)
            end++;
        enum sim_fault met = fault;
        if (fault == SIM_PARTIAL)
            met = sim_draw(s, 2) ? SIM_WELL : SIM_THROTTLE;
        if (s->plan.broken == (int)c->port && s->ledger != SIM_LEDGER_FOREIGN) {
            answer_all(c->results, i, end, SL_FATAL, "AccessDenied");
            continue;
        }
        if (sim_fault_is_done(met))
            apply_together(s, c, i, end);
        if (met != SIM_WELL)
            answer_all(c->results, i, end, SL_RETRY, "Throttled");
    }
}
