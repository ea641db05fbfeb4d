/* Values in one canonical form, and their size by DynamoDB's formula. Recursion is bound by the depth that
 * the decoder admits. */
#include "base/base64.h"
#include "base/json.h"
#include "base/json_write.h"
#include "streams/record_layout.h"

#include <stdlib.h>

/* ---- canonical text ---- */

static void add_string(struct sl_value v, struct sl_buffer *out)
{
    struct sl_buffer text;
    if (!v.escaped) {
        sl_json_add_string(out, v.raw);
        return;
    }
    sl_buffer_init(&text, SIZE_MAX / 2);
    sl_json_add_string(out, sl_json_unescape_in(v.raw, &text));
    sl_buffer_clean_up(&text);
}

static void add_number(struct sl_value v, struct sl_buffer *out)
{
    struct sl_number number;
    char text[SL_NUMBER_TEXT];
    (void)sl_value_number(v, &number);
    sl_json_add_string(out, sl_span(text, sl_number_text(&number, text)));
}

/* What a set or a map is made of: the canonical text of each part, and its place, for the last member of
 * equal names counts. */
struct part {
    size_t at, name_len, len; /* in `texts`; name_len 0: a set's element */
    size_t place;
};

struct parts {
    struct sl_buffer texts;
    struct sl_buffer list; /* of struct part */
    size_t n;
};

static void add_part(struct parts *parts, struct part part)
{
    part.place = parts->n++;
    sl_buffer_add(&parts->list, &part, sizeof(part));
}

static struct sl_span sort_key(const struct parts *parts, const struct part *part)
{
    return sl_span(parts->texts.ptr + part->at, part->name_len ? part->name_len : part->len);
}

/* No key is the beginning of another: all end with a quote or a brace that is the first of its level. */
static int compare_parts(const void *a, const void *b, void *context)
{
    const struct part *x = a, *y = b;
    struct sl_span of_x = sort_key(context, x), of_y = sort_key(context, y);
    int order = memcmp(of_x.ptr, of_y.ptr, of_x.len < of_y.len ? of_x.len : of_y.len);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void collect(struct sl_value v, struct parts *parts)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name;
    struct sl_value value;
    while (sl_value_next(&iter, &name, &value)) {
        struct part part = {.at = parts->texts.len};
        if (v.type == SL_M) {
            add_string((struct sl_value){SL_S, memchr(name.ptr, '\\', name.len) != NULL, name},
                       &parts->texts);
            part.name_len = parts->texts.len - part.at;
            sl_buffer_add_char(&parts->texts, ':');
        }
        sl_value_canonical(value, &parts->texts);
        part.len = parts->texts.len - part.at;
        add_part(parts, part);
    }
}

static void add_sorted(struct sl_value v, struct sl_buffer *out)
{
    struct parts parts = {.n = 0};
    sl_buffer_init(&parts.texts, SL_CANONICAL_BYTES);
    sl_buffer_init(&parts.list, SIZE_MAX / 2);
    collect(v, &parts);
    struct part *list = (struct part *)(void *)parts.list.ptr;
    if (parts.n)
        qsort_r(list, parts.n, sizeof(*list), compare_parts, &parts);
    bool is_first = true;
    for (size_t i = 0; i < parts.n; i++) {
        if (i + 1 < parts.n && sl_span_eq(sort_key(&parts, &list[i]), sort_key(&parts, &list[i + 1])))
            continue;
        if (!is_first)
            sl_buffer_add_char(out, ',');
        is_first = false;
        sl_buffer_add(out, parts.texts.ptr + list[i].at, list[i].len);
    }
    sl_buffer_clean_up(&parts.texts);
    sl_buffer_clean_up(&parts.list);
}

static void add_list(struct sl_value v, struct sl_buffer *out)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_value value;
    for (bool more = sl_value_next(&iter, NULL, &value); more;) {
        sl_value_canonical(value, out);
        more = sl_value_next(&iter, NULL, &value);
        if (more)
            sl_buffer_add_char(out, ',');
    }
}

/* A value's content behind its tag. */
static void add_content(struct sl_value v, struct sl_buffer *out)
{
    switch (v.type) {
    case SL_S:
    case SL_B:
        add_string(v, out);
        break;
    case SL_N:
        add_number(v, out);
        break;
    case SL_L:
        sl_buffer_add_char(out, '[');
        add_list(v, out);
        sl_buffer_add_char(out, ']');
        break;
    case SL_SS:
    case SL_NS:
    case SL_BS:
    case SL_M:
        sl_buffer_add_char(out, v.type == SL_M ? '{' : '[');
        add_sorted(v, out);
        sl_buffer_add_char(out, v.type == SL_M ? '}' : ']');
        break;
    default:
        sl_buffer_add_span(out, v.raw);
    }
}

void sl_value_canonical(struct sl_value v, struct sl_buffer *out)
{
    static const char *const tags[] = {"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    sl_buffer_add_str(out, "{\"");
    sl_buffer_add_str(out, tags[v.type]);
    sl_buffer_add_str(out, "\":");
    add_content(v, out);
    sl_buffer_add_char(out, '}');
}

/* ---- size ---- */

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
