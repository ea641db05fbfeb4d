/* The index objects of an archive, below _sluice/index/ in the archive's own place: read for some items,
 * written, and put together when there are many small ones.
 *
 * Nothing here fails for whoever reads the archive. What cannot be read is an index that is not there; what
 * cannot be written is left out. `trouble` says so once. */
#ifndef SL_DATA_RECALL_SHELF_H
#define SL_DATA_RECALL_SHELF_H

#include "base/clock.h"
#include "data/recall/item_index.h"
#include "data/source/store.h"

#define SL_SHELF_FOLDER SL_STORE_OWN "index/"

struct sl_shelf;

struct sl_shelf_options {
    struct sl_object_port *reads;  /* borrowed */
    struct sl_object_port *writes; /* likewise; NULL: nothing is written */
    struct sl_clock *clock;
    const uint64_t *items; /* as sl_item_index_key gives them, in rising order; borrowed */
    size_t n;
};

/* Lists the index objects, and reads of each its runs and the items' entries. */
struct sl_shelf *sl_shelf_open(const struct sl_shelf_options *options);
void sl_shelf_close(struct sl_shelf *shelf); /* NULL is fine */

/* What an index knows of a run. */
struct sl_shelf_run {
    struct sl_item_index_run run;
    const uint64_t *hits; /* objects that may hold changes of the items: their numbers in the run + `base` */
    size_t n;
    uint64_t base;
};

/* False: no index has the run. */
bool sl_shelf_find(struct sl_shelf *shelf, const unsigned char seal[SL_ITEM_INDEX_SEAL_BYTES],
                   struct sl_shelf_run *out);

/* Writes what was built; afterwards it is empty. */
void sl_shelf_write(struct sl_shelf *shelf, struct sl_item_index_build *build);

/* When the whole archive was listed, and each of its runs was asked for: puts small index objects together,
 * and removes those of which no run is there any more. */
void sl_shelf_tidy(struct sl_shelf *shelf);

struct sl_shelf_counts {
    uint64_t read, read_bytes, written; /* index objects, or ranges of them */
    struct sl_error trouble;            /* SL_OK: none */
};
const struct sl_shelf_counts *sl_shelf_counts(const struct sl_shelf *shelf);

#endif
