/* Archives of random histories from which changes are missing: each gap that can be seen is told, and nothing
 * else; and objects that are not what their names say. The archives are the real handler's. */
#include "data/verify/archive/chain.h"

#include "base/base64.h"
#include "sinks/file.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITEMS   6
#define CHANGES 90
#define BATCH   7
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'keep','handler':'archive'," \
    "'to':'file:${DIR}/archive','format':'record'}]}"

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

struct change {
    size_t item;
    enum { INSERT, MODIFY, REMOVE } event;
    bool is_kept;
    const char *text;
};
static struct change changes[CHANGES];

/* Every value occurs once: whatever is lost between two changes shows, unless it leads from nothing to
 * nothing. */
static void make_history(uint64_t with_seed, unsigned lost_of_100)
{
    static const char *const names[] = {"INSERT", "MODIFY", "REMOVE"};
    int values[ITEMS];
    seed = with_seed;
    memset(values, -1, sizeof(values));
    for (int i = 0; i < CHANGES; i++) {
        struct change *c = &changes[i];
        c->item = draw(ITEMS);
        c->event = values[c->item] < 0 ? INSERT : draw(2) ? REMOVE : MODIFY;
        c->is_kept = draw(100) >= lost_of_100;
        const char *key = json_printf("'PK':{'S':'i%zu'}", c->item);
        const char *before =
            c->event == INSERT ? "" : json_printf(",'OldImage':{%s,'v':{'N':'%d'}}", key, values[c->item]);
        const char *after =
            c->event == REMOVE ? "" : json_printf(",'NewImage':{'v':{'N':'%d.0'},%s}", i, key);
        c->text = json_printf("{'eventID':'e%d','eventName':'%s','eventVersion':'1.1','eventSource':'aws:"
                              "dynamodb','awsRegion':'us-east-1','eventSourceARN':'arn:aws:dynamodb:us-east-"
                              "1:123456789012:table/t/stream/x','dynamodb':"
                              "{'ApproximateCreationDateTime':1700000000,'Keys':{%s}%s%s,'SequenceNumber':'%"
                              "d','SizeBytes':1,'StreamViewType':'NEW_AND_OLD_IMAGES'}}",
                              i, names[c->event], key, before, after, 1000 + i * 3);
        values[c->item] = c->event == REMOVE ? -1 : i;
    }
}

/* The same as Kinesis carries it, so many changes in one unit of time. */
static void make_timed(unsigned in_unit)
{
    struct sl_arena *arena = sl_arena_new(1 << 16);
    for (int i = 0; i < CHANGES; i++) {
        const char *text = changes[i].text, *images = strstr(text, "\"Keys\""),
                   *end = strstr(text, ",\"SequenceNumber\""), *name = strstr(text, "\"eventName\"");
        const char *data = json_printf(
            "{'eventID':'e%d',%.*s,'awsRegion':'us-east-1','tableName':'t','recordFormat':'application/json',"
            "'dynamodb':{'ApproximateCreationDateTime':%lld,'ApproximateCreationDateTimePrecision':"
            "'MICROSECOND',%.*s}}",
            i, (int)strcspn(name, ","), name, 1700000000000000 + (long long)(i / (int)in_unit),
            (int)(end - images), images);
        changes[i].text = json_printf(
            "{'kinesis':{'kinesisSchemaVersion':'1.0','partitionKey':'p','sequenceNumber':'%d','data':'%.*s',"
            "'approximateArrivalTimestamp':1700000000.1},'eventSource':'aws:kinesis','eventVersion':'1.0',"
            "'eventID':'shardId-1:%d','eventName':'aws:kinesis:record','awsRegion':'us-east-1',"
            "'eventSourceARN':'arn:aws:kinesis:us-east-1:123456789012:stream/s'}",
            5000 + i, SL_ARG(sl_base64_encode(sl_span_str(data), arena)), i);
    }
    sl_arena_destroy(arena);
}

/* Delivers what is kept from there on, in batches; returns how many. */
static size_t deliver(struct stage *s, size_t from, size_t to)
{
    size_t n = 0, in_batch = 0;
    const char *text = "";
    for (size_t i = from; i <= to; i++) {
        if (in_batch == BATCH || (i == to && in_batch)) {
            stage_deliver_all(s, json_printf("{'Records':[%s]}", text));
            text = "";
            in_batch = 0;
        }
        if (i < to && changes[i].is_kept) {
            text = json_printf("%s%s%s", text, in_batch ? "," : "", changes[i].text);
            in_batch++;
            n++;
        }
    }
    return n;
}

/* ---- what is found ---- */

static size_t n_lines;
static char last_line[2000];

static void found(void *arg, struct sl_span line)
{
    (void)arg;
    n_lines++;
    snprintf(last_line, sizeof(last_line), "%.*s", SL_ARG(line));
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}

