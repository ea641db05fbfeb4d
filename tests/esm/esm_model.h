/* A random world for test_esm_model.c: the mapping's settings, its shards, what the function answers, and the
 * text in which the simulator and the model both say what happens. */
#ifndef SL_TESTS_ESM_ESM_MODEL_H
#define SL_TESTS_ESM_ESM_MODEL_H

#include "esm/esm.h"
#include "esm/esm_choices.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define SHARDS  3
#define RECORDS 40
#define LANES   10
#define LOG     (256 * 1024)
#define WORLDS  1500
#define STATE   (SL_ESM_STATE_BYTES + 128)

struct world {
    struct sl_esm_settings settings;
    struct sl_esm_shard shards[SHARDS];
    size_t n_shards, n_of[SHARDS];
    struct sl_esm_record records[SHARDS * RECORDS];
    bool is_filtered[SHARDS * RECORDS], is_poison[SHARDS * RECORDS];
    char ids[SHARDS * RECORDS][8], keys[SHARDS * RECORDS][8], texts[SHARDS * RECORDS][64];
    uint64_t seed;
    int64_t wall_ms;                                 /* at the beginning */
    unsigned errors, throttles, partials, malformed; /* of a hundred calls */
    bool uses_begin; /* the driver begins calls, and collects their results later */
};
static struct world w;

/* ---- what the function answers: drawn from what the call is, so that both get the same answer ---- */

struct answer {
    enum sl_esm_outcome outcome;
    int64_t time_ms, ms;      /* when it was asked, and how long it took */
    size_t names[3], n_names; /* records that it names, in its order */
    bool is_bad;              /* and then something that is not in the batch */
    bool no_state;            /* in a window */
    size_t state_bytes;       /* of the state, when it is padded */
};

static struct answer ask(const struct sl_esm_record *const *records, size_t n, int64_t attempt,
                         int64_t time_ms)
{
    uint64_t random = w.seed * 1000003 + (uint64_t)time_ms * 31 + (uint64_t)attempt;
    random += n ? (uint64_t)(records[0] - w.records) * 7919 + n : 0;
    struct answer a = {
        .outcome = SL_ESM_ANSWERED, .time_ms = time_ms, .ms = (int64_t)(sl_random_step(&random) % 3) * 70};
    unsigned chance = (unsigned)(sl_random_step(&random) % 100), bad = w.errors + w.throttles;
    a.no_state = sl_random_step(&random) % 16 == 0;
    if (w.settings.tumbling_s && sl_random_step(&random) % 256 == 0)
        a.state_bytes = SL_ESM_STATE_BYTES + sl_random_step(&random) % 2;
    for (size_t i = 0; i < n; i++)
        if (w.is_poison[records[i] - w.records])
            chance = 0;
    if (chance < w.errors) {
        a.outcome = SL_ESM_FAILED;
    } else if (chance < bad) {
        a.outcome = SL_ESM_THROTTLED;
    } else if (chance < bad + w.partials + w.malformed) {
        a.is_bad = chance >= bad + w.partials;
        a.n_names = n ? sl_random_step(&random) % 3 + !a.is_bad : 0;
        for (size_t i = 0; i < a.n_names; i++)
            a.names[i] = (size_t)(records[sl_random_step(&random) % n] - w.records);
    }
    return a;
}

/* The state that an answer leaves to its window: when the call was. */
static size_t write_state(const struct answer *a, char *out)
{
    size_t n = (size_t)snprintf(out, 64, "{\"at\":%" PRId64, a->time_ms);
    if (a->state_bytes) {
        n += (size_t)snprintf(out + n, 64, ",\"pad\":\"");
        memset(out + n, 'x', a->state_bytes - n - 2);
        n = a->state_bytes - 2;
        out[n++] = '"';
    }
    out[n++] = '}';
    return n;
}

/* ---- what happens, as text ---- */

struct log {
    char text[LOG];
    size_t len;
};

static void say(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct log *log, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(log->text + log->len, LOG - log->len, format, args);
    va_end(args);
    assert_true(n >= 0 && log->len + (size_t)n < LOG);
    log->len += (size_t)n;
}

static const char *id_of(const struct sl_esm_record *r)
{
    return w.ids[r - w.records];
}

static void say_call(struct log *log, const struct sl_esm_invocation *inv)
{
    say(log, "%" PRId64 ": %zu from %s, attempt %" PRId64 "%s%s, event %zu %" PRIx64 "\n", inv->time_ms,
        inv->n, inv->n ? id_of(inv->records[0]) : "none", inv->attempt, inv->is_window ? " window" : "",
        inv->is_final ? " final" : "", inv->payload.len, sl_hash(inv->payload));
}

/* (The checkpoint is the shard's: several lanes move it.) */
static void say_decision(struct log *log, const struct sl_esm_decision *d)
{
    static const char *const names[] = {[SL_ESM_ADVANCE] = "advance",
                                        [SL_ESM_CHECKPOINT] = "checkpoint",
                                        [SL_ESM_RETRY] = "retry",
                                        [SL_ESM_BISECT] = "bisect",
                                        [SL_ESM_DISCARD] = "discard"};
    say(log, "  %s%s", names[d->verb], d->is_malformed ? " malformed" : "");
    if (d->verb == SL_ESM_CHECKPOINT)
        say(log, " at %zu", d->failed);
    if (w.settings.parallelization == 1)
        say(log, ", done up to %.*s", SL_ARG(d->checkpoint));
    say(log, "\n");
}

static void say_discard(struct log *log, const struct sl_esm_discard *d)
{
    say(log, "  at %" PRId64 " condition %d, count %" PRId64 "%s:", d->wall_ms, (int)d->condition,
        d->invoke_count, d->was_function_error ? " Unhandled" : "");
    for (size_t i = 0; i < d->n; i++)
        say(log, " %s", id_of(d->records[i]));
    say(log, "\n");
}

#endif
