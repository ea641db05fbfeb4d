/* The file in which a process says what records a handler of its holds, for the process after it.
 *
 * It is opened before anything else, with its room on the disk taken; saying is then a matter of memory
 * alone. When the process ends in whatever way, the system keeps what was said last. Each process has a file
 * of its own among those of its user: sluice-USER-held-0, -1 and so on, locked as long as it lives, and taken
 * over by the next. */
#ifndef SL_RUNTIME_HOLDS_H
#define SL_RUNTIME_HOLDS_H

#include "base/error.h"
#include "streams/types.h"

/* A record's name: as much of its texts as tells records apart, padded with NUL. */
struct sl_hold_name {
    char identifier[56]; /* Kinesis has 56 digits */
    char event_id[40];   /* 32 hex digits, or a UUID */
};

/* A batch's most. Of more, the first are named. */
#define SL_HOLDS_MAX 10000

struct sl_holds;

void sl_hold_name(const struct sl_record *record, struct sl_hold_name *out);

/* What cannot be had (no folder, a full disk) is said in `error`: SL_FATAL. `folder` is copied. */
enum sl_status sl_holds_open(const char *folder, struct sl_holds **out, struct sl_error *error) SL_MUST_USE;

/* What the process before this one held when it ended: `names` and `route` borrowed until the next
 * sl_holds_enter. 0: it held nothing. */
size_t sl_holds_left(const struct sl_holds *holds, const char **route, const struct sl_hold_name **names);

/* A handler holds the records; it holds none any more. NULL is fine. */
void sl_holds_enter(struct sl_holds *holds, const char *route, const struct sl_record *const *records,
                    size_t n);
void sl_holds_leave(struct sl_holds *holds);

/* Removes the file, unless something is held. NULL is fine. */
void sl_holds_close(struct sl_holds *holds);

#endif
