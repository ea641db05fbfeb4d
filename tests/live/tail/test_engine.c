/* The engine of tail, and what happens to a shard that it handles: it is lost and given back, its lease runs
 * out, its batches fail, its workers hang. Nothing is handled for another, nothing is left out, and the place
 * is never before what was handled nor behind it. */
#include "tests/live/tail/engine_world.h"
#include "tests/support/leaks.h"

#include "live/tail/engine_private.h"

#include <sys/wait.h>

static int phase;
static bool was_early;
static size_t since; /* which step */

static void use(const struct shard *shards, size_t n)
{
    memcpy(w.shards, shards, n * sizeof(*shards));
    phase = 0;
    was_early = false;
}

static const struct shard two[] = {{"a", NULL, false, 1, 6, 0, false},
                                   {"b", NULL, false, 101, 103, 0, false}};

/* ---- shards that are lost ---- */

static bool regains;

/* While a's batches are under way, and b's are over. */
static void lose_a(const char *operation)
{
    (void)operation;
    if (phase == 0 && e.held > 0 && has_handled(103)) {
        tell(SL_KEEPER_LOST, "a");
        tell(SL_KEEPER_LOST, "a");
        tell(SL_KEEPER_LOST, "unknown");
        phase = 1;
    } else if (phase == 1 && e.cancelled > 0 && e.held == 0 && vitals()->leases_lost) {
        was_early = strstr(e.saved, "a@");
        release();
        if (regains)
            tell(SL_KEEPER_GAINED, "a");
        phase = 2;
    } else if (phase == 2 && (!regains || has_saved("a", "6"))) {
        stop();
    }
}

static void a_lost_shard_is_broken_off_and_forgotten(void **state)
{
    (void)state;
    static const struct {
        int64_t parallelization;
        bool regains;
        const char *handled;
    } cases[] = {{1, true, " 1 2 3 4 5 6 101 102 103 "},
                 {3, true, " 1 2 3 4 5 6 101 102 103 "},
                 {1, false, " 101 102 103 "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        use(two, 2);
        e.step = lose_a;
        e.holds = 100;
        regains = cases[i].regains;
        e.settings.parallelization = cases[i].parallelization;
        run_engine(WORKERS);
        assert_false(was_early); /* no place of what was broken off */
        assert_string_equal(all_handled(), cases[i].handled);
        assert_int_equal(e.result.leases_lost, 1);
        assert_int_equal(e.result.unhandled, 0); /* by this process */
        assert_false(e.result.has_failed);
        if (!regains)
            assert_null(strstr(e.saved, "a@"));
        if (i + 1 < sizeof(cases) / sizeof(cases[0]))
            engine_tear_down(&own);
    }
}

static void give_back_at_once(const char *operation)
{
    (void)operation;
    if (phase == 0 && e.held > 0) {
        tell(SL_KEEPER_LOST, "a");
        tell(SL_KEEPER_GAINED, "a");
        tell(SL_KEEPER_LOST, "a");
        tell(SL_KEEPER_GAINED, "a");
        since = e.steps;
        phase = 1;
    } else if (phase == 1 && e.steps > since + 40) {
        was_early = w.n_reads > 2;
        release();
        phase = 2;
    } else if (phase == 2 && has_saved("a", "6")) {
        stop();
    }
}

/* What cannot be broken off is still under way when the shard is ours again: it counts no more, and the shard
 * begins at its place when it is over. Two batches of it are never handled at a time. */
static void a_shard_that_comes_back_waits_for_what_runs(void **state)
{
    (void)state;
    use(two, 1);
    e.step = give_back_at_once;
    e.holds = 100;
    e.kind.cancel = NULL;
    run_engine(WORKERS);
    assert_false(was_early);
    assert_false(e.has_gone_back);
    assert_string_equal(e.handled, " 1 2 3 1 2 3 4 5 6 ");
    assert_string_equal(e.saved, "a@3 a@6 ");
    assert_int_equal(e.result.unhandled, 0);
}

/* Nothing of it is under way. */
static void lose_idle_a(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("a", "6")) {
        tell(SL_KEEPER_LOST, "a");
        w.shards[0].last = 9;
        phase = 1;
    } else if (phase == 1 && vitals()->leases_lost && w.n_reads > 20) {
        was_early = has_handled(7);
        tell(SL_KEEPER_GAINED, "a");
        phase = 2;
    } else if (phase == 2 && has_saved("a", "9")) {
        stop();
    }
}

