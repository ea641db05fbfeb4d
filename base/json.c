/* JSON text, scanned: checked, or skipped when it was checked before. */
#include "base/json.h"

#include "base/hex.h"
#include "base/scan.h"
#include "base/utf8.h"

/* ---- faults ---- */

const char *sl_json_fault(struct sl_json_scan *s, const char *at, const char *why)
{
    s->at = at;
    s->why = why;
    return NULL;
}

const char *sl_json_unexpected(struct sl_json_scan *s, const char *p, const char *expected)
{
    return sl_json_fault(s, p, p < s->end ? expected : "the text ends too early");
}

/* ---- whitespace, plain runs ---- */

const char *sl_json_space_slow(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* The first byte from `p` on that ends a run of plain text in a string: a quote, a backslash, a control
 * byte, a byte of a longer character; else `end`. */
static const char *plain_run_end(const char *p, const char *end)
{
    for (; end - p >= SL_BLOCK; p += SL_BLOCK) {
        uint64_t mask = sl_block_special(p);
        if (mask)
            return p + sl_mask_first(mask);
    }
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ')
        p++;
    return p;
}

/* ---- strings ---- */

static const char *character(struct sl_json_scan *s, const char *p)
{
    const char *next = s->is_loose ? p + 1 : sl_utf8_next(p, s->end);
    if (next)
        return next;
    /* At the end of the text, the character may only be cut off. */
    char rest[4] = {0};
    size_t left = (size_t)(s->end - p);
    if (left < 4) {
        memcpy(rest, p, left);
        for (size_t n = left; n < 4; n++)
            rest[n] = (char)((unsigned char)*p == 0xE0 && n == 1   ? 0xA0
                             : (unsigned char)*p == 0xF0 && n == 1 ? 0x90
                                                                   : 0x80);
        next = sl_utf8_next(rest, rest + 4);
        if (next)
            return sl_json_unexpected(s, s->end, "");
    }
    return sl_json_fault(s, p, "not UTF-8");
}

/* The four hexadecimal digits at `p`, -1 when they are not there. */
static long hex_four(const char *p, const char *end)
{
    long code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? sl_hex_digit(p[i]) : -1;
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static const char lone_high[] = "a lone high surrogate";

static bool is_high_surrogate(long code)
{
    return code >= 0xD800 && code <= 0xDBFF;
}

static bool is_low_surrogate(long code)
{
    return code >= 0xDC00 && code <= 0xDFFF;
}

/* Where the hexadecimal digits at `p` end, four at most. */
static const char *hex_end(const char *p, const char *end)
{
    const char *last = end - p > 4 ? p + 4 : end;
    while (p < last && sl_hex_digit(*p) >= 0)
        p++;
    return p;
}

/* The second half of a surrogate pair, an escape like the first, at `p`; the first is at `first`. */
static const char *second_half(struct sl_json_scan *s, const char *first, const char *p)
{
    static const char begin[] = "\\u";
    for (int i = 0; i < 2; i++, p++)
        if (p == s->end || *p != begin[i])
            return sl_json_unexpected(s, p == s->end ? p : first, lone_high);
    if (is_low_surrogate(hex_four(p, s->end)))
        return p + 4;
    return sl_json_unexpected(s, hex_end(p, s->end) == s->end ? s->end : first, lone_high);
}

/* The escape of a code unit at `p`; when that is the first half of a surrogate pair, with its second half. */
static const char *escaped_code(struct sl_json_scan *s, const char *p)
{
    long code = hex_four(p + 2, s->end);
    if (code < 0)
        return sl_json_unexpected(s, hex_end(p + 2, s->end),
                                  "four hexadecimal digits are expected after \\u");
    if (s->is_loose)
        return p + 6;
    if (is_low_surrogate(code))
        return sl_json_fault(s, p, "a lone low surrogate");
    return is_high_surrogate(code) ? second_half(s, p, p + 6) : p + 6;
}

static const char *escape_sequence(struct sl_json_scan *s, const char *p)
{
    if (p + 1 == s->end)
        return sl_json_unexpected(s, p + 1, "");
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        return escaped_code(s, p);
    default:
        return sl_json_fault(s, p + 1, "unknown escape");
    }
}

const char *sl_json_string(struct sl_json_scan *s, const char *p, bool *escaped)
{
    if (p == s->end || *p != '"')
        return sl_json_unexpected(s, p, "a string is expected");
    *escaped = false;
    for (p++;;) {
        p = plain_run_end(p, s->end);
        if (p == s->end)
            return sl_json_unexpected(s, p, "");
        if (*p == '"')
            return p + 1;
        if ((unsigned char)*p < ' ')
            return sl_json_fault(s, p, "a control character in a string");
        if (*p == '\\') {
            *escaped = true;
            p = escape_sequence(s, p);
        } else {
            p = character(s, p);
        }
        if (!p)
            return NULL;
    }
}

/* ---- numbers, words ---- */

static const char *digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* A whole number without zeros before it, when it is one. */
static const char *whole_number(struct sl_json_scan *s, const char *p)
{
    const char *next = p < s->end && *p != '0' ? sl_scan_digits(p, s->end) : NULL;
    return next && next > p && *next != '.' && (*next | 0x20) != 'e' ? next : NULL;
}

const char *sl_json_number(struct sl_json_scan *s, const char *p)
{
    const char *whole = whole_number(s, p);
    if (whole)
        return whole;
    if (p < s->end && *p == '-')
        p++;
    const char *next = digits(p, s->end);
    if (next == p)
        return sl_json_unexpected(s, p, "a digit is expected");
    if (*p == '0' && next > p + 1)
        return sl_json_fault(s, p + 1, "a number with a leading zero");
    p = next;
    if (p < s->end && *p == '.') {
        next = digits(p + 1, s->end);
        if (next == p + 1)
            return sl_json_unexpected(s, next, "a digit is expected");
        p = next;
    }
    if (p < s->end && (*p | 0x20) == 'e') {
        p++;
        if (p < s->end && (*p == '+' || *p == '-'))
            p++;
        next = digits(p, s->end);
        if (next == p)
            return sl_json_unexpected(s, p, "a digit is expected");
        p = next;
    }
    return p;
}

const char *sl_json_word(struct sl_json_scan *s, const char *p, const char *word, size_t n)
{
    size_t i = 0;
    while (i < n && p + i < s->end && p[i] == word[i])
        i++;
    return i == n ? p + n : sl_json_unexpected(s, p + i, "a value is expected");
}

/* ---- any value ---- */

static const char *scalar(struct sl_json_scan *s, const char *p)
{
    bool escaped;
    if (p == s->end)
        return sl_json_unexpected(s, p, "");
    switch (*p) {
    case '"':
        return sl_json_string(s, p, &escaped);
    case 't':
        return sl_json_word(s, p, "true", 4);
    case 'f':
        return sl_json_word(s, p, "false", 5);
    case 'n':
        return sl_json_word(s, p, "null", 4);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return sl_json_number(s, p);
    default:
        return sl_json_fault(s, p, "a value is expected");
    }
}

/* A member's name, its colon, and the whitespace before its value. */
static const char *member_name(struct sl_json_scan *s, const char *p)
{
    bool escaped;
    p = sl_json_string(s, p, &escaped);
    if (!p)
        return NULL;
    p = sl_json_byte(s, sl_json_space(p, s->end), ':', "':' is expected");
    return p ? sl_json_space(p, s->end) : NULL;
}

/* The containers that are open: one bit each, set for an object. */
struct nest {
    uint64_t objects[SL_JSON_DEPTH / 64];
    unsigned depth;
};

static const char *nest_open(struct sl_json_scan *s, struct nest *n, const char *p)
{
    if (n->depth == SL_JSON_DEPTH)
        return sl_json_fault(s, p, "nested deeper than 1024");
    uint64_t bit = 1ull << n->depth % 64;
    uint64_t *word = &n->objects[n->depth / 64];
    *word = *p == '{' ? *word | bit : *word & ~bit;
    n->depth++;
    return p + 1;
}

static bool nest_is_object(const struct nest *n)
{
    return n->objects[(n->depth - 1) / 64] >> (n->depth - 1) % 64 & 1;
}

/* Reads what is between two values. Returns the first byte of the next one; after the last one, the byte
 * after the outermost container. */
static const char *between_values(struct sl_json_scan *s, struct nest *n, const char *p)
{
    while (n->depth) {
        bool is_object = nest_is_object(n);
        p = sl_json_space(p, s->end);
        if (p < s->end && *p == ',') {
            p = sl_json_space(p + 1, s->end);
            return is_object ? member_name(s, p) : p;
        }
        p = sl_json_byte(s, p, is_object ? '}' : ']',
                         is_object ? "',' or '}' is expected" : "',' or ']' is expected");
        if (!p)
            return NULL;
        n->depth--;
    }
    return p;
}

/* Into the container that opens at `p`; an empty one is closed at once, and `between_values` reads on. */
static const char *container(struct sl_json_scan *s, struct nest *n, const char *p)
{
    char close = *p == '{' ? '}' : ']';
    p = nest_open(s, n, p);
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == close) {
        n->depth--;
        return between_values(s, n, p + 1);
    }
    return close == '}' ? member_name(s, p) : p;
}

