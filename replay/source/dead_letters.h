/* What a failure queue, topic or bucket holds: records that Sluice parked, and failure records of the event
 * source mapping, in the envelopes in which SQS and SNS deliver them. */
#ifndef SL_REPLAY_SOURCE_DEAD_LETTERS_H
#define SL_REPLAY_SOURCE_DEAD_LETTERS_H

#include "base/arena.h"
#include "base/error.h"

enum sl_dead_letter_kind {
    SL_DEAD_LETTER_PARKED, /* {"sluiceParked":1,...}: one record of one route */
    SL_DEAD_LETTER_EVENT,  /* a whole event: S3's failure record, or the event itself */
    SL_DEAD_LETTER_POINTER /* a place in a stream: SQS's and SNS's failure record */
};

struct sl_dead_letter {
    enum sl_dead_letter_kind kind;
    struct sl_span text;                           /* PARKED: the record; EVENT: the event */
    const char *route;                             /* PARKED */
    const char *stream_arn, *shard, *first, *last; /* POINTER: sequence numbers, both included */
    size_t records;                                /* as the message says; 0: it does not say */
};

struct sl_dead_letters {
    struct sl_dead_letter *list;
    size_t n, room;
};

/* Adds the messages of a text: one message, one a line, an array, the answer of `aws sqs receive-message`, an
 * SQS or SNS event, or a notification. On failure SL_REJECT, and a line that begins with `name`. */
enum sl_status sl_dead_letters_add(struct sl_dead_letters *letters, const char *name, struct sl_span text,
                                   struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

#endif
