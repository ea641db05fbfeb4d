#include "tests/support/fake_dynamodb_expression.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "sinks/item.h"

#include <ctype.h>
#include <string.h>

struct reader {
    struct fake_expressions *e;
    struct sl_span rest;
};

static bool either(struct reader *r);

static void fail(struct reader *r, const char *why)
{
    if (!r->e->fault)
        r->e->fault = why;
    r->rest.len = 0;
}

static bool eat(struct reader *r, const char *word)
{
    struct sl_span prefix = sl_span_str(word);
    if (!sl_span_starts(r->rest, prefix))
        return false;
    r->rest = sl_span_from(r->rest, prefix.len);
    return true;
}

static void must_eat(struct reader *r, const char *word)
{
    if (!eat(r, word))
        fail(r, "an expression is not one");
}

/* "#t0" or ":t0" */
static struct sl_span placeholder(struct reader *r, char mark)
{
    size_t n = 1;
    while (n < r->rest.len && isalnum((unsigned char)r->rest.ptr[n]))
        n++;
    if (!r->rest.len || *r->rest.ptr != mark || n < 2) {
        fail(r, "a name or a value is expected in an expression");
        return sl_span("", 0);
    }
    struct sl_span word = sl_span(r->rest.ptr, n);
    r->rest = sl_span_from(r->rest, n);
    return word;
}

static struct sl_span name_of(struct reader *r)
{
    struct sl_span json = sl_json_walk_member(r->e->names, placeholder(r, '#'));
    if (json.ptr)
        return sl_json_unescape(sl_span(json.ptr + 1, json.len - 2), r->e->arena);
    fail(r, "an expression uses a name that is not defined");
    return sl_span("", 0);
}

static struct sl_span value_of(struct reader *r)
{
    struct sl_span json = sl_json_walk_member(r->e->values, placeholder(r, ':'));
    if (!json.ptr)
        fail(r, "an expression uses a value that is not defined");
    return json;
}

/* ---- conditions ---- */

/* To the service an attribute that is absent is unequal to every value. */
static bool compare(struct reader *r)
{
    static const struct {
        const char *text;
        enum sl_test_verb verb;
    } signs[] = {{"<=", SL_LE}, {"<>", SL_NE}, {"<", SL_LT}, {"=", SL_EQ}, {">", SL_GT}};
    struct sl_test test = {.name = name_of(r)};
    size_t i = 0;
    while (i < 5 && !eat(r, signs[i].text))
        i++;
    if (i == 5) {
        fail(r, "a comparison has no sign");
        return false;
    }
    test.verb = signs[i].verb;
    test.value = value_of(r);
    const struct sl_table_op op = {.tests = &test, .n_tests = 1};
    bool holds = false;
    if (test.value.ptr && sl_item_test(&op, r->e->item, &holds, NULL) != SL_OK)
        r->e->refusal = "a value of a condition is not one";
    return holds || (test.verb == SL_NE && !sl_item_attribute(r->e->item, test.name).ptr);
}

/* Parentheses around one comparison change nothing: the service refuses them. */
static bool enclosed(struct reader *r)
{
    const char *begin = r->rest.ptr;
    bool holds = either(r);
    struct sl_span inner = sl_span(begin, (size_t)(r->rest.ptr - begin));
    if (inner.len && !memmem(inner.ptr, inner.len, " AND ", 5) && !memmem(inner.ptr, inner.len, " OR ", 4))
        fail(r, "an expression has redundant parentheses");
    must_eat(r, ")");
    return holds;
}

static bool one(struct reader *r)
{
    bool is_absent = eat(r, "attribute_not_exists(");
    if (is_absent || eat(r, "attribute_exists(")) {
        bool has = sl_item_attribute(r->e->item, name_of(r)).ptr != NULL;
        must_eat(r, ")");
        return has != is_absent;
    }
    return eat(r, "(") ? enclosed(r) : compare(r);
}

static bool all(struct reader *r)
{
    bool holds = one(r);
    while (eat(r, " AND "))
        holds = one(r) && holds;
    return holds;
}

static bool either(struct reader *r)
{
    bool holds = all(r);
    while (eat(r, " OR "))
        holds = all(r) || holds;
    return holds;
}

/* ---- updates ---- */

static void add_set(struct reader *r, const char *word)
{
    struct sl_set set = {.verb = *word == 'S' ? SL_SET : *word == 'A' ? SL_ADD : SL_UNSET};
    set.name = name_of(r);
    if (set.verb != SL_UNSET) {
        must_eat(r, set.verb == SL_SET ? "=" : " ");
        set.value = value_of(r);
    }
    for (size_t i = 0; i < r->e->n_sets; i++)
        if (sl_span_eq(r->e->sets[i].name, set.name))
            r->e->refusal = "Two document paths overlap with each other";
    if (r->e->n_sets == FAKE_SETS)
        fail(r, "an update has more sets than a test makes");
    else
        r->e->sets[r->e->n_sets++] = set;
}

static void read_update(struct reader *r)
{
    static const char *const words[] = {"SET ", "ADD ", "REMOVE "};
    bool seen[3] = {false, false, false};
    do {
        size_t i = 0;
        while (i < 3 && !eat(r, words[i]))
            i++;
        if (i == 3 || seen[i]) {
            fail(r, "an update has a clause twice, or one that is not known");
            return;
        }
        seen[i] = true;
        do
            add_set(r, words[i]);
        while (eat(r, ","));
    } while (eat(r, " "));
}

/* ---- both ---- */

static bool uses(struct sl_span expression, struct sl_span word)
{
    for (size_t i = 0; word.len && i + word.len <= expression.len; i++)
        if (memcmp(expression.ptr + i, word.ptr, word.len) == 0 &&
            (i + word.len == expression.len || !isalnum((unsigned char)expression.ptr[i + word.len])))
            return true;
    return false;
}

/* The service refuses names and values that no expression uses, and a map of none. */
static const char *unused(const struct fake_expressions *e, struct sl_span map)
{
    struct sl_json_walk walk = sl_json_walk(map);
    struct sl_span word, ignored;
    size_t n = 0;
    for (; sl_json_walk_next(&walk, &word, &ignored); n++)
        if (!uses(e->condition, word) && !uses(e->update, word))
            return "a name or a value is not used in any expression";
    return map.ptr && !n ? "there are no names or no values" : NULL;
}

void fake_expressions_read(struct fake_expressions *e, bool *holds)
{
    struct reader condition = {e, e->condition}, update = {e, e->update};
    e->sets = sl_arena_zalloc(e->arena, FAKE_SETS * sizeof(*e->sets));
    *holds = !e->condition.ptr || either(&condition);
    if (e->update.ptr)
        read_update(&update);
    if (!e->fault && (condition.rest.len || update.rest.len))
        e->fault = "an expression goes on after its end";
    const char *names = unused(e, e->names), *values = unused(e, e->values);
    e->fault = e->fault ? e->fault : names ? names : values;
}
