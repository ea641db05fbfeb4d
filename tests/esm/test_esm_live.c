/* The mapping in real time: pages come, invocations end when they end. */
#include "base/clock.h"
#include "esm/esm.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGES   40
#define RECORDS 5

struct world {
    struct sl_esm *esm;
    struct sl_clock_virtual clock;
    struct sl_esm_settings settings;
    struct sl_esm_shard shard;
    struct sl_esm_record pages[PAGES][RECORDS];
    char ids[PAGES * RECORDS][8], keys[PAGES * RECORDS][8];
    struct sl_esm_invocation *running[10];
    size_t n_running, free; /* invocations that may begin */
    const char *answer;
    bool was_sent; /* of the last one that was asked about */
    char delivered[4096];
    int64_t now_ms;
};

static bool may_begin(void *self, const struct sl_esm_shard *shard, unsigned lane, bool was_sent)
{
    struct world *w = self;
    (void)shard;
    (void)lane;
    w->was_sent = was_sent;
    return w->n_running < w->free;
}

static void begin(void *self, struct sl_esm_invocation *inv)
{
    struct world *w = self;
    w->running[w->n_running++] = inv;
}

static void invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct world *w = self;
    (void)inv;
    *out = (struct sl_esm_result){.outcome = w->answer ? SL_ESM_ANSWERED : SL_ESM_FAILED,
                                  .body = sl_span_str(w->answer ? w->answer : "{}")};
}

static struct world *new_world(int64_t parallelization, int64_t batch_size)
{
    struct world *w = calloc(1, sizeof(*w));
    const struct sl_esm_driver driver = {.self = w, .may_begin = may_begin, .begin = begin, .invoke = invoke};
    sl_esm_settings_init(&w->settings);
    w->settings.parallelization = parallelization;
    w->settings.batch_size = batch_size;
    w->settings.report_failures = true;
    w->shard = (struct sl_esm_shard){.id = "shard", .parent = -1};
    w->free = 10;
    w->answer = "{\"batchItemFailures\":[]}";
    sl_clock_virtual_init(&w->clock, 1700000000000000000, 0);
    w->esm = sl_esm_new(&w->settings, &w->shard, 1, &w->clock, &driver);
    return w;
}

static void end_world(struct world *w)
{
    sl_esm_destroy(w->esm);
    free(w);
}

static void feed(struct world *w, size_t page)
{
    for (size_t i = 0; i < RECORDS; i++) {
        size_t k = page * RECORDS + i;
        snprintf(w->ids[k], sizeof(w->ids[k]), "%zu", k + 1);
        snprintf(w->keys[k], sizeof(w->keys[k]), "k%zu", k % 7);
        w->pages[page][i] = (struct sl_esm_record){.text = SL_LIT("{}"),
                                                   .id = sl_span_str(w->ids[k]),
                                                   .item_key = sl_span_str(w->keys[k]),
                                                   .created_ms = 1700000000000,
                                                   .available_ms = sl_esm_wall_at(w->esm, w->now_ms)};
    }
    sl_esm_feed(w->esm, 0, w->pages[page], RECORDS, w->now_ms);
    sl_esm_run(w->esm, w->now_ms);
}

/* The i-th of those that run is over. */
static void end(struct world *w, size_t i)
{
    struct sl_esm_invocation *inv = w->running[i];
    for (size_t k = 0; k < inv->n; k++)
        snprintf(w->delivered + strlen(w->delivered), 8, "%.*s ", SL_ARG(inv->records[k]->id));
    memmove(w->running + i, w->running + i + 1, (--w->n_running - i) * sizeof(w->running[0]));
    sl_esm_end(inv, w->now_ms);
}

static const char *checkpoint(struct world *w)
{
    static char text[16];
    struct sl_span id = sl_esm_checkpoint_id(w->esm, 0);
    snprintf(text, sizeof(text), "%.*s", SL_ARG(id));
    return text;
}

