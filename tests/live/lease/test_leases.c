/* The keeper of leases as the engine of tail sees it: events, in real time, two workers on one table. Every
 * wait is for a condition, with a long bound. */
#include "tests/support/haste.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "live/lease/leases.h"

#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STREAM  "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define WAIT_MS 60000
#define EVENTS  64

struct worker {
    struct sl_keeper keeper;
    int bell;
    char target[256];
    struct sl_leases_options options;
    struct {
        enum sl_keeper_event_kind kind;
        char shard[64], after[64], text[512];
        int64_t since_ms;
    } events[EVENTS];
    size_t n;
};

static const struct sl_vars none = {.list = (const char *const[]){NULL}};

static struct worker *worker_new(const char *folder, const char *name, int64_t seconds)
{
    struct worker *w = calloc(1, sizeof(*w));
    struct sl_error error = SL_NO_ERROR;
    snprintf(w->target, sizeof(w->target), "sqlite:%s/leases.db?table=leases", folder);
    w->options = (struct sl_leases_options){
        .target = w->target, .vars = &none, .worker = name, .seconds = seconds, .is_quiet = true};
    w->bell = eventfd(0, EFD_NONBLOCK);
    if (sl_leases_new(&w->options, &w->keeper, &error) != SL_OK)
        fail_msg("%s", error.text);
    return w;
}

static void worker_open(struct worker *w)
{
    struct sl_error error = SL_NO_ERROR;
    if (w->keeper.ops->open(w->keeper.self, STREAM, w->bell, &error) != SL_OK)
        fail_msg("%s", error.text);
}

static void worker_end(struct worker *w)
{
    struct sl_error error = SL_NO_ERROR;
    if (w->keeper.ops->close(w->keeper.self, WAIT_MS, &error) != SL_OK)
        fail_msg("%s", error.text);
    close(w->bell);
    free(w);
}

static void take_all(struct worker *w)
{
    struct sl_keeper_event event;
    while (w->n < EVENTS && w->keeper.ops->take(w->keeper.self, &event)) {
        w->events[w->n].kind = event.kind;
        snprintf(w->events[w->n].shard, 64, "%s", event.shard ? event.shard : "");
        snprintf(w->events[w->n].after, 64, "%s", event.place.after ? event.place.after : "");
        snprintf(w->events[w->n].text, 512, "%s", event.text ? event.text : "");
        w->events[w->n++].since_ms = event.place.since_ms;
    }
}

/* Where the event is in the worker's list; it is waited for. */
static size_t wait_for(struct worker *w, enum sl_keeper_event_kind kind, const char *shard)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t end_ms = clock->now_ms(clock) + WAIT_MS;
    while (clock->now_ms(clock) < end_ms) {
        struct pollfd bell = {.fd = w->bell, .events = POLLIN};
        uint64_t rings;
        take_all(w);
        for (size_t i = 0; i < w->n; i++)
            if (w->events[i].kind == kind && strcmp(w->events[i].shard, shard) == 0)
                return i;
        if (poll(&bell, 1, 100) > 0)
            (void)!read(w->bell, &rings, sizeof(rings));
    }
    fail_msg("no event %d of %s", kind, shard);
    return 0;
}

static bool has(struct worker *w, enum sl_keeper_event_kind kind, const char *shard)
{
    take_all(w);
    for (size_t i = 0; i < w->n; i++)
        if (w->events[i].kind == kind && strcmp(w->events[i].shard, shard) == 0)
            return true;
    return false;
}

static void list(struct worker *w, bool is_from_latest)
{
    static const struct sl_keeper_shard shards[] = {
        {"a", "", false, true}, {"b", "a", true, false}, {"c", "", false, false}};
    const struct sl_keeper_listing listing = {
        .shards = shards, .n = 3, .now_ms = 1790000000000, .is_from_latest = is_from_latest};
    w->keeper.ops->listed(w->keeper.self, &listing);
}

static void save(struct worker *w, const char *shard, const char *after, bool is_done)
{
    const struct sl_keeper_place place = {.shard = shard, .after = after, .is_done = is_done};
    w->keeper.ops->save(w->keeper.self, &place, 1);
}

