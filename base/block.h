/* Sixteen bytes at a time: which of them are special. SSE2 and NEON, the baseline of their architectures;
 * SL_PORTABLE (or any other machine) returns the same answers a byte at a time. For code that scans payloads:
 * base/json.c, base/scan.h and the index and scan of records in streams/.
 *
 * A mask has SL_MASK_BITS bits per byte, the first byte lowest. */
#ifndef SL_BASE_BLOCK_H
#define SL_BASE_BLOCK_H

#include "base/types.h"

#define SL_BLOCK 16

#if defined(__SSE2__) && !defined(SL_PORTABLE)

#include <emmintrin.h>

#define SL_MASK_BITS 1

static inline uint64_t sl_block_bytes(const char *p, char a, char b)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(a)), _mm_cmpeq_epi8(v, _mm_set1_epi8(b)));
    return (unsigned)_mm_movemask_epi8(hit);
}

/* Quotes, backslashes, control bytes, bytes above 0x7F: the last two are those below ' ' as signed bytes. */
static inline uint64_t sl_block_special(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(hit, _mm_cmplt_epi8(v, _mm_set1_epi8(' '))));
}

static inline uint64_t sl_block_eq(const unsigned char *p, unsigned char a)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)a)));
}

static inline uint64_t sl_block_no_digit(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i from_zero = _mm_sub_epi8(v, _mm_set1_epi8('0'));
    __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(from_zero, _mm_set1_epi8(9)), from_zero);
    return (unsigned)_mm_movemask_epi8(digit) ^ 0xFFFFu;
}

static inline uint64_t sl_block_same(const char *p, const char *q)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)q);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, w));
}

#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(SL_PORTABLE)

#include <arm_neon.h>

#define SL_MASK_BITS 4

/* NEON has no movemask: shifting each 16 bits right by four leaves four bits of every byte. */
static inline uint64_t sl_block_narrow(uint8x16_t hit)
{
    uint8x8_t four = vshrn_n_u16(vreinterpretq_u16_u8(hit), 4);
    return vget_lane_u64(vreinterpret_u64_u8(four), 0);
}

static inline uint64_t sl_block_bytes(const char *p, char a, char b)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    return sl_block_narrow(
        vorrq_u8(vceqq_u8(v, vdupq_n_u8((uint8_t)a)), vceqq_u8(v, vdupq_n_u8((uint8_t)b))));
}

static inline uint64_t sl_block_special(const char *p)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    uint8x16_t hit = vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));
    return sl_block_narrow(vorrq_u8(hit, vcltq_s8(vreinterpretq_s8_u8(v), vdupq_n_s8(' '))));
}

static inline uint64_t sl_block_eq(const unsigned char *p, unsigned char a)
{
    return sl_block_narrow(vceqq_u8(vld1q_u8(p), vdupq_n_u8(a)));
}

static inline uint64_t sl_block_no_digit(const char *p)
{
    uint8x16_t from_zero = vsubq_u8(vld1q_u8((const uint8_t *)p), vdupq_n_u8('0'));
    return sl_block_narrow(vcgtq_u8(from_zero, vdupq_n_u8(9)));
}

static inline uint64_t sl_block_same(const char *p, const char *q)
{
    return sl_block_narrow(vceqq_u8(vld1q_u8((const uint8_t *)p), vld1q_u8((const uint8_t *)q)));
}

#else

#define SL_MASK_BITS 1

static inline uint64_t sl_block_bytes(const char *p, char a, char b)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < SL_BLOCK; i++)
        mask |= (uint64_t)(p[i] == a || p[i] == b) << i;
    return mask;
}

static inline uint64_t sl_block_special(const char *p)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < SL_BLOCK; i++)
        mask |= (uint64_t)(p[i] == '"' || p[i] == '\\' || (signed char)p[i] < ' ') << i;
    return mask;
}

static inline uint64_t sl_block_eq(const unsigned char *p, unsigned char a)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < SL_BLOCK; i++)
        mask |= (uint64_t)(p[i] == a) << i;
    return mask;
}

static inline uint64_t sl_block_no_digit(const char *p)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < SL_BLOCK; i++)
        mask |= (uint64_t)(p[i] < '0' || p[i] > '9') << i;
    return mask;
}

static inline uint64_t sl_block_same(const char *p, const char *q)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < SL_BLOCK; i++)
        mask |= (uint64_t)(p[i] == q[i]) << i;
    return mask;
}

#endif

/* Whether the first `n` bytes (one to a block) are all in the mask. */
static inline bool sl_mask_covers(uint64_t mask, unsigned n)
{
    return (~mask & UINT64_MAX >> (64 - n * SL_MASK_BITS)) == 0;
}

/* The mask without byte `n`. */
static inline uint64_t sl_mask_without(uint64_t mask, unsigned n)
{
    return mask & ~(((1ull << SL_MASK_BITS) - 1) << n * SL_MASK_BITS);
}

/* Place of the first byte in a mask that is not zero. */
static inline unsigned sl_mask_first(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask) / SL_MASK_BITS;
}

#endif
