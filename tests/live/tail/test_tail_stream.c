/* What happens to a stream while `sluice tail` reads it: a new one takes its place, it is disabled or
 * deleted, shards are not listed, requests fail. Nothing is lost without being told, and nothing is left
 * behind in the checkpoint. */
#include "tests/live/tail/stream_world.h"
#include "tests/support/disk_fault.h"
#include "tests/support/verbs.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

static struct scripted_server *server;

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_haste(v, 20);
    verb_set(v, "AWS_MAX_ATTEMPTS=1");
    w = (struct world){.status = "ENABLED", .latest = ARN, .times = 1};
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':[{'name':'say',"
               "'handler':'notify','to':'jsonl:said.jsonl','message':'{PK}'}]}");
    server = scripted_server_start(answer, NULL);
    return 0;
}

static int tear_down(void **state)
{
    scripted_server_stop(server);
    verbs_destroy(*state);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
    return (x > y) - (x < y);
}

/* The records that were handled since the last call, by their numbers: " 1 2 3 ". */
static const char *handled(struct verbs *v)
{
    static char text[4096];
    unsigned long numbers[256];
    size_t count = 0, n = (size_t)snprintf(text, sizeof(text), " ");
    for (const char *at = verb_read(v, "said.jsonl"); *at && count < 256; at += strcspn(at, "\n") + 1)
        numbers[count++] = strtoul(at + 2, NULL, 10);
    qsort(numbers, count, sizeof(numbers[0]), by_number);
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lu ", numbers[i]);
    unlink(json_printf("%s/said.jsonl", verbs_folder(v)));
    return text;
}

static void assert_told(struct verbs *v, const char *text)
{
    if (!strstr(verb_err(v), text) && !strstr(verb_out(v), text))
        fail_msg("no \"%s\":\n%s%s", text, verb_out(v), verb_err(v));
}

static int tail(struct verbs *v, const char *flags)
{
    return verb(v, "tail --endpoint-url %s --in-process --quiet --once %s", scripted_server_url(server),
                flags);
}

/* Shards of the first stream, of the second one; every one of them has ended, or is empty. */
static const struct shard old_shards[SHARDS] = {{"a", NULL, true, 1, 4, 0, false},
                                                {"b", NULL, true, 101, 102, 0, false}};
static const struct shard new_shards[SHARDS] = {{"c", NULL, false, 201, 205, 0, false}};

static void use(const struct shard *shards, const struct shard *newer)
{
    memcpy(w.shards, shards, sizeof(w.shards));
    memcpy(w.newer, newer, sizeof(w.newer));
}

/* ---- another stream ---- */

static void a_new_stream_is_followed(void **state)
{
    struct verbs *v = *state;
    static const char follow[] = "--table t --follow-new-stream --checkpoint place.json";
    use(old_shards, new_shards);
    w.shards[0].last = 3;
    w.shards[0].is_closed = w.shards[1].is_closed = false;
    verb_assert(v, tail(v, "--stream " ARN " --checkpoint place.json"), 0, "");
    assert_string_equal(handled(v), " 1 2 3 101 102 ");
    /* The first stream got one more record, and its end. */
    w.shards[0] = old_shards[0], w.shards[1] = old_shards[1];
    w.latest = NEWER;
    verb_assert(v, tail(v, "--table t --checkpoint place.json"), 2, "another stream");
    verb_assert(v, tail(v, "--stream " ARN " --checkpoint other.json --table t"), 1,
                "gets no more changes: the table has another stream now, " NEWER
                ". Handled are all changes up to ");
    assert_told(v, "Start again with --follow-new-stream");
    (void)handled(v);
    verb_assert(v, tail(v, follow), 1, "is handled to its end; follows " NEWER);
    assert_string_equal(handled(v), " 4 201 202 203 204 205 ");
    w.newer[0].last = 206;
    verb_assert(v, tail(v, follow), 0, "");
    assert_string_equal(handled(v), " 206 ");
    /* The table's name is in the stream's. */
    verb_assert(v, tail(v, "--stream " NEWER " --follow-new-stream --checkpoint place.json"), 0, "");
    verb_assert(v, tail(v, "--stream arn:aws:dynamodb:us-east-1:1:other --follow-new-stream"), 0, "");
}

/* With --once, too: it does not end before the table has answered, but a refusal is an answer. */
static void a_slow_table_is_waited_for(void **state)
{
    struct verbs *v = *state;
    static const char told[] = "gets no more changes: the table has another stream now, " NEWER;
    use(old_shards, new_shards);
    w.latest = NEWER, w.byte_ms = 5;
    verb_assert(v, tail(v, "--stream " ARN " --table t"), 1, told);
    assert_string_equal(handled(v), " 1 2 3 4 101 102 ");
    w.byte_ms = 0;
    w.denied = "DescribeTable", w.code = "ThrottlingException", w.times = 20;
    verb_assert(v, tail(v, "--stream " ARN " --table t"), 1, told);
    w.code = "AccessDeniedException", w.times = 1000;
    verb_assert(v, tail(v, "--stream " ARN " --table t"), 0, "AccessDenied");
}

