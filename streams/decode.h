/* The decoder's own parts. Private to streams/: callers see streams/batch.h.
 *
 * Every function takes the byte to begin at and gives the byte behind what it read, NULL after a failure that
 * is noted in the scan. What breaks a rule of records, while it is JSON, is a fault of kind SL_FAULT_RECORD;
 * what shows that this is no stream event at all, SL_FAULT_EVENT. */
#ifndef SL_STREAMS_DECODE_H
#define SL_STREAMS_DECODE_H

#include "base/json.h"
#include "streams/record_layout.h"

enum sl_fault { SL_FAULT_JSON = 0, SL_FAULT_RECORD, SL_FAULT_EVENT };

/* DynamoDB's limit; containers within containers. */
#define SL_VALUE_DEPTH 32

/* The text of a string, without its quotes. */
struct sl_text {
    struct sl_span inner;
    bool escaped;
};

/* What was read of one record. */
struct sl_draft {
    struct sl_span raw, image[3];
    struct sl_text event_id, sequence, region, arn, table_name, event_source;
    struct sl_text event_name, view, precision;
    struct sl_text identity_type, identity_principal;
    struct sl_text data, outer_sequence;     /* of a Kinesis record */
    struct sl_span identifier;               /* a Kinesis record's, beside its decoded data */
    struct sl_span created, stated, written; /* numbers, or the inside of a string */
    bool has_identity, has_change, has_kinesis, has_record_format, has_metadata, has_item;
};

struct sl_decoder {
    struct sl_json_scan scan;
    const char *base; /* what the records' offsets count from */
    struct sl_batch *batch;
    struct sl_shared *shared;
    size_t room;     /* records of the last chunk */
    char *data;      /* decoded Kinesis data, NULL until there is some */
    size_t data_len; /* used of it */
    bool any_shape;
    char why[160]; /* when a fault needs more than a constant phrase */
};

/* A record, from its opening brace. It is added to the batch. */
const char *sl_decode_record(struct sl_decoder *d, const char *p);

/* An attribute map (Keys, an image, the value of an M), from its opening brace. */
const char *sl_decode_attributes(struct sl_json_scan *s, const char *p, unsigned depth);

/* ---- objects whose members we know ---- */

struct sl_member {
    struct sl_span name;
    /* Reads the value at `p` into `to`; never called for null. */
    const char *(*read)(struct sl_decoder *d, const char *p, void *to);
};

/* An object from its opening brace: members of the list go to their readers, others and nulls are skipped. */
const char *sl_decode_object(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                             void *to);

/* A reader's body: a string, its inside into `text`. */
const char *sl_decode_text(struct sl_decoder *d, const char *p, struct sl_text *text);

/* After a fault of another kind in the value at `p`: when that is no JSON at all, further on, that is said. */
void sl_decode_prefer_json(struct sl_json_scan *s, const char *p);

const char *sl_decode_fault(struct sl_json_scan *s, const char *at, enum sl_fault kind, const char *why);

#endif
