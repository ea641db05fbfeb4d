/* The checkpoint file as a keeper of places; and up to when a shard is handled. */
#include "live/source/places.h"
#include "live/tail/keeper_file.h"
#include "live/tail/through.h"
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAM "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"
#define NOW    ((int64_t)1790000000000)

struct world {
    char folder[64], path[96];
    struct sl_keeper keeper;
    int bell;
};

static void reopen(struct world *w)
{
    w->bell = eventfd(0, EFD_NONBLOCK);
    w->keeper = sl_keeper_file_new(w->path);
    assert_int_equal(w->keeper.ops->open(w->keeper.self, STREAM, w->bell, NULL), SL_OK);
}

static struct world *new_world(void)
{
    struct world *w = calloc(1, sizeof(*w));
    snprintf(w->folder, sizeof(w->folder), "/tmp/test_keeper.XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof(w->path), "%s/place.json", w->folder);
    reopen(w);
    return w;
}

static void close_keeper(struct world *w)
{
    assert_int_equal(w->keeper.ops->close(w->keeper.self, 10000, NULL), SL_OK);
    close(w->bell);
}

static void end_world(struct world *w)
{
    char command[128];
    close_keeper(w);
    snprintf(command, sizeof(command), "%s/place.json.lock", w->folder);
    unlink(command);
    unlink(w->path);
    rmdir(w->folder);
    free(w);
}

static void list(struct world *w, const struct sl_keeper_shard *shards, size_t n, bool from_latest)
{
    const struct sl_keeper_listing listing = {shards, n, NOW, from_latest};
    w->keeper.ops->listed(w->keeper.self, &listing);
}

/* "GAINED a, ENDED b, ", in their order. */
static const char *events(struct world *w)
{
    static const char *const names[] = {"GAINED", "LOST", "ENDED", "FAILED"};
    static char text[512];
    struct sl_keeper_event event;
    text[0] = '\0';
    while (w->keeper.ops->take(w->keeper.self, &event))
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s%s, ", names[event.kind],
                 event.shard ? event.shard : "",
                 event.kind == SL_KEEPER_GAINED && event.place.after      ? " after"
                 : event.kind == SL_KEEPER_GAINED && event.place.since_ms ? " since"
                                                                          : "");
    return text;
}

static void places_are_kept(void **state)
{
    (void)state;
    struct world *w = new_world();
    const struct sl_keeper_shard shards[] = {{"a", "", false, true}, {"b", "a", true, false}};
    list(w, shards, 2, false);
    assert_string_equal(events(w), "GAINED a, GAINED b, ");
    struct pollfd rung = {.fd = w->bell, .events = POLLIN};
    assert_int_equal(poll(&rung, 1, 0), 1);
    list(w, shards, 2, false);
    assert_string_equal(events(w), "");
    const struct sl_keeper_place places[] = {{.shard = "a", .after = "111"},
                                             {.shard = "a", .after = "112", .is_done = true}};
    w->keeper.ops->save(w->keeper.self, places, 1);
    assert_string_equal(events(w), "");
    w->keeper.ops->save(w->keeper.self, places + 1, 1);
    assert_string_equal(events(w), "ENDED a, ");
    w->keeper.ops->save_through(w->keeper.self, NOW);
    close_keeper(w);
    reopen(w);
    assert_int_equal(w->keeper.ops->through(w->keeper.self), NOW);
    list(w, shards, 2, true); /* places are known: nothing is skipped */
    assert_string_equal(events(w), "GAINED a after, ENDED a, GAINED b, ");
    end_world(w);
}

static int64_t complete_since(const struct world *w)
{
    struct sl_places places;
    assert_int_equal(sl_places_read(&places, w->path, NULL, NULL), SL_OK);
    int64_t ms = places.complete_since_ms;
    sl_places_clean_up(&places);
    return ms;
}

/* Since the first listing, whenever the process begins again; since the last gap; anew with another stream.
 */
