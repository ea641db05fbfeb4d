/* Backfill beside a stream, over random histories: the source is read while the stream goes on, sinks fail,
 * and the process is killed and goes on from an older place. At the end everything is as the table says,
 * where the rule of order holds; where it does not, backfill refuses. */
#include "data/backfill/backfill.h"

#include "base/error.h"
#include "handlers/pipeline/route.h"
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define BASE_MS ((int64_t)STAGE_TIME_S * 1000)
#define CHANGES 300
#define ITEMS   40
#define TOTALS                                                                                               \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','counters':[{'key':{'PK':"       \
    "'{status}'},'add':{'n':1},'when':{'status':{'S':[{'exists':true}]}}}]%s}"
#define REPLICA "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'%s}"
#define WHERE   ",'where':{'status':['OPEN','PAID']}"
#define CONFIG                                                                                               \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[" REPLICA "," TOTALS                 \
    ",{'name':'a','handler':'archive','to':'file:${DIR}/archive'}]}"

static const char *const modes[] = {
    "",    ",'guard':{'table':'guards'}",       ",'tombstones':{'table':'marks'}",
    WHERE, ",'guard':{'table':'guards'}" WHERE, ",'tombstones':{'table':'marks'}" WHERE};

/* ---- a world ---- */

struct world {
    uint64_t seed, chance;
    const char *mode;
    struct history h;
    struct stage *s;
    char *file;
    const char *names[1];
    size_t start, point;      /* the stream's first change; the items are as they were there, or later */
    size_t next;              /* change of the stream */
    struct sl_source *source; /* of the process that is running; NULL: none is */
    struct sl_backfill *b;
    char *state; /* as it was saved last; NULL: never */
    bool is_done;
    struct sl_backfill_options options;
};

static size_t draw(struct world *w, size_t n)
{
    return history_draw(&w->chance, n);
}

/* The item after the first `n` changes, NULL when it is not there. */
static const json_t *item_at(const struct history *h, size_t item, size_t n)
{
    const json_t *image = NULL;
    for (size_t i = 0; i < n && i < json_array_size(h->records); i++) {
        const json_t *change = json_object_get(json_array_get(h->records, i), "dynamodb");
        if (history_item(json_object_get(change, "Keys")) == item)
            image = json_object_get(change, "NewImage");
    }
    return image;
}

/* What a scan that begins at `point` sees: each item as it is when the scan comes to it. */
static void write_items(struct world *w, size_t spread)
{
    FILE *out = fopen(w->file, "w");
    assert_non_null(out);
    for (size_t item = 0; item < ITEMS; item++) {
        const json_t *image = item_at(&w->h, item, w->point + (spread ? draw(w, spread) : 0));
        char *text = image ? json_dumps(image, JSON_COMPACT) : NULL;
        if (text) {
            history_put_nul(text);
            fprintf(out, "{\"Item\":%s}\n", text);
        }
        free(text);
    }
    fclose(out);
}

static void make_world(struct world *w, uint64_t seed, size_t start, size_t point)
{
    char config[2048];
    *w = (struct world){
        .seed = seed, .chance = seed * 31, .mode = modes[seed % 6], .start = start, .point = point};
    snprintf(config, sizeof(config), CONFIG, w->mode, seed % 2 ? "" : ",'shards':2");
    history_make(&w->h, &(struct history_options){
                            .seed = seed, .changes = CHANGES, .items = ITEMS, .view = "NEW_AND_OLD_IMAGES"});
    w->s = stage_new(config, NULL);
    w->file = malloc(300);
    snprintf(w->file, 300, "%s/items.jsonl", w->s->folder);
    w->next = start;
    write_items(w, seed % 3 ? 60 : 0);
    w->options = (struct sl_backfill_options){.as_of_ms = BASE_MS + (int64_t)point,
                                              .consumer_since_ms = BASE_MS + (int64_t)start,
                                              .piece_bytes = 1 + draw(w, 3000)};
}

static void end_world(struct world *w)
{
    sl_backfill_close(w->b);
    sl_source_close(w->source);
    stage_destroy(w->s);
    history_clean_up(&w->h);
    free(w->state);
    free(w->file);
}

/* ---- processes ---- */

