/* The environment of a function that takes work items. */
#include "runtime/work/config.h"

#include "sinks/target.h"

#include <stdlib.h>

#define CODE "BadWorkSettings"

enum sl_status sl_work_is_on(const struct sl_vars *vars, bool *out, struct sl_error *error)
{
    const char *text = sl_vars_or(vars, "SLUICE_WORK_ITEMS", "0");
    *out = strcmp(text, "1") == 0;
    return *out || strcmp(text, "0") == 0
               ? SL_OK
               : sl_fail(error, SL_FATAL, CODE, "SLUICE_WORK_ITEMS is \"%s\"; use 1 or 0", text);
}

static enum sl_status need(const struct sl_vars *vars, const char *name, struct sl_span *out,
                           struct sl_error *error)
{
    *out = sl_span_str(sl_vars_or(vars, name, NULL));
    return out->len ? SL_OK
                    : sl_fail(error, SL_FATAL, CODE,
                              "%s is not set; a function with SLUICE_WORK_ITEMS=1 needs it", name);
}

static enum sl_status read_number(const struct sl_vars *vars, const char *name, double max, double *out,
                                  struct sl_error *error)
{
    const char *text = sl_vars_or(vars, name, NULL);
    if (!text)
        return SL_OK;
    char *end;
    double value = strtod(text, &end);
    if (*end || !(value >= 0 && value <= max))
        return sl_fail(error, SL_FATAL, CODE, "%s is \"%s\"; use a number from 0 to %.0f", name, text, max);
    *out = value;
    return SL_OK;
}

static enum sl_status read_count(const struct sl_vars *vars, const char *name, uint32_t max, uint32_t *out,
                                 struct sl_error *error)
{
    double value = *out;
    enum sl_status status = read_number(vars, name, max, &value, error);
    *out = (uint32_t)value;
    if (status == SL_OK && *out == 0)
        return sl_fail(error, SL_FATAL, CODE, "%s is 0; use a number from 1 to %u", name, max);
    return status;
}

static enum sl_status read_source(const struct sl_vars *vars, struct sl_work_config *c,
                                  struct sl_error *error)
{
    if (need(vars, "SLUICE_WORK_SOURCE", &c->source, error) != SL_OK)
        return SL_FATAL;
    enum sl_port_kind kind = sl_target_kind(c->source);
    c->is_scan = kind == SL_PORT_TABLE;
    return kind != SL_PORT_QUEUE
               ? SL_OK
               : sl_fail(
                     error, SL_FATAL, CODE,
                     "SLUICE_WORK_SOURCE is %.*s; use s3://BUCKET/PREFIX/AWSDynamoDB/ID for an export, or "
                     "dynamodb://TABLE for a scan",
                     SL_ARG(c->source));
}

/* "s3://bucket/a/b" is the bucket and "a/b/". */
static void split_place(struct sl_arena *arena, struct sl_work_config *c)
{
    c->bucket = c->prefix = SL_LIT("");
    if (!sl_span_starts(c->place, SL_LIT("s3://")))
        return;
    struct sl_span rest = sl_span_from(c->place, 5);
    const char *mark = memchr(rest.ptr, '?', rest.len);
    rest.len = mark ? (size_t)(mark - rest.ptr) : rest.len;
    const char *slash = memchr(rest.ptr, '/', rest.len);
    c->bucket = sl_span(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    struct sl_span prefix = slash ? sl_span_from(rest, c->bucket.len + 1) : SL_LIT("");
    while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    if (prefix.len)
        c->prefix = sl_span_str(sl_arena_printf(arena, "%.*s/", SL_ARG(prefix)));
}

enum sl_status sl_work_config_read(const struct sl_vars *vars, struct sl_arena *arena,
                                   struct sl_work_config *out, struct sl_error *error)
{
    *out = (struct sl_work_config){.concurrency = 40, .segments = 256};
    out->keys = sl_vars_or(vars, "SLUICE_WORK_KEYS", NULL);
    enum sl_status status = read_source(vars, out, error);
    if (status == SL_OK)
        status = need(vars, "SLUICE_WORK_PLACE", &out->place, error);
    if (status == SL_OK)
        status =
            read_count(vars, "SLUICE_WORK_CONCURRENCY", SL_WORK_CONCURRENCY_MAX, &out->concurrency, error);
    if (status == SL_OK)
        status = read_count(vars, "SLUICE_WORK_SEGMENTS", SL_WORK_PIECES_MAX, &out->segments, error);
    if (status == SL_OK)
        status = read_number(vars, "SLUICE_WORK_WRITE_UNITS", 1e9, &out->write_units, error);
    if (status == SL_OK)
        status = read_number(vars, "SLUICE_WORK_READ_UNITS", 1e9, &out->read_units, error);
    if (status == SL_OK)
        split_place(arena, out);
    return status;
}

double sl_work_share(double asked, double all, uint32_t workers)
{
    return all > 0 && (asked <= 0 || asked > all) ? all / workers : asked;
}

bool sl_work_is_plain(struct sl_span path)
{
    while (path.len) {
        const char *slash = memchr(path.ptr, '/', path.len);
        struct sl_span name = sl_span(path.ptr, slash ? (size_t)(slash - path.ptr) : path.len);
        if (!name.len || sl_span_is(name, ".") || sl_span_is(name, "..") ||
            memchr(name.ptr, '\\', name.len) || memchr(name.ptr, '\0', name.len))
            return false;
        path = sl_span_from(path, name.len + (slash ? 1 : 0));
    }
    return true;
}

bool sl_work_has_file(const struct sl_work_config *config, struct sl_span file)
{
    return !config->is_scan && file.len && sl_work_is_plain(file);
}

struct sl_span sl_work_key_below(const struct sl_work_config *config, struct sl_span key)
{
    struct sl_span below = sl_span_from(key, config->prefix.len);
    bool is_within = sl_span_starts(key, config->prefix) && below.len && sl_work_is_plain(below);
    return is_within ? below : sl_span(NULL, 0);
}
