/* The event that is made while the one before it runs: whatever becomes of that one, the mapping delivers
 * what it would deliver if no event were made ahead. A driver without `begin` is that mapping. */
#include "esm/esm.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define T0       1573689197000
#define RECORDS  120
#define PAGE     7
#define MAX_SAID ((size_t)4 << 20)

static struct sl_esm_record records[RECORDS];
static char ids[RECORDS][16], texts[RECORDS][96];

/* What one run said: each delivery and decision, each record that was given up. */
struct run {
    struct sl_buffer said;
    uint64_t random;
    bool is_asked_ahead; /* `more` was called while an invocation ran */
    bool is_running;
    size_t n_given, n_forgotten, n_pages; /* records; pages */
    const char *last_payload;
    bool is_swapped; /* events were in two places */
    char body[1024];
};

static void set_records(uint64_t *random)
{
    for (size_t i = 0; i < RECORDS; i++) {
        int n = (int)(sl_random_step(random) % 40);
        snprintf(ids[i], sizeof(ids[i]), "%zu", 1000 + i);
        snprintf(texts[i], sizeof(texts[i]), "{\"i\":%zu,\"t\":\"%0*d\"}", i, n + 1, 0);
        records[i] =
            (struct sl_esm_record){.text = sl_span_str(texts[i]),
                                   .id = sl_span_str(ids[i]),
                                   .created_ms = T0 - (int64_t)(sl_random_step(random) % 3) * 3600000,
                                   .available_ms = T0};
    }
}

/* The payload is the event of the invocation's records, byte for byte. */
static void check_payload(struct run *r, const struct sl_esm_invocation *inv)
{
    struct sl_buffer expected;
    sl_buffer_init(&expected, 1 << 20);
    sl_esm_event_json(inv->records, inv->n, &expected);
    assert_int_equal(inv->payload.len, expected.len);
    assert_memory_equal(inv->payload.ptr, expected.ptr, expected.len);
    sl_buffer_clean_up(&expected);
    r->is_swapped |= r->last_payload && r->last_payload != inv->payload.ptr;
    r->last_payload = inv->payload.ptr;
}

static void begin(void *self, struct sl_esm_invocation *inv)
{
    struct run *r = self;
    check_payload(r, inv);
    r->is_running = true;
}

/* Answers, names up to three records, answers nonsense, fails, or is refused. */
static void draw_result(struct run *r, const struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct sl_buffer b;
    uint64_t kind = sl_random_step(&r->random) % 16;
    sl_buffer_init(&b, sizeof(r->body) - 1);
    sl_buffer_add_str(&b, "{\"batchItemFailures\":[");
    for (uint64_t i = 0; kind < 4 && i < kind; i++)
        sl_buffer_printf(&b, "%s{\"itemIdentifier\":\"%.*s\"}", i ? "," : "",
                         SL_ARG(inv->records[sl_random_step(&r->random) % inv->n]->id));
    sl_buffer_add_str(&b, "]}");
    memcpy(r->body, b.ptr, b.len);
    *out = (struct sl_esm_result){.outcome = kind == 5 || kind == 6 ? SL_ESM_FAILED
                                             : kind == 7            ? SL_ESM_THROTTLED
                                                                    : SL_ESM_ANSWERED,
                                  .body = kind == 4 ? SL_LIT("[") : sl_span(r->body, b.len)};
    sl_buffer_clean_up(&b);
}

static void invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct run *r = self;
    check_payload(r, inv); /* an event stays as it is while the next one is made */
    r->is_running = false;
    draw_result(r, inv, out);
}

static void decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *d)
{
    struct run *r = self;
    sl_buffer_printf(&r->said, "%s %lld #%lld %zu of %.*s: %d %.*s -> %d %zu %.*s\n", inv->request_id,
                     (long long)inv->time_ms, (long long)inv->attempt, inv->n, SL_ARG(inv->records[0]->id),
                     (int)result->outcome, SL_ARG(result->body), (int)d->verb, d->failed,
                     SL_ARG(d->checkpoint));
}

