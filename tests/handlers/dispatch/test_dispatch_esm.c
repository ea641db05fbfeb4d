/* Poison through the event source mapping. Where it cannot be parked, what the mapping gives up at last is
 * exactly the poison. Where it can, honest poison is parked, and a wrong configuration parks a few records.
 */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "esm/esm.h"

#include <stdio.h>
#include <stdlib.h>

#define CONFIG                                                                                               \
    "{'on_failure':'report','report_batch_item_failures':true,'max_parked':null,"                            \
    "'routes':[{'name':'r1','handler':'one'}]}"

#define PARKS "{'on_failure':'mem:dlq','report_batch_item_failures':true,"

/* Under sanitizers places are stepped over. */
#ifdef SL_ARENA_DEBUG
#define STRIDE 37
#else
#define STRIDE 1
#endif

struct course {
    struct rig *rig;
    struct sl_esm_record *records;
    size_t n;
    bool given_up[RIG_RECORDS];
    size_t n_given_up, invocations;
};

/* The mapping's batch is some stretch of the records: dispatch sees it as an event of its own. */
static void invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct course *c = self;
    struct rig *rig = c->rig;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_decode_options options = {.any_shape = false};
    sl_arena_reset(rig->arena);
    if (sl_batch_decode(inv->payload, rig->arena, &options, &rig->batch, &error) != SL_OK)
        fail_msg("the event does not decode: %s", error.text);
    rig_run(rig, 10000);
    c->invocations++;
    *out = (struct sl_esm_result){.outcome = rig->answer.is_error ? SL_ESM_FAILED : SL_ESM_ANSWERED,
                                  .body = sl_buffer_span(&rig->answer.body),
                                  .duration_ms = 1};
}

static void discarded(void *self, const struct sl_esm_discard *discard)
{
    struct course *c = self;
    for (size_t i = 0; i < discard->n; i++) {
        size_t index = (size_t)(discard->records[i] - c->records);
        assert_false(c->given_up[index]);
        c->given_up[index] = true;
        c->n_given_up++;
    }
}

static void run_course(struct course *c, int64_t batch_size, int64_t retries)
{
    struct sl_esm_settings settings;
    struct sl_clock_virtual clock;
    sl_clock_virtual_init(&clock, 1790000100000000000, 1);
    sl_esm_settings_init(&settings);
    settings.batch_size = batch_size;
    settings.max_retries = retries;
    settings.bisect = settings.report_failures = true;
    struct sl_esm_shard shard = {.id = "shard", .parent = -1, .records = c->records, .n = c->n};
    const struct sl_esm_driver driver = {.self = c, .invoke = invoke, .discarded = discarded};
    struct sl_esm *esm = sl_esm_new(&settings, &shard, 1, &clock, &driver);
    while (sl_esm_step(esm))
        assert_true(c->invocations < 20000);
    sl_esm_destroy(esm);
}

static struct sl_esm_record *records_of(size_t n)
{
    struct sl_esm_record *records = calloc(n, sizeof(*records));
    for (size_t i = 0; i < n; i++) {
        char *text = malloc(400), *id = malloc(16);
        snprintf(id, 16, "%zu", 1000 + i);
        snprintf(text, 400,
                 "{\"eventID\":\"e%zu\",\"eventName\":\"MODIFY\",\"eventSource\":\"aws:dynamodb\","
                 "\"dynamodb\":{\"Keys\":{\"PK\":"
                 "{\"S\":\"k%zu\"}},\"SequenceNumber\":\"%zu\",\"SizeBytes\":20,\"StreamViewType\":\"KEYS_"
                 "ONLY\"}}",
                 i, i % 5, 1000 + i);
        records[i] = (struct sl_esm_record){.text = sl_span_str(text),
                                            .id = sl_span_str(id),
                                            .created_ms = 1790000000000,
                                            .available_ms = 1790000000000};
    }
    return records;
}

static void free_records(struct sl_esm_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)records[i].text.ptr);
        free((char *)records[i].id.ptr);
    }
    free(records);
}

static void assert_only_poison_is_given_up(struct rig *rig, struct sl_esm_record *records, size_t n,
                                           const size_t *poison, size_t n_poison, bool marks)
{
    struct rig_handler *s = &rig->handlers[RIG_ONE];
    struct course *c = calloc(1, sizeof(*c));
    *c = (struct course){.rig = rig, .records = records, .n = n};
    s->marks = marks;
    for (size_t i = 0; i < n_poison; i++)
        s->plan[poison[i]] = RIG_POISON;
    run_course(c, 1000, 1);
    for (size_t i = 0; i < n; i++) {
        bool is_poison = s->plan[i] == RIG_POISON;
        if (c->given_up[i] != is_poison)
            fail_msg("record %zu of %zu was%s given up", i, n, is_poison ? " not" : "");
        assert_int_equal(s->times[i] > 0, !is_poison);
        s->plan[i] = RIG_GOOD;
    }
    assert_int_equal(c->n_given_up, n_poison);
    rig_forget(rig);
    free(c);
}

static void one_poison_record_is_given_up_at_every_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_esm_record *records = records_of(256);
    for (size_t n = 1; n <= 256; n++)
        for (size_t place = (n * 7) % STRIDE; place < n; place += STRIDE)
            assert_only_poison_is_given_up(rig, records, n, &place, 1, place % 2);
    free_records(records, 256);
    rig_destroy(rig);
}

