/* Text of the built-in handlers: pieces put together, and JSON of attribute values and keys. */
#include "handlers/builtin/toolkit/text.h"

#include "base/span.h"
size_t sl_text_index(struct sl_span text, const char *const *list)
{
    size_t i = 0;
    while (list[i] && !sl_span_is(text, list[i]))
        i++;
    return i;
}

/* ---- attribute values ---- */

struct sl_span sl_text_string_value(const struct sl_host *host, struct sl_span text, struct sl_arena *arena)
{
    struct sl_span parts[] = {SL_LIT("{\"S\":"), host->json_quote(arena, text), SL_LIT("}")};
    return host->join(arena, parts, 3);
}

/* DynamoDB keeps numbers in normal form, and streams show no other; files may. */
static bool is_normal_integer(struct sl_span n)
{
    size_t sign = n.len && n.ptr[0] == '-';
    struct sl_span digits = {n.ptr + sign, n.len - sign};
    return sl_span_is_digits(digits) && digits.len <= 38 && (digits.ptr[0] != '0' || n.len == 1);
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
    return host->value_json(value, arena);
}

/* ---- keys ---- */

struct sl_span sl_text_key(const struct sl_host *host, struct sl_arena *arena, const struct sl_span *names,
                           const struct sl_span *values, size_t n)
{
    struct sl_span parts[4 * SL_TEXT_KEY_ATTRIBUTES + 1];
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        parts[k++] = i ? SL_LIT(",\"") : SL_LIT("{\"");
        parts[k++] = names[i];
        parts[k++] = SL_LIT("\":");
        parts[k++] = values[i];
    }
    parts[k++] = SL_LIT("}");
    return host->join(arena, parts, k);
}

struct sl_span sl_text_open_object(struct sl_span json)
{
    return (struct sl_span){json.ptr, json.len - 1};
}

/* ---- digests ---- */

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

/* ---- rows of our own ---- */

/* The text may become a sort key, which has 1,024 bytes at most. */
#define OWN_TEXT_BYTES 700

static struct sl_span own_value(const struct sl_host *host, struct sl_arena *arena, const char *kind,
                                struct sl_span name, struct sl_span unit)
{
    char *text = host->alloc(arena, name.len + 2 * unit.len + 48);
    char *at = sl_text_put(text, SL_LIT("{\"S\":\"sluice:"));
    at = sl_text_put(at, sl_span_str(kind));
    *at++ = ':';
    at = sl_text_put(at, name);
    *at++ = ':';
    for (size_t i = 0; i < unit.len; i++) {
        if (unit.ptr[i] == '"' || unit.ptr[i] == '\\')
            *at++ = '\\';
        *at++ = unit.ptr[i];
    }
    at = sl_text_put(at, SL_LIT("\"}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

struct sl_span sl_text_own_key(const struct sl_host *host, struct sl_arena *arena, const char *kind,
                               struct sl_span name, struct sl_span text, const struct sl_span *names,
                               size_t n)
{
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    if (text.len > OWN_TEXT_BYTES) {
        sl_text_digest(host, text, digest);
        text = sl_span_str(digest);
    }
    struct sl_span value = own_value(host, arena, kind, name, text);
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES] = {value, value};
    return sl_text_key(host, arena, names, values, n);
}

/* ---- objects ---- */

struct sl_text_object sl_text_object_begin(const struct sl_host *host, struct sl_arena *arena, size_t room)
{
    char *begin = host->alloc(arena, room);
    *begin = '{';
    return (struct sl_text_object){begin, begin + 1};
}

static void add_comma(struct sl_text_object *o)
{
    if (o->at > o->begin + 1)
        *o->at++ = ',';
}

void sl_text_object_name(struct sl_text_object *o, struct sl_span name)
{
    add_comma(o);
    *o->at++ = '"';
    o->at = sl_text_put(o->at, name);
    o->at = sl_text_put(o->at, SL_LIT("\":"));
}

void sl_text_object_value(struct sl_text_object *o, const struct sl_host *host, struct sl_span name,
                          struct sl_value value)
{
    sl_text_object_name(o, name);
    o->at = host->value_put(o->at, value);
}

void sl_text_object_text(struct sl_text_object *o, struct sl_span name, struct sl_span json)
{
    sl_text_object_name(o, name);
    o->at = sl_text_put(o->at, json);
}

static bool is_blank(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\r\n", text.ptr[i]))
            return false;
    return true;
}

void sl_text_object_members(struct sl_text_object *o, struct sl_span json)
{
    struct sl_span inside = {json.ptr + 1, json.len - 2};
    if (is_blank(inside))
        return;
    add_comma(o);
    o->at = sl_text_put(o->at, inside);
}

struct sl_span sl_text_object_end(struct sl_text_object *o)
{
    *o->at++ = '}';
    return (struct sl_span){o->begin, (size_t)(o->at - o->begin)};
}

struct sl_span sl_text_plain_name(const struct sl_host *host, struct sl_span name, struct sl_arena *arena)
{
    return memchr(name.ptr, '\\', name.len) ? host->json_unquote(arena, name) : name;
}
