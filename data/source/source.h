/* Sources: where items and changes come from, piece by piece, in bounded memory.
 *
 *   export   a full export of a table: a folder, or s3://bucket/.../AWSDynamoDB/ID/
 *   scan     a table, read by Scan with consistent reads, one segment or several at a time
 *   archive  what `archive` wrote in format `record`: a folder, or s3://bucket/prefix/
 *   files    files and standard input, in every shape that `replay` reads
 *
 * A piece is whole records, decoded, with the place after it. A terabyte needs the memory of a gigabyte: the
 * text of one piece (the caller's `max_bytes`) some three times, and SL_SOURCE_OWN_BYTES.
 *
 * An item has no change. Unless `as_received` is set, it becomes the record that would have inserted it:
 * INSERT, with Keys and NewImage, and a SequenceNumber of at most 15 digits that is made from its key. So it
 * is the same for an item whichever source it comes from, and it names the item in answers and in parked
 * records. It is the eventID, too; by that handlers know it for an item, which has the order 0: it never
 * replaces what came before, neither another source's item nor any change.
 *
 * Errors are one line: the file or table, the record and the byte where there is one, and what to do.
 * SL_RETRY: the source stands where it stood, and the same pull may be tried again. SL_REJECT: what is read
 * is wrong. SL_FATAL: it cannot be reached. One thread uses a source. */
#ifndef SL_DATA_SOURCE_SOURCE_H
#define SL_DATA_SOURCE_SOURCE_H

#include "sinks/target.h"
#include "streams/decode/batch.h"
#include "data/source/explain.h"

struct sl_source;

/* What a source holds between two pulls: what was read ahead, the decompressor, a record that is not whole
 * yet (SL_SOURCE_RECORD_BYTES). An export's list of files comes on top: about 200 bytes a file. */
#define SL_SOURCE_OWN_BYTES ((size_t)24 * 1024 * 1024)

/* One record's text: two images of 400 KB, each byte escaped to six at worst, and what is around them. */
#define SL_SOURCE_RECORD_BYTES ((size_t)8 * 1024 * 1024)

/* A text of `files` that is one document (an event, a GetRecords dump, an array) is held whole. */
#define SL_SOURCE_DOCUMENT_BYTES ((size_t)16 * 1024 * 1024)

/* A piece's text that is good for most: one invocation's event has at most as much. */
#define SL_SOURCE_PIECE_BYTES ((size_t)4 * 1024 * 1024)

/* A place's text is at most so long: a scan's segment has a key in it, an archive an object's name. A scan of
 * several segments has one key for each. */
#define SL_SOURCE_PLACE_BYTES ((size_t)8 * 1024)

/* Keys of two tables may be the same. False: the record is of another table than `table`, which is "" at
 * first and then the first name that a record says. */
#define SL_SOURCE_TABLE_BYTES 256
bool sl_source_same_table(const struct sl_record *r, char table[SL_SOURCE_TABLE_BYTES]);

/* Names of a table's key attributes: partition key, then sort key if there is one. */
struct sl_source_keys {
    struct sl_span names[2];
    char types[2]; /* 'S', 'N' or 'B'; '\0': not known */
    size_t n;      /* 0: not known; then an item is refused */
};

/* "PK,SK" or "PK"; the names are views of `text`. */
enum sl_status sl_source_keys_read(const char *text, struct sl_source_keys *out,
                                   struct sl_error *error) SL_MUST_USE;
/* The names that the record's Keys have, in their order there, in `arena`. */
void sl_source_keys_of(const struct sl_record *r, struct sl_arena *arena, struct sl_source_keys *out);

/* ---- opening ---- */

/* What all kinds share. All of it is borrowed until the source is closed. */
struct sl_source_options {
    struct sl_sinks *sinks; /* clock, log, AWS */
    struct sl_source_keys keys;
    struct sl_span ttl_attribute; /* absent: no removal is inferred */
    struct sl_span arn;           /* eventSourceARN of items; absent: what the source says itself, else
                                     SL_REPLAYED_ARN */
    struct sl_span place;         /* go on here: a piece's `place`; absent: from the beginning */
    bool as_received;             /* texts stay as they are: items have neither Keys nor an identifier */
};

/* The summary and the list of files are read and checked against their checksums (files that are missing
 * there are refused); the export has to be full, complete and in DYNAMODB_JSON; every data file has to be
 * there, once. Files are found below the export's own folder, whatever the bucket and the prefix were when it
 * was made, so copies work. Each file's md5 is taken while it is read and compared at its end, as is its
 * number of items. A key that comes twice is refused (data/source/source_export.c says how far back). */
struct sl_source_export {
    const char *place; /* of the export: the folder that holds manifest-summary.json */
    const char *table; /* name or ARN of the table that it has to be of; NULL: any */
    bool verify_first; /* all files are read once and checked before the first record; meanwhile pieces are
                          empty */
    /* A work item: this one file, by its key as sl_source_file has it. The manifests are not read. */
    struct sl_span file, md5; /* absent: all files */
    uint64_t items;
};

