/* The elements of small XML documents: see aws/xml.h. */
#include "aws/xml.h"

#include "base/array.h"

#include <assert.h>
#include <stdio.h>

/* Where "<name" begins, followed by '>', '/' or a blank; NULL when nowhere. */
static const char *find_open(struct sl_span xml, const char *name)
{
    size_t n = strlen(name);
    while (xml.len > n + 1) {
        const char *open = memchr(xml.ptr, '<', xml.len);
        if (!open)
            return NULL;
        xml = sl_span_from(xml, (size_t)(open - xml.ptr) + 1);
        if (xml.len > n && memcmp(xml.ptr, name, n) == 0 && strchr("> \t\r\n/", xml.ptr[n]))
            return open;
    }
    return NULL;
}

struct sl_span sl_xml_next_tag(struct sl_span *rest, const char *name)
{
    const struct sl_span none = {NULL, 0};
    char close[80];
    int n = snprintf(close, sizeof(close), "</%s>", name);
    const char *open = rest->len ? find_open(*rest, name) : NULL;
    if (!open || n < 0 || (size_t)n >= sizeof(close))
        return none;
    struct sl_span after = sl_span(open, (size_t)(rest->ptr + rest->len - open));
    const char *mark = memchr(after.ptr, '>', after.len);
    if (!mark)
        return none;
    after = sl_span_from(after, (size_t)(mark - after.ptr) + 1);
    if (mark[-1] == '/') {
        *rest = after;
        return sl_span(after.ptr, 0);
    }
    const char *end = memmem(after.ptr, after.len, close, (size_t)n);
    if (!end)
        return none;
    struct sl_span text = sl_span(after.ptr, (size_t)(end - after.ptr));
    *rest = sl_span_from(after, text.len + (size_t)n);
    return text;
}

struct sl_span sl_xml_tag(struct sl_span xml, const char *name)
{
    return sl_xml_next_tag(&xml, name);
}

bool sl_xml_is_once(struct sl_span xml, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_span rest = xml;
        if (sl_xml_next_tag(&rest, names[i]).ptr && sl_xml_tag(rest, names[i]).ptr)
            return false;
    }
    return true;
}

void sl_xml_add_text(struct sl_buffer *out, struct sl_span text)
{
    static const struct {
        struct sl_span entity;
        char is;
    } entities[] = {
        {SL_LIT("&amp;"), '&'},  {SL_LIT("&lt;"), '<'},    {SL_LIT("&gt;"), '>'},
        {SL_LIT("&quot;"), '"'}, {SL_LIT("&apos;"), '\''}, {SL_LIT("&#39;"), '\''},
    };
    while (text.len) {
        size_t i = 0;
        while (i < SL_COUNT(entities) && !sl_span_starts(text, entities[i].entity))
            i++;
        bool found = i < SL_COUNT(entities);
        sl_buffer_add_char(out, found ? entities[i].is : *text.ptr);
        text = sl_span_from(text, found ? entities[i].entity.len : 1);
    }
}

struct sl_span sl_xml_text(struct sl_span text, struct sl_arena *arena)
{
    struct sl_buffer out;
    if (!text.len || !memchr(text.ptr, '&', text.len))
        return text;
    sl_buffer_init_in(&out, arena, text.len);
    sl_xml_add_text(&out, text);
    return sl_buffer_span(&out);
}

/* ---- whole documents ---- */

struct document {
    const char *p, *end;
    struct sl_span open[SL_XML_DEPTH]; /* the names of the elements that are open */
    size_t depth;
};

static bool skip_past(struct document *d, const char *mark)
{
    const char *at = memmem(d->p, (size_t)(d->end - d->p), mark, strlen(mark));
    d->p = at ? at + strlen(mark) : d->end;
    return at != NULL;
}

static bool is_at(const struct document *d, const char *mark)
{
    return sl_span_starts(sl_span(d->p, (size_t)(d->end - d->p)), sl_span_str(mark));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct sl_span take_name(struct document *d)
{
    const char *begin = d->p;
    while (d->p < d->end && !is_blank(*d->p) && !strchr("<>/='\"&", *d->p))
        d->p++;
    return sl_span(begin, (size_t)(d->p - begin));
}

/* Up to the '>' of a tag, over attributes and their quotes. */
static bool take_attributes(struct document *d, bool *is_empty)
{
    while (d->p < d->end && *d->p != '>') {
        char c = *d->p++;
        if (c == '<')
            return false;
        const char *close = c == '"' || c == '\'' ? memchr(d->p, c, (size_t)(d->end - d->p)) : d->p;
        if (!close)
            return false;
        d->p = c == '"' || c == '\'' ? close + 1 : d->p;
    }
    *is_empty = d->p < d->end && d->p[-1] == '/';
    return d->p++ < d->end;
}

/* From the '<' of a tag past its '>'. */
static bool take_tag(struct document *d)
{
    bool is_empty = false, closes = is_at(d, "</");
    d->p += closes ? 2 : 1;
    struct sl_span name = take_name(d);
    if (!name.len || *name.ptr == '!' || *name.ptr == '?')
        return false;
    if (closes) {
        while (d->p < d->end && is_blank(*d->p))
            d->p++;
        assert(d->depth); /* else the document is over */
        return sl_span_eq(d->open[--d->depth], name) && d->p < d->end && *d->p++ == '>';
    }
    if (!take_attributes(d, &is_empty) || (!is_empty && d->depth == SL_XML_DEPTH))
        return false;
    if (!is_empty)
        d->open[d->depth++] = name;
    return true;
}

/* Blanks, comments and the declaration. */
static bool skip_around(struct document *d)
{
    for (;;) {
        while (d->p < d->end && is_blank(*d->p))
            d->p++;
        const char *close = is_at(d, "<!--") ? "-->" : is_at(d, "<?xml ") ? "?>" : NULL;
        if (!close)
            return !is_at(d, "<!") && !is_at(d, "<?");
        if (!skip_past(d, close))
            return false;
    }
}

bool sl_xml_is_document(struct sl_span xml, const char *root)
{
    struct document d = {.p = xml.ptr, .end = sl_span_end(xml)};
    if (!xml.len || !skip_around(&d) || !is_at(&d, "<"))
        return false;
    struct document first = {.p = d.p + 1, .end = d.end};
    if (!sl_span_is(take_name(&first), root))
        return false;
    do {
        if (is_at(&d, "<!--") ? !skip_past(&d, "-->") : !take_tag(&d))
            return false;
        const char *next = d.depth ? memchr(d.p, '<', (size_t)(d.end - d.p)) : d.p;
        d.p = next ? next : d.end;
    } while (d.depth && d.p < d.end);
    return !d.depth && skip_around(&d) && d.p == d.end;
}
