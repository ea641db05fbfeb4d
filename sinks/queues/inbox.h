/* The reading side of an SQS queue: what is in it, messages and their receipts, the time in which nobody else
 * gets them, and their removal.
 *
 * Answers are believed when they are whole: a message has an id, a receipt and a body with the right MD5; an
 * entry of a batch is done when the answer names it once, as successful. What is not proven is sent again,
 * and is not done after the last attempt: removing or hiding a message twice does no harm.
 *
 * A receive whose answer was lost has received all the same: its messages come back when their visibility
 * timeout is over, and SQS has counted the receive. (In a FIFO queue the same messages are asked for again:
 * ReceiveRequestAttemptId.)
 *
 * Source: Amazon SQS API Reference, ReceiveMessage, DeleteMessageBatch, ChangeMessageVisibilityBatch,
 * GetQueueAttributes. */
#ifndef SL_SINKS_QUEUES_INBOX_H
#define SL_SINKS_QUEUES_INBOX_H

#include "sinks/target.h"

/* API Reference, ReceiveMessage and ChangeMessageVisibility; "Amazon SQS message quotas". */
#define SL_INBOX_MESSAGES     10          /* of one receive, and of one batch */
#define SL_INBOX_HIDDEN_MAX_S (12 * 3600) /* since a message was received */
/* The longest wait of a receive: SQS has 20 s, but a connection without a byte is given up after 15. */
#define SL_INBOX_WAIT_S 10

struct sl_inbox;

struct sl_inbox_message {
    const char *id, *receipt;
    const char *group; /* FIFO: MessageGroupId; else NULL */
    struct sl_span body;
    int64_t sent_ms;  /* since 1970; 0: not said */
    int64_t receives; /* ApproximateReceiveCount, this one included */
};

struct sl_inbox_facts {
    int64_t max_receives;       /* RedrivePolicy: after so many the next receive moves a message; 0: none */
    const char *moves_to;       /* ARN of that queue; NULL: none */
    int64_t waiting, in_flight, delayed; /* approximate; -1: not said */
    int64_t hidden_s, kept_s;            /* visibility timeout, retention period; -1: not said */
};

/* `url` as a target has it: sqs://name?region=, sqs://account/name, a URL or an ARN. Sends nothing. SL_FATAL:
 * the target is wrong. */
enum sl_status sl_inbox_open(struct sl_sinks *sinks, struct sl_span url, struct sl_inbox **out,
                             struct sl_error *error) SL_MUST_USE;
void sl_inbox_close(struct sl_inbox *inbox); /* NULL is fine */

bool sl_inbox_is_fifo(const struct sl_inbox *inbox);

enum sl_status sl_inbox_describe(struct sl_inbox *inbox, const struct sl_call *call,
                                 struct sl_inbox_facts *out, struct sl_error *error) SL_MUST_USE;

struct sl_inbox_receive {
    size_t requests;  /* in flight together, each for SL_INBOX_MESSAGES */
    int64_t wait_s;   /* 0 to SL_INBOX_WAIT_S */
    int64_t hidden_s; /* visibility timeout: 0 to SL_INBOX_HIDDEN_MAX_S */
};

/* The messages are in call->arena. When some of the requests failed, the messages of the others are in `out`,
 * and `error` says why the first failed. SL_REJECT, code "OverLimit": so many messages are in flight that SQS
 * gives no more. */
enum sl_status sl_inbox_receive(struct sl_inbox *inbox, const struct sl_inbox_receive *receive,
                                const struct sl_call *call, struct sl_inbox_message **out, size_t *n,
                                struct sl_error *error) SL_MUST_USE;

/* Removes each message, and sets its result: SL_REJECT "ReceiptHandleIsInvalid" and others: the receipt is
 * too old. */
void sl_inbox_remove(struct sl_inbox *inbox, const char *const *receipts, size_t n, struct sl_result *results,
                     const struct sl_call *call);

/* From now on nobody gets the message for `seconds[i]` seconds; 0: it can be received at once. */
void sl_inbox_hide(struct sl_inbox *inbox, const char *const *receipts, const int64_t *seconds, size_t n,
                   struct sl_result *results, const struct sl_call *call);

#endif
