/* Planned faults: what `sluice replay --fault` makes the environment do.
 *
 * A plan is a list "KIND@WHEN,...". WHEN is the number of an invocation (from 1), a range "3-5", a share
 * "10%" (drawn from the seed), or "*".
 *
 *   throttle   Lambda refuses the invocation: the function never runs
 *   crash      the process dies with the event, before it did any work
 *   die        the process does the work, and dies before its answer arrives
 *   lost       the work is done and answered, but the answer is lost on its way to the event source
 *   timeout    the work is done, and then the invocation times out
 *
 * Two kinds count calls, not invocations:
 *
 *   sink       the function's Nth fsync or fdatasync fails with an I/O error
 *   connect    the function's Nth connection, except to the Runtime API, is refused
 */
#ifndef SL_LIVE_SANDBOX_FAULTS_H
#define SL_LIVE_SANDBOX_FAULTS_H

#include "base/error.h"

enum sl_faults_kind {
    SL_FAULTS_NONE,
    SL_FAULTS_THROTTLE,
    SL_FAULTS_CRASH,
    SL_FAULTS_DIE,
    SL_FAULTS_LOST,
    SL_FAULTS_TIMEOUT,
    SL_FAULTS_SINK,
    SL_FAULTS_CONNECT
};

#define SL_FAULTS_MOST 32

struct sl_faults {
    struct sl_faults_rule {
        enum sl_faults_kind fault;
        uint64_t first, last; /* invocations, or calls; 0: by share */
        unsigned percent;
    } rules[SL_FAULTS_MOST];
    size_t n;
    uint64_t random;
};

/* Adds the rules of `spec`. */
enum sl_status sl_faults_add(struct sl_faults *faults, const char *spec, struct sl_error *error) SL_MUST_USE;

/* The fault of this invocation: the first rule that applies. Called once for each invocation, in order. */
enum sl_faults_kind sl_faults_draw(struct sl_faults *faults, uint64_t invocation);

/* Whether this call fails. `kind` is SL_FAULTS_SINK or SL_FAULTS_CONNECT; `call` counts from 1. */
bool sl_faults_fails_call(struct sl_faults *faults, enum sl_faults_kind kind, uint64_t call);

/* Whether there are rules that count calls. */
bool sl_faults_counts_calls(const struct sl_faults *faults);

#endif
