/* Point-in-time restore, its first half: an archive (and the export that it continues) is folded to each
 * item's newest state before a moment, as a file of lines. Its second half is a backfill of that file
 * through a route without guards.
 *
 * What it promises:
 *   - Each item has the state of its newest change before `until_ms`; else that of the base; else it is not
 *     in the file. Changes count by their order, and their time says whether they are before the moment.
 *   - Nothing is written to a target before all changes were looked at: what refuses the archive refuses it
 *     then.
 *   - Memory does not grow with the archive (data/sorter.h). The folder holds about the archive's
 *     records before the moment, twice, uncompressed.
 *
 * How gaps are known. Each change with both images says from which state it came. The change before it left
 * another one: then changes are missing between them, because the archive's route had a filter, or because
 * objects are gone. With a base, an item's first change is held against the base. What cannot be known
 * without old images, or when all changes of an item are missing, is not. */
#ifndef SL_DATA_RESTORE_RESTORE_H
#define SL_DATA_RESTORE_RESTORE_H

#include "data/source/source.h"

struct sl_restore_options {
    /* Borrowed until the close. */
    struct sl_source *archive;
    struct sl_source *base; /* a full export; NULL: none, and only items that changed are restored */
    const char *folder;     /* exists; holds the temporary files and the result */
    int64_t until_ms;   /* since 1970, whole seconds; changes of that second and later ones do not count */
    int64_t since_ms;   /* the archive holds every change since then; 0: its own first change says so */
    bool any_gap;       /* missing changes and ties are counted, and refuse nothing */
    size_t piece_bytes; /* of text; 0: 1 MB */
    size_t chunk_bytes; /* that are sorted in memory; 0: SL_SORTER_CHUNK_BYTES */
};

struct sl_restore_report {
    uint64_t base_items;
    uint64_t changes;            /* that the archive holds */
    uint64_t after;              /* of them at or after the moment */
    uint64_t before;             /* older than the base: it holds them */
    uint64_t doubles;            /* archived more than once */
    uint64_t without_old_images; /* that do not say from which state they came */
    uint64_t gaps;               /* places where changes are missing */
    uint64_t ties;             /* items of which two changes have one time, and nothing says which was last */
    uint64_t items, removed;   /* the result: items in the file, and items whose newest change removed them */
    int64_t first_ms, last_ms; /* of all changes of the archive; 0: none */
};

struct sl_restore;

/* SL_REJECT: the base is newer than the moment, or does not say its time; the moment is not a whole second.
 */
enum sl_status sl_restore_open(const struct sl_restore_options *options, struct sl_restore **out,
                               struct sl_error *error) SL_MUST_USE;
void sl_restore_close(struct sl_restore *r); /* NULL is fine; the result stays */

/* A part of the work: one piece of a source, or some thousand entries.
 *   SL_OK      go on, or the result is there (`*is_done`)
 *   SL_RETRY   a source failed for now: the same step again
 *   SL_REJECT  the archive is refused: it begins after the base, or changes are missing, or a change has no
 *              new image, no time or no sequence number, or there is more than one table
 *   SL_FATAL   nothing can succeed here */
enum sl_status sl_restore_step(struct sl_restore *r, int64_t deadline_ms, bool *is_done,
                               struct sl_error *error) SL_MUST_USE;

const struct sl_restore_report *sl_restore_report(const struct sl_restore *r);

/* The result's name in the folder. It is there whole or not at all: each line is an item, in the shape of an
 * incremental export. */
#define SL_RESTORE_RESULT "items.jsonl"

#endif