static void a_shard_goes_on_where_its_place_is(void **state)
{
    (void)state;
    use(two, 2);
    e.step = lose_idle_a;
    run_engine(1);
    assert_false(was_early);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 7 8 9 101 102 103 ");
    assert_int_equal(e.result.leases_lost, 1);
    assert_int_equal(e.result.records, 12);
}

/* ---- leases that run out ---- */

static void lengthen(const char *operation)
{
    (void)operation;
    struct sl_clock *clock = sl_clock_system();
    if (phase == 0 && w.n_reads >= 2 && e.steps > 60) {
        was_early = e.handled[1];
        e.until_ms = clock->now_ms(clock) + 1000000;
        phase = 1;
    } else if (phase == 1 && has_saved("a", "6")) {
        stop();
    }
}

/* An invocation that would be broken off at once is not begun; it has the lease's end as its own. */
static void nothing_begins_without_a_lease(void **state)
{
    (void)state;
    struct sl_clock *clock = sl_clock_system();
    use(two, 1);
    e.step = lengthen;
    e.until_ms = clock->now_ms(clock) + 200;
    run_engine(1);
    assert_false(was_early);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 ");
    assert_int_equal(e.task_until_ms, e.until_ms);
}

/* ---- shards of others ---- */

static void end_while_a_runs(const char *operation)
{
    (void)operation;
    if (phase == 0 && e.held > 0 && has_handled(103)) {
        tell(SL_KEEPER_ENDED, "a");
        phase = 1;
    } else if (phase == 1 && e.cancelled > 0 && e.held == 0 && vitals()->leases_lost) {
        stop();
    }
}

/* A process that slept longer than its lease learns only that another one has handled the shard to its end.
 * What runs of it is broken off, and nothing is saved. */
static void a_shard_that_another_has_ended_is_lost(void **state)
{
    (void)state;
    use(two, 2);
    e.step = end_while_a_runs;
    e.holds = 100;
    run_engine(2);
    assert_string_equal(all_handled(), " 101 102 103 ");
    assert_null(strstr(e.saved, "a@"));
    assert_int_equal(e.result.leases_lost, 1);
    assert_int_equal(e.result.unhandled, 0);
}

static void give_a_parent_again(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("p", "3.")) {
        struct kept *place = place_of("p");
        place->is_done = false;
        place->after[0] = '\0';
        e.holds = 10;
        tell(SL_KEEPER_GAINED, "p");
        tell(SL_KEEPER_GAINED, "c");
        phase = 1;
    } else if (phase == 1 && e.held > 0) {
        since = e.steps;
        phase = 2;
    } else if (phase == 2 && e.steps > since + 40) {
        was_early = has_handled(11);
        release();
        phase = 3;
    } else if (phase == 3 && has_saved("c", "12")) {
        stop();
    }
}

/* A place that the keeper has lost is begun anew: also then no child runs beside its parent. */
static void a_parent_that_is_given_again_comes_first(void **state)
{
    (void)state;
    static const struct shard shards[] = {{"p", NULL, true, 1, 3, 0, false},
                                          {"c", "p", false, 11, 12, 0, false}};
    use(shards, 2);
    e.step = give_a_parent_again;
    e.others = " c ";
    run_engine(2);
    assert_false(was_early);
    assert_string_equal(all_handled(), " 1 1 2 2 3 3 11 12 ");
}

static void end_parent(const char *operation)
{
    (void)operation;
    if (phase == 0 && e.n_listings && e.steps > 60) {
        was_early = w.n_reads > 0 || vitals_of(vitals(), "c")->state != SL_VITALS_WAITING;
        tell(SL_KEEPER_ENDED, "p");
        phase = 1;
    } else if (phase == 1 && has_saved("c", "12")) {
        stop();
    }
}