static void two_and_three_poison_records_are_given_up_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_esm_record *records = records_of(256);
    uint64_t seed = 11;
    for (size_t a = 0; a < 12; a++)
        for (size_t b = a + 1; b < 12; b++)
            for (size_t d = b; d < 12; d += STRIDE) /* d = b: two of them */
                assert_only_poison_is_given_up(rig, records, 12, (const size_t[]){a, b, d}, d == b ? 2 : 3,
                                               d % 2);
    for (size_t n = 13; n <= 256; n += 1 + STRIDE / 4) {
        size_t a = sl_random_step(&seed) % (n - 2), b = a + 1 + sl_random_step(&seed) % (n - 2 - a);
        size_t d = b + 1 + sl_random_step(&seed) % (n - 1 - b);
        assert_only_poison_is_given_up(rig, records, n, (const size_t[]){a, b, d}, 2 + n % 2, n % 3 == 0);
    }
    free_records(records, 256);
    rig_destroy(rig);
}

/* Of a batch that is all poison each is given up, alone. */
static void a_batch_of_poison_is_given_up_one_by_one(void **state)
{
    (void)state;
    struct rig *rig = rig_new(CONFIG);
    struct sl_esm_record *records = records_of(64);
    size_t all[64];
    for (size_t i = 0; i < 64; i++)
        all[i] = i;
    for (size_t n = 1; n <= 64; n += 9)
        assert_only_poison_is_given_up(rig, records, n, all, n, false);
    free_records(records, 64);
    rig_destroy(rig);
}

/* ---- poison, or a wrong configuration ---- */

static const int64_t sizes[] = {1, 2, 3, 5, 7, 10, 11, 40, 100, 101, 1000, 10000};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Runs the plan through the mapping, in a new process; returns the number of parked records. */
static size_t parked_of(const unsigned char *plan, size_t n, int64_t batch_size, bool is_once_only,
                        bool marks, struct sl_esm_record *records, size_t *given_up)
{
    struct rig *rig = rig_new(is_once_only ? PARKS "'routes':[{'name':'r1','handler':'once'}]}"
                                           : PARKS "'routes':[{'name':'r1','handler':'one'}]}");
    struct rig_handler *s = &rig->handlers[is_once_only ? RIG_ONCE : RIG_ONE];
    struct course *c = calloc(1, sizeof(*c));
    *c = (struct course){.rig = rig, .records = records, .n = n};
    s->marks = marks;
    s->code = "MissingAttribute";
    memcpy(s->plan, plan, n);
    run_course(c, batch_size, 3);
    size_t parked = rig_port(rig, "dlq")->n;
    *given_up = c->n_given_up;
    for (size_t i = 0; i < n; i++)
        assert_true(plan[i] == RIG_POISON || c->given_up[i] || s->times[i]);
    free(c);
    rig_destroy(rig);
    return parked;
}

/* One wrong name rejects a share of the records. Whatever the size of the batches, and however often they are
 * delivered and halved, a few are parked before the route stops; the rest stays in the stream. */
static void a_wrong_name_parks_a_few(void **state)
{
    (void)state;
    static const struct {
        unsigned poison, of; /* of each `of` records so many */
        size_t most;         /* parked: 10, and one for each 4 that were applied before */
    } shares[] = {{1, 1, 10}, {5, 7, 11}, {1, 2, 14}, {3, 10, 27}};
    enum { N = 600 };
    struct sl_esm_record *records = records_of(N);
    for (size_t i = 0; i < SIZES * 4; i++) {
        const int64_t size = sizes[i / 4];
        const size_t share = i % 4;
        unsigned char plan[N];
        for (size_t k = 0; k < N; k++)
            plan[k] = k % shares[share].of < shares[share].poison ? RIG_POISON : RIG_GOOD;
        for (int kind = 0; kind < 4; kind++) {
            size_t given_up, parked = parked_of(plan, N, size, kind & 1, kind & 2, records, &given_up);
            if (parked > shares[share].most || given_up < N / 4 - 27)
                fail_msg("batches of %d, share %zu, kind %d: %zu parked, %zu given up", (int)size, share,
                         kind, parked, given_up);
        }
    }
    free_records(records, N);
}

/* A twentieth of the records is poison: scattered, and in runs of up to 40 when the process has seen some
 * records. All of it is parked, and nothing else. */
static void honest_poison_is_parked(void **state)
{
    (void)state;
    enum { N = 1200, WARM = 200 };
    struct sl_esm_record *records = records_of(N);
    uint64_t seed = 5;
    for (size_t i = 0; i < SIZES * 4; i++) {
        const int64_t size = sizes[i / 4];
        const size_t run = (size_t[]){1, 5, 20, 40}[i % 4];
        unsigned char plan[N] = {0};
        size_t poison = 0, given_up;
        for (size_t n = 0; n < N / 20; n += run) {
            size_t from = run == 1 ? 0 : WARM;
            from += sl_random_step(&seed) % (N - from - run);
            memset(plan + from, RIG_POISON, run);
        }
        for (size_t k = 0; k < N; k++)
            poison += plan[k] == RIG_POISON;
        for (int kind = 0; kind < 4; kind++) {
            size_t parked = parked_of(plan, N, size, kind & 1, kind & 2, records, &given_up);
            if (parked != poison || given_up)
                fail_msg("batches of %d, runs of %zu, kind %d: %zu of %zu parked, %zu given up", (int)size,
                         run, kind, parked, poison, given_up);
        }
    }
    free_records(records, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_poison_record_is_given_up_at_every_place),
        cmocka_unit_test(two_and_three_poison_records_are_given_up_alone),
        cmocka_unit_test(a_batch_of_poison_is_given_up_one_by_one),
        cmocka_unit_test(a_wrong_name_parks_a_few),
        cmocka_unit_test(honest_poison_is_parked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
