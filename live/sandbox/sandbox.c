/* Starts, stops and reaps the process of a function. */
#include "live/sandbox/sandbox.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/span.h"
#include "base/vars.h"
#include "live/sandbox/paths.h"
#include "live/sandbox/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_OWN_VARS 24

/* ---- environment ---- */

struct env {
    struct sl_arena *arena;
    const char *own[MAX_OWN_VARS]; /* "NAME=value" */
    size_t n;
    struct sl_vars outer;
};

static void set(struct env *e, const char *name, const char *value)
{
    if (value && e->n < MAX_OWN_VARS)
        e->own[e->n++] = sl_arena_printf(e->arena, "%s=%s", name, value);
}

static void set_unless(struct env *e, const char *name, const char *value)
{
    if (!sl_vars_get(&e->outer, name))
        set(e, name, value);
}

/* Not passed on: our server offers one event at a time, and the trace and the execution environment of this
 * process are not the function's. */
static bool is_hidden(const char *var)
{
    static const char *const names[] = {
        "AWS_LAMBDA_MAX_CONCURRENCY=", "AWS_EXECUTION_ENV=", "_X_AMZN_TRACE_ID="};
    for (size_t i = 0; i < SL_COUNT(names); i++)
        if (strncmp(var, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_own(const struct env *e, const char *var)
{
    size_t n = strcspn(var, "=") + 1;
    for (size_t i = 0; i < e->n; i++)
        if (strncmp(var, e->own[i], n) == 0)
            return true;
    return false;
}

static char **whole(struct env *e)
{
    size_t n = 0, at = 0;
    while (e->outer.list[n])
        n++;
    const char **all = sl_arena_alloc(e->arena, (n + e->n + 1) * sizeof(*all));
    for (size_t i = 0; i < n; i++)
        if (!is_hidden(e->outer.list[i]) && !is_own(e, e->outer.list[i]))
            all[at++] = e->outer.list[i];
    for (size_t i = 0; i < e->n; i++)
        all[at++] = e->own[i];
    all[at] = NULL;
    return (char **)all;
}

static int64_t now_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->wall_ns(clock) / 1000000;
}

static char **environment(const struct sl_sandbox_spec *spec, unsigned port, struct sl_arena *arena)
{
    struct env e = {.arena = arena, .outer = *spec->vars};
    const struct sl_function *identity = spec->identity;
    set(&e, "AWS_LAMBDA_RUNTIME_API", sl_arena_printf(arena, "127.0.0.1:%u", port));
    set_unless(&e, "_HANDLER", "sluice");
    set(&e, "LAMBDA_TASK_ROOT", spec->task_root);
    set(&e, "LAMBDA_RUNTIME_DIR", "/var/runtime");
    set(&e, "AWS_REGION", identity->region);
    set(&e, "AWS_DEFAULT_REGION", identity->region);
    set(&e, "AWS_LAMBDA_FUNCTION_NAME", identity->name);
    set(&e, "AWS_LAMBDA_FUNCTION_VERSION", identity->version);
    set(&e, "AWS_LAMBDA_LOG_GROUP_NAME", identity->log_group);
    set(&e, "AWS_LAMBDA_LOG_STREAM_NAME", sl_function_log_stream(identity, now_ms(), port, arena));
    set_unless(&e, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128");
    set(&e, "AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    set_unless(&e, "AWS_LAMBDA_LOG_LEVEL", "WARN");
    set(&e, "TMPDIR", spec->temp_folder);
    set(&e, "TZ", ":UTC");
    set_unless(&e, "LANG", "en_US.UTF-8");
    set(&e, "SLUICE_CONFIG", spec->config_path);
    set(&e, "SLUICE_HANDLER_PATH", spec->handler_path);
    set(&e, "SLUICE_SHUTDOWN", "0"); /* SIGTERM comes without it, and there is no Extensions API */
    set(&e, "SLUICE_REPORT_BATCH_ITEM_FAILURES", spec->report_failures ? "true" : "false");
    if (spec->outage) {
        set(&e, "SLUICE_OUTAGE", spec->outage);
        set(&e, "SLUICE_REPLAY", "1");
    }
    if (spec->report_fd >= 0)
        set(&e, "SLUICE_REPORT_FD", sl_arena_printf(arena, "%d", spec->report_fd));
    return whole(&e);
}

/* ---- live processes, for the signal handler ---- */

#define MAX_LIVE 256

static _Atomic pid_t live[MAX_LIVE]; /* sandboxes may be started from several threads */

static void note_live(pid_t old, pid_t pid)
{
    for (size_t i = 0; i < MAX_LIVE; i++) {
        pid_t expected = old;
        if (atomic_compare_exchange_strong(&live[i], &expected, pid))
            return;
    }
}

/* SIGABRT: sl_die. */
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT};

static _Atomic(const char *) temp_folder;
static _Atomic pid_t owner;

/* A signal that ends us waits, so that the folder is always somebody's. */
static void hold_signals(sigset_t *before)
{
    sigset_t ends;
    sigemptyset(&ends);
    for (size_t i = 0; i < SL_COUNT(end_signals); i++)
        sigaddset(&ends, end_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

char *sl_sandbox_make_temp(const char *folder)
{
    sigset_t before;
    hold_signals(&before);
    char *path = sl_paths_make_temp(folder);
    atomic_store(&temp_folder, path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return path;
}

void sl_sandbox_remove_temp(char *path)
{
    sigset_t before;
    hold_signals(&before);
    if (path)
        sl_paths_remove_temp(path);
    atomic_store(&temp_folder, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(path);
}

static void on_end(int number)
{
    bool is_ours = atomic_load(&owner) == getpid(); /* and not a sandbox's before it is one */
    const char *folder = is_ours ? atomic_load(&temp_folder) : NULL;
    for (size_t i = 0; is_ours && i < MAX_LIVE; i++)
        if (live[i] > 0)
            kill(-live[i], SIGKILL);
    /* What the function left there, too. Of what does that, _Fork and execve alone may be called here: fork
     * takes malloc's locks, which the interrupted code may hold. */
    pid_t remover = folder && rmdir(folder) != 0 && errno == ENOTEMPTY ? _Fork() : -1;
    if (remover == 0) {
        execle("/bin/rm", "rm", "-rf", "--", folder, (char *)NULL, (char *const[]){NULL});
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, NULL, 0);
    raise(number); /* SA_RESETHAND: the default action follows */
}

void sl_sandbox_end_with_us(void)
{
    const struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    atomic_store(&owner, getpid());
    for (size_t i = 0; i < SL_COUNT(end_signals); i++)
        sigaction(end_signals[i], &action, NULL);
}

/* ---- process ---- */

/* In the child; does not return. */
static void become(const struct sl_sandbox_spec *spec, char **env, pid_t parent, int watch, int log)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* as in Lambda: this process ignores them, and a process inherits that */
    signal(SIGXFSZ, SIG_DFL);
    if (log >= 0)
        dup2(log, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (spec->report_fd >= 0)
        fcntl(spec->report_fd, F_SETFD, 0);
    if (watch >= 0 && !sl_syscalls_install(watch)) {
        fprintf(stderr, "sluice: the kernel does not allow watching system calls, so --fault sink and "
                        "connect do not work here\n");
        _exit(127);
    }
    if (spec->command)
        execle("/bin/sh", "sh", "-c", spec->command, (char *)NULL, env);
    else
        execle(spec->bootstrap, spec->bootstrap, "sluice", (char *)NULL, env);
    fprintf(stderr, "sluice: %s cannot be started: %s\n", spec->command ? "/bin/sh" : spec->bootstrap,
            strerror(errno));
    _exit(127);
}

/* Returns 0, or why there is no process. */
static int start_process(struct sl_sandbox *sb, char **env)
{
    pid_t parent = getpid();
    int ends[2] = {-1, -1}, log = -1;
    if (sb->spec->is_watched && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    bool has_log = !sb->spec->output || sl_output_pipe_open(&sb->pipe, &log);
    sb->pid = has_log ? fork() : -1;
    int failure = sb->pid < 0 ? errno : 0;
    if (sb->pid == 0) {
        close(ends[0]);
        become(sb->spec, env, parent, ends[1], log);
    }
    close(ends[1]);
    if (log >= 0)
        close(log);
    if (sb->pid > 0) {
        setpgid(sb->pid, sb->pid);
        note_live(0, sb->pid);
        sb->pid_fd = pidfd_open(sb->pid, 0);
        failure = sb->pid_fd < 0 ? errno : 0;
        sb->watch_fd = sb->spec->is_watched ? sl_syscalls_take(ends[0], sb->pid_fd) : -1;
    }
    close(ends[0]);
    return failure;
}

enum sl_status sl_sandbox_start(struct sl_sandbox *sb, const struct sl_sandbox_spec *spec,
                                struct sl_error *error)
{
    *sb = (struct sl_sandbox){.spec = spec, .pid_fd = -1, .watch_fd = -1, .pipe = {.fd = -1}};
    enum sl_status status = sl_server_start(&sb->server, error);
    if (status != SL_OK)
        return status;
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    char **env = environment(spec, sl_server_port(sb->server), arena);
    int failure = start_process(sb, env);
    sl_arena_destroy(arena);
    if (!failure)
        return SL_OK;
    sl_sandbox_kill(sb);
    sl_output_pipe_close(&sb->pipe, spec->output);
    return sl_fail(error, SL_FATAL, "NoProcess", "a process for the function cannot be started: %s",
                   strerror(failure));
}

static void reap(struct sl_sandbox *sb)
{
    if (sb->spec->guard)
        sl_guard_forget(sb->spec->guard, sb->pid);
    while (waitpid(sb->pid, &sb->exit_status, 0) < 0 && errno == EINTR) {
    }
    if (sb->pid_fd >= 0)
        close(sb->pid_fd);
    if (sb->watch_fd >= 0)
        close(sb->watch_fd);
    note_live(sb->pid, 0);
    sl_output_pipe_close(&sb->pipe, sb->spec->output);
    sb->pid = 0;
    sb->pid_fd = sb->watch_fd = -1;
}

void sl_sandbox_kill_process(struct sl_sandbox *sb)
{
    if (sb->pid <= 0)
        return;
    kill(-sb->pid, SIGKILL);
    kill(sb->pid, SIGKILL);
    reap(sb);
}

void sl_sandbox_kill(struct sl_sandbox *sb)
{
    sl_sandbox_kill_process(sb);
    sl_server_stop(sb->server);
    sb->server = NULL;
}

void sl_sandbox_ask_to_stop(struct sl_sandbox *sb)
{
    if (sb->pid > 0)
        kill(sb->pid, SIGTERM);
}

bool sl_sandbox_is_alive(const struct sl_sandbox *sb)
{
    return sb->pid > 0;
}

void sl_sandbox_bury(struct sl_sandbox *sb)
{
    struct pollfd server = {.fd = sl_server_fd(sb->server), .events = POLLIN};
    for (int i = 0; i < 10000 && poll(&server, 1, 0) > 0; i++)
        sl_server_run(sb->server);
    kill(-sb->pid, SIGKILL); /* the processes that it started */
    reap(sb);
}

void sl_sandbox_exit_text(const struct sl_sandbox *sb, char *out, size_t room)
{
    if (WIFSIGNALED(sb->exit_status))
        snprintf(out, room, "signal: %s", strsignal(WTERMSIG(sb->exit_status)));
    else
        snprintf(out, room, "exit status %d", WEXITSTATUS(sb->exit_status));
}
