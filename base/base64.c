/* Base64 by table, both ways. */
#include "base/base64.h"

/* Six bits of each letter; 64 for every other byte. */
#define NO 64
static const uint8_t values[256] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 62, NO, NO, NO, 63, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO, NO, NO, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NO, NO, NO, NO, NO, NO, 26, 27, 28, 29, 30, 31, 32,
    33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO};

static size_t padding(struct sl_span text)
{
    if (text.len == 0 || text.ptr[text.len - 1] != '=')
        return 0;
    return text.ptr[text.len - 2] == '=' ? 2 : 1;
}

/* Whether the last letter's unused bits are zero: four of them after two letters, two after three. */
static bool ends_clean(const unsigned char *p, size_t n)
{
    if (n % 4 == 0)
        return true;
    return (values[p[n - 1]] & (n % 4 == 2 ? 0x0F : 0x03)) == 0;
}

bool sl_base64_is_valid(struct sl_span text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    if (text.len % 4)
        return false;
    size_t n = text.len - padding(text);
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= values[p[i]];
    return !(seen & NO) && ends_clean(p, n);
}

size_t sl_base64_decoded_bytes(struct sl_span text)
{
    return text.len / 4 * 3 - padding(text);
}

void sl_base64_decode_valid(struct sl_span text, unsigned char *out)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t n = text.len - padding(text);
    for (; n >= 4; n -= 4, p += 4) {
        unsigned bits = (unsigned)values[p[0]] << 18 | (unsigned)values[p[1]] << 12 |
                        (unsigned)values[p[2]] << 6 | values[p[3]];
        *out++ = (unsigned char)(bits >> 16);
        *out++ = (unsigned char)(bits >> 8);
        *out++ = (unsigned char)bits;
    }
    if (n >= 2)
        *out++ = (unsigned char)(values[p[0]] << 2 | values[p[1]] >> 4);
    if (n == 3)
        *out++ = (unsigned char)(values[p[1]] << 4 | values[p[2]] >> 2);
}

bool sl_base64_decode(struct sl_span text, unsigned char *out)
{
    if (!sl_base64_is_valid(text))
        return false;
    sl_base64_decode_valid(text, out);
    return true;
}

size_t sl_base64_encode_to(struct sl_span bytes, char *out)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    char *to = out;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        unsigned bits = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                        (left > 2 ? (unsigned)p[i + 2] : 0);
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 63];
        *to++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[bits & 63] : '=';
    }
    return (size_t)(to - out);
}

struct sl_span sl_base64_encode(struct sl_span bytes, struct sl_arena *arena)
{
    char *text = sl_arena_alloc(arena, (bytes.len + 2) / 3 * 4);
    return sl_span(text, sl_base64_encode_to(bytes, text));
}
