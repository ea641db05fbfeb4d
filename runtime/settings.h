/* What bootstrap reads from the environment, once, at start: Lambda's variables and its own. docs/CONFIG.md
 * has them for users.
 *
 *   SLUICE_CONFIG        the configuration; else sluice.json in LAMBDA_TASK_ROOT, else beside bootstrap
 *   SLUICE_HANDLER_PATH  folders with plugins, separated by ':', searched after handlers/ beside
 *                        bootstrap and /opt/sluice/handlers (a layer)
 *   SLUICE_REPORT_FD     an open descriptor to which one JSON line per batch is written: what each route did
 *   SLUICE_WORK_ITEMS    1: work items are taken instead of stream events; runtime/work/config.h has its
 *                        other variables, SLUICE_WORK_...
 *   SLUICE_SUMMARY       on, off: a line in the log for each invocation
 *   SLUICE_METRICS       each, off, or seconds: how often metrics are written
 *   SLUICE_SHUTDOWN      1: an internal extension is registered, so that SIGTERM comes before the end
 */
#ifndef SL_RUNTIME_SETTINGS_H
#define SL_RUNTIME_SETTINGS_H

#include "base/log.h"
#include "base/vars.h"
#include "handlers/pipeline/loader.h"

#define SL_PATH_BYTES 4096

#define SL_METRICS_OFF -1

struct sl_settings {
    struct sl_vars vars;  /* the whole environment as it was */
    const char *endpoint; /* of the Runtime API; NULL outside Lambda */
    const char *function_name;
    const char *temp_folder; /* TMPDIR, else /tmp */
    char config_path[SL_PATH_BYTES];
    const char *handler_path[SL_LOADER_FOLDERS + 1]; /* NULL-terminated */
    enum sl_log_format log_format;
    enum sl_level log_level;
    unsigned workers; /* AWS_LAMBDA_MAX_CONCURRENCY: processes that take events in parallel; at least 1 */
    int report_fd;    /* -1: none */
    bool has_summary;
    int64_t metrics_ms; /* SL_METRICS_OFF, 0: with each invocation, or the time over which they are summed */
    bool has_shutdown;  /* asks for SIGTERM */
    const char *wrong[3]; /* what is wrong with those three; each has its default then */
    size_t n_wrong;
    struct sl_arena *arena; /* holds what the members above point to */
};

/* `environment` and `program` (the path of this executable) are copied. Never fails: what is missing is
 * reported when it is used. */
void sl_settings_init(struct sl_settings *s, char *const *environment, const char *program);
void sl_settings_clean_up(struct sl_settings *s);

#endif
