/* One replay, from inputs to summary: what the verbs that run handlers share. */
#ifndef SL_CLI_SESSION_H
#define SL_CLI_SESSION_H

#include "cli/command.h"
#include "cli/outages.h"
#include "cli/output/failures.h"
#include "cli/output/report/picture.h"
#include "cli/output/summary.h"
#include "cli/output/trace.h"
#include "cli/parked.h"
#include "live/sandbox/runner.h"
#include "live/source/recording.h"

#include <stdio.h>

/* Zeroed, except for what the caller sets. */
struct sl_session {
    const char *verb;                        /* for messages */
    const char *config;                      /* for our own bootstrap */
    const char *command;                     /* another runtime; NULL: ours */
    const char *trace, *on_failure, *report; /* files; NULL: none */
    const char *handler_path;                /* NULL: the usual places */
    const char *function;                    /* name or ARN; NULL: the environment's, or "sluice" */
    enum sl_failures_mode on_failure_mode;
    struct sl_flag_list filters, faults, outages;
    const char *log;   /* file for what the function writes; NULL: standard error */
    bool collects_log; /* lines that are repeated, in log and trace, are counted; else all are written at once
                        */
    bool with_ids, is_quiet, has_no_summary;
    bool fails_on_parked;      /* a record that was parked is a failure, too */
    bool handles_signals;      /* the caller does, so the session does not */
    bool sets_report_failures; /* settings.report_failures counts; else the configuration decides */
    int64_t timeout_s, seed;
    struct sl_esm_settings settings;
    struct sl_recording_options recording_options;
    struct sl_arena *arena; /* made by the caller, destroyed by sl_session_clean_up */
    struct sl_vars vars;    /* the environment */

    /* Its own. */
    struct sl_span ttl_attribute;
    struct sl_recording recording;
    struct sl_function identity;
    struct sl_output *output;
    struct sl_runner *runner;
    struct sl_outages *outage; /* NULL: none is planned */
    struct sl_clock_virtual clock;
    struct sl_esm *esm;
    FILE *trace_file;
    struct sl_trace_file *trace_out;
    struct sl_failures failures;
    struct sl_picture *picture;
    size_t delivered_bytes; /* since the recording's pages were released */
    int64_t progress_ms;    /* when the progress line was last drawn */
    int64_t began_ms;       /* 0: not yet */
    struct sl_patience *patience;
    struct sl_parked_reasons parked;
    bool has_hinted; /* that retries take long */
};

/* Checks everything, runs, and prints the summary. Returns the exit status. The inputs have their names and
 * texts; this decodes them. */
int sl_session_run(struct sl_session *session, struct sl_inputs *inputs) SL_MUST_USE;
/* False: an output that was open until now is incomplete, which it has said. */
bool sl_session_clean_up(struct sl_session *session);

/* The steps of sl_session_run, for a caller that feeds the mapping itself: read the configuration; check the
 * filters and settings; open the outputs and start the first process. */
enum sl_status sl_session_read_config(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_session_prepare(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_session_open(struct sl_session *session, struct sl_error *error) SL_MUST_USE;

/* For a caller that runs the sandboxes itself: opens the outputs alone; then says how sandboxes are run. */
enum sl_status sl_session_open_outputs(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_session_sandboxes(struct sl_session *session, struct sl_runner_options *out,
                                    struct sl_error *error) SL_MUST_USE;

/* The calls of the simulator's driver, with the session as `self`; the last two also without its sandboxes.
 */
void sl_session_begin(void *session, struct sl_esm_invocation *inv);
void sl_session_invoke(void *session, struct sl_esm_invocation *inv, struct sl_esm_result *out);
void sl_session_decided(void *session, const struct sl_esm_invocation *inv,
                        const struct sl_esm_result *result, const struct sl_esm_decision *decision);
void sl_session_discarded(void *session, const struct sl_esm_discard *discard);

/* False: the trace is incomplete, and a line on standard error said so. */
bool sl_session_close_trace(struct sl_session *session);

#endif