static void since_when_nothing_was_missed_is_kept(void **state)
{
    (void)state;
    struct world *w = new_world();
    const struct sl_keeper_shard shard = {"a", "", false, false};
    struct sl_keeper_listing later = {&shard, 1, NOW + 1000, false};
    assert_int_equal(complete_since(w), 0);
    list(w, &shard, 1, false);
    w->keeper.ops->listed(w->keeper.self, &later);
    close_keeper(w);
    assert_int_equal(complete_since(w), NOW);
    reopen(w);
    w->keeper.ops->listed(w->keeper.self, &later);
    close_keeper(w);
    assert_int_equal(complete_since(w), NOW);
    reopen(w);
    w->keeper.ops->missed(w->keeper.self, NOW + 2000);
    w->keeper.ops->listed(w->keeper.self, &later);
    close_keeper(w);
    assert_int_equal(complete_since(w), NOW + 2000);
    reopen(w);
    assert_true(w->keeper.ops->follow(w->keeper.self, STREAM, NULL));
    w->keeper.ops->listed(w->keeper.self, &later);
    close_keeper(w);
    assert_int_equal(complete_since(w), NOW + 1000);
    reopen(w);
    end_world(w);
}

static void latest_is_one_moment(void **state)
{
    (void)state;
    struct world *w = new_world();
    const struct sl_keeper_shard shards[] = {
        {"a", "", false, true}, {"b", "a", true, false}, {"c", "b", true, false}};
    list(w, shards, 2, true);
    assert_string_equal(events(w), "GAINED a, ENDED a, GAINED b since, ");
    list(w, shards, 3, false);
    assert_string_equal(events(w), "GAINED c, ");
    close_keeper(w);
    reopen(w);
    list(w, shards, 3, true);
    assert_string_equal(events(w), "GAINED a, ENDED a, GAINED b since, GAINED c, ");
    end_world(w);
}

/* A list that lacks a shard does not say that it is gone. */
static void what_is_unlisted_is_read(void **state)
{
    (void)state;
    struct world *w = new_world();
    const struct sl_keeper_shard shards[] = {{"a", "", false, false}, {"b", "", false, false}};
    list(w, shards, 2, false);
    const struct sl_keeper_place place = {.shard = "a", .after = "1"};
    w->keeper.ops->save(w->keeper.self, &place, 1);
    close_keeper(w);
    reopen(w);
    list(w, shards + 1, 1, false);
    assert_string_equal(events(w), "GAINED b, GAINED a after, ");
    list(w, shards + 1, 1, false);
    list(w, shards + 1, 1, false);
    const struct sl_keeper_place done = {.shard = "a", .after = "1", .is_done = true};
    w->keeper.ops->save(w->keeper.self, &done, 1);
    assert_string_equal(events(w), "ENDED a, ");
    list(w, shards + 1, 1, false);
    close_keeper(w);
    struct sl_places kept;
    assert_int_equal(sl_places_read(&kept, w->path, STREAM, NULL), SL_OK);
    assert_null(sl_places_find(&kept, "a"));
    sl_places_clean_up(&kept);
    reopen(w);
    end_world(w);
}

static void a_second_one_is_refused(void **state)
{
    (void)state;
    struct world *w = new_world();
    char pid[32];
    struct sl_error error = SL_NO_ERROR;
    struct sl_keeper second = sl_keeper_file_new(w->path);
    assert_int_equal(second.ops->open(second.self, STREAM, w->bell, &error), SL_REJECT);
    snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    assert_non_null(strstr(error.text, pid));
    assert_int_equal(second.ops->close(second.self, 0, NULL), SL_OK);
    end_world(w);
}

/* ---- what fails ---- */

/* A checkpoint that cannot be used is known before anything is read, and the file is as it was. */
static void a_file_that_cannot_be_used_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int err;
        const char *told;
    } cases[] = {
        {"open", EACCES, "place.json.lock cannot be created: Permission denied"},
        {"flock", EIO, "place.json.lock cannot be locked: Input/output error"},
        {"ftruncate", ENOSPC, "place.json.lock cannot be written: No space left on device"},
        {"pwrite", EIO, "place.json.lock cannot be written: Input/output error"},
        {"write", ENOSPC, "place.json: cannot be written: No space left on device"},
        {"fsync", EIO, "place.json: cannot be written: Input/output error"},
        {"renameat", EIO, "place.json: cannot be written: Input/output error"},
    };
    struct world *w = new_world();
    const struct sl_keeper_shard shard = {"a", "", false, false};
    list(w, &shard, 1, false);
    w->keeper.ops->save(w->keeper.self, &(struct sl_keeper_place){.shard = "a", .after = "7"}, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        close_keeper(w);
        struct sl_error error = SL_NO_ERROR;
        struct sl_keeper keeper = sl_keeper_file_new(w->path);
        disk_fault_begin(1, cases[i].err, cases[i].function);
        assert_int_equal(keeper.ops->open(keeper.self, STREAM, -1, &error), SL_REJECT);
        disk_fault_end();
        if (!strstr(error.text, cases[i].told) || !strstr(error.text, "--checkpoint "))
            fail_msg("%s: %s", cases[i].function, error.text);
        assert_int_equal(keeper.ops->close(keeper.self, 0, NULL), SL_OK);
        reopen(w);
        list(w, &shard, 1, false);
        assert_string_equal(events(w), "GAINED a after, ");
    }
    end_world(w);
}

