/* The parts of the decoder. Callers include streams/decode/batch.h.
 *
 * Every function takes the byte to begin at and returns the byte after what it read, NULL after a failure
 * that is noted in the scan. What breaks a rule of records, while it is JSON, is a fault of kind
 * SL_FAULT_RECORD; what shows that this is not a stream event, SL_FAULT_EVENT. */
#ifndef SL_STREAMS_DECODE_BATCH_PRIVATE_H
#define SL_STREAMS_DECODE_BATCH_PRIVATE_H

#include "base/json.h"
#include "streams/decode/batch.h"
#include "streams/record_layout.h"
#include "streams/decode/form.h"

enum sl_fault { SL_FAULT_JSON = 0, SL_FAULT_RECORD, SL_FAULT_EVENT };

/* DynamoDB's limit; containers within containers. */
#define SL_VALUE_DEPTH 32

/* The text of a string, without its quotes. */
struct sl_string {
    struct sl_span inner;
    bool escaped;
};

/* What was read of one record. */
struct sl_draft {
    struct sl_span raw, image[3];
    const struct sl_image_index *index[3]; /* NULL: none yet */
    struct sl_string event_source, region, arn, table_name;
    struct sl_string event_name;           /* when it is not one of ours */
    struct sl_string data, outer_sequence; /* of a Kinesis record */
    struct sl_span created;                /* a number, or a string without its quotes */
    struct sl_span written, line[3];       /* of an export's line: its time, Keys and images (or Item) */
    const char *event_id, *sequence;       /* after the quote */
    const char *identifier;                /* a Kinesis record's, beside its decoded data */
    uint32_t stated;
    unsigned event, view; /* 0: none */
    enum sl_time_unit precision;
    bool has_precision, is_plain_seconds; /* of `created` */
    bool has_identity, is_service, is_dynamodb;
    bool has_change, has_kinesis, has_record_format;
    bool has_metadata, has_item; /* an export's line, not a change */
};

/* Texts that are the same in most records of a batch: where the last ones are. */
struct sl_decode_last {
    struct sl_string event_version, event_source, region, arn, table_name;
    const char *our_source; /* an event_source that was looked at and is ours */
};

struct sl_decoder {
    struct sl_json_scan scan;
    const char *base; /* what the records' offsets count from */
    struct sl_batch *batch;
    struct sl_shared *shared;
    const char *record; /* the payload's record that is being read */
    size_t room;        /* records of the last chunk */
    char *data;         /* decoded Kinesis data, NULL until there is some */
    size_t data_len;    /* used of it */
    bool any_shape;
    bool keeps_erased;
    bool is_table;       /* see sl_value_read */
    size_t lines_before; /* see struct sl_decode_options */
    struct sl_decode_last last;
    struct sl_origin last_origin; /* its texts as they stand in the payload */
    uint32_t last_origin_at;
    struct sl_forms *forms;
    struct sl_image_notes notes; /* of the map that is being read; no room: nothing is noted */
    char why[160];               /* when a fault needs more than a constant phrase */
};

/* Whether nothing was found yet that shows that this is a stream event. */
static inline bool sl_decode_is_first(const struct sl_decoder *d)
{
    return d->batch->n == 0 && d->lines_before == 0;
}

const char *sl_decode_fault(struct sl_json_scan *s, const char *at, enum sl_fault kind, const char *why);

/* After a fault of another kind in the value at `p`: when the rest of it is not JSON, that becomes the
 * fault. */
void sl_decode_prefer_json(struct sl_json_scan *s, const char *p);

/* ---- values ---- */

/* An attribute map (Keys, an image, the value of an M), from its opening brace. `form`, which may be NULL,
 * says what maps in this place looked like so far. */
const char *sl_decode_attributes(struct sl_decoder *d, const char *p, unsigned depth, struct sl_form *form);

/* ---- objects whose members we know ---- */

#define SL_MEMBER_BYTES 48

struct sl_member {
    char text[SL_MEMBER_BYTES]; /* "name": as compact JSON has it */
    uint8_t len;
    /* Reads the value at `p` into `to`; never called for null. */
    const char *(*read)(struct sl_decoder *d, const char *p, void *to);
};

#define SL_MEMBER(name, read)                                                                                \
    {                                                                                                        \
        "\"" name "\":", sizeof("\"" name "\":") - 1, read                                                   \
    }

/* An object from its opening brace: members of the list go to their readers, others and nulls are skipped. It
 * is fastest when they are in the order of the list. */
const char *sl_decode_object(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                             void *to);

/* A member's name and the colon after it, up to the value: the inside of the name into `name`. */
const char *sl_decode_name(struct sl_json_scan *s, const char *p, struct sl_string *name);

/* A reader's body: a string, its inside into `text`. */
const char *sl_decode_text(struct sl_decoder *d, const char *p, struct sl_string *text);

/* The same for one that is likely to be equal to `last`; then `text` becomes `last`. */
const char *sl_decode_repeated(struct sl_decoder *d, const char *p, struct sl_string *last,
                               struct sl_string *text);

bool sl_decode_text_is(struct sl_string text, struct sl_span known);

/* The text without escapes, in the batch's arena when it had some. */
struct sl_span sl_decode_resolved(struct sl_decoder *d, struct sl_string text);

/* ---- records ---- */

/* A record, from its opening brace. It is added to the batch. */
const char *sl_decode_record(struct sl_decoder *d, const char *p);

/* A record's members, from its opening brace, into `draft`; those of exports' lines only for `any_shape`. */
const char *sl_decode_draft(struct sl_decoder *d, const char *p, bool any_shape, struct sl_draft *draft);

/* The Kinesis record that `outer` is: its data, decoded, becomes the record. Returns `next`. */
const char *sl_decode_kinesis(struct sl_decoder *d, const struct sl_draft *outer, const char *next);

/* Checks what only the whole draft shows, and adds the record, or says what is wrong. Returns `next`. */
const char *sl_decode_add(struct sl_decoder *d, const struct sl_draft *draft, const char *next);

/* A draft that is not a change. When it is the first, the whole payload is refused as another kind of
 * event. */
const char *sl_decode_foreign(struct sl_decoder *d, const struct sl_draft *draft);

#endif
