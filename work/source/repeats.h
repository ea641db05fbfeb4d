/* Notices a key that comes twice, in bounded memory. An export has each key once; one that comes twice says
 * that the caller has named too few key attributes, or that a file was copied. */
#ifndef SL_WORK_SOURCE_REPEATS_H
#define SL_WORK_SOURCE_REPEATS_H

#include "streams/decode/batch.h"

/* Zeroed memory is one that has seen nothing. */
struct sl_repeats {
    struct sl_repeats_slot *slots;
};

/* Digests of so many keys are held; a later key takes the slot of an earlier one. So of two equal keys with
 * n others between them the second one is noticed with the probability exp(-n / SL_REPEATS_SLOTS). Keys that
 * differ are never taken for equal, but for a collision of 128 bits. */
#define SL_REPEATS_SLOTS ((size_t)1 << 18)

/* The first record of the batch whose item came before, in this batch or an earlier one; batch->n: none. */
size_t sl_repeats_find(struct sl_repeats *seen, const struct sl_batch *batch, struct sl_arena *arena);
void sl_repeats_clean_up(struct sl_repeats *seen);

#endif
