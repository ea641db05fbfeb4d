/* What a signature costs, with the day's key at hand: a DynamoDB request as it goes out, with a session
 * token. The hash of the body is given apart. One JSON line a figure. */
#include "aws/sigv4.h"
#include "base/error.h"
#include "bench/support/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS ((int)bench_size(200000, 500))

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", name, value, unit);
}

static char token[1025];

static void sign_many(struct sl_sigv4 *signer, struct sl_buffer *out, const char *name)
{
    const char *hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    const struct sl_sigv4_identity who = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                          "us-east-1", "dynamodb", 1};
    const struct sl_sigv4_field fields[] = {
        {SL_LIT("host"), SL_LIT("dynamodb.us-east-1.amazonaws.com")},
        {SL_LIT("content-type"), SL_LIT("application/x-amz-json-1.0")},
        {SL_LIT("x-amz-target"), SL_LIT("DynamoDB_20120810.BatchWriteItem")},
        {SL_LIT("x-amz-date"), SL_LIT("20261120T210400Z")},
        {SL_LIT("x-amz-security-token"), sl_span_str(token)},
    };
    const struct sl_sigv4_request request = {.method = SL_LIT("POST"),
                                             .path = SL_LIT("/"),
                                             .fields = fields,
                                             .n_fields = token[0] ? 5 : 4,
                                             .payload_hash = hash,
                                             .encode_path = true,
                                             .normalize_path = true};
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        double began = seconds();
        for (int i = 0; i < ROUNDS / 5; i++) {
            sl_buffer_reset(out);
            sl_sigv4_authorize(signer, &who, &request, "20261120T210400Z", out);
        }
        double took = (seconds() - began) / (ROUNDS / 5.0);
        best = took < best ? took : best;
    }
    figure(name, best * 1e6, "us");
}

static void hash_body(struct sl_sha256 *sha, size_t bytes)
{
    char name[64];
    char *body = malloc(bytes);
    unsigned char digest[SL_SHA256_BYTES];
    if (!body)
        sl_die("out of memory");
    memset(body, 'x', bytes);
    struct sl_span part = sl_span(body, bytes);
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        double began = seconds();
        for (size_t i = 0; i < (16u << 20) / bytes; i++)
            sl_sha256_parts(sha, &part, 1, digest);
        double took = (seconds() - began) / (double)((16u << 20) / bytes);
        best = took < best ? took : best;
    }
    snprintf(name, sizeof(name), "sha256 of %zu bytes", bytes);
    figure(name, (double)bytes / best / 1e6, "MB/s");
    free(body);
}

int main(void)
{
    struct sl_sha256 sha;
    struct sl_sigv4 signer;
    struct sl_buffer out;
    double began = seconds();
    sl_sha256_init(&sha);
    figure("sign: libcrypto made ready, once", (seconds() - began) * 1e6, "us");
    sl_sigv4_init(&signer, &sha);
    sl_buffer_init(&out, 64 * 1024);
    sign_many(&signer, &out, "sign: one request");
    memset(token, 'T', sizeof(token) - 1);
    sign_many(&signer, &out, "sign: one request, session token of 1 KB");
    hash_body(&sha, 1024);
    hash_body(&sha, 1 << 20);
    sl_buffer_clean_up(&out);
    sl_sigv4_clean_up(&signer);
    sl_sha256_clean_up(&sha);
    return 0;
}
