/* What the files of a restore share. */
#ifndef SL_WORK_RESTORE_RESTORE_PRIVATE_H
#define SL_WORK_RESTORE_RESTORE_PRIVATE_H

#include "base/sha256.h"
#include "work/restore/restore.h"
#include "work/restore/sorter.h"

#include <stdio.h>

/* States of an item beside the digest of its image. */
#define SL_RESTORE_ABSENT  0u
#define SL_RESTORE_UNKNOWN 1u

/* Flags of an entry. */
#define SL_RESTORE_IS_BASE   1u
#define SL_RESTORE_NEAR_BASE 2u /* of the base's own second: the base may hold it already */

enum sl_restore_phase {
    SL_RESTORE_BASE,
    SL_RESTORE_ARCHIVE,
    SL_RESTORE_MERGE,
    SL_RESTORE_FOLD,
    SL_RESTORE_DONE
};

struct sl_restore {
    struct sl_restore_options options;
    struct sl_restore_report report;
    enum sl_restore_phase phase;
    struct sl_arena *arena; /* of one piece */
    struct sl_sha256 sha;
    struct sl_buffer text; /* where canonical texts and lines are made */
    struct sl_sorter *sorter;
    int64_t base_ms;             /* 0: there is no base */
    char table[256];             /* of all records; "" until one says it */
    FILE *out;                   /* the result, under another name */
    struct sl_sorter_entry last; /* the one before, of the same or another item */
    bool has_last, is_tied;      /* the last of the item is of two that differ, and have one order */
};

/* One record of the base, or one change of the archive, goes to the sorter. */
enum sl_status sl_restore_take(struct sl_restore *r, const struct sl_record *record, bool is_base,
                               struct sl_error *error) SL_MUST_USE;

/* Some sorted entries become lines of the result. */
enum sl_status sl_restore_fold(struct sl_restore *r, size_t entries, bool *is_done,
                               struct sl_error *error) SL_MUST_USE;

#endif
