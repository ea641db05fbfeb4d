/* An item becomes a document: plain JSON, and beside it what plain JSON does not say.
 *
 * S becomes a string, N a number with all of its digits (or, with numbers=text, a string), B its base64, a
 * set an array. The field sluice_types then holds a JSON text with the types that the document alone does not
 * tell, in the shape of the document: {"photo":"B","tags":"SS","m":{"l":{"0":"N"}}}. "N=1.50" and "NS=1,2.50"
 * also hold the digits, of numbers that most readers of JSON would round. An item without any of them has no
 * such field. */
#include "sinks/opensearch/opensearch_private.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/number.h"
#include "base/utf8.h"

#include <stdio.h>

/* Digits that a double keeps, and that 64 bits keep. */
#define DOUBLE_DIGITS 15
#define LONG_DIGITS   18

#define UNKNOWN "an attribute has no value that DynamoDB takes"

struct writer {
    struct sl_buffer *out, *types;
    bool is_text;
    bool is_clean; /* all of the item is UTF-8 */
    int depth;
    const char *why; /* it is no item */
};

static bool fail(struct writer *w, const char *why)
{
    w->why = w->why ? w->why : why;
    return false;
}

/* ---- strings ---- */

/* The text between the quotes, as it is written. What is not UTF-8 is escaped as far as it can be. */
static void add_inner(const struct writer *w, struct sl_buffer *out, struct sl_span inner)
{
    if (w->is_clean || sl_utf8_is_valid(inner)) {
        sl_buffer_add_span(out, inner);
        return;
    }
    struct sl_buffer plain;
    sl_buffer_init(&plain, inner.len + 1);
    sl_json_add_exact(out, sl_json_unescape_in(inner, &plain));
    sl_buffer_clean_up(&plain);
}

static bool is_string(struct sl_span json)
{
    return json.len >= 2 && *json.ptr == '"';
}

static struct sl_span inner_of(struct sl_span string)
{
    return sl_span(string.ptr + 1, string.len - 2);
}

static void add_string(const struct writer *w, struct sl_buffer *out, struct sl_span inner)
{
    sl_buffer_add_char(out, '"');
    add_inner(w, out, inner);
    sl_buffer_add_char(out, '"');
}

/* ---- numbers ---- */

static size_t digits_at(struct sl_span text, size_t i)
{
    size_t n = 0;
    while (i + n < text.len && text.ptr[i + n] >= '0' && text.ptr[i + n] <= '9')
        n++;
    return n;
}

/* Whether the text is a number in JSON; `is_whole` says that it has neither fraction nor exponent. */
static bool is_json_number(struct sl_span text, bool *is_whole)
{
    size_t i = text.len && *text.ptr == '-', n = digits_at(text, i);
    if (n == 0 || (n > 1 && text.ptr[i] == '0'))
        return false;
    i += n;
    *is_whole = i == text.len;
    if (i < text.len && text.ptr[i] == '.') {
        n = digits_at(text, i + 1);
        if (n == 0)
            return false;
        i += 1 + n;
    }
    if (i < text.len && (text.ptr[i] == 'e' || text.ptr[i] == 'E')) {
        i++;
        i += i < text.len && (text.ptr[i] == '+' || text.ptr[i] == '-');
        n = digits_at(text, i);
        if (n == 0)
            return false;
        i += n;
    }
    return i == text.len;
}

/* Whether a reader that knows 64 bits and doubles could lose a digit of it. */
static bool is_long(struct sl_span text, bool is_whole)
{
    if (text.len <= DOUBLE_DIGITS)
        return false;
    struct sl_number number;
    return sl_number_parse(text, &number) ||
           number.n > (is_whole && text.len <= LONG_DIGITS ? LONG_DIGITS : DOUBLE_DIGITS);
}

/* The number as it goes into the document: as it is, or in its normal form when it is not written as JSON has
 * it. `exact` becomes what the document's own number may lose; absent: nothing. False: it is no number. */
static bool add_number(struct writer *w, struct sl_span inner, struct sl_span *exact,
                       char normal[SL_NUMBER_TEXT])
{
    struct sl_number number;
    bool is_whole = false;
    *exact = sl_span(NULL, 0);
    if (memchr(inner.ptr, '\\', inner.len)) {
        char plain[SL_NUMBER_TEXT];
        if (inner.len > sizeof(plain))
            return fail(w, "a number is none");
        size_t n = sl_json_unescape_to(inner, plain);
        if (sl_number_parse(sl_span(plain, n), &number))
            return fail(w, "a number is none");
        inner = sl_span(normal, sl_number_text(&number, normal));
    }
    bool is_plain = is_json_number(inner, &is_whole);
    if ((!is_plain || inner.len > DOUBLE_DIGITS) && sl_number_parse(inner, &number))
        return fail(w, "a number is none, or is out of range");
    if (!is_plain) {
        inner = sl_span(normal, sl_number_text(&number, normal));
        is_whole = !memchr(normal, '.', inner.len);
    }
    if (w->is_text) {
        add_string(w, w->out, inner);
        return true;
    }
    sl_buffer_add_span(w->out, inner);
    if (is_long(inner, is_whole))
        *exact = inner;
    return true;
}

