/* What a replay parked: one line for each route that did, with where, and one for each reason. */
#ifndef SL_CLI_PARKED_H
#define SL_CLI_PARKED_H

#include "base/arena.h"
#include "live/sandbox/runner.h"

/* Parked records of one route, code and message. */
struct sl_parked_reason {
    const char *route, *code, *text;
    uint64_t n;
};

#define SL_PARKED_REASONS 64 /* told apart; the rest are counted together, as the last one */

/* Zeroed at first. */
struct sl_parked_reasons {
    struct sl_parked_reason list[SL_PARKED_REASONS];
    size_t n;
};

/* Adds what our bootstrap said of one invocation. Texts are copied into the arena. */
void sl_parked_add(struct sl_parked_reasons *reasons, const struct sl_notes *notes, const char *request_id,
                   struct sl_arena *arena);

/* In the arena; "" when nothing was parked, or when the configuration, which is read again, is not readable
 * any more. */
const char *sl_parked_text(const char *config, const struct sl_vars *vars, const struct sl_runner *runner,
                           const struct sl_parked_reasons *reasons, struct sl_arena *arena);

#endif