/* A child begins when its parent has ended, whoever had it. */
static void a_childs_parent_may_be_anothers(void **state)
{
    (void)state;
    static const struct shard shards[] = {{"p", NULL, true, 1, 3, 0, false},
                                          {"c", "p", false, 11, 12, 0, false}};
    use(shards, 2);
    e.step = end_parent;
    e.others = " p ";
    run_engine(1);
    assert_false(was_early);
    assert_string_equal(all_handled(), " 11 12 ");
}

/* --once ends although another has the rest. */
static void once_does_not_wait_for_others(void **state)
{
    (void)state;
    use(two, 2);
    e.options.is_once = true;
    e.others = " b ";
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 ");
    assert_false(e.result.has_failed);
}

/* Neither a board nor a keeper of `through` is needed, nor somebody who hears of what is given up. */
static void nobody_needs_to_watch(void **state)
{
    (void)state;
    use(two, 2);
    e.options.is_once = true;
    e.options.board = NULL;
    e.ops.save_through = NULL;
    e.ops.through = NULL;
    e.settings.max_retries = 0;
    e.fails = 4;
    e.fail_times = 1;
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 101 102 103 ");
    assert_int_equal(e.result.mapping.discarded, 3);
    assert_true(has_saved("a", "6") && has_saved("b", "103"));
    assert_null(vitals());
}

/* ---- batches that fail ---- */

static char blocked_at[SL_TIME_BYTES];
static size_t n_blocked;
static uint64_t retries;

static void look_at_block(const char *operation)
{
    (void)operation;
    const struct sl_vitals *now = vitals();
    const struct sl_vitals_shard *a = vitals_of(now, "a");
    if (phase == 0 && a && a->blocked_since_ms && has_saved("b", "103")) {
        snprintf(blocked_at, sizeof(blocked_at), "%s", a->blocked_at);
        n_blocked = now->n_blocked;
        w.shards[1].last = 106;
        phase = 1;
    } else if (phase == 1 && has_saved("b", "106")) {
        was_early = strstr(e.saved, "a@");
        e.fail_times = 1;
        phase = 2;
    } else if (phase == 2 && has_saved("a", "6") && !a->blocked_since_ms) {
        n_blocked += now->n_blocked;
        retries = a->retries;
        stop();
    }
}

/* It is told which record it is; other shards go on; the batch stays with its worker. */
static void a_blocked_shard_blocks_no_other(void **state)
{
    (void)state;
    use(two, 2);
    e.step = look_at_block;
    e.fails = 1;
    e.fail_times = 1000;
    run_engine(WORKERS);
    assert_false(was_early);
    assert_string_equal(blocked_at, "1");
    assert_int_equal(n_blocked, 1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 101 102 103 104 105 106 ");
    size_t of_one = 0, most = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        size_t n = times(e.given, json_printf("%u:1 ", i));
        of_one += n > 0;
        most = n > most ? n : most;
    }
    assert_int_equal(of_one, 1);
    assert_true(most >= 3);
    assert_int_equal(e.result.mapping.retries, most - 1);
    assert_int_equal(retries, most - 1);
}

static void stop_when_blocked(const char *operation)
{
    (void)operation;
    if (vitals() && vitals()->n_blocked)
        stop();
}

/* What fails again and again is not waited for: it is read again at the next start. */
static void told_to_stop_it_leaves_what_is_blocked(void **state)
{
    (void)state;
    use(two, 1);
    e.step = stop_when_blocked;
    e.fails = 1;
    e.fail_times = 1000;
    run_engine(1);
    assert_string_equal(e.handled, " ");
    assert_string_equal(e.saved, "");
    assert_int_equal(e.result.unhandled, e.result.records);
    assert_in_range(e.took_ms, 0, 15000);
}

static void release_when_full(const char *operation)
{
    (void)operation;
    if (phase == 0 && w.n_reads == 4) {
        release();
        phase = 1;
    } else if (phase == 1 && has_saved("new", "206") && has_saved("old", "6")) {
        stop();
    }
}

