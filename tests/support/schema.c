#include "tests/support/schema.h"

#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum test_schema_verdict verdict;

struct judging {
    const json_t *root, *schema, *value;
};

static verdict fits(const struct judging *j, const json_t *schema, const json_t *value)
{
    return test_schema_fits(j->root, schema, value);
}

static verdict as_verdict(bool is)
{
    return is ? TEST_SCHEMA_YES : TEST_SCHEMA_NO;
}

static verdict both(verdict a, verdict b)
{
    return a < b ? a : b;
}

static verdict either(verdict a, verdict b)
{
    return a > b ? a : b;
}

static verdict opposite(verdict a)
{
    return (verdict)(TEST_SCHEMA_YES - a);
}

/* ---- one keyword each ---- */

static bool is_type(const json_t *value, const char *name)
{
    static const char *const names[] = {"object", "array",   "string",  "integer",
                                        "number", "boolean", "boolean", "null"};
    static const json_type types[] = {JSON_OBJECT,  JSON_ARRAY, JSON_STRING, JSON_INTEGER,
                                      JSON_INTEGER, JSON_TRUE,  JSON_FALSE,  JSON_NULL};
    if (strcmp(name, "number") == 0 && json_is_real(value))
        return true;
    for (size_t i = 0; i < 8; i++)
        if (strcmp(name, names[i]) == 0 && json_typeof(value) == types[i])
            return true;
    return false;
}

static verdict of_type(const struct judging *j, const json_t *types)
{
    size_t i;
    json_t *name;
    if (json_is_string(types))
        return as_verdict(is_type(j->value, json_string_value(types)));
    json_array_foreach(types, i, name) if (is_type(j->value, json_string_value(name))) return TEST_SCHEMA_YES;
    return TEST_SCHEMA_NO;
}

static verdict of_enum(const struct judging *j, const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (json_equal(one, j->value)) return TEST_SCHEMA_YES;
    return TEST_SCHEMA_NO;
}

static verdict of_const(const struct judging *j, const json_t *one)
{
    return as_verdict(json_equal(one, j->value));
}

static verdict of_minimum(const struct judging *j, const json_t *least)
{
    return as_verdict(!json_is_number(j->value) || json_number_value(j->value) >= json_number_value(least));
}

static verdict of_maximum(const struct judging *j, const json_t *most)
{
    return as_verdict(!json_is_number(j->value) || json_number_value(j->value) <= json_number_value(most));
}

static verdict of_min_length(const struct judging *j, const json_t *least)
{
    return as_verdict(!json_is_string(j->value) ||
                      (json_int_t)json_string_length(j->value) >= json_integer_value(least));
}

static verdict of_min_items(const struct judging *j, const json_t *least)
{
    return as_verdict(!json_is_array(j->value) ||
                      (json_int_t)json_array_size(j->value) >= json_integer_value(least));
}

static verdict of_max_items(const struct judging *j, const json_t *most)
{
    return as_verdict(!json_is_array(j->value) ||
                      (json_int_t)json_array_size(j->value) <= json_integer_value(most));
}

static verdict of_min_properties(const struct judging *j, const json_t *least)
{
    return as_verdict(!json_is_object(j->value) ||
                      (json_int_t)json_object_size(j->value) >= json_integer_value(least));
}

static verdict of_max_properties(const struct judging *j, const json_t *most)
{
    return as_verdict(!json_is_object(j->value) ||
                      (json_int_t)json_object_size(j->value) <= json_integer_value(most));
}

/* The control characters of a schema's brackets, as POSIX writes them. */
static char *posix(const char *pattern)
{
    static const char range[] = "\\u0000-\\u001f";
    char *text = strdup(pattern), *at;
    while ((at = strstr(text, range))) {
        memcpy(at, "\1-\37", 3);
        memmove(at + 3, at + strlen(range), strlen(at + strlen(range)) + 1);
    }
    return text;
}

/* Compiled once for each pattern of the schema, which outlives its use. */
static const regex_t *compiled(const json_t *pattern)
{
    static struct {
        const json_t *pattern;
        regex_t regex;
    } known[128];
    size_t i = 0;
    while (known[i].pattern && known[i].pattern != pattern)
        i++;
    if (!known[i].pattern) {
        char *text = posix(json_string_value(pattern));
        known[i].pattern = json_incref((json_t *)pattern);
        if (i + 1 == sizeof(known) / sizeof(known[0]) ||
            regcomp(&known[i].regex, text, REG_EXTENDED | REG_NOSUB) != 0)
            abort();
        free(text);
    }
    return &known[i].regex;
}

static verdict of_pattern(const struct judging *j, const json_t *pattern)
{
    if (!json_is_string(j->value))
        return TEST_SCHEMA_YES;
    if (strstr(json_string_value(pattern), "(?"))
        return TEST_SCHEMA_MAYBE;
    return as_verdict(regexec(compiled(pattern), json_string_value(j->value), 0, NULL, 0) == 0);
}

