/* What a route's totals are, for those that read them beside it: see struct sl_totals_facts. */
#include "handlers/builtin/aggregate/aggregate_private.h"

#include "base/array.h"
#include "handlers/builtin.h"

void aggregate_read_totals(const void *self, struct sl_arena *arena, struct sl_totals_facts *out)
{
    const struct aggregate *a = self;
    struct sl_span *sums = NULL, *running = NULL;
    size_t sums_room = 0, running_room = 0;
    *out = (struct sl_totals_facts){.has_ledger = a->has_ledger && !a->per_event,
                                    .counts_events = a->per_event,
                                    .shards = a->shards,
                                    .epoch = a->epoch,
                                    .ledger = a->name,
                                    .ledger_table = a->ledger_table,
                                    .n_ledger_keys = a->n_ledger_keys,
                                    .n_keys = a->n_key_names};
    out->is_exact = out->has_ledger && a->expired == SL_EXPIRED_APPLY;
    for (size_t k = 0; k < a->n_key_names; k++)
        out->keys[k] = a->key_names[(a->shard_key + k) % a->n_key_names];
    for (size_t k = 0; k < a->n_ledger_keys; k++)
        out->ledger_keys[k] = a->ledger_table.ptr ? a->ledger_keys[k] : out->keys[k];
    for (size_t i = 0; i < a->n_counters; i++) {
        const struct aggregate_counter *c = &a->counters[i];
        for (size_t k = 0; k < c->n_amounts; k++)
            if (c->amounts[k].verb == SL_ADD)
                SL_PUSH_IN(arena, sums, out->n_sums, sums_room) = c->amounts[k].name;
            else
                SL_PUSH_IN(arena, running, out->n_running, running_room) = c->amounts[k].name;
        for (size_t k = 0; k < c->n_distinct; k++)
            SL_PUSH_IN(arena, sums, out->n_sums, sums_room) = c->distinct[k].name;
    }
    out->sums = sums;
    out->running = running;
}
