/* What an archive holds of some items: the records of every object that may hold changes of them, found by
 * the archive's index (data/recall/item_index.h) where there is one. Whatever the index does not know is read
 * whole, and written down for the next time: the first recall of an archive reads all of it.
 *
 * Memory: the objects of one run and one page of a listing, an index that grows (SL_ITEM_INDEX_ENTRIES), and
 * what a source needs. */
#ifndef SL_DATA_RECALL_RECALL_H
#define SL_DATA_RECALL_RECALL_H

#include "base/sha256.h"
#include "data/source/source.h"

struct sl_recall;

#define SL_RECALL_NONE SIZE_MAX

struct sl_recall_options {
    struct sl_sinks *sinks;
    const char *place; /* of the archive, as struct sl_source_archive has it */
    struct sl_span ttl_attribute;
    /* The items, by their keys' digests (sl_recall_digest); different ones; borrowed. */
    const unsigned char (*items)[SL_SHA256_BYTES];
    size_t n;
    int64_t since_s, until_s; /* objects may be left out whose changes are all before `since` or after
                                 `until`; 0: none are */
    bool reads_all;           /* no index is read or written: every object is read */
    bool writes_no_index;
};

/* Of an item's canonical key: sl_record_item_key(). */
void sl_recall_digest(struct sl_span key, unsigned char out[SL_SHA256_BYTES]);

/* SL_REJECT, SL_FATAL: the place cannot be opened. */
enum sl_status sl_recall_open(const struct sl_recall_options *options, struct sl_recall **out,
                              struct sl_error *error) SL_MUST_USE;
void sl_recall_close(struct sl_recall *r); /* NULL is fine */

struct sl_recall_piece {
    struct sl_source_piece piece;  /* of one object; its `place` is of no use */
    struct sl_object_entry object; /* borrowed until the next pull */
    size_t *item; /* of each record: which of the items it is of; SL_RECALL_NONE: of another one */
    bool is_late; /* the object came while the archive was listed: others may have come where the listing was
                     past */
};

/* The next records: see sl_source_pull. SL_REJECT, "NoArchive": the place holds no object of an archive. */
enum sl_status sl_recall_pull(struct sl_recall *r, size_t max_bytes, const struct sl_call *call,
                              struct sl_recall_piece *out, struct sl_error *error) SL_MUST_USE;

struct sl_recall_report {
    uint64_t objects, read; /* that the archive has; of them, those that were read */
    uint64_t read_bytes;    /* as stored */
    uint64_t index_reads, index_bytes, index_written;
    struct sl_error trouble; /* of the index; SL_OK: none */
};
struct sl_recall_report sl_recall_report(const struct sl_recall *r);

#endif
