/* Notices a chain of tokens that goes round: pages, each of which names the next one. A service that names A,
 * B and A again would be followed for ever.
 *
 * Brent's algorithm: the memory of one token, and a cycle of n tokens is noticed within 3n of them after the
 * first token of it. A chain without a cycle is never stopped. */
#ifndef SL_BASE_CYCLE_H
#define SL_BASE_CYCLE_H

#include "base/types.h"

/* Zeroed: at the beginning of a chain. */
struct sl_cycle {
    char *seen; /* its own */
    size_t len;
    uint64_t steps, limit;
};

/* Takes the chain's next token. True: the chain goes round. */
bool sl_cycle_closes(struct sl_cycle *cycle, struct sl_span token);

/* Frees what it holds, and is at the beginning of a chain again. */
void sl_cycle_clean_up(struct sl_cycle *cycle);

#endif
