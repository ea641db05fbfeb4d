/* One attribute of an image without an index of it: most records are asked for one or two, and making the
 * index costs more than several such looks. */
#include "base/block.h"
#include "base/json.h"
#include "base/map.h"
#include "streams/record_layout.h"

/* `mask` has a bit (or four) for each byte at `p` where the needle may begin. */
static bool is_any(const char *p, uint64_t mask, struct sl_span needle)
{
    for (; mask; mask &= mask - 1)
        if (memcmp(p + sl_mask_first(mask), needle.ptr, needle.len) == 0)
            return true;
    return false;
}

/* Compares two of the needle's bytes at sixteen places at a time: its first and its last, but for quotes,
 * which are everywhere. */
bool sl_record_may_hold(struct sl_span text, struct sl_span needle)
{
    if (text.len < needle.len)
        return text.len && memchr(text.ptr, '\\', text.len);
    const char *p = text.ptr, *end = sl_span_end(text);
    size_t low = needle.len > 2 && needle.ptr[0] == '"';
    size_t high = needle.len - 1 - (needle.len > 2 && needle.ptr[needle.len - 1] == '"');
    for (; (size_t)(end - p) >= needle.len - 1 + SL_BLOCK; p += SL_BLOCK) {
        const unsigned char *at = (const unsigned char *)p;
        uint64_t both = sl_block_eq(at + low, (unsigned char)needle.ptr[low]) &
                        sl_block_eq(at + high, (unsigned char)needle.ptr[high]);
        if (sl_block_eq(at, '\\') || (both && is_any(p, both, needle)))
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

/* Behind an attribute value: nearly always {"T":"..."}. The shortest one has eight bytes. */
static const char *skip_value(const char *p, const char *end)
{
    bool escaped;
    if (p[1] == '"' && p[2] != '\\' && p[3] == '"' && p[4] == ':' && p[5] == '"') {
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

/* Longer names are not searched for. */
#define QUOTED_BYTES 256

/* Whether a member of that name may stand in the rest of an image. */
static bool may_come_again(const char *p, const char *end, struct sl_span name)
{
    char quoted[QUOTED_BYTES];
    if (name.len > QUOTED_BYTES - 2)
        return true;
    if (name.len)
        memcpy(quoted + 1, name.ptr, name.len);
    quoted[0] = quoted[name.len + 1] = '"';
    return sl_record_may_hold(sl_span(p, (size_t)(end - p)), sl_span(quoted, name.len + 2));
}

/* The last of equal names counts; mostly there is only one. */
struct sl_value sl_map_scan(struct sl_span image, struct sl_span wanted)
{
    struct sl_value found = {.type = SL_NONE};
    const char *end = sl_span_end(image), *p = sl_json_space(image.ptr + 1, end);
    while (*p != '}') {
        bool escaped;
        const char *name = p + 1, *close = string_end(name, end, &escaped);
        p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
        if (is_named(name, close, escaped, wanted)) {
            found = sl_value_at(p, end, &p);
            if (!may_come_again(p, end, wanted))
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

struct sl_value sl_record_scan(const struct sl_record *r, enum sl_image image, struct sl_span name)
{
    struct sl_value whole = sl_record_image(r, image);
    const struct sl_record_chunk *chunk = sl_record_chunk(r);
    if (whole.type == SL_NONE)
        return whole;
    if (chunk->indexes && chunk->indexes[r->slot][image])
        return sl_record_attribute(r, image, name);
    return sl_map_scan(whole.raw, name);
}
