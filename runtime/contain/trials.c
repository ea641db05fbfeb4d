/* Trials in processes of their own: the child that runs one, the keeper that forks children, and the process
 * that asks. */
#include "runtime/contain/trials.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/span.h"
#include "handlers/pipeline/route.h"
#include "runtime/api/client.h"
#include "runtime/contain/owned.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA_BYTES      (256 * 1024)
#define REQUEST_ID_BYTES 128
#define TRACE_ID_BYTES   1024
#define KEEPER_MS        1000 /* what the keeper itself may take, besides the time it waits */

/* What all processes see: what is too large for a socket, and the word of a child that dies, or whose socket
 * was closed by its handler. */
struct shared {
    struct sl_log log; /* the child's: what was running when it ended */
    volatile sig_atomic_t is_in_handler;
    volatile sig_atomic_t is_from_outside; /* the signal that killed the child */
    volatile sig_atomic_t is_done;         /* `trial` is the result of the last order */
    struct sl_trial trial;
    bool is_lines; /* of the payload: a piece of a backfill */
    size_t payload_bytes;
    char payload[SL_RUNTIME_PAYLOAD_BYTES];
};

struct order {
    struct sl_trial_order order;
    uint64_t batch; /* its number: when it changes, the payload is decoded anew */
    bool is_fresh;  /* to be run by a child that has run nothing else */
    char request_id[REQUEST_ID_BYTES];
    char trace_id[TRACE_ID_BYTES]; /* "": none, or too long to be passed on */
};

struct sl_trials {
    struct shared *shared;
    int fd; /* to the keeper */
    pid_t keeper;
    const struct sl_batch *batch;
    bool is_shared; /* the batch's payload lies in `shared` */
    struct order next;
};

static struct shared *map_shared(void)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

/* Forks; the child dies with its parent. */
static pid_t fork_bound(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    return 0;
}

/* ---- orders, and waiting for them ----
 *
 * A handler may have timers or a profiler of its own: a signal that ends a wait means nothing. */

static bool receive(int fd, struct order *order)
{
    ssize_t n;
    do
        n = recv(fd, order, sizeof(*order), 0);
    while (n < 0 && errno == EINTR);
    return n == sizeof(*order);
}

/* Of the order's time. */
static int left_ms(const struct order *order)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t ms = order->order.kill_ms - clock->now_ms(clock);
    return ms < 0 ? 0 : (int)ms; /* an invocation lasts for hours at most */
}

