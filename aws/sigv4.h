/* Signature Version 4, header form: the Authorization header of a request.
 *
 * Each of the three steps (canonical request, string to sign, signature) is a function of its own, because
 * emulators do not check signatures and the tests must. The signing key is derived once a day. A signed
 * request is sent at once and never kept: a sandbox may be frozen in between. Source of the rules: AWS's
 * signing documentation and the vectors of its aws-c-auth suite. */
#ifndef SL_AWS_SIGV4_H
#define SL_AWS_SIGV4_H

#include "base/buffer.h"
#include "base/sha256.h"

#define SL_SIGV4_FIELDS     48 /* header fields of one request */
#define SL_SIGV4_PARAMS     32 /* query parameters of one request */
#define SL_SIGV4_DATE_BYTES 17 /* "20150830T123600Z" and a NUL */

struct sl_sigv4_field {
    struct sl_span name, value;
};

struct sl_sigv4_request {
    struct sl_span method;
    struct sl_span path;                 /* as on the request line, '/' first */
    struct sl_span query;                /* without the '?'; any order */
    const struct sl_sigv4_field *fields; /* in any order and case; must hold host and x-amz-date */
    size_t n_fields;
    const char *payload_hash; /* hexadecimal SHA-256 of the body, or UNSIGNED-PAYLOAD */
    bool encode_path;         /* every service but S3 signs the path encoded once more than it is sent */
    bool normalize_path;      /* likewise: "." and ".." and empty segments resolved */
};

/* Who signs, for what. `serial` changes whenever the credentials change. */
struct sl_sigv4_identity {
    const char *access_key, *secret_key;
    const char *region, *service;
    uint64_t serial;
};

/* A signer for one service in one region; keeps the day's key and its buffers. */
struct sl_sigv4 {
    struct sl_sha256 *sha; /* borrowed */
    struct sl_sha256_key key;
    char day[9]; /* of `key`; "" when there is none */
    uint64_t serial;
    struct sl_buffer canonical;
    struct sl_buffer signed_names; /* "host;x-amz-date" */
    struct sl_buffer to_sign;
    struct sl_buffer scratch;
    unsigned keys_made; /* for the tests: the cache works */
};

void sl_sigv4_init(struct sl_sigv4 *signer, struct sl_sha256 *sha);
void sl_sigv4_clean_up(struct sl_sigv4 *signer); /* zeroed memory is fine */

/* The x-amz-date of a moment. */
void sl_sigv4_date(int64_t epoch_s, char out[SL_SIGV4_DATE_BYTES]);

/* Step 1, left in `canonical` and `signed_names`. */
void sl_sigv4_canonical(struct sl_sigv4 *signer, const struct sl_sigv4_request *request);

/* Step 2, left in `to_sign`; after step 1. */
void sl_sigv4_to_sign(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who, const char *date);

/* Step 3, after step 2. */
void sl_sigv4_signature(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who, const char *date,
                        char out[SL_SHA256_HEX]);

/* All three: appends the value of the Authorization header. */
void sl_sigv4_authorize(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who,
                        const struct sl_sigv4_request *request, const char *date, struct sl_buffer *out);

#endif
