/* `sluice tail` on a scripted stream: shards with parents and children, places that are kept, gaps, iterators
 * that expire, records that cannot succeed, and answers that prove nothing. */
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "runtime/start.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define ARN    "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define SHARDS 6
#define PAGE   3

/* ---- the stream ---- */

struct shard {
    const char *name, *parent; /* NULL: none; a name of NULL ends the list */
    bool is_closed;
    unsigned first, last; /* sequence numbers; first 0: no records */
    unsigned trimmed;     /* those below are gone */
};

static struct world {
    struct shard shards[SHARDS];
    const char *status;
    unsigned expire;        /* so many reads find their iterator expired */
    bool doubles;           /* shards are listed twice */
    unsigned poison;        /* this record has no word */
    const char *liar, *lie; /* this operation answers that */
    bool has_stream;        /* DescribeTable names it */
    char body[1 << 16];
    size_t n_reads;
} w;

static const struct shard *shard_named(const char *name)
{
    for (const struct shard *s = w.shards; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static void refuse(struct scripted_reply *reply, const char *code)
{
    reply->status = 400;
    snprintf(w.body, sizeof(w.body),
             "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":\"by script\"}", code);
}

static void describe(const json_t *ask)
{
    const char *after = json_string_value(json_object_get(ask, "ExclusiveStartShardId"));
    size_t n = 0, from = 0, end;
    for (size_t i = 0; w.shards[i].name; i++)
        if (after && strcmp(w.shards[i].name, after) == 0)
            from = i + 1;
    n = (size_t)snprintf(w.body, sizeof(w.body),
                         "{\"StreamDescription\":{\"StreamStatus\":\"%s\",\"Shards\":[", w.status);
    for (int copy = 0; copy <= (int)w.doubles; copy++)
        for (end = from; w.shards[end].name && end < from + 2 + SHARDS * (size_t)w.doubles; end++) {
            const struct shard *s = &w.shards[end];
            n += (size_t)snprintf(
                w.body + n, sizeof(w.body) - n,
                "%s{\"ShardId\":\"%s\"%s%s%s,\"SequenceNumberRange\":{\"StartingSequenceNumber\":\"1\"%s}}",
                copy || end > from ? "," : "", s->name, s->parent ? ",\"ParentShardId\":\"" : "",
                s->parent ? s->parent : "", s->parent ? "\"" : "",
                s->is_closed ? ",\"EndingSequenceNumber\":\"9\"" : "");
        }
    n += (size_t)snprintf(w.body + n, sizeof(w.body) - n, "]");
    if (w.shards[end].name)
        n += (size_t)snprintf(w.body + n, sizeof(w.body) - n, ",\"LastEvaluatedShardId\":\"%s\"",
                              w.shards[end - 1].name);
    snprintf(w.body + n, sizeof(w.body) - n, "}}");
}

static void iterator(const json_t *ask, struct scripted_reply *reply)
{
    const struct shard *s = shard_named(json_string_value(json_object_get(ask, "ShardId")));
    const char *type = json_string_value(json_object_get(ask, "ShardIteratorType"));
    const char *sequence = json_string_value(json_object_get(ask, "SequenceNumber"));
    unsigned at = s ? s->first : 0, after = sequence ? (unsigned)strtoul(sequence, NULL, 10) : 0;
    if (!s) {
        refuse(reply, "ResourceNotFoundException");
        return;
    }
    if (sequence && after < s->trimmed) {
        refuse(reply, "TrimmedDataAccessException");
        return;
    }
    if (strcmp(type, "LATEST") == 0)
        at = s->last + 1;
    else if (sequence && after >= at)
        at = after + (strncmp(type, "AFTER", 5) == 0);
    snprintf(w.body, sizeof(w.body), "{\"ShardIterator\":\"%s:%u\"}", s->name, at);
}

static void records(const json_t *ask, struct scripted_reply *reply)
{
    char name[64];
    unsigned at, n = 0;
    assert_int_equal(
        sscanf(json_string_value(json_object_get(ask, "ShardIterator")), "%63[^:]:%u", name, &at), 2);
    const struct shard *s = shard_named(name);
    w.n_reads++;
    if (!s || w.expire) {
        w.expire -= w.expire > 0;
        refuse(reply, s ? "ExpiredIteratorException" : "ResourceNotFoundException");
        return;
    }
    size_t len = (size_t)snprintf(w.body, sizeof(w.body), "{\"Records\":[");
    for (; n < PAGE && s->first && at <= s->last; n++, at++)
        len +=
            (size_t)snprintf(w.body + len, sizeof(w.body) - len,
                             "%s{\"eventID\":\"%u\",\"eventName\":\"INSERT\",\"eventVersion\":\"1.1\","
                             "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\","
                             "\"dynamodb\":{\"ApproximateCreationDateTime\":1767225600,\"Keys\":{\"PK\":{"
                             "\"S\":\"k%u\"}},\"NewImage\":{\"PK\":{\"S\":\"k%u\"}%s},"
                             "\"SequenceNumber\":\"%u\",\"SizeBytes\":9,\"StreamViewType\":\"NEW_IMAGE\"}}",
                             n ? "," : "", at, at, at, at == w.poison ? "" : ",\"word\":{\"S\":\"w\"}", at);
    len += (size_t)snprintf(w.body + len, sizeof(w.body) - len, "]");
    if (!s->is_closed || at <= s->last)
        len += (size_t)snprintf(w.body + len, sizeof(w.body) - len, ",\"NextShardIterator\":\"%s:%u\"", name,
                                at);
    snprintf(w.body + len, sizeof(w.body) - len, "}");
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    struct sl_span target = scripted_header(request, "x-amz-target");
    const char *dot = memchr(target.ptr, '.', target.len);
    struct sl_span operation = sl_span(dot + 1, target.len - (size_t)(dot + 1 - target.ptr));
    json_t *ask = json_loadb(request->body.ptr, request->body.len, 0, NULL);
    reply->status = 200;
    if (w.liar && sl_span_is(operation, w.liar))
        snprintf(w.body, sizeof(w.body), "%s", w.lie);
    else if (sl_span_is(operation, "DescribeTable"))
        snprintf(w.body, sizeof(w.body),
                 w.has_stream ? "{\"Table\":{\"TableName\":\"t\",\"LatestStreamArn\":\"" ARN "\"}}"
                              : "{\"Table\":{\"TableName\":\"t\"}}");
    else if (sl_span_is(operation, "DescribeStream"))
        describe(ask);
    else if (sl_span_is(operation, "GetShardIterator"))
        iterator(ask, reply);
    else if (sl_span_is(operation, "GetRecords"))
        records(ask, reply);
    else
        refuse(reply, "ResourceNotFoundException");
    json_decref(ask);
    reply->body = sl_span_str(w.body);
}

/* ---- the test's own ---- */

static struct scripted_server *server;

#define CONFIG(to)                                                                                           \
    "{'report_batch_item_failures':true,'on_failure':'%s','routes':[{'name':'say','handler':'notify','to':'" \
    "jsonl:" to "','message':'{PK}{word}'}]}"

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    w = (struct world){.status = "ENABLED", .has_stream = true};
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
    {"child", "root", false, 21, 24, 0},
    {"root", NULL, true, 1001, 1005, 0},
    {"other", "root", true, 3011, 3012, 0},
    {"grandchild", "other", false, 5031, 5031, 0},
};

static void shards_are_handled_after_their_parents(void **state)
{
    struct verbs *v = *state;
    static const char *const flags[] = {
        "--once --concurrency 1 --batch-size 2 --per-shard --listen 127.0.0.1:0 --trace trace.jsonl",
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
    w.shards[0] = (struct shard){"child", "root", false, 40, 41, 40};
    verb_assert(v, verb(v, "%s", again), 1, "are gone from the stream");
    assert_string_equal(handled(v), " 40 41 ");
    w.shards[3] = (struct shard){NULL, NULL, false, 0, 0, 0};
    verb_assert(v, verb(v, "%s", again), 1, "1 shard(s)");
    verb_assert(v,
                verb(v, "tail --stream " ARN "x --endpoint-url %s --once --checkpoint place.json",
                     scripted_server_url(server)),
                2, "another stream");
    verb_write(v, "place.json", "{'stream'");
    verb_assert(v, verb(v, "%s", again), 2, "place.json");
    w.shards[0] = (struct shard){"child", NULL, false, 50, 53, 0};
    verb_assert(v, verb(v, "%s", line("--once --in-process --from latest")), 0, "");
    assert_string_equal(handled(v), " ");
}

static void what_cannot_succeed_is_given_up_or_waits(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json", json_printf(CONFIG("said.jsonl"), "report"));
    w.shards[0] = (struct shard){"only", NULL, false, 1, 6, 0};
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
    verb_assert(v, verb_stop(v, 900, "%s", line("--in-process --checkpoint place.json")), 1, "not handled");
    assert_memory_equal(handled(v), " 1 2 3 5 6 ", 7);
    assert_non_null(strstr(verb_read(v, "place.json"), "\"after\":\"3\""));
    w.poison = 0;
    verb_assert(v, verb_stop(v, 900, "%s", line("--in-process --checkpoint place.json")), 0, "");
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
    w.shards[0] = (struct shard){"only", NULL, true, 1, 3, 0};
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
    w.has_stream = false;
    verb_assert(v, verb(v, "tail --once --table t --endpoint-url %s", scripted_server_url(server)), 2,
                "stream");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(shards_are_handled_after_their_parents),
        TEST(a_place_is_kept_and_gaps_are_told),
        TEST(what_cannot_succeed_is_given_up_or_waits),
        TEST(a_lie_is_not_understood),
        TEST(wrong_use_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