/* Can one of them be read before the order's time is over, and `more_ms`? */
static bool await_one(struct pollfd *fds, nfds_t n, const struct order *order, int more_ms)
{
    int ready;
    do
        ready = poll(fds, n, left_ms(order) + more_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/* ---- the child: one pipeline, one record at a time ---- */

struct child {
    struct shared *shared;
    struct sl_log *log;
    struct sl_sinks sinks;
    struct sl_pipeline *pipeline;
    struct sl_arena *arena;
    struct sl_batch batch;
    uint64_t batch_number; /* of `batch`; 0: none */
    struct sl_error error; /* why there is no pipeline, or no batch */
};

static struct shared *dying; /* for the signal handler */

static void on_death(int number, siginfo_t *info, void *context)
{
    (void)context;
    dying->is_from_outside = info->si_code <= 0 && info->si_pid != getpid();
    raise(number); /* SA_RESETHAND: the default action follows */
}

static void watch_signals(struct shared *shared)
{
    static char stack[16 * 1024];
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
    for (size_t i = 0; i < SL_COUNT(numbers); i++) {
        struct sigaction action = {.sa_flags = (int)(SA_RESETHAND | SA_ONSTACK | SA_SIGINFO)};
        action.sa_sigaction = on_death;
        sigaction(numbers[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* as in the process that serves */
    signal(SIGXFSZ, SIG_IGN);
    dying = shared;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void open_pipeline(struct child *c, const struct sl_pipeline_options *like)
{
    struct sl_pipeline_options options = *like;
    options.log = c->log;
    options.sinks = &c->sinks;
    options.watch = NULL;
    sl_sinks_init(&c->sinks, options.clock, c->log, options.vars);
    if (sl_pipeline_open(&options, &c->pipeline, &c->error) != SL_OK)
        sl_error_context(&c->error, "in a process of its own");
    sl_route_watch_exit(NULL); /* its end says it */
}

static bool take_batch(struct child *c, uint64_t number)
{
    const struct sl_decode_options options = {.ttl_attribute = sl_pipeline_ttl_attribute(c->pipeline),
                                              .any_shape = c->shared->is_lines};
    struct sl_span payload = sl_span(c->shared->payload, c->shared->payload_bytes);
    if (c->batch_number == number)
        return true;
    sl_arena_reset(c->arena);
    c->batch_number = 0;
    sl_error_clear(&c->error);
    if (sl_batch_decode(payload, c->arena, &options, &c->batch, &c->error) != SL_OK)
        return false;
    c->batch_number = number;
    return true;
}

static void run_order(struct child *c, const struct order *order, struct sl_trial *out)
{
    *out = (struct sl_trial){.end = SL_TRIAL_RETURNED, .status = SL_FATAL};
    if (!c->pipeline || !take_batch(c, order->batch)) {
        out->error = c->error;
        return;
    }
    snprintf(c->log->request_id, sizeof(c->log->request_id), "%s", order->request_id);
    sl_runtime_export_trace_id(order->trace_id);
    sl_sinks_trace(&c->sinks, order->trace_id);
    struct sl_arena *arena = sl_arena_new(ARENA_BYTES);
    c->shared->is_in_handler = 1;
    *out = sl_trial_run(c->pipeline, &c->batch, &order->order, order->request_id, arena);
    c->shared->is_in_handler = 0;
    sl_arena_destroy(arena);
}

/* Does not return. */
static void be_child(const struct sl_pipeline_options *pipeline, struct shared *shared, int fd)
{
    const struct sl_log *log = pipeline->log;
    struct child c = {.shared = shared, .log = &shared->log, .arena = sl_arena_new(ARENA_BYTES)};
    struct order order;
    struct sl_trial trial;
    prctl(PR_SET_NAME, "sluice-trial");
    shared->is_in_handler = shared->is_from_outside = 0;
    watch_signals(shared);
    sl_log_init(c.log, log->fd, log->level, log->format, log->clock);
    c.log->no_metrics = log->no_metrics;
    open_pipeline(&c, pipeline);
    const struct sl_owned owned[] = {sl_owned_note(fd), sl_owned_note(log->fd)};
    while (receive(fd, &order)) {
        run_order(&c, &order, &trial);
        if (!sl_owned_is_whole(&owned[0]) || !sl_owned_is_whole(&owned[1]))
            trial = (struct sl_trial){.end = SL_TRIAL_CLOSED, .status = SL_FATAL};
        shared->trial = trial;
        shared->is_done = 1;
        if (trial.status == SL_FATAL || send(fd, "", 1, MSG_NOSIGNAL) != 1)
            break; /* the next order gets a new child */
    }
    _exit(0); /* without closing the handlers: only the serving process does that */
}

/* ---- the keeper: forks children, and reports how they ended ---- */

struct keeper {
    const struct sl_pipeline_options *pipeline;
    struct shared *shared;
    int up, down; /* sockets: to the process that asks; to the child, -1 for none */
    pid_t child;
};

static void end_child(struct keeper *k, int *wait_status)
{
    *wait_status = 0;
    if (k->down < 0)
        return;
    kill(k->child, SIGKILL); /* a child that is already dying keeps its own status */
    while (waitpid(k->child, wait_status, 0) < 0 && errno == EINTR) {
    }
    close(k->down);
    k->down = -1;
}

static bool begin_child(struct keeper *k)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    k->child = fork_bound();
    if (k->child == 0) {
        close(ends[0]);
        close(k->up);
        be_child(k->pipeline, k->shared, ends[1]);
    }
    close(ends[1]);
    k->down = ends[0];
    if (k->child > 0)
        return true;
    close(k->down);
    k->down = -1;
    return false;
}

/* What the end of a child means that reported no result. */
static void judge(const struct keeper *k, int wait_status, struct sl_trial *out)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    *out = (struct sl_trial){.end = SL_TRIAL_EXITED, .number = WEXITSTATUS(wait_status)};
    out->place = !k->shared->is_in_handler   ? SL_TRIAL_IN_OPEN
                 : k->shared->log.is_in_port ? SL_TRIAL_IN_PORT
                                             : SL_TRIAL_IN_HANDLER;
    if (!WIFSIGNALED(wait_status))
        return;
    out->end = SL_TRIAL_KILLED;
    out->number = WTERMSIG(wait_status);
    for (size_t i = 0; i < SL_COUNT(crashes); i++)
        if (crashes[i] == out->number && !k->shared->is_from_outside)
            out->end = SL_TRIAL_CRASHED;
}

/* Waits until the child has done the order or is gone (true), or its time is over (false). A handler may
 * close the socket and still return. */
static bool await(struct keeper *k, const struct order *order)
{
    struct pollfd fds[] = {{.fd = k->down, .events = POLLIN},
                           {.fd = pidfd_open(k->child, 0), .events = POLLIN}};
    char byte;
    bool is_over = false;
    while (!is_over && await_one(fds, 2, order, 0)) {
        bool has_word = fds[0].revents && recv(k->down, &byte, 1, MSG_DONTWAIT) == 1;
        is_over = has_word || fds[1].revents || fds[1].fd < 0;
        if (fds[0].revents && !has_word)
            fds[0].fd = -1;
    }
    if (fds[1].fd >= 0)
        close(fds[1].fd);
    return is_over;
}

static void keep(struct keeper *k, const struct order *order, struct sl_trial *out)
{
    int wait_status;
    *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    if (order->is_fresh)
        end_child(k, &wait_status);
    if (k->down < 0 && !begin_child(k))
        return;
    k->shared->is_done = 0;
    bool is_over = send(k->down, order, sizeof(*order), MSG_NOSIGNAL) != sizeof(*order) || await(k, order);
    if (k->shared->is_done) {
        *out = k->shared->trial;
        return;
    }
    end_child(k, &wait_status);
    judge(k, wait_status, out);
    if (!is_over)
        out->end = SL_TRIAL_TIMED_OUT;
}

/* Does not return. */
static void be_keeper(struct keeper *k)
{
    struct order order;
    struct sl_trial trial;
    prctl(PR_SET_NAME, "sluice-keeper");
    while (receive(k->up, &order)) {
        keep(k, &order, &trial);
        if (send(k->up, &trial, sizeof(trial), MSG_NOSIGNAL) != sizeof(trial))
            break;
    }
    _exit(0);
}

/* ---- the process that asks ---- */

struct sl_trials *sl_trials_open(const struct sl_pipeline_options *pipeline)
{
    int ends[2];
    struct sl_trials *t = calloc(1, sizeof(*t));
    if (!t)
        sl_die("out of memory: %zu bytes", sizeof(*t));
    t->shared = map_shared();
    if (!t->shared || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        t->fd = -1;
        sl_trials_close(t);
        return NULL;
    }
    t->fd = ends[0];
    t->keeper = fork_bound();
    if (t->keeper == 0) {
        struct keeper k = {pipeline, t->shared, ends[1], -1, 0};
        close(ends[0]);
        be_keeper(&k);
    }
    close(ends[1]);
    if (t->keeper > 0)
        return t;
    sl_trials_close(t);
    return NULL;
}

int sl_trials_fd(const struct sl_trials *t)
{
    return t->fd;
}

void sl_trials_close(struct sl_trials *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    if (t->keeper > 0) {
        kill(t->keeper, SIGKILL);
        while (waitpid(t->keeper, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (t->shared)
        munmap(t->shared, sizeof(*t->shared));
    free(t);
}

void sl_trials_begin(struct sl_trials *t, const struct sl_batch *batch, const char *request_id,
                     const char *trace_id)
{
    t->batch = batch;
    t->is_shared = false;
    t->next.batch++;
    snprintf(t->next.request_id, sizeof(t->next.request_id), "%s", request_id);
    bool fits = strlen(trace_id) < sizeof(t->next.trace_id);
    snprintf(t->next.trace_id, sizeof(t->next.trace_id), "%s", fits ? trace_id : "");
}

static void ask(struct sl_trials *t, const struct sl_trial_order *order, bool is_fresh, struct sl_trial *out)
{
    t->next.order = *order;
    t->next.is_fresh = is_fresh;
    *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    struct pollfd ready = {.fd = t->fd, .events = POLLIN};
    if (send(t->fd, &t->next, sizeof(t->next), MSG_NOSIGNAL) != sizeof(t->next) ||
        !await_one(&ready, 1, &t->next, KEEPER_MS) ||
        recv(t->fd, out, sizeof(*out), MSG_DONTWAIT) != sizeof(*out))
        *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
}

static bool is_bad_end(const struct sl_trial *trial)
{
    return trial->end != SL_TRIAL_RETURNED && trial->end != SL_TRIAL_TIMED_OUT &&
           trial->end != SL_TRIAL_UNABLE;
}

void sl_trials_run(struct sl_trials *t, const struct sl_trial_order *order, struct sl_trial *out)
{
    struct sl_span payload = t->batch->payload;
    *out = (struct sl_trial){.end = SL_TRIAL_UNABLE};
    if (payload.len > sizeof(t->shared->payload))
        return;
    if (!t->is_shared) {
        memcpy(t->shared->payload, payload.ptr, payload.len);
        t->shared->payload_bytes = payload.len;
        t->shared->is_lines = t->batch->shape == SL_SHAPE_LINES;
        t->is_shared = true;
    }
    ask(t, order, false, out);
    /* What the child ran before may be to blame. So "alone" means in a new child, and "twice" in two of them.
     * A time-out has taken its time already. */
    for (int i = 0; i < 2 && is_bad_end(out); i++)
        ask(t, order, true, out);
}
