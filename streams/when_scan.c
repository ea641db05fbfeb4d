/* Looking for one attribute in an image's text without an index of it: most records are turned away by their
 * first look, and making the index costs more than several such looks. */
#include "streams/when_private.h"

#include "base/block.h"
#include "base/json.h"
#include "streams/record_layout.h"

/* `mask` has a bit (or four) for each byte at `p` where the needle may begin. */
static bool is_any(const char *p, uint64_t mask, struct sl_span needle)
{
    for (; mask; mask &= mask - 1)
        if (memcmp(p + sl_mask_first(mask), needle.ptr, needle.len) == 0)
            return true;
    return false;
}

/* Compares the needle's first and last byte at sixteen places at a time. */
bool sl_when_may_hold(struct sl_span text, struct sl_span needle)
{
    if (text.len < needle.len)
        return text.len && memchr(text.ptr, '\\', text.len);
    const char *p = text.ptr, *end = text.ptr + text.len;
    size_t last = needle.len - 1;
    for (; (size_t)(end - p) >= last + SL_BLOCK; p += SL_BLOCK) {
        uint64_t first = sl_block_eq((const unsigned char *)p, (unsigned char)needle.ptr[0]);
        uint64_t both = first & sl_block_eq((const unsigned char *)p + last, (unsigned char)needle.ptr[last]);
        if (sl_block_eq((const unsigned char *)p, '\\') || (both && is_any(p, both, needle)))
            return true;
    }
    for (; p < end; p++)
        if (*p == '\\' || ((size_t)(end - p) >= needle.len && memcmp(p, needle.ptr, needle.len) == 0))
            return true;
    return false;
}

/* The quote that closes the string which `p` is in: nearly always in the next sixteen bytes. */
static inline const char *string_end(const char *p, const char *end, bool *escaped)
{
    if (end - p >= SL_BLOCK) {
        uint64_t mask = sl_block_bytes(p, '"', '\\');
        if (mask && p[sl_mask_first(mask)] == '"') {
            *escaped = false;
            return p + sl_mask_first(mask);
        }
    }
    return sl_json_string_end(p, end, escaped);
}

/* Behind an attribute value: nearly always {"T":"..."}. */
static const char *skip_value(const char *p, const char *end)
{
    bool escaped;
    if (end - p > 8 && p[1] == '"' && p[2] != '\\' && p[3] == '"' && p[4] == ':' && p[5] == '"') {
        const char *close = string_end(p + 6, end, &escaped);
        if (close[1] == '}')
            return close + 2;
    }
    return sl_json_value_end(p, end);
}

static bool is_named(const char *name, const char *close, bool escaped, struct sl_span wanted)
{
    struct sl_span inner = sl_span(name, (size_t)(close - name));
    return escaped ? sl_json_text_is(inner, wanted) : sl_span_eq(inner, wanted);
}

struct sl_value sl_when_find_attribute(const struct sl_record *r, const struct sl_when_attribute *a)
{
    struct sl_value found = {.type = SL_NONE}, image = sl_record_image(r, a->image);
    if (image.type == SL_NONE)
        return found;
    const char *end = image.raw.ptr + image.raw.len, *p = sl_json_space(image.raw.ptr + 1, end);
    while (*p != '}') {
        bool escaped;
        const char *name = p + 1, *close = string_end(name, end, &escaped);
        p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
        if (is_named(name, close, escaped, a->name)) {
            found = sl_value_at(p, end, &p);
            /* The last of equal names counts; mostly there is no second. */
            if (!sl_when_may_hold(sl_span(p, (size_t)(end - p)), a->quoted))
                return found;
        } else {
            p = skip_value(p, end);
        }
        p = sl_json_space(p, end);
        if (*p == ',')
            p = sl_json_space(p + 1, end);
    }
    return found;
}
