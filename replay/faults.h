/* Faults by plan: what `sluice replay --fault` makes the environment do.
 *
 * A plan is a list "KIND@WHEN,..."; WHEN is an invocation's number (from 1), a range "3-5", a share "10%"
 * (drawn from the seed), or "*".
 *
 *   throttle   Lambda refuses the invocation: the function never runs
 *   crash      the process dies with the event in its hands: nothing of it was done
 *   die        the process does its work, and dies before its answer arrives
 *   lost       the work is done and answered, but the answer gets lost on its way to the event source
 *   timeout    the work is done, and then the time is up
 *
 * Two kinds count calls, not invocations:
 *
 *   sink       the function's Nth wish to make something durable (fsync, fdatasync) fails: an I/O error
 *   connect    its Nth connection to anything but the Runtime API is refused
 */
#ifndef SL_REPLAY_FAULTS_H
#define SL_REPLAY_FAULTS_H

#include "base/error.h"

enum sl_env_fault {
    SL_FAULT_NONE,
    SL_FAULT_THROTTLE,
    SL_FAULT_CRASH,
    SL_FAULT_DIE,
    SL_FAULT_LOST,
    SL_FAULT_TIMEOUT,
    SL_FAULT_SINK,
    SL_FAULT_CONNECT
};

#define SL_FAULT_RULES 32

struct sl_faults {
    struct sl_fault_rule {
        enum sl_env_fault fault;
        uint64_t first, last; /* invocations; 0: by share */
        unsigned percent;
    } rules[SL_FAULT_RULES];
    size_t n;
    uint64_t random;
};

/* Adds the rules of `spec`. On failure: what is wrong with it. */
enum sl_status sl_faults_add(struct sl_faults *faults, const char *spec, struct sl_error *error) SL_MUST_USE;

/* What befalls this invocation: the first rule that applies. To be asked once for each, in order. */
enum sl_env_fault sl_faults_of(struct sl_faults *faults, uint64_t invocation);

/* Whether this call fails, SL_FAULT_SINK or SL_FAULT_CONNECT; `call` counts from 1. */
bool sl_faults_call(struct sl_faults *faults, enum sl_env_fault kind, uint64_t call);

/* Whether there are rules that count calls. */
bool sl_faults_watch(const struct sl_faults *faults);

#endif
