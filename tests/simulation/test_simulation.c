/* Runs seeds: test_simulation [SEEDS [FIRST]]. A failing seed prints what was violated, and the command that
 * repeats it. There is one process per core; the processes share the seeds. */
#include "tests/simulation/sim.h"

#include "base/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef SL_ARENA_DEBUG /* under sanitizers, ten times as slow */
#define DEFAULT_SEEDS 500
#else
#define DEFAULT_SEEDS 1000
#endif

struct share {
    uint64_t first, seeds;
    unsigned worker, workers;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(const struct sim *s)
{
    fprintf(stderr, "seed %llu: %s\n  repeat with: make simulate SEEDS=1 FIRST=%llu\n",
            (unsigned long long)s->seed, s->violation, (unsigned long long)s->seed);
}

static int run_share(const struct share *share)
{
    struct sim *s = malloc(sizeof(*s));
    int config_fd = memfd_create("sluice.json", MFD_CLOEXEC), failed = 0;
    if (!s || config_fd < 0)
        return 2;
    for (uint64_t i = share->worker; i < share->seeds && failed < 5; i += share->workers) {
        sim_run(s, share->first + i, config_fd);
        if (s->violation[0]) {
            say(s);
            failed++;
        }
        if (share->seeds == 1)
            fprintf(stderr, "%.*s\n%zu changes, %llu invocations, %zu letters\n", SL_ARG(s->config),
                    s->n_changes, (unsigned long long)s->invocations, s->n_letters);
        sim_clean_up(s);
    }
    close(config_fd);
    free(s);
    return failed ? 1 : 0;
}

static int run_workers(uint64_t first, uint64_t seeds)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = seeds == 1 || cores < 1 ? 1 : cores > 16 ? 16 : (unsigned)cores;
    int failed = 0, status;
    for (unsigned i = 0; i < workers; i++) {
        struct share share = {first, seeds, i, workers};
        pid_t pid = fork();
        if (pid == 0)
            exit(run_share(&share));
        failed |= pid < 0;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT_SEEDS;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    double began = now_s();
    int failed = run_workers(first, seeds);
    double took = now_s() - began;
    printf("%llu seeds from %llu in %.1f s: %.0f seeds/s\n", (unsigned long long)seeds,
           (unsigned long long)first, took, (double)seeds / took);
    if (failed) {
        printf("[  FAILED  ] 1 test\n");
        return 1;
    }
    printf("%llu passed\n", (unsigned long long)seeds);
    return 0;
}
