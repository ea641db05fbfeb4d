/* The bodies of requests: pieces, and the expressions of conditions and updates. */
#include "base/array.h"
#include "sinks/dynamodb/dynamodb_private.h"

#include "base/json_write.h"

/* Of an operation without its names and values. */
#define TEXT_BYTES (1024 * 1024)

void sl_dynamodb_add(struct sl_dynamodb_body *body, struct sl_span part)
{
    SL_PUSH_IN(body->arena, body->parts, body->n, body->room) = part;
}

void sl_dynamodb_add_text(struct sl_dynamodb_body *body, const struct sl_buffer *text)
{
    sl_dynamodb_add(body, sl_span(sl_arena_copy(body->arena, sl_buffer_span(text)), text->len));
}

/* ---- expressions: set i is #s<i> and :s<i>, test i is #t<i> and :t<i> ---- */

static bool is_set(const struct sl_set *set)
{
    return set->verb == SL_SET || sl_table_is_running(set);
}

static bool is_add(const struct sl_set *set)
{
    return set->verb == SL_ADD;
}

static bool is_unset(const struct sl_set *set)
{
    return set->verb == SL_UNSET;
}

/* One part of an update: "SET #s0=:s0,#s2=:s2", "ADD #s1 :s1", "REMOVE #s3". */
static const struct clause {
    const char *word, *between; /* `between` the name and the value; "" when the value is not sent */
    bool (*is_meant)(const struct sl_set *);
} clauses[] = {{"SET", "=", is_set}, {"ADD", " ", is_add}, {"REMOVE", "", is_unset}};

static void add_words(struct sl_buffer *out, const char *first, const char *second, const char *third)
{
    sl_buffer_add_str(out, first);
    sl_buffer_add_str(out, second);
    sl_buffer_add_str(out, third);
}

/* "#t7", with what stands around it. */
static void add_reference(struct sl_buffer *out, const char *before, size_t i, const char *after)
{
    sl_buffer_add_str(out, before);
    sl_buffer_add_integer(out, (int64_t)i);
    sl_buffer_add_str(out, after);
}

static void add_comparison(struct sl_buffer *out, size_t i, const char *verb)
{
    add_reference(out, "#t", i, verb);
    add_reference(out, ":t", i, "");
}

static void add_clause(struct sl_buffer *out, const struct sl_table_op *op, const bool *dropped,
                       const struct clause *clause)
{
    bool any = false;
    for (size_t i = 0; i < op->n_sets; i++) {
        if (!clause->is_meant(&op->sets[i]) || (dropped && dropped[i]))
            continue;
        if (any)
            sl_buffer_add_char(out, ',');
        else
            add_words(out, out->len ? " " : "", clause->word, " ");
        add_reference(out, "#s", i, clause->between);
        if (*clause->between)
            add_reference(out, ":s", i, "");
        any = true;
    }
}

static void add_update(struct sl_buffer *out, const struct sl_table_op *op, const bool *dropped)
{
    for (size_t i = 0; i < SL_COUNT(clauses); i++)
        add_clause(out, op, dropped, &clauses[i]);
}

static void add_test(struct sl_buffer *out, const struct sl_test *test, size_t i)
{
    switch (test->verb) {
    case SL_ABSENT:
        add_reference(out, "attribute_not_exists(#t", i, ")");
        return;
    case SL_PRESENT:
        add_reference(out, "attribute_exists(#t", i, ")");
        return;
    case SL_NE: /* to the service an absent attribute is unequal; here it does not match */
        add_reference(out, "attribute_exists(#t", i, ") AND ");
        add_comparison(out, i, "<>");
        return;
    case SL_EQ:
        add_comparison(out, i, "=");
        return;
    case SL_LT:
        add_comparison(out, i, "<");
        return;
    case SL_LE:
        add_comparison(out, i, "<=");
        return;
    case SL_GT:
        add_comparison(out, i, ">");
        return;
    }
}

/* AND binds tighter than OR, and the service refuses parentheses that change nothing. */
static void add_condition(struct sl_buffer *out, const struct sl_table_op *op, const bool *dropped)
{
    bool encloses = op->any_test && op->n_tests > 1;
    for (size_t i = 0; i < op->n_tests; i++) {
        sl_buffer_add_str(out, i ? (op->any_test ? " OR " : " AND ") : encloses ? "(" : "");
        add_test(out, &op->tests[i], i);
    }
    if (encloses)
        sl_buffer_add_char(out, ')');
    for (size_t i = 0; i < op->n_sets; i++)
        if (sl_table_is_running(&op->sets[i]) && !(dropped && dropped[i]))
            sl_buffer_printf(out, "%s(attribute_not_exists(#s%zu) OR #s%zu%c:s%zu)", out->len ? " AND " : "",
                             i, i, op->sets[i].verb == SL_SET_MAX ? '<' : '>', i);
}

