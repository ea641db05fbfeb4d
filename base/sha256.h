/* SHA-256 and HMAC-SHA-256 over pieces, on libcrypto, keeping a key's two inner states.
 *
 * Nothing here allocates after init, but the first init of a process loads libcrypto's provider (2 ms
 * measured): so call it at the first request, not at the start. */
#ifndef SL_BASE_SHA256_H
#define SL_BASE_SHA256_H

#include "base/span.h"

#define SL_SHA256_BYTES 32
#define SL_SHA256_HEX   65 /* with the NUL */

struct evp_md_st;
struct evp_md_ctx_st;

struct sl_sha256 {
    struct evp_md_st *md;
    struct evp_md_ctx_st *work;
};

/* A key, digested: signing with it costs the message's blocks and two more. */
struct sl_sha256_key {
    struct evp_md_ctx_st *inner, *outer;
};

void sl_sha256_init(struct sl_sha256 *sha);
void sl_sha256_clean_up(struct sl_sha256 *sha); /* zeroed memory is fine */

/* Of the pieces one after another; none is copied. */
void sl_sha256_parts(struct sl_sha256 *sha, const struct sl_span *parts, size_t n,
                     unsigned char out[SL_SHA256_BYTES]);

/* `key` may be zeroed memory or an earlier key, which is replaced. */
void sl_sha256_key_set(struct sl_sha256 *sha, struct sl_sha256_key *key, struct sl_span secret);
void sl_sha256_key_clean_up(struct sl_sha256_key *key);
void sl_sha256_hmac(struct sl_sha256 *sha, const struct sl_sha256_key *key, struct sl_span text,
                    unsigned char out[SL_SHA256_BYTES]);

/* Lower-case hexadecimal with a NUL. */
void sl_sha256_hex(const unsigned char digest[SL_SHA256_BYTES], char out[SL_SHA256_HEX]);

#endif
