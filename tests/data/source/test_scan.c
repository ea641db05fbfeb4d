/* A table's scan as a source: every item once, in segments, resumed anywhere, within a budget. Over SQLite,
 * and over DynamoDB Local when it runs. */
#include "tests/data/source/pieces.h"

#include "base/buffer.h"
#include "streams/record.h"
#include "tests/support/aws_call.h"

#include "sinks/services.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ITEMS 300

static char local[300], remote[100];

struct table {
    const char *target;
    struct sl_source_scan scan;
    const char *keys;
};

static enum sl_status open_table(void *self, struct sl_span place, struct sl_source **out,
                                 struct sl_error *error)
{
    struct table *t = self;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_source_options options = {.sinks = &test_sinks, .place = place};
    if (t->keys)
        assert_int_equal(sl_source_keys_read(t->keys, &options.keys, NULL), SL_OK);
    t->scan.target = t->target;
    enum sl_status status = sl_source_open_scan(&options, &t->scan, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

static void fill(const char *target)
{
    struct sl_table_port *port;
    assert_int_equal(sl_target_table(&test_sinks, sl_span_str(target), &port, NULL), SL_OK);
    for (int i = 0; i < ITEMS; i++) {
        struct sl_arena *arena = sl_arena_new(4096);
        struct sl_call call = test_call(arena);
        struct sl_result result;
        struct sl_table_op op = {.verb = SL_TABLE_PUT};
        op.key = sl_span_str(json_printf("{'PK':{'S':'p\\u00e9-%d'},'SK':{'N':'%d'}}", i % 7, i));
        op.item = sl_span_str(json_printf("{'PK':{'S':'p\\u00e9-%d'},'SK':{'N':'%d'},'text':{'S':'%0*d'}}",
                                          i % 7, i, 10 + i, i));
        port->apply(port, &op, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        sl_arena_destroy(arena);
    }
    port->close(port);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each item once: segments come in any order. */
static void assert_all(struct gathered g)
{
    char *lines[ITEMS + 1], *rest = g.text;
    size_t n = 0;
    assert_string_equal(g.error.text, "");
    assert_int_equal(g.n, ITEMS);
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        lines[n++] = strstr(line, json("'dynamodb':"));
    assert_int_equal(n, ITEMS);
    qsort(lines, n, sizeof(lines[0]), compare);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(lines[i], lines[i - 1]);
    gathered_clean_up(&g);
}

static const char *const *targets(void)
{
    static const char *list[3];
    list[0] = local;
    list[1] = remote[0] ? remote : NULL;
    return list;
}

static void every_item_comes_once(void **state)
{
    (void)state;
    static const uint32_t segments[] = {1, 2, 5, 40};
    for (const char *const *target = targets(); *target; target++)
        for (size_t i = 0; i < 4; i++) {
            struct table t = {.target = *target, .scan = {.n = segments[i], .of = segments[i]}};
            assert_all(gather(open_table, &t, SL_SOURCE_PIECE_BYTES, false));
            assert_all(gather(open_table, &t, 1, false));
            assert_all(gather(open_table, &t, 1, true));
            if (*target == local)
                assert_all(gather_hurried(open_table, &t, 1, true));
        }
}

static void a_work_item_has_a_segment_of_its_own(void **state)
{
    (void)state;
    for (const char *const *target = targets(); *target; target++) {
        size_t n = 0;
        for (uint32_t k = 0; k < 4; k++) {
            struct table t = {.target = *target, .scan = {.first = k, .n = 1, .of = 4}, .keys = "SK,PK"};
            struct gathered g = gather(open_table, &t, SL_SOURCE_PIECE_BYTES, true);
            assert_string_equal(g.error.text, "");
            n += g.n;
            gathered_clean_up(&g);
        }
        assert_int_equal(n, ITEMS);
    }
}

static void it_is_known_when_it_began(void **state)
{
    (void)state;
    struct table t = {.target = local, .scan = {.n = 1, .of = 1}};
    struct sl_clock *clock = sl_clock_system();
    struct sl_source *source;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    struct sl_source_piece piece;
    int64_t before = clock->wall_ns(clock) / 1000000;
    assert_int_equal(open_table(&t, sl_span(NULL, 0), &source, NULL), SL_OK);
    int64_t time_ms = sl_source_facts(source)->time_ms;
    assert_true(time_ms >= before && time_ms <= clock->wall_ns(clock) / 1000000);
    assert_int_equal(sl_source_facts(source)->items, ITEMS);
    assert_int_equal(sl_source_pull(source, 1, &call, &piece, NULL), SL_OK);
    char *place = strndup(piece.place.ptr, piece.place.len);
    sl_source_close(source);
    usleep(5000);
    assert_int_equal(open_table(&t, sl_span_str(place), &source, NULL), SL_OK);
    assert_int_equal(sl_source_facts(source)->time_ms, time_ms);
    sl_source_close(source);
    free(place);
    sl_arena_destroy(arena);
}

static void refused(struct table t, const char *place, const char *code, const char *text)
{
    struct sl_source *source;
    struct sl_error error = SL_NO_ERROR;
    assert_int_not_equal(open_table(&t, place ? json_span(place) : sl_span(NULL, 0), &source, &error), SL_OK);
    assert_string_equal(error.code, code);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct table t = {.target = local, .scan = {.n = 1, .of = 1}};
    static const struct sl_source_scan wrong[] = {{.first = 4, .n = 1, .of = 4},
                                                  {.first = 3, .n = 2, .of = 4},
                                                  {.n = 0, .of = 1},
                                                  {.n = 1, .of = 0},
                                                  {.n = 1, .of = 1000001},
                                                  {.first = 2, .n = UINT32_MAX, .of = 4}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refused((struct table){.target = local, .scan = wrong[i]}, NULL, "InvalidSegment",
                "segments are counted from 0");
    t.keys = "nosuch";
    refused(t, NULL, "InvalidKeys", "its key attributes are PK,SK, not nosuch");
    t.keys = "PK,nosuch";
    refused(t, NULL, "InvalidKeys", "its key attributes are PK,SK, not PK,nosuch");
    t.keys = NULL;
    refused(t, "{'scan':'other','of':1}", "WrongPlace", "belongs to another source");
    static const char *const places[] = {"'of':1,'first':0,'time':1",
                                         "'of':2,'first':0,'time':1,'segments':[0]",
                                         "'of':1,'first':1,'time':1,'segments':[0]",
                                         "'of':1,'first':0,'segments':[0]",
                                         "'of':1,'first':0,'time':1,'segments':[0,0]",
                                         "'of':1,'first':0,'time':1,'segments':['x']"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        refused(t, json_printf("{'scan':'%s',%s}", local, places[i]), "WrongPlace", "is damaged");
}

/* Each page waits until the pages before it are paid for; a deadline that comes first leaves the place. Pages
 * that fly together, a second's budget at most, may be paid for after the end. */
static void a_budget_is_held(void **state)
{
    (void)state;
    if (!remote[0])
        return;
    struct sl_clock *clock = sl_clock_system();
    struct table t = {.target = remote, .scan = {.n = 3, .of = 3, .read_units = 4}};
    struct sl_source *source;
    struct sl_source_piece piece = {.is_last = false};
    double units = 0, last = 0;
    size_t n_late = 0;
    assert_int_equal(open_table(&t, sl_span(NULL, 0), &source, NULL), SL_OK);
    struct sl_arena *arena = sl_arena_new(4096);
    int64_t begin_ms = clock->now_ms(clock);
    while (!piece.is_last) {
        struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + 200};
        assert_int_equal(sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, NULL), SL_OK);
        assert_true(clock->now_ms(clock) < call.deadline_ms + 1000);
        assert_true(clock->now_ms(clock) - begin_ms < 30000);
        n_late += piece.batch.n == 0 && !piece.is_last;
        last = piece.units > 0 ? piece.units : last;
        units += piece.units;
        sl_arena_reset(arena);
    }
    int64_t took_ms = clock->now_ms(clock) - begin_ms;
    assert_true(units >= 12 && n_late > 0);
    assert_true((double)took_ms >= (units - last) / 4 * 1000 - 1000);
    sl_source_close(source);
    sl_arena_destroy(arena);
}

static int set_up(void **state)
{
    folder = test_folder();
    sinks_set_up(state);
    snprintf(local, sizeof(local), "sqlite:%s/t.db?table=orders", folder);
    fill(local);
    if (!getenv("DYNAMODB_ENDPOINT"))
        return 0;
    struct sl_arena *arena = sl_arena_new(4096);
    snprintf(remote, sizeof(remote), "dynamodb://sources-%d", (int)getpid());
    aws_call(&test_sinks, arena, &sl_service_dynamodb, "CreateTable",
             sl_arena_printf(
                 arena,
                 "{'TableName':'sources-%d','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':"
                 "[{'AttributeName':'PK','AttributeType':'S'},{'AttributeName':'SK','AttributeType':'N'}],"
                 "'KeySchema':[{'AttributeName':'PK','KeyType':'HASH'},{'AttributeName':'SK','KeyType':"
                 "'RANGE'}]}",
                 (int)getpid()));
    sl_arena_destroy(arena);
    fill(remote);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_comes_once),     cmocka_unit_test(a_work_item_has_a_segment_of_its_own),
        cmocka_unit_test(it_is_known_when_it_began), cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(a_budget_is_held),
    };
    return cmocka_run_group_tests(tests, set_up, folder_clean_up);
}
