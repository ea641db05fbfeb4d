/* What attribute values count for in SizeBytes, by DynamoDB's formula (docs/RECORDS.md). The depth that the
 * decoder admits limits the recursion. */
#include "base/base64.h"
#include "base/json.h"
#include "base/scan.h"
#include "streams/value.h"

static uint64_t text_bytes(struct sl_span inner, bool escaped)
{
    return escaped ? sl_json_unescaped_bytes(inner) : inner.len;
}

static uint64_t binary_bytes(struct sl_value v)
{
    struct sl_buffer text;
    if (!v.escaped)
        return sl_base64_decoded_bytes(v.raw);
    sl_buffer_init(&text, SIZE_MAX / 2);
    uint64_t bytes = sl_base64_decoded_bytes(sl_json_unescape_in(v.raw, &text));
    sl_buffer_clean_up(&text);
    return bytes;
}

static uint64_t number_bytes(struct sl_value v)
{
    struct sl_number number;
    (void)sl_value_number(v, &number);
    return sl_number_bytes(&number);
}

/* ---- plain values, from their text alone: most are compact strings and short numbers ---- */

/* (The text was checked: a container's closing bracket ends each loop.) */

/* What sl_number_bytes counts, of at most fifteen digits with perhaps a minus and a point. */
static uint64_t short_number_bytes(const char *p, const char *end)
{
    const char *point = memchr(p, '.', (size_t)(end - p));
    bool is_negative = *p == '-', is_zero = true;
    int power = (int)((point ? point : end) - p) - is_negative - 1, first = 0, last = 0;
    for (p += is_negative; p < end; p++) {
        if (p == point)
            continue;
        first = is_zero && *p != '0' ? power : first;
        last = *p != '0' ? power : last;
        is_zero &= *p == '0';
        power--;
    }
    return is_zero ? 1 : (uint64_t)((first >> 1) - (last >> 1)) + 2 + is_negative;
}

static const char *add_value(const char *p, const char *end, uint64_t *sum);

/* From the byte after a map's brace to the byte after its other one. `each`: what a member costs beside its
 * name and its value. */
static const char *add_members(const char *p, const char *end, uint64_t each, uint64_t *sum)
{
    p = sl_json_space(p, end);
    while (*p != '}') {
        bool escaped = false;
        const char *name = p + 1, *after = sl_scan_string(p, end);
        if (!after)
            after = sl_json_string_end(name, end, &escaped) + 1;
        *sum += text_bytes(sl_span(name, (size_t)(after - 1 - name)), escaped) + each;
        p = sl_json_space(sl_json_space(after, end) + 1, end);
        p = sl_json_space(add_value(p, end, sum), end);
        if (*p == ',')
            p = sl_json_space(p + 1, end);
    }
    return p + 1;
}

/* A list's, likewise. */
static const char *add_elements(const char *p, const char *end, uint64_t *sum)
{
    p = sl_json_space(p, end);
    while (*p != ']') {
        *sum += 1;
        p = sl_json_space(add_value(p, end, sum), end);
        if (*p == ',')
            p = sl_json_space(p + 1, end);
    }
    return p + 1;
}

/* {"S":"text"} and {"N":"12.5"}; NULL: it is anything else. */
static const char *add_plain(const char *p, const char *end, uint64_t *sum)
{
    const char *text = p + 5, *after = NULL;
    if (p[2] == 'S')
        after = sl_scan_string(text, end);
    else if (p[2] == 'N')
        after = sl_scan_quoted_number(text, end);
    if (!after || *after != '}')
        return NULL;
    *sum += p[2] == 'S' ? (uint64_t)(after - text - 2) : short_number_bytes(text + 1, after - 1);
    return after + 1;
}

/* {"M":{...}} and {"L":[...]}; NULL: it is anything else. */
static const char *add_container(const char *p, const char *end, uint64_t *sum)
{
    bool is_map = p[2] == 'M' && p[5] == '{', is_list = p[2] == 'L' && p[5] == '[';
    if (!is_map && !is_list)
        return NULL;
    *sum += 3;
    p = is_map ? add_members(p + 6, end, 1, sum) : add_elements(p + 6, end, sum);
    return sl_json_space(p, end) + 1;
}

/* From an attribute value's brace to the byte after its other one. (No value has less than eight bytes.) */
static const char *add_value(const char *p, const char *end, uint64_t *sum)
{
    const char *after = NULL;
    if (p[1] == '"' && p[3] == '"' && p[4] == ':')
        after = p[5] == '"' ? add_plain(p, end, sum) : add_container(p, end, sum);
    if (!after)
        *sum += sl_value_counted_bytes(sl_value_at(p, end, &after));
    return after;
}

/* ---- any value ---- */

static uint64_t set_bytes(struct sl_value v)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_value value;
    uint64_t sum = 0;
    while (sl_value_next(&iter, NULL, &value))
        sum += sl_value_counted_bytes(value);
    return sum;
}

static uint64_t container_bytes(struct sl_value v, uint64_t each)
{
    uint64_t sum = 0;
    if (v.type == SL_M)
        (void)add_members(v.raw.ptr + 1, sl_span_end(v.raw), each, &sum);
    else
        (void)add_elements(v.raw.ptr + 1, sl_span_end(v.raw), &sum);
    return sum;
}

uint64_t sl_value_counted_bytes(struct sl_value v)
{
    switch (v.type) {
    case SL_S:
        return text_bytes(v.raw, v.escaped);
    case SL_N:
        return number_bytes(v);
    case SL_B:
        return binary_bytes(v);
    case SL_BOOL:
    case SL_NULL:
        return 1;
    case SL_SS:
    case SL_NS:
    case SL_BS:
        return set_bytes(v);
    case SL_M:
    case SL_L:
        return 3 + container_bytes(v, 1);
    default:
        return 0; /* what is absent takes no room */
    }
}

uint64_t sl_value_item_bytes(struct sl_value image)
{
    return image.type == SL_M ? container_bytes(image, 0) : 0;
}
