/* Looks through a filter pattern for rules that AWS accepts and that can never match. */
#include "replay/config/lint.h"

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

/* The rules below an attribute's name: {"N": [...]}. */
static void lint_attribute(const struct lint *l, const char *name, const json_t *value)
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
        if (strcmp(type, "N") == 0 && has_operator(rule, "numeric"))
            say(l, name,
                "\"numeric\" never matches an N: its value is a string in the event; list the values "
                "(\"N\": [\"1\", \"2\"]), or filter in the function");
        if (strcmp(type, "M") == 0 && json_is_object(rule)) {
            const char *inner;
            json_t *below;
            json_object_foreach(rule, inner, below)
            {
                lint_attribute(l, inner, below);
            }
        }
        if (!is_type(type) && strcmp(type, "$or") != 0)
            say(l, name, "a type (S, N, BOOL, ...) is missing between the attribute's name and its value");
    }
}

static void lint_change(const struct lint *l, const json_t *change)
{
    static const char *const images[] = {"Keys", "NewImage", "OldImage"};
    for (size_t i = 0; i < 3; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(change, images[i]), name, value)
        {
            if (strcmp(name, "$or") != 0)
                lint_attribute(l, name, value);
        }
    }
}

void sl_lint_pattern(struct sl_span json, const char *where, sl_lint_fn found, void *arg)
{
    const struct lint l = {where, found, arg};
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, 0, NULL);
    lint_change(&l, json_object_get(root, "dynamodb"));
    json_decref(root);
}
