/* Attribute values of a payload, checked as they are read: one tag each, numbers and base64 valid, at most 32
 * containers deep. That depth limits the recursion, not the input. */
#include "base/base64.h"
#include "base/scan.h"
#include "streams/decode/batch_private.h"

#include <stdlib.h>

static const char *value(struct sl_decoder *d, const char *p, unsigned depth, struct sl_form *form);

/* ---- strings of numbers and bytes ---- */

static const char *number_why(struct sl_span text)
{
    struct sl_number number;
    return sl_number_parse(text, &number);
}

static const char *base64_why(struct sl_span text)
{
    return sl_base64_is_valid(text) ? NULL : "not base64";
}

/* What is wrong with the inside of an N or a B. Some writers escape '+' and '/'. */
static const char *inner_why(struct sl_span inner, bool escaped, enum sl_type type)
{
    const char *(*why_not)(struct sl_span) = type == SL_N ? number_why : base64_why;
    struct sl_buffer text;
    if (!escaped)
        return why_not(inner);
    sl_buffer_init(&text, SIZE_MAX / 2);
    const char *why = why_not(sl_json_unescape_in(inner, &text));
    sl_buffer_clean_up(&text);
    return why;
}

/* A string of type S, N or B. */
static const char *text(struct sl_json_scan *s, const char *p, enum sl_type type)
{
    bool escaped;
    const char *next;
    if (p < s->end && *p != '"')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "a string is expected");
    next = sl_json_string(s, p, &escaped);
    if (!next || type == SL_S)
        return next;
    struct sl_span inner = sl_span(p + 1, (size_t)(next - p - 2));
    const char *why = inner_why(inner, escaped, type);
    return why ? sl_decode_fault(s, p + 1, SL_FAULT_RECORD, why) : next;
}

/* ---- arrays ---- */

/* The next element after `p`; or the byte after the bracket that ends the array, and then `*more` is
 * false. */
static const char *next_element(struct sl_json_scan *s, const char *p, bool *more)
{
    p = sl_json_space(p, s->end);
    *more = p < s->end && *p == ',';
    if (*more)
        return sl_json_space(p + 1, s->end);
    return sl_json_byte(s, p, ']', "',' or ']' is expected");
}

/* Into the array at `p`. */
static const char *first_element(struct sl_json_scan *s, const char *p, bool *more)
{
    if (p < s->end && *p != '[')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an array is expected");
    p = sl_json_byte(s, p, '[', "");
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    *more = p == s->end || *p != ']';
    return *more ? p : p + 1;
}

/* The maps among the elements share one form. */
static const char *list(struct sl_decoder *d, const char *p, unsigned depth, struct sl_form *form)
{
    bool more;
    p = first_element(&d->scan, p, &more);
    while (p && more) {
        p = value(d, p, depth, form);
        if (p)
            p = next_element(&d->scan, p, &more);
    }
    return p;
}

static const char *set(struct sl_json_scan *s, const char *p, enum sl_type element)
{
    bool more;
    p = first_element(s, p, &more);
    while (p && more) {
        p = text(s, p, element);
        if (p)
            p = next_element(s, p, &more);
    }
    return p;
}

/* ---- number sets: no number twice ---- */

/* The elements by their place in the text, so that a large set costs four bytes an element. */
static struct sl_number element_number(const char *text, uint32_t at, const char *end)
{
    struct sl_value v = {.type = SL_N};
    struct sl_number number;
    const char *close = sl_json_string_end(text + at, end, &v.escaped);
    v.raw = sl_span(text + at, (size_t)(close - text) - at);
    (void)sl_value_number(v, &number);
    return number;
}

struct set_text {
    const char *text, *end;
};

static int compare_elements(const void *a, const void *b, void *context)
{
    const struct set_text *set = context;
    struct sl_number x = element_number(set->text, *(const uint32_t *)a, set->end);
    struct sl_number y = element_number(set->text, *(const uint32_t *)b, set->end);
    return sl_number_compare(&x, &y);
}

static void add_elements(const char *text, const char *end, struct sl_buffer *places)
{
    bool escaped;
    for (const char *p = text; p < end; p++) {
        if (*p != '"')
            continue;
        uint32_t at = (uint32_t)(p + 1 - text);
        sl_buffer_add(places, &at, sizeof(at));
        p = sl_json_string_end(p + 1, end, &escaped);
    }
}

static bool has_twice(const char *text, const char *end)
{
    struct set_text context = {text, end};
    struct sl_buffer places;
    sl_buffer_init(&places, SIZE_MAX / 2);
    add_elements(text, end, &places);
    uint32_t *at = (uint32_t *)(void *)places.ptr;
    size_t n = places.len / sizeof(*at);
    if (n > 1)
        qsort_r(at, n, sizeof(*at), compare_elements, &context);
    bool twice = false;
    for (size_t i = 1; i < n && !twice; i++)
        twice = compare_elements(&at[i - 1], &at[i], &context) == 0;
    sl_buffer_clean_up(&places);
    return twice;
}

