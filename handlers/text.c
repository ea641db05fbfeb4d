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

enum sl_status sl_text_render(const struct sl_host *host, const struct sl_text_template *t,
                              const struct sl_record *r, enum sl_image image, enum sl_missing missing,
                              struct sl_arena *arena, struct sl_span *out, struct sl_error *error)
{
    if (missing != SL_MISSING_EMPTY)
        return host->template_render_image(t->compiled, r, image, SL_ESCAPE_NONE, arena, out, error);
    *out = host->template_render_or(t->compiled, r, image, SL_ESCAPE_NONE, arena, SL_TEXT(""));
    return SL_OK;
}

struct sl_value sl_text_place_value(const struct sl_host *host, const struct sl_text_template *t,
                                    const struct sl_record *r, enum sl_image image)
{
    return t->is_place ? host->template_value(t->compiled, r, image) : (struct sl_value){0};
}

/* DynamoDB keeps numbers in normal form, so that streams show nothing else; files may. */
static bool is_normal_integer(struct sl_span n)
{
    size_t sign = n.len && n.ptr[0] == '-';
    struct sl_span digits = {n.ptr + sign, n.len - sign};
    return sl_text_is_digits(digits) && digits.len <= 38 && (digits.ptr[0] != '0' || n.len == 1);
}

static struct sl_span normal_number(const struct sl_host *host, struct sl_span n, struct sl_arena *arena)
{
    struct sl_decimal *d = is_normal_integer(n) ? NULL : host->decimal_new(arena);
    struct sl_span text;
    return d && host->decimal_add(d, n, false) && host->decimal_text(d, arena, &text) ? text : n;
}

struct sl_span sl_text_canonical(const struct sl_host *host, struct sl_value value, struct sl_arena *arena)
{
    if (value.type == SL_N)
        value.raw = normal_number(host, value.raw, arena);
    else if (value.type == SL_S && memchr(value.raw.ptr, '\\', value.raw.len))
        return sl_text_string_value(host, host->json_unquote(arena, value.raw), arena);
    else if (value.type == SL_B && memchr(value.raw.ptr, '\\', value.raw.len))
        value.raw = host->json_unquote(arena, value.raw);
    return sl_text_value(host, value, arena);
}

enum sl_status sl_text_key_value(const struct sl_host *host, const struct sl_text_template *t,
                                 const struct sl_record *r, enum sl_image image, enum sl_missing missing,
                                 struct sl_arena *arena, struct sl_span *out, struct sl_error *error)
{
    struct sl_value value = sl_text_place_value(host, t, r, image);
    if (value.type == SL_S || value.type == SL_N || value.type == SL_B) {
        *out = sl_text_canonical(host, value, arena);
        return SL_OK;
    }
    struct sl_span text;
    enum sl_status status = sl_text_render(host, t, r, image, missing, arena, &text, error);
    if (status == SL_OK)
        *out = sl_text_string_value(host, text, arena);
    return status;
}
