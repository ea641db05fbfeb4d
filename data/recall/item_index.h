/* An index of an archive: which of its objects hold changes of an item. It saves reading and is never needed:
 * what it does not know is read, and whoever reads it writes down what it was missing.
 *
 * The archive's objects, in the bytewise order of their keys, are taken in runs. A run is part of one folder
 * (the keys up to their last '/'), so one hour's objects are in runs of their own with the default keys of
 * `archive`. In a folder a run ends where the object's name says so, one name of 256 on average: an object
 * that comes later changes its own run alone. A run's seal is the digest of its objects' keys, sizes and
 * etags: when one of them is replaced, added or gone, no index knows the run any more.
 *
 * One index object covers some runs. Its name is ENTRIES-RUNS-DIGEST.v1, its content:
 *
 *   ENTRIES  8 bytes each, little-endian, in rising order: the first 40 bits of the SHA-256 of an item's
 *            canonical key, and 24 bits with the number of an object, counted over the index's runs
 *   RUNS     40 bytes each, in the order in which the objects are counted: the seal (16 bytes), the number of
 *            its objects (8), the times of its first and last change (8 and 8, seconds since 1970, 0: none)
 *
 * Digests are spread evenly, so an item is found by one ranged read about where it has to be. Two items with
 * the same 40 bits cost an object that is read for nothing. DIGEST are the first 16 hexadecimal digits of the
 * content's SHA-256: the same content has the same name. */
#ifndef SL_DATA_RECALL_ITEM_INDEX_H
#define SL_DATA_RECALL_ITEM_INDEX_H

#include "base/buffer.h"
#include "base/sha256.h"

#define SL_ITEM_INDEX_ENTRY_BYTES 8
#define SL_ITEM_INDEX_RUN_BYTES   40
#define SL_ITEM_INDEX_SEAL_BYTES  16
#define SL_ITEM_INDEX_NAME_BYTES  96

/* An index object has so many entries (64 MB) and one run more: it is sorted in memory. */
#define SL_ITEM_INDEX_ENTRIES ((size_t)8 * 1024 * 1024)
/* What 24 bits count. */
#define SL_ITEM_INDEX_OBJECTS ((uint64_t)1 << 24)

/* An item's entries are those from this one on, and below this one + SL_ITEM_INDEX_OBJECTS. */
uint64_t sl_item_index_key(const unsigned char digest[SL_SHA256_BYTES]);

/* For qsort: entries, and numbers like them, in rising order. */
int sl_item_index_order(const void *a, const void *b);

struct sl_item_index_run {
    unsigned char seal[SL_ITEM_INDEX_SEAL_BYTES];
    uint64_t objects;
    int64_t first_s, last_s; /* 0: its objects hold no changes */
};

/* ---- runs ---- */

/* A seal that is being made. */
struct sl_item_index_seal {
    struct sl_sha256 *sha;
    unsigned char digest[SL_SHA256_BYTES]; /* zeroed at a run's beginning; the seal is its beginning */
};

void sl_item_index_seal_add(struct sl_item_index_seal *seal, struct sl_span key, uint64_t bytes,
                            struct sl_span etag);

/* Whether a run ends between the two objects, which follow each other. */
bool sl_item_index_parts(struct sl_span key, struct sl_span next);

/* ---- writing ---- */

/* An index that grows run by run. Zeroed at first. */
struct sl_item_index_build {
    uint64_t *entries;
    struct sl_item_index_run *runs;
    size_t n, room, n_runs, runs_room;
    size_t ended; /* entries of the runs that have ended */
    uint64_t objects;
};

/* `object`: its number in the run that is being added. */
void sl_item_index_add(struct sl_item_index_build *build, uint64_t item, uint64_t object);
void sl_item_index_end_run(struct sl_item_index_build *build, const struct sl_item_index_run *run);
void sl_item_index_drop_run(struct sl_item_index_build *build);
/* Whether it is to be written before a run of so many objects is begun. */
bool sl_item_index_is_full(const struct sl_item_index_build *build, uint64_t objects);
/* Its content and its name; afterwards it is empty. */
void sl_item_index_make(struct sl_item_index_build *build, struct sl_sha256 *sha, struct sl_buffer *content,
                        char name[SL_ITEM_INDEX_NAME_BYTES]);
void sl_item_index_clean_up(struct sl_item_index_build *build);

/* ---- reading ---- */

/* False: it is not the name of an index object of so many bytes. */
bool sl_item_index_read_name(struct sl_span name, uint64_t bytes, uint64_t *entries, uint64_t *runs);
uint64_t sl_item_index_entry(const char *at);
struct sl_item_index_run sl_item_index_run(const char *at);

#endif
