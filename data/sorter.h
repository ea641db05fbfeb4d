/* Sorts entries that do not fit into memory: chunks of them are sorted and written to files of a folder
 * (runs), and the runs are merged.
 *
 * An entry is one state of one item: `key` says of which, `order` which comes later. Of the entries of a key
 * only the last one's body is of use, so the others' bodies are dropped on the way; the entries themselves
 * all come out, in order. Equal ones come out beside each other.
 *
 * Memory: SL_SORTER_CHUNK_BYTES while entries are added, afterwards SL_SORTER_FAN buffers and one body. The
 * folder holds what was added, twice at most. Its files are of no use to another process. */
#ifndef SL_DATA_SORTER_H
#define SL_DATA_SORTER_H

#include "base/error.h"
#include "base/span.h"

#define SL_SORTER_CHUNK_BYTES ((size_t)16 * 1024 * 1024)
#define SL_SORTER_FAN         32 /* runs that are merged at a time */

#define SL_SORTER_KEY_BYTES   32
#define SL_SORTER_ORDER_BYTES 48 /* digits of a sequence number: 40 at most */

struct sl_sorter_entry {
    unsigned char key[SL_SORTER_KEY_BYTES];
    char order[SL_SORTER_ORDER_BYTES]; /* decimal digits without leading zeros */
    uint32_t order_bytes;              /* 0: comes first */
    uint32_t body_bytes;
    uint64_t before, after; /* the caller's */
    uint64_t flags;         /* likewise */
};

struct sl_sorter;

/* `folder` exists; borrowed until the close. `chunk_bytes` 0: SL_SORTER_CHUNK_BYTES. */
struct sl_sorter *sl_sorter_open(const char *folder, size_t chunk_bytes);
/* Removes the files. NULL is fine. */
void sl_sorter_close(struct sl_sorter *sorter);

/* entry->body_bytes is set from `body`, which is copied. SL_REJECT: one entry is larger than a chunk.
 * SL_FATAL: the disk. */
enum sl_status sl_sorter_add(struct sl_sorter *sorter, const struct sl_sorter_entry *entry,
                             struct sl_span body, struct sl_error *error) SL_MUST_USE;

/* After the last entry: merges until one merge is left, about `entries` of them in this call. */
enum sl_status sl_sorter_merge(struct sl_sorter *sorter, size_t entries, bool *is_ready,
                               struct sl_error *error) SL_MUST_USE;

/* The next entry, once ready. `body` is borrowed until the next call; absent when another entry of this key
 * follows. `*has` is false after the last one. */
enum sl_status sl_sorter_next(struct sl_sorter *sorter, struct sl_sorter_entry *entry, struct sl_span *body,
                              bool *has, struct sl_error *error) SL_MUST_USE;

/* Whether both are the same key. */
bool sl_sorter_same_key(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b);

#endif
