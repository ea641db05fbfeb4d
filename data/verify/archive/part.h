/* Changes of an archive as an object: what many machines read, and others walk.
 *
 * Behind the head (data/verify/part.h) it has the changes, as they are in memory, in the order of their
 * shares, and then the names of the objects that they are in, one a line. An item's changes are in one share.
 * (All workers of a function have one architecture.) */
#ifndef SL_DATA_VERIFY_ARCHIVE_PART_H
#define SL_DATA_VERIFY_ARCHIVE_PART_H

#include "data/verify/archive/changes.h"
#include "data/verify/part.h"

/* The names of a part: so many bytes at most. */
#define SL_CHANGES_NAMES_BYTES ((size_t)32 * 1024 * 1024)

/* Collects the changes of a turn. */
struct sl_changes_part {
    struct sl_sorter_entry *list;
    size_t n, room;
    struct sl_buffer names;
};

void sl_changes_part_init(struct sl_changes_part *part);
void sl_changes_part_clean_up(struct sl_changes_part *part); /* zeroed memory is fine */

/* An object that is read next: the flags of its changes. */
uint64_t sl_changes_part_object(struct sl_changes_part *part, struct sl_span key);
void sl_changes_part_add(struct sl_changes_part *part, const struct sl_sorter_entry *change);

/* `before` is the part of the turn before, absent for the first. SL_FATAL: see sl_part_end. */
enum sl_status sl_changes_part_write(const struct sl_changes_part *part, struct sl_span before,
                                     struct sl_arena *arena, struct sl_buffer *out,
                                     struct sl_error *error) SL_MUST_USE;

/* The bytes of some shares of part number `number`, below 2^28, into the sorter. SL_REJECT, code "BadPart".
 */
enum sl_status sl_changes_part_take(struct sl_span bytes, uint64_t number, struct sl_sorter *sorter,
                                    struct sl_error *error) SL_MUST_USE;

/* Of a change that was taken: its part's number, and at which byte of the names its object's is. */
uint64_t sl_changes_part_number(const struct sl_sorter_entry *change);
uint64_t sl_changes_part_name_at(const struct sl_sorter_entry *change);

#endif
