/* Option rows: reads values by them, refuses what they do not know, and checks the rows themselves. */
#include "handlers/pipeline/options.h"

#include "base/json.h"
#include "base/nearest.h"
#include "base/span.h"
#include "handlers/pipeline/builtins.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#define INVALID "InvalidConfiguration"

static const char *const type_names[] = {
    [SL_OPTION_TEXT] = "text",          [SL_OPTION_INTEGER] = "integer",
    [SL_OPTION_BOOL] = "true or false", [SL_OPTION_ENUM] = "choice",
    [SL_OPTION_TEMPLATE] = "template",  [SL_OPTION_WHEN] = "condition",
    [SL_OPTION_JSON] = "JSON",          [SL_OPTION_OBJECTS] = "object store target",
    [SL_OPTION_TABLE] = "table target", [SL_OPTION_QUEUE] = "queue target",
};

static bool is_type(enum sl_option_type type)
{
    return (int)type > SL_OPTION_END && (int)type <= SL_OPTION_QUEUE;
}

const char *sl_options_type_name(enum sl_option_type type)
{
    return is_type(type) ? type_names[type] : "unknown";
}

static const char *json_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

static size_t count_rows(const struct sl_option *rows)
{
    size_t n = 0;
    while (rows && n <= SL_OPTIONS_MAX && rows[n].type != SL_OPTION_END)
        n++;
    return n;
}

