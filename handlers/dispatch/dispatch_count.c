/* What became of each record that a route took, counted once. Only here: a record may change its state many
 * times before the end. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"

static void count_entry(struct sl_route_stats *stats, const struct sl_entry *entry)
{
    switch (entry->state) {
    case SL_ENTRY_APPLIED:
        *(entry->is_remembered ? &stats->skipped : &stats->applied) += 1;
        break;
    case SL_ENTRY_PARKED:
        stats->parked++;
        break;
    case SL_ENTRY_FAILED:
        stats->failed++;
        break;
    case SL_ENTRY_REJECTED: /* counted when it was parked, or was not */
    case SL_ENTRY_ASIDE:    /* likewise */
        break;
    default:
        stats->skipped++;
    }
}

void sl_count_run(const struct sl_run *run)
{
    struct sl_route_stats *stats = &run->route->stats;
    stats->matched += run->n;
    sl_dispatch_links(run);
    for (size_t i = 0; i < run->n; i++) {
        const struct sl_entry *entry = &run->entries[i];
        count_entry(stats, entry);
        stats->bytes += sl_record_text(sl_batch_record(run->d->batch, entry->index), SL_FIELD_RAW).len;
    }
}

void sl_count_parked(const struct sl_dispatch *d)
{
    for (size_t i = 0; i < d->n_parked; i++) {
        const struct sl_parked *parked = &d->parked[i];
        struct sl_route_stats *stats = &parked->route->stats;
        *(parked->is_durable ? &stats->parked : parked->is_tried ? &stats->failed : &stats->skipped) += 1;
    }
    for (size_t i = 0; i < d->n_asides; i++) {
        const struct sl_parked *aside = &d->asides[i];
        struct sl_route_stats *stats = &aside->route->stats;
        *(aside->is_durable ? &stats->set_aside : aside->is_tried ? &stats->failed : &stats->skipped) += 1;
    }
}
