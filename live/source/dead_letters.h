/* What a failure queue, topic or bucket holds: records that Sluice parked, and failure records of the event
 * source mapping, in the envelopes in which SQS and SNS deliver them.
 *
 * Any other text is a letter too, an unreadable one, which says why: one bad message does not
 * hide the others. */
#ifndef SL_LIVE_SOURCE_DEAD_LETTERS_H
#define SL_LIVE_SOURCE_DEAD_LETTERS_H

#include "base/arena.h"
#include "base/error.h"

enum sl_dead_letter_kind {
    SL_DEAD_LETTER_PARKED,    /* {"sluiceParked":1,...}: one record of one route */
    SL_DEAD_LETTER_ASIDE,     /* {"sluiceSetAside":1,...}: records of one route whose target was down */
    SL_DEAD_LETTER_EVENT,     /* a whole event: S3's failure record, or the event itself */
    SL_DEAD_LETTER_POINTER,   /* a place in a stream: SQS's and SNS's failure record */
    SL_DEAD_LETTER_UNREADABLE /* anything else: `code` and `why` */
};

/* Texts are in the arena; "" where the message does not say it. */
struct sl_dead_letter {
    enum sl_dead_letter_kind kind;
    struct sl_span text;              /* PARKED: the record; EVENT: the event; ASIDE: the whole letter */
    const char *id;                   /* MessageId of the envelope that is nearest to the outside */
    const char *route, *handler;      /* PARKED, ASIDE */
    const char *table;                /* ASIDE */
    int64_t epoch;                    /* PARKED: of its route at that time; -1: it does not say */
    const char *code;                 /* why it is here: PARKED: the record's error code; failure records:
                                         their condition; UNREADABLE: why it cannot be read */
    const char *why;                  /* UNREADABLE: one line */
    int64_t time_ms;                  /* when it was parked or given up, since 1970; 0: it does not say */
    const char *stream_arn;           /* PARKED, POINTER; "" also when it cannot be one */
    const char *shard, *first, *last; /* POINTER: sequence numbers, both included */
    size_t records;                   /* as the message says; 0: it does not say */
};

struct sl_dead_letters {
    struct sl_dead_letter *list;
    size_t n, room;
};

/* Whether it is the ARN of a stream, with a Region and an account that can be: what is started for a message
 * depends on it. */
bool sl_dead_letter_is_arn(const char *arn);

/* Adds the messages of a text: one message, one a line, an array, the answer of `aws sqs receive-message`, an
 * SQS or SNS event, or a notification. At least one letter is added. */
void sl_dead_letters_add(struct sl_dead_letters *letters, struct sl_span text, struct sl_arena *arena);

#endif