/* A disk that is full meanwhile: it is told once, the run ends with it, and the file has the last state that
 * was written. */
static void a_write_that_fails_is_told_once(void **state)
{
    (void)state;
    const struct sl_keeper_shard shard = {"a", "", false, false};
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        struct world *w = new_world();
        struct sl_keeper_event event;
        struct sl_error error = SL_NO_ERROR;
        list(w, &shard, 1, false);
        assert_string_equal(events(w), "GAINED a, ");
        w->keeper.ops->save(w->keeper.self, &(struct sl_keeper_place){.shard = "a", .after = "7"}, 1);
        close_keeper(w);
        reopen(w);
        list(w, &shard, 1, false);
        assert_string_equal(events(w), "GAINED a after, ");
        uint64_t rung;
        assert_int_equal(read(w->bell, &rung, sizeof(rung)), sizeof(rung));
        disk_fault->times = 100;
        disk_fault_begin(1, ENOSPC, "fsync");
        w->keeper.ops->save(w->keeper.self, &(struct sl_keeper_place){.shard = "a", .after = "8"}, 1);
        struct pollfd bell = {.fd = w->bell, .events = POLLIN};
        assert_int_equal(poll(&bell, 1, 600000), 1);
        if (is_taken) {
            assert_true(w->keeper.ops->take(w->keeper.self, &event));
            assert_int_equal(event.kind, SL_KEEPER_FAILED);
            assert_non_null(strstr(event.text, "place.json: cannot be written: No space left on device"));
            assert_false(w->keeper.ops->take(w->keeper.self, &event));
        }
        assert_int_equal(w->keeper.ops->close(w->keeper.self, 10000, &error), SL_FATAL);
        assert_int_equal(strstr(error.text, "cannot be written") != NULL, !is_taken);
        disk_fault_end();
        disk_fault->times = 0;
        close(w->bell);
        reopen(w);
        list(w, &shard, 1, false);
        assert_string_equal(events(w), "GAINED a after, ");
        end_world(w);
    }
}

/* Whoever holds the lock may not have written who it is. */
static void a_lock_without_a_name_is_a_lock(void **state)
{
    (void)state;
    struct world *w = new_world();
    struct sl_error error = SL_NO_ERROR;
    char path[128];
    snprintf(path, sizeof(path), "%s.lock", w->path);
    assert_int_equal(truncate(path, 0), 0);
    struct sl_keeper second = sl_keeper_file_new(w->path);
    assert_int_equal(second.ops->open(second.self, STREAM, w->bell, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "another sluice tail uses it (process unknown)"));
    assert_int_equal(second.ops->close(second.self, 0, NULL), SL_OK);
    end_world(w);
}

/* A tail was killed, and a process that it had begun has the lock a moment longer. */
static void what_a_killed_tail_leaves_behind_is_waited_for(void **state)
{
    (void)state;
    struct world *w = new_world();
    struct sl_error error = SL_NO_ERROR;
    char path[128], lock[140], text[32];
    snprintf(path, sizeof(path), "%s.killed", w->path);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    pid_t killed = fork();
    if (killed == 0)
        _exit(0);
    assert_int_equal(waitpid(killed, NULL, 0), killed);
    snprintf(text, sizeof(text), "%ld\n", (long)killed);
    test_write(lock, text);
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    pid_t left = fork();
    if (left == 0) {
        usleep(300000);
        _exit(0);
    }
    close(fd); /* the child still has it */
    struct sl_keeper next = sl_keeper_file_new(path);
    if (next.ops->open(next.self, STREAM, w->bell, &error) != SL_OK)
        fail_msg("%s", error.text);
    assert_int_equal(waitpid(left, NULL, 0), left);
    assert_int_equal(next.ops->close(next.self, 10000, NULL), SL_OK);
    unlink(path);
    unlink(lock);
    end_world(w);
}