static void an_invocation_lasts_until_it_is_over(void **state)
{
    (void)state;
    struct world *w = new_world(1, 100);
    feed(w, 0);
    assert_int_equal(w->n_running, 1);
    assert_int_equal(sl_esm_due_ms(w->esm, 0), INT64_MAX);
    w->now_ms = 100000;
    sl_esm_run(w->esm, w->now_ms);
    assert_int_equal(w->n_running, 1);
    assert_int_equal(sl_esm_left(w->esm, 0), RECORDS);
    end(w, 0);
    assert_int_equal(sl_esm_left(w->esm, 0), 0);
    assert_null(sl_esm_first_left(w->esm, 0));
    assert_string_equal(checkpoint(w), "5");
    end_world(w);
}

/* The memory of a page is the caller's again as soon as all of it is done; the place stays known. */
static void pages_come_and_go(void **state)
{
    (void)state;
    struct world *w = new_world(1, 3);
    for (size_t page = 0; page < PAGES; page++) {
        feed(w, page);
        assert_int_equal(sl_esm_forget(w->esm, 0), 0);
        while (w->n_running) {
            end(w, 0);
            sl_esm_run(w->esm, w->now_ms);
        }
        assert_int_equal(sl_esm_forget(w->esm, 0), 1);
        memset(w->pages[page], 0xA5, sizeof(w->pages[page]));
        assert_string_equal(checkpoint(w), w->ids[page * RECORDS + RECORDS - 1]);
    }
    assert_int_equal(sl_esm_stats(w->esm).done, PAGES * RECORDS);
    end_world(w);
}

static void a_retry_waits_and_says_that_it_is_one(void **state)
{
    (void)state;
    struct world *w = new_world(1, 100);
    feed(w, 0);
    assert_false(w->was_sent);
    w->answer = NULL;
    end(w, 0);
    sl_esm_run(w->esm, w->now_ms);
    assert_int_equal(w->n_running, 0);
    assert_int_equal(sl_esm_due_ms(w->esm, w->now_ms), 500);
    w->now_ms = 499;
    sl_esm_run(w->esm, w->now_ms);
    assert_int_equal(w->n_running, 0);
    w->now_ms = 500;
    sl_esm_run(w->esm, w->now_ms);
    assert_int_equal(w->n_running, 1);
    assert_true(w->was_sent);
    end_world(w);
}

/* Several wait: the first of them says when, wherever it is among the lanes. */
static void the_first_that_waits_is_due(void **state)
{
    (void)state;
    for (int from_behind = 0; from_behind < 2; from_behind++) {
        struct world *w = new_world(10, 100);
        feed(w, 0);
        const size_t n = w->n_running;
        assert_true(n > 2);
        w->answer = NULL;
        for (size_t i = 0; i < n; i++, w->now_ms += 100) {
            end(w, from_behind ? w->n_running - 1 : 0);
            assert_int_equal(sl_esm_due_ms(w->esm, w->now_ms), 500);
        }
        w->now_ms = 500;
        sl_esm_run(w->esm, w->now_ms);
        assert_int_equal(w->n_running, 1);
        assert_int_equal(sl_esm_due_ms(w->esm, w->now_ms), 600);
        end_world(w);
    }
}

static void what_may_not_begin_waits(void **state)
{
    (void)state;
    struct world *w = new_world(1, 100);
    w->free = 0;
    feed(w, 0);
    assert_int_equal(w->n_running, 0);
    assert_int_equal(sl_esm_due_ms(w->esm, w->now_ms), INT64_MAX);
    w->free = 1;
    w->now_ms = 70;
    sl_esm_run(w->esm, w->now_ms);
    assert_int_equal(w->n_running, 1);
    end_world(w);
}

/* Whatever order the lanes end in, the place is below everything that is not done; a second page goes to
 * lanes that are free, and each item keeps its order. */
static void lanes_share_a_place(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world *w = new_world(4, 2);
        uint64_t random = seed;
        size_t fed = 0, last_of[7] = {0};
        while (fed < PAGES || w->n_running) {
            if (fed < PAGES && sl_random_step(&random) % 3 == 0)
                feed(w, fed++);
            if (!w->n_running)
                continue;
            w->delivered[0] = '\0';
            end(w, sl_random_step(&random) % w->n_running);
            for (char *at = w->delivered; *at; at = strchr(at, ' ') + 1) {
                size_t number = strtoul(at, NULL, 10), item = (number - 1) % 7;
                assert_true(number > last_of[item]);
                last_of[item] = number;
            }
            const struct sl_esm_record *first = sl_esm_first_left(w->esm, 0);
            size_t place = strtoul(checkpoint(w), NULL, 10);
            if (first)
                assert_int_equal(strtoul(first->id.ptr, NULL, 10), place + 1);
            for (size_t i = 0; i < w->n_running; i++)
                assert_true(strtoul(w->running[i]->records[0]->id.ptr, NULL, 10) > place);
            sl_esm_run(w->esm, ++w->now_ms);
            (void)sl_esm_forget(w->esm, 0);
        }
        assert_int_equal(sl_esm_left(w->esm, 0), 0);
        end_world(w);
    }
}

