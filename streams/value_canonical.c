/* Attribute values in one canonical form, typed or plain. The depth that the decoder admits limits the
 * recursion. */
#include "base/json.h"
#include "base/json_write.h"
#include "streams/value.h"

#include <stdlib.h>

enum form { TYPED, PLAIN, STORED };

static void add_value(struct sl_value v, enum form form, struct sl_buffer *out);
static void add_content(struct sl_value v, enum form form, struct sl_buffer *out);

/* What is stored stays as it is, also where it is no text. */
static void add_text(struct sl_span text, enum form form, struct sl_buffer *out)
{
    if (form == STORED) {
        sl_buffer_add_char(out, '"');
        sl_json_add_exact(out, text);
        sl_buffer_add_char(out, '"');
    } else {
        sl_json_add_string(out, text);
    }
}

static void add_string(struct sl_value v, enum form form, struct sl_buffer *out)
{
    struct sl_buffer text;
    if (!v.escaped) {
        add_text(v.raw, form, out);
        return;
    }
    sl_buffer_init(&text, SIZE_MAX / 2);
    add_text(sl_json_unescape_in(v.raw, &text), form, out);
    sl_buffer_clean_up(&text);
}

static void add_number(struct sl_value v, enum form form, struct sl_buffer *out)
{
    struct sl_number number;
    char text[SL_NUMBER_TEXT];
    (void)sl_value_number(v, &number);
    size_t n = sl_number_text(&number, text);
    if (form != PLAIN)
        sl_json_add_string(out, sl_span(text, n));
    else
        sl_buffer_add(out, text, n);
}

/* A part of a set or a map, as it stands in the text. */
struct part {
    size_t at, key_len, len; /* the key, by which parts are sorted: the name, or the whole element */
};

#define PARTS 24 /* more are kept on the heap */

struct parts {
    struct part some[PARTS], *list;
    size_t n, room;
    bool in_order; /* each key is above the one before it */
};

static struct part *add_part(struct parts *parts)
{
    if (parts->n == parts->room) {
        struct part *more = malloc(2 * parts->room * sizeof(*more));
        if (!more)
            sl_die("out of memory: a set or a map of %zu parts", parts->room);
        memcpy(more, parts->list, parts->n * sizeof(*more));
        if (parts->list != parts->some)
            free(parts->list);
        parts->list = more;
        parts->room *= 2;
    }
    return &parts->list[parts->n++];
}

/* Only a plain number can be the beginning of another key: all others end with a quote or a brace that is the
 * first of its level. */
static int compare_keys(const struct part *x, const struct part *y, const char *text)
{
    int order = memcmp(text + x->at, text + y->at, x->key_len < y->key_len ? x->key_len : y->key_len);
    return order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* Of equal keys the later part comes later. */
static int compare_parts(const void *a, const void *b, void *text)
{
    const struct part *x = a, *y = b;
    int order = compare_keys(x, y, text);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Writes the parts as they come, with commas between them. */
static void collect(struct sl_value v, enum form form, struct parts *parts, struct sl_buffer *out)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name;
    struct sl_value value;
    while (sl_value_next(&iter, &name, &value)) {
        if (parts->n)
            sl_buffer_add_char(out, ',');
        struct part *part = add_part(parts);
        part->at = out->len;
        if (v.type == SL_M) {
            add_string((struct sl_value){SL_S, memchr(name.ptr, '\\', name.len) != NULL, name}, form, out);
            part->key_len = out->len - part->at;
            sl_buffer_add_char(out, ':');
        }
        if (form == STORED && v.type != SL_M)
            add_content(value, form, out);
        else
            add_value(value, form, out);
        part->len = out->len - part->at;
        if (v.type != SL_M)
            part->key_len = part->len;
        if (parts->n > 1 && parts->in_order && !out->failed)
            parts->in_order = compare_keys(part - 1, part, out->ptr) < 0;
    }
}

/* Writes the parts anew from `begin` on, in order; of equal keys the last counts. */
static void put_in_order(struct parts *parts, size_t begin, struct sl_buffer *out)
{
    char some[2048], *copy = some;
    size_t len = out->len - begin;
    if (len > sizeof(some) && !(copy = malloc(len)))
        sl_die("out of memory: %zu bytes of a set or a map", len);
    qsort_r(parts->list, parts->n, sizeof(*parts->list), compare_parts, out->ptr);
    size_t kept = 0;
    for (size_t i = 0; i < parts->n; i++)
        if (i + 1 == parts->n || compare_keys(&parts->list[i], &parts->list[i + 1], out->ptr) != 0)
            parts->list[kept++] = parts->list[i];
    memcpy(copy, out->ptr + begin, len);
    out->len = begin;
    for (size_t i = 0; i < kept; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        sl_buffer_add(out, copy + (parts->list[i].at - begin), parts->list[i].len);
    }
    if (copy != some)
        free(copy);
}

static void add_sorted(struct sl_value v, enum form form, struct sl_buffer *out)
{
    struct parts parts = {.room = PARTS, .in_order = true};
    parts.list = parts.some;
    size_t begin = out->len;
    collect(v, form, &parts, out);
    if (!parts.in_order && !out->failed)
        put_in_order(&parts, begin, out);
    if (parts.list != parts.some)
        free(parts.list);
}

static void add_list(struct sl_value v, enum form form, struct sl_buffer *out)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_value value;
    for (bool more = sl_value_next(&iter, NULL, &value); more;) {
        add_value(value, form, out);
        more = sl_value_next(&iter, NULL, &value);
        if (more)
            sl_buffer_add_char(out, ',');
    }
}

/* A value's content, which follows its tag. */
static void add_content(struct sl_value v, enum form form, struct sl_buffer *out)
{
    switch (v.type) {
    case SL_S:
    case SL_B:
        add_string(v, form, out);
        break;
    case SL_N:
        add_number(v, form, out);
        break;
    case SL_L:
        sl_buffer_add_char(out, '[');
        add_list(v, form, out);
        sl_buffer_add_char(out, ']');
        break;
    case SL_SS:
    case SL_NS:
    case SL_BS:
    case SL_M:
        sl_buffer_add_char(out, v.type == SL_M ? '{' : '[');
        add_sorted(v, form, out);
        sl_buffer_add_char(out, v.type == SL_M ? '}' : ']');
        break;
    default:
        sl_buffer_add_span(out, v.raw);
    }
}

static void add_tagged(struct sl_value v, enum form form, struct sl_buffer *out)
{
    static const char *const tags[] = {"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    sl_buffer_add_str(out, "{\"");
    sl_buffer_add_str(out, tags[v.type]);
    sl_buffer_add_str(out, "\":");
    add_content(v, form, out);
    sl_buffer_add_char(out, '}');
}

void sl_value_canonical(struct sl_value v, struct sl_buffer *out)
{
    add_tagged(v, TYPED, out);
}

void sl_value_stored(struct sl_value v, struct sl_buffer *out)
{
    add_tagged(v, STORED, out);
}

/* A B differs from every string. */
void sl_value_plain(struct sl_value v, struct sl_buffer *out)
{
    if (v.type == SL_B)
        sl_buffer_add_str(out, "{\"base64\":");
    if (v.type == SL_NULL || v.type == SL_NONE)
        sl_buffer_add_str(out, "null");
    else
        add_content(v, PLAIN, out);
    if (v.type == SL_B)
        sl_buffer_add_char(out, '}');
}

static void add_value(struct sl_value v, enum form form, struct sl_buffer *out)
{
    if (form == PLAIN)
        sl_value_plain(v, out);
    else
        add_tagged(v, form, out);
}
