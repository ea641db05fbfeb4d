/* Archives: does an archive of changes hold every change?
 *
 * What format `record` keeps of each change shows it, item by item: ordered by sequence number, doubles
 * dropped by eventID, each OldImage is the NewImage before it, and after a REMOVE comes an INSERT. Where that
 * fails, a change is missing: a gap. An item whose first record is not an INSERT has a predecessor that the
 * archive does not hold: "unknown before". An object's name holds the number of its records and a digest of
 * their identifiers, which are compared with what is in it.
 *
 * It cannot see: items of which it holds nothing; what was lost after the last record of an item; changes
 * that are lost together and lead back to the same item.
 *
 * It may grow meanwhile: what came since the names were listed is read, too, and no gap is told before it.
 *
 * Memory is bounded: the changes' digests are sorted (data/sorter.h) in a folder of
 * their own below the temporary one, 120 bytes a record, twice at most. */
#ifndef SL_DATA_VERIFY_ARCHIVE_CHAIN_H
#define SL_DATA_VERIFY_ARCHIVE_CHAIN_H

#include "data/verify/archive/changes.h"

struct sl_chain_options {
    struct sl_object_port *port;
    struct sl_clock *clock;
    const char *route;
    const char *temp; /* folder */

    /* A JSON line, with its newline; borrowed. */
    void (*found)(void *arg, struct sl_span line);
    bool (*is_stopped)(void *stop_arg); /* asked between two objects */
    void *arg, *stop_arg;
};

/* SL_FATAL, SL_RETRY: the archive cannot be listed, or the temporary files cannot be written. */
enum sl_status sl_chain_verify(const struct sl_chain_options *options, struct sl_chain_counts *counts,
                               struct sl_error *error) SL_MUST_USE;

#endif
