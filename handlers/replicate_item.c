/* The replica's keys and items. An image that nothing is to be changed in is copied as it came, with the
 * guard put in front; else its top-level attributes are written one by one, each value as it came. */
#include "handlers/replicate.h"

#include <inttypes.h>
#include <stdio.h>

#define EXPIRES_DIGITS 20

static struct sl_span plain_name(const struct replicate *p, struct sl_span name, struct sl_arena *arena)
{
    return memchr(name.ptr, '\\', name.len) ? p->host->json_unquote(arena, name) : name;
}

struct sl_value replicate_find(const struct replicate *p, struct sl_value image, struct sl_span name)
{
    struct sl_span at;
    struct sl_value value;
    for (struct sl_iter iter = p->host->value_iter(image); p->host->value_next(&iter, &at, &value);)
        if (sl_text_eq(at, name))
            return value;
    return (struct sl_value){0};
}

/* ---- writing members ---- */

static char *put_comma(char *at, const char *begin)
{
    if (at > begin + 1)
        *at++ = ',';
    return at;
}

/* ---- keys ---- */

static const struct replicate_rule *rule_of(const struct replicate *p, struct sl_span name)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (sl_text_eq(p->rules[i].name, name))
            return &p->rules[i];
    return NULL;
}

static size_t renames_bytes(const struct replicate *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        n += p->rules[i].renamed.len + 2;
    return n;
}

static enum sl_status key_from_templates(const struct replicate *p, const struct sl_record *r,
                                         struct sl_arena *arena, struct sl_span *key, struct sl_error *error)
{
    struct sl_span parts[2 * 2 + 1];
    size_t n = 0;
    for (size_t i = 0; i < p->n_keys; i++) {
        struct sl_span before[] = {i ? SL_TEXT(",\"") : SL_TEXT("{\""), p->keys[i].name, SL_TEXT("\":")};
        parts[n++] = p->host->join(arena, before, 3);
        enum sl_status status = sl_text_key_value(p->host, &p->keys[i].value, r, SL_KEYS, SL_MISSING_REJECT,
                                                  arena, &parts[n++], error);
        if (status != SL_OK)
            return status;
    }
    parts[n++] = SL_TEXT("}");
    *key = p->host->join(arena, parts, n);
    return SL_OK;
}

enum sl_status replicate_key(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                             struct sl_span *key, struct sl_error *error)
{
    if (p->n_keys > 0)
        return key_from_templates(p, r, arena, key, error);
    struct sl_value keys = p->host->record_image(r, SL_KEYS);
    size_t renames = renames_bytes(p);
    *key = keys.raw;
    if (renames == 0)
        return SL_OK;
    char *begin = p->host->alloc(arena, keys.raw.len + renames), *at = begin;
    struct sl_span name;
    struct sl_value value;
    *at++ = '{';
    for (struct sl_iter iter = p->host->value_iter(keys); p->host->value_next(&iter, &name, &value);) {
        const struct replicate_rule *rule = rule_of(p, plain_name(p, name, arena));
        at = put_comma(at, begin);
        *at++ = '"';
        at = sl_text_put(at, rule && rule->renamed.ptr ? rule->renamed : name);
        at = sl_text_put(at, SL_TEXT("\":"));
        at = sl_text_put_value(at, value);
    }
    *at++ = '}';
    *key = (struct sl_span){begin, (size_t)(at - begin)};
    return SL_OK;
}

/* ---- items ---- */

static bool in_key(const struct replicate *p, struct sl_value keys, struct sl_span name)
{
    return replicate_find(p, keys, name).type != SL_NONE;
}

/* Attributes that a replicate put there belong to the item they are on. */
static bool is_own(const struct replicate *p, struct sl_span name)
{
    return p->guard == REPLICATE_INLINE && sl_text_eq(name, p->guard_attribute);
}

static bool is_left_out(const struct replicate *p, struct sl_value keys, struct sl_span raw_name,
                        struct sl_span name, const struct replicate_rule *rule)
{
    bool is_key = p->n_keys == 0 && in_key(p, keys, raw_name);
    if (is_own(p, name) || (rule && rule->is_dropped && !is_key))
        return true;
    return p->is_projected && !is_key && !(rule && rule->is_kept);
}

