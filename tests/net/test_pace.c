/* The pace of requests: what holds over random schedules of answers, and that a target which throttles is
 * not asked more often, and not served later, than with a fixed number on the wire. */
#include "tests/support/test.h"

#include "net/pace.h"
#include "net/retry.h"

#include <stdlib.h>

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

/* ---- steps ---- */

static void good_round(struct sl_pace *pace)
{
    size_t n = pace->limit;
    for (size_t i = 0; i < n; i++)
        sl_pace_begin(pace, 0);
    for (size_t i = 0; i < n; i++)
        sl_pace_took(pace, 100, true);
}

static void it_doubles_to_its_cap(void **state)
{
    (void)state;
    static const struct {
        size_t cap, limits[6];
    } cases[] = {
        {64, {8, 16, 32, 64, 64, 64}}, {40, {8, 16, 32, 40, 40, 40}}, {8, {8, 8, 8, 8, 8, 8}},
        {3, {3, 3, 3, 3, 3, 3}},       {1, {1, 1, 1, 1, 1, 1}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct sl_pace pace;
        sl_pace_init(&pace, cases[c].cap);
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(pace.limit, cases[c].limits[i]);
            good_round(&pace);
        }
    }
}

static void answers_that_no_work_waited_for_prove_nothing(void **state)
{
    (void)state;
    struct sl_pace pace;
    sl_pace_init(&pace, 64);
    for (int i = 0; i < 1000; i++) {
        sl_pace_begin(&pace, 0);
        sl_pace_took(&pace, 100, false);
    }
    assert_int_equal(pace.limit, SL_PACE_BEGIN);
}

/* As many as halve the limit, begun together. */
#define TOGETHER 3

static void refuse_together(struct sl_pace *pace)
{
    uint64_t numbers[TOGETHER];
    for (int i = 0; i < TOGETHER; i++)
        numbers[i] = sl_pace_begin(pace, pace->used_ms);
    for (int i = 0; i < TOGETHER; i++) {
        size_t before = pace->limit;
        sl_pace_throttled(pace, numbers[i]);
        assert_int_equal(pace->limit, i < TOGETHER - 1 ? before : before > 1 ? before / 2 : 1);
    }
}

static void one_wave_halves_once(void **state)
{
    (void)state;
    struct sl_pace pace;
    uint64_t first = 0;
    sl_pace_init(&pace, 64);
    for (int i = 0; i < 3; i++)
        good_round(&pace);
    for (int i = 0; i < 64; i++) {
        uint64_t number = sl_pace_begin(&pace, 0);
        first = first ? first : number;
    }
    for (uint64_t i = 0; i < 64; i++)
        sl_pace_throttled(&pace, first + i);
    assert_int_equal(pace.limit, 32);
    refuse_together(&pace);
    assert_int_equal(pace.limit, 16);
    good_round(&pace);
    assert_int_equal(pace.limit, 17); /* near what it took, one at a time */
}

/* 64 were refused, then 32: it grows by one a round to 31, and stays there for 8 rounds. */
static void below_what_was_refused_it_stays(void **state)
{
    (void)state;
    struct sl_pace pace;
    sl_pace_init(&pace, 64);
    for (int i = 0; i < 3; i++)
        good_round(&pace);
    refuse_together(&pace);
    refuse_together(&pace);
    for (size_t limit = 16; limit < 31; limit++, good_round(&pace))
        assert_int_equal(pace.limit, limit);
    for (int i = 0; i < 7; i++) {
        good_round(&pace);
        assert_int_equal(pace.limit, 31);
    }
    good_round(&pace);
    assert_int_equal(pace.limit, 32);
    good_round(&pace);
    assert_int_equal(pace.limit, 33);
}