static enum sl_status begin(struct world *w, struct sl_error *error)
{
    const struct sl_call call = {.arena = w->s->arena, .deadline_ms = INT64_MAX};
    w->names[0] = w->file;
    struct sl_source_options options = {.sinks = &w->s->sinks};
    json_t *state = w->state ? json_loads(w->state, 0, NULL) : NULL;
    char *place = json_dumps(json_object_get(state, "place"), JSON_COMPACT);
    options.place = sl_span_str(place ? place : "");
    if (!place)
        options.place = (struct sl_span){NULL, 0};
    assert_int_equal(sl_source_keys_read("PK,SK", &options.keys, error), SL_OK);
    if (sl_source_open_files(&options, &(struct sl_source_files){.names = w->names, .n = 1}, &call,
                             &w->source, error) != SL_OK)
        fail_msg("%s", error->text);
    w->options.pipeline = w->s->p;
    w->options.source = w->source;
    w->options.clock = &w->s->clock.clock;
    enum sl_status status = sl_backfill_open(&w->options, &w->b, error);
    if (status == SL_OK && w->state)
        assert_int_equal(sl_backfill_read_state(w->b, sl_span_str(w->state), error), SL_OK);
    free(place);
    json_decref(state);
    return status;
}

static void save(struct world *w)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_backfill_write_state(w->b, &text);
    sl_buffer_add_char(&text, '\0');
    free(w->state);
    w->state = strdup(text.ptr);
    sl_buffer_clean_up(&text);
}

/* A kill, with or without a piece that is under way; the next process has the state that was saved. */
static void kill_process(struct world *w)
{
    sl_backfill_close(w->b);
    sl_source_close(w->source);
    w->b = NULL;
    w->source = NULL;
    stage_reopen(w->s, NULL);
}

static void step(struct world *w)
{
    struct sl_error error = {0};
    struct sl_backfill_step step;
    if (!w->b && begin(w, &error) != SL_OK)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed, error.text);
    enum sl_status status = sl_backfill_step(w->b, w->s->clock.ms + 60000, &step, &error);
    if (status != SL_OK && status != SL_RETRY)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed, error.text);
    w->s->clock.ms += step.wait_ms;
    w->is_done = step.is_done;
    if (draw(w, 3))
        save(w);
    if (!w->is_done && draw(w, 8) == 0)
        kill_process(w);
}

/* The stream's next batch, and sometimes an older one once more. (Other routes run too: the pipeline of the
 * function is another process's.) */
static void stream(struct world *w)
{
    size_t size = 1 + draw(w, 25);
    kill_process(w);
    for (size_t first = w->next; first != SIZE_MAX; size = 1 + draw(w, 20)) {
        char *event = history_event(&w->h, first, size);
        assert_true(stage_drive(w->s, event, 200));
        free(event);
        w->next = first + size > w->next ? first + size : w->next;
        first = draw(w, 3) ? SIZE_MAX : w->start + draw(w, w->next - w->start);
    }
    sl_arena_reset(w->s->arena);
}

static void run(struct world *w)
{
    /* The consumer may be late: it handles what was changed before the backfill began after it, too. */
    for (int turns = 0; !w->is_done || w->next < CHANGES; turns++) {
        assert_true(turns < 20000);
        if (w->next < CHANGES && (w->is_done || draw(w, 4) == 0))
            stream(w);
        else
            step(w);
    }
}

/* ---- what must be true ---- */

static bool is_wanted(const struct world *w, const json_t *item)
{
    const char *status = "";
    json_unpack((json_t *)item, "{s:{s:s}}", "status", "S", &status);
    return !strstr(w->mode, "where") || strcmp(status, "OPEN") == 0 || strcmp(status, "PAID") == 0;
}

static json_t *rows(struct stage *s, const char *table)
{
    char sql[100];
    json_t *list = json_array();
    snprintf(sql, sizeof(sql), "SELECT item FROM %s", table);
    char *text = stage_query(s, "db", sql);
    history_take_nul(text);
    for (char *row = text, *end; (end = strchr(row, '\n')); row = end + 1)
        json_array_append_new(list, json_loadb(row, (size_t)(end - row), 0, NULL));
    free(text);
    return list;
}

static bool is_replica_right(struct world *w)
{
    json_t *got = json_object(), *wanted = json_object(), *list = rows(w->s, "replica"), *item;
    const char *name;
    size_t i;
    json_array_foreach(list, i, item)
    {
        char key[32];
        snprintf(key, sizeof(key), "%zu", history_item(item));
        json_object_del(item, "sluice_order");
        json_object_del(item, "sluice_write");
        if (!json_object_get(item, "sluice_deleted"))
            json_object_set(got, key, item);
    }
    json_object_foreach(w->h.table, name, item) if (is_wanted(w, item)) json_object_set(wanted, name, item);
    bool is_right = json_equal(got, wanted);
    json_decref(list);
    json_decref(got);
    json_decref(wanted);
    return is_right;
}