static int64_t left_ms(struct worker *w, const char *shard)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t until = w->keeper.ops->until_ms(w->keeper.self, shard);
    return until ? until - clock->now_ms(clock) : 0;
}

static void one_worker_has_all_parents_first(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct worker *w = worker_new(folder, "one", 0); /* ten seconds */
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "a");
    assert_in_range(left_ms(w, "a"), 1, 8000);
    size_t c = wait_for(w, SL_KEEPER_GAINED, "c");
    assert_string_equal(w->events[c].after, "");
    assert_int_equal(w->events[c].since_ms, 0);
    assert_false(has(w, SL_KEEPER_GAINED, "b")); /* its parent is not done */
    assert_int_equal(left_ms(w, "b"), 0);
    save(w, "a", "17", false);
    save(w, "a", "18", true);
    size_t ended = wait_for(w, SL_KEEPER_ENDED, "a"), begun = wait_for(w, SL_KEEPER_GAINED, "b");
    assert_true(ended < begun);
    assert_false(has(w, SL_KEEPER_LOST, "a"));
    assert_int_equal(left_ms(w, "a"), 0);
    worker_end(w);
    test_folder_remove(folder);
}

/* A child of a shard that has ended begins although no list has it yet. */
static void a_child_that_is_found_begins(void **state)
{
    static const struct sl_keeper_shard children[] = {{"d", "c", true, false}, {"e", "c", true, false}};
    (void)state;
    char *folder = test_folder_in_memory();
    struct worker *w = worker_new(folder, "first", 30);
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    save(w, "c", "9", true);
    w->keeper.ops->found(w->keeper.self, &children[0], 1);
    w->keeper.ops->found(w->keeper.self, &children[1], 1);
    size_t ended = wait_for(w, SL_KEEPER_ENDED, "c");
    assert_true(wait_for(w, SL_KEEPER_GAINED, "d") > ended);
    assert_true(wait_for(w, SL_KEEPER_GAINED, "e") > ended);
    list(w, false); /* an older one */
    save(w, "d", "11", false);
    assert_true(left_ms(w, "d") > 0);
    worker_end(w);
    w = worker_new(folder, "second", 30);
    worker_open(w);
    assert_string_equal(w->events[wait_for(w, SL_KEEPER_GAINED, "d")].after, "11");
    w->keeper.ops->found(w->keeper.self, children, 2); /* the end may come before it is looked at */
    worker_end(w);
    test_folder_remove(folder);
}

static void what_was_saved_is_where_the_next_begins(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct worker *w = worker_new(folder, "first", 30);
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    save(w, "c", "100000000000000000042", false);
    worker_end(w);
    w = worker_new(folder, "second", 30);
    worker_open(w); /* no listing: the leases are there */
    size_t c = wait_for(w, SL_KEEPER_GAINED, "c");
    assert_string_equal(w->events[c].after, "100000000000000000042");
    worker_end(w);
    test_folder_remove(folder);
}

static void latest_keeps_its_moment(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    for (int round = 0; round < 2; round++) {
        struct worker *w = worker_new(folder, "w", 30);
        worker_open(w);
        list(w, round == 0);
        size_t c = wait_for(w, SL_KEEPER_GAINED, "c");
        assert_int_equal(w->events[c].since_ms, 1790000000000);
        (void)wait_for(w, SL_KEEPER_GAINED, "b");
        (void)wait_for(w, SL_KEEPER_ENDED, "a"); /* it was closed: nobody wants it */
        worker_end(w);
    }
    test_folder_remove(folder);
}

