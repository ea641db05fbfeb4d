/* Changes of one item in one unit of time, as Kinesis delivers them: twice, in any order, in any slices. The
 * replica ends as the source. `test_replicate_ties SEEDS FIRST` draws other histories. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=replica'%s}]}"
#define SOURCE ",'source':'sqlite:${DIR}/db?table=source'"

#define CHANGES 12

static const char *const modes[] = {"", ",'tombstones':{'table':'marks'}", ",'guard':{'table':'guards'}",
                                    ",'where':{'v':[1,2]}",
                                    ",'tombstones':{'table':'marks'},'key':{'id':'{PK}'},'rename':{'v':'w'}"};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* A change of the item "a": the value that it has then, 0: it is gone. */
struct change {
    int value, unit;
};

static struct stage *stage_of(const char *mode, const char *members)
{
    char all[400];
    snprintf(all, sizeof(all), "%s%s", mode, members);
    struct stage *s = stage_new(json_printf(ROUTE, all), NULL);
    stage_change(s, "db", "CREATE TABLE IF NOT EXISTS source(key TEXT PRIMARY KEY, item TEXT NOT NULL)");
    return s;
}

static void put_source(const struct stage *s, int value)
{
    char sql[300];
    stage_change(s, "db", "DELETE FROM source");
    snprintf(sql, sizeof(sql),
             "INSERT INTO source VALUES('{\"PK\":{\"S\":\"a\"}}', "
             "' {\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"%d\"}} ')",
             value);
    if (value)
        stage_change(s, "db", sql);
}

static void add_image(struct sl_buffer *text, const char *name, int value)
{
    if (value)
        sl_buffer_printf(text, ",'%s':{" PK("a") ",'v':{'N':'%d'}}", name, value);
}

static void add_record(struct sl_buffer *text, const struct change *c, int before)
{
    const char *event = c->value == 0 ? "REMOVE" : before == 0 ? "INSERT" : "MODIFY";
    sl_buffer_printf(
        text,
        "{'awsRegion':'eu-west-1','eventID':'e%p','eventName':'%s','tableName':'orders',"
        "'recordFormat':'application/json','dynamodb':{'ApproximateCreationDateTime':"
        "17672651990000%02d,'ApproximateCreationDateTimePrecision':'MICROSECOND','Keys':{" PK("a") "}",
        (const void *)c, event, c->unit);
    add_image(text, "NewImage", c->value);
    add_image(text, "OldImage", before);
    sl_buffer_add_str(text, "}}");
}

/* The changes of `which`, in that order, in one event. */
static void deliver(struct stage *s, const struct change *changes, const int *which, int n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    for (int i = 0; i < n; i++) {
        sl_buffer_add_str(&text, i ? "," : "{'Records':[");
        add_record(&text, &changes[which[i]], which[i] ? changes[which[i] - 1].value : 0);
    }
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    assert_true(stage_drive(s, json(text.ptr), 200));
    sl_buffer_clean_up(&text);
}

/* What readers of the replica see. */
static int replica_value(const struct stage *s)
{
    char *row = stage_query(s, "db", "SELECT item FROM replica"), *v = strstr(row, "v\":{\"N\":\"");
    char *w = strstr(row, "w\":{\"N\":\"");
    bool is_deleted = strstr(row, "sluice_deleted");
    int value = is_deleted || !(v || w) ? 0 : (v ? v : w)[strlen("v\":{\"N\":\"")] - '0';
    free(row);
    return value;
}

static int shown(size_t mode, int value)
{
    return strstr(modes[mode], "where") && value > 2 ? 0 : value;
}

static void expect_replica(const struct stage *s, size_t mode, int value)
{
    assert_int_equal(replica_value(s), shown(mode, value));
}

static uint64_t seed, first = 1, seeds = 100;

static int draw(int below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)below);
}

/* A change is in the stream when it is in the source, and the source goes on. Few are left where they belong,
 * some come twice, and the table fails now and then. */
