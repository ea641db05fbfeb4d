/* Objects whose members we know, and the texts in them. */
#include "base/json_scan.h"
#include "streams/decode.h"

const char *sl_decode_fault(struct sl_json_scan *s, const char *at, enum sl_fault kind, const char *why)
{
    s->kind = kind;
    return sl_json_fault(s, at, why);
}

void sl_decode_prefer_json(struct sl_json_scan *s, const char *p)
{
    struct sl_json_scan plain = {.end = s->end};
    if (!sl_json_value(&plain, p))
        *s = plain;
}

/* ---- texts ---- */

bool sl_decode_text_is(struct sl_text text, struct sl_span known)
{
    return text.escaped ? sl_json_text_is(text.inner, known) : sl_span_eq(text.inner, known);
}

struct sl_span sl_decode_resolved(struct sl_decoder *d, struct sl_text text)
{
    return text.escaped ? sl_json_unescape(text.inner, d->batch->arena) : text.inner;
}

const char *sl_decode_text(struct sl_decoder *d, const char *p, struct sl_text *text)
{
    const char *next = sl_scan_string(p, d->scan.end);
    text->escaped = false;
    if (!next) {
        if (p < d->scan.end && *p != '"')
            return sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "a string is expected");
        next = sl_json_string(&d->scan, p, &text->escaped);
    }
    if (next)
        text->inner = sl_span(p + 1, (size_t)(next - p - 2));
    return next;
}

const char *sl_decode_repeated(struct sl_decoder *d, const char *p, struct sl_text *last,
                               struct sl_text *text)
{
    size_t n = last->inner.len + 2; /* with its quotes */
    if (last->inner.ptr && (size_t)(d->scan.end - p) > n && memcmp(p, last->inner.ptr - 1, n) == 0) {
        *text = *last;
        return p + n;
    }
    p = sl_decode_text(d, p, text);
    if (p)
        *last = *text;
    return p;
}

/* ---- members ---- */

/* The member whose text stands at `p`, among the next few of the list; `n` when it is none of them. */
static inline size_t foreseen_member(const struct sl_json_scan *s, const char *p,
                                     const struct sl_member *members, size_t n, size_t from)
{
    if (s->end - p < 2 * SL_BLOCK)
        return n;
    for (size_t i = from; i < n && i < from + 4; i++)
        if (members[i].len <= 2 * SL_BLOCK && sl_scan_is(p, members[i].text, members[i].len))
            return i;
    return n;
}

static size_t find_member(const struct sl_member *members, size_t n, struct sl_text name)
{
    for (size_t i = 0; i < n; i++)
        if (sl_decode_text_is(name, sl_span(members[i].text + 1, members[i].len - 3u)))
            return i;
    return n;
}

/* A member's name and colon, whatever they are; `*found` becomes its place in the list. */
static const char *any_member(struct sl_json_scan *s, const char *p, const struct sl_member *members,
                              size_t n, size_t *found)
{
    struct sl_text name;
    const char *close = sl_json_string(s, p, &name.escaped);
    if (!close)
        return NULL;
    name.inner = sl_span(p + 1, (size_t)(close - p - 2));
    *found = find_member(members, n, name);
    p = sl_json_byte(s, sl_json_space(close, s->end), ':', "':' is expected");
    return p ? sl_json_space(p, s->end) : NULL;
}

/* One member with its value; `*from` becomes the place from which the next is foreseen. */
static const char *member(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                          size_t *from, void *to)
{
    struct sl_json_scan *s = &d->scan;
    size_t found = foreseen_member(s, p, members, n, *from);
    if (found < n)
        p = sl_json_space(p + members[found].len, s->end);
    else
        p = any_member(s, p, members, n, &found);
    if (!p)
        return NULL;
    if (found == n || (p < s->end && *p == 'n'))
        return sl_json_value(s, p);
    *from = found + 1;
    return members[found].read(d, p, to);
}

const char *sl_decode_object(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                             void *to)
{
    struct sl_json_scan *s = &d->scan;
    size_t from = 0;
    if (p < s->end && *p != '{')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an object is expected");
    p = sl_json_byte(s, p, '{', "");
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == '}')
        return p + 1;
    for (;;) {
        p = member(d, p, members, n, &from, to);
        if (!p)
            return NULL;
        p = sl_json_space(p, s->end);
        if (p == s->end || *p != ',')
            return sl_json_byte(s, p, '}', "',' or '}' is expected");
        p = sl_json_space(p + 1, s->end);
    }
}
