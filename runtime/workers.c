/* Several processes that serve side by side, and a parent that replaces those that die. */
#include "runtime/workers.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/serve.h"
#include "runtime/shutdown.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A worker that dies is replaced: at once, or after a pause when it is not the first within a minute. After
 * so many in a row that never became ready, all stop; and at once when one says that the Runtime API is gone.
 * What a worker says is what sl_serve returned: a handler may end the process with any status. */
#define MAX_DEATHS 5
#define CALM_MS    60000
#define FIRST_MS   10 /* the pause; doubled with each */
#define LAST_MS    1000
#define LOOK_MS    100 /* so long a SIGTERM may wait during a pause */
#define GRACE_MS   200

struct crew {
    const struct sl_settings *settings;
    pid_t *pids;
    unsigned char *said; /* shared: 1 + what worker i's sl_serve returned; 0: it did not return */
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
static pid_t start_worker(struct crew *crew, unsigned i, bool is_first, int ready_fd)
{
    pid_t parent = getpid();
    crew->said[i] = 0;
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
    int result = sl_serve(crew->settings, is_first, ready_fd);
    crew->said[i] = (unsigned char)(1 + result);
    exit(result);
}

static void stop_all(struct crew *crew)
{
    crew->is_stopping = true;
    for (unsigned i = 0; i < crew->n; i++)
        if (crew->pids[i] > 0)
            kill(crew->pids[i], SIGTERM);
}

/* Takes the signals that came. A SIGCHLD only ends a wait: reap looks for itself. */
static void take_signals(struct crew *crew)
{
    struct signalfd_siginfo info;
    while (read(crew->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGTERM)
            stop_all(crew);
}

/* Something that a handler started may hold the pipe open. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Forks worker i and waits until it is ready or gone. One that hangs while it opens its handlers does not
 * hear SIGTERM: when all are to stop, it has GRACE_MS. */
static bool bring_up(struct crew *crew, unsigned i, bool is_first)
{
    int ends[2];
    crew->pids[i] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    crew->pids[i] = start_worker(crew, i, is_first, ends[1]);
    close(ends[1]);
    char ready = 0;
    struct pollfd fds[] = {{.fd = ends[0], .events = POLLIN}, {.fd = crew->signal_fd, .events = POLLIN}};
    while (!crew->is_stopping && !fds[0].revents && crew->pids[i] > 0 && !has_ended(crew->pids[i])) {
        (void)poll(fds, 2, -1);
        take_signals(crew);
    }
    bool is_said = fds[0].revents || poll(fds, 1, crew->is_stopping ? GRACE_MS : 0) > 0;
    bool is_ready = is_said && read(ends[0], &ready, 1) == 1;
    close(ends[0]);
    if (!is_said && crew->is_stopping && crew->pids[i] > 0)
        kill(crew->pids[i], SIGKILL);
    return is_ready;
}

static void pause_before(struct crew *crew)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t now_ms = clock->now_ms(clock);
    if (now_ms - crew->died_ms >= CALM_MS)
        crew->pause_ms = 0;
    int64_t left = crew->pause_ms;
    do {
        clock->sleep_ms(clock, left < LOOK_MS ? left : LOOK_MS);
        left -= LOOK_MS;
        take_signals(crew);
    } while (left > 0 && !crew->is_stopping);
    crew->pause_ms = crew->pause_ms ? 2 * crew->pause_ms : FIRST_MS;
    crew->pause_ms = crew->pause_ms < LAST_MS ? crew->pause_ms : LAST_MS;
    crew->died_ms = now_ms;
}

static void give_up(struct crew *crew)
{
    crew->result = 1;
    stop_all(crew);
}

/* Brings it up, or says why there is no process. */
static bool try_to_bring_up(struct crew *crew, unsigned i, bool is_first)
{
    bool is_ready = bring_up(crew, i, is_first);
    if (crew->pids[i] <= 0)
        fprintf(stderr, "sluice: worker %u cannot be started: %s\n", i, strerror(errno));
    return is_ready;
}

/* Until there is a process: no signal would tell of one that could not be made. */
static void bring_up_again(struct crew *crew, unsigned i)
{
    do {
        pause_before(crew);
        if (crew->is_stopping)
            return;
        crew->deaths = try_to_bring_up(crew, i, false) ? 0 : crew->deaths + 1;
    } while (crew->pids[i] <= 0 && crew->deaths < MAX_DEATHS);
}

static void replace(struct crew *crew, unsigned i, int status)
{
    if (crew->said[i] == 1 + SL_SERVE_NO_API) {
        fprintf(stderr, "sluice: worker %u lost the Runtime API: exiting\n", i);
        give_up(crew);
        return;
    }
    fprintf(stderr, "sluice: worker %u ended (%s %d); starting another\n", i,
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    bring_up_again(crew, i);
    if (crew->deaths >= MAX_DEATHS && !crew->is_stopping) {
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
            if (!crew->is_stopping)
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
    beside->turn(beside->self);
    struct pollfd fds[] = {{.fd = crew->signal_fd, .events = POLLIN},
                           {.fd = beside->fd(beside->self), .events = POLLIN}};
    (void)poll(fds, 2, beside->wait_ms(beside->self));
    take_signals(crew);
}

static int run(struct crew *crew)
{
    if (!try_to_bring_up(crew, 0, true) && !crew->is_stopping)
        return crew->pids[0] > 0 ? first_result(crew->pids[0]) : 1;
    for (unsigned i = 1; i < crew->n && !crew->is_stopping; i++)
        if (!try_to_bring_up(crew, i, false) && crew->pids[i] <= 0)
            bring_up_again(crew, i);
    while (reap(crew)) /* also what ended while others began */
        wait_for_signal(crew);
    return crew->result;
}

int sl_workers_run(const struct sl_settings *settings)
{
    struct crew crew = {.settings = settings, .n = settings->workers};
    crew.pids = sl_arena_zalloc(settings->arena, crew.n * sizeof(*crew.pids));
    crew.said = mmap(NULL, crew.n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew.said == MAP_FAILED)
        sl_die("out of memory: what the workers say");
    watch_signals(&crew);
    if (crew.signal_fd < 0) {
        fprintf(stderr, "sluice: no worker can be started: signals cannot be watched: %s\n", strerror(errno));
        munmap(crew.said, crew.n);
        return 1;
    }
    sl_log_init(&crew.log, STDERR_FILENO, settings->log_level, settings->log_format, sl_clock_system());
    sl_shutdown_open(&crew.shutdown, settings, &crew.log);
    int result = run(&crew);
    sl_shutdown_close(&crew.shutdown);
    sl_log_clean_up(&crew.log);
    munmap(crew.said, crew.n);
    return result;
}
