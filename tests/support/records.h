/* Records for tests: text decoded in memory of exactly its size, so that sanitizers see a read beyond it. */
#ifndef SL_TESTS_SUPPORT_RECORDS_H
#define SL_TESTS_SUPPORT_RECORDS_H

#include "streams/decode/batch.h"
#include "streams/record.h"

struct test_batch {
    struct sl_batch batch;
    struct sl_arena *arena;
    char *memory;
    enum sl_status status;
    struct sl_error error;
};

/* Any shape; `ttl` names the TTL attribute, or is NULL. */
void test_decode(struct test_batch *t, struct sl_span text, const char *ttl);
/* What a Lambda function takes. */
void test_decode_event(struct test_batch *t, struct sl_span text);
/* A later piece of lines. */
void test_decode_lines(struct test_batch *t, struct sl_span text, size_t lines_before);
void test_batch_clean_up(struct test_batch *t);

/* A record of a Lambda event, with ' for ". `members` go into "dynamodb", `others` into the record; both may
 * be "". */
const struct sl_record *test_record(struct test_batch *t, const char *event, const char *members,
                                    const char *others);

#endif
