/* Where a replay parked records: one line for each route that did. */
#ifndef SL_REPLAY_PARKED_H
#define SL_REPLAY_PARKED_H

#include "base/arena.h"
#include "replay/sandbox/runner.h"

/* In the arena; "" when nothing was parked, or when the configuration, which is read again, is not readable
 * any more. */
const char *sl_parked_text(const char *config, const struct sl_runner *runner, struct sl_arena *arena);

#endif