static void count(json_t *counts, const char *status, json_int_t n)
{
    json_int_t sum = json_integer_value(json_object_get(counts, status)) + n;
    if (sum)
        json_object_set_new(counts, status, json_integer(sum));
    else
        json_object_del(counts, status);
}

static bool are_totals_right(struct world *w)
{
    json_t *got = json_object(), *wanted = json_object(), *list = rows(w->s, "totals"), *item;
    const char *name, *status, *n;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (json_unpack(item, "{s:{s:s},s:{s:s}}", "PK", "S", &status, "n", "N", &n) != 0)
            continue;
        char group[32];
        snprintf(group, sizeof(group), "%.*s", (int)strcspn(status, "#"), status);
        count(got, group, atoll(n));
    }
    json_object_foreach(w->h.table, name, item) if (json_unpack(item, "{s:{s:s}}", "status", "S", &status) ==
                                                    0) count(wanted, status, 1);
    bool is_right = json_equal(got, wanted);
    json_decref(list);
    json_decref(got);
    json_decref(wanted);
    return is_right;
}

static size_t lines_of(const char *path)
{
    size_t n = 0;
    char *text = test_read(path, NULL);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    free(text);
    return n;
}

/* Whatever happened in between, each record is counted once, in every route. */
static void check_counts(struct world *w)
{
    struct sl_error error = {0};
    if (!w->b)
        assert_int_equal(begin(w, &error), SL_OK);
    const struct sl_backfill_report *r = sl_backfill_report(w->b);
    assert_int_equal(r->n_routes, 3);
    for (size_t i = 0; i < 2; i++) {
        const struct sl_backfill_route *route = &r->routes[i];
        assert_null(route->left_out);
        assert_int_equal(route->applied + route->repeated + route->overtaken + route->outside + route->parked,
                         r->records);
    }
    assert_non_null(strstr(r->routes[2].left_out, "archive"));
}

/* ---- the tests ---- */

static void beside_the_stream(uint64_t seed)
{
    struct world w;
    size_t point = 20 + seed * 4 % (CHANGES - 60), start = point - seed % 20;
    make_world(&w, seed, start, point);
    w.s->chance = seed * 77;
    w.s->one_in = seed % 4 ? 6 : 0;
    run(&w);
    if (!is_replica_right(&w) || !are_totals_right(&w))
        fail_msg("seed %llu: the %s is not the table's", (unsigned long long)seed,
                 is_replica_right(&w) ? "sum" : "replica");
    if (!w.b) { /* what was not saved was done again */
        w.is_done = false;
        while (!w.is_done)
            step(&w);
    }
    check_counts(&w);
    assert_int_equal(sl_backfill_report(w.b)->records, lines_of(w.file));
    end_world(&w);
}

static uint64_t seeds = 60;

static void a_backfill_beside_the_stream_makes_what_the_table_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        beside_the_stream(seed);
}

/* Where changes since T were missed, some world ends wrong; backfill refuses each of them. */
static void a_consumer_that_began_too_late_is_refused(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;
        struct sl_error error = {0};
        make_world(&w, seed, 100, 60);
        assert_int_equal(begin(&w, &error), SL_REJECT);
        assert_string_equal(error.code, "OrderWrong");
        sl_source_close(w.source);
        w.source = NULL;
        sl_error_clear(&error);
        w.options.consumer_since_ms = 0;
        assert_int_equal(begin(&w, &error), SL_REJECT);
        assert_string_equal(error.code, "OrderUnknown");
        sl_source_close(w.source);
        w.source = NULL;
        w.options.any_order = true;
        run(&w);
        wrong += !is_replica_right(&w) || !are_totals_right(&w);
        end_world(&w);
    }
    assert_true(wrong > 0);
}

static void routes_are_chosen_or_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *code;
    } cases[] = {{"r", NULL}, {"a", "NotPerItem"}};
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        struct sl_error error = {0};
        make_world(&w, 3, 10, 20);
        bool *chosen = NULL;
        assert_int_equal(sl_route_choose(w.s->p, sl_span_str(cases[i].name), w.s->arena, &chosen, &error),
                         SL_OK);
        w.options.is_chosen = chosen;
        assert_int_equal(begin(&w, &error), cases[i].code ? SL_REJECT : SL_OK);
        if (cases[i].code)
            assert_string_equal(error.code, cases[i].code);
        else
            assert_string_equal(sl_backfill_report(w.b)->routes[1].left_out, "it was not named");
        end_world(&w);
    }
}

