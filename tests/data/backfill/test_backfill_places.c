/* Where a backfill goes on: from places of many segments and of keys with any bytes, only with routes that
 * are configured as they were; and what it holds and says while nothing can be written. */
#include "data/backfill/backfill.h"

#include "base/error.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS 600
#define ITEMS    1500
#define CONFIG                                                                                               \
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'sqlite:${DIR}/"                \
    "db?table=copy'}]}"

struct run {
    struct stage *s;
    char target[300];
    struct sl_source *source;
    struct sl_backfill *b;
    struct sl_backfill_options options;
    char *state; /* as it was saved last; NULL: never */
};

static struct sl_call call_of(struct run *r)
{
    return (struct sl_call){.arena = r->s->arena, .deadline_ms = r->s->clock.ms + 60000};
}

/* Keys that are long in JSON: half of their bytes are NUL. */
static void fill(struct run *r)
{
    struct sl_table_port *port;
    assert_int_equal(sl_target_table(&r->s->sinks, sl_span_str(r->target), &port, NULL), SL_OK);
    for (int i = 0; i < ITEMS; i++) {
        struct sl_call call = call_of(r);
        struct sl_result result;
        struct sl_table_op op = {.verb = SL_TABLE_PUT};
        op.key = sl_span_str(json_printf("{'PK':{'S':'\\u0000a\\u0000-%d'},'SK':{'N':'1'}}", i));
        op.item = op.key;
        port->apply(port, &op, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        sl_arena_reset(r->s->arena);
    }
    port->close(port);
}

static void set_up(struct run *r)
{
    *r = (struct run){.s = stage_new(CONFIG, NULL), .options = {.any_order = true, .piece_bytes = 1}};
    snprintf(r->target, sizeof(r->target), "sqlite:%s/source?table=orders", r->s->folder);
    fill(r);
}

static void leave(struct run *r)
{
    sl_backfill_close(r->b);
    sl_source_close(r->source);
    r->b = NULL;
    r->source = NULL;
}

static void clean_up(struct run *r)
{
    leave(r);
    stage_destroy(r->s);
    free(r->state);
}

static enum sl_status begin(struct run *r, struct sl_error *error)
{
    struct sl_call call = call_of(r);
    json_t *state = r->state ? json_loads(r->state, JSON_ALLOW_NUL, NULL) : NULL;
    char *place = json_dumps(json_object_get(state, "place"), JSON_COMPACT);
    const struct sl_source_options options = {.sinks = &r->s->sinks,
                                              .place = place ? sl_span_str(place) : sl_span(NULL, 0)};
    const struct sl_source_scan scan = {.target = r->target, .n = SEGMENTS, .of = SEGMENTS};
    assert_true(!r->state || state);
    assert_int_equal(sl_source_open_scan(&options, &scan, &call, &r->source, error), SL_OK);
    r->options.pipeline = r->s->p;
    r->options.source = r->source;
    r->options.clock = &r->s->clock.clock;
    enum sl_status status = sl_backfill_open(&r->options, &r->b, error);
    if (status == SL_OK && r->state)
        status = sl_backfill_read_state(r->b, sl_span_str(r->state), error);
    sl_arena_reset(r->s->arena);
    free(place);
    json_decref(state);
    return status;
}

static void save(struct run *r)
{
    struct sl_buffer text;
    sl_buffer_init(&text, SL_BACKFILL_STATE_BYTES);
    sl_backfill_write_state(r->b, &text);
    assert_true(!text.failed);
    free(r->state);
    r->state = strndup(text.ptr, text.len);
    sl_buffer_clean_up(&text);
}

static bool steps(struct run *r, size_t n)
{
    struct sl_backfill_step step = {0};
    for (size_t i = 0; i < n && !step.is_done; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (sl_backfill_step(r->b, r->s->clock.ms + 60000, &step, &error) != SL_OK)
            fail_msg("%s", error.text);
        assert_true(step.has_moved || i == 0);
        r->s->clock.ms += step.wait_ms;
    }
    return step.is_done;
}

/* ---- the tests ---- */

static void a_place_of_many_segments_is_kept_whole(void **state)
{
    (void)state;
    struct run r;
    struct sl_error error = SL_NO_ERROR;
    set_up(&r);
    assert_int_equal(begin(&r, &error), SL_OK);
    assert_false(steps(&r, SEGMENTS)); /* one item of each: now all of them have a key */
    save(&r);
    assert_true(strlen(r.state) > 2 * SL_SOURCE_PLACE_BYTES);
    leave(&r);
    stage_reopen(r.s, NULL);
    if (begin(&r, &error) != SL_OK)
        fail_msg("%s", error.text);
    assert_true(sl_backfill_report(r.b)->records > 0);
    assert_true(steps(&r, ITEMS + SEGMENTS + 1));
    assert_int_equal(sl_backfill_report(r.b)->records, ITEMS);
    char *n = stage_query(r.s, "db", "SELECT count(*) FROM copy");
    assert_int_equal(strtol(n, NULL, 10), ITEMS);
    free(n);
    clean_up(&r);
}

/* What was written to another target, or under another epoch or condition, is not there. */
static void other_configurations_do_not_go_on(void **state)
{
    (void)state;
    static const struct {
        const char *was, *is;
        enum sl_status status;
    } cases[] = {{"table=copy", "table=other", SL_REJECT},
                 {"'name':'r'", "'name':'r','epoch':1", SL_REJECT},
                 {"'name':'r'", "'name':'r','where':{'PK':['x']}", SL_REJECT},
                 {"'name':'r'", "'name':'r','guard':{'table':'guards'}", SL_REJECT},
                 {"'name':'r'", "'name':'other'", SL_REJECT},
                 {"'on_failure':'report'", "'on_failure':'file:${DIR}/parked'", SL_OK},
                 {"'name':'r'", "'name':'r','on_failure':'file:${DIR}/parked'", SL_OK},
                 {"'name':'r',", "'name':'r', ", SL_OK}};
    struct run r;
    struct sl_error error = SL_NO_ERROR;
    set_up(&r);
    assert_int_equal(begin(&r, &error), SL_OK);
    assert_false(steps(&r, 3));
    save(&r);
    leave(&r);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[1000];
        const char *at = strstr(CONFIG, cases[i].was);
        assert_non_null(at);
        snprintf(config, sizeof(config), "%.*s%s%s", (int)(at - CONFIG), CONFIG, cases[i].is,
                 at + strlen(cases[i].was));
        sl_error_clear(&error);
        stage_reopen(r.s, config);
        if (begin(&r, &error) != cases[i].status)
            fail_msg("%s: %s", cases[i].is, error.text);
        assert_string_equal(error.code, cases[i].status == SL_OK ? "" : "OtherRoutes");
        leave(&r);
    }
    clean_up(&r);
}

