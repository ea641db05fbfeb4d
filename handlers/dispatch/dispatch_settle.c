/* What becomes of one record of a run: applied, rejected, failed or to be tried again; and when rejections
 * are too many to be poison. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"

void sl_run_stop(struct sl_run *run, const struct sl_why *why)
{
    run->is_stopped = true;
    run->stop = why;
}

void sl_run_fail(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
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

/* Rejections of that code so far, this one included. */
static size_t tally(struct sl_run *run, const char *code)
{
    size_t i = 0;
    while (i < SL_TALLIES - 1 && run->tallies[i].code && strcmp(run->tallies[i].code, code) != 0)
        i++;
    run->tallies[i].code = code;
    return ++run->tallies[i].n;
}

static size_t most_parked(const struct sl_dispatch *d)
{
    const struct sl_config *config = &d->p->config;
    if (config->max_parked_is_set)
        return config->max_parked < 0 ? SIZE_MAX : (size_t)config->max_parked;
    return d->n / 10 > 10 ? d->n / 10 : 10;
}

/* So many rejections with one code are not poison: the environment is broken (another table's schema, a wrong
 * target), and parking would carry the whole stream away. What a once-only route rejected earlier is already
 * parked. */
static const struct sl_why *broken(struct sl_run *run, const struct sl_why *why, size_t count)
{
    const char *text = sl_arena_printf(run->d->arena,
                                       "%zu records rejected with one code, more than max_parked allows: the "
                                       "environment is probably broken, so nothing is parked; the last: %s",
                                       count, why->text);
    run->route->is_distrusted = true;
    return sl_dispatch_why(run->d, SL_FATAL, why->code, text);
}

static void give_up(struct sl_run *run, const struct sl_why *why, size_t count)
{
    const struct sl_why *fatal = broken(run, why, count);
    sl_run_stop(run, fatal);
    for (size_t i = 0; i < run->n; i++) {
        struct sl_entry *entry = &run->entries[i];
        bool is_open = entry->state == SL_ENTRY_FAILED || entry->state == SL_ENTRY_REJECTED;
        if (is_open && entry->why->status == SL_REJECT && strcmp(entry->why->code, why->code) == 0)
            sl_run_fail(run, entry, fatal);
    }
}

void sl_run_reject(struct sl_run *run, struct sl_entry *entry, const struct sl_why *why)
{
    size_t count = tally(run, why->code);
    entry->why = why;
    entry->state = SL_ENTRY_REJECTED;
    if (count > most_parked(run->d)) {
        give_up(run, why, count);
    } else if (run->route->n_targets == 0) {
        sl_run_fail(run, entry, why);
    } else if (sl_route_is_once_only(run->route)) {
        struct sl_parked parked = {.index = entry->index, .route = run->route, .why = why};
        if (sl_dispatch_park(run->d, &parked, 1))
            entry->state = SL_ENTRY_PARKED;
        else
            sl_run_fail(run, entry, run->d->failure);
    }
}

static void apply(struct sl_run *run, struct sl_entry *entry, enum sl_effect note)
{
    run->route->stats.effects[note]++;
    run->route->is_distrusted = false;
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

/* A once-only route parks as it goes, so too many rejections have to be noticed before the first is parked:
 * those that one call marks are counted. From then on the route is distrusted until a record succeeds: a call
 * in which no record succeeds parks nothing, or else each delivery would park a little more of the stream. */
const struct sl_why *sl_run_foresee(struct sl_run *run, size_t n)
{
    struct sl_tally before[SL_TALLIES];
    const struct sl_why *first = NULL, *worst = NULL;
    size_t most = most_parked(run->d), count = 0, applied = 0;
    memcpy(before, run->tallies, sizeof(before));
    for (size_t i = 0; i < n && !worst; i++) {
        const struct sl_mark *mark = &run->d->marks[i];
        applied += mark->is_set && mark->status == SL_OK;
        if (!mark->is_set || mark->status != SL_REJECT)
            continue;
        const struct sl_why *why = why_of_mark(run, mark, NULL);
        count = tally(run, why->code);
        first = first ? first : why;
        worst = count > most ? why : NULL;
    }
    memcpy(run->tallies, before, sizeof(before));
    if (!worst && run->route->is_distrusted && !applied)
        worst = first;
    return worst ? broken(run, worst, count) : NULL;
}