static const struct sl_option *find_row(const struct sl_option *rows, const char *name)
{
    for (; rows && rows->type != SL_OPTION_END; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static bool has_choice(const char *values, struct sl_span text)
{
    for (const char *at = values; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (sl_span_eq(sl_span(at, strcspn(at, "|")), text))
            return true;
    return false;
}

static bool in_bounds(const struct sl_option *row, int64_t number)
{
    return (row->min == 0 && row->max == 0) || (number >= row->min && number <= row->max);
}

void sl_options_init(struct sl_option_set *set, const struct sl_option *rows, struct sl_arena *arena)
{
    *set = (struct sl_option_set){.rows = rows, .n = count_rows(rows), .arena = arena};
    set->values = sl_arena_zalloc(arena, (set->n ? set->n : 1) * sizeof(*set->values));
}

struct sl_option_value *sl_options_get(const struct sl_option_set *set, const char *name)
{
    const struct sl_option *row = find_row(set->rows, name);
    return row ? &set->values[row - set->rows] : NULL;
}

struct sl_span sl_options_text(const struct sl_option_set *set, const char *name)
{
    const struct sl_option_value *value = sl_options_get(set, name);
    return value ? value->text : sl_span(NULL, 0);
}

static struct sl_span keep(struct sl_arena *arena, struct sl_span text)
{
    return sl_span(sl_arena_copy(arena, text), text.len);
}

/* One value to be read by its row. */
struct reading {
    const struct sl_option *row;
    const struct sl_options_source *source;
    const json_t *value;
    struct sl_arena *arena;
    struct sl_option_value *out;
};

static enum sl_status wrong_type(const struct reading *r, const char *wanted, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, INVALID, "%s: is %s; write %s", r->out->path, json_type_name(r->value),
                   wanted);
}

static enum sl_status read_integer(const struct reading *r, struct sl_error *error)
{
    if (!json_is_integer(r->value))
        return wrong_type(r, "a whole number", error);
    r->out->integer = json_integer_value(r->value);
    if (!in_bounds(r->row, r->out->integer))
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: %" PRId64 " is out of range; write a number from %" PRId64 " to %" PRId64,
                       r->out->path, r->out->integer, r->row->min, r->row->max);
    return SL_OK;
}

static enum sl_status read_bool(const struct reading *r, struct sl_error *error)
{
    r->out->boolean = json_is_true(r->value);
    return json_is_boolean(r->value) ? SL_OK : wrong_type(r, "true or false", error);
}

/* The choice nearest to what was written; NULL when none is near. */
static const char *near_choice(const struct reading *r)
{
    const char *names[32];
    size_t n = 0;
    for (const char *at = r->row->values; at && n < 31; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        names[n++] = sl_arena_copy(r->arena, sl_span(at, strcspn(at, "|")));
    names[n] = NULL;
    return sl_options_closest_name(r->out->text.ptr, NULL, names);
}

static enum sl_status refuse_choice(const struct reading *r, struct sl_error *error)
{
    if (r->row->flags & SL_OPTION_SECRET)
        return sl_fail(error, SL_FATAL, INVALID, "%s: is not one of %s", r->out->path, r->row->values);
    const char *near = near_choice(r);
    return sl_fail(error, SL_FATAL, INVALID, "%s: \"%.*s\" is not one of %s%s%s%s", r->out->path,
                   SL_ARG(r->out->text), r->row->values, near ? "; did you mean \"" : "", near ? near : "",
                   near ? "\"?" : "");
}

static enum sl_status read_text(const struct reading *r, struct sl_error *error)
{
    enum sl_option_type type = r->row->type;
    if (!json_is_string(r->value))
        return wrong_type(r, "a string", error);
    r->out->text = keep(r->arena, sl_span(json_string_value(r->value), json_string_length(r->value)));
    if (type == SL_OPTION_ENUM && !has_choice(r->row->values, r->out->text))
        return refuse_choice(r, error);
    if (r->out->text.len == 0 && type != SL_OPTION_TEXT && type != SL_OPTION_TEMPLATE)
        return sl_fail(error, SL_FATAL, INVALID, "%s: is empty (%s)", r->out->path,
                       sl_options_type_name(type));
    return SL_OK;
}

/* From the file's text: a tree would keep one of a pattern's equal names. */
static enum sl_status read_json(const struct reading *r, struct sl_error *error)
{
    if (r->row->type == SL_OPTION_WHEN && !json_is_object(r->value))
        return wrong_type(r, "an object", error);
    r->out->text = keep(r->arena, sl_json_find(r->source->text, r->out->path + strlen("$.")));
    return SL_OK;
}

static enum sl_status read_value(const struct reading *r, struct sl_error *error)
{
    r->out->is_set = true;
    if (json_is_null(r->value) && (r->row->flags & SL_OPTION_NULLABLE)) {
        r->out->is_null = true;
        return SL_OK;
    }
    switch (r->row->type) {
    case SL_OPTION_INTEGER:
        return read_integer(r, error);
    case SL_OPTION_BOOL:
        return read_bool(r, error);
    case SL_OPTION_WHEN:
    case SL_OPTION_JSON:
        return read_json(r, error);
    default:
        return read_text(r, error);
    }
}

/* The built-in handler that has an option of this name; NULL: none. */
static const char *owner(const char *name)
{
    for (size_t i = 0; sl_builtins[i]; i++)
        if (find_row(sl_builtins[i]->options, name))
            return sl_builtins[i]->name;
    return NULL;
}

static enum sl_status refuse_unknown(const struct sl_option_set *set, const struct sl_options_source *source,
                                     const char *name, struct sl_error *error)
{
    const char *other = owner(name);
    if (other)
        return sl_fail(error, SL_FATAL, INVALID, "%s.%s: is not known here; it is an option of %s",
                       source->path, name, other);
    const char *near = sl_options_closest_name(name, set->rows, NULL);
    if (!near)
        near = sl_options_closest_name(name, source->foreign, NULL);
    return sl_fail(error, SL_FATAL, INVALID, "%s.%s: is not known here%s%s%s", source->path, name,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum sl_status sl_options_take(struct sl_option_set *set, const struct sl_options_source *source,
                               struct sl_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)source->object, name, value)
    {
        const struct sl_option *row = find_row(set->rows, name);
        if (!row && find_row(source->foreign, name))
            continue;
        if (!row)
            return refuse_unknown(set, source, name, error);
        struct sl_option_value *out = &set->values[row - set->rows];
        const char *path = sl_arena_printf(set->arena, "%s.%s", source->path, name);
        if (out->is_set)
            return sl_fail(error, SL_FATAL, INVALID, "%s: is also given at %s; keep one", path, out->path);
        out->path = path;
        enum sl_status status = read_value(&(struct reading){row, source, value, set->arena, out}, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

static void take_fallback(const struct sl_option *row, struct sl_option_value *out)
{
    out->is_set = true;
    out->text = sl_span_str(row->fallback);
    if (row->type == SL_OPTION_INTEGER)
        out->integer = strtoll(row->fallback, NULL, 10);
    else if (row->type == SL_OPTION_BOOL)
        out->boolean = strcmp(row->fallback, "true") == 0;
}

enum sl_status sl_options_end(struct sl_option_set *set, const char *path, struct sl_error *error)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct sl_option *row = &set->rows[i];
        if (set->values[i].is_set)
            continue;
        if (row->flags & SL_OPTION_REQUIRED)
            return sl_fail(error, SL_FATAL, INVALID, "%s.%s: is missing: %s", path, row->name,
                           row->help ? row->help : sl_options_type_name(row->type));
        if (row->fallback)
            take_fallback(row, &set->values[i]);
    }
    return SL_OK;
}

/* ---- the table itself ---- */

static const char *fault_of_fallback(const struct sl_option *row)
{
    char *end;
    if (!row->fallback)
        return NULL;
    if (row->type == SL_OPTION_INTEGER) {
        int64_t number = strtoll(row->fallback, &end, 10);
        return end == row->fallback || *end || !in_bounds(row, number)
                   ? "its fallback is not a number in range"
                   : NULL;
    }
    if (row->type == SL_OPTION_BOOL)
        return strcmp(row->fallback, "true") && strcmp(row->fallback, "false")
                   ? "its fallback is neither true nor false"
                   : NULL;
    if (row->type == SL_OPTION_ENUM)
        return has_choice(row->values, sl_span_str(row->fallback)) ? NULL
                                                                   : "its fallback is not one of its values";
    return NULL;
}

static const char *fault_of_row(const struct sl_option *rows, size_t i)
{
    const struct sl_option *row = &rows[i];
    if (!is_type(row->type))
        return "its type is not known";
    if (!row->name[0] || row->name[strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return "its name is not made of a-z, 0-9 and _";
    if (row->type == SL_OPTION_ENUM && !row->values)
        return "it has no values";
    if (row->min > row->max)
        return "its min is above its max";
    for (size_t k = 0; k < i; k++)
        if (strcmp(rows[k].name, row->name) == 0)
            return "its name is there twice";
    return fault_of_fallback(row);
}

enum sl_status sl_options_check_rows(const struct sl_option *rows, struct sl_error *error)
{
    size_t n = count_rows(rows);
    if (n > SL_OPTIONS_MAX)
        return sl_fail(error, SL_FATAL, INVALID, "its option table does not end within %d rows",
                       SL_OPTIONS_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *fault = rows[i].name ? fault_of_row(rows, i) : "it has no name";
        if (fault)
            return sl_fail(error, SL_FATAL, INVALID, "row %zu (\"%s\") of its option table: %s", i,
                           rows[i].name ? rows[i].name : "", fault);
    }
    return SL_OK;
}

/* ---- near names ---- */

const char *sl_options_closest_name(const char *name, const struct sl_option *rows, const char *const *names)
{
    struct sl_nearest search = sl_nearest_begin(sl_span_str(name));
    for (; rows && rows->type != SL_OPTION_END; rows++)
        sl_nearest_consider(&search, rows->name);
    for (; names && *names; names++)
        sl_nearest_consider(&search, *names);
    return search.best;
}