static verdict of_ref(const struct judging *j, const json_t *ref)
{
    const char *name = json_string_value(ref) + strlen("#/$defs/");
    const json_t *at = json_object_get(j->root, "$defs");
    for (const char *end; at && (end = strchr(name, '/')); name = end + 1)
        at = json_object_getn(at, name, (size_t)(end - name));
    return fits(j, json_object_get(at, name), j->value);
}

static verdict of_any(const struct judging *j, const json_t *list)
{
    verdict v = TEST_SCHEMA_NO;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) v = either(v, fits(j, one, j->value));
    return v;
}

static verdict of_all(const struct judging *j, const json_t *list)
{
    verdict v = TEST_SCHEMA_YES;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) v = both(v, fits(j, one, j->value));
    return v;
}

static verdict of_not(const struct judging *j, const json_t *schema)
{
    return opposite(fits(j, schema, j->value));
}

static verdict of_if(const struct judging *j, const json_t *condition)
{
    const json_t *then = json_object_get(j->schema, "then");
    verdict v = fits(j, condition, j->value);
    return v == TEST_SCHEMA_NO ? TEST_SCHEMA_YES : either(opposite(v), fits(j, then, j->value));
}

static verdict of_items(const struct judging *j, const json_t *schema)
{
    verdict v = TEST_SCHEMA_YES;
    size_t i;
    json_t *one;
    json_array_foreach(j->value, i, one) v = both(v, fits(j, schema, one));
    return v;
}

static verdict of_required(const struct judging *j, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i,
                       name) if (json_is_object(j->value) &&
                                 !json_object_get(j->value, json_string_value(name))) return TEST_SCHEMA_NO;
    return TEST_SCHEMA_YES;
}

static verdict of_properties(const struct judging *j, const json_t *properties)
{
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *schema;
    json_object_foreach((json_t *)properties, name, schema)
    {
        const json_t *value = json_object_get(j->value, name);
        v = value ? both(v, fits(j, schema, value)) : v;
    }
    return v;
}

static verdict of_additional(const struct judging *j, const json_t *schema)
{
    const json_t *known = json_object_get(j->schema, "properties");
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)j->value, name, value)
    {
        v = json_object_get(known, name) ? v : both(v, fits(j, schema, value));
    }
    return v;
}

static verdict of_property_names(const struct judging *j, const json_t *schema)
{
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)j->value, name, value)
    {
        json_t *text = json_string(name);
        v = both(v, fits(j, schema, text));
        json_decref(text);
    }
    return v;
}

static verdict of_dependent_schemas(const struct judging *j, const json_t *schemas)
{
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *schema;
    json_object_foreach((json_t *)schemas, name, schema)
    {
        v = json_object_get(j->value, name) ? both(v, fits(j, schema, j->value)) : v;
    }
    return v;
}

static verdict of_dependent_required(const struct judging *j, const json_t *lists)
{
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *names;
    json_object_foreach((json_t *)lists, name, names)
    {
        v = json_object_get(j->value, name) ? both(v, of_required(j, names)) : v;
    }
    return v;
}

static verdict of_unknown(const struct judging *j, const json_t *any)
{
    (void)j;
    (void)any;
    return TEST_SCHEMA_MAYBE;
}

static verdict of_nothing(const struct judging *j, const json_t *any)
{
    (void)j;
    (void)any;
    return TEST_SCHEMA_YES;
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    verdict (*judge)(const struct judging *j, const json_t *argument);
} keywords[] = {{"type", of_type},
                {"enum", of_enum},
                {"const", of_const},
                {"minimum", of_minimum},
                {"maximum", of_maximum},
                {"minLength", of_min_length},
                {"minItems", of_min_items},
                {"maxItems", of_max_items},
                {"minProperties", of_min_properties},
                {"maxProperties", of_max_properties},
                {"pattern", of_pattern},
                {"$ref", of_ref},
                {"anyOf", of_any},
                {"allOf", of_all},
                {"not", of_not},
                {"if", of_if},
                {"then", of_nothing},
                {"items", of_items},
                {"required", of_required},
                {"properties", of_properties},
                {"additionalProperties", of_additional},
                {"propertyNames", of_property_names},
                {"dependentSchemas", of_dependent_schemas},
                {"dependentRequired", of_dependent_required},
                {"description", of_nothing},
                {"default", of_nothing},
                {"title", of_nothing},
                {"$schema", of_nothing},
                {"$defs", of_nothing}};

enum test_schema_verdict test_schema_fits(const json_t *root, const json_t *schema, const json_t *value)
{
    struct judging j = {root, schema, value};
    verdict v = TEST_SCHEMA_YES;
    const char *name;
    json_t *argument;
    if (!json_is_object(schema))
        return as_verdict(json_is_true(schema));
    json_object_foreach((json_t *)schema, name, argument)
    {
        size_t i = 0, n = sizeof(keywords) / sizeof(keywords[0]);
        while (i < n && strcmp(keywords[i].name, name) != 0)
            i++;
        v = both(v, i < n ? keywords[i].judge(&j, argument) : of_unknown(&j, argument));
    }
    return v;
}
