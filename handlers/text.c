#include "handlers/text.h"

#include <stdio.h>

size_t sl_text_index(struct sl_span text, const char *const *list)
{
    size_t i = 0;
    while (list[i] && !sl_text_eq(text, sl_text_of(list[i])))
        i++;
    return i;
}

bool sl_text_is_digits(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len > 0;
}

/* ---- attribute values ---- */

static const struct {
    struct sl_span before, after;
} tags[] = {
    [SL_NONE] = {{"", 0}, {"", 0}},
    [SL_S] = {{"{\"S\":\"", 6}, {"\"}", 2}},
    [SL_N] = {{"{\"N\":\"", 6}, {"\"}", 2}},
    [SL_B] = {{"{\"B\":\"", 6}, {"\"}", 2}},
    [SL_BOOL] = {{"{\"BOOL\":", 8}, {"}", 1}},
    [SL_NULL] = {{"{\"NULL\":", 8}, {"}", 1}},
    [SL_SS] = {{"{\"SS\":", 6}, {"}", 1}},
    [SL_NS] = {{"{\"NS\":", 6}, {"}", 1}},
    [SL_BS] = {{"{\"BS\":", 6}, {"}", 1}},
    [SL_L] = {{"{\"L\":", 5}, {"}", 1}},
    [SL_M] = {{"{\"M\":", 5}, {"}", 1}},
};

char *sl_text_put_value(char *at, struct sl_value value)
{
    at = sl_text_put(at, tags[value.type].before);
    at = sl_text_put(at, value.raw);
    return sl_text_put(at, tags[value.type].after);
}

struct sl_span sl_text_value(const struct sl_host *host, struct sl_value value, struct sl_arena *arena)
{
    char *text = host->alloc(arena, value.raw.len + SL_TEXT_VALUE_BYTES);
    return (struct sl_span){text, (size_t)(sl_text_put_value(text, value) - text)};
}

struct sl_span sl_text_string_value(const struct sl_host *host, struct sl_span text, struct sl_arena *arena)
{
    struct sl_span parts[] = {SL_TEXT("{\"S\":"), host->json_quote(arena, text), SL_TEXT("}")};
    return host->join(arena, parts, 3);
}

void sl_text_digest(const struct sl_host *host, struct sl_span text, char out[SL_TEXT_DIGEST_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[32];
    host->sha256(text, digest);
    for (size_t i = 0; i < SL_TEXT_DIGEST_BYTES / 2; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[SL_TEXT_DIGEST_BYTES] = '\0';
}

/* ---- templates ---- */

enum sl_missing sl_text_missing(const struct sl_host *host, struct sl_route *route)
{
    static const char *const names[] = {"reject", "skip", "empty", NULL};
    return (enum sl_missing)sl_text_index(host->option_text(route, "missing"), names);
}

bool sl_text_is_place(struct sl_span t)
{
    if (t.len < 3 || t.ptr[0] != '{' || t.ptr[1] == '{' || t.ptr[t.len - 1] != '}')
        return false;
    return !memchr(t.ptr + 1, '{', t.len - 1) && !memchr(t.ptr, '}', t.len - 1);
}

bool sl_text_names_image(struct sl_span t)
{
    return memmem(t.ptr, t.len, "{NewImage.", 10) || memmem(t.ptr, t.len, "{OldImage.", 10);
}

enum sl_status sl_text_compile(const struct sl_host *host, struct sl_arena *arena, struct sl_span text,
                               struct sl_text_template *out, struct sl_error *error)
{
    out->is_place = sl_text_is_place(text);
    return host->template_compile(arena, text, &out->compiled, error);
}

enum sl_status sl_text_key_value(const struct sl_host *host, const struct sl_text_template *t,
                                 const struct sl_record *r, enum sl_image image, enum sl_missing missing,
                                 struct sl_arena *arena, struct sl_span *out, struct sl_error *error)
{
    struct sl_value value = {0};
    if (t->is_place)
        value = host->template_value(t->compiled, r, image);
    if (value.type == SL_S || value.type == SL_N || value.type == SL_B) {
        *out = sl_text_value(host, value, arena);
        return SL_OK;
    }
    struct sl_span text;
    if (missing == SL_MISSING_EMPTY) {
        text = host->template_render_or(t->compiled, r, image, SL_ESCAPE_JSON, arena, SL_TEXT(""));
    } else {
        enum sl_status status =
            host->template_render_image(t->compiled, r, image, SL_ESCAPE_JSON, arena, &text, error);
        if (status != SL_OK)
            return status;
    }
    struct sl_span parts[] = {SL_TEXT("{\"S\":\""), text, SL_TEXT("\"}")};
    *out = host->join(arena, parts, 3);
    return SL_OK;
}