/* In mid-run, too: tombstones of 15 days are known for 14. */
static void what_takes_too_long_is_refused(void **state)
{
    (void)state;
    struct world w;
    struct sl_error error = {0};
    struct sl_backfill_step step;
    make_world(&w, 1, 10, 20);
    w.options.piece_bytes = 1;
    assert_int_equal(begin(&w, &error), SL_OK);
    assert_int_equal(sl_backfill_due_ms(w.b), w.options.as_of_ms + INT64_C(14) * 86400000);
    assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_OK);
    w.s->clock.ms += INT64_C(14) * 86400000 + 1000;
    assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_REJECT);
    assert_string_equal(error.code, "TooLate");
    end_world(&w);
}

static enum stage_fate fails(struct stage *s)
{
    (void)s;
    return STAGE_FAILS_BEFORE;
}

/* While a target fails, each pause is longer than the one before, up to half a minute; then it goes on. */
static void a_failing_target_is_given_time(void **state)
{
    (void)state;
    struct world w;
    struct sl_error error = {0};
    struct sl_backfill_step step;
    int64_t longest = 0;
    make_world(&w, 6, 10, 20);
    assert_int_equal(begin(&w, &error), SL_OK);
    w.s->at_table = fails;
    for (int i = 0; i < 12; i++) {
        sl_error_clear(&error);
        assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 1000, &step, &error), SL_RETRY);
        assert_true(step.wait_ms >= 100 && step.wait_ms <= 30000);
        assert_true(!step.is_done);
        if (i < 8) /* from 200 ms on, twice as long each time; half of it by chance */
            assert_true(step.wait_ms >= INT64_C(100) << i && step.wait_ms <= INT64_C(200) << i);
        longest = step.wait_ms > longest ? step.wait_ms : longest;
        assert_int_equal(sl_backfill_report(w.b)->records, 0);
    }
    assert_true(longest >= 15000);
    w.s->at_table = NULL;
    sl_error_clear(&error);
    assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_OK);
    assert_true(sl_backfill_report(w.b)->records > 0);
    end_world(&w);
}

/* What the service says was consumed, or an estimate, keeps to the limit. */
static void write_units_are_kept_to(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct world w;
        make_world(&w, 6 + (uint64_t)i, 10, 20);
        struct sl_error error = {0};
        w.options.write_units = 5;
        assert_int_equal(begin(&w, &error), SL_OK);
        int64_t began = w.s->clock.ms;
        for (struct sl_backfill_step step = {0}; !step.is_done; w.s->clock.ms += step.wait_ms)
            assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_OK);
        double s = (double)(w.s->clock.ms - began) / 1000, units = 0;
        const struct sl_backfill_report *r = sl_backfill_report(w.b);
        assert_true(r->records > 10);
        units = r->write_units > 0 ? r->write_units : (double)r->records * 4;
        if (units > 6 * (s + 40))
            fail_msg("%g units in %g s", units, s);
        assert_true(s > 2);
        end_world(&w);
    }
}

#define NONE "{\"applied\":0,\"repeated\":0,\"overtaken\":0,\"outside\":0,\"parked\":0}"

/* An item's own units, with its guard, and what comes with them. */
static void the_price_of_an_item_is_known(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed; /* of the mode: inline, guards aside */
        uint64_t bytes;
        double units;
    } cases[] = {{6, 100, 1 + 3}, {6, 874, 1 + 3}, {6, 875, 2 + 3}, {6, 10000, 10 + 3}, {7, 100, 2 + 2 + 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        struct sl_error error = {0};
        make_world(&w, cases[i].seed, 10, 20);
        assert_int_equal(begin(&w, &error), SL_OK);
        assert_true(sl_backfill_item_units(w.b, cases[i].bytes) == cases[i].units);
        end_world(&w);
    }
}

static void a_state_of_other_routes_is_refused(void **state)
{
    (void)state;
    static const char *const states[] = {
        "",
        "{}",
        "[]",
        "{\"asOf\":1,\"records\":-1,\"storedBytes\":0,\"routes\":{}}",
        "{\"asOf\":0,\"records\":1,\"storedBytes\":0,\"routes\":{}}",
        "{\"asOf\":0,\"records\":1,\"storedBytes\":0,\"routes\":{\"r\":{\"applied\":1}}}",
        "{\"asOf\":1700000000005,\"records\":1,\"storedBytes\":0,\"routes\":{\"r\":" NONE ",\"t\":" NONE
        "}}", /* before the consumer began */
        "{\"asOf\":0,\"records\":1,\"storedBytes\":0,\"routes\":{\"r\":" NONE ",\"t\":" NONE ",\"gone\":" NONE
        "}}"};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        struct world w;
        struct sl_error error = {0};
        make_world(&w, 1, 10, 20);
        assert_int_equal(begin(&w, &error), SL_OK);
        assert_int_equal(sl_backfill_read_state(w.b, sl_span_str(states[i]), &error), SL_REJECT);
        assert_true(error.text[0]);
        end_world(&w);
    }
}

