/* The text of a target, taken apart. */
#include "base/url.h"

#include "base/span.h"

#include "base/hex.h"

static bool is_scheme_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void sl_url_decode(struct sl_buffer *out, struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = -1, low = -1;
        if (text.ptr[i] == '%' && text.len - i > 2) {
            high = sl_hex_digit(text.ptr[i + 1]);
            low = sl_hex_digit(text.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            sl_buffer_add_char(out, (char)(high * 16 + low));
            i += 2;
        } else {
            sl_buffer_add_char(out, text.ptr[i]);
        }
    }
}

static struct sl_span unescape(struct sl_span text, struct sl_arena *arena)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, arena, text.len + 1);
    sl_url_decode(&out, text);
    sl_buffer_add_char(&out, '\0');
    return sl_span(out.ptr, out.len - 1);
}

static enum sl_status add_param(struct sl_url *url, struct sl_span pair, struct sl_arena *arena,
                                struct sl_error *error)
{
    if (url->n_params == SL_URL_PARAMS)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: more than %d parameters",
                       SL_ARG(url->shown), SL_URL_PARAMS);
    const char *eq = memchr(pair.ptr, '=', pair.len);
    size_t name = eq ? (size_t)(eq - pair.ptr) : pair.len;
    struct sl_span value = eq ? sl_span_from(pair, name + 1) : SL_LIT("");
    url->params[url->n_params].name = unescape(sl_span(pair.ptr, name), arena);
    url->params[url->n_params++].value = unescape(value, arena);
    return SL_OK;
}

/* sqs://https://name:password@host/queue has two places where a name may stand. */
struct sl_span sl_url_shown(struct sl_span text)
{
    struct sl_span out = text;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] != '/' || text.ptr[i + 1] != '/')
            continue;
        size_t begin = i + 2, end = begin;
        while (end < text.len && text.ptr[end] != '/')
            end++;
        const char *at = end > begin ? memrchr(text.ptr + begin, '@', end - begin) : NULL;
        if (at)
            out = sl_span_from(text, (size_t)(at + 1 - text.ptr));
    }
    const char *query = out.len ? memchr(out.ptr, '?', out.len) : NULL;
    return query ? sl_span(out.ptr, (size_t)(query - out.ptr)) : out;
}

enum sl_status sl_url_parse(struct sl_span text, struct sl_arena *arena, struct sl_url *out,
                            struct sl_error *error)
{
    *out = (struct sl_url){.shown = sl_url_shown(text)};
    size_t n = 0;
    while (n < text.len && is_scheme_char(text.ptr[n]))
        n++;
    if (n == 0 || n == text.len || text.ptr[n] != ':')
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target \"%.*s\" has no scheme; write it like file:folder, s3://bucket/prefix or sqs://queue",
            SL_ARG(text));
    out->scheme = sl_span(text.ptr, n);
    struct sl_span rest = sl_span_from(text, n + 1);
    out->has_slashes = sl_span_starts(rest, SL_LIT("//"));
    if (out->has_slashes)
        rest = sl_span_from(rest, 2);
    const char *path = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (out->has_slashes && rest.len && memchr(rest.ptr, '@', path ? (size_t)(path - rest.ptr) : rest.len))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: a user or a password before '@' cannot stand in a target; credentials "
            "come from the environment, a profile or a role",
            SL_ARG(out->scheme));
    const char *mark = memchr(rest.ptr, '?', rest.len);
    out->rest = mark ? sl_span(rest.ptr, (size_t)(mark - rest.ptr)) : rest;
    struct sl_span query = mark ? sl_span_from(rest, out->rest.len + 1) : SL_LIT("");
    while (query.len) {
        const char *amp = memchr(query.ptr, '&', query.len);
        size_t len = amp ? (size_t)(amp - query.ptr) : query.len;
        if (len && add_param(out, sl_span(query.ptr, len), arena, error) != SL_OK)
            return SL_FATAL;
        query = sl_span_from(query, amp ? len + 1 : len);
    }
    return SL_OK;
}

struct sl_span sl_url_param(struct sl_url *url, const char *name)
{
    struct sl_span value = {0};
    for (size_t i = 0; i < url->n_params; i++)
        if (sl_span_is(url->params[i].name, name)) {
            url->params[i].used = true;
            value = url->params[i].value;
        }
    return value;
}

/* All names that there are look like this. What does not may be half of a password. */
static struct sl_span shown_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] != '_' && (name.ptr[i] < 'a' || name.ptr[i] > 'z'))
            return SL_LIT("...");
    return name;
}

enum sl_status sl_url_done(const struct sl_url *url, const char *known, struct sl_error *error)
{
    for (size_t i = 0; i < url->n_params; i++)
        if (!url->params[i].used)
            return sl_fail(error, SL_FATAL, "InvalidTarget",
                           "target %.*s: unknown parameter \"%.*s\"; known here: %s", SL_ARG(url->shown),
                           SL_ARG(shown_name(url->params[i].name)), known);
    return SL_OK;
}