static size_t begun[2];

static void begin_of_two(void *self, struct sl_esm_invocation *inv)
{
    const struct sl_esm_shard *shards = self;
    begun[inv->shard - shards]++;
}

static bool any_may_begin(void *self, const struct sl_esm_shard *shard, unsigned lane, bool was_sent)
{
    (void)self;
    (void)shard;
    (void)lane;
    (void)was_sent;
    return true;
}

/* Records of one shard wake no other. */
static void shards_are_fed_apart(void **state)
{
    (void)state;
    for (size_t fed = 0; fed < 2; fed++)
        for (int64_t lanes = 1; lanes < 4; lanes++) {
            const struct sl_esm_shard shards[] = {{.id = "a", .parent = -1}, {.id = "b", .parent = -1}};
            const struct sl_esm_driver driver = {
                .self = (void *)shards, .may_begin = any_may_begin, .begin = begin_of_two, .invoke = invoke};
            const struct sl_esm_record one = {.text = SL_LIT("{}"),
                                              .id = SL_LIT("1"),
                                              .item_key = SL_LIT("k"),
                                              .created_ms = 1700000000000,
                                              .available_ms = 1700000000000};
            struct sl_esm_settings settings;
            struct sl_clock_virtual clock;
            sl_esm_settings_init(&settings);
            settings.parallelization = lanes;
            sl_clock_virtual_init(&clock, 1700000000000000000, 0);
            struct sl_esm *esm = sl_esm_new(&settings, shards, 2, &clock, &driver);
            sl_esm_run(esm, 0);
            assert_int_equal(sl_esm_due_ms(esm, 0), INT64_MAX);
            memset(begun, 0, sizeof(begun));
            sl_esm_feed(esm, fed, &one, 1, 5);
            assert_int_equal(sl_esm_due_ms(esm, 5), 5);
            sl_esm_run(esm, 5);
            assert_int_equal(begun[fed], 1);
            assert_int_equal(begun[!fed], 0);
            assert_int_equal(sl_esm_left(esm, fed), 1);
            assert_int_equal(sl_esm_left(esm, !fed), 0);
            assert_ptr_equal(sl_esm_first_left(esm, fed), &one);
            assert_int_equal(sl_esm_next_ms(esm), INT64_MAX);
            sl_esm_destroy(esm);
        }
}

/* A batch that is new is not one that was sent, whatever became of the one before it. */
static void the_next_batch_was_not_sent(void **state)
{
    (void)state;
    struct world *w = new_world(1, RECORDS);
    for (size_t page = 0; page < 3; page++) {
        feed(w, page);
        assert_int_equal(w->n_running, 1);
        assert_false(w->was_sent);
        w->answer = NULL;
        end(w, 0);
        w->now_ms += 500;
        sl_esm_run(w->esm, w->now_ms);
        assert_int_equal(w->n_running, 1);
        assert_true(w->was_sent);
        w->answer = "{\"batchItemFailures\":[]}";
        end(w, 0);
        sl_esm_run(w->esm, w->now_ms);
        assert_int_equal(w->n_running, 0);
    }
    end_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_invocation_lasts_until_it_is_over),
                                       cmocka_unit_test(pages_come_and_go),
                                       cmocka_unit_test(a_retry_waits_and_says_that_it_is_one),
                                       cmocka_unit_test(the_first_that_waits_is_due),
                                       cmocka_unit_test(what_may_not_begin_waits),
                                       cmocka_unit_test(lanes_share_a_place),
                                       cmocka_unit_test(shards_are_fed_apart),
                                       cmocka_unit_test(the_next_batch_was_not_sent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