/* Every nth is refused, at any limit. */
static void a_steady_few_do_not_halve_and_a_steady_many_do(void **state)
{
    (void)state;
    for (int every = 2; every <= 100; every++) {
        struct sl_pace pace;
        bool is_halved = false;
        sl_pace_init(&pace, 64);
        for (int i = 1; i <= 5000; i++) {
            uint64_t number = sl_pace_begin(&pace, 0);
            size_t before = pace.limit;
            if (i % every == 0)
                sl_pace_throttled(&pace, number);
            else
                sl_pace_took(&pace, 100, true);
            is_halved = is_halved || pace.limit < before;
        }
        if (every <= 12)
            assert_true(is_halved);
        if (every >= 16) {
            assert_false(is_halved);
            assert_int_equal(pace.limit, 64);
        }
    }
}

static void a_long_pause_begins_anew(void **state)
{
    (void)state;
    struct sl_pace pace;
    sl_pace_init(&pace, 64);
    sl_pace_begin(&pace, 1000);
    for (int i = 0; i < 3; i++)
        refuse_together(&pace);
    assert_int_equal(pace.limit, 1);
    sl_pace_throttled(&pace, sl_pace_begin(&pace, 1000));
    sl_pace_throttled(&pace, sl_pace_begin(&pace, 1000 + SL_PACE_IDLE_MS));
    assert_int_equal(pace.limit, 1);
    sl_pace_throttled(&pace, sl_pace_begin(&pace, 1001 + 2 * (int64_t)SL_PACE_IDLE_MS));
    assert_int_equal(pace.limit, SL_PACE_BEGIN);
    good_round(&pace);
    assert_int_equal(pace.limit, 2 * SL_PACE_BEGIN);
}

static void over_tls_the_first_goes_alone(void **state)
{
    (void)state;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        struct sl_pace pace;
        sl_pace_init(&pace, 64);
        pace.is_alone = true;
        sl_pace_look(&pace, 0, 900);
        assert_true(sl_pace_has_room(&pace, 0, 0, 0));
        sl_pace_begin(&pace, 1000);
        sl_pace_look(&pace, 1, 1000 + SL_PACE_ALONE_MS - 1);
        assert_false(sl_pace_has_room(&pace, 1, 0, 0));
        if (is_slow) { /* what it takes so long for is not the handshake */
            sl_pace_look(&pace, 1, 1000 + SL_PACE_ALONE_MS);
        } else {
            sl_pace_took(&pace, 2, true);
            sl_pace_look(&pace, 0, 1001);
        }
        assert_true(sl_pace_has_room(&pace, 1, 0, 0));
        assert_false(sl_pace_has_room(&pace, SL_PACE_BEGIN, 0, 0));
    }
}

static void bytes_bound_both_directions(void **state)
{
    (void)state;
    const size_t mb = 1024 * 1024;
    struct sl_pace pace;
    sl_pace_init(&pace, 64);
    assert_true(sl_pace_has_room(&pace, 0, 0, 400 * mb)); /* alone, whatever it is */
    assert_true(sl_pace_has_room(&pace, 1, 16 * mb, 16 * mb));
    assert_false(sl_pace_has_room(&pace, 1, 16 * mb, 16 * mb + 1));
    sl_pace_took(&pace, 16 * mb, true);
    assert_true(sl_pace_has_room(&pace, 1, 0, 0));
    assert_false(sl_pace_has_room(&pace, 2, 0, 0));
    for (int i = 0; i < 1000; i++)
        sl_pace_took(&pace, 1000, true);
    assert_in_range(pace.answer_bytes, 1000, 2000); /* small answers again: it is forgotten */
    assert_true(sl_pace_has_room(&pace, 7, 0, 0));
    sl_pace_took(&pace, 400 * mb, true);
    assert_false(sl_pace_has_room(&pace, 1, 0, 0));
    assert_true(sl_pace_has_room(&pace, 0, 0, 0));
}

/* ---- any schedule ---- */

#define SCHEDULES 2000
#define STEPS     600