/* Segments `first` to `first` + `n` - 1 of `of`. Several are read at the same time. */
struct sl_source_scan {
    const char *target; /* dynamodb://table?region=, sqlite:file?table= */
    uint32_t first, n, of;
    double read_units; /* a second, by what the service says was consumed; 0: as fast as it goes */
};

struct sl_source_archive {
    const char *place; /* folder or s3://bucket/prefix/; objects named *.jsonl and *.jsonl.gz, in bytewise
                          order of their keys. None at all is refused */
    /* Which of them are read, when it is not all: as the object port's `list`. NULL: all. */
    void (*list)(void *arg, struct sl_object_port *port, const struct sl_object_list *list,
                 struct sl_object_page *page, const struct sl_call *call);
    void *arg;
};

/* Whether `archive` gave an object this name. Manifests, exports and what else lies about have others. */
bool sl_source_is_archived(struct sl_span key);

/* "-" is standard input, once. */
struct sl_source_files {
    const char *const *names;
    /* Each NULL, or one for each name, which is for messages then: a text; an open file that is read from its
     * beginning. An absent text and -1: the name is a file's. */
    const struct sl_span *texts;
    const int *open_files;
    size_t n;              /* 1 or more */
    size_t document_bytes; /* a text that is one document has so many at most; 0: SL_SOURCE_DOCUMENT_BYTES */
    bool reads_ahead;      /* a thread of its own reads and unpacks (data/source/ahead.h) */
};

/* Each reads what has to be known before the first record; `call` bounds that in time. On failure nothing is
 * left open. SL_REJECT also when options.place belongs to another source. */
enum sl_status sl_source_open_export(const struct sl_source_options *options,
                                     const struct sl_source_export *what, const struct sl_call *call,
                                     struct sl_source **out, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_source_open_scan(const struct sl_source_options *options, const struct sl_source_scan *what,
                                   const struct sl_call *call, struct sl_source **out,
                                   struct sl_error *error) SL_MUST_USE;
enum sl_status sl_source_open_archive(const struct sl_source_options *options,
                                      const struct sl_source_archive *what, const struct sl_call *call,
                                      struct sl_source **out, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_source_open_files(const struct sl_source_options *options,
                                    const struct sl_source_files *what, const struct sl_call *call,
                                    struct sl_source **out, struct sl_error *error) SL_MUST_USE;
void sl_source_close(struct sl_source *source); /* NULL is fine */

/* ---- what is known before reading; borrowed until the source is closed ---- */

struct sl_source_facts {
    const char *name;         /* for messages: the place, table or file */
    struct sl_span table_arn; /* absent: not known */
    int64_t time_ms; /* T, since 1970: the table is seen as it was then, or later; 0: not known. A scan that
                        goes on has the time at which it first began */
    uint64_t items, bytes; /* as announced; 0: not known. Bytes as they are stored */
    size_t n_files;        /* of an export */
    bool is_items;         /* every record is an item, not a change */
};

const struct sl_source_facts *sl_source_facts(const struct sl_source *source);

/* An export's files, i < n_files, in the order in which they are read: for a plan of work items. */
struct sl_source_file {
    struct sl_span key; /* below the export's folder: "data/x.json.gz" */
    struct sl_span md5; /* base64, as the manifest has it */
    uint64_t items, bytes;
};

struct sl_source_file sl_source_file(const struct sl_source *source, size_t i);

/* ---- reading ---- */

struct sl_source_piece {
    struct sl_batch batch;
    struct sl_span place;     /* JSON object: the source goes on exactly after this piece */
    bool is_last;             /* nothing comes after it */
    size_t file;              /* the number of the file, or of the archive's object, that it is from */
    struct sl_text_from from; /* where in that file it begins */
    uint64_t stored_bytes;    /* read for it: compressed where the source is */
    double units;             /* read capacity that it consumed; 0: not said */
};

/* Reads the next piece: records of about `max_bytes` of text (one record, however long, is taken whole). Its
 * batch and place are in call->arena, so the caller resets that between two pieces. A piece may be empty
 * (batch.n is 0) and not the last one: a page of a scan without items, a file that is checked, a deadline
 * that comes first. After the last piece every further one is empty and the last. */
enum sl_status sl_source_pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                              struct sl_source_piece *out, struct sl_error *error) SL_MUST_USE;

/* After SL_REJECT: goes on behind what is wrong, which counts as one record. That is a record which is JSON,
 * or else a line, with the lines after it that are indented or begin with a closing bracket. `*goes_on` is
 * false where that cannot be told, in a document that was partly read, in bad gzip, in other kinds of
 * sources: no more can be read there. For `files`. */
enum sl_status sl_source_skip_bad(struct sl_source *source, const struct sl_call *call, bool *goes_on,
                                  struct sl_error *error) SL_MUST_USE;

/* ---- rows that may be no items ---- */

/* Which of the names (at most 32; unescaped) are top-level attributes of the record's NewImage, or OldImage
 * when it has none: bit i for names[i]. It reads the text once, and only if one of the names may be in it. */
uint32_t sl_source_marks(const struct sl_record *r, const struct sl_span *names, size_t n);

#endif
