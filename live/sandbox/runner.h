/* Runs the invocations of a simulated mapping in real processes, as many sandboxes as run at a time.
 *
 * A process that misbehaves is treated as in Lambda: one that dies is a function error (Runtime.ExitError),
 * one past its deadline is killed and is a function error (Sandbox.Timedout). The next event gets a new
 * process. */
#ifndef SL_LIVE_SANDBOX_RUNNER_H
#define SL_LIVE_SANDBOX_RUNNER_H

#include "esm/esm.h"
#include "live/sandbox/faults.h"
#include "live/sandbox/notes.h"
#include "live/sandbox/sandbox.h"

/* The totals of one route, from the reports of our bootstrap. */
struct sl_runner_route {
    char *name, *handler, *target;
    uint64_t matched, applied, parked, failed, set_aside, calls;
    uint64_t bytes; /* of the records that matched */
};

struct sl_runner_stats {
    unsigned starts, exits, timeouts, init_errors;
    unsigned not_json; /* answers that are not JSON */
    struct sl_server_faults protocol;
};

struct sl_runner_options {
    struct sl_sandbox_spec sandbox;
    int64_t timeout_ms; /* of an invocation, in real time */
    struct sl_faults faults;
};

struct sl_runner;

struct sl_runner *sl_runner_new(const struct sl_runner_options *options);
void sl_runner_destroy(struct sl_runner *runner); /* kills the processes that still run */

/* Starts the first process, and waits until it asks for an event. SL_REJECT: it ended, or posted an init
 * error; `error` has its message. SL_FATAL: there can be no process, or no file for its reports. */
enum sl_status sl_runner_warm_up(struct sl_runner *runner, struct sl_error *error) SL_MUST_USE;

/* The invocations that begin from now on end at this moment of the steady clock at the latest: their deadline
 * is no later, and their process is killed then. INT64_MAX: their timeout alone counts. */
void sl_runner_set_until(struct sl_runner *runner, int64_t until_ms);

/* SLUICE_OUTAGE of the processes that get events from now on: one that was started with another text (by its
 * address) ends before its next event. Borrowed. */
void sl_runner_set_outage(struct sl_runner *runner, const char *routes);

/* Kills the processes of the invocations that are under way, which fail. From any thread; it may come too
 * late for them, and then meets the next one. */
void sl_runner_cancel(struct sl_runner *runner);

/* `begin` and `invoke` of the simulator's driver. */
void sl_runner_begin(void *runner, struct sl_esm_invocation *inv);
void sl_runner_collect(void *runner, struct sl_esm_invocation *inv, struct sl_esm_result *out);

/* What our bootstrap noted of the invocations that are over: forget each when it was read. Borrowed. */
struct sl_notes *sl_runner_notes(struct sl_runner *runner);

struct sl_runner_stats sl_runner_stats(struct sl_runner *runner);
size_t sl_runner_routes(const struct sl_runner *runner);
const struct sl_runner_route *sl_runner_route(const struct sl_runner *runner, size_t i);

#endif
