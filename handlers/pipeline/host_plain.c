/* A value as plain JSON: {"a":1,"b":["x"]}. */
#include "handlers/pipeline/host_private.h"

#include "base/buffer.h"
#include "base/number.h"
#include "streams/record.h"

static void add_number(struct sl_buffer *out, struct sl_span text)
{
    struct sl_number number;
    char normal[SL_NUMBER_TEXT];
    if (sl_number_parse(text, &number))
        sl_buffer_add_str(out, "null");
    else
        sl_buffer_add(out, normal, sl_number_text(&number, normal));
}

static void add_quoted(struct sl_buffer *out, struct sl_span escaped)
{
    sl_buffer_add_char(out, '"');
    sl_buffer_add_span(out, escaped);
    sl_buffer_add_char(out, '"');
}

/* The recursion ends: a record with more levels than DynamoDB's 32 is refused when it is decoded. */
static void add_plain(struct sl_buffer *out, struct sl_value v);

static void add_elements(struct sl_buffer *out, struct sl_value v)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name;
    struct sl_value element;
    sl_buffer_add_char(out, v.type == SL_M ? '{' : '[');
    for (bool first = true; sl_value_next(&iter, &name, &element); first = false) {
        if (!first)
            sl_buffer_add_char(out, ',');
        if (v.type == SL_M) {
            add_quoted(out, name);
            sl_buffer_add_char(out, ':');
        }
        add_plain(out, element);
    }
    sl_buffer_add_char(out, v.type == SL_M ? '}' : ']');
}

static void add_plain(struct sl_buffer *out, struct sl_value v)
{
    switch (v.type) {
    case SL_S:
        add_quoted(out, v.raw);
        break;
    case SL_B: /* differs from every string */
        sl_buffer_add_str(out, "{\"base64\":");
        add_quoted(out, v.raw);
        sl_buffer_add_char(out, '}');
        break;
    case SL_N:
        add_number(out, v.raw);
        break;
    case SL_BOOL:
        sl_buffer_add_span(out, v.raw);
        break;
    case SL_NULL:
    case SL_NONE:
        sl_buffer_add_str(out, "null");
        break;
    default:
        add_elements(out, v);
    }
}

struct sl_span sl_host_value_plain(struct sl_value v, struct sl_arena *arena)
{
    struct sl_buffer buffer;
    /* A number grows most: "1e-130" becomes 132 bytes. */
    sl_buffer_init_in(&buffer, arena, 32 * v.raw.len + SL_NUMBER_TEXT);
    add_plain(&buffer, v);
    return sl_buffer_span(&buffer);
}
