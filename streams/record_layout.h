/* How a record lies in memory. For streams/ and the rooms in it: everybody else uses streams/record.h.
 *
 * A record is 56 bytes of 32-bit offsets into the text that it is a view of: the payload, or for Kinesis
 * the decoded data. Records come in chunks; a chunk also leads to what its records share and to the
 * indexes of their images: the decoder's, when it notes attributes, else those of the images that were looked
 * into. Of a string only the first byte is noted: it ends at the closing quote. */
#ifndef SL_STREAMS_RECORD_LAYOUT_H
#define SL_STREAMS_RECORD_LAYOUT_H

#include "base/buffer.h"
#include "base/map.h"
#include "base/number.h"
#include "streams/record.h"

/* In which a record states its time. */
enum sl_time_unit { SL_SECONDS, SL_MILLISECONDS, SL_MICROSECONDS };

enum sl_identity {
    SL_IDENTITY_NONE,
    SL_IDENTITY_DYNAMODB, /* {Service, dynamodb.amazonaws.com}: the TTL's mark */
    SL_IDENTITY_OTHER
};

struct sl_record {
    uint32_t raw, raw_len;
    uint32_t image[3], image_len[3]; /* by enum sl_image; no length: absent */
    /* First bytes of texts; 0: absent (at 0 there is a brace or a bracket). */
    uint32_t event_id;
    uint32_t sequence; /* dynamodb.SequenceNumber */
    uint32_t created;  /* ApproximateCreationDateTime: a number, or a date without its quote */
    uint32_t stated;   /* SizeBytes itself */
    uint32_t origin;   /* in the batch's table of origins */
    unsigned slot : 8; /* place in the chunk */
    unsigned event : 2;
    unsigned view : 3;
    unsigned identity : 2;
    unsigned unit : 2;   /* of `created` */
    bool is_wrapped : 1; /* from Kinesis: `sequence` is the outer record's */
    bool is_timed : 1;   /* Kinesis' form or an export line: ordered by its time */
};

#define SL_CHUNK_RECORDS 256

/* Where records of one table come from. Texts are unescaped. */
struct sl_origin {
    const char *base; /* what offsets count from */
    const char *end;
    struct sl_span region, arn, table_name; /* as the records state them */
};

/* What all records of a batch share. */
struct sl_shared {
    struct sl_arena *arena;
    struct sl_span ttl_attribute;
    struct sl_origin *origins;
    uint32_t n_origins, room_origins;
    size_t n_read_again; /* images that were read once more, for their index */
};

/* Of one image: the attributes in their order, and one byte of each name's hash, to be searched sixteen at a
 * time (hence the room up to a full block). */
struct sl_image_entry {
    uint32_t name;     /* first byte, after the quote */
    uint32_t value;    /* first byte of the value's text, see struct sl_value */
    unsigned len : 20; /* of the value's text; SL_ENTRY_LONG: to be measured again */
    unsigned type : 4;
    bool is_escaped : 1;
    bool is_name_escaped : 1;
};

#define SL_ENTRY_LONG ((1u << 20) - 1)

struct sl_image_index {
    uint32_t n;
    struct sl_image_entry entries[];
    /* then uint8_t hashes[n], rounded up to a block */
};

/* An image shorter than this holds three or four attributes, and reading it through is as fast. */
#define SL_INDEXED_BYTES 96

/* One byte of an attribute's name, and whether the name has escapes. */
struct sl_name_hash {
    uint8_t hash;
    bool is_escaped;
};

struct sl_name_hash sl_name_hash(struct sl_span name);

/* Attributes that are noted on the way through an image; those beyond the room are counted. */
#define SL_NOTED 64
struct sl_image_notes {
    const char *base;
    struct sl_image_entry *entries;
    uint8_t *hashes;
    size_t room, n;
};

static inline void sl_image_note(struct sl_image_notes *notes, const char *name, struct sl_name_hash hash,
                                 struct sl_value value)
{
    size_t i = notes->n++;
    if (i >= notes->room)
        return;
    notes->entries[i] = (struct sl_image_entry){
        .name = (uint32_t)(name - notes->base),
        .value = (uint32_t)(value.raw.ptr - notes->base),
        .len = value.raw.len < SL_ENTRY_LONG ? (unsigned)value.raw.len & SL_ENTRY_LONG : SL_ENTRY_LONG,
        .type = (unsigned)value.type & 15,
        .is_escaped = value.escaped,
        .is_name_escaped = hash.is_escaped,
    };
    notes->hashes[i] = hash.hash;
}

/* An index of n attributes, of which the notes, if they have them all, are copied. */
struct sl_image_index *sl_image_index_new(struct sl_arena *arena, const struct sl_image_notes *notes);

struct sl_record_chunk {
    struct sl_shared *shared;
    const struct sl_image_index *(*indexes)[3]; /* by slot and image; NULL until there is one */
    struct sl_record records[];
};

static inline struct sl_record_chunk *sl_record_chunk(const struct sl_record *r)
{
    const char *first = (const char *)(r - r->slot);
    return (struct sl_record_chunk *)(uintptr_t)(first - offsetof(struct sl_record_chunk, records));
}

static inline const struct sl_origin *sl_record_origin(const struct sl_record *r)
{
    return &sl_record_chunk(r)->shared->origins[r->origin];
}

/* Of the record's three images. */
const struct sl_image_index **sl_record_indexes(const struct sl_record *r);

/* The time that `text` states, in ns since the epoch, and in `step_ns` the granularity of what is written
 * there: whole seconds, or down to the last digit that is not zero. False: no time, or out of range. */
bool sl_record_read_time(struct sl_span text, enum sl_time_unit unit, int64_t *ns, int64_t *step_ns);

/* As sl_record_attribute, but makes no index: it reads the image's text up to the attribute. */
struct sl_value sl_record_scan(const struct sl_record *r, enum sl_image image, struct sl_span name);

/* The member of a map's text, which has its braces; SL_NONE when it has none. */
struct sl_value sl_map_scan(struct sl_span map, struct sl_span name);

/* False: the text holds neither the needle (not empty) nor a backslash, by which it might be spelled
 * otherwise. */
bool sl_record_may_hold(struct sl_span text, struct sl_span needle);

#endif
