/* Places carried over from KCL 3 and back, on two tables of SQLite. KCL 3 itself: `make leases-kcl`. */
#include "tests/support/test.h"

#include "live/lease/handover.h"
#include "sinks/target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define MANY   "123456789012:eu-west-1$123456789012$orders$2026-01-01T00_00_00.000:1"
#define A      "shardId-00000001790000000000-aaaaaaaa"
#define B      "shardId-00000001790000000001-bbbbbbbb"
#define C      "shardId-00000001790000000002-cccccccc"

struct world {
    char *folder;
    struct sl_clock_virtual clock;
    struct sl_sinks sinks;
    struct sl_arena *arena;
    struct sl_table_port *kcl, *ours;
    struct sl_handover_counts counts;
    struct sl_error error;
    char said[4096];
    void (*meanwhile)(struct world *w); /* between the two looks */
    struct sl_clock waiting;
    size_t writes_left; /* so many operations are carried out, the others are lost */
    struct sl_table_port breaking, *broken;
};

static struct world *the;

static void wait_meanwhile(struct sl_clock *clock, int64_t ms)
{
    (void)clock;
    the->clock.ms += ms;
    if (the->meanwhile)
        the->meanwhile(the);
}

static int64_t now_ms(struct sl_clock *clock)
{
    (void)clock;
    return the->clock.ms;
}

static int64_t wall_ns(struct sl_clock *clock)
{
    (void)clock;
    return 1790000000123 * 1000000;
}

static void append(char *text, size_t room, const char *format, ...) SL_PRINTF(3, 4);
static void append(char *text, size_t room, const char *format, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, room - n, format, args);
    va_end(args);
}

static struct sl_table_port *open_table(struct world *w, const char *name)
{
    struct sl_table_port *port = NULL;
    const char *url = sl_arena_printf(w->arena, "sqlite:%s/%s.db?table=%s", w->folder, name, name);
    if (sl_target_table(&w->sinks, sl_span_str(url), &port, &w->error) != SL_OK)
        fail_msg("%s", w->error.text);
    return port;
}

static void world_open(struct world *w)
{
    *w = (struct world){.folder = test_folder_in_memory(), .arena = sl_arena_new(4096)};
    the = w;
    sl_clock_virtual_init(&w->clock, 0, 1);
    w->waiting = (struct sl_clock){.now_ms = now_ms, .wall_ns = wall_ns, .sleep_ms = wait_meanwhile};
    sl_sinks_init(&w->sinks, &w->clock.clock, NULL, &(struct sl_vars){.list = NULL});
    w->kcl = open_table(w, "kcl");
    w->ours = open_table(w, "ours");
}

static void world_close(struct world *w)
{
    w->kcl->close(w->kcl);
    w->ours->close(w->ours);
    sl_sinks_clean_up(&w->sinks);
    sl_arena_destroy(w->arena);
    test_folder_remove(w->folder);
}

