/* Escapes and base64, resolved leniently: what is not one stays as it is. */
#include "aws/mask_form.h"

#include "base/array.h"
#include "base/hex.h"

#define DEPTH       3 /* JSON text in a JSON string, in a form */
#define PIECE_BYTES (16 * 1024)
#define OVERLAP     256 /* more than a run of 4 bytes takes, escaped DEPTH times */
#define BASE64_FROM 6   /* characters of a form: 4 bytes */
#define STRING_FROM 8   /* characters of base64 that a request carries, with its padding */

/* ---- escapes ---- */

static size_t put_utf8(unsigned code, char *out)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(heads[n] | code);
    return n;
}

/* `n` digits at `p`; -1 when one of them is not. */
static int hex_at(const char *p, const char *end, int n)
{
    int code = 0;
    if (end - p < n)
        return -1;
    for (int i = 0; i < n; i++) {
        int digit = sl_hex_digit(p[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Each of these resolves the escape at `*p`, which moves past it, and returns the bytes written; 0 when it is
 * not one. */

static size_t backslash(const char **p, const char *end, char *out)
{
    static const char letters[] = "bfnrt\"\\/'", means[] = "\b\f\n\r\t\"\\/'";
    const char *at = *p;
    if (end - at < 2 || !at[1])
        return 0;
    int code = at[1] == 'u' ? hex_at(at + 2, end, 4) : at[1] == 'x' ? hex_at(at + 2, end, 2) : -1;
    if (code < 0) {
        const char *letter = strchr(letters, at[1]);
        if (!letter)
            return 0;
        out[0] = means[letter - letters];
        *p = at + 2;
        return 1;
    }
    *p = at + (at[1] == 'u' ? 6 : 4);
    int low = code >= 0xD800 && code < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u'
                  ? hex_at(*p + 2, end, 4)
                  : -1;
    if (low >= 0xDC00 && low < 0xE000) {
        *p += 6;
        return put_utf8(0x10000u + (((unsigned)code - 0xD800) << 10) + ((unsigned)low - 0xDC00), out);
    }
    return put_utf8((unsigned)code, out);
}

static size_t percent(const char **p, const char *end, char *out)
{
    int code = hex_at(*p + 1, end, 2);
    if (code < 0)
        return 0;
    out[0] = (char)code;
    *p += 3;
    return 1;
}

static size_t numbered(const char **p, const char *end, char *out)
{
    const char *at = *p + 2;
    bool is_hex = at < end && (*at | 0x20) == 'x';
    unsigned code = 0, digits = 0;
    for (at += is_hex; at < end && digits < 8; at++, digits++) {
        int digit = sl_hex_digit(*at);
        if (digit < 0 || (!is_hex && digit > 9))
            break;
        code = code * (is_hex ? 16 : 10) + (unsigned)digit;
    }
    if (!digits || code > 0x10FFFF || at == end || *at != ';')
        return 0;
    *p = at + 1;
    return put_utf8(code, out);
}

static size_t entity(const char **p, const char *end, char *out)
{
    static const struct {
        struct sl_span text;
        char is;
    } entities[] = {{SL_LIT("&amp;"), '&'},
                    {SL_LIT("&lt;"), '<'},
                    {SL_LIT("&gt;"), '>'},
                    {SL_LIT("&quot;"), '"'},
                    {SL_LIT("&apos;"), '\''}};
    struct sl_span rest = sl_span(*p, (size_t)(end - *p));
    if (sl_span_starts(rest, SL_LIT("&#")))
        return numbered(p, end, out);
    for (size_t i = 0; i < SL_COUNT(entities); i++)
        if (sl_span_starts(rest, entities[i].text)) {
            out[0] = entities[i].is;
            *p += entities[i].text.len;
            return 1;
        }
    return 0;
}

/* The next character, resolved when it is an escape. */
static size_t next(const char **p, const char *end, char *out)
{
    size_t n = **p == '\\'  ? backslash(p, end, out)
               : **p == '%' ? percent(p, end, out)
               : **p == '&' ? entity(p, end, out)
                            : 0;
    if (!n)
        *out = *(*p)++;
    return n ? n : 1;
}

/* ---- base64 ---- */

/* Of both alphabets; -1 for anything else. */
static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static size_t base64_run(const char *p, const char *end)
{
    const char *at = p;
    while (at < end && base64_digit(*at) >= 0)
        at++;
    return (size_t)(at - p);
}

/* The `k`th byte of the group of four characters at `p`. */
static char base64_byte(const char *p, int k)
{
    int high = base64_digit(p[k]), low = base64_digit(p[k + 1]);
    return (char)(high << (2 + 2 * k) | low >> (4 - 2 * k));
}

/* ---- forms of a short text ---- */

/* A form that is being made. */
struct draft {
    char *text;
    uint16_t *begin, *end;
    size_t len;
};

struct forms {
    struct sl_arena *arena;
    sl_mask_form_fn fn;
    void *arg;
};

static struct draft new_draft(struct forms *f, size_t room)
{
    room = room ? room : 1;
    return (struct draft){sl_arena_alloc(f->arena, room), sl_arena_alloc(f->arena, room * sizeof(uint16_t)),
                          sl_arena_alloc(f->arena, room * sizeof(uint16_t)), 0};
}

static void put(struct draft *draft, char c, uint16_t begin, uint16_t end)
{
    draft->text[draft->len] = c;
    draft->begin[draft->len] = begin;
    draft->end[draft->len++] = end;
}

static struct sl_mask_form finish(struct forms *f, const struct draft *draft, bool is_squeezed,
                                  bool is_base64)
{
    struct sl_mask_form form = {draft->text, draft->len, draft->begin, draft->end, is_squeezed, is_base64};
    f->fn(f->arg, &form);
    return form;
}

static void say_base64(struct forms *f, const struct sl_mask_form *of)
{
    const char *begin = of->text, *end = of->text + of->len;
    for (size_t shift = 0; shift < 4; shift++) {
        struct draft draft = new_draft(f, of->len);
        for (const char *p = begin; p < end;) {
            size_t run = base64_run(p, end), at = (size_t)(p - begin);
            for (size_t i = shift; run >= BASE64_FROM && i + 1 < run; i++)
                if ((i - shift) % 4 < 3)
                    put(&draft, base64_byte(p + i - (i - shift) % 4, (int)((i - shift) % 4)),
                        of->begin[at + i], of->end[at + i + 1]);
            p += run ? run : 1;
        }
        if (draft.len)
            finish(f, &draft, of->is_squeezed, true);
    }
}

/* False when there is nothing to resolve. */
static bool resolve(struct forms *f, struct sl_mask_form *form)
{
    struct draft draft = new_draft(f, form->len + 4);
    for (const char *p = form->text, *end = p + form->len; p < end;) {
        char out[4];
        size_t from = (size_t)(p - form->text), n = next(&p, end, out);
        size_t to = (size_t)(p - form->text) - 1;
        for (size_t k = 0; k < n; k++)
            put(&draft, out[k], form->begin[from], form->end[to]);
    }
    if (draft.len == form->len)
        return false;
    *form = finish(f, &draft, form->is_squeezed, false);
    return true;
}

/* Line breaks may stand in base64 and even in an escape. */
static void say_squeezed(struct forms *f, const struct sl_mask_form *of)
{
    struct draft draft = new_draft(f, of->len);
    for (size_t i = 0; i < of->len; i++)
        if (of->text[i] > ' ' && of->text[i] < 0x7F)
            put(&draft, of->text[i], of->begin[i], of->end[i]);
    if (draft.len == of->len)
        return;
    struct sl_mask_form form = finish(f, &draft, true, false);
    for (int depth = 0; depth <= DEPTH; depth++) {
        say_base64(f, &form);
        if (!resolve(f, &form))
            return;
    }
}

void sl_mask_forms(struct sl_span text, struct sl_arena *arena, sl_mask_form_fn fn, void *arg)
{
    struct forms f = {arena, fn, arg};
    struct draft draft = new_draft(&f, text.len);
    for (size_t i = 0; i < text.len; i++)
        put(&draft, text.ptr[i], (uint16_t)i, (uint16_t)(i + 1));
    struct sl_mask_form form = finish(&f, &draft, false, false);
    for (int depth = 0; depth <= DEPTH; depth++) {
        say_base64(&f, &form);
        say_squeezed(&f, &form);
        if (!resolve(&f, &form))
            return;
    }
}

/* ---- pieces of a long text ---- */

struct pieces {
    sl_mask_piece_fn fn;
    void *arg;
    char text[PIECE_BYTES];
};

/* As often as there is something to resolve; an escape is never shorter than what it says. */
static void say_resolved(struct pieces *f, struct sl_span piece)
{
    bool any = false;
    for (int depth = 0; depth < DEPTH; depth++) {
        size_t len = 0;
        for (const char *p = piece.ptr, *end = sl_span_end(piece); p < end;) {
            char out[4];
            size_t n = next(&p, end, out);
            memcpy(f->text + len, out, n);
            len += n;
        }
        if (len == piece.len)
            break;
        piece = sl_span(f->text, len);
        any = true;
    }
    if (any)
        f->fn(f->arg, piece);
}

static void say_all(struct pieces *f, struct sl_span text)
{
    f->fn(f->arg, text);
    for (size_t at = 0;; at += PIECE_BYTES - OVERLAP) {
        size_t left = text.len - at;
        say_resolved(f, sl_span(text.ptr + at, left < PIECE_BYTES ? left : PIECE_BYTES));
        if (left <= PIECE_BYTES)
            return;
    }
}

/* A text in base64: whole groups, and its padding ends a string. */
static void say_decoded(struct pieces *f, struct sl_span run)
{
    char bytes[PIECE_BYTES / 4 * 3];
    for (size_t at = 0; at < run.len; at += PIECE_BYTES - OVERLAP) {
        size_t left = run.len - at, n = 0;
        for (size_t i = 0; i + 1 < left && i < PIECE_BYTES; i++)
            if (i % 4 < 3)
                bytes[n++] = base64_byte(run.ptr + at + i - i % 4, (int)(i % 4));
        f->fn(f->arg, sl_span(bytes, n));
        say_resolved(f, sl_span(bytes, n));
        if (left <= PIECE_BYTES)
            return;
    }
}

void sl_mask_forms_of(const struct sl_span *texts, size_t n, sl_mask_piece_fn fn, void *arg)
{
    struct pieces f = {.fn = fn, .arg = arg};
    for (size_t i = 0; i < n; i++) {
        const char *p = texts[i].ptr, *end = sl_span_end(texts[i]);
        if (!texts[i].len)
            continue;
        say_all(&f, texts[i]);
        while (p < end) {
            size_t run = base64_run(p, end);
            const char *after = p + run;
            while (after < end && *after == '=')
                after++;
            if (after - p >= STRING_FROM && (after - p) % 4 == 0)
                say_decoded(&f, sl_span(p, run));
            p = after > p ? after : p + 1;
        }
    }
}
