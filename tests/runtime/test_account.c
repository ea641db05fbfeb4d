/* What is said of invocations: summaries and metrics of random ones, against the pipeline's own counts and
 * sums made here. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "runtime/account.h"
#include "runtime/sums.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUTES 4

/* The last route never takes a record. */
static const char config[] =
    "{'on_failure':'mem:parked','report_batch_item_failures':true,'routes':[{'name':'a','handler':'one'},"
    "{'name':'b_2','handler':'two'},{'name':'c','handler':'three','on_failure':'report'},"
    "{'name':'d','handler':'one','when':{'events':['REMOVE']}}]}";
static const char *const names[ROUTES] = {"a", "b_2", "c", "d"};

struct world {
    struct rig *rig;
    struct sl_log log;
    struct sl_settings settings;
    struct sl_account *account;
    FILE *file;
    long at; /* what was read of it */
    uint64_t random;
    struct sl_sums one, all; /* by the test's own count */
    struct sl_route_stats routes[ROUTES], sums[ROUTES];
    int64_t began_ms;
};

static unsigned roll(struct world *w, unsigned below)
{
    return (unsigned)(sl_random_step(&w->random) % below);
}

static void world_open(struct world *w, uint64_t seed, enum sl_log_format format, int64_t metrics_ms)
{
    *w = (struct world){.random = seed, .rig = rig_new(config), .file = tmpfile()};
    assert_non_null(w->file);
    w->one.routes = w->routes;
    w->all.routes = w->sums;
    w->all.age_ms = -1;
    sl_log_init(&w->log, fileno(w->file), SL_INFO, format, &w->rig->clock.clock);
    w->settings = (struct sl_settings){
        .function_name = "function", .has_summary = true, .metrics_ms = metrics_ms, .log_format = format};
    w->account = sl_account_open(&w->settings, &w->log, w->rig->p);
}

static void world_close(struct world *w)
{
    sl_log_clean_up(&w->log);
    fclose(w->file);
    rig_destroy(w->rig);
}

/* The next line of the log; NULL: there is none. */
static char *next_line(struct world *w)
{
    static char line[65536];
    fseek(w->file, w->at, SEEK_SET);
    if (!fgets(line, sizeof(line), w->file))
        return NULL;
    w->at = ftell(w->file);
    return line;
}

static json_t *next_json(struct world *w)
{
    char *line = next_line(w);
    json_t *json = line ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (line && !json)
        fail_msg("not JSON: %s", line);
    return json;
}

/* ---- what happens ---- */

static void invent_invocation(struct world *w, struct sl_invoked *invoked)
{
    size_t n = roll(w, 5) ? roll(w, 30) : 0;
    for (size_t h = RIG_ONE; h <= RIG_THREE; h++)
        for (size_t i = 0; i < n; i++) {
            unsigned fate = roll(w, 12);
            w->rig->handlers[h].plan[i] = fate == 0 ? RIG_POISON : fate == 1 ? RIG_OUTAGE : RIG_GOOD;
            w->rig->handlers[h].marks = true;
            w->rig->handlers[h].takes_ms = (int64_t)roll(w, 4);
        }
    rig_event(w->rig, n, NULL);
    rig_run(w->rig, 60000);
    int64_t age = (int64_t)roll(w, 100000) - 1000, now_ns = w->log.clock->wall_ns(w->log.clock);
    *invoked = (struct sl_invoked){.records = n,
                                   .created_ns = roll(w, 3) ? now_ns - age * 1000000 : 0,
                                   .decode_ns = roll(w, 1000000000),
                                   .parked = w->rig->answer.parked,
                                   .is_failed = roll(w, 2)};
    w->one.invocations = 1;
    w->one.records = n;
    w->one.parked = invoked->parked;
    w->one.failed = invoked->is_failed;
    w->one.decode_ns = invoked->decode_ns;
    w->one.age_ms = invoked->created_ns == 0 ? -1 : age < 0 ? 0 : age;
    for (size_t i = 0; i < ROUTES; i++)
        w->routes[i] = sl_pipeline_stats(w->rig->p, i);
}

static void add_up(struct world *w)
{
    w->all.invocations++;
    w->all.records += w->one.records;
    w->all.parked += w->one.parked;
    w->all.failed += w->one.failed;
    w->all.decode_ns += w->one.decode_ns;
    w->all.age_ms = w->one.age_ms > w->all.age_ms ? w->one.age_ms : w->all.age_ms;
    for (size_t i = 0; i < ROUTES; i++) {
        w->sums[i].matched += w->routes[i].matched;
        w->sums[i].applied += w->routes[i].applied;
        w->sums[i].parked += w->routes[i].parked;
        w->sums[i].failed += w->routes[i].failed;
        w->sums[i].skipped += w->routes[i].skipped;
        w->sums[i].bytes += w->routes[i].bytes;
        w->sums[i].handle_ns += w->routes[i].handle_ns;
        w->sums[i].sink_ns += w->routes[i].sink_ns;
    }
}

static void forget_sums(struct world *w)
{
    memset(w->sums, 0, sizeof(w->sums));
    w->all = (struct sl_sums){.age_ms = -1, .routes = w->sums};
}