/* Requests come back in any order, as any mix of answers. */
static void run_schedule(struct sl_pace *pace, unsigned refused_of_100)
{
    uint64_t flying[SL_PACE_MAX];
    size_t n = 0;
    int64_t now = 0;
    for (int i = 0; i < STEPS; i++) {
        bool room = sl_pace_has_room(pace, n, n * 100, 100);
        assert_true(n || room);
        if (room && draw(3)) {
            flying[n++] = sl_pace_begin(pace, now += (int64_t)draw(40));
        } else if (n) {
            size_t k = draw(n);
            uint64_t number = flying[k];
            flying[k] = flying[--n];
            if (draw(100) < refused_of_100)
                sl_pace_throttled(pace, number);
            else
                sl_pace_took(pace, draw(4) ? draw(2000) : draw(40u * 1024 * 1024), draw(2));
        }
        assert_in_range(pace->limit, 1, pace->cap);
        assert_in_range(n, 0, pace->cap);
    }
    while (n) /* what is still on the wire comes back too */
        sl_pace_throttled(pace, flying[--n]);
}

static void any_schedule_keeps_the_limit_and_recovers(void **state)
{
    (void)state;
    for (seed = 1; seed <= SCHEDULES; seed++) {
        struct sl_pace pace;
        uint64_t kept = seed;
        sl_pace_init(&pace, 1 + draw(SL_PACE_MAX));
        run_schedule(&pace, (unsigned)draw(101));
        size_t rounds = 0;
        for (; pace.limit < pace.cap && rounds < 1000; rounds++)
            good_round(&pace);
        assert_in_range(rounds, 0, SL_PACE_MAX + 8);
        seed = kept;
    }
}

/* ---- targets ---- */

/* So many requests have their answers 5 ms after they are sent; one that is throttled is sent again as
 * net/retry.h says. */
#define WORLDS   3
#define REQUESTS 3000
#define AWAY_MS  5

/* A bucket of tokens. `hot_of_100` of the requests have a bucket, the others are always taken; and
 * `failing_of_100` of all are refused whatever the rate is, as are all in an outage. */
struct target {
    double per_ms, burst;
    unsigned hot_of_100, failing_of_100;
    int64_t out_from_ms, out_until_ms;
    double tokens;
    int64_t filled_ms;
};

struct outcome {
    int64_t ms;
    size_t throttled, done;
    unsigned worst; /* retries of one request */
};

struct request {
    enum { FRESH, WAITING, FLYING, DONE } state;
    int64_t at; /* due, or answered */
    uint64_t number;
    unsigned retries;
    bool is_hot;
};

static bool takes(struct target *target, const struct request *r, int64_t now)
{
    if (draw(100) < target->failing_of_100 || (now >= target->out_from_ms && now < target->out_until_ms))
        return false;
    if (!r->is_hot)
        return true;
    target->tokens += (double)(now - target->filled_ms) * target->per_ms;
    target->tokens = target->tokens < target->burst ? target->tokens : target->burst;
    target->filled_ms = now;
    if (target->tokens < 1)
        return false;
    target->tokens--;
    return true;
}

struct world {
    struct sl_clock_virtual clock;
    struct sl_pace pace;
    bool is_fixed;
    struct target target;
    struct request requests[REQUESTS];
    size_t flying, left;
    struct outcome outcome;
};

static bool has_room(const struct world *w)
{
    return w->is_fixed ? w->flying < 16 : sl_pace_has_room(&w->pace, w->flying, 0, 0);
}

static void send_due(struct world *w, int64_t now)
{
    for (int turn = 0; turn < 2; turn++) /* the ones that wait first */
        for (size_t i = 0; i < REQUESTS && has_room(w); i++) {
            struct request *r = &w->requests[i];
            if (turn ? r->state != FRESH : r->state != WAITING || r->at > now)
                continue;
            r->state = FLYING;
            r->number = sl_pace_begin(&w->pace, now);
            r->at = now + AWAY_MS;
            w->flying++;
        }
}