static void put(struct world *w, struct sl_table_port *table, const char *key, const char *members)
{
    const struct sl_call call = {.arena = w->arena, .deadline_ms = INT64_MAX};
    struct sl_result result;
    struct sl_span item = json_span(sl_arena_printf(w->arena, "{'leaseKey':{'S':'%s'}%s}", key, members));
    const char *name = sl_arena_printf(w->arena, "{\"leaseKey\":{\"S\":\"%s\"}}", key);
    struct sl_table_op op = {.verb = SL_TABLE_PUT, .key = sl_span_str(name), .item = item};
    table->apply(table, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
}

/* A row as KCL 3.1.1 writes it. */
static void put_kcl(struct world *w, const char *shard, const char *checkpoint, const char *more)
{
    put(w, w->kcl, shard,
        sl_arena_printf(
            w->arena,
            ",'checkpoint':{'S':'%s'},'endingHashKey':{'S':'1'},'leaseCounter':{'N':'9'},"
            "'ownerSwitchesSinceCheckpoint':{'N':'0'},'checkpointSubSequenceNumber':{'N':'0'},"
            "'leaseOwner':{'S':'k1'},'throughputKBps':{'N':'2.122232'},'startingHashKey':{'S':'0'}%s",
            checkpoint, more));
}

static void put_ours(struct world *w, const char *shard, const char *checkpoint, const char *more)
{
    put(w, w->ours, shard,
        sl_arena_printf(w->arena,
                        ",'checkpoint':{'S':'%s'},'leaseCounter':{'N':'40'},'sluiceStream':{'S':'" STREAM
                        "'}%s",
                        checkpoint, more));
}

static size_t rows(struct world *w, struct sl_table_port *table, char *text)
{
    const struct sl_call call = {.arena = w->arena, .deadline_ms = INT64_MAX};
    struct sl_table_scan scan = {.is_consistent = true};
    struct sl_table_page page;
    table->scan(table, &scan, 1, &page, &call);
    *text = '\0';
    for (size_t i = 0; i < page.n; i++)
        append(text, 8192, "%.*s\n", (int)page.items[i].len, page.items[i].ptr);
    return page.n;
}

static void say(void *arg, const struct sl_handover_step *step)
{
    static const char *const words[] = {"same", "new", "moved", "removed"};
    struct world *w = arg;
    append(w->said, sizeof(w->said), "%s %.*s %s>%s;", words[step->act], 1, step->shard + 29,
           step->before ? step->before : "", step->after ? step->after : "");
}

static enum sl_status carry(struct world *w, bool is_given, bool is_many, bool writes)
{
    const struct sl_handover_options options = {.from = is_given ? w->ours : w->kcl,
                                                .to = w->broken  ? w->broken
                                                      : is_given ? w->kcl
                                                                 : w->ours,
                                                .from_name = "FROM",
                                                .to_name = "TO",
                                                .clock = &w->waiting,
                                                .stream_arn = STREAM,
                                                .is_given = is_given,
                                                .is_many = is_many,
                                                .wait_ms = 12000,
                                                .writes = writes,
                                                .say = say,
                                                .arg = w};
    w->said[0] = '\0';
    sl_error_clear(&w->error);
    return sl_handover_run(&options, &w->counts, &w->error);
}

static void must(struct world *w, enum sl_status status)
{
    if (status != SL_OK)
        fail_msg("%s: %s", w->error.code, w->error.text);
}

/* ---- tests ---- */

static void places_are_taken_from_kcl(void **state)
{
    struct world w;
    char text[8192];
    (void)state;
    world_open(&w);
    put_kcl(&w, A, "SHARD_END", ",'childShardIds':{'SS':['" B "']}");
    put_kcl(&w, B, "12345", ",'parentShardId':{'SS':['" A "']},'pendingCheckpoint':{'S':'99999'}");
    put_kcl(&w, C, "TRIM_HORIZON", "");
    must(&w, carry(&w, false, false, false));
    assert_string_equal(w.said, "new a >SHARD_END;new b >12345;new c >TRIM_HORIZON;");
    assert_int_equal(rows(&w, w.ours, text), 0); /* only said */
    must(&w, carry(&w, false, false, true));
    assert_int_equal(rows(&w, w.ours, text), 3);
    assert_non_null(
        strstr(text, "{\"leaseKey\":{\"S\":\"" B "\"},\"leaseCounter\":{\"N\":\"10\"},"
                     "\"checkpointSubSequenceNumber\":{\"N\":\"0\"},"
                     "\"ownerSwitchesSinceCheckpoint\":{\"N\":\"0\"},\"checkpoint\":{\"S\":\"12345\"},"
                     "\"parentShardId\":{\"SS\":[\"" A "\"]},\"sluiceStream\":{\"S\":\"" STREAM "\"}}"));
    must(&w, carry(&w, false, false, true));
    assert_string_equal(w.said,
                        "same a SHARD_END>SHARD_END;same b 12345>12345;same c TRIM_HORIZON>TRIM_HORIZON;");
    world_close(&w);
}

static void rows_of_others_are_left_alone(void **state)
{
    struct world w;
    char text[8192];
    (void)state;
    world_open(&w);
    put_kcl(&w, MANY ":" A, "77", ",'streamName':{'S':'" MANY "'},'shardId':{'S':'" A "'}");
    put_kcl(&w, "1:x$1$other$l:1:" B, "78", ",'streamName':{'S':'1:x$1$other$l:1'},'shardId':{'S':'" B "'}");
    put(&w, w.kcl, "Migration3.0", ",'entityType':{'S':'COORDINATOR_STATE'},'cv':{'S':'CLIENT_VERSION_3X'}");
    put(&w, w.kcl, "w1", ",'entityType':{'S':'WORKER_METRIC_STATS'},'checkpoint':{'S':'1'}");
    must(&w, carry(&w, false, false, true));
    assert_string_equal(w.said, "new a >77;");
    assert_int_equal(w.counts.others, 3);
    assert_int_equal(rows(&w, w.ours, text), 1);
    world_close(&w);
}

static void places_are_given_to_kcl(void **state)
{
    struct world w;
    char text[8192];
    (void)state;
    for (int is_many = 0; is_many < 2; is_many++) {
        world_open(&w);
        put_ours(&w, A, "SHARD_END", "");
        put_ours(&w, B, "555", ",'parentShardId':{'SS':['" A "']}");
        put_ours(&w, C, "LATEST", ",'parentShardId':{'SS':['" A "']},'sluiceSince':{'N':'1790000000000'}");
        must(&w, carry(&w, true, is_many, true));
        /* KCL would read LATEST as the moment of its own start. */
        assert_string_equal(w.said, "new a >SHARD_END;new b >555;new c >TRIM_HORIZON;");
        assert_int_equal(w.counts.from_start, 1);
        assert_int_equal(rows(&w, w.kcl, text), 3);
        assert_non_null(strstr(text, "\"childShardIds\":{\"SS\":[\"" B "\",\"" C "\"]}"));
        assert_null(strstr(text, "sluice"));
        assert_int_equal(strstr(text, "\"leaseKey\":{\"S\":\"" MANY ":" B "\"}") != NULL, is_many);
        assert_int_equal(strstr(text, "\"streamName\":{\"S\":\"" MANY "\"}") != NULL, is_many);
        assert_non_null(strstr(text, "\"startingHashKey\":{\"S\":\"0\"},\"endingHashKey\":{\"S\":\"1\"}"));
        /* And back: the target's rows say what kind it is. */
        must(&w, carry(&w, true, false, true));
        assert_int_equal(w.counts.acts[SL_HANDOVER_SAME], 3);
        assert_int_equal(rows(&w, w.kcl, text), 3);
        world_close(&w);
    }
}

static void latest_is_from_now_on(void **state)
{
    struct world w;
    char text[8192];
    (void)state;
    world_open(&w);
    put_kcl(&w, A, "LATEST", "");
    must(&w, carry(&w, false, false, true));
    rows(&w, w.ours, text);
    assert_non_null(strstr(text, "\"sluiceSince\":{\"N\":\"1790000000123\"}"));
    world_close(&w);
}

static void a_target_moves_on_and_never_back(void **state)
{
    struct world w;
    char text[8192];
    (void)state;
    world_open(&w);
    put_kcl(&w, A, "1000", "");
    put_kcl(&w, B, "TRIM_HORIZON", "");
    put_ours(&w, A, "999", "");
    put_ours(&w, C, "5", "");
    must(&w, carry(&w, false, false, true));
    assert_string_equal(w.said, "moved a 999>1000;new b >TRIM_HORIZON;removed c 5>;");
    assert_int_equal(rows(&w, w.ours, text), 2);
    assert_non_null(strstr(text, "\"leaseCounter\":{\"N\":\"41\"}"));
    /* Ours has gone on since: only the other direction is right. */
    put_ours(&w, A, "1001", "");
    assert_int_equal(carry(&w, false, false, true), SL_REJECT);
    assert_string_equal(w.error.code, "Backwards");
    assert_non_null(strstr(w.error.text, "other direction"));
    must(&w, carry(&w, true, false, true));
    assert_string_equal(w.said, "moved a 1000>1001;same b TRIM_HORIZON>TRIM_HORIZON;");
    world_close(&w);
}

static void renew_kcl(struct world *w)
{
    put(w, w->kcl, A,
        ",'checkpoint':{'S':'1'},'leaseCounter':{'N':'10'},'leaseOwner':{'S':'k1'},'throughputKBps':{'N':'1'"
        "}");
}

static void renew_ours(struct world *w)
{
    put(w, w->ours, A,
        ",'checkpoint':{'S':'1'},'leaseCounter':{'N':'41'},'leaseOwner':{'S':'s1'},'sluiceStream':{'S':"
        "'" STREAM "'}");
}

static void steal(struct world *w)
{
    put(w, w->kcl, A,
        ",'checkpoint':{'S':'1'},'leaseCounter':{'N':'9'},'leaseOwner':{'S':'k2'},'throughputKBps':{'N':'1'"
        "}");
}

static void add_one(struct world *w)
{
    put_kcl(w, B, "TRIM_HORIZON", "");
}

static void nobody_may_be_at_work(void **state)
{
    static void (*const all[])(struct world *) = {renew_kcl, renew_ours, steal, add_one};
    char text[8192];
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct world w;
        world_open(&w);
        put_kcl(&w, A, "1", "");
        put_ours(&w, A, "1", "");
        w.meanwhile = all[i];
        assert_int_equal(carry(&w, false, false, true), SL_REJECT);
        assert_string_equal(w.error.code, "Running");
        assert_non_null(strstr(w.error.text, "stop all workers of both"));
        assert_int_equal(rows(&w, w.ours, text), 1);
        assert_string_equal(w.said, "");
        world_close(&w);
    }
}

