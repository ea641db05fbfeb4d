#include "handlers/config.h"

#include "base/json.h"
#include "base/span.h"

/* A member of an object whose text was checked: its name between the quotes, and the byte behind its value.
 * NULL at the object's end. */
static const char *next_member(const char *p, const char *end, struct sl_span *name)
{
    bool escaped;
    p = sl_json_space(p, end);
    if (p < end && (*p == ',' || *p == '{'))
        p = sl_json_space(p + 1, end);
    if (p >= end || *p != '"')
        return NULL;
    const char *quote = sl_json_string_end(p + 1, end, &escaped);
    *name = sl_span(p + 1, (size_t)(quote - p - 1));
    p = sl_json_space(quote + 1, end); /* the colon */
    return sl_json_value_end(sl_json_space(p + 1, end), end);
}

/* Names are compared as they are written: who writes one of them with \u escapes has seen the other. */
static enum sl_status check_object(struct sl_span object, const char *path, struct sl_error *error)
{
    struct sl_span name, other;
    const char *end = object.ptr + object.len;
    for (const char *p = next_member(object.ptr, end, &name); p; p = next_member(p, end, &name))
        for (const char *q = next_member(p, end, &other); q; q = next_member(q, end, &other))
            if (sl_span_eq(name, other))
                return sl_fail(error, SL_FATAL, "InvalidConfiguration", "%s.%.*s: is there twice; keep one",
                               path, SL_ARG(name));
    return SL_OK;
}

static enum sl_status check_at(const struct sl_config *config, const char *path, struct sl_error *error)
{
    struct sl_span object = sl_json_find(config->text, path[1] ? path + 2 : "");
    return object.len && object.ptr[0] == '{' ? check_object(object, path, error) : SL_OK;
}

enum sl_status sl_config_check_names(const struct sl_config *config, struct sl_error *error)
{
    enum sl_status status = check_at(config, "$", error);
    for (size_t i = 0; i < config->n_routes && status == SL_OK; i++) {
        const struct sl_config_route *route = &config->routes[i];
        status = check_at(config, route->path, error);
        if (status == SL_OK && route->options.object)
            status = check_at(config, route->options.path, error);
    }
    return status;
}
