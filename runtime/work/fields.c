/* Members of a work item, read and checked by a table. */
#include "runtime/work/fields.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#include <math.h>
#include <stdlib.h>

#define CODE         "BadWorkItem"
#define NUMBER_BYTES 32

static const char *const types[] = {
    [SL_WORK_TEXT] = "a text",
    [SL_WORK_COUNT] = "a whole number",
    [SL_WORK_NUMBER] = "a number, 0 or more",
    [SL_WORK_BOOL] = "a boolean",
    [SL_WORK_OBJECT] = "an object",
};

static const struct sl_work_field *find(const struct sl_work_field *fields, size_t n, struct sl_span name)
{
    for (size_t i = 0; i < n; i++)
        if (sl_json_text_is(name, sl_span_str(fields[i].name)))
            return &fields[i];
    return NULL;
}

static bool read_number(struct sl_span value, double *out)
{
    char text[NUMBER_BYTES];
    if (value.len >= sizeof(text) || !(value.ptr[0] >= '0' && value.ptr[0] <= '9'))
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    *out = strtod(text, NULL);
    return isfinite(*out);
}

bool sl_work_count_read(struct sl_span value, uint64_t *out)
{
    double number;
    if (!read_number(value, &number) || number != floor(number) || number > (double)(UINT64_C(1) << 53))
        return false;
    *out = (uint64_t)number;
    return true;
}

static bool read_text(struct sl_span value, struct sl_arena *arena, struct sl_span *out)
{
    if (value.ptr[0] != '"' || value.len < 3)
        return false;
    *out = sl_json_unescape(sl_span(value.ptr + 1, value.len - 2), arena);
    return true;
}

static bool read_bool(struct sl_span value, bool *out)
{
    *out = sl_span_is(value, "true");
    return *out || sl_span_is(value, "false");
}

static bool read_object(struct sl_span value, struct sl_span *out)
{
    *out = value;
    return value.ptr[0] == '{';
}

static bool read_value(const struct sl_work_field *field, struct sl_span value, struct sl_arena *arena)
{
    switch (field->type) {
    case SL_WORK_TEXT:
        return read_text(value, arena, field->out);
    case SL_WORK_COUNT:
        return sl_work_count_read(value, field->out);
    case SL_WORK_NUMBER:
        return read_number(value, field->out);
    case SL_WORK_BOOL:
        return read_bool(value, field->out);
    case SL_WORK_OBJECT:
        return read_object(value, field->out);
    }
    return false;
}

static enum sl_status check_required(struct sl_span text, const char *what,
                                     const struct sl_work_field *fields, size_t n, struct sl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_span value = sl_json_walk_member(text, sl_span_str(fields[i].name));
        if (fields[i].is_required && (!value.ptr || sl_span_is(value, "null")))
            return sl_fail(error, SL_REJECT, CODE, "%s has no member \"%s\"", what, fields[i].name);
    }
    return SL_OK;
}

enum sl_status sl_work_fields_read(struct sl_span text, const char *what, const struct sl_work_field *fields,
                                   size_t n, struct sl_arena *arena, struct sl_error *error)
{
    if (!text.len || text.ptr[0] != '{')
        return sl_fail(error, SL_REJECT, CODE, "%s is not an object", what);
    struct sl_json_walk walk = sl_json_walk(text);
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value)) {
        const struct sl_work_field *field = find(fields, n, name);
        if (!field)
            return sl_fail(error, SL_REJECT, CODE, "%s has a member \"%.*s\", which means nothing there",
                           what, (int)(name.len < 64 ? name.len : 64), name.ptr);
        if (!sl_span_is(value, "null") && !read_value(field, value, arena))
            return sl_fail(error, SL_REJECT, CODE, "%s.%s is not %s", what, field->name, types[field->type]);
    }
    return check_required(text, what, fields, n, error);
}

void sl_work_add_text(struct sl_buffer *out, const char *name, struct sl_span text)
{
    if (text.ptr)
        sl_json_add_member(out, name, text);
}

void sl_work_add_units(struct sl_buffer *out, const char *name, double units)
{
    if (units > 0)
        sl_buffer_printf(out, ",\"%s\":%.3f", name, units);
}

enum sl_status sl_work_step_read(struct sl_span text, const char *what, const char *const names[3], int *out,
                                 struct sl_error *error)
{
    for (*out = 0; *out < 3; ++*out)
        if (sl_span_is(text, names[*out]))
            return SL_OK;
    return sl_fail(error, SL_REJECT, CODE, "%s.step: use \"%s\", \"%s\" or \"%s\"", what, names[0], names[1],
                   names[2]);
}