static void what_is_wrong_is_named(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    assert_int_equal(carry(&w, false, false, true), SL_REJECT);
    assert_string_equal(w.error.code, "NoLeases");
    put_kcl(&w, "shardId-000000000003", "5", "");
    assert_int_equal(carry(&w, false, false, true), SL_REJECT);
    assert_string_equal(w.error.code, "KinesisLeases");
    world_close(&w);
    world_open(&w);
    put_kcl(&w, A, "nonsense", "");
    assert_int_equal(carry(&w, false, false, true), SL_REJECT);
    assert_string_equal(w.error.code, "NotALease");
    world_close(&w);
    world_open(&w);
    put_kcl(&w, A, "5", "");
    put(&w, w.ours, B,
        ",'checkpoint':{'S':'5'},'leaseCounter':{'N':'1'},'sluiceStream':{'S':'arn:aws:dynamodb:eu-west-1:"
        "123456789012:table/other/stream/x'}");
    assert_int_equal(carry(&w, false, false, true), SL_REJECT);
    assert_string_equal(w.error.code, "AnotherStream");
    world_close(&w);
}

/* Carries out a part of the operations, and says of all that they failed. */
static void break_off(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                      struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    size_t k = the->writes_left < n ? the->writes_left : n;
    if (k)
        the->ours->apply(the->ours, ops, k, results, call);
    for (size_t i = 0; i < n; i++)
        results[i] =
            (struct sl_result){.status = SL_RETRY, .code = "Timeout", .text = "the answer did not come"};
}

