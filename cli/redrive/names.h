/* A set of names that only grows: of a name its hash is kept. */
#ifndef SL_CLI_REDRIVE_NAMES_H
#define SL_CLI_REDRIVE_NAMES_H

#include "base/arena.h"

/* Zeroed: empty. */
struct sl_names {
    uint64_t *slots; /* 0: free */
    size_t n, room;  /* a power of two */
};

bool sl_names_has(const struct sl_names *names, struct sl_span name);

/* The set lives in `arena`, the same one each time. */
void sl_names_add(struct sl_names *names, struct sl_span name, struct sl_arena *arena);

#endif