/* ---- types ---- */

static bool add_type(struct writer *w, const char *type)
{
    sl_buffer_add_char(w->types, '"');
    sl_buffer_add_str(w->types, type);
    sl_buffer_add_char(w->types, '"');
    return true;
}

/* ---- values: each writes the document's value, and returns whether it has written a type ---- */

static bool write_value(struct writer *w, struct sl_span json);

static bool write_number(struct writer *w, struct sl_span inner)
{
    char normal[SL_NUMBER_TEXT];
    struct sl_span exact;
    if (!add_number(w, inner, &exact, normal) || (!exact.ptr && !w->is_text))
        return false;
    sl_buffer_add_str(w->types, exact.ptr ? "\"N=" : "\"N");
    sl_buffer_add_span(w->types, exact);
    sl_buffer_add_char(w->types, '"');
    return true;
}

static bool write_number_set(struct writer *w, struct sl_span list)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span element, exact;
    char normal[SL_NUMBER_TEXT];
    size_t n = 0, from = w->out->len, mark = w->types->len;
    bool any_long = false;
    sl_buffer_add_str(w->types, "\"NS=");
    sl_buffer_add_char(w->out, '[');
    while (sl_json_walk_next(&walk, NULL, &element)) {
        sl_buffer_add_str(w->out, n ? "," : "");
        from = w->out->len;
        if (!is_string(element) || !add_number(w, inner_of(element), &exact, normal))
            return fail(w, "a set of numbers holds something else");
        sl_buffer_add_str(w->types, n++ ? "," : "");
        if (!w->is_text)
            sl_buffer_add(w->types, w->out->ptr + from, w->out->len - from);
        any_long = any_long || exact.ptr;
    }
    sl_buffer_add_char(w->out, ']');
    sl_buffer_add_char(w->types, '"');
    if (n == 0)
        return fail(w, "a set is empty");
    if (any_long)
        return true;
    w->types->len = mark;
    return add_type(w, "NS");
}

static bool write_set(struct writer *w, struct sl_span list, const char *type)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span element;
    size_t n = 0;
    sl_buffer_add_char(w->out, '[');
    for (; sl_json_walk_next(&walk, NULL, &element); n++) {
        if (!is_string(element))
            return fail(w, "a set holds something else than strings");
        sl_buffer_add_str(w->out, n ? "," : "");
        add_string(w, w->out, inner_of(element));
    }
    sl_buffer_add_char(w->out, ']');
    return n ? add_type(w, type) : fail(w, "a set is empty");
}

/* The container's types, of those parts that have any; they vanish when none has. */
struct parts {
    size_t mark, n, before;
};

static struct parts parts_begin(struct writer *w)
{
    struct parts parts = {.mark = w->types->len};
    sl_buffer_add_char(w->types, '{');
    return parts;
}

static void parts_name(struct writer *w, struct parts *parts, struct sl_span name)
{
    parts->before = w->types->len;
    sl_buffer_add_str(w->types, parts->n ? "," : "");
    add_string(w, w->types, name);
    sl_buffer_add_char(w->types, ':');
}

static void parts_took(struct writer *w, struct parts *parts, bool has_type)
{
    parts->n += has_type;
    if (!has_type)
        w->types->len = parts->before;
}

static bool parts_end(struct writer *w, const struct parts *parts)
{
    if (parts->n)
        sl_buffer_add_char(w->types, '}');
    else
        w->types->len = parts->mark;
    return parts->n > 0;
}

static bool write_list(struct writer *w, struct sl_span list)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct parts parts = parts_begin(w);
    struct sl_span element;
    char index[24];
    sl_buffer_add_char(w->out, '[');
    for (size_t i = 0; sl_json_walk_next(&walk, NULL, &element); i++) {
        int len = snprintf(index, sizeof(index), "%zu", i);
        sl_buffer_add_str(w->out, i ? "," : "");
        parts_name(w, &parts, sl_span(index, (size_t)len));
        parts_took(w, &parts, write_value(w, element));
    }
    sl_buffer_add_char(w->out, ']');
    return parts_end(w, &parts);
}

/* The members of a map or of the item; the brace that opens the object, and what is ours, is written. */
static bool write_members(struct writer *w, struct sl_span map, size_t before)
{
    struct sl_json_walk walk = sl_json_walk(map);
    struct parts parts = parts_begin(w);
    struct sl_span name, value;
    for (size_t i = before; sl_json_walk_next(&walk, &name, &value); i++) {
        sl_buffer_add_str(w->out, i ? "," : "");
        add_string(w, w->out, name);
        sl_buffer_add_char(w->out, ':');
        parts_name(w, &parts, name);
        parts_took(w, &parts, write_value(w, value));
    }
    sl_buffer_add_char(w->out, '}');
    return parts_end(w, &parts);
}

