/* A reader of DynamoDB Streams: the requests that it takes to read a live stream.
 *
 * Answers are believed when they are whole and of the shape that the operation has: anything else is
 * SL_RETRY, "BrokenAnswer". They are read by our own scanner, which takes what DynamoDB stores (NUL, lone
 * surrogates). Requests are signed and retried as all requests to AWS are (aws/job.h). A failure has the
 * service's code: "TrimmedDataAccessException", "ExpiredIteratorException", "ResourceNotFoundException". */
#ifndef SL_REPLAY_SOURCE_LIVE_H
#define SL_REPLAY_SOURCE_LIVE_H

#include "base/arena.h"
#include "base/error.h"

struct sl_live;

struct sl_live_options {
    char *const *environment; /* region, credentials, endpoints; borrowed until sl_live_close */
    const char *region;       /* NULL: the environment's */
    const char *endpoint;     /* NULL: the environment's, or AWS's */
};

/* Sends nothing. `*out` is set even on failure; the caller closes it. */
enum sl_status sl_live_open(const struct sl_live_options *options, struct sl_live **out,
                            struct sl_error *error) SL_MUST_USE;
void sl_live_close(struct sl_live *live); /* NULL is fine */

/* The ARN of the table's stream. SL_REJECT, "NoStream", when it has none. */
enum sl_status sl_live_find_stream(struct sl_live *live, const char *table, struct sl_arena *arena,
                                   const char **arn, struct sl_error *error) SL_MUST_USE;

struct sl_live_shards {
    struct sl_live_shard {
        const char *id;
        const char *parent; /* "" when it has none */
        bool is_closed;     /* no record will be added */
    } * list;               /* parents before children */
    size_t n, room;
};

/* All shards that the stream still lists. */
enum sl_status sl_live_list_shards(struct sl_live *live, const char *arn, struct sl_arena *arena,
                                   struct sl_live_shards *out, struct sl_error *error) SL_MUST_USE;

struct sl_live_position {
    const char *stream_arn, *shard;
    const char *type;     /* TRIM_HORIZON, LATEST, AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER */
    const char *sequence; /* for the last two; else NULL */
};

enum sl_status sl_live_get_iterator(struct sl_live *live, const struct sl_live_position *position,
                                    struct sl_arena *arena, const char **iterator,
                                    struct sl_error *error) SL_MUST_USE;

struct sl_live_page {
    struct sl_span text;       /* the answer as received: {"Records":[...]} */
    const char *next_iterator; /* NULL: the shard has ended */
};

enum sl_status sl_live_get_records(struct sl_live *live, const char *iterator, struct sl_arena *arena,
                                   struct sl_live_page *page, struct sl_error *error) SL_MUST_USE;

#endif