static void two_workers_share(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct worker *one = worker_new(folder, "one", 4), *two = worker_new(folder, "two", 4);
    worker_open(one);
    list(one, false);
    (void)wait_for(one, SL_KEEPER_GAINED, "a");
    save(one, "a", "1", true);
    (void)wait_for(one, SL_KEEPER_GAINED, "b");
    (void)wait_for(one, SL_KEEPER_GAINED, "c");
    /* Of two unfinished shards the second worker takes one: the first learns it before the second begins. */
    worker_open(two);
    list(two, false);
    bool is_b = false;
    for (int i = 0; i < WAIT_MS / 50 && !is_b && !has(two, SL_KEEPER_GAINED, "c"); i++) {
        is_b = has(two, SL_KEEPER_GAINED, "b");
        usleep(50000);
    }
    const char *moved = is_b ? "b" : "c", *kept = is_b ? "c" : "b";
    assert_true(has(one, SL_KEEPER_LOST, moved));
    assert_int_equal(left_ms(one, moved), 0);
    assert_int_equal(left_ms(two, kept), 0);
    /* The first gives back what it has: the second gets it. */
    worker_end(one);
    (void)wait_for(two, SL_KEEPER_GAINED, kept);
    worker_end(two);
    test_folder_remove(folder);
}

/* ---- the table is in the way ---- */

static void sql(const char *folder, const char *text)
{
    sqlite3 *db;
    char path[300], *error = NULL;
    snprintf(path, sizeof(path), "%s/leases.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", text, error);
    sqlite3_close(db);
}

/* Rows that are no leases of ours end it, and the text names the row; whose time only KCL knows is read from
 * the oldest record. */