static void a_stream_without_a_next_one_ends(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags, *denied, *code;
        bool is_disabled;
        const char *told;
    } cases[] = {
        {"", "DescribeTable", "ResourceNotFoundException", false,
         "gets no more changes: its table is deleted"},
        {"--follow-new-stream", "DescribeTable", "ResourceNotFoundException", false,
         "is handled to its end, and its table is deleted"},
        {"", NULL, NULL, true, "gets no more changes: it is disabled"},
        {"", "DescribeStream", "ResourceNotFoundException", false,
         "is deleted, and what it held and was not handled is gone"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        use(old_shards, new_shards);
        w.denied = cases[i].denied, w.code = cases[i].code;
        /* Of the stream, when it is listed once more. */
        w.after = w.denied && strcmp(w.denied, "DescribeStream") == 0, w.times = 1000;
        w.status = cases[i].is_disabled ? "DISABLED" : "ENABLED";
        verb_assert(
            v, tail(v, json_printf("--stream " ARN " --table t --checkpoint %zu.json %s", i, cases[i].flags)),
            1, cases[i].told);
        /* What is left of it is handled first, also later. */
        w.times = 0;
        w.status = "ENABLED";
        verb_assert(v, tail(v, json_printf("--stream " ARN " --checkpoint %zu.json", i)), 0, "");
        assert_string_equal(handled(v), " 1 2 3 4 101 102 ");
    }
}

/* A stream that is deleted while it is read: with --follow-new-stream the table's next one is read. */
static void a_deleted_stream_is_followed(void **state)
{
    struct verbs *v = *state;
    use(old_shards, new_shards);
    w.latest = NEWER;
    w.denied = "GetShardIterator", w.code = "ResourceNotFoundException", w.after = 1, w.times = 1;
    verb_write(v, "place.json",
               "{'stream':'" ARN "','complete_since':'2020-01-01T00:00:00.000Z','shards':{}}");
    verb_assert(v, tail(v, "--stream " ARN " --table t --follow-new-stream --checkpoint place.json"), 1,
                "1 shard(s) of the checkpoint are gone from the stream before they were read to their end");
    assert_told(v, "follows " NEWER);
    assert_non_null(strstr(handled(v), " 201 202 203 204 205 "));
    assert_non_null(strstr(verb_read(v, "place.json"), "\"complete_since\""));
    assert_null(strstr(verb_read(v, "place.json"), "2020-01-01"));
    w.denied = NULL;
    verb_assert(v, tail(v, "--table t --follow-new-stream --checkpoint place.json"), 0, "");
    assert_string_equal(handled(v), " ");
}

/* ---- shards ---- */

/* A shard whose parent no list shows: it is read after the parent, unless the service says that it is gone.
 */
static void a_parent_that_is_not_listed_comes_first(void **state)
{
    struct verbs *v = *state;
    static const struct {
        struct shard parent;
        const char *handled;
    } cases[] = {
        {{"p", NULL, true, 1, 4, 0, true}, " 1 2 3 4 11 12 "},
        {{NULL, NULL, false, 0, 0, 0, false}, " 11 12 "},
    };
    for (size_t i = 0; i < 2; i++) {
        w.shards[0] = (struct shard){"child", "p", false, 11, 12, 0, false};
        w.shards[1] = cases[i].parent;
        verb_assert(v, tail(v, "--stream " ARN), 0, "");
        assert_string_equal(handled(v), cases[i].handled);
    }
    w.shards[1] = cases[0].parent;
    w.denied = "GetShardIterator", w.code = "AccessDeniedException", w.after = 0, w.times = 1;
    verb_assert(v, tail(v, "--stream " ARN), 2, "AccessDenied");
    w.times = 1;
    w.code = "ThrottlingException";
    verb_assert(v, tail(v, "--stream " ARN), 0, "");
    assert_string_equal(handled(v), " 1 2 3 4 11 12 ");
}

/* The records of any kind are counted, filtered, and handled once. */
/* A parent that was read to its end and is not listed is forgotten after some lists. Its child may not have
 * read a record by then: it does not wait for the parent again. (It did, without an end.) */
