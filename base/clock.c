/* The machine's clock, and one that a test or a simulation drives. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t system_now_ms(struct sl_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_BOOTTIME) / 1000000;
}

static int64_t system_wall_ns(struct sl_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME);
}

/* Read around each call of a handler and of a port, so by the vDSO: 30 ns. A sandbox is not frozen during an
 * invocation. */
static int64_t system_now_ns(struct sl_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

static void system_sleep_ms(struct sl_clock *clock, int64_t ms)
{
    (void)clock;
    if (ms <= 0)
        return;
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

uint64_t sl_random_step(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Fresh from the time at every draw: a process restored from a snapshot must not repeat its numbers. */
static uint64_t system_random(struct sl_clock *clock)
{
    (void)clock;
    uint64_t state = (uint64_t)read_ns(CLOCK_MONOTONIC) ^ ((uint64_t)read_ns(CLOCK_REALTIME) << 20) ^
                     (uint64_t)(uintptr_t)&state;
    return sl_random_step(&state);
}

struct sl_clock *sl_clock_system(void)
{
    static struct sl_clock clock = {system_now_ms, system_wall_ns, system_sleep_ms, system_random,
                                    system_now_ns};
    return &clock;
}

static int64_t virtual_now_ms(struct sl_clock *clock)
{
    return ((struct sl_clock_virtual *)clock)->ms;
}

static int64_t virtual_now_ns(struct sl_clock *clock)
{
    return ((struct sl_clock_virtual *)clock)->ms * 1000000;
}

static int64_t virtual_wall_ns(struct sl_clock *clock)
{
    struct sl_clock_virtual *v = (struct sl_clock_virtual *)clock;
    return v->epoch_ns + v->ms * 1000000;
}

static void virtual_sleep_ms(struct sl_clock *clock, int64_t ms)
{
    if (ms > 0)
        ((struct sl_clock_virtual *)clock)->ms += ms;
}

static uint64_t virtual_random(struct sl_clock *clock)
{
    return sl_random_step(&((struct sl_clock_virtual *)clock)->state);
}

void sl_clock_virtual_init(struct sl_clock_virtual *v, int64_t epoch_ns, uint64_t seed)
{
    *v = (struct sl_clock_virtual){
        .clock = {virtual_now_ms, virtual_wall_ns, virtual_sleep_ms, virtual_random, virtual_now_ns},
        .epoch_ns = epoch_ns,
        .state = seed,
    };
}