static void discarded(void *self, const struct sl_esm_discard *d)
{
    struct run *r = self;
    sl_buffer_printf(&r->said, "given up: %d %zu of %.*s %s %lld\n", (int)d->condition, d->n,
                     SL_ARG(d->records[0]->id), d->request_id, (long long)d->wall_ms);
}

static size_t more(void *self, size_t shard, const struct sl_esm_record **out)
{
    struct run *r = self;
    size_t n = RECORDS - r->n_given < PAGE ? RECORDS - r->n_given : PAGE;
    assert_int_equal(shard, 0);
    *out = records + r->n_given;
    r->n_given += n;
    r->n_pages += n > 0;
    r->is_asked_ahead |= r->is_running;
    return n;
}

static void forget(void *self, size_t shard, size_t n)
{
    struct run *r = self;
    assert_int_equal(shard, 0);
    r->n_forgotten += n;
    assert_true(r->n_forgotten <= r->n_pages);
}

static struct sl_esm_stats run(struct run *r, const struct sl_esm_settings *settings, bool has_begin,
                               bool is_by_page)
{
    const struct sl_esm_driver driver = {.self = r,
                                         .begin = has_begin ? begin : NULL,
                                         .invoke = invoke,
                                         .decided = decided,
                                         .discarded = discarded,
                                         .more = is_by_page ? more : NULL,
                                         .forget = forget};
    const struct sl_esm_shard shard = {
        .id = "shard", .parent = -1, .records = records, .n = is_by_page ? 0 : RECORDS};
    struct sl_clock_virtual clock;
    *r = (struct run){.random = settings->seed};
    sl_buffer_init(&r->said, MAX_SAID);
    assert_int_equal(sl_esm_settings_check(settings, NULL), SL_OK);
    sl_clock_virtual_init(&clock, T0 * 1000000, 1);
    struct sl_esm *esm = sl_esm_new(settings, &shard, 1, &clock, &driver);
    while (sl_esm_step(esm)) {
    }
    struct sl_esm_stats stats = sl_esm_stats(esm);
    assert_int_equal(sl_esm_checkpoint(esm, 0), RECORDS);
    assert_int_equal(stats.done + stats.discarded + stats.trimmed, RECORDS);
    sl_esm_destroy(esm);
    return stats;
}

static void draw_settings(struct sl_esm_settings *s, uint64_t *random)
{
    sl_esm_settings_init(s);
    s->batch_size = 1 + (int64_t)(sl_random_step(random) % 20);
    s->bisect = sl_random_step(random) % 2;
    s->report_failures = sl_random_step(random) % 2;
    s->max_retries = (int64_t)(sl_random_step(random) % 4);
    s->max_age_s = sl_random_step(random) % 3 ? -1 : 3600 + (int64_t)(sl_random_step(random) % 3600);
    s->window_s = sl_random_step(random) % 4 ? 0 : 1;
    s->invocation_ms = (int64_t)(sl_random_step(random) % 300);
    s->payload_bytes = sl_random_step(random) % 2 ? 200 + (int64_t)(sl_random_step(random) % 800) : 1 << 20;
    s->seed = sl_random_step(random);
}

/* Failures of every kind, halves, partial answers, records that are given up, pages that end within a batch.
 */
