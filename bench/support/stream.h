/* A scripted server of DynamoDB Streams in a process of its own: as fast as loopback is, so that what is
 * measured is the reader's work. Every shard is open, has no parent, and begins when the server does. */
#ifndef SL_BENCH_SUPPORT_STREAM_H
#define SL_BENCH_SUPPORT_STREAM_H

#include <stdint.h>

struct bench_stream_script {
    unsigned shards;
    unsigned page_records; /* of a full page; every page is full when `rate` is 0 and this is not */
    unsigned record_bytes; /* of padding */
    uint64_t pages;        /* full pages of a shard; then it is empty. 0: no end */
    double rate;           /* records a second, over all shards: each has its time of availability in "t" */
};

struct bench_stream {
    int pid;
    char url[64];
    const uint64_t *reads; /* GetRecords so far */
};

#define BENCH_STREAM_ARN "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"

void bench_stream_start(struct bench_stream *stream, const struct bench_stream_script *script);
void bench_stream_stop(struct bench_stream *stream);

/* Microseconds since 1970: the server's clock is this machine's. */
int64_t bench_stream_now_us(void);

#endif
