/* The walk of a share of an archive's items, by one worker: all that the readers left of them is sorted. */
#ifndef SL_RUNTIME_WORK_WALK_ARCHIVES_H
#define SL_RUNTIME_WORK_WALK_ARCHIVES_H

#include "data/verify/archive/changes.h"
#include "runtime/work/steps.h"

struct sl_work_walk {
    const struct sl_work_steps *steps;
    uint64_t target, last_round;
    const char *route;
    uint64_t from, until; /* shares */
    struct sl_chain_counts *counts;
    struct sl_buffer *line;
    void (*found)(void *arg, struct sl_span line);
    void *arg;
};

/* SL_FATAL: TMPDIR is full, or cannot be written. */
enum sl_status sl_work_walk_archive(const struct sl_work_walk *walk, struct sl_error *error) SL_MUST_USE;

#endif
