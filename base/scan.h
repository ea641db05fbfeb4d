/* The common cases of JSON text, inline: short plain strings, short whole numbers. Each returns the byte
 * after what it read, or NULL when the text is anything else. NULL is not an error: the checked functions
 * of base/json.h then decide. For base/json.c, and streams/. */
#ifndef SL_BASE_SCAN_H
#define SL_BASE_SCAN_H

#include "base/block.h"

#include <string.h>

/* A string from its quote, without escapes and in ASCII, that ends a block before the text does. */
static inline const char *sl_scan_string(const char *p, const char *end)
{
    if (p >= end || *p != '"')
        return NULL;
    for (p++; end - p >= SL_BLOCK; p += SL_BLOCK) {
        uint64_t mask = sl_block_special(p);
        if (mask) {
            p += sl_mask_first(mask);
            return *p == '"' ? p + 1 : NULL;
        }
    }
    return NULL;
}

/* The first byte from `p` on that is not a digit; NULL when there is none up to a block before the end. */
static inline const char *sl_scan_digits(const char *p, const char *end)
{
    for (; end - p >= SL_BLOCK; p += SL_BLOCK) {
        uint64_t mask = sl_block_no_digit(p);
        if (mask)
            return p + sl_mask_first(mask);
    }
    return NULL;
}

/* A decimal number in quotes, perhaps with a minus and a point, of at most fifteen digits: exact in every
 * sense that DynamoDB knows. */
static inline const char *sl_scan_quoted_number(const char *p, const char *end)
{
    if (end - p < SL_BLOCK + 2 || *p != '"')
        return NULL;
    p += p[1] == '-' ? 2 : 1;
    uint64_t mask = sl_block_no_digit(p);
    if (!mask)
        return NULL;
    unsigned n = sl_mask_first(mask);
    if (p[n] == '.' && n > 0) {
        mask = sl_mask_without(mask, n);
        if (!mask || sl_mask_first(mask) == n + 1)
            return NULL;
        n = sl_mask_first(mask);
    }
    return n > 0 && p[n] == '"' ? p + n + 1 : NULL;
}

/* true or false, without a branch on which one: unpredictable data takes no longer than predictable data. */
static inline const char *sl_scan_bool(const char *p, const char *end)
{
    uint32_t word;
    if (end - p < 5)
        return NULL;
    memcpy(&word, p, 4);
    bool is_true = memcmp(&word, "true", 4) == 0, is_false = memcmp(&word, "fals", 4) == 0 && p[4] == 'e';
    return (is_true | is_false) ? p + 5 - is_true : NULL;
}

/* Whether the `n` bytes of `text` (at most two blocks, both with room for two) are those at `p`. */
static inline bool sl_scan_is(const char *p, const char *text, unsigned n)
{
    uint64_t low = sl_block_same(p, text);
    if (n <= SL_BLOCK)
        return sl_mask_covers(low, n);
    return sl_mask_covers(low, SL_BLOCK) &&
           sl_mask_covers(sl_block_same(p + SL_BLOCK, text + SL_BLOCK), n - SL_BLOCK);
}

#endif
