/* What attribute values count for in SizeBytes, by DynamoDB's formula (docs/RECORDS.md). The depth that the
 * decoder admits limits the recursion. */
#include "base/base64.h"
#include "base/json.h"
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

/* Of a container or set: the parts, what each costs beside itself, and an M's names. */
static uint64_t parts_bytes(struct sl_value v, uint64_t each)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name = {NULL, 0};
    struct sl_value value;
    uint64_t sum = 0;
    while (sl_value_next(&iter, &name, &value)) {
        if (v.type == SL_M)
            sum += text_bytes(name, name.len && memchr(name.ptr, '\\', name.len));
        sum += sl_value_counted_bytes(value) + each;
    }
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
        return parts_bytes(v, 0);
    default:
        return 3 + parts_bytes(v, 1);
    }
}

uint64_t sl_value_item_bytes(struct sl_value image)
{
    return image.type == SL_M ? parts_bytes(image, 0) : 0;
}