static void settle(struct world *w, struct request *r, int64_t now)
{
    w->flying--;
    if (takes(&w->target, r, now)) {
        sl_pace_took(&w->pace, 2, w->left > w->flying + 1);
        r->state = DONE;
        w->outcome.done++;
        w->left--;
        return;
    }
    w->outcome.throttled++;
    if (r->retries + 1 > w->outcome.worst)
        w->outcome.worst = r->retries + 1;
    sl_pace_throttled(&w->pace, r->number);
    r->state = WAITING;
    r->at = now + sl_retry_wait_ms(&w->clock.clock, SL_RETRY_THROTTLE, 0, r->retries++, sl_span(NULL, 0));
}

static int64_t next_event(const struct world *w, int64_t now)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < REQUESTS; i++) {
        const struct request *r = &w->requests[i];
        if ((r->state == FLYING || r->state == WAITING) && r->at > now && r->at < next)
            next = r->at;
    }
    return next == INT64_MAX ? now + 1 : next;
}

static struct outcome run_world(bool is_fixed, const struct target *target, uint64_t random)
{
    struct world *w = calloc(1, sizeof(*w));
    int64_t now = 0;
    seed = random;
    sl_clock_virtual_init(&w->clock, 0, random);
    sl_pace_init(&w->pace, SL_PACE_MAX);
    w->is_fixed = is_fixed;
    w->target = *target;
    w->target.tokens = target->burst;
    w->left = REQUESTS;
    for (size_t i = 0; i < REQUESTS; i++)
        w->requests[i].is_hot = draw(100) < target->hot_of_100;
    for (; w->left; now = next_event(w, now)) {
        assert_in_range(now, 0, 600000);
        for (size_t i = 0; i < REQUESTS; i++)
            if (w->requests[i].state == FLYING && w->requests[i].at <= now)
                settle(w, &w->requests[i], now);
        send_due(w, now);
    }
    struct outcome outcome = w->outcome;
    outcome.ms = now;
    free(w);
    return outcome;
}

static struct outcome run_worlds(bool is_fixed, const struct target *target)
{
    struct outcome all = {.ms = 0};
    for (uint64_t random = 1; random <= WORLDS; random++) {
        struct outcome one = run_world(is_fixed, target, random);
        all.ms += one.ms;
        all.throttled += one.throttled;
        all.done += one.done;
        all.worst = one.worst > all.worst ? one.worst : all.worst;
    }
    return all;
}

/* What holds for any target: no request is tried much more often than with 16 at a time, nor do all take
 * longer, but for a part of it and the wait of the last ones. */
static struct outcome compare(const struct target *target, struct outcome *fixed)
{
    *fixed = run_worlds(true, target);
    struct outcome ours = run_worlds(false, target);
    assert_int_equal(ours.done, WORLDS * REQUESTS);
    assert_in_range(ours.worst, 0, fixed->worst + 2);
    assert_in_range(ours.ms, 0, fixed->ms + fixed->ms / 3 + WORLDS * SL_RETRY_THROTTLE_MS);
    /* looking for a greater number costs a wave, once */
    assert_in_range(ours.throttled, 0, fixed->throttled + WORLDS * SL_PACE_MAX);
    return ours;
}

static void a_target_that_throttles_is_asked_less_and_served_as_soon(void **state)
{
    (void)state;
    static const double rates[] = {0.3, 1, 2, 3, 8};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        for (double burst = 10; burst <= 1000; burst *= 100) {
            struct target target = {.per_ms = rates[i], .burst = burst, .hot_of_100 = 100};
            struct outcome fixed, ours = compare(&target, &fixed);
            /* the last ones that were refused end with a wait, whatever the others do */
            assert_in_range(ours.ms, 0, fixed.ms + WORLDS * SL_RETRY_THROTTLE_MS);
            if (fixed.throttled > WORLDS * REQUESTS / 10)
                assert_in_range(ours.throttled, 0, fixed.throttled / 5);
        }
}

