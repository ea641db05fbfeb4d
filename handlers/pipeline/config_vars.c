/* Variables that come beside the environment: those of SLUICE_VARIABLES, and the configuration's own. The
 * environment's own value counts first, so a person who tries a configuration needs no secrets. */
#include "handlers/pipeline/config_private.h"

#include "base/error.h"
#include "base/span.h"
#include "sinks/target.h"

#include <jansson.h>
#include <string.h>

#define INVALID "InvalidConfiguration"

struct reading {
    const struct sl_vars *vars;
    struct sl_arena *arena;
    const char **list; /* "NAME=value" */
    size_t n;
};

static enum sl_status check_name(const char *name, const char *path, struct sl_error *error)
{
    if (!name[0] || name[strspn(name, SL_VARS_LETTERS)] || (name[0] >= '0' && name[0] <= '9'))
        return sl_fail(error, SL_FATAL, INVALID, "%s: is not the name of a variable; use A-Z a-z 0-9 _",
                       path);
    if (strncmp(name, "AWS_", 4) == 0 || strncmp(name, "SLUICE_", 7) == 0)
        return sl_fail(error, SL_FATAL, INVALID,
                       "%s: is read before the configuration; set it in the environment", path);
    return SL_OK;
}

static bool is_set(const struct reading *r, const char *name)
{
    const struct sl_vars so_far = {.list = r->list};
    return sl_vars_get(r->vars, name) || sl_vars_get(&so_far, name);
}

static enum sl_status read_secret(const struct reading *r, struct sl_span reference, const char *path,
                                  const char **out, struct sl_error *error)
{
    *out = SL_SECRET_STAND_IN;
    if (!r->vars->secret)
        return SL_OK;
    sl_arena_keep_secret(r->arena);
    enum sl_status status = r->vars->secret(r->vars->arg, reference, out, error);
    sl_error_context(error, "%s", path);
    return status;
}

static enum sl_status read_plain(const struct reading *r, struct sl_span text, const char *path,
                                 const char **out, struct sl_error *error)
{
    struct sl_buffer buffer;
    enum sl_status status = sl_config_check_string(text, path, r->vars, error);
    sl_buffer_init_in(&buffer, r->arena, UINT32_MAX);
    if (status == SL_OK) {
        sl_config_expand(text, r->vars, false, &buffer);
        *out = sl_arena_copy(r->arena, sl_buffer_span(&buffer));
    }
    return status;
}

static enum sl_status read_variable(struct reading *r, const char *name, const json_t *value,
                                    const char *path, struct sl_error *error)
{
    struct sl_span text = sl_span(json_string_value(value), json_string_length(value)), reference;
    const char *found = NULL;
    enum sl_status status = check_name(name, path, error);
    if (status == SL_OK && !json_is_string(value))
        status = sl_fail(error, SL_FATAL, INVALID, "%s: is not a text", path);
    if (status != SL_OK || is_set(r, name))
        return status;
    status = sl_config_is_secret(text, &reference) ? read_secret(r, reference, path, &found, error)
                                                   : read_plain(r, text, path, &found, error);
    if (status == SL_OK)
        r->list[r->n++] = sl_arena_printf(r->arena, "%s=%s", name, found);
    return status;
}

static enum sl_status read_object(struct reading *r, const json_t *object, const char *path,
                                  struct sl_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        enum sl_status status =
            read_variable(r, name, value, sl_arena_printf(r->arena, "%s.%s", path, name), error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

static size_t count(const struct sl_vars *vars)
{
    size_t n = 0;
    while (vars->list && vars->list[n])
        n++;
    return n;
}

enum sl_status sl_config_read_variables(const json_t *root, const struct sl_vars *vars,
                                        struct sl_arena *arena, struct sl_vars *out, struct sl_error *error)
{
    const json_t *own = json_object_get(root, "variables");
    const char *given = sl_vars_or(vars, "SLUICE_VARIABLES", NULL);
    json_t *more = given ? json_loads(given, JSON_REJECT_DUPLICATES, NULL) : NULL;
    struct reading r = {.vars = vars, .arena = arena};
    *out = *vars;
    enum sl_status status = SL_OK;
    if (given && !json_is_object(more))
        status = sl_fail(error, SL_FATAL, INVALID,
                         "the variable SLUICE_VARIABLES is not a JSON object; write {\"NAME\": \"value\"}");
    else if (own && !json_is_object(own))
        status =
            sl_fail(error, SL_FATAL, INVALID, "$.variables: is not an object; write {\"NAME\": \"value\"}");
    if (status == SL_OK && (own || more)) {
        size_t n = json_object_size(more) + json_object_size(own), n_vars = count(vars);
        r.list = sl_arena_zalloc(arena, (n + n_vars + 1) * sizeof(*r.list));
        status = read_object(&r, more, "the variable SLUICE_VARIABLES", error);
        if (status == SL_OK)
            status = read_object(&r, own, "$.variables", error);
        if (n_vars)
            memcpy(r.list + r.n, vars->list, n_vars * sizeof(*r.list));
        *out = (struct sl_vars){.list = r.list};
    }
    json_decref(more);
    return status;
}
