#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
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
    static struct sl_clock clock = {system_now_ms, system_wall_ns, system_sleep_ms, system_random};
    return &clock;
}

static int64_t virtual_now_ms(struct sl_clock *clock)
{
    return ((struct sl_clock_virtual *)clock)->ms;
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
        .clock = {virtual_now_ms, virtual_wall_ns, virtual_sleep_ms, virtual_random},
        .epoch_ns = epoch_ns,
        .state = seed,
    };
}

void sl_time_text(int64_t wall_ns, char out[SL_TIME_BYTES])
{
    int64_t ms = wall_ns / 1000000 - (wall_ns % 1000000 < 0);
    int64_t s = ms / 1000 - (ms % 1000 < 0);
    time_t seconds = (time_t)s;
    struct tm tm;
    char text[64];
    if (!gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900 || tm.tm_year < -1900) {
        snprintf(out, SL_TIME_BYTES, "0000-00-00T00:00:00.000Z");
        return;
    }
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms - s * 1000));
    snprintf(out, SL_TIME_BYTES, "%.24s", text);
}
