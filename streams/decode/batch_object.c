/* Objects whose members we know, and the texts in them. */
#include "base/scan.h"
#include "streams/decode/batch_private.h"

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

bool sl_decode_text_is(struct sl_string text, struct sl_span known)
{
    return text.escaped ? sl_json_text_is(text.inner, known) : sl_span_eq(text.inner, known);
}

struct sl_span sl_decode_resolved(struct sl_decoder *d, struct sl_string text)
{
    return text.escaped ? sl_json_unescape(text.inner, d->batch->arena) : text.inner;
}

const char *sl_decode_text(struct sl_decoder *d, const char *p, struct sl_string *text)
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

const char *sl_decode_repeated(struct sl_decoder *d, const char *p, struct sl_string *last,
                               struct sl_string *text)
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

const char *sl_decode_name(struct sl_json_scan *s, const char *p, struct sl_string *name)
{
    const char *next = sl_scan_string(p, s->end);
    name->escaped = false;
    if (!next)
        next = sl_json_string(s, p, &name->escaped);
    if (!next)
        return NULL;
    name->inner = sl_span(p + 1, (size_t)(next - p - 2));
    next = sl_json_byte(s, sl_json_space(next, s->end), ':', "':' is expected");
    return next ? sl_json_space(next, s->end) : NULL;
}

/* The members that an object may have, and from which on the next one is foreseen. */
struct list {
    const struct sl_member *members;
    size_t n, from;
};

/* The place of the member whose text is at `p`, among the next few of the list; `n` when it is not there. */
static inline size_t foreseen_member(const struct sl_json_scan *s, const char *p, const struct list *list)
{
    if (s->end - p < 2 * SL_BLOCK)
        return list->n;
    for (size_t i = list->from; i < list->n && i < list->from + 4; i++) {
        const struct sl_member *member = &list->members[i];
        if (member->len <= 2 * SL_BLOCK && sl_scan_is(p, member->text, member->len))
            return i;
    }
    return list->n;
}

static size_t find_member(const struct sl_member *members, size_t n, struct sl_string name)
{
    for (size_t i = 0; i < n; i++)
        if (sl_decode_text_is(name, sl_span(members[i].text + 1, members[i].len - 3u)))
            return i;
    return n;
}

/* One member with its value. */
static inline const char *member(struct sl_decoder *d, const char *p, struct list *list, void *to)
{
    struct sl_json_scan *s = &d->scan;
    size_t found = foreseen_member(s, p, list);
    if (found < list->n) {
        p = sl_json_space(p + list->members[found].len, s->end);
    } else {
        struct sl_string name;
        p = sl_decode_name(s, p, &name);
        if (!p)
            return NULL;
        found = find_member(list->members, list->n, name);
    }
    if (found == list->n || (p < s->end && *p == 'n'))
        return sl_json_value(s, p);
    list->from = found + 1;
    return list->members[found].read(d, p, to);
}

const char *sl_decode_object(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                             void *to)
{
    struct sl_json_scan *s = &d->scan;
    struct list list = {members, n, 0};
    if (p < s->end && *p != '{')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an object is expected");
    p = sl_json_byte(s, p, '{', "");
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == '}')
        return p + 1;
    for (;;) {
        p = member(d, p, &list, to);
        if (!p)
            return NULL;
        p = sl_json_space(p, s->end);
        if (p == s->end || *p != ',')
            return sl_json_byte(s, p, '}', "',' or '}' is expected");
        p = sl_json_space(p + 1, s->end);
    }
}
