/* Items in an answer, checked in one pass. Services write no blanks and escape no tags, so these are the
 * common case; the depth of an item limits the recursion, not the input. */
#include "sinks/item_scan.h"

#include "base/array.h"
#include "base/base64.h"
#include "base/number.h"
#include "base/scan.h"
#include "sinks/item.h"

static const char *value(struct sl_json_scan *s, const char *p, unsigned depth);

static const char *string(struct sl_json_scan *s, const char *p, struct sl_span *inner, bool *escaped)
{
    const char *next = sl_scan_string(p, s->end);
    *escaped = false;
    if (!next)
        next = sl_json_string(s, p, escaped);
    if (!next)
        return NULL;
    *inner = sl_span(p + 1, (size_t)(next - p) - 2);
    return next;
}

/* ---- plain values ---- */

typedef const char *(*read_fn)(struct sl_json_scan *s, const char *p, unsigned depth);

static const char *text(struct sl_json_scan *s, const char *p, unsigned depth)
{
    struct sl_span inner;
    bool escaped;
    (void)depth;
    return string(s, p, &inner, &escaped);
}

static const char *number(struct sl_json_scan *s, const char *p, unsigned depth)
{
    const char *next = sl_scan_quoted_number(p, s->end);
    struct sl_number parsed;
    struct sl_span inner;
    bool escaped;
    (void)depth;
    if (next)
        return next;
    next = string(s, p, &inner, &escaped);
    const char *why = !next ? NULL : escaped ? "a number is not escaped" : sl_number_parse(inner, &parsed);
    return why ? sl_json_fault(s, p, why) : next;
}

static const char *bytes(struct sl_json_scan *s, const char *p, unsigned depth)
{
    struct sl_span inner;
    bool escaped;
    (void)depth;
    const char *next = string(s, p, &inner, &escaped);
    return next && (escaped || !sl_base64_is_valid(inner)) ? sl_json_fault(s, p, "not base64") : next;
}

static const char *boolean(struct sl_json_scan *s, const char *p, unsigned depth)
{
    (void)depth;
    return p < s->end && *p == 't' ? sl_json_word(s, p, "true", 4) : sl_json_word(s, p, "false", 5);
}

static const char *null(struct sl_json_scan *s, const char *p, unsigned depth)
{
    (void)depth;
    return sl_json_word(s, p, "true", 4);
}

/* ---- lists, sets, maps ---- */

/* After an element: the next one, or the byte after `close`, and then `*more` is false. */
static const char *next_element(struct sl_json_scan *s, const char *p, char close, bool *more)
{
    p = sl_json_space(p, s->end);
    *more = p < s->end && *p == ',';
    return *more ? sl_json_space(p + 1, s->end) : sl_json_byte(s, p, close, "',' or the end is expected");
}

/* Past the bracket that opens: the first element, or the byte after `close`. */
static const char *first_element(struct sl_json_scan *s, const char *p, const char *brackets, bool *more)
{
    p = sl_json_byte(s, p, brackets[0], "a list or map is expected");
    p = p ? sl_json_space(p, s->end) : NULL;
    *more = p && !(p < s->end && *p == brackets[1]);
    return p && !*more ? p + 1 : p;
}

static const char *elements(struct sl_json_scan *s, const char *p, unsigned depth, read_fn element)
{
    bool more;
    p = first_element(s, p, "[]", &more);
    while (p && more) {
        p = element(s, p, depth);
        p = p ? next_element(s, p, ']', &more) : NULL;
    }
    return p;
}

static const char *set(struct sl_json_scan *s, const char *p, read_fn element)
{
    const char *next = elements(s, p, 0, element);
    bool is_empty = next && sl_json_space(p + 1, s->end) + 1 == next;
    return is_empty ? sl_json_fault(s, p, "a set has an element at least") : next;
}

static const char *texts(struct sl_json_scan *s, const char *p, unsigned depth)
{
    (void)depth;
    return set(s, p, text);
}

static const char *numbers(struct sl_json_scan *s, const char *p, unsigned depth)
{
    (void)depth;
    return set(s, p, number);
}

static const char *all_bytes(struct sl_json_scan *s, const char *p, unsigned depth)
{
    (void)depth;
    return set(s, p, bytes);
}

static const char *list(struct sl_json_scan *s, const char *p, unsigned depth)
{
    return depth < SL_ITEM_DEPTH ? elements(s, p, depth + 1, value) : sl_json_fault(s, p, "nested too deep");
}

/* The values are in `depth` containers. */
static const char *attributes(struct sl_json_scan *s, const char *p, unsigned depth)
{
    struct sl_span name;
    bool more, escaped;
    p = first_element(s, p, "{}", &more);
    while (p && more) {
        p = string(s, p, &name, &escaped);
        p = p ? sl_json_byte(s, sl_json_space(p, s->end), ':', "':' is expected") : NULL;
        p = p ? value(s, sl_json_space(p, s->end), depth) : NULL;
        p = p ? next_element(s, p, '}', &more) : NULL;
    }
    return p;
}

static const char *map(struct sl_json_scan *s, const char *p, unsigned depth)
{
    return depth < SL_ITEM_DEPTH ? attributes(s, p, depth + 1) : sl_json_fault(s, p, "nested too deep");
}

/* ---- values ---- */

static read_fn reader_of(struct sl_span tag)
{
    static const struct {
        struct sl_span tag;
        read_fn read;
    } readers[] = {{{"S", 1}, text},     {{"N", 1}, number},    {{"BOOL", 4}, boolean}, {{"M", 1}, map},
                   {{"L", 1}, list},     {{"NULL", 4}, null},   {{"B", 1}, bytes},      {{"SS", 2}, texts},
                   {{"NS", 2}, numbers}, {{"BS", 2}, all_bytes}};
    for (size_t i = 0; i < SL_COUNT(readers); i++)
        if (sl_span_eq(tag, readers[i].tag))
            return readers[i].read;
    return NULL;
}

static const char *value(struct sl_json_scan *s, const char *p, unsigned depth)
{
    struct sl_span tag;
    bool escaped;
    const char *begin = p;
    p = sl_json_byte(s, p, '{', "an attribute value is expected");
    p = p ? string(s, sl_json_space(p, s->end), &tag, &escaped) : NULL;
    read_fn read = p ? reader_of(tag) : NULL;
    if (p && !read)
        return sl_json_fault(s, begin, "not an attribute value");
    p = p ? sl_json_byte(s, sl_json_space(p, s->end), ':', "':' is expected") : NULL;
    p = p ? read(s, sl_json_space(p, s->end), depth) : NULL;
    return p ? sl_json_byte(s, sl_json_space(p, s->end), '}', "'}' is expected") : NULL;
}

const char *sl_item_scan(struct sl_json_scan *s, const char *p)
{
    return attributes(s, p, 0);
}