static bool write_map(struct writer *w, struct sl_span map)
{
    sl_buffer_add_char(w->out, '{');
    return write_members(w, map, 0);
}

static bool write_text(struct writer *w, struct sl_span tag, struct sl_span content)
{
    if (sl_json_text_is(tag, SL_LIT("N")))
        return write_number(w, inner_of(content));
    add_string(w, w->out, inner_of(content));
    if (sl_json_text_is(tag, SL_LIT("S")))
        return false;
    return sl_json_text_is(tag, SL_LIT("B")) ? add_type(w, "B") : fail(w, UNKNOWN);
}

static bool write_array(struct writer *w, struct sl_span tag, struct sl_span content)
{
    if (sl_json_text_is(tag, SL_LIT("L")))
        return write_list(w, content);
    if (sl_json_text_is(tag, SL_LIT("SS")))
        return write_set(w, content, "SS");
    if (sl_json_text_is(tag, SL_LIT("NS")))
        return write_number_set(w, content);
    return sl_json_text_is(tag, SL_LIT("BS")) ? write_set(w, content, "BS") : fail(w, UNKNOWN);
}

static bool write_tagged(struct writer *w, struct sl_span tag, struct sl_span content)
{
    bool is_bool = sl_json_text_is(tag, SL_LIT("BOOL"));
    if (*content.ptr == '"')
        return write_text(w, tag, content);
    if (*content.ptr == '[')
        return write_array(w, tag, content);
    if (*content.ptr == '{' && sl_json_text_is(tag, SL_LIT("M")))
        return write_map(w, content);
    if (is_bool && (sl_span_is(content, "true") || sl_span_is(content, "false")))
        sl_buffer_add_span(w->out, content);
    else if (sl_json_text_is(tag, SL_LIT("NULL")) && sl_span_is(content, "true"))
        sl_buffer_add_str(w->out, "null");
    else
        fail(w, UNKNOWN);
    return false;
}

static bool write_value(struct writer *w, struct sl_span json)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span tag, content, more;
    if (w->why || !walk.is_object || !sl_json_walk_next(&walk, &tag, &content) ||
        sl_json_walk_next(&walk, &more, &more))
        return fail(w, UNKNOWN);
    bool nests = *content.ptr == '{' || sl_json_text_is(tag, SL_LIT("L"));
    if (nests && w->depth == SL_ITEM_DEPTH)
        return fail(w, "it is nested too deep");
    w->depth += nests;
    bool has_type = write_tagged(w, tag, content);
    w->depth -= nests;
    return has_type;
}

/* ---- the document ---- */

static enum sl_status check_names(struct sl_span item, struct sl_error *error)
{
    static const char *const ours[] = {SL_OPENSEARCH_HASH, SL_OPENSEARCH_TYPES};
    for (size_t i = 0; i < 2; i++)
        if (sl_item_attribute(item, sl_span_str(ours[i])).ptr)
            return sl_fail(
                error, SL_REJECT, "ReservedName",
                "the item has an attribute %s, which is a field of Sluice's in every document; rename "
                "or drop it",
                ours[i]);
    return SL_OK;
}

static bool may_hold_ours(struct sl_span item)
{
    return memmem(item.ptr, item.len, "sluice_", strlen("sluice_")) || memchr(item.ptr, '\\', item.len);
}

enum sl_status sl_opensearch_document(struct sl_opensearch *index, struct sl_span item, const char *hash,
                                      struct sl_error *error)
{
    struct sl_buffer *out = &index->document, *types = &index->types;
    struct writer w = {.out = out, .types = types, .is_text = index->is_text};
    if (may_hold_ours(item) && check_names(item, error) != SL_OK)
        return SL_REJECT;
    w.is_clean = sl_utf8_is_valid(item);
    sl_buffer_reset(out);
    sl_buffer_reset(types);
    sl_buffer_add_str(out, "{\"" SL_OPENSEARCH_HASH "\":\"");
    sl_buffer_add_str(out, hash);
    sl_buffer_add_char(out, '"');
    bool has_types = write_members(&w, item, 1);
    if (w.why)
        return sl_fail(error, SL_REJECT, "ValidationException", "the item is not one that DynamoDB has: %s",
                       w.why);
    if (has_types) {
        out->len--; /* the brace */
        sl_buffer_add_str(out, ",\"" SL_OPENSEARCH_TYPES "\":\"");
        sl_json_add_exact(out, sl_buffer_span(types));
        sl_buffer_add_str(out, "\"}");
    }
    if (out->failed || types->failed)
        return sl_fail(error, SL_REJECT, "ValidationException", "the document is too large");
    return SL_OK;
}