static void rows_of_others_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *item, *told; /* NULL: it is read */
    } cases[] = {
        {"{\"leaseKey\":{\"S\":\"c\"},\"leaseCounter\":{\"N\":\"1\"},\"checkpoint\":{\"S\":\"AT_TIMESTAMP\"},"
         "\"checkpointSubSequenceNumber\":{\"N\":\"0\"},\"ownerSwitchesSinceCheckpoint\":{\"N\":\"0\"}}",
         NULL},
        {"{\"leaseKey\":{\"S\":\"c\"}}", "c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *folder = test_folder_in_memory(), text[1000];
        struct worker *w = worker_new(folder, "one", 30);
        sql(folder, "CREATE TABLE leases (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
        snprintf(text, sizeof(text), "INSERT INTO leases VALUES ('{\"leaseKey\":{\"S\":\"c\"}}', '%s')",
                 cases[i].item);
        sql(folder, text);
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = w->keeper.ops->open(w->keeper.self, STREAM, w->bell, &error);
        if (status == SL_OK) {
            list(w, false);
            size_t at =
                wait_for(w, cases[i].told ? SL_KEEPER_FAILED : SL_KEEPER_GAINED, cases[i].told ? "" : "c");
            snprintf(error.text, sizeof(error.text), "%s", w->events[at].text);
        }
        if (cases[i].told && !strstr(error.text, cases[i].told))
            fail_msg("%s", error.text);
        assert_int_equal(w->keeper.ops->close(w->keeper.self, WAIT_MS, NULL), SL_OK);
        close(w->bell);
        free(w);
        test_folder_remove(folder);
    }
}

/* A place that cannot be written in time is told: what follows is handled again. */
static void places_that_are_not_written_are_told(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct sl_error error = SL_NO_ERROR;
    struct worker *w = worker_new(folder, "one", 30);
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    sqlite3 *db;
    char path[300];
    snprintf(path, sizeof(path), "%s/leases.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    save(w, "c", "100000000000000000042", false);
    assert_int_equal(w->keeper.ops->close(w->keeper.self, 100, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "the last places of 1 shard(s) could not be written"));
    sqlite3_close(db);
    close(w->bell);
    free(w);
    test_folder_remove(folder);
}

/* What the engine gives back is somebody else's; a new stream's shards are gained, the old one's are not told
 * any more. */
static void shards_are_given_back_and_followed(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct sl_error error = SL_NO_ERROR;
    struct worker *one = worker_new(folder, NULL, 4), *two = worker_new(folder, "a name\twith \xff", 4);
    worker_open(one);
    list(one, false);
    list(one, false);
    (void)wait_for(one, SL_KEEPER_GAINED, "c");
    assert_int_equal(left_ms(one, "unknown"), 0);
    save(one, "unknown", "1", false);
    save(one, "c", NULL, false);
    one->keeper.ops->drop(one->keeper.self, "unknown");
    one->keeper.ops->drop(one->keeper.self, "c");
    (void)wait_for(one, SL_KEEPER_LOST, "c");
    worker_open(two);
    list(two, false);
    (void)wait_for(two, SL_KEEPER_GAINED, "c");
    worker_end(two);
    assert_true(one->keeper.ops->follow(one->keeper.self, STREAM "x", &error));
    assert_true(one->keeper.ops->follow(one->keeper.self, STREAM "y", &error));
    static const struct sl_keeper_shard shards[] = {{"d", "", false, false}};
    const struct sl_keeper_listing listing = {.shards = shards, .n = 1, .now_ms = 1790000000000};
    one->keeper.ops->listed(one->keeper.self, &listing);
    (void)wait_for(one, SL_KEEPER_GAINED, "d");
    assert_true(left_ms(one, "d") > 0);
    worker_end(one);
    test_folder_remove(folder);
}

/* What happens to the table while it is used: one that is gone ends it, once. */
static void a_table_that_is_gone_ends_it(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory();
    struct worker *w = worker_new(folder, "one", 4);
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    sql(folder, "DROP TABLE leases; CREATE TABLE leases (other TEXT)");
    size_t failed = wait_for(w, SL_KEEPER_FAILED, "");
    assert_non_null(strstr(w->events[failed].text, "leases"));
    save(w, "c", "17", false);
    assert_int_equal(w->keeper.ops->close(w->keeper.self, 200, NULL), SL_FATAL);
    for (size_t i = 0; i < w->n; i++)
        assert_true(w->events[i].kind != SL_KEEPER_FAILED || i == failed);
    close(w->bell);
    free(w);
    test_folder_remove(folder);
}

/* One that does not answer for a while is told, and that it answers again. */
static void a_table_that_is_away_is_waited_for(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), path[300], *text = NULL;
    struct worker *w = worker_new(folder, "one", 4);
    snprintf(path, sizeof(path), "%s/err", folder);
    int before = test_stderr_into(path);
    worker_open(w);
    list(w, false);
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    sqlite3 *db;
    char name[300];
    snprintf(name, sizeof(name), "%s/leases.db", folder);
    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    w->n = 0;
    static const char *const told[] = {"sluice tail: sqlite:", "the table answers again"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_exec(db, i ? "ROLLBACK" : "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        for (int k = 0; k < WAIT_MS / 10 && !(text && strstr(text, told[i])); k++) {
            free(text);
            usleep(10000);
            text = test_read(path, NULL);
        }
        assert_non_null(strstr(text, told[i]));
    }
    test_stderr_back(before);
    free(text);
    sqlite3_close(db);
    /* It could not renew its lease so long: the shard may have been another's meanwhile. */
    (void)wait_for(w, SL_KEEPER_LOST, "c");
    (void)wait_for(w, SL_KEEPER_GAINED, "c");
    save(w, "c", "18", false);
    worker_end(w);
    w = worker_new(folder, "two", 4);
    worker_open(w);
    assert_string_equal(w->events[wait_for(w, SL_KEEPER_GAINED, "c")].after, "18");
    worker_end(w);
    test_folder_remove(folder);
}

/* A shard that needs no lease is over as long as it is listed. */
static void a_shard_without_a_lease_is_over(void **state)
{
    (void)state;
    static const struct sl_keeper_shard shards[] = {{"a", "", false, true}, {"c", "", false, false}};
    char *folder = test_folder_in_memory();
    struct worker *w = worker_new(folder, "one", 30);
    worker_open(w);
    for (size_t i = 0; i < 3; i++) {
        const struct sl_keeper_listing listing = {
            .shards = shards + i % 2, .n = 2 - i % 2, .now_ms = 1790000000000, .is_from_latest = true};
        w->n = 0;
        w->keeper.ops->listed(w->keeper.self, &listing);
        if (i == 0)
            (void)wait_for(w, SL_KEEPER_GAINED, "c");
        if (i != 1)
            (void)wait_for(w, SL_KEEPER_ENDED, "a");
        else
            for (int k = 0; k < 20; k++, usleep(2000))
                assert_false(has(w, SL_KEEPER_ENDED, "a"));
    }
    worker_end(w);
    test_folder_remove(folder);
}

/* ---- options ---- */

static void deny(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    snprintf(arg, 1000, "%.999s", request->head);
    reply->status = 400;
    reply->body = json_span("{'__type':'x#AccessDeniedException','message':'no'}");
}

/* The target is in the Region and at the endpoint that tail was given, unless it names its own. */
static void the_target_is_completed(void **state)
{
    (void)state;
    static const struct {
        const char *target; /* %s: the endpoint */
        const char *region;
        bool gives_endpoint;
        const char *scope;
    } cases[] = {
        {"dynamodb://t", "eu-central-1", true, "/eu-central-1/dynamodb/"},
        {"dynamodb://t?region=eu-west-2", "eu-central-1", true, "/eu-west-2/dynamodb/"},
        {"dynamodb://t?endpoint=%s", "eu-central-1", false, "/eu-central-1/dynamodb/"},
        {"dynamodb://t?region=eu-west-2&endpoint=%s", NULL, false, "/eu-west-2/dynamodb/"},
        {"dynamodb://t?endpoint=%s", "eu-central-1", true, "/eu-central-1/dynamodb/"},
    };
    static char head[1000];
    const struct sl_vars vars = {.list =
                                     (const char *const[]){"AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s",
                                                           "AWS_MAX_ATTEMPTS=1", NULL}};
    struct scripted_server *server = scripted_server_start(deny, head);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char target[300];
        const char *rest = strstr(cases[i].target, "%s");
        snprintf(target, sizeof(target), "%.*s%s", (int)strcspn(cases[i].target, "%"), cases[i].target,
                 rest ? scripted_server_url(server) : "");
        struct sl_leases_options options = {.target = target,
                                            .vars = &vars,
                                            .region = cases[i].region,
                                            .endpoint =
                                                cases[i].gives_endpoint ? scripted_server_url(server) : NULL};
        struct sl_keeper keeper;
        struct sl_error error = SL_NO_ERROR;
        head[0] = '\0';
        assert_int_equal(sl_leases_new(&options, &keeper, &error), SL_OK);
        assert_int_equal(keeper.ops->open(keeper.self, STREAM, -1, &error), SL_REJECT);
        if (!strstr(head, cases[i].scope) || !strstr(error.code, "AccessDenied"))
            fail_msg("%s: %s\n%s", target, error.text, head);
        assert_int_equal(keeper.ops->close(keeper.self, 0, NULL), SL_OK);
    }
    scripted_server_stop(server);
}

