/* A shard, a function that fails as it is told, and what a test saw of a run of the simulated mapping. One
 * world for each test program. */
#ifndef SL_TESTS_ESM_ESM_WORLD_H
#define SL_TESTS_ESM_ESM_WORLD_H

#include "esm/esm.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define MAX_RECORDS 12000
#define MAX_CALLS   20000
#define T0          1573689197000 /* 2019-11-13T23:53:17Z, whole seconds as DynamoDB has them */

/* ---- the function, and what the test saw of it ---- */

struct call {
    size_t first, n; /* index of its first record */
    int64_t time_ms, attempt;
    enum sl_esm_verb verb;
    struct sl_esm_discard discard; /* n > 0: what was given up after this call */
    bool is_final;
};

struct world {
    struct sl_esm_settings settings;
    struct sl_esm_shard shard;
    struct sl_esm_record records[MAX_RECORDS];
    char ids[MAX_RECORDS][16], texts[MAX_RECORDS][64];
    struct sl_clock_virtual clock;
    struct sl_esm *esm;

    const char *answer; /* of every call, when set */
    bool fails;         /* every call is a function error */
    bool throttles;     /* every call is refused */
    bool names_poison;  /* answers with the id of the lowest poison record; else a call with one fails */
    bool poison[MAX_RECORDS]; /* records that make a call fail */
    int deliveries[MAX_RECORDS];
    int successes[MAX_RECORDS];
    char body[256];

    struct call calls[MAX_CALLS];
    size_t n_calls;
    struct sl_esm_discard discards[MAX_RECORDS];
    size_t discard_first[MAX_RECORDS];
    size_t n_discards;
    char failure[4096]; /* JSON of the last discard */
    struct sl_esm_stats stats;
};

static struct world w;

static void function(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)self;
    assert_true(w.n_calls < MAX_CALLS);
    size_t first = inv->n ? (size_t)(inv->records[0] - w.records) : 0, poison = inv->n;
    for (size_t i = 0; i < inv->n; i++) {
        size_t k = (size_t)(inv->records[i] - w.records);
        w.deliveries[k]++;
        if (w.poison[k] && i < poison)
            poison = i;
    }
    w.calls[w.n_calls++] = (struct call){.first = first,
                                         .n = inv->n,
                                         .time_ms = inv->time_ms,
                                         .attempt = inv->attempt,
                                         .is_final = inv->is_final};
    out->outcome = w.throttles                                       ? SL_ESM_THROTTLED
                   : w.fails || (poison < inv->n && !w.names_poison) ? SL_ESM_FAILED
                                                                     : SL_ESM_ANSWERED;
    snprintf(w.body, sizeof(w.body), "{'batchItemFailures':[]}");
    if (poison < inv->n && w.names_poison)
        snprintf(w.body, sizeof(w.body), "{'batchItemFailures':[{'itemIdentifier':'%.*s'}]}",
                 SL_ARG(inv->records[poison]->id));
    json_quote(w.body);
    out->body = sl_span_str(w.answer ? w.answer : w.body);
}

static void decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *d)
{
    (void)self;
    (void)result;
    w.calls[w.n_calls - 1].verb = d->verb;
    size_t done = d->verb == SL_ESM_ADVANCE ? inv->n : d->verb == SL_ESM_CHECKPOINT ? d->failed : 0;
    for (size_t i = 0; i < done; i++)
        w.successes[inv->records[i] - w.records]++;
}

static void discarded(void *self, const struct sl_esm_discard *d)
{
    (void)self;
    w.discards[w.n_discards] = *d;
    w.discard_first[w.n_discards++] = (size_t)(d->records[0] - w.records);
    struct sl_buffer b;
    sl_buffer_init(&b, sizeof(w.failure) - 1);
    sl_esm_failure_json(&w.settings, d, sl_span(NULL, 0), &b);
    snprintf(w.failure, sizeof(w.failure), "%.*s", SL_ARG(sl_buffer_span(&b)));
    sl_buffer_clean_up(&b);
}

/* `n` records of as many items, created one second apart from T0 on, all in the stream at T0. */
static void set_up(size_t n)
{
    memset(&w, 0, sizeof(w));
    sl_esm_settings_init(&w.settings);
    w.settings.invocation_ms = 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(w.ids[i], sizeof(w.ids[i]), "%zu", 1000 + i);
        snprintf(w.texts[i], sizeof(w.texts[i]), "{'dynamodb':{'SequenceNumber':'%zu'}}", 1000 + i);
        json_quote(w.texts[i]);
        w.records[i] = (struct sl_esm_record){.text = sl_span_str(w.texts[i]),
                                              .id = sl_span_str(w.ids[i]),
                                              .item_key = sl_span_str(w.ids[i]),
                                              .created_ms = T0,
                                              .available_ms = T0};
    }
    w.shard = (struct sl_esm_shard){
        .id = "shardId-00000001573689197184-864758bb", .parent = -1, .records = w.records, .n = n};
}

static void run(void)
{
    const struct sl_esm_driver driver = {.invoke = function, .decided = decided, .discarded = discarded};
    assert_int_equal(sl_esm_settings_check(&w.settings, NULL), SL_OK);
    sl_clock_virtual_init(&w.clock, T0 * 1000000, 1);
    w.esm = sl_esm_new(&w.settings, &w.shard, 1, &w.clock, &driver);
    while (sl_esm_step(w.esm)) {
    }
    assert_int_equal(sl_esm_checkpoint(w.esm, 0), w.shard.n);
    w.stats = sl_esm_stats(w.esm);
    assert_int_equal(w.stats.done + w.stats.discarded + w.stats.trimmed + w.stats.filtered, w.shard.n);
    assert_true(w.stats.beside <= w.stats.discarded + w.stats.trimmed);
    sl_esm_destroy(w.esm);
}

static bool failure_has(const char *text)
{
    return strstr(w.failure, json(text)) != NULL;
}

#endif
