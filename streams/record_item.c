/* Which item a record is about, and whether one of its attributes changed. */
#include "streams/record.h"
#include "streams/record_layout.h"

static bool is_plain_integer(struct sl_span n)
{
    size_t sign = n.ptr[0] == '-';
    if (n.len - sign > SL_NUMBER_DIGITS || (n.ptr[sign] == '0' && n.len > 1))
        return false;
    for (size_t i = sign; i < n.len; i++)
        if (n.ptr[i] < '0' || n.ptr[i] > '9')
            return false;
    return true;
}

/* Text that the canonical form has as it is: DEL alone is written otherwise. */
static bool is_plain_text(struct sl_span text)
{
    return !memchr(text.ptr, '\\', text.len) && !memchr(text.ptr, 0x7F, text.len);
}

/* What sl_value_canonical writes of a key, for nearly all there are: one or two attributes without escapes,
 * the numbers integers in normal form. False: it is another one. */
static bool add_plain_key(struct sl_value key, struct sl_buffer *out)
{
    static const char tags[] = " SNB";
    struct sl_span names[2], name;
    struct sl_value values[2], value;
    size_t n = 0;
    for (struct sl_iter iter = sl_value_iter(key); sl_value_next(&iter, &name, &value); n++) {
        bool is_plain = n < 2 && value.type <= SL_B && is_plain_text(value.raw) && is_plain_text(name) &&
                        (value.type != SL_N || is_plain_integer(value.raw));
        if (!is_plain)
            return false;
        names[n] = name;
        values[n] = value;
    }
    size_t least = n == 2 ? (names[0].len < names[1].len ? names[0].len : names[1].len) : 0;
    int order = n == 2 ? memcmp(names[0].ptr, names[1].ptr, least) : -1;
    if (n == 0 || order == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t k = order < 0 ? i : n - 1 - i;
        sl_buffer_add_str(out, i ? ",\"" : "{\"M\":{\"");
        sl_buffer_add_span(out, names[k]);
        sl_buffer_add(out, (char[]){'"', ':', '{', '"', tags[values[k].type], '"', ':', '"'}, 8);
        sl_buffer_add_span(out, values[k].raw);
        sl_buffer_add(out, "\"}", 2);
    }
    sl_buffer_add(out, "}}", 2);
    return true;
}

struct sl_span sl_record_item_key(const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_buffer text;
    struct sl_value key = sl_record_image(r, SL_KEYS);
    if (key.type == SL_NONE) /* an export's Item: all of it */
        key = sl_record_image(r, SL_NEW_IMAGE);
    sl_buffer_init_in(&text, arena, SL_CANONICAL_BYTES);
    sl_buffer_reserve(&text, key.raw.len + 16);
    if (!add_plain_key(key, &text)) {
        sl_buffer_reset(&text);
        sl_value_canonical(key, &text);
    }
    return sl_buffer_span(&text);
}

bool sl_record_changed(const struct sl_record *r, struct sl_span name)
{
    bool has_new = r->image_len[SL_NEW_IMAGE], has_old = r->image_len[SL_OLD_IMAGE];
    if (r->event == SL_INSERT ? !has_new : r->event == SL_REMOVE ? !has_old : !has_new || !has_old)
        return false;
    struct sl_value after = {.type = SL_NONE}, before = {.type = SL_NONE};
    if (r->event != SL_REMOVE)
        after = sl_record_scan(r, SL_NEW_IMAGE, name);
    if (r->event != SL_INSERT)
        before = sl_record_scan(r, SL_OLD_IMAGE, name);
    return !sl_value_equal(before, after);
}