/* T is the time at which the source shows the table, however late a time is given. */
static void a_source_knows_its_time_better(void **state)
{
    (void)state;
    struct run r;
    struct sl_error error = SL_NO_ERROR;
    set_up(&r);
    int64_t now_ms = (int64_t)STAGE_TIME_S * 1000;
    r.options.any_order = false;
    r.options.as_of_ms = now_ms + 3600000;
    r.options.consumer_since_ms =
        now_ms + 60000; /* after the scan began: what was deleted before is not known */
    assert_int_equal(begin(&r, &error), SL_REJECT);
    assert_string_equal(error.code, "OrderWrong");
    leave(&r);
    r.options.as_of_ms = now_ms - 60000;
    r.options.consumer_since_ms = now_ms - 60000;
    assert_int_equal(begin(&r, &error), SL_OK);
    assert_int_equal(sl_backfill_report(r.b)->as_of_ms, now_ms - 60000);
    clean_up(&r);
}

static enum stage_fate fails(struct stage *s)
{
    (void)s;
    return STAGE_FAILS_BEFORE;
}

/* However often a piece is tried, it is held once. Neither a try nor a wait is progress. */
static void a_piece_that_cannot_be_written_costs_no_more_with_time(void **state)
{
    (void)state;
    struct run r;
    struct sl_error error = SL_NO_ERROR;
    set_up(&r);
    r.options.piece_bytes = 200000;
    r.options.write_units = 1;
    assert_int_equal(begin(&r, &error), SL_OK);
    r.s->at_table = fails;
    size_t held = 0, tries = 0;
    for (int i = 0; i < 2000; i++) {
        struct sl_backfill_step step;
        sl_error_clear(&error);
        enum sl_status status = sl_backfill_step(r.b, r.s->clock.ms + 60000, &step, &error);
        assert_true(status == SL_RETRY || status == SL_OK);
        assert_false(step.has_moved || step.is_done);
        r.s->clock.ms += step.wait_ms;
        tries += status == SL_RETRY;
        if (i == 100)
            held = mallinfo2().uordblks;
    }
    assert_true(tries > 100);
    assert_true(mallinfo2().uordblks < held + 1000000);
    clean_up(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_of_many_segments_is_kept_whole),
        cmocka_unit_test(other_configurations_do_not_go_on),
        cmocka_unit_test(a_source_knows_its_time_better),
        cmocka_unit_test(a_piece_that_cannot_be_written_costs_no_more_with_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
