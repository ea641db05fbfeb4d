/* The receipts of messages that were received and not removed: they are hidden from others, anew before each
 * time is over, and let go of at the end. They are in a file without a name, so that 100,000 of them cost no
 * memory. */
#ifndef SL_CLI_REDRIVE_HOLD_H
#define SL_CLI_REDRIVE_HOLD_H

#include "base/arena.h"
#include "base/clock.h"
#include "sinks/queues/inbox.h"

struct sl_hold;

/* Borrows all. `hidden_s`: the visibility timeout with which they were received. */
struct sl_hold *sl_hold_new(struct sl_inbox *inbox, struct sl_clock *clock, int64_t hidden_s);
void sl_hold_destroy(struct sl_hold *hold); /* NULL is fine */

/* Adds one that was received just now. Returns its place, for sl_hold_drop. SL_FATAL: the file cannot be
 * written. */
enum sl_status sl_hold_add(struct sl_hold *hold, const char *receipt, uint64_t *place,
                           struct sl_error *error) SL_MUST_USE;

/* It was removed from the queue. */
void sl_hold_drop(struct sl_hold *hold, uint64_t place);

size_t sl_hold_count(const struct sl_hold *hold);

/* Hides all of them for another while, if a third of it is over. SQS hides a message for twelve hours at most
 * from when it was received. */
void sl_hold_keep(struct sl_hold *hold);

/* A message is held for so long that it cannot be hidden much longer. */
bool sl_hold_is_old(const struct sl_hold *hold);

/* Everybody can receive them again. Returns how many could not be let go of. */
size_t sl_hold_release(struct sl_hold *hold);

#endif
