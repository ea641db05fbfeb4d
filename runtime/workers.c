/* Several processes that serve side by side, and a parent that replaces those that die. */
#include "runtime/workers.h"

#include "base/arena.h"
#include "base/log.h"
#include "runtime/serve.h"
#include "runtime/shutdown.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A worker that dies is replaced: at once, or after a pause when it is not the first within a minute. After
 * so many in a row that never became ready, all stop; and at once when one says that the Runtime API is gone.
 */
#define MAX_DEATHS 5
#define CALM_MS    60000
#define FIRST_MS   10 /* the pause; doubled with each */
#define LAST_MS    1000

struct crew {
    const struct sl_settings *settings;
    pid_t *pids;
    unsigned n;
    int deaths; /* since a worker last became ready */
    int64_t died_ms, pause_ms;
    bool is_stopping;
    int result;
    int signal_fd; /* SIGTERM, SIGCHLD */
    struct sl_log log;
    struct sl_shutdown shutdown;
};

/* The child's side does not return. */
static pid_t start_worker(struct crew *crew, bool is_first, int ready_fd)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(crew->signal_fd);
    sl_shutdown_close(&crew->shutdown);
    exit(sl_serve(crew->settings, is_first, ready_fd));
}

/* Forks worker i and waits until it is ready or gone. */
static bool bring_up(struct crew *crew, unsigned i, bool is_first)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    crew->pids[i] = start_worker(crew, is_first, ends[1]);
    close(ends[1]);
    char ready = 0;
    ssize_t n;
    while ((n = read(ends[0], &ready, 1)) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    return crew->pids[i] > 0 && n == 1;
}

static void stop_all(struct crew *crew)
{
    crew->is_stopping = true;
    for (unsigned i = 0; i < crew->n; i++)
        if (crew->pids[i] > 0)
            kill(crew->pids[i], SIGTERM);
}

static void pause_before(struct crew *crew)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t now_ms = clock->now_ms(clock);
    if (now_ms - crew->died_ms >= CALM_MS)
        crew->pause_ms = 0;
    clock->sleep_ms(clock, crew->pause_ms);
    crew->pause_ms = crew->pause_ms ? 2 * crew->pause_ms : FIRST_MS;
    crew->pause_ms = crew->pause_ms < LAST_MS ? crew->pause_ms : LAST_MS;
    crew->died_ms = now_ms;
}

static void give_up(struct crew *crew)
{
    crew->result = 1;
    stop_all(crew);
}

static void replace(struct crew *crew, unsigned i, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == SL_SERVE_NO_API) {
        fprintf(stderr, "sluice: worker %u lost the Runtime API: exiting\n", i);
        give_up(crew);
        return;
    }
    fprintf(stderr, "sluice: worker %u ended (%s %d); starting another\n", i,
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    pause_before(crew);
    crew->deaths = bring_up(crew, i, false) ? 0 : crew->deaths + 1;
    if (crew->deaths >= MAX_DEATHS) {
        fprintf(stderr, "sluice: %d workers in a row did not start: exiting\n", crew->deaths);
        give_up(crew);
    }
}

/* True while there is a worker left. */
static bool reap(struct crew *crew)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < crew->n; i++) {
            if (crew->pids[i] != pid)
                continue;
            crew->pids[i] = 0;
            if (!crew->is_stopping && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
                replace(crew, i, status);
        }
    for (unsigned i = 0; i < crew->n; i++)
        if (crew->pids[i] > 0)
            return true;
    return false;
}

static int first_result(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

static void watch_signals(struct crew *crew)
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    crew->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits for a signal, and keeps the extension waiting meanwhile. */
static void wait_for_signal(struct crew *crew)
{
    const struct sl_runtime_beside *beside = &crew->shutdown.beside;
    struct signalfd_siginfo info;
    beside->turn(beside->self);
    struct pollfd fds[] = {{.fd = crew->signal_fd, .events = POLLIN},
                           {.fd = beside->fd(beside->self), .events = POLLIN}};
    (void)poll(fds, 2, beside->wait_ms(beside->self));
    while (read(crew->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGTERM)
            stop_all(crew);
}

static int run(struct crew *crew)
{
    if (!bring_up(crew, 0, true))
        return crew->pids[0] > 0 ? first_result(crew->pids[0]) : 1;
    for (unsigned i = 1; i < crew->n; i++)
        (void)bring_up(crew, i, false);
    do
        wait_for_signal(crew);
    while (reap(crew));
    return crew->result;
}

int sl_workers_run(const struct sl_settings *settings)
{
    struct crew crew = {.settings = settings, .n = settings->workers};
    crew.pids = sl_arena_zalloc(settings->arena, crew.n * sizeof(*crew.pids));
    watch_signals(&crew);
    sl_log_init(&crew.log, STDERR_FILENO, settings->log_level, settings->log_format, sl_clock_system());
    sl_shutdown_open(&crew.shutdown, settings, &crew.log);
    int result = run(&crew);
    sl_shutdown_close(&crew.shutdown);
    sl_log_clean_up(&crew.log);
    return result;
}