static void options_are_checked(void **state)
{
    (void)state;
    static const struct {
        struct sl_leases_options options;
        const char *text;
    } cases[] = {
        {{.target = "s3://bucket", .vars = &none}, "--leases is the target of a table"},
        {{.target = "dynamodb://t", .vars = &none, .seconds = 1}, "--lease-seconds must be from 2 to 3600"},
        {{.target = "dynamodb://t", .vars = &none, .seconds = 3601}, "--lease-seconds must be from"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_keeper keeper;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_leases_new(&cases[i].options, &keeper, &error), SL_REJECT);
        assert_non_null(strstr(error.text, cases[i].text));
        assert_int_equal(keeper.ops->close(keeper.self, 0, NULL), SL_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_has_all_parents_first),
        cmocka_unit_test(a_child_that_is_found_begins),
        cmocka_unit_test(what_was_saved_is_where_the_next_begins),
        cmocka_unit_test(latest_keeps_its_moment),
        cmocka_unit_test(two_workers_share),
        cmocka_unit_test(rows_of_others_are_told),
        cmocka_unit_test(places_that_are_not_written_are_told),
        cmocka_unit_test(shards_are_given_back_and_followed),
        cmocka_unit_test(a_table_that_is_gone_ends_it),
        cmocka_unit_test(a_table_that_is_away_is_waited_for),
        cmocka_unit_test(a_shard_without_a_lease_is_over),
        cmocka_unit_test(the_target_is_completed),
        cmocka_unit_test(options_are_checked),
    };
    haste(8); /* leases are of seconds */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
