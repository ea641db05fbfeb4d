/* One execution environment: a function's process, started as Lambda starts it, and its Runtime API.
 *
 * The process gets Lambda's environment variables and the caller's. It has a process group of its own, and
 * dies with this process. Its standard output and standard error are its log: they go to `output`, or both to
 * our standard error. */
#ifndef SL_LIVE_SANDBOX_SANDBOX_H
#define SL_LIVE_SANDBOX_SANDBOX_H

#include "base/vars.h"
#include "live/sandbox/guard.h"
#include "live/sandbox/function.h"
#include "live/sandbox/output.h"
#include "live/sandbox/server.h"

struct sl_sandbox_spec {
    const char *bootstrap;    /* path of an executable; NULL: `command` */
    const char *command;      /* run by /bin/sh */
    const char *task_root;    /* LAMBDA_TASK_ROOT */
    const char *config_path;  /* SLUICE_CONFIG; NULL: not set */
    const char *handler_path; /* SLUICE_HANDLER_PATH; NULL: as it is */
    const char *temp_folder;  /* TMPDIR: like /tmp in Lambda, it outlives a process. NULL: as it is */
    const struct sl_function *identity;
    struct sl_output *output; /* NULL: our standard error */
    bool report_failures;
    const char *outage;     /* SLUICE_OUTAGE, and SLUICE_REPLAY=1; NULL: as they are */
    int report_fd;          /* SLUICE_REPORT_FD: stays open in the process; -1: none */
    bool is_watched;        /* see live/sandbox/syscalls.h */
    struct sl_guard *guard; /* live/sandbox/guard.h: kills in time while we stand still; NULL: nobody does */
    const struct sl_vars *vars; /* the caller's */
};

struct sl_sandbox {
    const struct sl_sandbox_spec *spec;
    struct sl_server *server;
    int pid, pid_fd; /* 0, -1: no process */
    int watch_fd;    /* -1: none */
    struct sl_output_pipe pipe;
    int exit_status; /* from waitpid, when the process has ended */
};

/* From now on SIGINT, SIGTERM and SIGHUP kill the sandboxes' processes, and all that those started, before
 * they end this one. */
void sl_sandbox_end_with_us(void);

/* A folder of temporary files below `folder` (as sl_paths_make_temp), which goes with them, too. At no moment
 * does a signal that ends us leave it. The path is the caller's, and freed by the removal; NULL is fine. */
char *sl_sandbox_make_temp(const char *folder);
void sl_sandbox_remove_temp(char *path);

/* Starts the server and the process. */
enum sl_status sl_sandbox_start(struct sl_sandbox *sandbox, const struct sl_sandbox_spec *spec,
                                struct sl_error *error) SL_MUST_USE;

/* Kills the process and everything it started, and stops the server. A zeroed sandbox is fine. */
void sl_sandbox_kill(struct sl_sandbox *sandbox);

/* The same, but the server stays, and with it the answer. */
void sl_sandbox_kill_process(struct sl_sandbox *sandbox);

/* Sends SIGTERM to the process. */
void sl_sandbox_ask_to_stop(struct sl_sandbox *sandbox);

bool sl_sandbox_is_alive(const struct sl_sandbox *sandbox);

/* The process has ended by itself: reads what it sent, then cleans up. */
void sl_sandbox_bury(struct sl_sandbox *sandbox);

/* How the process ended: "signal: Killed", "exit status 3". */
void sl_sandbox_exit_text(const struct sl_sandbox *sandbox, char *out, size_t room);

#endif