static void a_parent_that_is_forgotten_is_over(void **state)
{
    struct verbs *v = *state;
    w.shards[0] = (struct shard){"child", "p", false, 11, 12, 0, false};
    w.shards[1] = (struct shard){"p", NULL, true, 1, 4, 0, true};
    /* The parent's two pages come, and for three quarters of a minute none of the child's. */
    w.denied = "GetRecords", w.code = "InternalServerError", w.after = 2, w.times = 9;
    verb_haste(v, 60);
    verb_assert(v, tail(v, "--stream " ARN), 0, "");
    assert_string_equal(handled(v), " 1 2 3 4 11 12 ");
}

static void changes_and_removals_are_counted(void **state)
{
    struct verbs *v = *state;
    w.shards[0] = (struct shard){"a", NULL, false, 1, 9, 0, false};
    w.is_mixed = true;
    verb_assert(v, tail(v, "--stream " ARN), 0, "INSERT 3, MODIFY 3, REMOVE 3");
    assert_string_equal(handled(v), " 1 2 3 4 5 6 7 8 9 ");
    assert_told(v, "removed by TTL         3");
    verb_assert(v, tail(v, "--stream " ARN " --filter '{\"eventName\":[\"REMOVE\"]}' --per-shard"), 0,
                "filtered");
    assert_string_equal(handled(v), " 2 5 8 ");
}

/* It is named, what is before it is handled, and what the error says to do helps. */
static void a_record_that_cannot_be_read_is_named(void **state)
{
    struct verbs *v = *state;
    static const char *const again = "--stream " ARN " --checkpoint place.json";
    w.shards[0] = (struct shard){"a", NULL, true, 1, 9, 0, false};
    w.broken = 5;
    verb_assert(v, tail(v, again), 1, "the record \"5\" cannot be read: ");
    assert_told(v, "write its sequence number as \"after\" of this shard into the checkpoint file");
    assert_string_equal(handled(v), " 1 2 3 4 ");
    verb_assert(v, tail(v, again), 1, "the record \"5\" cannot be read: ");
    assert_string_equal(handled(v), " ");
    char *place = strdup(verb_read(v, "place.json")), *at = strstr(place, "\"after\":\"4\"");
    assert_non_null(at);
    at[9] = '5';
    verb_write(v, "place.json", place);
    verb_assert(v, tail(v, again), 0, "");
    assert_string_equal(handled(v), " 6 7 8 9 ");
    free(place);
}

/* ---- places in a lease table ---- */

/* Reads so often until it ends; what comes meanwhile is handled once. */
static int tail_of_a_worker(struct verbs *v, const char *flags)
{
    w.ends = v;
    w.reads_until_end = 40;
    int status = verb(v,
                      "tail --endpoint-url %s --quiet --in-process --stream " ARN
                      " --leases sqlite:leases.db?table=leases --lease-seconds 5 %s",
                      scripted_server_url(server), flags);
    w.ends = NULL;
    return status;
}

/* The keys of the copies, sorted. */
static const char *copies(struct verbs *v)
{
    static char text[1024];
    char path[600];
    sqlite3 *db;
    sqlite3_stmt *query;
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/out.db", verbs_folder(v));
    text[0] = '\0';
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT json_extract(key, '$.PK.S') AS k FROM copy ORDER BY k",
                                        -1, &query, NULL),
                     SQLITE_OK);
    while (sqlite3_step(query) == SQLITE_ROW)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", sqlite3_column_text(query, 0));
    sqlite3_finalize(query);
    sqlite3_close(db);
    return text;
}

static void a_lease_table_keeps_places(void **state)
{
    struct verbs *v = *state;
    use(old_shards, new_shards);
    verb_assert(v, tail_of_a_worker(v, ""), 2, "the route say sends what cannot be sent twice");
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'copy',"
               "'handler':'replicate','to':'sqlite:out.db?table=copy'}]}");
    w.shards[0].is_closed = w.shards[1].is_closed = false;
    verb_assert(v, tail_of_a_worker(v, "--worker-id me"), 0, "records in             6");
    assert_string_equal(copies(v), "k1 k101 k102 k2 k3 k4 ");
    w.shards[0].last = 5;
    verb_assert(v, tail_of_a_worker(v, ""), 0, "records in             1");
    assert_string_equal(copies(v), "k1 k101 k102 k2 k3 k4 k5 ");
    verb_assert(v, verb(v, "tail --stream " ARN " --leases s3://bucket"), 2,
                "--leases is the target of a table");
    verb_assert(v, tail(v, "--stream " ARN " --leases sqlite:leases.db?table=leases"), 2,
                "--leases and --once");
}

/* What could crash or hang this process needs a word; what another might do at the same time is refused. */
static void plugins_need_trust(void **state)
{
    struct verbs *v = *state;
    use(old_shards, new_shards);
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'own','handler':'"
               "mine'}]}");
    verb_assert(v, tail(v, "--stream " ARN), 2,
                "the handler mine of the route own is a plugin, which can crash or hang this process: leave "
                "--in-process out, or say --trust-plugins");
    verb_assert(v, tail(v, "--stream " ARN " --trust-plugins"), 2, "mine");
    if (strstr(verb_err(v), "which can crash"))
        fail_msg("%s", verb_err(v));
    verb_assert(v, tail_of_a_worker(v, "--trust-plugins"), 2, "leave --in-process out\n");
}