/* A hot key, or a server that fails now and then, refuses as many at any limit: it does not fall for that. */
static void what_does_not_depend_on_the_rate_does_not_slow_it(void **state)
{
    (void)state;
    static const struct target targets[] = {
        {.failing_of_100 = 1},
        {.failing_of_100 = 5},
        {.failing_of_100 = 10},
        {.failing_of_100 = 20},
        {.per_ms = 0.02, .burst = 10, .hot_of_100 = 5},
        {.per_ms = 0.1, .burst = 10, .hot_of_100 = 5},
        {.per_ms = 0.1, .burst = 10, .hot_of_100 = 20},
        {.per_ms = 0.4, .burst = 10, .hot_of_100 = 20},
        {.per_ms = 3, .burst = 10, .hot_of_100 = 100, .failing_of_100 = 2},
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct outcome fixed, ours = compare(&targets[i], &fixed);
        if (targets[i].failing_of_100 < 20)
            assert_in_range(ours.ms, 0, fixed.ms + fixed.ms / 8);
    }
}

static void an_outage_costs_few_requests(void **state)
{
    (void)state;
    for (int64_t until = 150; until <= 4900; until *= 2) {
        const struct target target = {.out_from_ms = 100, .out_until_ms = until};
        struct outcome fixed, ours = compare(&target, &fixed);
        if (until > 1000)
            assert_in_range(ours.throttled, 0, fixed.throttled / 5);
    }
}

/* ---- the wait that a service asks for ---- */

/* Whole milliseconds, and at most so many above the wait that was drawn anyway; anything else is not a wait.
 */
static void a_service_asks_for_a_wait_in_whole_milliseconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: it is no wait */
    } cases[] = {{"0", 0},
                 {"3000", 3000},
                 {"4999", 4999},
                 {"9999999999", SL_RETRY_AFTER_EXTRA_MS},
                 {"0000004999", 4999},
                 {"00000004999", -1},
                 {"99999999999", -1},
                 {"", -1},
                 {"4999x", -1},
                 {"x4999", -1},
                 {"49:9", -1},
                 {"49/9", -1},
                 {"-4999", -1},
                 {"4.9", -1},
                 {" 4999", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint64_t dice = 1; dice < 20; dice++) {
            struct sl_clock_virtual clock;
            sl_clock_virtual_init(&clock, 0, dice);
            int64_t drawn = sl_retry_wait_ms(&clock.clock, SL_RETRY_TRANSIENT, 50, 0, sl_span(NULL, 0));
            sl_clock_virtual_init(&clock, 0, dice); /* the same dice */
            int64_t ms =
                sl_retry_wait_ms(&clock.clock, SL_RETRY_TRANSIENT, 50, 0, sl_span_str(cases[i].text));
            int64_t most = drawn + SL_RETRY_AFTER_EXTRA_MS;
            int64_t wanted = cases[i].ms <= drawn ? drawn : cases[i].ms < most ? cases[i].ms : most;
            if (cases[i].ms == SL_RETRY_AFTER_EXTRA_MS)
                wanted = most;
            if (ms != wanted)
                fail_msg("\"%s\": %lld ms and not %lld", cases[i].text, (long long)ms, (long long)wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_doubles_to_its_cap),
        cmocka_unit_test(answers_that_no_work_waited_for_prove_nothing),
        cmocka_unit_test(one_wave_halves_once),
        cmocka_unit_test(below_what_was_refused_it_stays),
        cmocka_unit_test(a_steady_few_do_not_halve_and_a_steady_many_do),
        cmocka_unit_test(a_long_pause_begins_anew),
        cmocka_unit_test(over_tls_the_first_goes_alone),
        cmocka_unit_test(bytes_bound_both_directions),
        cmocka_unit_test(any_schedule_keeps_the_limit_and_recovers),
        cmocka_unit_test(a_target_that_throttles_is_asked_less_and_served_as_soon),
        cmocka_unit_test(what_does_not_depend_on_the_rate_does_not_slow_it),
        cmocka_unit_test(an_outage_costs_few_requests),
        cmocka_unit_test(a_service_asks_for_a_wait_in_whole_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
