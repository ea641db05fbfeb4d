/* What becomes of one record of a run: applied, rejected, failed or to be tried again; and when rejections
 * are too many to be poison. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"

void sl_run_stop(struct sl_run *run, const struct sl_why *why)
{
    run->is_stopped = true;
    run->stop = why;
}

void sl_run_fail(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    if (!sl_aside_takes(run, why)) {
        sl_run_block(run, entry, why);
        return;
    }
    entry->state = SL_ENTRY_ASIDE;
    entry->why = why;
    if (!run->is_stopped)
        sl_run_stop(run, why);
}

void sl_run_block(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    entry->state = SL_ENTRY_FAILED;
    entry->why = why;
    sl_dispatch_fail(run->d, entry->index, run->route, why);
    if (run->is_stopped)
        return;
    if (why->status == SL_FATAL || sl_route_is_once_only(run->route))
        sl_run_stop(run, why);
    else
        sl_held_add(&run->held, run->d, entry->index);
}

void sl_run_stop_for_time(struct sl_run *run)
{
    if (!run->last_retry)
        run->last_retry =
            sl_dispatch_why(run->d, SL_RETRY, "DeadlineReached",
                            "this route's share of the time ended before these records were tried");
    sl_run_stop(run, run->last_retry);
}

enum sl_event sl_run_event(const struct sl_run *run, const struct sl_entry *entry)
{
    return sl_record_event(sl_batch_record(run->d->batch, entry->index));
}

/* The rejections of that code so far, this one included. */
static const struct sl_tally *tally(struct sl_run *run, const struct sl_entry *entry,
                                    const struct sl_why *why)
{
    size_t i = 0;
    while (i < SL_RATE_CODES - 1 && run->tallies[i].last &&
           strcmp(run->tallies[i].last->code, why->code) != 0)
        i++;
    run->tallies[i].last = why;
    run->tallies[i].rejected.n[sl_run_event(run, entry)]++;
    return &run->tallies[i];
}

/* Nothing of that code is parked. (What a once-only route rejected earlier already is.) */
static void give_up(struct sl_run *run, const struct sl_tally *tally)
{
    const char *code = tally->last->code;
    const struct sl_why *fatal = sl_rate_refuse(run, tally);
    sl_run_stop(run, fatal);
    for (size_t i = 0; i < run->n; i++) {
        struct sl_entry *entry = &run->entries[i];
        bool is_open = entry->state == SL_ENTRY_FAILED || entry->state == SL_ENTRY_REJECTED;
        if (is_open && entry->why->status == SL_REJECT && strcmp(entry->why->code, code) == 0)
            sl_run_block(run, entry, fatal);
    }
}

/* A once-only route parks as it goes, so only what was applied before vouches for the configuration. Of
 * another route what is still to be tried may: it is given up early only when even that is not enough. */
static struct sl_by_event vouching(const struct sl_run *run)
{
    struct sl_by_event applied = run->applied;
    for (size_t i = 0; i < run->n && !sl_route_is_once_only(run->route); i++)
        applied.n[sl_run_event(run, &run->entries[i])] += run->entries[i].state == SL_ENTRY_PENDING;
    return applied;
}

void sl_run_reject(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    const struct sl_tally *same = tally(run, entry, why);
    entry->why = why;
    entry->state = SL_ENTRY_REJECTED;
    struct sl_by_event applied = run->applied;
    if (sl_rate_is_broken(run, same, &applied))
        applied = vouching(run);
    if (sl_rate_is_broken(run, same, &applied)) {
        give_up(run, same);
    } else if (run->route->n_targets == 0) {
        sl_run_block(run, entry, why);
    } else if (sl_route_is_once_only(run->route)) {
        struct sl_parked parked = {.index = entry->index, .route = run->route, .why = why};
        if (sl_dispatch_park(run->d, &parked, 1))
            entry->state = SL_ENTRY_PARKED;
        else
            sl_run_block(run, entry, run->d->failure);
    }
}

void sl_run_judge(struct sl_run *run)
{
    for (size_t i = 0; i < SL_RATE_CODES && run->tallies[i].last; i++)
        if (sl_rate_is_broken(run, &run->tallies[i], &run->applied)) {
            give_up(run, &run->tallies[i]);
            return;
        }
}

static void apply(struct sl_run *run, struct sl_entry *entry, enum sl_effect note)
{
    run->route->stats.effects[note]++;
    entry->is_left_out = note == SL_EFFECT_LEFT_OUT;
    run->applied.n[sl_run_event(run, entry)] += !entry->is_left_out;
    entry->state = SL_ENTRY_APPLIED;
}

size_t sl_run_gather(struct sl_run *run, size_t from, size_t to)
{
    struct sl_dispatch *d = run->d;
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        struct sl_entry *entry = &run->entries[i];
        if (entry->state != SL_ENTRY_PENDING)
            continue;
        if (sl_held_has(&run->held, d, entry->index)) {
            entry->state = SL_ENTRY_HELD;
            continue;
        }
        d->slice[n] = sl_batch_record(d->batch, entry->index);
        d->places[n++] = (uint32_t)i;
    }
    return n;
}

static const struct sl_why *why_of_mark(struct sl_run *run, const struct sl_mark *mark,
                                        const struct sl_why *call_why)
{
    if (mark->is_set && mark->why)
        return sl_dispatch_why_of(run->d, mark->status, mark->why);
    if (call_why && call_why->status == mark->status)
        return call_why;
    return sl_dispatch_why_of(run->d, mark->status, NULL);
}

void sl_run_settle(struct sl_run *run, struct sl_entry *entry, const struct sl_mark *mark,
                   const struct sl_why *call_why, struct sl_rest *rest)
{
    switch (mark->status) {
    case SL_OK:
        apply(run, entry, mark->note);
        rest->settled++;
        break;
    case SL_RETRY:
        run->last_retry = why_of_mark(run, mark, call_why);
        rest->retry++;
        break;
    case SL_REJECT:
        if (!mark->is_set) {
            rest->unknown++;
            break;
        }
        sl_run_reject(run, entry, why_of_mark(run, mark, call_why));
        rest->settled++;
        rest->rejected++;
        break;
    default:
        sl_run_fail(run, entry, why_of_mark(run, mark, call_why));
        rest->settled++;
    }
}

/* Too many rejections have to be noticed before the first is parked: those that one call marks are counted
 * together with what it applied. */
const struct sl_why *sl_run_foresee(struct sl_run *run, size_t n)
{
    const struct sl_mark *marks = run->d->marks;
    struct sl_tally before[SL_RATE_CODES];
    struct sl_by_event applied = run->applied;
    const struct sl_why *fatal = NULL;
    for (size_t i = 0; i < n; i++)
        if (marks[i].is_set && marks[i].status == SL_OK && marks[i].note != SL_EFFECT_LEFT_OUT)
            applied.n[sl_run_event(run, &run->entries[run->d->places[i]])]++;
    memcpy(before, run->tallies, sizeof(before));
    for (size_t i = 0; i < n; i++)
        if (marks[i].is_set && marks[i].status == SL_REJECT)
            tally(run, &run->entries[run->d->places[i]], why_of_mark(run, &marks[i], NULL));
    for (size_t i = 0; i < SL_RATE_CODES && run->tallies[i].last && !fatal; i++)
        if (sl_rate_is_broken(run, &run->tallies[i], &applied))
            fatal = sl_rate_refuse(run, &run->tallies[i]);
    memcpy(run->tallies, before, sizeof(before));
    return fatal;
}