/* All of a new stream is new, also with --from latest; nothing of the old one is told any more. */
static void a_new_stream_begins_at_its_beginning(void **state)
{
    (void)state;
    struct world *w = new_world();
    struct sl_keeper_shard shards[40];
    char names[40][8];
    for (size_t i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "s%02zu", i);
        shards[i] = (struct sl_keeper_shard){names[i], "", false, i % 2};
    }
    list(w, shards, 40, false);
    struct sl_error error = SL_NO_ERROR;
    assert_true(w->keeper.ops->follow(w->keeper.self, STREAM "x", &error));
    assert_string_equal(events(w), "");
    list(w, shards, 2, true);
    assert_string_equal(events(w), "GAINED s00, GAINED s01, ");
    assert_true(w->keeper.ops->until_ms(w->keeper.self, "s00") == INT64_MAX);
    /* A place that nobody gained is not kept. */
    const struct sl_keeper_place places[] = {{.shard = "s00", .after = "5"}, {.shard = "s39", .after = "1"}};
    w->keeper.ops->save(w->keeper.self, places, 2);
    close_keeper(w);
    struct sl_places kept;
    assert_int_equal(sl_places_read(&kept, w->path, STREAM "x", NULL), SL_OK);
    assert_non_null(sl_places_find(&kept, "s00"));
    assert_null(sl_places_find(&kept, "s39"));
    sl_places_clean_up(&kept);
    unlink(w->path);
    reopen(w);
    end_world(w);
}

/* Without a file the places are those of this run. */
static void places_need_no_file(void **state)
{
    (void)state;
    struct world w = {.bell = eventfd(0, EFD_NONBLOCK), .keeper = sl_keeper_file_new(NULL)};
    const struct sl_keeper_shard shards[] = {{"a", "", false, false}, {"b", "", false, true}};
    assert_int_equal(w.keeper.ops->open(w.keeper.self, STREAM, w.bell, NULL), SL_OK);
    list(&w, shards, 2, true);
    w.keeper.ops->save(w.keeper.self, &(struct sl_keeper_place){.shard = "a", .after = "7"}, 1);
    assert_string_equal(events(&w), "GAINED a after, GAINED b, ENDED b, ");
    list(&w, shards, 1, true);
    close_keeper(&w);
}

static void some_empty_reads_do_not_prove_an_end(void **state)
{
    (void)state;
    struct sl_through t = {0};
    sl_through_handled(&t, NOW - 3600000, NOW);
    /* As fast as one likes, and as slowly. */
    for (int i = 1; i < 100; i++)
        sl_through_empty(&t, false, NOW + i);
    assert_int_equal(t.ms, NOW - 3600000);
    sl_through_handled(&t, NOW - 3000000, NOW);
    int64_t before_ms = t.ms;
    sl_through_handled(&t, 0, NOW); /* the record says no time */
    sl_through_handled(&t, NOW + 1, NOW);
    assert_int_equal(t.ms, before_ms);
    sl_through_empty(&t, false, NOW + 10000);
    sl_through_empty(&t, false, NOW + 20000);
    assert_int_equal(t.ms, NOW - 3000000);
    for (int64_t ms = NOW + 20250; ms < NOW + 24000; ms += 250)
        sl_through_empty(&t, false, ms);
    assert_in_range((uint64_t)t.ms, (uint64_t)NOW + 20000, (uint64_t)NOW + 22000);
    t.ms = NOW + 24000; /* a change that is newer than the time a late one may take */
    sl_through_empty(&t, false, NOW + 24500);
    assert_int_equal(t.ms, NOW + 24000);
    struct sl_through closed = {.ms = 5};
    for (int64_t ms = NOW; ms < NOW + 60000; ms += 250)
        sl_through_empty(&closed, true, ms);
    assert_int_equal(closed.ms, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_kept),
                                       cmocka_unit_test(latest_is_one_moment),
                                       cmocka_unit_test(since_when_nothing_was_missed_is_kept),
                                       cmocka_unit_test(a_file_that_cannot_be_used_is_refused),
                                       cmocka_unit_test(a_write_that_fails_is_told_once),
                                       cmocka_unit_test(a_lock_without_a_name_is_a_lock),
                                       cmocka_unit_test(what_a_killed_tail_leaves_behind_is_waited_for),
                                       cmocka_unit_test(a_new_stream_begins_at_its_beginning),
                                       cmocka_unit_test(places_need_no_file),
                                       cmocka_unit_test(what_is_unlisted_is_read),
                                       cmocka_unit_test(a_second_one_is_refused),
                                       cmocka_unit_test(some_empty_reads_do_not_prove_an_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
