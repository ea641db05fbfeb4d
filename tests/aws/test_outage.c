/* A service that refuses everything for minutes, in each way that services have: applies end in time, few
 * requests are spent on it, nothing is taken for success, and afterwards all is written at full speed. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

static struct fault f;

#define ITEMS     300
#define APPLY_MS  20000
#define OUTAGE_MS 300000

struct outage {
    struct scripted_reply refusal;
    int64_t until_ms;
    size_t refused, taken;
    unsigned char times[ITEMS]; /* each item was taken so often */
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct outage *outage = arg;
    *reply = outage->refusal;
    if (f.clock.ms < outage->until_ms) {
        outage->refused++;
        return;
    }
    const char *key = memmem(request->body.ptr, request->body.len, "\"item-", 6);
    assert_non_null(key);
    outage->times[strtoul(key + 6, NULL, 10)]++;
    outage->taken++;
    *reply = (struct scripted_reply){.is_honest = true};
}

static size_t apply_rest(struct sl_table_port *table, const bool *done, struct sl_table_op *ops,
                         struct sl_result *results, size_t *places)
{
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    size_t n = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        if (done[i])
            continue;
        const char *key = sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"item-%03zu\"}}", i);
        places[n] = i;
        ops[n++] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                        .key = sl_span_str(key),
                                        .item = sl_span_str(key),
                                        .tests = &absent,
                                        .n_tests = 1};
    }
    f.call.deadline_ms = f.clock.ms + APPLY_MS;
    table->apply(table, ops, n, results, &f.call);
    assert_in_range(f.clock.ms, 0, f.call.deadline_ms);
    return n;
}

/* As Lambda does: what failed is retried, a second later. */
static void write_all(struct outage *outage)
{
    static struct sl_table_op ops[ITEMS];
    static struct sl_result results[ITEMS];
    static size_t places[ITEMS];
    bool done[ITEMS] = {false};
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    size_t left = ITEMS, applies = 0;
    for (; left; applies++) {
        assert_in_range(applies, 0, 400);
        size_t n = apply_rest(table, done, ops, results, places), good = 0;
        for (size_t i = 0; i < n; i++) {
            assert_true(results[i].status == SL_OK || results[i].status == SL_RETRY);
            assert_int_equal(results[i].status == SL_OK, outage->times[places[i]] > 0);
            done[places[i]] = results[i].status == SL_OK;
            good += done[places[i]];
        }
        left -= good;
        f.clock.ms += 1000;
    }
    table->close(table);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(outage->times[i], 1);
    /* the first apply spends the tokens of 100 retries, at most one wave more; the others what is left */
    assert_in_range(outage->refused, 1, 200 + 10 * applies);
}

static void an_outage_of_minutes_ends_well(void **state)
{
    (void)state;
    static const struct scripted_reply refusals[] = {
        {.status = 400, .body = SL_LIT("{\"__type\":\"ThrottlingException\"}")},
        {.status = 400, .body = SL_LIT("{\"__type\":\"ProvisionedThroughputExceededException\"}")},
        {.status = 429, .body = SL_LIT("")},
        {.status = 503, .body = SL_LIT("<html>busy</html>")},
        {.status = 500, .body = SL_LIT("{\"__type\":\"InternalServerError\"}")},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct outage outage = {.refusal = refusals[i]};
        fault_open(&f, answer, &outage);
        outage.until_ms = f.clock.ms + OUTAGE_MS;
        write_all(&outage);
        fault_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_of_minutes_ends_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
