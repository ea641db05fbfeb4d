/* `sluice tail` on a scripted stream: shards with parents and children, places that are kept, gaps, iterators
 * that expire, records that cannot succeed, and answers that prove nothing. */
#include "tests/live/tail/stream_world.h"
#include "tests/support/verbs.h"

#include "runtime/api/client.h"
#include "runtime/start.h"

#include <unistd.h>

extern char **environ;

static struct scripted_server *server;

#define CONFIG(to)                                                                                           \
    "{'report_batch_item_failures':true,'on_failure':'%s','routes':[{'name':'say','handler':'notify','to':'" \
    "jsonl:" to "','message':'{PK}{word}'}]}"

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_haste(v, 4); /* a sandbox needs its time */
    w = (struct world){.status = "ENABLED", .latest = ARN};
    verb_write(v, "sluice.json", json_printf(CONFIG("said.jsonl"), "jsonl:parked.jsonl"));
    server = scripted_server_start(answer, NULL);
    return 0;
}

static int tear_down(void **state)
{
    scripted_server_stop(server);
    verbs_destroy(*state);
    return 0;
}

static const char *line(const char *flags)
{
    return json_printf("tail --stream " ARN " --endpoint-url %s --quiet %s", scripted_server_url(server),
                       flags);
}

/* Which records were handled since the last call, in that order: " 1 2 3 "; " ": none. */
static const char *handled(struct verbs *v)
{
    static char text[4096];
    char path[600];
    size_t n = (size_t)snprintf(text, sizeof(text), " ");
    for (const char *at = verb_read(v, "said.jsonl"); *at; at += strcspn(at, "\n") + 1)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lu ", strtoul(at + 2, NULL, 10));
    snprintf(path, sizeof(path), "%s/said.jsonl", verbs_folder(v));
    unlink(path);
    return text;
}

/* Every record of the shards once, whatever the order of shards. */
static void assert_all(struct verbs *v, bool in_order)
{
    const char *text = handled(v);
    size_t wanted = 0, n = 0;
    for (const struct shard *s = w.shards; s->name; s++)
        wanted += s->first ? s->last - s->first + 1 : 0;
    for (const char *at = text + 1; *at; at = strchr(at, ' ') + 1)
        n++;
    for (const struct shard *s = w.shards; s->name; s++) {
        const char *before = text;
        for (unsigned i = s->first; i && i <= s->last; i++) {
            const char *at = strstr(text, json_printf(" %u ", i));
            assert_true(at && (!in_order || at >= before));
            before = at;
        }
    }
    assert_int_equal(n, wanted);
}

static const struct shard family[SHARDS] = {
    {"child", "root", false, 21, 24, 0, false},
    {"root", NULL, true, 1001, 1005, 0, false},
    {"other", "root", true, 3011, 3012, 0, false},
    {"grandchild", "other", false, 5031, 5031, 0, false},
};

static void shards_are_handled_after_their_parents(void **state)
{
    struct verbs *v = *state;
    static const char *const flags[] = {
        "--once --concurrency 2 --batch-size 2 --per-shard --listen 127.0.0.1:0 --trace trace.jsonl",
        "--once --in-process --parallelization 3 --memory 1"};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        memcpy(w.shards, family, sizeof(family));
        w.doubles = i == 1;
        verb_assert(v, verb(v, "%s", line(flags[i])), 0, "12");
        const char *said = verb_read(v, "said.jsonl");
        const char *child = strstr(said, "k21"), *root = strstr(said, "k1005"),
                   *grandchild = strstr(said, "k5031"), *other = strstr(said, "k3012");
        assert_true(root && child && other && grandchild && root < child && other < grandchild);
        assert_all(v, i != 1);
    }
    verb_assert(v,
                verb(v, "tail --table t --once --in-process --endpoint-url %s", scripted_server_url(server)),
                0, "12");
}

static void a_place_is_kept_and_gaps_are_told(void **state)
{
    struct verbs *v = *state;
    const char *again = line("--once --in-process --checkpoint place.json");
    memcpy(w.shards, family, sizeof(family));
    verb_assert(v, verb(v, "%s", again), 0, "12");
    assert_all(v, true);
    w.shards[0].last = 25;
    verb_assert(v, verb(v, "%s", again), 0, "");
    assert_string_equal(handled(v), " 25 ");
    w.shards[0].last = 26;
    w.expire = 1;
    verb_assert(v, verb(v, "%s", again), 0, "");
    assert_string_equal(handled(v), " 26 ");
    verb_assert(v, verb(v, "%s", again), 0, "");
    assert_string_equal(handled(v), " ");
    w.shards[0] = (struct shard){"child", "root", false, 40, 41, 40, false};
    verb_assert(v, verb(v, "%s", again), 1, "are gone from the stream");
    assert_string_equal(handled(v), " 40 41 ");
    w.shards[3] = (struct shard){NULL, NULL, false, 0, 0, 0, false};
    verb_assert(v, verb(v, "%s", again), 1, "1 shard(s)");
    verb_assert(v,
                verb(v, "tail --stream " ARN "x --endpoint-url %s --once --checkpoint place.json",
                     scripted_server_url(server)),
                2, "another stream");
    verb_write(v, "place.json", "{'stream'");
    verb_assert(v, verb(v, "%s", again), 2, "place.json");
    w.shards[0] = (struct shard){"child", NULL, false, 50, 53, 0, false};
    verb_assert(v, verb(v, "%s", line("--once --in-process --from latest")), 0, "");
    assert_string_equal(handled(v), " ");
}