static void scan_through(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                         struct sl_table_page *pages, const struct sl_call *call)
{
    (void)port;
    the->ours->scan(the->ours, scans, n, pages, call);
}

/* A chain of splits: the children of each are named, and nothing takes the square of their number. */
static void many_leases_are_given(void **state)
{
    enum { N = 4000 };
    struct world w;
    (void)state;
    world_open(&w);
    for (size_t i = 0; i < N; i++) {
        const char *shard = sl_arena_printf(w.arena, "shardId-%020zu-aaaaaaaa", 1790000000000 + i);
        put_ours(&w, shard, i + 1 < N ? "SHARD_END" : "5",
                 i ? sl_arena_printf(w.arena, ",'parentShardId':{'SS':['shardId-%020zu-aaaaaaaa']}",
                                     1790000000000 + i / 2)
                   : "");
    }
    must(&w, carry(&w, true, false, true));
    assert_int_equal(w.counts.acts[SL_HANDOVER_NEW], N);
    const struct sl_call call = {.arena = w.arena, .deadline_ms = INT64_MAX};
    struct sl_result result;
    struct sl_table_op op = {.verb = SL_TABLE_GET,
                             .key =
                                 SL_LIT("{\"leaseKey\":{\"S\":\"shardId-00000001790000001000-aaaaaaaa\"}}")};
    w.kcl->apply(w.kcl, &op, 1, &result, &call);
    static const char children[] = "\"childShardIds\":{\"SS\":[\"shardId-00000001790000002000-aaaaaaaa\","
                                   "\"shardId-00000001790000002001-aaaaaaaa\"]}";
    assert_non_null(memmem(result.item.ptr, result.item.len, children, sizeof(children) - 1));
    must(&w, carry(&w, true, false, true));
    assert_int_equal(w.counts.acts[SL_HANDOVER_SAME], N);
    world_close(&w);
}

/* Wherever it is broken off, a second run makes what one would have made. */
static void what_was_broken_off_is_done_again(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= 3; cut++) {
        struct world w;
        world_open(&w);
        uint64_t random = cut + 1;
        for (size_t i = 0; i < 60; i++) {
            const char *shard =
                sl_arena_printf(w.arena, "shardId-%020zu-%08zx", 1790000000000 + i, (i * 7919) % 60);
            put_kcl(&w, shard,
                    sl_arena_printf(w.arena, "%llu", (unsigned long long)(sl_random_step(&random) % 100000)),
                    "");
            if (i % 3 == 0)
                put_ours(&w, shard, "TRIM_HORIZON", "");
        }
        put_ours(&w, C, "5", "");
        w.breaking =
            (struct sl_table_port){.size = sizeof(w.breaking), .apply = break_off, .scan = scan_through};
        w.broken = &w.breaking;
        w.writes_left = cut * 20;
        assert_int_equal(carry(&w, false, false, true), SL_RETRY);
        assert_non_null(strstr(w.error.text, "run it again"));
        w.broken = NULL;
        must(&w, carry(&w, false, false, true));
        must(&w, carry(&w, false, false, true));
        assert_int_equal(w.counts.acts[SL_HANDOVER_SAME], 60);
        assert_int_equal(w.counts.acts[SL_HANDOVER_REMOVED], 0);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_taken_from_kcl),
        cmocka_unit_test(rows_of_others_are_left_alone),
        cmocka_unit_test(places_are_given_to_kcl),
        cmocka_unit_test(latest_is_from_now_on),
        cmocka_unit_test(a_target_moves_on_and_never_back),
        cmocka_unit_test(nobody_may_be_at_work),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(what_was_broken_off_is_done_again),
        cmocka_unit_test(many_leases_are_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
