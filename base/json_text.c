/* Looking into JSON text that was checked: unescaping, finding a value by its path. */
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- unescaping ---- */

static unsigned hex(const char *p)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];
        code = code * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
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

/* One escape at `*p`, which steps behind it; never longer than the escape itself. What is cut off by `end`
 * stands for itself. */
static size_t unescape_one(const char **p, const char *end, char *out)
{
    char c = end - *p > 1 ? (*p)[1] : '\\';
    if (c == 'u' && end - *p >= 6) {
        unsigned code = hex(*p + 2);
        *p += 6;
        if (code >= 0xD800 && code <= 0xDBFF && end - *p >= 6) {
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
    const char *p = inner.ptr, *end = inner.ptr + inner.len;
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
    for (const char *p = inner.ptr, *end = p + inner.len; p < end;)
        n += next_piece(&p, end, piece);
    return n;
}

bool sl_json_text_is(struct sl_span inner, struct sl_span text)
{
    const char *p = inner.ptr, *end = inner.ptr + inner.len;
    const char *t = text.ptr, *t_end = text.ptr + text.len;
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
    if (!inner_a.len || !inner_b.len) /* an empty text may be no pointer at all */
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

/* ---- paths ---- */

/* The value of the last member called `name` in the object at `p`, NULL when there is none. */
static const char *find_member(const char *p, const char *end, struct sl_span name)
{
    const char *found = NULL;
    bool escaped;
    p = sl_json_space(p + 1, end);
    while (p < end && *p == '"') {
        const char *close = sl_json_string_end(p + 1, end, &escaped);
        const char *value = sl_json_space(sl_json_space(close + 1, end) + 1, end);
        if (sl_json_text_is(sl_span(p + 1, (size_t)(close - p - 1)), name))
            found = value;
        p = sl_json_space(sl_json_value_end(value, end), end);
        if (p < end && *p == ',')
            p = sl_json_space(p + 1, end);
    }
    return found;
}

static const char *find_element(const char *p, const char *end, size_t i)
{
    p = sl_json_space(p + 1, end);
    while (p < end && *p != ']') {
        const char *behind = sl_json_value_end(p, end);
        if (i-- == 0 || behind == p)
            return behind > p ? p : NULL;
        p = sl_json_space(behind, end);
        if (p < end && *p == ',')
            p = sl_json_space(p + 1, end);
    }
    return NULL;
}

/* One step of a path: "[1]" or a name up to the next '.' or '['. NULL when it leads nowhere. */
static const char *step(const char **path, const char *value, const char *end)
{
    if (**path == '[') {
        size_t i = 0, n = 0;
        for ((*path)++; **path >= '0' && **path <= '9' && n < 9; (*path)++, n++)
            i = i * 10 + (size_t)(**path - '0');
        if (**path != ']' || n == 0)
            return NULL;
        (*path)++;
        return *value == '[' ? find_element(value, end, i) : NULL;
    }
    size_t n = strcspn(*path, ".[");
    struct sl_span name = sl_span(*path, n);
    *path += n;
    return *value == '{' ? find_member(value, end, name) : NULL;
}

struct sl_span sl_json_find(struct sl_span text, const char *path)
{
    const char *end = text.ptr + text.len, *value = text.ptr;
    if (text.len >= 3 && memcmp(value, "\xEF\xBB\xBF", 3) == 0)
        value += 3;
    value = sl_json_space(value, end);
    while (value && value < end && *path) {
        value = step(&path, value, end);
        if (*path == '.')
            path++;
    }
    if (!value || value >= end)
        return sl_span(NULL, 0);
    return sl_span(value, (size_t)(sl_json_value_end(value, end) - value));
}

/* What leads to a byte, as far as it fits. */
struct path {
    char *out;
    size_t len, room;
};

static void path_add(struct path *path, const char *format, ...) SL_PRINTF(2, 3);

static void path_add(struct path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = path->room - path->len;
    int n = vsnprintf(path->out + path->len, left, format, args);
    va_end(args);
    path->len += (size_t)n < left ? (size_t)n : left - 1;
}

/* The value in the container at `p` that `at` is in, or in whose name; NULL when it is in none. */
static const char *part_with(const char *p, const char *end, const char *at, struct path *path)
{
    bool is_object = *p == '{', escaped;
    p = sl_json_space(p + 1, end);
    for (size_t i = 0; *p != '}' && *p != ']'; i++) {
        const char *name = p, *close = p;
        if (is_object) {
            close = sl_json_string_end(p + 1, end, &escaped);
            p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
        }
        const char *next = sl_json_value_end(p, end);
        if (at >= name && at < next) {
            if (is_object)
                path_add(path, "%s%.*s", path->len ? "." : "", (int)(close - name - 1), name + 1);
            else
                path_add(path, "[%zu]", i);
            return at < p ? NULL : p;
        }
        p = sl_json_space(next, end);
        if (*p == ',')
            p = sl_json_space(p + 1, end);
    }
    return NULL;
}

void sl_json_path_of(struct sl_span text, const char *at, char *out, size_t room)
{
    struct path path = {out, 0, room};
    const char *end = text.ptr + text.len, *p = sl_json_space(text.ptr, end);
    out[0] = '\0';
    while (p && p != at && (*p == '{' || *p == '['))
        p = part_with(p, end, at, &path);
}
