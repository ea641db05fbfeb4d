/* A queue of SQS in the test's process that gives out messages, for scripted_server.h: visibility timeouts,
 * receipts that grow old, groups of a FIFO queue, a RedrivePolicy, the limit of what is in flight, by the API
 * Reference. A long poll of an empty queue is answered at once.
 *
 * Source: Amazon SQS API Reference, ReceiveMessage, DeleteMessageBatch, ChangeMessageVisibilityBatch,
 * GetQueueAttributes; Developer Guide, "FIFO queue delivery logic". */
#ifndef SL_TESTS_SUPPORT_FAKE_INBOX_H
#define SL_TESTS_SUPPORT_FAKE_INBOX_H

#include "base/buffer.h"
#include "base/clock.h"
#include "tests/support/scripted_server.h"

#define FAKE_INBOX_MESSAGES 600
#define FAKE_INBOX_POLICY   "arn:aws:sqs:us-east-1:123456789012:graveyard"

struct fake_message {
    char *body;
    const char *group;          /* NULL: none */
    int64_t first_ms, until_ms; /* first received; hidden until (0: it is visible) */
    unsigned receives, hidden;  /* how often it was received, and hidden anew */
    bool is_removed, is_moved;  /* by the RedrivePolicy */
};

struct fake_inbox {
    /* The test's. */
    struct sl_clock *clock;
    bool is_fifo;
    unsigned max_receives; /* of the RedrivePolicy; 0: none */
    size_t most_in_flight; /* 0: any number */
    size_t each;           /* of a receive, at most; 0: what is asked for */
    /* May fill in the reply itself, and returns true then: nothing was done. NULL: never. */
    bool (*instead)(void *arg, struct sl_span operation, struct scripted_reply *reply);
    /* After a request that was answered. NULL: nothing. */
    void (*after)(void *arg, struct sl_span operation);
    /* The code with which an entry of a batch is refused; NULL: it is not. */
    const char *(*judge)(void *arg, struct sl_span operation, const struct fake_message *message);
    void *arg;

    struct fake_message list[FAKE_INBOX_MESSAGES];
    size_t n;
    char url[64]; /* of the server, after the first request */
    struct sl_buffer out;
};

void fake_inbox_init(struct fake_inbox *fake, struct sl_clock *clock);
void fake_inbox_clean_up(struct fake_inbox *fake);

/* The text is copied; the group is borrowed. Message i has the id "m-i". */
struct fake_message *fake_inbox_add(struct fake_inbox *fake, const char *group, const char *body);

/* That are not removed and not moved; and those of them that are hidden now. */
size_t fake_inbox_count(const struct fake_inbox *fake);
size_t fake_inbox_in_flight(const struct fake_inbox *fake);

/* For scripted_server_start. */
void fake_inbox_answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply);

#endif
