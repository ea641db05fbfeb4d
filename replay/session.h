/* One replay from texts to summary: what the verbs that run handlers share. */
#ifndef SL_REPLAY_SESSION_H
#define SL_REPLAY_SESSION_H

#include "replay/failures.h"
#include "replay/flags.h"
#include "replay/report.h"
#include "replay/runner.h"
#include "replay/stream.h"
#include "replay/summary.h"

#include <stdio.h>

/* Zeroed but for what the caller sets. */
struct sl_session {
    const char *verb;                        /* for messages */
    const char *config;                      /* of our own bootstrap */
    const char *command;                     /* another runtime; NULL: ours */
    const char *trace, *on_failure, *report; /* files; NULL: none */
    const char *handler_path;                /* NULL: the usual places */
    struct sl_flag_list filters, faults;
    bool with_ids, is_quiet;
    bool has_no_summary;
    bool handles_signals; /* the caller does */
    bool is_mapping_said; /* settings.report_failures stands; else the configuration says it */
    int64_t timeout_s, seed;
    struct sl_esm_settings settings;
    struct sl_stream_options stream_options;
    struct sl_arena *arena; /* the caller's choice; destroyed at the end */

    /* Its own. */
    struct sl_span ttl_attribute;
    struct sl_stream stream;
    struct sl_runner *runner;
    struct sl_clock_virtual clock;
    struct sl_esm *esm;
    FILE *trace_file;
    struct sl_buffer line;
    struct sl_failures failures;
    struct sl_report *picture;
    int64_t progress_ms; /* when the progress line was last drawn */
};

struct sl_text_input {
    const char *name; /* for messages */
    struct sl_span text;
};

/* Checks everything, runs, prints the summary. The exit status. */
int sl_session_run(struct sl_session *session, const struct sl_text_input *inputs, size_t n) SL_MUST_USE;
/* The steps of it, for who feeds the mapping by other means: the configuration; the checks of filters and
 * settings; outputs and the first process. The driver's four are for the simulator, with the session as
 * `self`. */
enum sl_status sl_session_read_config(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_session_prepare(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_session_open(struct sl_session *session, struct sl_error *error) SL_MUST_USE;
void sl_session_begin(void *session, struct sl_esm_invocation *inv);
void sl_session_invoke(void *session, struct sl_esm_invocation *inv, struct sl_esm_result *out);
void sl_session_decided(void *session, const struct sl_esm_invocation *inv,
                        const struct sl_esm_result *result, const struct sl_esm_decision *decision);
void sl_session_discarded(void *session, const struct sl_esm_discard *discard);

void sl_session_clean_up(struct sl_session *session);

#endif