static void nothing_depends_on_the_event_made_ahead(void **state)
{
    uint64_t random = 22;
    size_t n_swapped = 0, n_asked_ahead = 0;
    struct sl_esm_stats sum = {.done = 0};
    (void)state;
    for (int i = 0; i < 400; i++) {
        struct sl_esm_settings settings;
        struct run with, without;
        set_records(&random);
        draw_settings(&settings, &random);
        bool is_by_page = sl_random_step(&random) % 2;
        struct sl_esm_stats stats = run(&with, &settings, true, is_by_page);
        run(&without, &settings, false, is_by_page);
        assert_false(with.said.failed);
        assert_int_equal(with.said.len, without.said.len);
        assert_memory_equal(with.said.ptr, without.said.ptr, with.said.len);
        n_swapped += with.is_swapped;
        n_asked_ahead += with.is_asked_ahead;
        assert_false(without.is_asked_ahead);
        sl_esm_stats_add(&sum, &stats);
        sl_buffer_clean_up(&with.said);
        sl_buffer_clean_up(&without.said);
    }
    assert_true(n_swapped > 300 && n_asked_ahead > 100);
    assert_true(sum.splits > 100 && sum.partial_answers > 100 && sum.discarded > 100 && sum.throttles > 100);
}

/* One event at a time is made ahead, and once: `more` is asked for the pages of the next batch, not of all.
 */
static void only_the_next_event_is_made_ahead(void **state)
{
    struct sl_esm_settings settings;
    struct run r = {.random = 1};
    (void)state;
    uint64_t random = 5;
    set_records(&random);
    sl_esm_settings_init(&settings);
    settings.batch_size = 10;
    const struct sl_esm_driver driver = {
        .self = &r, .begin = begin, .invoke = invoke, .more = more, .forget = forget};
    const struct sl_esm_shard shard = {.id = "shard", .parent = -1};
    struct sl_clock_virtual clock;
    sl_clock_virtual_init(&clock, T0 * 1000000, 1);
    struct sl_esm *esm = sl_esm_new(&settings, &shard, 1, &clock, &driver);
    assert_true(sl_esm_step(esm)); /* reads the first batch, and looks whether another record follows */
    assert_int_equal(r.n_given, 2 * PAGE);
    assert_true(sl_esm_step(esm)); /* begins with it: ten more, and whether one follows */
    assert_true(r.is_running);
    assert_int_equal(r.n_given, 3 * PAGE);
    sl_esm_destroy(esm);
}

/* Lanes share a shard's records out among them: what follows in the shard is not what follows in the lane. */
static void with_lanes_each_event_has_its_records(void **state)
{
    uint64_t random = 7;
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct sl_esm_settings settings;
        struct run r;
        set_records(&random);
        draw_settings(&settings, &random);
        settings.parallelization = 2 + i % 3;
        run(&r, &settings, true, i % 2);
        sl_buffer_clean_up(&r.said);
    }
}

static size_t n_windows;

static void begin_in_window(void *self, struct sl_esm_invocation *inv)
{
    (void)self;
    assert_non_null(memmem(inv->payload.ptr, inv->payload.len, "\"window\":{", 10));
    n_windows++;
}

static void answer_state(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    (void)self;
    (void)inv;
    *out = (struct sl_esm_result){.outcome = SL_ESM_ANSWERED, .body = SL_LIT("{\"state\":{\"n\":1}}")};
}

/* What a window adds to an event is known when the event goes. */
static void a_window_s_events_are_not_made_ahead(void **state)
{
    const struct sl_esm_driver driver = {.begin = begin_in_window, .invoke = answer_state};
    const struct sl_esm_shard shard = {.id = "shard", .parent = -1, .records = records, .n = RECORDS};
    struct sl_esm_settings settings;
    struct sl_clock_virtual clock;
    uint64_t random = 9;
    (void)state;
    set_records(&random);
    sl_esm_settings_init(&settings);
    settings.batch_size = 10;
    settings.tumbling_s = 900;
    sl_clock_virtual_init(&clock, T0 * 1000000, 1);
    struct sl_esm *esm = sl_esm_new(&settings, &shard, 1, &clock, &driver);
    while (sl_esm_step(esm)) {
    }
    assert_true(n_windows >= RECORDS / 10);
    sl_esm_destroy(esm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_depends_on_the_event_made_ahead),
        cmocka_unit_test(with_lanes_each_event_has_its_records),
        cmocka_unit_test(a_window_s_events_are_not_made_ahead),
        cmocka_unit_test(only_the_next_event_is_made_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