/* ---- requests that fail ---- */

static void a_request_that_fails_for_now_is_repeated(void **state)
{
    struct verbs *v = *state;
    static const char *const operations[] = {"DescribeTable", "DescribeStream", "GetShardIterator",
                                             "GetRecords"};
    static const char *const codes[] = {"ThrottlingException", "LimitExceededException",
                                        "InternalServerError"};
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
            use(old_shards, new_shards);
            w.denied = operations[i], w.code = codes[k];
            w.after = i != 0, w.times = 2;
            verb_assert(v, tail(v, "--stream " ARN " --table t"), 0, "");
            assert_told(v, codes[k]);
            assert_string_equal(handled(v), " 1 2 3 4 101 102 ");
        }
}

static void a_request_that_is_refused_for_good_ends_it(void **state)
{
    struct verbs *v = *state;
    static const char *const operations[] = {"DescribeStream", "GetShardIterator", "GetRecords"};
    static const char *const again = "--stream " ARN " --checkpoint place.json";
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        use(old_shards, new_shards);
        unlink(json_printf("%s/place.json", verbs_folder(v)));
        w.denied = operations[i], w.code = "AccessDeniedException", w.after = i == 2, w.times = 1000;
        int status = tail(v, again);
        char before[200];
        snprintf(before, sizeof(before), "%s", handled(v));
        /* Two answers may come at once: the refusal can end it before the good one is looked at. */
        assert_true(i == 2 || strcmp(before, " ") == 0);
        verb_assert(v, status, strcmp(before, " ") == 0 ? 2 : 1, "AccessDenied");
        assert_told(v, operations[i]);
        w.times = 0;
        verb_assert(v, tail(v, again), 0, "");
        /* Nothing is left out, and nothing was handled twice. */
        const char *rest = handled(v);
        for (unsigned n = 1; n <= 102; n += n == 4 ? 97 : 1) {
            const char *one = json_printf(" %u ", n);
            if (!strstr(before, one) == !strstr(rest, one))
                fail_msg("%s: record %u:%s|%s", operations[i], n, before, rest);
        }
    }
}

/* An iterator that expires again and again is not asked for without a pause; a record is not left out. */
static void iterators_may_expire_again(void **state)
{
    struct verbs *v = *state;
    w.shards[0] = (struct shard){"a", NULL, true, 1, 4, 0, false};
    w.expire = 3;
    verb_assert(v, tail(v, "--stream " ARN), 0, "ExpiredIteratorException");
    assert_string_equal(handled(v), " 1 2 3 4 ");
}

/* ---- this machine's faults ---- */

static void every_fault_of_the_system_is_told(void **state)
{
    struct verbs *v = *state;
    static const int errors[] = {ENOSPC, EMFILE, EIO};
    static const char *const again = "--stream " ARN " --checkpoint place.json";
    bool came = true;
    for (int n = 1; came; n++) {
        use(old_shards, new_shards);
        w.shards[1].name = NULL;
        unlink(json_printf("%s/place.json", verbs_folder(v)));
        verb_fault(v, n, errors[n % 3], NULL);
        int status = tail(v, again);
        came = disk_fault_came();
        if (status < 0 || (status && !verb_err(v)[0] && !strstr(verb_out(v), "discarded")))
            fail_msg("%s fails: %d\n%s%s", disk_fault->came, status, verb_out(v), verb_err(v));
        if (status)
            verb_assert(v, tail(v, again), 0, "");
        const char *all = handled(v);
        for (unsigned i = 1; i <= 4; i++)
            if (!strstr(all, json_printf(" %u ", i)) &&
                !strstr(verb_read(v, "parked.jsonl"), json_printf("k%u", i)))
                fail_msg("%s fails, and record %u is lost:%s", disk_fault->came, i, all);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_stream_is_followed),
        TEST(a_slow_table_is_waited_for),
        TEST(a_stream_without_a_next_one_ends),
        TEST(a_deleted_stream_is_followed),
        TEST(a_parent_that_is_not_listed_comes_first),
        TEST(a_parent_that_is_forgotten_is_over),
        TEST(changes_and_removals_are_counted),
        TEST(a_record_that_cannot_be_read_is_named),
        TEST(a_lease_table_keeps_places),
        TEST(plugins_need_trust),
        TEST(a_request_that_fails_for_now_is_repeated),
        TEST(a_request_that_is_refused_for_good_ends_it),
        TEST(iterators_may_expire_again),
        TEST(every_fault_of_the_system_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
