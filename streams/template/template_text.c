/* Functions from text to text. */
#include "streams/template/template_private.h"

static const struct sl_span missing = {NULL, 0};

/* ---- pieces ---- */

enum sl_status template_split_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before)
{
    (void)before;
    if (call->args[0].len == 0)
        return template_fail(r, call->at, "split: expected a separator");
    if (!template_integer(call->args[1], &call->numbers[0]))
        return template_fail(r, call->at,
                             "split: expected the number of a piece, from 0 on; -1 is the last one");
    return SL_OK;
}

/* The text up to the separator; `*rest` is what follows it, absent when there is none. */
static struct sl_span piece(struct sl_span text, struct sl_span separator, struct sl_span *rest)
{
    const char *found = memmem(text.ptr, text.len, separator.ptr, separator.len);
    *rest = missing;
    if (!found)
        return text;
    size_t n = (size_t)(found - text.ptr);
    *rest = sl_span(found + separator.len, text.len - n - separator.len);
    return sl_span(text.ptr, n);
}

static int64_t count_pieces(struct sl_span text, struct sl_span separator)
{
    int64_t n = 0;
    for (struct sl_span rest = text; rest.ptr; n++)
        (void)piece(rest, separator, &rest);
    return n;
}

struct sl_span template_split(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    (void)scratch;
    struct sl_span separator = call->args[0], found = missing, rest = text;
    int64_t i = call->numbers[0];
    if (i < 0)
        i += count_pieces(text, separator);
    if (i < 0)
        return missing;
    for (; i >= 0 && rest.ptr; i--)
        found = piece(rest, separator, &rest);
    return i < 0 ? found : missing;
}

enum sl_status template_after_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before)
{
    (void)before;
    return call->args[0].len ? SL_OK : template_fail(r, call->at, "after: expected a text");
}

struct sl_span template_after(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    struct sl_span rest;
    (void)scratch;
    (void)piece(text, call->args[0], &rest);
    return rest;
}

/* ---- code points ---- */

enum sl_status template_slice_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before)
{
    (void)before;
    call->numbers[1] = INT64_MAX;
    for (size_t i = 0; i < call->n_args; i++)
        if (!template_integer(call->args[i], &call->numbers[i]))
            return template_fail(
                r, call->at, "slice: expected the numbers of two characters, from 0 on; -1 is the last one");
    return SL_OK;
}

/* A character begins at every byte that does not continue one. */
static bool begins(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* The byte at which character `i` begins, counted from the end when it is negative; beyond an end: the end.
 */
static size_t byte_of(struct sl_span text, int64_t i)
{
    size_t at = i < 0 ? text.len : 0;
    for (; i < 0 && at > 0; i += begins(text.ptr[at]))
        at--;
    for (; i > 0 && at < text.len; i--)
        for (at++; at < text.len && !begins(text.ptr[at]);)
            at++;
    return at;
}

struct sl_span template_slice(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    (void)scratch;
    size_t from = byte_of(text, call->numbers[0]), to = byte_of(text, call->numbers[1]);
    return sl_span(text.ptr + from, to > from ? to - from : 0);
}

/* ---- letters and blanks, of ASCII ---- */

static struct sl_span change_case(struct sl_span text, char first, char last, struct sl_arena *scratch)
{
    char *out = sl_arena_alloc(scratch, text.len + 1);
    for (size_t i = 0; i < text.len; i++)
        out[i] = text.ptr[i] >= first && text.ptr[i] <= last ? (char)(text.ptr[i] ^ 0x20) : text.ptr[i];
    return sl_span(out, text.len);
}

struct sl_span template_lower(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    (void)call;
    return change_case(text, 'A', 'Z', scratch);
}

struct sl_span template_upper(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    (void)call;
    return change_case(text, 'a', 'z', scratch);
}

/* Between values that are joined in a key stands '#', which no value holds then. */
struct sl_span template_key(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    size_t n = 0;
    (void)call;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '#' || text.ptr[i] == '%';
    if (n == 0)
        return text;
    char *out = sl_arena_alloc(scratch, text.len + 2 * n), *at = out;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_special = c == '#' || c == '%';
        *at++ = is_special ? '%' : c;
        if (is_special) {
            *at++ = '2';
            *at++ = c == '#' ? '3' : '5';
        }
    }
    return sl_span(out, (size_t)(at - out));
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct sl_span template_trim(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    (void)call;
    (void)scratch;
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    while (text.len && is_blank(text.ptr[0]))
        text = sl_span_from(text, 1);
    return text;
}
