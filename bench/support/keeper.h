/* A local keep-alive server in a process of its own, so that its work is not counted as ours: it answers
 * every request with `answer` after `delay_us`, and tells the number of requests it held at once. */
#ifndef SL_BENCH_SUPPORT_KEEPER_H
#define SL_BENCH_SUPPORT_KEEPER_H

#include <stdint.h>

struct keeper_shared {
    uint32_t requests;
    uint32_t held, most_held;
};

struct keeper {
    int pid;
    char url[64];
    struct keeper_shared *shared;
};

/* A listening socket of 127.0.0.1, at a free port. */
int keeper_listen(unsigned *port);

void keeper_start(struct keeper *keeper, const char *answer, unsigned delay_us);
void keeper_stop(struct keeper *keeper);

#endif