static void history_run(size_t mode, uint64_t of)
{
    struct change changes[CHANGES];
    int order[2 * CHANGES], n = 0, state = -1, left_in_unit = 0, unit = 10;
    seed = of * 0x9E3779B97F4A7C15u;
    int n_changes = 2 + draw(CHANGES - 1);
    struct stage *s = stage_of(modes[mode], SOURCE);
    for (int i = 0; i < n_changes; i++) {
        if (left_in_unit-- <= 0)
            left_in_unit = draw(4), unit++;
        int before = i ? changes[i - 1].value : 0;
        changes[i] = (struct change){before ? draw(4) : 1 + draw(3), unit};
        order[n++] = i;
        if (draw(3) == 0)
            order[n++] = i;
    }
    for (int i = n - 1; i > 0; i--) {
        int k = draw(i + 1), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    s->one_in = draw(2) ? 9 : 0;
    s->chance = of;
    for (int i = 0, some; i < n; i += some) {
        some = 1 + draw(3);
        some = some < n - i ? some : n - i;
        for (int k = i; k < i + some; k++)
            state = order[k] > state ? order[k] : state;
        state += draw(n_changes - state) / 2;
        put_source(s, changes[state].value);
        deliver(s, changes, order + i, some);
    }
    put_source(s, changes[n_changes - 1].value);
    if (replica_value(s) != shown(mode, changes[n_changes - 1].value))
        fail_msg("mode %s, seed %llu: the replica has %d, the source %d", modes[mode], (unsigned long long)of,
                 replica_value(s), changes[n_changes - 1].value);
    stage_destroy(s);
}

static void with_a_source_the_replica_ends_as_the_source(void **state)
{
    (void)state;
    for (uint64_t i = first; i < first + seeds; i++)
        for (size_t mode = 0; mode < MODES; mode++)
            history_run(mode, i);
}

/* Without one the tie is counted and said, once each time; a change that is delivered twice does not tie. */
static void without_a_source_a_tie_is_counted(void **state)
{
    (void)state;
    static const struct change changes[] = {{1, 11}, {2, 11}, {0, 12}};
    static const struct {
        int first, second, ties;
    } cases[] = {{0, 1, 1}, {1, 0, 1}, {0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {0, 2, 0}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t mode = 0; mode < MODES; mode++)
            for (int at_once = 0; at_once < 2; at_once++) {
                const int which[] = {cases[i].first, cases[i].second};
                struct stage *s = stage_of(modes[mode], "");
                deliver(s, changes, which, at_once ? 2 : 1);
                if (!at_once)
                    deliver(s, changes, which + 1, 1);
                char *log = stage_log(s);
                int n = 0;
                for (const char *at = log; (at = strstr(at, "\"TiedOrder\":1")); at++)
                    n++;
                assert_int_equal(n, cases[i].ties);
                assert_int_equal(strstr(log, "Name the source table") != NULL, cases[i].ties);
                free(log);
                stage_destroy(s);
            }
}

/* Sequence numbers order the changes: nothing is read for one that comes twice. */
static void numbered_changes_do_not_tie(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct stage *s = stage_of(modes[mode], SOURCE);
        put_source(s, 3);
        for (int i = 0; i < 2; i++)
            stage_deliver_all(s, EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(PK("a") ",'v':" N("1")))));
        stage_deliver_all(s, EVENT(RECORD("INSERT", "5", KEYS(PK("a")) NEW(PK("a") ",'v':" N("2")))));
        assert_int_equal(s->spent.reads, 0);
        expect_replica(s, mode, 1);
        stage_destroy(s);
    }
}

/* The removal may have been TTL's: what the source does not have stays, and is said. What it has counts. */
static void where_expired_items_are_kept_only_what_is_there_counts(void **state)
{
    (void)state;
    static const struct change changes[] = {{1, 11}, {2, 11}};
    for (int is_there = 0; is_there < 2; is_there++)
        for (size_t mode = 0; mode < MODES; mode++) {
            struct stage *s = stage_of(modes[mode], SOURCE ",'expired':'keep'");
            put_source(s, is_there ? 2 : 0);
            deliver(s, changes, (const int[]){1}, 1);
            deliver(s, changes, (const int[]){0}, 1);
            char *log = stage_log(s);
            assert_int_equal(strstr(log, "\"TiedOrder\":1") != NULL, !is_there);
            expect_replica(s, mode, 2);
            free(log);
            stage_destroy(s);
        }
}

/* ---- whoever repairs looks at the row before the source, and finds it moved ---- */

struct other {
    int looks, value;
};

static void another_one_repairs(struct stage *s, const struct sl_table_op *ops, size_t n,
                                struct sl_result *results)
{
    struct other *other = s->context;
    (void)results;
    bool is_source = n == 1 && ops[0].verb == SL_TABLE_GET && !ops[0].table.ptr;
    if (!is_source || ++other->looks != 2)
        return;
    /* The source was just read: it goes on, and another process has its row, which is not the one that was
     * seen any more. */
    put_source(s, other->value);
    stage_change(s, "db",
                 "UPDATE replica SET item = replace(item, '\"v\":{\"N\":\"1\"}', '\"v\":{\"N\":\"7\"}')");
}

static void a_row_that_has_moved_is_repaired_once_more(void **state)
{
    (void)state;
    static const struct change changes[] = {{1, 11}, {3, 11}, {2, 11}};
    struct other other = {.value = 2};
    struct stage *s = stage_of("", SOURCE);
    put_source(s, 3);
    deliver(s, changes, (const int[]){0}, 1);
    s->context = &other;
    s->after_table = another_one_repairs;
    deliver(s, changes, (const int[]){1}, 1);
    assert_int_equal(other.looks, 4); /* the row and the source, twice */
    expect_replica(s, 0, 2);
    stage_destroy(s);
}

int main(int argc, char **argv)
{
    seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : seeds;
    first = argc > 2 ? strtoull(argv[2], NULL, 10) : first;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_source_the_replica_ends_as_the_source),
        cmocka_unit_test(without_a_source_a_tie_is_counted),
        cmocka_unit_test(numbered_changes_do_not_tie),
        cmocka_unit_test(where_expired_items_are_kept_only_what_is_there_counts),
        cmocka_unit_test(a_row_that_has_moved_is_repaired_once_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
