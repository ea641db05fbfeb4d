#include "tests/support/haste.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS INT64_C(1000000000)

static unsigned factor = 1;
static int64_t since_ns, won_ns; /* when the factor was set, on CLOCK_MONOTONIC; and how far ahead it was */

static int64_t monotonic_ns(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

int64_t haste_ahead_ns(void)
{
    return factor == 1 ? won_ns : won_ns + (monotonic_ns() - since_ns) * (factor - 1);
}

void haste(unsigned new_factor)
{
    int64_t won = haste_ahead_ns();
    since_ns = monotonic_ns();
    won_ns = won;
    factor = new_factor;
}

void haste_forget(void)
{
    factor = 1;
    won_ns = 0;
}

struct timespec haste_shortened(const struct timespec *wait)
{
    int64_t ns = (wait->tv_sec * NS + wait->tv_nsec + factor - 1) / factor;
    return (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
}

int haste_shortened_ms(int ms)
{
    return ms < 0 ? ms : (int)((ms + (int64_t)factor - 1) / factor);
}
