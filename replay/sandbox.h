/* One execution environment: a function's process, started as Lambda starts it, and its Runtime API.
 *
 * The process gets Lambda's environment variables beside the caller's own, a process group of its own, and
 * dies with this process. What it writes to standard output and error goes where ours goes. */
#ifndef SL_REPLAY_SANDBOX_H
#define SL_REPLAY_SANDBOX_H

#include "replay/server.h"

struct sl_sandbox_spec {
    const char *bootstrap;    /* path of an executable; NULL: `command` */
    const char *command;      /* run by /bin/sh */
    const char *task_root;    /* LAMBDA_TASK_ROOT */
    const char *config_path;  /* SLUICE_CONFIG; NULL: not set */
    const char *handler_path; /* SLUICE_HANDLER_PATH; NULL: as it is */
    const char
        *temp_folder;   /* TMPDIR: as a sandbox's /tmp, it outlives a process that dies. NULL: as it is */
    const char *region; /* unless AWS_REGION is set */
    bool report_failures;
    int report_fd;   /* SLUICE_REPORT_FD: stays open in the process; -1: none */
    bool is_watched; /* see replay/watch.h */
    char *const *environment;
};

struct sl_sandbox {
    const struct sl_sandbox_spec *spec;
    struct sl_server *server;
    int pid, pid_fd; /* 0, -1: no process */
    int watch_fd;    /* -1: none */
    int exit_status; /* as waitpid gives it, when the process is gone */
};

/* From now on SIGINT, SIGTERM and SIGHUP end the sandboxes' processes, and all those started, before they end
 * this one. */
void sl_sandbox_end_with_us(void);

/* Starts server and process. */
enum sl_status sl_sandbox_start(struct sl_sandbox *sandbox, const struct sl_sandbox_spec *spec,
                                struct sl_error *error) SL_MUST_USE;

/* SIGKILL to the process and all it started; the server stops. A zeroed sandbox is fine. */
void sl_sandbox_kill(struct sl_sandbox *sandbox);

/* The same, but the server, and with it the answer, stays. */
void sl_sandbox_kill_process(struct sl_sandbox *sandbox);

/* SIGTERM to the process; it may end in its own time. */
void sl_sandbox_ask_to_stop(struct sl_sandbox *sandbox);

bool sl_sandbox_is_alive(const struct sl_sandbox *sandbox);

/* The process ended by itself: what it sent before is taken in first. */
void sl_sandbox_bury(struct sl_sandbox *sandbox);

/* How the process ended: "signal: killed", "exit status 3". */
void sl_sandbox_exit_text(const struct sl_sandbox *sandbox, char *out, size_t room);

#endif
