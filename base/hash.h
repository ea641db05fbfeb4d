/* FNV-1a, 64 bits: spreads texts over slots and lanes. Not for input that wants to collide, and not for
 * secrets. Source: the FNV authors' constants for 64 bits. */
#ifndef SL_BASE_HASH_H
#define SL_BASE_HASH_H

#include "base/types.h"

static inline uint64_t sl_hash(struct sl_span text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * 0x100000001B3u;
    return hash;
}

/* Of several texts, one after the other, beginning with 0. */
static inline uint64_t sl_hash_mix(uint64_t digest, struct sl_span text)
{
    return (digest ^ sl_hash(text)) * 0x9E3779B97F4A7C15u + text.len;
}

#endif