static const char *number_set(struct sl_json_scan *s, const char *p)
{
    const char *next = set(s, p, SL_N);
    if (next && has_twice(p, next))
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "a number set holds a number twice");
    return next;
}

/* ---- values ---- */

static const char *container(struct sl_decoder *d, const char *p, enum sl_type type, unsigned depth,
                             struct sl_form *form)
{
    if (depth == SL_VALUE_DEPTH)
        return sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "nested deeper than 32 levels");
    return type == SL_L ? list(d, p, depth + 1, form) : sl_decode_attributes(d, p, depth + 1, form);
}

static const char *boolean(struct sl_json_scan *s, const char *p)
{
    if (p < s->end && *p == 't')
        return sl_json_word(s, p, "true", 4);
    if (p < s->end && *p == 'f')
        return sl_json_word(s, p, "false", 5);
    return p < s->end ? sl_decode_fault(s, p, SL_FAULT_RECORD, "true or false is expected")
                      : sl_json_unexpected(s, p, "");
}

static const char *null(struct sl_json_scan *s, const char *p)
{
    if (p < s->end && *p != 't')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "the value of a NULL must be true");
    return sl_json_word(s, p, "true", 4);
}

static const char *any_set(struct sl_decoder *d, const char *p, enum sl_type type)
{
    if (type == SL_NS && !d->is_table)
        return number_set(&d->scan, p);
    const char *next = set(&d->scan, p, type == SL_SS ? SL_S : type == SL_NS ? SL_N : SL_B);
    bool is_empty = d->is_table && next && sl_json_space(p + 1, d->scan.end) + 1 == next;
    return is_empty ? sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "a set has an element at least") : next;
}

/* A value's content, which follows its tag. `form` is that of the maps in it; NULL: none. */
static const char *content(struct sl_decoder *d, const char *p, enum sl_type type, unsigned depth,
                           struct sl_form *form)
{
    struct sl_json_scan *s = &d->scan;
    switch (type) {
    case SL_BOOL:
        return boolean(s, p);
    case SL_NULL:
        return null(s, p);
    case SL_SS:
    case SL_NS:
    case SL_BS:
        return any_set(d, p, type);
    case SL_L:
    case SL_M:
        return container(d, p, type, depth, form);
    default:
        return text(s, p, type);
    }
}

static enum sl_type tag_of(struct sl_string tag)
{
    char name[24]; /* "BOOL" with each letter escaped */
    if (!tag.escaped)
        return sl_value_tag(tag.inner.ptr, tag.inner.len);
    if (tag.inner.len > sizeof(name))
        return SL_NONE;
    return sl_value_tag(name, sl_json_unescape_to(tag.inner, name));
}

/* {"S": and other one-letter tags, without whitespace; NULL for others. */
static inline const char *letter_head(const char *p, const char *end, enum sl_type *type)
{
    if (end - p < 5 || p[0] != '{' || p[1] != '"' || p[3] != '"' || p[4] != ':')
        return NULL;
    *type = p[2] == 'S' ? SL_S : p[2] == 'N' ? SL_N : sl_value_tag(p + 2, 1);
    return *type == SL_NONE ? NULL : p + 5;
}

/* From a value's brace to its content: {"S": */
static const char *value_head(struct sl_json_scan *s, const char *p, enum sl_type *type)
{
    struct sl_string tag;
    const char *short_head = letter_head(p, s->end, type);
    if (short_head)
        return sl_json_space(short_head, s->end);
    if (p < s->end && *p != '{')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an attribute value ({\"S\": ...}) is expected");
    const char *tag_at = sl_json_byte(s, p, '{', "");
    if (!tag_at)
        return NULL;
    tag_at = sl_json_space(tag_at, s->end);
    if (tag_at < s->end && *tag_at == '}')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an attribute value without a type");
    p = sl_decode_name(s, tag_at, &tag);
    if (!p)
        return NULL;
    *type = tag_of(tag);
    return *type == SL_NONE ? sl_decode_fault(s, tag_at, SL_FAULT_RECORD,
                                              "not an attribute type (S, N, B, BOOL, NULL, SS, NS, BS, L, M)")
                            : p;
}

/* The brace after a value's content. */
static const char *value_tail(struct sl_json_scan *s, const char *p)
{
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == ',')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an attribute value with more than one type");
    return sl_json_byte(s, p, '}', "'}' is expected");
}

static const char *value(struct sl_decoder *d, const char *p, unsigned depth, struct sl_form *form)
{
    enum sl_type type;
    p = value_head(&d->scan, p, &type);
    if (p)
        p = content(d, p, type, depth, form);
    return p ? value_tail(&d->scan, p) : NULL;
}

