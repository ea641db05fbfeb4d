/* Walks the changes of an archive, item by item, and tells where one is missing. */
#ifndef SL_DATA_VERIFY_ARCHIVE_WALK_H
#define SL_DATA_VERIFY_ARCHIVE_WALK_H

#include "data/verify/archive/changes.h"
#include "streams/types.h"

/* A sorter in a folder of its own below `temp`. Both are to be closed, also after a failure: SL_FATAL. */
enum sl_status sl_chain_open(const char *temp, char **folder, struct sl_sorter **sorter,
                             struct sl_error *error) SL_MUST_USE;
void sl_chain_close(char *folder, struct sl_sorter *sorter);

struct sl_chain_walk {
    struct sl_sorter *sorter; /* all changes are in it */
    struct sl_chain_counts *counts;
    bool (*is_stopped)(void *stop_arg);
    void *stop_arg;

    /* Between these two a change is missing. */
    void (*gap)(void *arg, const struct sl_sorter_entry *before, const struct sl_sorter_entry *after,
                const char *why);
    void *arg;
};

/* Two changes between which one is missing, and where they are. */
struct sl_chain_hole {
    struct sl_sorter_entry before, after;
    struct sl_span before_object, after_object; /* absent: not known */
    const char *why;
};

/* What is found, with its newline, in place of what the buffer holds. */
void sl_chain_gap_line(struct sl_buffer *line, const char *route, const struct sl_chain_hole *hole);

/* Why a change is missing between two changes of an item that follow each other; NULL: none is. `is_same`:
 * the second one's OldImage is the first one's NewImage. */
const char *sl_chain_gap(enum sl_event first, enum sl_event second, bool is_same);

/* Sorts and walks. No gap is told before a change that came late (SL_CHANGE_LATE): the one that is missing
 * may have come later still. SL_FATAL: the disk. */
enum sl_status sl_chain_walk(const struct sl_chain_walk *walk, struct sl_error *error) SL_MUST_USE;

#endif
