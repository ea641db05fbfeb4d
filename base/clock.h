/* Time and chance behind one interface, so that a simulated day costs nothing and a run can be repeated.
 *
 * Everything that waits, asks the time or draws a number does so through a struct sl_clock handed down from
 * main. */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include "base/time.h"

struct sl_clock {
    int64_t (*now_ms)(struct sl_clock *clock); /* steady; its zero means nothing. Deadlines are on this one */
    int64_t (*wall_ns)(struct sl_clock *clock); /* nanoseconds since 1970-01-01T00:00:00Z; may jump */
    void (*sleep_ms)(struct sl_clock *clock, int64_t ms);
    uint64_t (*random)(struct sl_clock *clock); /* 64 bits, not for secrets */
    int64_t (*now_ns)(struct sl_clock *clock);  /* steady, of another zero than now_ms: for measuring */
};

/* The machine's clock; one for the process. Steady time is CLOCK_BOOTTIME, since a sandbox may be frozen. */
struct sl_clock *sl_clock_system(void);

/* A clock that moves only when somebody sleeps on it or sets it. */
struct sl_clock_virtual {
    struct sl_clock clock;
    int64_t ms; /* steady time; wall time is `epoch_ns` later */
    int64_t epoch_ns;
    uint64_t state; /* of the random numbers: the seed, any value */
};

void sl_clock_virtual_init(struct sl_clock_virtual *v, int64_t epoch_ns, uint64_t seed);

/* One step of splitmix64: for code that draws its own numbers from a seed. */
uint64_t sl_random_step(uint64_t *state);

#endif
