/* Strings of JSON text that was checked: unescaped, compared, counted. */
#include "base/hex.h"
#include "base/json.h"

static unsigned hex(const char *p)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++)
        code = code * 16 + (unsigned)(sl_hex_digit(p[i]) & 15);
    return code;
}

static size_t utf8_write(unsigned code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* A half of a surrogate pair that is alone becomes three bytes, so that different names stay different. */
static bool is_second_half(const char *p)
{
    return p[0] == '\\' && p[1] == 'u' && hex(p + 2) >= 0xDC00 && hex(p + 2) <= 0xDFFF;
}

/* One escape at `*p`, which moves past it; never longer than the escape itself. An escape that `end` cuts
 * off is taken as it is. */
static size_t unescape_one(const char **p, const char *end, char *out)
{
    char c = end - *p > 1 ? (*p)[1] : '\\';
    if (c == 'u' && end - *p >= 6) {
        unsigned code = hex(*p + 2);
        *p += 6;
        if (code >= 0xD800 && code <= 0xDBFF && end - *p >= 6 && is_second_half(*p)) {
            code = 0x10000 + ((code - 0xD800) << 10) + (hex(*p + 2) - 0xDC00);
            *p += 6;
        }
        return utf8_write(code, out);
    }
    *p += end - *p > 1 ? 2 : 1;
    switch (c) {
    case 'b':
        *out = '\b';
        break;
    case 'f':
        *out = '\f';
        break;
    case 'n':
        *out = '\n';
        break;
    case 'r':
        *out = '\r';
        break;
    case 't':
        *out = '\t';
        break;
    default:
        *out = c;
    }
    return 1;
}

size_t sl_json_unescape_to(struct sl_span inner, char *out)
{
    const char *p = inner.ptr, *end = sl_span_end(inner);
    char *to = out;
    while (p < end) {
        const char *next = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((next ? next : end) - p);
        memcpy(to, p, n);
        to += n;
        p += n;
        if (next)
            to += unescape_one(&p, end, to);
    }
    return (size_t)(to - out);
}

struct sl_span sl_json_unescape(struct sl_span inner, struct sl_arena *arena)
{
    if (inner.len == 0 || !memchr(inner.ptr, '\\', inner.len))
        return inner;
    char *out = sl_arena_alloc(arena, inner.len);
    return sl_span(out, sl_json_unescape_to(inner, out));
}

struct sl_span sl_json_unescape_in(struct sl_span inner, struct sl_buffer *buffer)
{
    sl_buffer_reset(buffer);
    char *out = sl_buffer_reserve(buffer, inner.len);
    return sl_span(out, sl_json_unescape_to(inner, out));
}

/* One character's bytes of a string, or one byte of it where nothing is escaped; `*p` steps on. */
static size_t next_piece(const char **p, const char *end, char out[4])
{
    if (**p == '\\')
        return unescape_one(p, end, out);
    out[0] = *(*p)++;
    return 1;
}

size_t sl_json_unescaped_bytes(struct sl_span inner)
{
    char piece[4];
    size_t n = 0;
    for (const char *p = inner.ptr, *end = sl_span_end(inner); p < end;)
        n += next_piece(&p, end, piece);
    return n;
}

bool sl_json_text_is(struct sl_span inner, struct sl_span text)
{
    const char *p = inner.ptr, *end = sl_span_end(inner);
    const char *t = text.ptr, *t_end = sl_span_end(text);
    while (p < end && t < t_end) {
        char piece[4];
        size_t n = next_piece(&p, end, piece);
        if ((size_t)(t_end - t) < n || memcmp(t, piece, n) != 0)
            return false;
        t += n;
    }
    return p == end && t == t_end;
}

bool sl_json_same(struct sl_span inner_a, struct sl_span inner_b)
{
    if (!inner_a.len || !inner_b.len) /* the pointer of an empty text may be NULL */
        return inner_a.len == inner_b.len;
    const char *a = inner_a.ptr, *a_end = a + inner_a.len, *b = inner_b.ptr, *b_end = b + inner_b.len;
    char of_a[4], of_b[4];
    size_t n_a = 0, n_b = 0, i_a = 0, i_b = 0;
    for (;;) {
        if (i_a == n_a && a < a_end)
            n_a = next_piece(&a, a_end, of_a), i_a = 0;
        if (i_b == n_b && b < b_end)
            n_b = next_piece(&b, b_end, of_b), i_b = 0;
        if (i_a == n_a || i_b == n_b)
            return i_a == n_a && i_b == n_b;
        if (of_a[i_a++] != of_b[i_b++])
            return false;
    }
}
