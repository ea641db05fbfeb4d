/* The records of a case: from items before and after a change, from records as they are, and from files.
 *
 * An entry of "given" is a record of any shape that Sluice reads, or
 *   {"before": ITEM, "after": ITEM, "expired": true, "at": TIME}
 * An item may be shorthand (streams/shorthand.h). Without "before" it is an INSERT, without "after" a
 * REMOVE, with both a MODIFY; "expired" makes the REMOVE one by TTL. TIME is RFC 3339 or seconds since 1970.
 */
#ifndef SL_CLI_TEST_GIVEN_H
#define SL_CLI_TEST_GIVEN_H

#include "base/arena.h"
#include "base/buffer.h"

struct sl_given {
    struct sl_span entries; /* the JSON array; absent: none */
    const char *file;       /* records; NULL: none */
    const char *keys;       /* "PK,SK"; NULL: PK and SK, pk and sk, or id, whichever the items have */
    const char *table;      /* its name; NULL: "source-table" */
    struct sl_span view;    /* absent: NEW_AND_OLD_IMAGES */
};

/* More would not be one batch of Lambda's. */
#define SL_GIVEN_RECORDS 10000

/* Writes the event that Lambda would deliver with all of them, {"Records":[...]}. */
enum sl_status sl_given_event(const struct sl_given *given, struct sl_arena *arena, struct sl_buffer *out,
                              struct sl_error *error) SL_MUST_USE;

#endif
