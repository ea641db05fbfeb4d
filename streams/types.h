/* What a stream record is made of, in the terms of DynamoDB Streams.
 *
 * Public: installed beside handler.h. C11 and C++11. Plugins look into records through struct sl_host only;
 * its functions are declared in streams/record.h with the same names and arguments. */
#ifndef SL_STREAMS_TYPES_H
#define SL_STREAMS_TYPES_H

#include "base/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One change of one item. Private layout: a view of the payload, alive until the invocation's answer. */
struct sl_record;

enum sl_event { SL_INSERT = 1, SL_MODIFY = 2, SL_REMOVE = 3 };

/* StreamViewType. SL_VIEW_UNKNOWN: the record does not say (Kinesis, Pipes without it, exports). */
enum sl_view {
    SL_VIEW_UNKNOWN = 0,
    SL_VIEW_KEYS_ONLY,
    SL_VIEW_NEW_IMAGE,
    SL_VIEW_OLD_IMAGE,
    SL_VIEW_NEW_AND_OLD_IMAGES
};

/* SL_ANY_IMAGE is for templates alone: a bare {name} is looked for in Keys, then NewImage, then OldImage. */
enum sl_image { SL_KEYS = 0, SL_NEW_IMAGE = 1, SL_OLD_IMAGE = 2, SL_ANY_IMAGE = 3 };

/* Who removed the item. Only a REMOVE can be expired or inferred; see "Who removed the item"
 * in docs/RECORDS.md. */
enum sl_ttl {
    SL_TTL_UNKNOWN = 0, /* a removal that could be either */
    SL_TTL_USER,        /* INSERT, MODIFY, or a removal of an item that was not due */
    SL_TTL_INFERRED,    /* no userIdentity, but the item's time had passed (replica Regions) */
    SL_TTL_EXPIRED      /* userIdentity names the DynamoDB service */
};

/* The record's texts. Absent ones are the absent span. */
enum sl_field {
    SL_FIELD_RAW,        /* the record's whole JSON, as it came */
    SL_FIELD_EVENT_ID,   /* eventID */
    SL_FIELD_IDENTIFIER, /* what a Lambda answer names: SequenceNumber; Kinesis: the outer sequence number */
    SL_FIELD_SEQUENCE_NUMBER, /* dynamodb.SequenceNumber, decimal digits */
    SL_FIELD_REGION,          /* awsRegion */
    SL_FIELD_SOURCE_ARN,      /* eventSourceARN */
    SL_FIELD_TABLE            /* table name: of the ARN, or tableName (Kinesis) */
};

/* The eventSourceARN that `sluice replay` gives to records that came without one: items of exports and scans,
 * records as GetRecords returns them. There is no such table. */
#define SL_REPLAYED_ARN                                                                                      \
    "arn:aws:dynamodb:us-east-1:123456789012:table/replayed/stream/2026-01-01T00:00:00.000"

/* Tag of an attribute value; SL_NONE: there is no value. */
enum sl_type { SL_NONE = 0, SL_S, SL_N, SL_B, SL_BOOL, SL_NULL, SL_SS, SL_NS, SL_BS, SL_L, SL_M };

/* A view of one attribute value, passed by value.
 * `raw` is JSON text: S, N, B: between the quotes, still escaped; BOOL: true or false; NULL: true; sets and
 * L: the array with its brackets; M (and an image or Keys as a whole): the object with its braces. */
struct sl_value {
    enum sl_type type;
    bool escaped; /* S: the text holds backslash escapes, see value_text */
    struct sl_span raw;
};

/* A value's JSON, {"BOOL":true}, is at most so many bytes longer than its `raw`. */
#define SL_VALUE_JSON_BYTES 11

/* Iterating M (members in the order they came), L and sets; see value_iter and value_next. */
struct sl_iter {
    const char *at, *end; /* private */
    enum sl_type type;
};

/* How a template's values are written at their place of use. */
enum sl_escape {
    SL_ESCAPE_NONE, /* unchanged: messages, subjects */
    SL_ESCAPE_JSON, /* inside a JSON string: detail, message bodies, key attributes */
    SL_ESCAPE_PATH  /* one segment of an object key: no value can leave it, two values never become one */
};

/* One place of a template. */
struct sl_template_place {
    struct sl_span before; /* the text between the place before, or the beginning, and this one */
    struct sl_span name;   /* the attribute's name, or its path; absent: it names no attribute */
    bool is_path;          /* `name` is a path */
    bool is_keyed;         /* its last function is |key: what it makes holds no '#' */
    bool is_whole;         /* the value, and no part of it: no other value makes the same text */
};

/* What a writer left in its item: W3C Trace Context, checked. */
struct sl_trace_context {
    struct sl_span traceparent; /* "00-" and a trace's id, the writer's span's id, flags */
    struct sl_span tracestate;  /* absent: there is none */
};

/* A compiled template ("{table}/dt={yyyy}-{mm}-{dd}"), a compiled condition on records, an exact decimal. */
struct sl_template;
struct sl_when;
struct sl_decimal;

#ifdef __cplusplus
}
#endif

#endif
