/* What the five queues of AWS share: batches of limited count and bytes, entries that are refused singly and
 * sent again alone, and order.
 *
 * Where the destination keeps order, at most one message of an `order` is in flight: the next is sent when
 * the one before was taken. When one cannot be sent for now, later ones of its order are not sent either. A
 * batch that was refused as a whole is sent again message by message, so that the bad one is found. */
#ifndef SL_SINKS_QUEUES_QUEUE_H
#define SL_SINKS_QUEUES_QUEUE_H

#include "base/arn.h"
#include "aws/job.h"
#include "sinks/queues/content.h"
#include "sinks/target.h"

struct sl_queue;
struct sl_queue_batch;

/* What an entry's error code means where aws/codes.h does not say it, or not of an entry. */
struct sl_queue_code {
    const char *code; /* NULL ends the list */
    bool is_prefix;
    enum sl_code_kind kind;
    enum sl_status status;
};

struct sl_queue_kind {
    const struct sl_service *service;
    const char *operation;
    const char *params; /* that a target may have: for sl_url_done */
    size_t max_entries;
    size_t max_bytes;       /* of all entries of a request, as the service counts */
    size_t max_entry_bytes; /* of one entry, likewise */
    /* Reads the target into `queue`: name, address and what else the kind needs. SL_FATAL when it is wrong.
     */
    enum sl_status (*fill)(struct sl_queue *queue, struct sl_url *url, struct sl_error *error);
    /* What the service counts of a message. */
    size_t (*bytes)(const struct sl_queue *queue, const struct sl_message *message);
    /* The request's body. */
    void (*write)(const struct sl_queue *queue, const struct sl_message *const *messages, size_t n,
                  struct sl_buffer *out);
    /* Calls sl_queue_taken or sl_queue_refused for each entry that the answer names; false when the answer as
     * a whole is not understood. */
    bool (*read)(struct sl_queue_batch *batch, const struct sl_job *job);
    const struct sl_queue_code *codes; /* of entries */
    enum sl_content body;              /* what the service takes as a body */
    enum sl_content subject;           /* and as a subject, if that is sent as it is */
    bool has_attributes;               /* the message's attributes are sent: a body's rule is theirs */
    /* Before the first request: finds what is needed and not in the target. mostly NULL. */
    enum sl_status (*ready)(struct sl_queue *queue, const struct sl_call *call, struct sl_error *error);
};

struct sl_queue {
    struct sl_queue_port port;
    const struct sl_queue_kind *kind;
    struct sl_client client;
    struct sl_arena *arena; /* as long as the port */
    const char *name;       /* of the queue, topic, bus or stream */
    const char *address;    /* its URL or ARN, NULL until known or not needed */
    struct sl_span region;  /* in the target's URL, mostly absent; an ARN's is found without it */
    struct sl_span host;    /* "https://host" of the target's URL, where it is not the Region's usual one */
    struct sl_span account_of_host; /* Kinesis: of the stream's ARN */
    const char *account;            /* SQS: of the queue, mostly NULL */
    const char *source;             /* EventBridge */
    bool keeps_order;
    bool is_fifo;
    bool adds_newline; /* Firehose */
};

/* A port for the target. Nothing is sent. SL_FATAL when the target is wrong; then nothing is left open. */
enum sl_status sl_queue_open(const struct sl_queue_kind *kind, struct sl_sinks *sinks, struct sl_span url,
                             struct sl_queue_port **out, struct sl_error *error) SL_MUST_USE;

/* An entry that the service refused: its texts are borrowed until the answer has been read. */
struct sl_queue_refusal {
    struct sl_span code, message;
    bool is_by_place; /* the service does not say whose fault it is */
    bool is_senders_fault;
};

/* For `read`: the answer says that entry `i` was taken, or refused. What counts is an entry that is named
 * once; one that is not named, or more than once, is not proven and is sent again. Entries that the request
 * does not have are ignored. */
void sl_queue_taken(struct sl_queue_batch *batch, size_t i);
void sl_queue_refused(struct sl_queue_batch *batch, size_t i, const struct sl_queue_refusal *refusal);
size_t sl_queue_entries(const struct sl_queue_batch *batch);
/* The message of entry i; NULL: there is no such entry. */
const struct sl_message *sl_queue_message(const struct sl_queue_batch *batch, size_t i);
/* Memory until the end of the apply. */
struct sl_arena *sl_queue_scratch(const struct sl_queue_batch *batch);
/* A string of the answer, without its escapes; in scratch. */
struct sl_span sl_queue_text(const struct sl_queue_batch *batch, struct sl_span object, const char *name);
/* The number of an entry by its id, which the request made of it ("3"); SIZE_MAX when it is not one. */
size_t sl_queue_entry_of(struct sl_span id);

/* Name, type and value of each attribute, as SQS and SNS count them. */
size_t sl_queue_attribute_bytes(const struct sl_message *message);

#define SL_QUEUE_ID_BYTES 128 /* of a group or a deduplication id, in SQS and SNS */

/* Whether `text` is the MD5 of the body, as SQS writes it. True where there is no MD5 (FIPS). */
bool sl_queue_is_md5(struct sl_span text, struct sl_span body);

/* The text itself when it is at most `max` bytes of printable ASCII, else its SHA-256: group, deduplication
 * and partition keys. */
void sl_queue_add_id(const struct sl_queue *queue, struct sl_buffer *out, struct sl_span text, size_t max);
/* How many bytes it adds. */
size_t sl_queue_id_bytes(struct sl_span text, size_t max);

/* The message's own deduplication id, or the digest of its body. */
void sl_queue_add_dedupe(const struct sl_queue *queue, struct sl_buffer *out,
                         const struct sl_message *message);

#endif
