/* Poison, or a broken configuration? One batch cannot know: a wrong name in a template rejects 7 of 10
 * records, of which a small batch has as few as there is honest poison. So each route remembers what it
 * applied and rejected lately. A record that was applied vouches for a quarter of a rejection of the same
 * event name (a REMOVE may need nothing of what an INSERT needs), and a code may be parked as long as no more
 * than FEW of its rejections have nobody to vouch for them. So a code that rejects more than a fifth of the
 * INSERTs is never the records' fault; one that rejects a twentieth passes, also when it comes in runs. A new
 * process knows nothing, and so parks FEW at most before it has seen a record succeed.
 *
 * A record counts once, or each redelivery of the same records would vouch for the configuration again: one
 * that was applied when the answer moves the checkpoint past it, one that was rejected when its copy is
 * durable, or when the route refuses to park it for the first time. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"

#include <stdio.h>

#define FEW      10
#define VOUCHING 4    /* so many records for a rejection */
#define LATELY   1000 /* records: beyond, all counts are halved */

#define EVENTS (sizeof(((struct sl_by_event *)NULL)->n) / sizeof(size_t))

static void add(struct sl_by_event *to, const struct sl_by_event *more)
{
    for (size_t i = 0; i < EVENTS; i++)
        to->n[i] += more->n[i];
}

static size_t sum(const struct sl_by_event *counts)
{
    size_t n = 0;
    for (size_t i = 0; i < EVENTS; i++)
        n += counts->n[i];
    return n;
}

/* The code's place in the counts, or a free one; the last is shared when there is none. */
static size_t place_of(const struct sl_rate *rate, const char *code)
{
    size_t i = 0, unused = SL_RATE_CODES - 1;
    for (size_t k = SL_RATE_CODES; k-- > 0;)
        unused = rate->codes[k].code[0] ? unused : k;
    while (i < SL_RATE_CODES && strcmp(rate->codes[i].code, code) != 0)
        i++;
    return i < SL_RATE_CODES ? i : unused;
}

/* Of the rejections lately, and of these. */
static struct sl_by_event rejections(const struct sl_run *run, const struct sl_tally *tally)
{
    const struct sl_rate *rate = &run->route->rate;
    struct sl_by_event all = rate->codes[place_of(rate, tally->last->code)].rejected;
    add(&all, &tally->rejected);
    return all;
}

bool sl_rate_is_broken(const struct sl_run *run, const struct sl_tally *tally,
                       const struct sl_by_event *applied)
{
    const struct sl_config *config = &run->d->p->config;
    const size_t most = config->max_parked_is_set ? (size_t)config->max_parked : FEW;
    if ((config->max_parked_is_set && config->max_parked < 0) || strcmp(tally->last->code, SL_TOO_LATE) == 0)
        return false;
    if (config->max_parked_is_set && sum(&tally->rejected) > most)
        return true;
    struct sl_by_event rejected = rejections(run, tally), good = run->route->rate.applied;
    size_t alone = 0;
    add(&good, applied);
    for (size_t i = 0; i < EVENTS; i++)
        alone += rejected.n[i] > good.n[i] / VOUCHING ? rejected.n[i] - good.n[i] / VOUCHING : 0;
    return alone > most;
}

/* "11 of 14 records": those of the events that the code rejects. */
const struct sl_why *sl_rate_refuse(struct sl_run *run, const struct sl_tally *tally)
{
    const struct sl_by_event rejected = rejections(run, tally), *lately = &run->route->rate.applied;
    const char *code = tally->last->code;
    size_t tried = sum(&rejected);
    for (size_t i = 0; i < EVENTS; i++)
        tried += rejected.n[i] ? lately->n[i] + run->applied.n[i] : 0;
    const char *text = sl_arena_printf(
        run->d->arena,
        "%zu of %zu records were rejected with this code: probably %s; nothing more is parked; the last: %s",
        sum(&rejected), tried,
        strcmp(code, "MissingAttribute") == 0
            ? "a wrong name in a template: correct it, or set \"missing\""
            : "the configuration or the target is wrong, not the records; max_parked allows more",
        tally->last->text);
    struct sl_tally *refused = sl_arena_alloc(run->d->arena, sizeof(*refused));
    *refused = *tally;
    run->refused = refused;
    return sl_dispatch_why(run->d, SL_FATAL, code, text);
}