const char *sl_json_value(struct sl_json_scan *s, const char *p)
{
    struct nest nest = {.depth = 0};
    do {
        if (p < s->end && (*p == '{' || *p == '[')) {
            p = container(s, &nest, p);
        } else {
            p = scalar(s, p);
            if (p)
                p = between_values(s, &nest, p);
        }
    } while (p && nest.depth);
    return p;
}

static enum sl_status check(struct sl_span text, bool is_loose, struct sl_error *error)
{
    const char *p = text.ptr, *begin = text.ptr;
    struct sl_json_scan s = {.end = sl_span_end(text), .is_loose = is_loose};
    if (text.len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    p = sl_json_value(&s, sl_json_space(p, s.end));
    if (p) {
        p = sl_json_space(p, s.end);
        if (p == s.end)
            return SL_OK;
        sl_json_fault(&s, p, "more text after the value");
    }
    return sl_fail_at(error, SL_REJECT, "InvalidJson", (size_t)(s.at - begin), "%s", s.why);
}

enum sl_status sl_json_check(struct sl_span text, struct sl_error *error)
{
    return check(text, false, error);
}

enum sl_status sl_json_check_loose(struct sl_span text, struct sl_error *error)
{
    return check(text, true, error);
}

/* ---- text that was checked ---- */

const char *sl_json_string_end(const char *p, const char *end, bool *escaped)
{
    *escaped = false;
    for (;; p += 2) {
        uint64_t mask = 0;
        for (; end - p >= SL_BLOCK && !(mask = sl_block_bytes(p, '"', '\\')); p += SL_BLOCK)
            ;
        if (mask)
            p += sl_mask_first(mask);
        while (p < end && *p != '"' && *p != '\\')
            p++;
        if (p >= end)
            return end;
        if (*p == '"')
            return p;
        *escaped = true;
    }
}

/* The same, and past the closing quote. */
static const char *after_string(const char *p, const char *end)
{
    bool escaped;
    p = sl_json_string_end(p, end, &escaped);
    return p < end ? p + 1 : end;
}

/* Brackets that are open. Both kinds are counted together: they are known to match. At depth 0, `p` is
 * after the one that closes the outermost. */
struct brackets {
    const char *p;
    size_t depth;
};

/* A step at a time, outside strings, to `to` or a little further. */
static bool step_brackets(struct brackets *b, const char *to, const char *end)
{
    while (b->p < to) {
        char c = *b->p++;
        if (c == '"')
            b->p = after_string(b->p, end);
        else if (c == '{' || c == '[')
            b->depth++;
        else if ((c == '}' || c == ']') && --b->depth == 0)
            return true;
    }
    return false;
}

/* Without the instruction, which not every processor has, the compiler's own is a call. */
static unsigned count_ones(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (unsigned)((x * 0x0101010101010101u) >> 56);
}

static unsigned count_bytes(uint64_t mask)
{
    return count_ones(mask) / SL_MASK_BITS;
}

/* The bytes from an opening quote up to the closing one: each quote flips all bits after it. */
static uint64_t within_strings(uint64_t quotes)
{
    for (unsigned shift = SL_MASK_BITS; shift < SL_BLOCK * SL_MASK_BITS; shift *= 2)
        quotes ^= quotes << shift;
    return quotes;
}

/* The byte after the container that opens at `p`. A block in which it may end, or with a backslash, is
 * read step by step. */
static const char *container_end(const char *p, const char *end)
{
    struct brackets b = {p + 1, 1};
    while (end - b.p >= SL_BLOCK) {
        uint64_t strings = within_strings(sl_block_eq((const unsigned char *)b.p, '"'));
        uint64_t opens = sl_block_bytes(b.p, '{', '[') & ~strings,
                 closes = sl_block_bytes(b.p, '}', ']') & ~strings;
        unsigned n = count_bytes(closes);
        if (n >= b.depth || sl_block_eq((const unsigned char *)b.p, '\\')) {
            if (step_brackets(&b, b.p + SL_BLOCK, end))
                return b.p;
            continue;
        }
        b.depth = b.depth + count_bytes(opens) - n;
        b.p += SL_BLOCK;
        if (strings >> (SL_BLOCK - 1) * SL_MASK_BITS & 1)
            b.p = after_string(b.p, end);
    }
    step_brackets(&b, end, end);
    return b.p;
}

const char *sl_json_value_end(const char *p, const char *end)
{
    if (p >= end)
        return end;
    if (*p == '"')
        return after_string(p + 1, end);
    if (*p == '{' || *p == '[')
        return container_end(p, end);
    while (p < end && *p != ',' && *p != '}' && *p != ']' && (unsigned char)*p > ' ')
        p++;
    return p;
}
