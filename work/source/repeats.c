/* Digests of the keys that came of late: a table with one slot for each value of a hash. */
#include "work/source/repeats.h"

#include "base/error.h"
#include "base/hash.h"
#include "streams/record.h"

#include <stdlib.h>

struct sl_repeats_slot {
    uint64_t first, second; /* both 0: empty */
};

/* Another hash than sl_hash, so that the two together have 128 bits: Knuth's multiplier of MMIX. */
static uint64_t second_hash(struct sl_span text)
{
    uint64_t hash = text.len;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash + (unsigned char)text.ptr[i] + 1) * UINT64_C(6364136223846793005) + (hash >> 29);
    return hash | 1;
}

static bool came_before(struct sl_repeats *seen, struct sl_span key)
{
    const struct sl_repeats_slot now = {sl_hash(key), second_hash(key)};
    struct sl_repeats_slot *slot = &seen->slots[(now.first ^ now.first >> 32) % SL_REPEATS_SLOTS];
    bool is_same = slot->first == now.first && slot->second == now.second;
    *slot = now;
    return is_same;
}

size_t sl_repeats_find(struct sl_repeats *seen, const struct sl_batch *batch, struct sl_arena *arena)
{
    if (!seen->slots && !(seen->slots = calloc(SL_REPEATS_SLOTS, sizeof(*seen->slots))))
        sl_die("out of memory: keys of an export");
    for (size_t i = 0; i < batch->n; i++)
        if (came_before(seen, sl_record_item_key(sl_batch_record(batch, i), arena)))
            return i;
    return batch->n;
}

void sl_repeats_clean_up(struct sl_repeats *seen)
{
    free(seen->slots);
    seen->slots = NULL;
}