/* The only worker goes to the shard that lags most. */
static void the_oldest_records_come_first(void **state)
{
    (void)state;
    static const struct shard shards[] = {{"new", NULL, false, 201, 206, 0, false},
                                          {"old", NULL, false, 1, 6, 0, false}};
    struct sl_clock *clock = sl_clock_system();
    use(shards, 2);
    w.made_s = clock->wall_ns(clock) / 1000000000 - 60;
    w.made_from = 200;
    e.step = release_when_full;
    e.holds = 1000;
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 201 202 203 204 205 206 ");
    const char *last_old = strstr(e.handled, " 6 "), *last_new = strstr(e.handled, " 204 ");
    assert_true(last_old < last_new);
}

static void wait_for_reads(const char *operation)
{
    (void)operation;
    if (phase == 0 && w.n_reads >= 7) {
        was_early = e.stop;
        release();
        phase = 1;
    }
}

/* --once: that nothing more comes is no end while something is still under way. */
static void once_waits_for_what_runs(void **state)
{
    (void)state;
    use(two, 1);
    w.shards[0].last = 3;
    e.step = wait_for_reads;
    e.options.is_once = true;
    e.holds = 100;
    run_engine(1);
    assert_int_equal(phase, 1);
    assert_string_equal(all_handled(), " 1 2 3 ");
    assert_true(has_saved("a", "3"));
}

static char bodies[TEXT_BYTES];
static size_t n_decided;

static void note_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                         const struct sl_esm_decision *decision)
{
    (void)self;
    (void)inv;
    (void)decision;
    n_decided++;
    if (result->outcome == SL_ESM_FAILED)
        snprintf(bodies + strlen(bodies), sizeof(bodies) - strlen(bodies), "%.*s\n", SL_ARG(result->body));
}

static void release_both(const char *operation)
{
    (void)operation;
    if (phase == 0 && e.held == 2) {
        release();
        phase = 1;
    } else if (phase == 1 && has_saved("a", "6") && has_saved("b", "103")) {
        stop();
    }
}

/* A worker that cannot be opened is a function error of the batch that it was to have, which says why; it is
 * opened for the next one. */
static void a_worker_that_cannot_be_opened_fails_its_batch(void **state)
{
    (void)state;
    use(two, 2);
    bodies[0] = '\0';
    n_decided = 0;
    e.step = release_both;
    e.options.decided = note_decided;
    e.holds = 1000; /* until both workers have one */
    e.open_fails = 2;
    run_engine(2);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 101 102 103 ");
    assert_int_equal(times(bodies, "Runtime.InvalidEntrypoint"), 2);
    assert_int_equal(times(bodies, "there is none left (2)"), 1);
    assert_int_equal(times(bodies, "there is none left (1)"), 1);
    assert_int_equal(n_decided, 5);
    assert_int_equal(e.result.mapping.function_errors, 2);
}

/* ---- the end ---- */

/* What ends by itself or is broken off has seconds of real time for it. */
static int calm_set_up(void **state)
{
    haste(4);
    return engine_set_up(state);
}

static int calm_tear_down(void **state)
{
    haste(50);
    return engine_tear_down(state);
}

static void stop_when_held(const char *operation)
{
    (void)operation;
    if (e.held > 0 && has_handled(103) && has_saved("b", "103"))
        stop();
}

static void told_to_stop_it_breaks_off_what_hangs(void **state)
{
    (void)state;
    use(two, 2);
    e.step = stop_when_held;
    e.holds = 100;
    run_engine(2);
    assert_true(e.cancelled > 0);
    assert_in_range(e.took_ms, 1000, 15000);
    assert_string_equal(all_handled(), " 101 102 103 ");
    assert_null(strstr(e.saved, "a@"));
    assert_true(e.result.unhandled == 3 || e.result.unhandled == 6);
    assert_false(e.result.has_failed);
}

