/* SHA-256 and HMAC-SHA-256 by libcrypto. */
#include "base/sha256.h"

#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define BLOCK_BYTES 64 /* FIPS 180-4 */

static void must(int ok)
{
    if (!ok)
        sl_die("libcrypto: SHA-256 failed; check the installed OpenSSL");
}

void sl_sha256_init(struct sl_sha256 *sha)
{
    sha->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    sha->work = EVP_MD_CTX_new();
    must(sha->md && sha->work);
}

void sl_sha256_clean_up(struct sl_sha256 *sha)
{
    EVP_MD_CTX_free(sha->work);
    EVP_MD_free(sha->md);
    *sha = (struct sl_sha256){NULL, NULL};
}

void sl_sha256_parts(struct sl_sha256 *sha, const struct sl_span *parts, size_t n,
                     unsigned char out[SL_SHA256_BYTES])
{
    must(EVP_DigestInit_ex2(sha->work, sha->md, NULL));
    for (size_t i = 0; i < n; i++)
        if (parts[i].len)
            must(EVP_DigestUpdate(sha->work, parts[i].ptr, parts[i].len));
    must(EVP_DigestFinal_ex(sha->work, out, NULL));
}

/* RFC 2104: the state after one block of the key xor `pad`. */
static void absorb(struct sl_sha256 *sha, struct evp_md_ctx_st **state, const unsigned char *key,
                   unsigned char pad)
{
    unsigned char block[BLOCK_BYTES];
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] = key[i] ^ pad;
    if (!*state)
        *state = EVP_MD_CTX_new();
    must(*state && EVP_DigestInit_ex2(*state, sha->md, NULL) &&
         EVP_DigestUpdate(*state, block, sizeof(block)));
    OPENSSL_cleanse(block, sizeof(block));
}

void sl_sha256_key_set(struct sl_sha256 *sha, struct sl_sha256_key *key, struct sl_span secret)
{
    unsigned char block[BLOCK_BYTES] = {0};
    if (secret.len > BLOCK_BYTES)
        sl_sha256_parts(sha, &secret, 1, block);
    else if (secret.len)
        memcpy(block, secret.ptr, secret.len);
    absorb(sha, &key->inner, block, 0x36);
    absorb(sha, &key->outer, block, 0x5C);
    OPENSSL_cleanse(block, sizeof(block));
}

void sl_sha256_key_clean_up(struct sl_sha256_key *key)
{
    EVP_MD_CTX_free(key->inner);
    EVP_MD_CTX_free(key->outer);
    *key = (struct sl_sha256_key){NULL, NULL};
}

void sl_sha256_hmac(struct sl_sha256 *sha, const struct sl_sha256_key *key, struct sl_span text,
                    unsigned char out[SL_SHA256_BYTES])
{
    must(EVP_MD_CTX_copy_ex(sha->work, key->inner));
    must(EVP_DigestUpdate(sha->work, text.ptr, text.len));
    must(EVP_DigestFinal_ex(sha->work, out, NULL));
    must(EVP_MD_CTX_copy_ex(sha->work, key->outer));
    must(EVP_DigestUpdate(sha->work, out, SL_SHA256_BYTES));
    must(EVP_DigestFinal_ex(sha->work, out, NULL));
}

void sl_sha256_hex(const unsigned char digest[SL_SHA256_BYTES], char out[SL_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SL_SHA256_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * SL_SHA256_BYTES] = '\0';
}