/* ---- parking ---- */

/* Items that a route rejects are parked, each under its own name, and can be redriven. */
static void a_rejected_item_is_parked_and_redriven(void **state)
{
    (void)state;
    struct world w;
    struct sl_error error = {0};
    make_world(&w, 1, 10, 20);
    stage_destroy(w.s);
    w.s = stage_new("{'on_failure':'file:${DIR}/parked','routes':[{'name':'t','handler':'aggregate','to':"
                    "'sqlite:${DIR}/db?table=totals','counters':[{'key':{'PK':'all'},'add':{'n':'{n}'}}]}]}",
                    NULL);
    snprintf(w.file, 300, "%s/items.jsonl", w.s->folder);
    test_write(w.file,
               json("{'Item':{'PK':{'S':'a'},'SK':{'N':'1'},'n':{'N':'2'}}}\n"
                    "{'Item':{'PK':{'S':'b'},'SK':{'N':'1'}}}\n{'Item':{'PK':{'S':'c'},'SK':{'N':'1'}}}\n"));
    w.options.piece_bytes = 100000;
    assert_int_equal(begin(&w, &error), SL_OK);
    struct sl_backfill_step step;
    assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_OK);
    assert_true(step.is_done);
    const struct sl_backfill_route *route = &sl_backfill_report(w.b)->routes[0];
    assert_int_equal(route->applied, 1);
    assert_int_equal(route->parked, 2);
    char *names, *parked = stage_objects(w.s, "parked", &names);
    size_t n = 0;
    for (const char *at = names; (at = strchr(at, '\n')); at++)
        n++;
    assert_int_equal(n, 2); /* no two items share a name */
    json_t *message = json_loads(parked, JSON_DISABLE_EOF_CHECK, NULL),
           *record = json_object_get(message, "record");
    assert_non_null(record);
    json_t *image = json_object_get(json_object_get(record, "dynamodb"), "NewImage");
    json_object_set_new(image, "n", json_pack("{s:s}", "N", "40"));
    json_t *event = json_pack("{s:[O]}", "Records", record);
    char *text = json_dumps(event, JSON_COMPACT);
    sl_backfill_close(w.b);
    w.b = NULL;
    stage_reopen(w.s, NULL);
    stage_deliver(w.s, sl_span_str(text));
    assert_int_equal(w.s->answer.checkpoint, 1);
    char *sum = stage_query(
        w.s, "db", "SELECT item FROM totals WHERE item LIKE '%\"all\"%' AND item NOT LIKE '%ledger%'");
    assert_non_null(strstr(sum, "\"42\""));
    json_decref(event);
    json_decref(message);
    free(sum);
    free(text);
    free(names);
    free(parked);
    end_world(&w);
}

/* Without a place to park it, the backfill ends there, and nothing before it is lost. */
static void a_rejected_item_without_a_place_to_go_ends_it(void **state)
{
    (void)state;
    struct world w;
    struct sl_error error = {0};
    struct sl_backfill_step step;
    make_world(&w, 0, 10, 20);
    FILE *out = fopen(w.file, "a");
    assert_non_null(out);
    fprintf(out,
            "{\"Item\":{\"PK\":{\"S\":\"x\"},\"SK\":{\"N\":\"1\"},\"sluice_order\":{\"S\":\"mine\"}}}\n");
    fclose(out);
    w.options.piece_bytes = 1000000;
    assert_int_equal(begin(&w, &error), SL_OK);
    assert_int_equal(sl_backfill_step(w.b, w.s->clock.ms + 60000, &step, &error), SL_REJECT);
    assert_string_equal(error.code, "NoGuard");
    end_world(&w);
}

/* test_backfill [SEEDS]: so many worlds. */
int main(int argc, char **argv)
{
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backfill_beside_the_stream_makes_what_the_table_says),
        cmocka_unit_test(a_consumer_that_began_too_late_is_refused),
        cmocka_unit_test(routes_are_chosen_or_refused_by_name),
        cmocka_unit_test(what_takes_too_long_is_refused),
        cmocka_unit_test(a_failing_target_is_given_time),
        cmocka_unit_test(write_units_are_kept_to),
        cmocka_unit_test(the_price_of_an_item_is_known),
        cmocka_unit_test(a_state_of_other_routes_is_refused),
        cmocka_unit_test(a_rejected_item_is_parked_and_redriven),
        cmocka_unit_test(a_rejected_item_without_a_place_to_go_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
