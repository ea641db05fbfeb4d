/* What is done with the configuration's text, beside its tree: variables, and names that are there twice. */
#include "handlers/pipeline/config_private.h"

#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"

#include <jansson.h>

#define INVALID "InvalidConfiguration"

/* ---- ${NAME} ---- */

/* Bytes of the place "${NAME}" at `at`, its name in `name`; 0 when it is not well formed. */
static size_t place_at(struct sl_span at, struct sl_span *name)
{
    size_t n = 2;
    while (n < at.len && strchr(SL_VARS_LETTERS, at.ptr[n]) && at.ptr[n])
        n++;
    *name = sl_span(at.ptr + 2, n - 2);
    bool is_digit = name->len && name->ptr[0] >= '0' && name->ptr[0] <= '9';
    return n < at.len && at.ptr[n] == '}' && name->len && !is_digit ? n + 1 : 0;
}

static bool is_secret(struct sl_span at)
{
    return sl_span_starts(at, SL_LIT("${secretsmanager:")) || sl_span_starts(at, SL_LIT("${ssm:"));
}

bool sl_config_is_secret(struct sl_span text, struct sl_span *reference)
{
    if (!is_secret(text) || text.ptr[text.len - 1] != '}')
        return false;
    *reference = sl_span(text.ptr + 2, text.len - 3);
    return !memchr(reference->ptr, '}', reference->len);
}

static const char *variable(const struct sl_vars *vars, struct sl_span name)
{
    char text[256];
    if (name.len >= sizeof(text))
        return NULL;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    return sl_vars_get(vars, text);
}

enum sl_status sl_config_check_string(struct sl_span text, const char *path, const struct sl_vars *vars,
                                      struct sl_error *error)
{
    for (size_t i = 0; i < text.len; i++) {
        struct sl_span name, at = sl_span_from(text, i);
        if (sl_span_starts(at, SL_LIT("$${")))
            i += 2;
        if (!sl_span_starts(at, SL_LIT("${")))
            continue;
        size_t n = place_at(at, &name);
        if (is_secret(at))
            return sl_fail(error, SL_FATAL, INVALID,
                           "%s: a secret is the whole value of a variable: write \"variables\": {\"NAME\": "
                           "\"${ssm:...}\"} at the top, and the NAME here",
                           path);
        if (n == 0)
            return sl_fail(error, SL_FATAL, INVALID,
                           "%s: \"${\" does not begin a ${NAME}; for the two characters write \"$${\"", path);
        if (!variable(vars, name))
            return sl_fail(error, SL_FATAL, INVALID,
                           "%s: ${%.*s} is not set in the environment, nor in \"variables\"", path,
                           SL_ARG(name));
        i += n - 1;
    }
    return SL_OK;
}

enum sl_status sl_config_check_variables(const json_t *value, const char *path, const struct sl_vars *vars,
                                         struct sl_arena *arena, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    const char *name;
    json_t *child;
    size_t i;
    if (json_is_string(value))
        return sl_config_check_string(sl_span(json_string_value(value), json_string_length(value)), path,
                                      vars, error);
    json_array_foreach((json_t *)value, i, child)
    {
        status =
            sl_config_check_variables(child, sl_arena_printf(arena, "%s[%zu]", path, i), vars, arena, error);
        if (status != SL_OK)
            return status;
    }
    json_object_foreach((json_t *)value, name, child)
    {
        const char *below = sl_arena_printf(arena, "%s.%s", path, name);
        status = sl_config_check_string(sl_span_str(name), below, vars, error);
        if (status == SL_OK)
            status = sl_config_check_variables(child, below, vars, arena, error);
        if (status != SL_OK)
            return status;
    }
    return status;
}

/* "${" is not JSON outside a string. So every place is inside one, where the escaped value is right. */
void sl_config_expand(struct sl_span text, const struct sl_vars *vars, bool is_json, struct sl_buffer *out)
{
    for (size_t i = 0; i < text.len; i++) {
        struct sl_span name, at = sl_span_from(text, i);
        size_t n = sl_span_starts(at, SL_LIT("${")) ? place_at(at, &name) : 0;
        if (sl_span_starts(at, SL_LIT("$${"))) {
            sl_buffer_add_str(out, "${");
            i += 2;
        } else if (n && variable(vars, name)) {
            if (is_json)
                sl_json_add_escaped(out, sl_span_str(variable(vars, name)));
            else
                sl_buffer_add_str(out, variable(vars, name));
            i += n - 1;
        } else {
            sl_buffer_add_char(out, text.ptr[i]);
        }
    }
}

/* ---- names that are there twice ---- */

/* Names are compared as they are written: nobody writes one name both plainly and with \u escapes by mistake.
 */
enum sl_status sl_config_check_object(struct sl_span object, const char *path, struct sl_error *error)
{
    struct sl_span name, other, value;
    struct sl_json_walk walk = sl_json_walk(object);
    while (sl_json_walk_next(&walk, &name, &value))
        for (struct sl_json_walk rest = walk; sl_json_walk_next(&rest, &other, &value);)
            if (sl_span_eq(name, other))
                return sl_fail(error, SL_FATAL, INVALID, "%s.%.*s: is there twice; keep one", path,
                               SL_ARG(name));
    return SL_OK;
}
