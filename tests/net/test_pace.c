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
    sl_pace_throttled(&pace, sl_pace_begin(&pace, 0));
    assert_int_equal(pace.limit, 16);
    good_round(&pace);
    assert_int_equal(pace.limit, 17); /* near what it took, one at a time */
}

static void a_long_pause_begins_anew(void **state)
{
    (void)state;
    struct sl_pace pace;
    sl_pace_init(&pace, 64);
    sl_pace_begin(&pace, 1000);
    for (int i = 0; i < 3; i++)
        sl_pace_throttled(&pace, sl_pace_begin(&pace, 1000));
    assert_int_equal(pace.limit, 1);
    sl_pace_begin(&pace, 1000 + SL_PACE_IDLE_MS);
    assert_int_equal(pace.limit, 1);
    sl_pace_begin(&pace, 1001 + 2 * (int64_t)SL_PACE_IDLE_MS);
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

/* ---- a target with a token bucket ---- */

/* So many requests have their answers 5 ms after they are sent; one that finds no token is throttled, and
 * sent again as net/retry.h says. */
#define WORLDS   3
#define REQUESTS 3000
#define AWAY_MS  5

struct target {
    double tokens, per_ms, burst;
    int64_t filled_ms;
};

struct outcome {
    int64_t ms;
    size_t throttled, done;
};

struct request {
    enum { FRESH, WAITING, FLYING, DONE } state;
    int64_t at; /* due, or answered */
    uint64_t number;
    unsigned retries;
};

static bool takes(struct target *target, int64_t now)
{
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
    if (takes(&w->target, now)) {
        sl_pace_took(&w->pace, 2, w->left > w->flying + 1);
        r->state = DONE;
        w->outcome.done++;
        w->left--;
        return;
    }
    w->outcome.throttled++;
    sl_pace_throttled(&w->pace, r->number);
    r->state = WAITING;
    r->at = now + sl_retry_wait_ms(&w->clock.clock, SL_RETRY_THROTTLE, 0, r->retries++, sl_span(NULL, 0));
}

static struct outcome run_world(bool is_fixed, double per_ms, double burst, uint64_t random)
{
    struct world *w = calloc(1, sizeof(*w));
    int64_t now = 0;
    sl_clock_virtual_init(&w->clock, 0, random);
    sl_pace_init(&w->pace, SL_PACE_MAX);
    w->is_fixed = is_fixed;
    w->target = (struct target){.tokens = burst, .per_ms = per_ms, .burst = burst};
    w->left = REQUESTS;
    for (; w->left; now++) {
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

static struct outcome run_worlds(bool is_fixed, double per_ms, double burst)
{
    struct outcome all = {.ms = 0};
    for (uint64_t random = 1; random <= WORLDS; random++) {
        struct outcome one = run_world(is_fixed, per_ms, burst, random);
        all.ms += one.ms;
        all.throttled += one.throttled;
        all.done += one.done;
    }
    return all;
}

static void a_target_that_throttles_is_asked_less_and_served_as_soon(void **state)
{
    (void)state;
    static const double rates[] = {0.3, 1, 2, 3, 8};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        for (double burst = 10; burst <= 1000; burst *= 100) {
            struct outcome fixed = run_worlds(true, rates[i], burst),
                           ours = run_worlds(false, rates[i], burst);
            assert_int_equal(ours.done, WORLDS * REQUESTS);
            /* the last ones that were refused end with a wait, whatever the others do */
            assert_in_range(ours.ms, 0, fixed.ms + WORLDS * SL_RETRY_THROTTLE_MS);
            /* looking for a greater number costs a wave, once */
            assert_in_range(ours.throttled, 0, fixed.throttled + WORLDS * SL_PACE_MAX);
            if (fixed.throttled > WORLDS * REQUESTS / 10)
                assert_in_range(ours.throttled, 0, fixed.throttled / 2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_doubles_to_its_cap),
        cmocka_unit_test(answers_that_no_work_waited_for_prove_nothing),
        cmocka_unit_test(one_wave_halves_once),
        cmocka_unit_test(a_long_pause_begins_anew),
        cmocka_unit_test(over_tls_the_first_goes_alone),
        cmocka_unit_test(bytes_bound_both_directions),
        cmocka_unit_test(any_schedule_keeps_the_limit_and_recovers),
        cmocka_unit_test(a_target_that_throttles_is_asked_less_and_served_as_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