/* In a process of its own: what the worker has cannot be freed. */
static int stop_with_a_deaf_worker(void)
{
    void *own = NULL;
    leaks_are_meant();
    haste(4);
    engine_set_up(&own);
    use(two, 2);
    e.step = stop_when_held;
    e.holds = 100;
    e.is_deaf = true;
    e.kind.cancel = NULL;
    run_engine(2);
    bool is_good = e.took_ms < 15000 && !e.was_closed && strcmp(all_handled(), " 101 102 103 ") == 0 &&
                   !strstr(e.saved, "a@") && e.result.unhandled >= 3 && e.cancelled == 0;
    if (!is_good)
        fprintf(stderr, "took %lld ms, handled%s, saved %s, unhandled %zu\n", (long long)e.took_ms,
                all_handled(), e.saved, e.result.unhandled);
    return is_good ? 0 : 3;
}

static void told_to_stop_it_does_not_wait_for_the_deaf(void **state)
{
    (void)state;
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(stop_with_a_deaf_worker());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void begin_stop(const char *operation)
{
    (void)operation;
    if (w.n_reads >= 3 && e.given[0])
        stop();
}

/* What was read may still begin for a while; what did not is read again. */
static void told_to_stop_it_handles_what_it_has(void **state)
{
    (void)state;
    use(two, 1);
    w.shards[0].last = 300;
    e.step = begin_stop;
    e.takes_ms = 50;
    run_engine(1);
    const char *all = all_handled();
    size_t n = times(all, " ") - 1;
    assert_int_equal(n + e.result.unhandled, e.result.records);
    assert_true(n >= 3 && n < 300);
    assert_true(has_saved("a", json_printf("%zu", n)));
    for (unsigned i = 1; i <= n; i++)
        assert_true(has_handled(i));
    assert_in_range(e.took_ms, 0, 15000);
}

static void stop_after_failure(const char *operation)
{
    (void)operation;
    if (vitals() && vitals()->is_ending)
        stop();
}

/* It cannot go on: what was read is handled first, unless it is told to stop. The reason is said once. */
static void a_failure_lets_batches_end(void **state)
{
    (void)state;
    for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
        void *own = NULL;
        haste(50);
        if (is_stopped)
            calm_set_up(&own);
        use(two, 2);
        w.shards[0].last = 30;
        w.shards[1].is_closed = true; /* its end asks for the list */
        w.denied = "DescribeStream", w.code = "AccessDeniedException", w.after = 1, w.times = 1000;
        e.takes_ms = is_stopped ? 0 : 2000;
        e.holds = is_stopped ? 100 : 0;
        e.step = is_stopped ? stop_after_failure : NULL;
        run_engine(2);
        assert_true(e.result.has_failed && e.result.has_begun);
        assert_said("AccessDenied", 1);
        size_t n = times(all_handled(), " ") - 1;
        assert_int_equal(n + e.result.unhandled, e.result.records);
        if (is_stopped)
            assert_in_range(e.took_ms, 0, 15000); /* not the 20 s of a failure */
        else
            assert_true(n >= 9 && e.result.unhandled == 0);
        if (!is_stopped)
            engine_tear_down(&own);
    }
}

static void fail_keeper(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("b", "103")) {
        tell(SL_KEEPER_FAILED, "a");
        tell(SL_KEEPER_FAILED, "a");
        phase = 1;
    }
}

static void a_keeper_that_fails_ends_it(void **state)
{
    (void)state;
    use(two, 2);
    e.step = fail_keeper;
    run_engine(1);
    assert_true(e.result.has_failed);
    assert_said("the keeper's own text", 1);
}

/* ---- up to when ---- */

/* Through is the least of the shards that count, and never goes back; but what a clock told that was set back
 * since says nothing. */
