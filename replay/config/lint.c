/* Looks through a filter pattern for rules that AWS accepts and that match something else than they seem to.
 */
#include "replay/config/lint.h"

#include "streams/when/when.h"

#include <jansson.h>
#include <stdio.h>

struct lint {
    const char *where;
    sl_lint_fn found;
    void *arg;
};

static bool is_type(const char *name)
{
    static const char *const types[] = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(name, types[i]) == 0)
            return true;
    return false;
}

static bool has_operator(const json_t *list, const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_object_get(one, name))
            return true;
    }
    return false;
}

static void say(const struct lint *l, const char *attribute, const char *what)
{
    char line[512];
    snprintf(line, sizeof(line), "%s: %.80s: %s", l->where, attribute, what);
    l->found(l->arg, true, line);
}

/* ---- attributes and their types ---- */

static void lint_attribute(const struct lint *l, const char *name, const json_t *value, bool is_in_list);

/* The names below an M. */
static void lint_map(const struct lint *l, const json_t *map, bool is_in_list)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value)
    {
        if (strcmp(name, "$or") != 0)
            lint_attribute(l, name, value, is_in_list);
    }
}

static bool has_absence(const json_t *list)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_is_false(json_object_get(one, "exists")))
            return true;
    }
    return false;
}

/* One type of an attribute and its rules: "N": [...]. */
static void lint_type(const struct lint *l, const char *name, const char *type, const json_t *rule,
                      bool is_in_list)
{
    if (strcmp(type, "N") == 0 && has_operator(rule, "numeric"))
        say(l, name,
            "\"numeric\" never matches an N: its value is a string in the event; list the values "
            "(\"N\": [\"1\", \"2\"]), or filter in the function");
    if (is_in_list && has_absence(rule))
        say(l, name,
            "below a list, \"exists\": false asks one element only if a name that comes before it in the "
            "alphabet has matched in that element; else it asks all of them");
    if (strcmp(type, "M") == 0)
        lint_map(l, rule, is_in_list);
    if (strcmp(type, "L") == 0 && json_is_object(rule))
        lint_attribute(l, name, rule, true);
    if (!is_type(type) && strcmp(type, "$or") != 0)
        say(l, name, "a type (S, N, BOOL, ...) is missing between the attribute's name and its value");
}

/* The rules below an attribute's name: {"N": [...]}. */
static void lint_attribute(const struct lint *l, const char *name, const json_t *value, bool is_in_list)
{
    const char *type;
    json_t *rule;
    if (json_is_array(value)) {
        say(l, name,
            has_operator(value, "exists")
                ? "\"exists\" looks at leaves: beside the attribute's name it sees none, so false matches "
                  "every record and true matches none; write {\"S\": [{\"exists\": ...}]} with the "
                  "attribute's type"
                : "an attribute's value has its type in between, so this matches nothing; write "
                  "{\"S\": [...]}");
        return;
    }
    json_object_foreach((json_t *)value, type, rule)
    {
        lint_type(l, name, type, rule, is_in_list);
    }
}

static void lint_change(const struct lint *l, const json_t *change)
{
    static const char *const images[] = {"Keys", "NewImage", "OldImage"};
    for (size_t i = 0; i < 3; i++)
        lint_map(l, json_object_get(change, images[i]), false);
}

/* ---- operators, wherever they are ---- */

typedef void (*look_fn)(const struct lint *l, const char *field, const char *operator_name,
                        const json_t *operand);

static void each_operator(const struct lint *l, const char *field, const json_t *value, look_fn look)
{
    const char *name;
    json_t *inner;
    size_t i;
    json_object_foreach((json_t *)value, name, inner)
    {
        each_operator(l, name, inner, look);
    }
    if (!json_is_array(value))
        return;
    json_array_foreach((json_t *)value, i, inner)
    {
        if (strcmp(field, "$or") == 0)
            each_operator(l, field, inner, look);
        else if (json_is_object(inner) && json_object_size(inner) == 1)
            look(l, field, json_object_iter_key(json_object_iter(inner)),
                 json_object_iter_value(json_object_iter(inner)));
    }
}

/* Characters of four bytes in UTF-8. */
static bool is_beyond_the_plane(const json_t *text)
{
    const char *s = json_string_value(text);
    while (s && *s && (unsigned char)*s < 0xF0)
        s++;
    return s && *s;
}

static bool has_wide_text(const json_t *operand)
{
    size_t i;
    const json_t *one;
    json_array_foreach(operand, i, one)
    {
        if (is_beyond_the_plane(one))
            return true;
    }
    return is_beyond_the_plane(operand);
}

/* The engine takes such a character for two. */
static void look_at_case(const struct lint *l, const char *field, const char *operator_name,
                         const json_t *operand)
{
    const json_t *inner = json_object_get(operand, "equals-ignore-case");
    bool is_fold = strcmp(operator_name, "equals-ignore-case") == 0;
    if (has_wide_text(is_fold ? operand : inner))
        say(l, field,
            "on AWS, \"equals-ignore-case\" never matches a text with a character beyond U+FFFF (an emoji)");
}

static void look_at_publication(const struct lint *l, const char *field, const char *operator_name,
                                const json_t *operand)
{
    static const char *const unpublished[] = {"wildcard", "cidr", "exactly"};
    bool is_one = json_is_object(operand); /* an operator in another one */
    char line[512];
    for (size_t i = 0; i < sizeof(unpublished) / sizeof(unpublished[0]); i++)
        is_one = is_one || strcmp(operator_name, unpublished[i]) == 0;
    if (!is_one)
        return;
    snprintf(line, sizeof(line), "%s: %.80s: \"%.80s\"%s is not in Lambda's published list of operators",
             l->where, field, operator_name, json_is_object(operand) ? " around another operator" : "");
    l->found(l->arg, false, line);
}

void sl_lint_pattern(struct sl_span json, const char *where, sl_lint_fn found, void *arg)
{
    const struct lint l = {where, found, arg};
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, 0, NULL);
    lint_change(&l, json_object_get(root, "dynamodb"));
    each_operator(&l, "", root, look_at_case);
    json_decref(root);
}

static bool is_refused(const struct lint *l, struct sl_span json)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_error error = SL_NO_ERROR;
    struct sl_when *unused;
    char line[1024];
    bool is_refused = sl_pattern_compile(json, arena, &unused, &error) != SL_OK;
    sl_arena_destroy(arena);
    if (!is_refused)
        return false;
    snprintf(line, sizeof(line), "%s: AWS refuses this pattern: %s", l->where, error.text);
    l->found(l->arg, true, line);
    sl_error_clear(&error);
    return true;
}

void sl_lint_filter(struct sl_span json, const char *where, sl_lint_fn found, void *arg)
{
    const struct lint l = {where, found, arg};
    if (is_refused(&l, json))
        return;
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, 0, NULL);
    sl_lint_pattern(json, where, found, arg);
    each_operator(&l, "", root, look_at_publication);
    json_decref(root);
}
