/* SQS, SNS, EventBridge, Kinesis and Firehose in the test's process, for scripted_server.h: each batch is
 * taken apart by a reading of its own, held against the service's limits, and a function of the test says
 * what becomes of each entry. */
#ifndef SL_TESTS_SUPPORT_FAKE_QUEUE_H
#define SL_TESTS_SUPPORT_FAKE_QUEUE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "tests/support/scripted_server.h"

#define FAKE_QUEUE_ENTRIES 501 /* of a request that is looked at */

struct fake_entry {
    struct sl_span body; /* EventBridge: the detail; Firehose: without its newline */
    struct sl_span order,
        dedupe; /* FIFO: group and deduplication id; Kinesis: the partition key; or absent */
    struct sl_span subject, source; /* SNS; EventBridge: detail-type, source */
    size_t n_attributes;
    size_t bytes; /* as the service counts */
};

/* What a service says of an entry. */
struct fake_fate {
    const char *code; /* NULL: taken */
    bool is_senders_fault;
    /* How often an answer by id names it. */
    enum { FAKE_ONCE, FAKE_LEFT_OUT, FAKE_TWICE, FAKE_UNKNOWN_ID } named;
};

struct fake_queue {
    /* The test's. `judge` is asked in the order of the entries; `refuse` (may be NULL) says the code with
     * which the whole request is refused, NULL when it is not. */
    struct fake_fate (*judge)(void *arg, const struct fake_entry *entry);
    const char *(*refuse)(void *arg, const struct fake_entry *entries, size_t n);
    void *arg;

    const char *fault; /* which rule of a request was broken first */
    size_t requests, most_entries, most_bytes;
    struct sl_buffer out;
    struct sl_arena *arena; /* of one request */
};

void fake_queue_init(struct fake_queue *fake);
void fake_queue_clean_up(struct fake_queue *fake);

/* For scripted_server_start. */
void fake_queue_answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply);

#endif