static void through_is_the_least_of_what_counts(void **state)
{
    (void)state;
    enum { NOW = 1000000 };
    static const struct {
        int64_t before, of[3]; /* of a, of b, of a's child */
        bool a_is_done, has_children, child_waits;
        int64_t wanted;
    } cases[] = {
        {0, {500, 400, 900}, false, false, true, 400},
        {450, {500, 400, 900}, false, false, true, 450},
        {0, {500, 600, 900}, true, false, false, 500},
        {0, {500, 600, 900}, true, true, false, 600},
        {0, {500, 600, 550}, true, true, false, 550},
        {NOW + 1, {500, 600, 900}, false, false, true, 500},
        {300, {500, NOW + 1, 900}, false, false, true, 300},
        {NOW, {NOW, NOW, NOW}, false, false, true, NOW},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_lane lanes[3] = {{.through.ms = cases[i].of[0]},
                                   {.through.ms = cases[i].of[1]},
                                   {.through.ms = cases[i].of[2], .parent_lane = &lanes[0]}};
        struct sl_lane *list[3] = {&lanes[0], &lanes[1], &lanes[2]};
        struct sl_engine engine = {.lanes = list, .n = 3, .wall_ms = NOW, .through_ms = cases[i].before};
        lanes[0].state = cases[i].a_is_done ? SL_LANE_DONE : SL_LANE_READING;
        lanes[0].has_all_children = cases[i].has_children;
        lanes[0].is_ended = !cases[i].child_waits;
        sl_engine_find_through(&engine);
        if (engine.through_ms != cases[i].wanted)
            fail_msg("case %zu: %lld", i, (long long)engine.through_ms);
    }
}

/* With nothing left of what was read, the last record that was handled tells, unless nothing is known. */
static void a_lag_is_told_where_something_is_known(void **state)
{
    (void)state;
    enum { NOW = 100000 };
    static const struct {
        bool is_empty;
        enum sl_lane_state state;
        enum sl_lane_owner owner;
        int64_t last_ms, wanted;
    } cases[] = {
        {false, SL_LANE_READING, SL_LANE_OURS, NOW - 7000, 7000},
        {false, SL_LANE_DRAINING, SL_LANE_OURS, NOW - 7000, 7000},
        {false, SL_LANE_READING, SL_LANE_OURS, NOW + 1, 0}, /* clocks differ */
        {true, SL_LANE_READING, SL_LANE_OURS, NOW - 7000, 0},
        {false, SL_LANE_DONE, SL_LANE_OURS, NOW - 7000, 0},
        {false, SL_LANE_READING, SL_LANE_AWAY, NOW - 7000, 0},
        {false, SL_LANE_READING, SL_LANE_RETURNING, NOW - 7000, 0},
        {false, SL_LANE_READING, SL_LANE_OURS, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_engine engine = {.wall_ms = NOW};
        const struct sl_lane lane = {.engine = &engine,
                                     .is_empty = cases[i].is_empty,
                                     .state = cases[i].state,
                                     .owner = cases[i].owner,
                                     .last_created_ms = cases[i].last_ms};
        if (sl_lane_look_lag(&lane) != cases[i].wanted)
            fail_msg("case %zu: %lld", i, (long long)sl_lane_look_lag(&lane));
    }
}

#define CALM(name) cmocka_unit_test_setup_teardown(name, calm_set_up, calm_tear_down)
#define TEST(name) cmocka_unit_test_setup_teardown(name, engine_set_up, engine_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_shard_is_broken_off_and_forgotten),
        TEST(a_shard_that_comes_back_waits_for_what_runs),
        TEST(a_shard_goes_on_where_its_place_is),
        TEST(nothing_begins_without_a_lease),
        TEST(a_childs_parent_may_be_anothers),
        TEST(a_shard_that_another_has_ended_is_lost),
        TEST(a_parent_that_is_given_again_comes_first),
        TEST(once_does_not_wait_for_others),
        TEST(nobody_needs_to_watch),
        TEST(a_blocked_shard_blocks_no_other),
        CALM(told_to_stop_it_leaves_what_is_blocked),
        TEST(the_oldest_records_come_first),
        TEST(once_waits_for_what_runs),
        TEST(a_worker_that_cannot_be_opened_fails_its_batch),
        CALM(told_to_stop_it_breaks_off_what_hangs),
        cmocka_unit_test(told_to_stop_it_does_not_wait_for_the_deaf),
        CALM(told_to_stop_it_handles_what_it_has),
        CALM(a_failure_lets_batches_end),
        TEST(a_keeper_that_fails_ends_it),
        cmocka_unit_test(through_is_the_least_of_what_counts),
        cmocka_unit_test(a_lag_is_told_where_something_is_known),
    };
    haste(50);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
