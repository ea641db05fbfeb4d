/* What the five queues of AWS have in common: batches cut by count and bytes, entries refused one by one,
 * those alone sent again, and order.
 *
 * Where the destination keeps order, of one `order` at most one message is in flight: the next goes out when
 * the one before was taken. When one cannot be sent for now, later ones of its order are not sent either. A
 * batch that was refused as a whole is sent again message by message, so that the bad one is found. */
#ifndef SL_SINKS_AWS_QUEUE_H
#define SL_SINKS_AWS_QUEUE_H

#include "sinks/aws/job.h"

struct sl_queue;
struct sl_queue_batch;

struct sl_queue_kind {
    const struct sl_service *service;
    const char *operation;
    size_t max_entries;
    size_t max_bytes;       /* of all entries of a request, as the service counts */
    size_t max_entry_bytes; /* likewise, of one */
    /* What the service counts of a message. */
    size_t (*bytes)(const struct sl_queue *queue, const struct sl_message *message);
    /* The request's body. */
    void (*write)(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                  struct sl_buffer *out);
    /* Says of each entry what became of it; false when the answer is not understood. */
    bool (*read)(struct sl_queue_batch *batch, struct sl_span answer);
    /* Before the first request: NULL mostly. */
    enum sl_status (*ready)(struct sl_queue *queue, const struct sl_call *call, struct sl_error *error);
};

struct sl_queue {
    struct sl_queue_port port;
    const struct sl_queue_kind *kind;
    struct sl_client client;
    struct sl_arena *arena; /* as long as the port */
    const char *name;       /* of the queue, topic, bus or stream */
    const char *address;    /* its URL or ARN, NULL until known or not needed */
    const char *account;    /* SQS: of the queue, NULL mostly */
    const char *source;     /* EventBridge */
    bool keeps_order;
    bool is_fifo;
    bool adds_newline; /* Firehose */
};

/* A queue with its arena, client and port filled in; the caller adds the rest. `region`: of an ARN, absent
 * otherwise. On failure nothing is left behind. */
enum sl_status sl_queue_new(const struct sl_queue_kind *kind, struct sl_span url_text, struct sl_url *url,
                            struct sl_queue **out, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_queue_connect(struct sl_queue *queue, struct sl_sinks *sinks, struct sl_url *url,
                                struct sl_span region, const char *known_params,
                                struct sl_error *error) SL_MUST_USE;
void sl_queue_destroy(struct sl_queue *queue);

/* For `read`: entry `i` of the request was taken, or refused. */
void sl_queue_taken(struct sl_queue_batch *batch, size_t i);
void sl_queue_refused(struct sl_queue_batch *batch, size_t i, struct sl_span code, struct sl_span message,
                      bool senders_fault);
size_t sl_queue_entries(const struct sl_queue_batch *batch);

/* Name, type and value of each attribute, as SQS and SNS count them. */
size_t sl_queue_attribute_bytes(const struct sl_message *message);

/* The text itself when it is at most `max` bytes of printable ASCII, else its SHA-256: group, deduplication
 * and partition keys. */
void sl_queue_add_id(const struct sl_queue *queue, struct sl_buffer *out, struct sl_span text, size_t max);

/* The message's own deduplication id, or the digest of its body. */
void sl_queue_add_dedupe(const struct sl_queue *queue, struct sl_buffer *out,
                         const struct sl_message *message);

/* Splits "arn:aws:sqs:us-east-1:123456789012:name": the parts by index, absent when it is no ARN. */
struct sl_span sl_queue_arn_part(struct sl_span arn, unsigned index);

/* Letters, digits, and what `more` holds; 1 to `max` bytes. */
bool sl_queue_is_name(struct sl_span name, const char *more, size_t max);

#endif