static void what_cannot_succeed_is_given_up_or_waits(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json", json_printf(CONFIG("said.jsonl"), "report"));
    w.shards[0] = (struct shard){"only", NULL, false, 1, 6, 0, false};
    w.poison = 4;
    verb_write(v, "failed.jsonl", "of the run before\n");
    for (int i = 0; i < 2; i++) {
        verb_assert(v,
                    verb(v, "%s%s", line("--once --max-retries 0 --bisect --on-failure failed.jsonl"),
                         i ? " --in-process" : ""),
                    1, "discarded");
        assert_string_equal(handled(v), " 1 2 3 5 6 ");
        assert_non_null(strstr(verb_read(v, "failed.jsonl"), "of the run before\n{"));
        assert_non_null(strstr(verb_read(v, "failed.jsonl"),
                               "\"startSequenceNumber\":\"4\",\"endSequenceNumber\":\"4\""));
    }
    verb_assert(v, verb_stop(v, 400, "%s", line("--in-process --checkpoint place.json")), 1, "not handled");
    assert_memory_equal(handled(v), " 1 2 3 5 6 ", 7);
    assert_non_null(strstr(verb_read(v, "place.json"), "\"after\":\"3\""));
    w.poison = 0;
    verb_assert(v, verb_stop(v, 400, "%s", line("--in-process --checkpoint place.json")), 0, "");
    assert_memory_equal(handled(v), " 4 5 6 ", 7);
}

/* An answer that proves nothing is neither an empty page nor the end of a shard. */
static void a_lie_is_not_understood(void **state)
{
    struct verbs *v = *state;
    static const char *const lies[][2] = {
        {"GetRecords", "{\"Records\":[{\"dynamodb\":{}}]}"},
        {"GetShardIterator", "{\"ShardIterator\":\"\"}"},
        {"DescribeStream", "{\"StreamDescription\":{\"Shards\":[{\"ShardId\":\"a\",\"ParentShardId\":\"a\","
                           "\"SequenceNumberRange\":{}}]}}"},
    };
    verb_set(v, "AWS_MAX_ATTEMPTS=1");
    w.shards[0] = (struct shard){"only", NULL, true, 1, 3, 0, false};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        w.liar = lies[i][0], w.lie = lies[i][1];
        int status = verb(v, "%s", line("--once --in-process --checkpoint place.json"));
        assert_in_range(status, 1, 2);
        if (!strstr(verb_err(v), "not understood") && !strstr(verb_err(v), "without shards"))
            fail_msg("%s: %s\n%s%s", w.liar, w.lie, verb_out(v), verb_err(v));
        assert_string_equal(handled(v), " ");
    }
    w.liar = NULL;
    verb_assert(v, verb(v, "%s", line("--once --in-process --checkpoint place.json")), 0, "");
    assert_string_equal(handled(v), " 1 2 3 ");
}

static void wrong_use_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags, *text;
    } cases[] = {
        {"", "--table NAME or --stream ARN is missing"},
        {"--table t --from noon", "--from must be oldest or latest, not \"noon\""},
        {"--table t --checkpoint a --leases dynamodb://leases", "--leases and --checkpoint"},
        {"--table t --leases dynamodb://leases", "--leases and --once"},
        {"--table t --worker-id me", "--worker-id needs --leases"},
        {"--table t --lease-seconds 5", "--lease-seconds needs --leases"},
        {"--table t --listen nowhere", "--listen"},
        {"--table t --listen 127.0.0.1:99999", "--listen"},
        {"--table t --filter '{}'", "--filter"},
        {"--table t --config nowhere.json", "nowhere.json"},
        {"--table t --batch-size 0", "--batch-size"},
        {"--table t --memory 0", "--memory 0 is out of range; write a number from 1 to 1048576"},
        {"--table t --max-age 59", "MaximumRecordAgeInSeconds"},
        {"--table t --on-failure nowhere/x", "nowhere/x"},
        {"--table t --trace nowhere/x", "nowhere/x"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v,
                    verb(v, "tail --once --endpoint-url %s %s", scripted_server_url(server), cases[i].flags),
                    2, cases[i].text);
    w.latest = NULL;
    verb_assert(v, verb(v, "tail --once --table t --endpoint-url %s", scripted_server_url(server)), 2,
                "stream");
}

/* A function that takes an event, and never answers. */
static int hang(void)
{
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    if (sl_runtime_open(getenv("AWS_LAMBDA_RUNTIME_API"), "hangs", &rt, NULL) != SL_OK ||
        sl_runtime_next(rt, &event, NULL) != SL_OK)
        return 1;
    return pause();
}

/* Told to stop, it ends within two seconds, also when a function does not answer; its records are read again.
 */
static void a_function_that_hangs_is_broken_off(void **state)
{
    struct verbs *v = *state;
    const char *again = line("--concurrency 1 --batch-size 2 --checkpoint place.json");
    w.shards[0] = (struct shard){"only", NULL, true, 1, 6, 0, false};
    verb_write(v, "hang", "");
    verb_assert(v, verb_stop(v, 400, "%s", again), 1, "not handled            6");
    assert_string_equal(handled(v), " ");
    unlink(json_printf("%s/hang", verbs_folder(v)));
    verb_assert(v, verb(v, "%s --once", again), 0, "");
    assert_string_equal(handled(v), " 1 2 3 4 5 6 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return access("hang", F_OK) == 0 ? hang() : sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(shards_are_handled_after_their_parents),
        TEST(a_place_is_kept_and_gaps_are_told),
        TEST(what_cannot_succeed_is_given_up_or_waits),
        TEST(a_function_that_hangs_is_broken_off),
        TEST(a_lie_is_not_understood),
        TEST(wrong_use_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
