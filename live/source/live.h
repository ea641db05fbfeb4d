/* A reader of DynamoDB Streams: the requests that it takes to read a live stream.
 *
 * Answers are believed when they are whole and of the shape that the operation has: anything else is
 * SL_RETRY, "BrokenAnswer". They are read by our own scanner, which takes what DynamoDB stores (NUL, lone
 * surrogates). Requests are signed and retried as all requests to AWS are (aws/job.h). A failure has the
 * service's code: "TrimmedDataAccessException", "ExpiredIteratorException", "ResourceNotFoundException". */
#ifndef SL_LIVE_SOURCE_LIVE_H
#define SL_LIVE_SOURCE_LIVE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vars.h"

struct sl_live;

struct sl_live_options {
    const struct sl_vars *vars; /* region, credentials, endpoints; what they list is borrowed until
                                   sl_live_close */
    const char *region;         /* NULL: the environment's */
    const char *endpoint;       /* NULL: the environment's, or AWS's */
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
    bool is_disabled; /* StreamStatus DISABLING or DISABLED: nothing will be added any more */
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

/* ---- requests that fly together ----
 *
 * An ask is one request, begun without waiting. Its owner calls sl_live_wait, and sl_live_is_over for each
 * that is flying. One thread. */

struct sl_live_ask; /* used for one request after another */

struct sl_live_ask *sl_live_ask_new(struct sl_live *live);
void sl_live_ask_destroy(struct sl_live_ask *ask); /* breaks off what flies; NULL is fine */

/* Each begins a request; none is flying. What they are given is copied. */
void sl_live_ask_iterator(struct sl_live_ask *ask, const struct sl_live_position *position);
void sl_live_ask_records(struct sl_live_ask *ask, const char *iterator);
void sl_live_ask_shards(struct sl_live_ask *ask, const char *arn, const char *after);
/* The shards whose parent this one is (ShardFilter CHILD_SHARDS); a service that does not know the filter
 * refuses it, or answers with all. */
void sl_live_ask_children(struct sl_live_ask *ask, const char *arn, const char *shard);
void sl_live_ask_table(struct sl_live_ask *ask, const char *table);

/* Waits until something has come for one of them, `bell` (-1: none) can be read, or the time is over. */
void sl_live_wait(struct sl_live *live, int64_t timeout_ms, int bell);

/* Takes what has come. True: it is over. False: also when none was begun. */
bool sl_live_is_over(struct sl_live_ask *ask);
bool sl_live_is_flying(const struct sl_live_ask *ask);

/* When to look at it although nothing has come, on the steady clock; INT64_MAX: not at all. */
int64_t sl_live_due_ms(const struct sl_live_ask *ask);

/* The outcome of the one that is over: SL_OK, or what the functions above fail with. */
enum sl_status sl_live_outcome(const struct sl_live_ask *ask, struct sl_error *error) SL_MUST_USE;

/* Its answer; each of them copies, and reads what its own request answers. */
const char *sl_live_told_iterator(const struct sl_live_ask *ask, struct sl_arena *arena);
/* Of a page that was asked for here, only its two members were checked: whoever finds a record in it without
 * a sequence number, or cannot read it, asks whether it is a page of records at all. */
bool sl_live_is_page(struct sl_span answer);
struct sl_live_page sl_live_told_records(const struct sl_live_ask *ask,
                                         struct sl_arena *arena); /* `text` is borrowed from the ask */
const char *sl_live_told_stream(const struct sl_live_ask *ask, struct sl_arena *arena); /* NULL: none */

/* Adds the page's shards. `*after`: where the next page begins; NULL: this is the last, and then `shards` is
 * in order, parents first. */
enum sl_status sl_live_told_shards(const struct sl_live_ask *ask, struct sl_arena *arena,
                                   struct sl_live_shards *shards, const char **after,
                                   struct sl_error *error) SL_MUST_USE;

/* Frees the memory of the last answer. */
void sl_live_forget(struct sl_live_ask *ask);

#endif