static void add_name(struct sl_buffer *out, bool *any, char kind, size_t i, struct sl_span name)
{
    sl_buffer_add_str(out, *any ? ",\"#" : ",\"ExpressionAttributeNames\":{\"#");
    sl_buffer_add_char(out, kind);
    add_reference(out, "", i, "\":");
    sl_json_add_string(out, name);
    *any = true;
}

static void add_names(struct sl_buffer *out, const struct sl_table_op *op, const bool *dropped)
{
    bool any = false;
    for (size_t i = 0; i < op->n_sets; i++)
        if (!(dropped && dropped[i]))
            add_name(out, &any, 's', i, op->sets[i].name);
    for (size_t i = 0; i < op->n_tests; i++)
        add_name(out, &any, 't', i, op->tests[i].name);
    if (any)
        sl_buffer_add_char(out, '}');
}

static void add_value(struct sl_dynamodb_body *body, bool *any, char kind, size_t i, struct sl_span value)
{
    const char *name = sl_arena_printf(
        body->arena, "%s\":%c%zu\":", *any ? "," : ",\"ExpressionAttributeValues\":{", kind, i);
    sl_dynamodb_add(body, sl_span_str(name));
    sl_dynamodb_add(body, value);
    *any = true;
}

static void add_values(struct sl_dynamodb_body *body, const struct sl_table_op *op, const bool *dropped)
{
    bool any = false;
    for (size_t i = 0; i < op->n_sets; i++)
        if (op->sets[i].verb != SL_UNSET && !(dropped && dropped[i]))
            add_value(body, &any, 's', i, op->sets[i].value);
    for (size_t i = 0; i < op->n_tests; i++)
        if (sl_table_test_has_value(&op->tests[i]))
            add_value(body, &any, 't', i, op->tests[i].value);
    if (any)
        sl_dynamodb_add(body, SL_LIT("}"));
}

static void add_expression(struct sl_buffer *out, const char *name, const struct sl_buffer *expression)
{
    if (!expression->len)
        return;
    add_words(out, ",\"", name, "\":");
    sl_json_add_string(out, sl_buffer_span(expression));
}

/* Escapes make a name up to 6 times as long. */
static size_t text_bytes(const struct sl_table_op *op)
{
    size_t bytes = TEXT_BYTES;
    for (size_t i = 0; i < op->n_sets; i++)
        bytes += op->sets[i].name.len * 6;
    for (size_t i = 0; i < op->n_tests; i++)
        bytes += op->tests[i].name.len * 6;
    return bytes;
}

void sl_dynamodb_add_op(struct sl_dynamodb_body *body, const struct sl_dynamodb_op *op, const bool *dropped,
                        bool want_old)
{
    struct sl_buffer text, update, condition;
    sl_buffer_init(&text, text_bytes(op->op));
    sl_buffer_init(&update, TEXT_BYTES);
    sl_buffer_init(&condition, TEXT_BYTES);
    sl_buffer_add_str(&text, "\"TableName\":");
    sl_json_add_string(&text, op->table);
    sl_buffer_add_str(&text, op->op->verb == SL_TABLE_PUT ? ",\"Item\":" : ",\"Key\":");
    sl_dynamodb_add_text(body, &text);
    sl_dynamodb_add(body, op->op->verb == SL_TABLE_PUT ? op->op->item : op->op->key);
    sl_buffer_reset(&text);
    if (op->op->verb == SL_TABLE_UPDATE)
        add_update(&update, op->op, dropped);
    add_condition(&condition, op->op, dropped);
    add_expression(&text, "UpdateExpression", &update);
    add_expression(&text, "ConditionExpression", &condition);
    add_names(&text, op->op, dropped);
    if (want_old && condition.len)
        sl_buffer_add_str(&text, ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"");
    sl_dynamodb_add_text(body, &text);
    add_values(body, op->op, dropped);
    sl_buffer_clean_up(&text);
    sl_buffer_clean_up(&update);
    sl_buffer_clean_up(&condition);
}