/* ---- what counts from now on ---- */

static void count(struct sl_rate *rate, const char *code, const struct sl_by_event *rejected)
{
    struct sl_rate_code *slot = &rate->codes[place_of(rate, code)];
    snprintf(slot->code, sizeof(slot->code), "%s", code);
    add(&slot->rejected, rejected);
}

static void count_one(struct sl_rate *rate, const char *code, enum sl_event event)
{
    struct sl_by_event one = {{0}};
    one.n[event] = 1;
    count(rate, code, &one);
}

/* The same records are refused again when they are delivered again: they are known by the first of them. */
static void note_refused(const struct sl_run *run)
{
    struct sl_rate *rate = &run->route->rate;
    size_t i = 0;
    while (i < run->n && run->entries[i].state != SL_ENTRY_FAILED)
        i++;
    if (i == run->n)
        return;
    const struct sl_record *first = sl_batch_record(run->d->batch, run->entries[i].index);
    char id[sizeof(rate->first)];
    snprintf(id, sizeof(id), "%.*s", SL_ARG(sl_record_text(first, SL_FIELD_IDENTIFIER)));
    if (strcmp(id, rate->first) != 0)
        count(rate, run->refused->last->code, &run->refused->rejected);
    memcpy(rate->first, id, sizeof(id));
}

void sl_rate_note(const struct sl_run *run)
{
    struct sl_dispatch *d = run->d;
    struct sl_seen *seen = &d->seen[run->route - d->p->routes];
    seen->k = d->k;
    if (run->refused)
        note_refused(run);
    for (size_t i = 0; i < run->n; i++) {
        const struct sl_entry *entry = &run->entries[i];
        bool is_below = entry->state == SL_ENTRY_APPLIED && entry->index < d->k;
        seen->applied.n[sl_run_event(run, entry)] += is_below && !entry->is_remembered && !entry->is_left_out;
        if (entry->state == SL_ENTRY_PARKED && !run->refused) /* by a once-only route, as it went */
            count_one(&run->route->rate, entry->why->code, sl_run_event(run, entry));
    }
}

static void forget_half(struct sl_rate *rate)
{
    for (size_t i = 0; i < EVENTS; i++) {
        rate->applied.n[i] /= 2;
        for (size_t k = 0; k < SL_RATE_CODES; k++)
            rate->codes[k].rejected.n[i] /= 2;
    }
    for (size_t k = 0; k < SL_RATE_CODES; k++)
        if (!sum(&rate->codes[k].rejected))
            rate->codes[k].code[0] = '\0';
}

static bool is_long_ago(const struct sl_rate *rate)
{
    size_t n = sum(&rate->applied);
    for (size_t i = 0; i < SL_RATE_CODES; i++)
        n += sum(&rate->codes[i].rejected);
    return n > LATELY;
}

void sl_rate_commit(struct sl_dispatch *d)
{
    for (size_t i = 0; i < d->n_parked; i++) {
        const struct sl_parked *parked = &d->parked[i];
        if (parked->is_durable && !parked->is_remembered)
            count_one(&parked->route->rate, parked->why->code,
                      sl_record_event(sl_batch_record(d->batch, parked->index)));
    }
    for (size_t i = 0; i < d->p->n; i++) {
        struct sl_rate *rate = &d->p->routes[i].rate;
        if (d->seen[i].k == sl_answer_floor(d))
            add(&rate->applied, &d->seen[i].applied);
        while (is_long_ago(rate))
            forget_half(rate);
    }
}