/* ---- maps of attributes ---- */

/* What is known of the map that is being read: its form (NULL: none), the place in it, and of the
 * attribute at hand the slot (NULL: none) and the type. */
struct map {
    struct sl_form *form;
    unsigned at;
    struct sl_slot *slot;
    enum sl_type type;
    struct sl_name_hash name; /* only where attributes are noted */
};

/* From an attribute's name to its value's content, as the form foresees it or read anew. */
static inline const char *attribute_head(struct sl_decoder *d, const char *p, struct map *map)
{
    struct sl_string name;
    enum sl_type type;
    const char *begin = p;
    map->slot = NULL;
    if (map->form && d->scan.end - p >= SL_FORM_AHEAD) {
        map->slot = sl_form_match(map->form, &map->at, p);
        if (map->slot) {
            map->type = (enum sl_type)map->slot->type;
            map->name = map->slot->name;
            return p + map->slot->len;
        }
    }
    p = sl_decode_name(&d->scan, p, &name);
    if (p)
        p = value_head(&d->scan, p, &type);
    if (!p)
        return NULL;
    map->type = type;
    if (d->notes.room)
        map->name = sl_name_hash(name.inner);
    if (map->form)
        map->slot = sl_form_learn(map->form, &map->at, begin, p, type, map->name);
    return p;
}

/* Contents that are short and plain, NULL for others. */
static inline const char *short_content(const char *p, const char *end, enum sl_type type)
{
    if (type == SL_S)
        return sl_scan_string(p, end);
    if (type == SL_N)
        return sl_scan_quoted_number(p, end);
    return type == SL_BOOL ? sl_scan_bool(p, end) : NULL;
}

/* An attribute's content, any space before it (the map that taught the form may have had less), and what its
 * value ends with. */
static const char *attribute_rest(struct sl_decoder *d, const char *p, unsigned depth, enum sl_type type,
                                  struct sl_slot *slot)
{
    struct sl_form *child = type >= SL_L ? sl_form_child(d->forms, slot) : NULL;
    return content(d, sl_json_space(p, d->scan.end), type, depth, child);
}

/* The attribute from `begin` to `end`, whose content is at `p` or after space. */
static void note(struct sl_image_notes *notes, const char *begin, const char *p, const char *end,
                 const struct map *map)
{
    p = sl_json_space(p, end);
    struct sl_value value = {.type = map->type, .raw = sl_span(p, (size_t)(end - p))};
    if (map->type <= SL_B) {
        value.raw = sl_span(p + 1, value.raw.len - 2);
        value.escaped = value.raw.len && memchr(value.raw.ptr, '\\', value.raw.len);
    }
    sl_image_note(notes, begin + 1, map->name, value);
}

const char *sl_decode_attributes(struct sl_decoder *d, const char *p, unsigned depth, struct sl_form *form)
{
    struct sl_json_scan *s = &d->scan;
    struct map map = {.form = form};
    if (p < s->end && *p != '{')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "a map of attributes is expected");
    p = sl_json_byte(s, p, '{', "");
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == '}')
        return p + 1;
    for (;;) {
        const char *begin = p, *content = attribute_head(d, p, &map);
        if (!content)
            return NULL;
        p = short_content(content, s->end, map.type);
        if (!p)
            p = attribute_rest(d, content, depth, map.type, map.slot);
        if (!p)
            return NULL;
        if (depth == 0 && d->notes.room)
            note(&d->notes, begin, content, p, &map);
        if (s->end - p >= 3 && p[0] == '}' && p[1] == ',' && p[2] == '"') {
            p += 2;
            continue;
        }
        p = value_tail(s, p);
        if (!p)
            return NULL;
        p = sl_json_space(p, s->end);
        if (p == s->end || *p != ',')
            return sl_json_byte(s, p, '}', "',' or '}' is expected");
        p = sl_json_space(p + 1, s->end);
    }
}

/* ---- for those who hold a table's items, and no records ---- */

const char *sl_value_check_item(struct sl_json_scan *s, const char *p)
{
    struct sl_decoder d = {.scan = *s, .is_table = true};
    const char *next = sl_decode_attributes(&d, p, 0, NULL);
    *s = d.scan;
    return next;
}

struct sl_value sl_value_read(struct sl_span json)
{
    const char *end = sl_span_end(json), *begin = sl_json_space(json.ptr, end), *after;
    struct sl_decoder d = {.scan = {.end = end, .is_loose = true}, .is_table = true};
    const char *next = value(&d, begin, 0, NULL);
    return next && sl_json_space(next, end) == end ? sl_value_at(begin, end, &after)
                                                   : (struct sl_value){.type = SL_NONE};
}