static char *put_attributes(const struct replicate *p, const struct sl_record *r, struct sl_value image,
                            struct sl_arena *arena, char *begin, char *at)
{
    struct sl_value keys = p->host->record_image(r, SL_KEYS), value;
    struct sl_span raw_name;
    for (struct sl_iter iter = p->host->value_iter(image); p->host->value_next(&iter, &raw_name, &value);) {
        struct sl_span name = plain_name(p, raw_name, arena);
        const struct replicate_rule *rule = rule_of(p, name);
        if (is_left_out(p, keys, raw_name, name, rule))
            continue;
        at = put_comma(at, begin);
        *at++ = '"';
        at = sl_text_put(at, rule && rule->renamed.ptr ? rule->renamed : raw_name);
        at = sl_text_put(at, SL_TEXT("\":"));
        at = sl_text_put_value(at, value);
    }
    return at;
} /* A replicate's own item comes with a guard, which is not to be copied. An item read back has no index. */
static bool has_guard(const struct replicate *p, const struct sl_record *r,
                      const struct replicate_image *image)
{
    if (image->is_read_back)
        return replicate_find(p, image->value, p->guard_attribute).type != SL_NONE;
    return image->may_carry && p->host->record_attribute(r, SL_NEW_IMAGE, p->guard_attribute).type != SL_NONE;
}

static bool is_reshaped(const struct replicate *p, const struct sl_record *r,
                        const struct replicate_image *image)
{
    return p->n_rules > 0 || p->n_keys > 0 || p->is_projected ||
           (p->guard == REPLICATE_INLINE && has_guard(p, r, image));
}

static struct sl_span without_braces(struct sl_span json)
{
    size_t from = 0, to = json.len;
    while (json.ptr[from] != '{')
        from++;
    while (json.ptr[to - 1] != '}')
        to--;
    return (struct sl_span){json.ptr + from + 1, to - from - 2};
}

static bool is_blank(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\r\n", text.ptr[i]))
            return false;
    return true;
}

static enum sl_status check_size(const struct replicate *p, struct sl_span item, struct sl_error *error)
{
    /* The text is never shorter than the size by DynamoDB's formula. */
    if (p->guard != REPLICATE_INLINE || item.len <= p->table->max_item_bytes)
        return SL_OK;
    struct sl_value image = {.type = SL_M, .raw = item};
    size_t bytes = p->host->item_bytes(image);
    size_t guard_bytes = p->guard_attribute.len + REPLICATE_GUARD_BYTES;
    if (bytes <= p->table->max_item_bytes || bytes - guard_bytes > p->table->max_item_bytes)
        return SL_OK;
    return p->host->fail(
        error, SL_REJECT, "ItemTooLargeForGuard",
        "the item has %zu bytes and no room for its guard's %zu: use \"guard\": {\"table\": ...}",
        bytes - guard_bytes, guard_bytes);
}

enum sl_status replicate_item(const struct replicate *p, const struct sl_record *r,
                              struct replicate_image from, struct sl_span key, struct sl_span guard,
                              struct sl_arena *arena, struct sl_span *item, struct sl_error *error)
{
    struct sl_value image = from.value;
    bool reshaped = is_reshaped(p, r, &from);
    if (p->guard != REPLICATE_INLINE && !reshaped) {
        *item = image.raw;
        return SL_OK;
    }
    size_t room = image.raw.len + renames_bytes(p) + key.len + p->guard_attribute.len + guard.len + 64;
    char *begin = p->host->alloc(arena, room), *at = begin;
    *at++ = '{';
    if (p->guard == REPLICATE_INLINE) {
        *at++ = '"';
        at = sl_text_put(at, p->guard_attribute);
        at = sl_text_put(at, SL_TEXT("\":{\"S\":\""));
        at = sl_text_put(at, guard);
        at = sl_text_put(at, SL_TEXT("\"}"));
    }
    if (p->n_keys > 0) {
        at = put_comma(at, begin);
        at = sl_text_put(at, without_braces(key));
    }
    struct sl_span inside = without_braces(image.raw);
    if (reshaped) {
        at = put_attributes(p, r, image, arena, begin, at);
    } else if (!is_blank(inside)) {
        at = put_comma(at, begin);
        at = sl_text_put(at, inside);
    }
    *at++ = '}';
    *item = (struct sl_span){begin, (size_t)(at - begin)};
    return check_size(p, *item, error);
}

struct sl_span replicate_tombstone(const struct replicate *p, struct sl_span key, struct sl_span guard,
                                   struct sl_arena *arena)
{
    int64_t expires_s = p->host->wall_ns(p->route) / 1000000000 + p->tombstone_s;
    size_t room = key.len + p->guard_attribute.len + p->deleted_attribute.len + p->ttl_attribute.len +
                  guard.len + EXPIRES_DIGITS + 80;
    char *text = p->host->alloc(arena, room);
    struct sl_span inside = without_braces(key);
    int n =
        snprintf(text, room,
                 "{%.*s,\"%.*s\":{\"S\":\"%.*s\"},\"%.*s\":{\"BOOL\":true},\"%.*s\":{\"N\":\"%" PRId64 "\"}}",
                 SL_TEXT_ARG(inside), SL_TEXT_ARG(p->guard_attribute), SL_TEXT_ARG(guard),
                 SL_TEXT_ARG(p->deleted_attribute), SL_TEXT_ARG(p->ttl_attribute), expires_s);
    return (struct sl_span){text, (size_t)n};
}