static struct sl_chain_counts look(struct stage *s, bool (*is_stopped)(void *))
{
    struct sl_chain_counts counts = {0};
    struct sl_error error = SL_NO_ERROR;
    struct sl_object_port *port = NULL;
    char path[600];
    snprintf(path, sizeof(path), "%s/archive", s->folder);
    assert_int_equal(sl_file_open_to_read(path, &port, &error), SL_OK);
    const struct sl_chain_options options = {.port = port,
                                             .clock = &s->clock.clock,
                                             .route = "keep",
                                             .temp = s->folder,
                                             .found = found,
                                             .is_stopped = is_stopped};
    n_lines = 0;
    assert_int_equal(sl_chain_verify(&options, &counts, &error), SL_OK);
    port->close(port);
    return counts;
}

static void each_gap_that_shows_is_told(void **state)
{
    (void)state;
    for (uint64_t world = 1; world <= 24; world++) {
        struct stage *s = stage_new(CONFIG, NULL);
        make_history(world, world % 3 * 12);
        size_t n = deliver(s, 0, CHANGES), from = draw(CHANGES),
               doubles = world % 2 ? deliver(s, from, from + draw(CHANGES - from)) : 0;
        size_t gaps = 0, unknown = 0, items = 0;
        for (size_t item = 0; item < ITEMS; item++) {
            const struct change *before = NULL;
            bool is_lost = false;
            for (size_t i = 0; i < CHANGES; i++) {
                const struct change *c = &changes[i];
                if (c->item != item)
                    continue;
                if (!c->is_kept) {
                    is_lost = true;
                    continue;
                }
                items += !before;
                unknown += !before && c->event != INSERT;
                gaps += before && is_lost && !(before->event == REMOVE && c->event == INSERT);
                before = c;
                is_lost = false;
            }
        }
        struct sl_chain_counts counts = look(s, never);
        assert_int_equal(counts.gaps, gaps);
        assert_int_equal(n_lines, gaps);
        assert_int_equal(counts.unknown_before, unknown);
        assert_int_equal(counts.items, items);
        /* (A batch that is delivered again has the same object's name, and is written over.) */
        assert_in_range(counts.records, n, n + doubles);
        assert_int_equal(counts.records - counts.doubles, n);
        assert_int_equal(counts.damaged + counts.unreadable + counts.without_images, 0);
        if (gaps)
            assert_non_null(strstr(
                last_line,
                "\"kind\":\"gap\",\"route\":\"keep\",\"handler\":\"archive\",\"sequence_number\":\"1"));
        counts = look(s, at_once);
        assert_int_equal(counts.records + counts.items, 0);
        stage_destroy(s);
    }
}

/* The object's path; the caller frees it. */
static char *only_object(struct stage *s)
{
    char *names = NULL, *path = NULL;
    free(stage_objects(s, "archive", &names));
    assert_true(asprintf(&path, "%s/archive/%.*s", s->folder, (int)strcspn(names, "\n"), names) > 0);
    free(names);
    return path;
}

static void an_object_is_what_its_name_says(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "\x1f\x8b\b", "not JSON\n", "{}\n",
        "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}}}}\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct stage *s = stage_new(CONFIG, NULL);
        make_history(99, 0);
        deliver(s, 0, BATCH);
        char *path = only_object(s);
        struct sl_chain_counts counts = look(s, never);
        assert_int_equal(counts.objects, 1);
        assert_int_equal(counts.records, BATCH);
        assert_int_equal(n_lines, 0);
        test_write(path, texts[i]);
        counts = look(s, never);
        assert_int_equal(counts.damaged + counts.unreadable, 1);
        assert_int_equal(n_lines, 1);
        assert_non_null(strstr(last_line, "\"object\":\""));
        free(path);
        stage_destroy(s);
    }
}

/* Of changes of one time nothing says which was first: they make no gap. What is missing elsewhere does. */
static void changes_of_one_time_are_no_gap(void **state)
{
    (void)state;
    for (uint64_t world = 1; world <= 12; world++) {
        unsigned in_unit = 1 + (unsigned)(world % 4);
        struct stage *s = stage_new(CONFIG, NULL);
        make_history(world, 0);
        make_timed(in_unit);
        size_t n = deliver(s, 0, CHANGES);
        n += deliver(s, 30, 60);
        struct sl_chain_counts counts = look(s, never);
        if (counts.gaps || counts.records != n || counts.doubles != 30)
            fail_msg("world %d: %s", (int)world, last_line);
        stage_destroy(s);
        s = stage_new(CONFIG, NULL);
        make_history(world, 25);
        make_timed(in_unit);
        (void)deliver(s, 0, CHANGES);
        counts = look(s, never);
        assert_true(counts.gaps > 0 || in_unit > 1);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gap_that_shows_is_told),
        cmocka_unit_test(changes_of_one_time_are_no_gap),
        cmocka_unit_test(an_object_is_what_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
