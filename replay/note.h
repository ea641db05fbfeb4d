/* What a failure queue, topic or bucket holds: parked records of ours, failure records of the event source
 * mapping, in the wrappings in which SQS and SNS hand them out. */
#ifndef SL_REPLAY_NOTE_H
#define SL_REPLAY_NOTE_H

#include "base/arena.h"
#include "base/error.h"

enum sl_note_kind {
    SL_NOTE_PARKED, /* {"sluiceParked":1,...}: one record, of one route */
    SL_NOTE_EVENT,  /* a whole event: S3's failure record, or the event itself */
    SL_NOTE_POINTER /* a place in a stream: SQS's and SNS's failure record */
};

struct sl_note {
    enum sl_note_kind kind;
    struct sl_span text;                           /* PARKED: the record; EVENT: the event */
    const char *route;                             /* PARKED */
    const char *stream_arn, *shard, *first, *last; /* POINTER: sequence numbers, both included */
    size_t records;                                /* as the message says; 0: it does not */
};

struct sl_notes {
    struct sl_note *list;
    size_t n, room;
};

/* Adds the messages of a text: one of them, lines of them, an array, `aws sqs receive-message`'s answer, an
 * SQS or SNS event, a notification. On failure SL_REJECT and a line that begins with `name`. */
enum sl_status sl_notes_add(struct sl_notes *messages, const char *name, struct sl_span text,
                            struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

#endif