/* ---- what is said ---- */

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        fail_msg("no number \"%s\"", name);
    return json_number_value(value);
}

static void is_ms(const json_t *object, const char *name, uint64_t ns)
{
    assert_true(number(object, name) * 1000 + 0.5 >= (double)(ns / 1000));
    assert_true(number(object, name) * 1000 - 0.5 <= (double)(ns / 1000));
}

static void is_count(const json_t *object, const char *name, uint64_t n)
{
    assert_int_equal((uint64_t)number(object, name), n);
}

static void route_is(const json_t *object, const struct sl_route_stats *r, bool is_metric)
{
    assert_int_equal(r->matched, r->applied + r->parked + r->failed + r->skipped);
    is_count(object, is_metric ? "Matched" : "matched", r->matched);
    is_count(object, is_metric ? "Applied" : "applied", r->applied);
    is_count(object, is_metric ? "Parked" : "parked", r->parked);
    is_count(object, is_metric ? "Failed" : "failed", r->failed);
    is_count(object, is_metric ? "Skipped" : "skipped", r->skipped);
    is_count(object, is_metric ? "Bytes" : "bytes", r->bytes);
    is_ms(object, is_metric ? "HandleMs" : "handleMs", r->handle_ns);
    is_ms(object, is_metric ? "SinkMs" : "sinkMs", r->sink_ns);
}

static void summary_is(struct world *w)
{
    json_t *said = next_json(w), *routes = json_object_get(said, "routes");
    size_t shown = 0;
    assert_non_null(said);
    is_count(said, "records", w->one.records);
    is_ms(said, "decodeMs", w->one.decode_ns);
    assert_true(number(said, "peakMemoryMB") > 0);
    assert_int_equal(json_object_get(said, "iteratorAgeMs") != NULL, w->one.age_ms >= 0);
    if (w->one.age_ms >= 0)
        is_count(said, "iteratorAgeMs", (uint64_t)w->one.age_ms);
    for (size_t i = 0; i < ROUTES; i++) {
        if (!w->routes[i].matched)
            continue;
        const json_t *route = json_array_get(routes, shown++);
        assert_string_equal(json_string_value(json_object_get(route, "name")), names[i]);
        route_is(route, &w->routes[i], false);
    }
    assert_int_equal(json_array_size(routes), shown);
    json_decref(said);
}

/* Each number that is called a metric is there, and is charged once. */
static void metrics_are_named(const json_t *document, size_t wanted)
{
    const json_t *directive = json_array_get(
                     json_object_get(json_object_get(document, "_aws"), "CloudWatchMetrics"), 0),
                 *list = json_object_get(directive, "Metrics"), *metric;
    size_t i;
    assert_string_equal(json_string_value(json_object_get(directive, "Namespace")), "Sluice");
    assert_int_equal(json_array_size(list), wanted);
    json_array_foreach(list, i, metric)(void)
        number(document, json_string_value(json_object_get(metric, "Name")));
}

static void metrics_are(struct world *w)
{
    json_t *said = next_json(w);
    uint64_t handle_ns = 0, sink_ns = 0;
    assert_non_null(said);
    assert_string_equal(json_string_value(json_object_get(said, "Function")), "function");
    for (size_t i = 0; i < ROUTES; i++)
        handle_ns += w->sums[i].handle_ns, sink_ns += w->sums[i].sink_ns;
    is_count(said, "Records", w->all.records);
    is_count(said, "Parked", w->all.parked);
    is_count(said, "FailedBatches", w->all.failed);
    is_count(said, "Invocations", w->all.invocations);
    is_ms(said, "DecodeMs", w->all.decode_ns);
    is_ms(said, "HandleMs", handle_ns);
    is_ms(said, "SinkMs", sink_ns);
    assert_true(number(said, "PeakMemoryMB") > 0);
    assert_int_equal(json_object_get(said, "IteratorAgeMs") != NULL, w->all.age_ms >= 0);
    if (w->all.age_ms >= 0)
        is_count(said, "IteratorAgeMs", (uint64_t)w->all.age_ms);
    metrics_are_named(said, 8 + (w->all.age_ms >= 0));
    json_decref(said);
    for (size_t i = 0; i < ROUTES; i++) {
        if (!w->sums[i].matched)
            continue;
        said = next_json(w);
        assert_string_equal(json_string_value(json_object_get(said, "Route")), names[i]);
        route_is(said, &w->sums[i], true);
        metrics_are_named(said, 7);
        json_decref(said);
    }
    forget_sums(w);
}

/* ---- the tests ---- */

static void each_invocation_is_said_as_it_was(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, 1, SL_LOG_JSON, 0);
    for (int i = 0; i < 200; i++) {
        struct sl_invoked invoked;
        invent_invocation(&w, &invoked);
        add_up(&w);
        sl_account_add(w.account, &invoked);
        sl_pipeline_stats_reset(w.rig->p);
        summary_is(&w);
        metrics_are(&w);
        assert_null(next_line(&w));
    }
    sl_account_close(w.account);
    assert_null(next_line(&w));
    world_close(&w);
}

