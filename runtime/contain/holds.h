/* The file in which a process names the records that its handler holds, for the next process.
 *
 * It is opened before anything else, and its space on the disk is allocated; after that, naming records only
 * writes to memory. However the process ends, the system keeps what was written last. Each process has its
 * own file among those of its user: sluice-USER-held-0, -1 and so on. The file is locked while the process
 * lives, and the next process takes it over. */
#ifndef SL_RUNTIME_CONTAIN_HOLDS_H
#define SL_RUNTIME_CONTAIN_HOLDS_H

#include "base/error.h"
#include "streams/types.h"

/* A record's name: enough of its texts to tell records apart, padded with NUL. */
struct sl_hold_name {
    char identifier[56]; /* Kinesis has 56 digits */
    char event_id[40];   /* 32 hex digits, or a UUID */
};

/* A record from which a route's handler did not return in order. */
struct sl_hold_bad {
    char route[72];
    struct sl_hold_name name;
};

/* So many are kept, the last ones: for the next process, which may have died of another record or route. */
#define SL_HOLDS_BAD 64

/* The most records of a batch. Beyond it, only the first are named. */
#define SL_HOLDS_MAX 10000

struct sl_holds;

void sl_holds_name(const struct sl_record *record, struct sl_hold_name *out);

/* SL_FATAL when the file cannot be created (no folder, a full disk); `error` says why. `folder` is copied. */
enum sl_status sl_holds_open(const char *folder, struct sl_holds **out, struct sl_error *error) SL_MUST_USE;

/* What the previous process held when it ended. Returns how many names, 0 for none; `names` and `route` are
 * borrowed until the next sl_holds_enter. */
size_t sl_holds_left(const struct sl_holds *holds, const char **route, const struct sl_hold_name **names);

/* enter: a handler now holds the records. leave: it holds none any more. NULL is fine. */
void sl_holds_enter(struct sl_holds *holds, const char *route, const struct sl_record *const *records,
                    size_t n);
void sl_holds_leave(struct sl_holds *holds);

void sl_holds_bad_name(const char *route, const struct sl_record *record, struct sl_hold_bad *out);
/* Unless it is there already. NULL is fine. */
void sl_holds_add_bad(struct sl_holds *holds, const struct sl_hold_bad *bad);
/* What was added, by earlier processes too. Returns how many. */
size_t sl_holds_all_bad(const struct sl_holds *holds, const struct sl_hold_bad **all);

/* Removes the file, unless something is held. NULL is fine. */
void sl_holds_close(struct sl_holds *holds);

#endif