/* Sums over a time are written with the first invocation at or after its end, and what is left at the close.
 */
static void sums_over_a_time_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world w;
        world_open(&w, seed, SL_LOG_JSON, 5000);
        w.settings.has_summary = false;
        for (int i = 0; i < 60; i++) {
            struct sl_invoked invoked;
            invent_invocation(&w, &invoked);
            int64_t now_ms = w.rig->clock.ms;
            w.began_ms = w.all.invocations ? w.began_ms : now_ms;
            add_up(&w);
            sl_account_add(w.account, &invoked);
            sl_pipeline_stats_reset(w.rig->p);
            if (now_ms - w.began_ms >= 5000)
                metrics_are(&w);
            assert_null(next_line(&w));
            /* Often so that the time is just over, or is not. */
            w.rig->clock.ms =
                roll(&w, 2) ? w.rig->clock.ms + roll(&w, 3000) : w.began_ms + 4999 + roll(&w, 2);
        }
        sl_account_close(w.account);
        if (w.all.invocations)
            metrics_are(&w);
        assert_null(next_line(&w));
        world_close(&w);
    }
}

/* The number after a label, in thousandths; -1: the label is not there. */
static int64_t after(const char *text, const char *label)
{
    const char *at = text ? strstr(text, label) : NULL;
    return at ? (int64_t)(strtod(at + strlen(label), NULL) * 1000 + 0.5) : -1;
}

/* The words of docs/METRICS.md. */
static void text_is(struct world *w, const char *line)
{
    assert_int_equal(after(line, "records "), 1000 * w->one.records);
    assert_int_equal(after(line, "decode "), w->one.decode_ns / 1000);
    assert_true(after(line, "peak memory ") > 0);
    assert_int_equal(after(line, "oldest record "), w->one.age_ms);
    for (size_t k = 0; k < ROUTES; k++) {
        const struct sl_route_stats *r = &w->routes[k];
        char name[32];
        snprintf(name, sizeof(name), "; %s: ", names[k]);
        const char *said = strstr(line, name);
        assert_int_equal(said != NULL, r->matched > 0);
        if (!said)
            continue;
        assert_int_equal(after(said, "matched "), 1000 * r->matched);
        assert_int_equal(after(said, "applied "), 1000 * r->applied);
        assert_int_equal(after(said, "parked "), 1000 * r->parked);
        assert_int_equal(after(said, "failed "), 1000 * r->failed);
        assert_int_equal(after(said, "skipped "), 1000 * r->skipped);
        assert_int_equal(after(said, "bytes "), 1000 * r->bytes);
        assert_int_equal(after(said, "handle "), r->handle_ns / 1000);
        assert_int_equal(after(said, "sinks "), r->sink_ns / 1000);
    }
}

static void the_summary_as_text_has_the_same_numbers(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, 7, SL_LOG_TEXT, SL_METRICS_OFF);
    for (int i = 0; i < 100; i++) {
        struct sl_invoked invoked;
        invent_invocation(&w, &invoked);
        sl_account_add(w.account, &invoked);
        sl_pipeline_stats_reset(w.rig->p);
        char *line = next_line(&w);
        assert_non_null(line);
        text_is(&w, line);
        assert_null(next_line(&w));
    }
    sl_account_close(w.account);
    assert_null(next_line(&w));
    world_close(&w);
}

static void a_work_item_has_no_summary_and_silence_is_silent(void **state)
{
    (void)state;
    struct world w;
    struct sl_invoked invoked;
    world_open(&w, 9, SL_LOG_JSON, SL_METRICS_OFF);
    invent_invocation(&w, &invoked);
    invoked.is_work = true;
    sl_account_add(w.account, &invoked);
    assert_null(next_line(&w));
    invoked.is_work = false;
    w.settings.has_summary = false;
    sl_account_add(w.account, &invoked);
    assert_null(next_line(&w));
    w.settings.has_summary = true;
    w.log.level = SL_WARN;
    sl_account_add(w.account, &invoked);
    assert_null(next_line(&w));
    sl_account_close(w.account);
    sl_account_close(NULL);
    assert_null(next_line(&w));
    world_close(&w);
}

/* The first invocation of a process, and no other. */
static void a_cold_start_is_counted_once(void **state)
{
    (void)state;
    struct world w;
    struct sl_invoked invoked;
    world_open(&w, 11, SL_LOG_JSON, 0);
    w.settings.has_summary = false;
    for (int i = 0; i < 5; i++) {
        invent_invocation(&w, &invoked);
        sl_account_add(w.account, &invoked);
        sl_pipeline_stats_reset(w.rig->p);
        json_t *said = next_json(&w);
        is_count(said, "ColdStart", i == 0);
        json_decref(said);
        while (next_line(&w)) {
        }
    }
    sl_account_close(w.account);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_invocation_is_said_as_it_was),
        cmocka_unit_test(sums_over_a_time_lose_nothing),
        cmocka_unit_test(the_summary_as_text_has_the_same_numbers),
        cmocka_unit_test(a_work_item_has_no_summary_and_silence_is_silent),
        cmocka_unit_test(a_cold_start_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
