/* Drives the sandboxes: offers events, waits for answers, applies planned faults, kills what is late. */
#include "live/sandbox/runner.h"

#include "base/array.h"
#include "base/json_write.h"
#include "base/vars.h"
#include "live/sandbox/paths.h"
#include "live/sandbox/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define INIT_MS       10000 /* Lambda's limit for the init phase */
#define STOP_MS       2000  /* Lambda's limit for the shutdown phase */
#define MAX_SANDBOXES 256
#define ERROR_BYTES   1024
#define REPORT_BYTES  (16 * 1024 * 1024) /* one line of the bootstrap's report */

/* A sandbox and the invocation in it. */
struct slot {
    struct sl_sandbox sandbox;
    bool is_taken, was_offered;
    char trace_id[SL_FUNCTION_TRACE_BYTES];
    enum sl_faults_kind fault;
    int64_t started_ms; /* the process */
    const char *outage; /* that it was started with */
    int64_t until_ms;   /* when the invocation ends at the latest; INT64_MAX: its timeout alone counts */
    bool is_over;       /* the invocation has its result: */
    enum sl_esm_outcome outcome;
    struct sl_span body;
    char error[ERROR_BYTES];
};

struct sl_runner {
    struct sl_runner_options options;
    struct sl_clock *clock;
    struct slot *slots;
    size_t n;
    uint64_t invocations, calls[2]; /* by enum sl_syscalls_kind */
    struct sl_runner_stats stats;
    struct sl_runner_route *routes;
    size_t n_routes, room_routes;
    struct sl_notes notes;
    off_t report_at;
    struct sl_buffer report;
    char *temp_folder; /* of the sandboxes in this run */
    int64_t until_ms;
    int report_errno; /* why there is no file of reports */
    int cancel_fd;    /* an eventfd: readable when the invocations are to be cancelled */
};

/* ---- reports of our bootstrap ---- */

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    char *copy = strdup(value ? value : "");
    if (!copy)
        sl_die("out of memory: a route's name");
    return copy;
}

static struct sl_runner_route *route_named(struct sl_runner *r, const json_t *report)
{
    const char *name = json_string_value(json_object_get(report, "name"));
    for (size_t i = 0; i < r->n_routes; i++)
        if (name && strcmp(r->routes[i].name, name) == 0)
            return &r->routes[i];
    SL_PUSH(r->routes, r->n_routes, r->room_routes, "routes") = (struct sl_runner_route){
        .name = text(report, "name"), .handler = text(report, "handler"), .target = text(report, "to")};
    return &r->routes[r->n_routes - 1];
}

static void add_report(struct sl_runner *r, struct sl_span line)
{
    json_t *root = json_loadb(line.ptr, line.len, JSON_ALLOW_NUL, NULL);
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(root, "routes"), i, one)
    {
        struct sl_runner_route *route = route_named(r, one);
        route->matched += number(one, "matched");
        route->applied += number(one, "applied");
        route->parked += number(one, "parked");
        route->set_aside += number(one, "setAside");
        route->failed += number(one, "failed");
        route->calls += number(one, "calls");
        route->bytes += number(one, "bytes");
    }
    sl_notes_add(&r->notes, root);
    json_decref(root);
}

/* Reads the whole lines that were written since the last time. */
static void read_reports(struct sl_runner *r)
{
    char *at;
    ssize_t n;
    while ((at = sl_buffer_reserve(&r->report, 64 * 1024)) &&
           (n = pread(r->options.sandbox.report_fd, at, 64 * 1024, r->report_at)) > 0) {
        r->report_at += n;
        r->report.len += (size_t)n;
        char *end;
        while ((end = memchr(r->report.ptr, '\n', r->report.len))) {
            size_t line = (size_t)(end - r->report.ptr) + 1;
            add_report(r, sl_span(r->report.ptr, line));
            memmove(r->report.ptr, r->report.ptr + line, r->report.len - line);
            r->report.len -= line;
        }
    }
}

/* ---- sandboxes ---- */

static void count_protocol(struct sl_runner *r, const struct sl_sandbox *sb)
{
    struct sl_server_faults f = sl_server_faults(sb->server), *sum = &r->stats.protocol;
    sum->second_answers += f.second_answers;
    sum->wrong_ids += f.wrong_ids;
    sum->refetched += f.refetched;
    sum->too_large += f.too_large;
    sum->unknown += f.unknown;
}

static void retire(struct sl_runner *r, struct slot *slot)
{
    if (slot->sandbox.server)
        count_protocol(r, &slot->sandbox);
    sl_sandbox_kill(&slot->sandbox);
}

static enum sl_status ensure_process(struct sl_runner *r, struct slot *slot, struct sl_error *error)
{
    if (sl_sandbox_is_alive(&slot->sandbox) &&
        sl_server_state(slot->sandbox.server) != SL_SERVER_INIT_FAILED &&
        slot->outage == r->options.sandbox.outage)
        return SL_OK;
    retire(r, slot);
    r->stats.starts++;
    slot->started_ms = r->clock->now_ms(r->clock);
    slot->outage = r->options.sandbox.outage;
    return sl_sandbox_start(&slot->sandbox, &r->options.sandbox, error);
}

static void end(struct slot *slot, enum sl_esm_outcome outcome, struct sl_span body)
{
    slot->is_over = true;
    slot->outcome = outcome;
    slot->body = body;
}

/* Fails the invocation with one of Lambda's own errors. */
static void fail(struct slot *slot, const char *type, const char *message)
{
    struct sl_buffer b;
    sl_buffer_init(&b, sizeof(slot->error));
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "errorType", sl_span_str(type));
    sl_json_add_member(&b, "errorMessage", sl_span_str(message));
    sl_buffer_add_char(&b, '}');
    memcpy(slot->error, b.ptr, b.len);
    end(slot, SL_ESM_FAILED, sl_span(slot->error, b.len));
    sl_buffer_clean_up(&b);
}

static void fail_exit(struct sl_runner *r, struct slot *slot)
{
    char how[128], message[256];
    sl_sandbox_exit_text(&slot->sandbox, how, sizeof(how));
    snprintf(message, sizeof(message), "Runtime exited with error: %s", how);
    r->stats.exits++;
    fail(slot, "Runtime.ExitError", message);
}

static void fail_timeout(struct sl_runner *r, struct slot *slot)
{
    char message[128];
    snprintf(message, sizeof(message), "Task timed out after %lld.%02lld seconds",
             (long long)r->options.timeout_ms / 1000, (long long)r->options.timeout_ms % 1000 / 10);
    r->stats.timeouts++;
    retire(r, slot);
    fail(slot, "Sandbox.Timedout", message);
}

/* When the invocation times out: counted from the moment at which the process fetched it. Before that, the
 * process also has the time of the init phase. */
static int64_t deadline_of(const struct sl_runner *r, const struct slot *slot)
{
    enum sl_server_state state = sl_server_state(slot->sandbox.server);
    bool is_begun = state != SL_SERVER_STARTING && state != SL_SERVER_OFFERED;
    int64_t deadline_ms = is_begun ? sl_server_deadline_ms(slot->sandbox.server)
                                   : slot->started_ms + INIT_MS + r->options.timeout_ms;
    return deadline_ms < slot->until_ms ? deadline_ms : slot->until_ms;
}

/* Checks what has happened to the invocation of a taken slot. */
static void judge(struct sl_runner *r, struct slot *slot)
{
    struct sl_sandbox *sb = &slot->sandbox;
    enum sl_server_state state = sl_server_state(sb->server);
    if (state == SL_SERVER_ANSWERED) {
        end(slot, SL_ESM_ANSWERED, sl_server_body(sb->server));
    } else if (state == SL_SERVER_FAILED || state == SL_SERVER_INIT_FAILED) {
        r->stats.init_errors += state == SL_SERVER_INIT_FAILED;
        end(slot, SL_ESM_FAILED, sl_server_body(sb->server));
    } else if (!sl_sandbox_is_alive(sb)) {
        fail_exit(r, slot);
    } else if (r->clock->now_ms(r->clock) >= deadline_of(r, slot)) {
        fail_timeout(r, slot);
    }
}

static bool call_fails(void *arg, enum sl_syscalls_kind call)
{
    struct sl_runner *r = arg;
    enum sl_faults_kind kind = call == SL_SYSCALLS_SYNC ? SL_FAULTS_SINK : SL_FAULTS_CONNECT;
    return sl_faults_fails_call(&r->options.faults, kind, ++r->calls[call]);
}

enum { SERVER, PROCESS, WATCH, OUTPUT, FDS_EACH };

static void react(struct sl_runner *r, struct slot *slot, const struct pollfd fds[FDS_EACH])
{
    struct sl_sandbox *sb = &slot->sandbox;
    if (fds[WATCH].revents & POLLIN)
        sl_syscalls_answer(sb->watch_fd, sl_server_port(sb->server), call_fails, r);
    if (fds[OUTPUT].revents)
        sl_output_pipe_read(&sb->pipe, r->options.sandbox.output);
    if (fds[SERVER].revents)
        sl_server_run(sb->server);
    if (fds[PROCESS].revents)
        sl_sandbox_bury(sb);
    if (slot->is_taken && !slot->is_over)
        judge(r, slot);
}

/* Somebody asked for it, mostly while nothing runs any more. */
static void cancel(struct sl_runner *r)
{
    uint64_t n;
    if (read(r->cancel_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
        return;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].is_taken && !r->slots[i].is_over) {
            retire(r, &r->slots[i]);
            fail(&r->slots[i], "Sandbox.Cancelled", "the invocation was broken off");
        }
}

/* Waits until something happens in a sandbox, at most until `until_ms`, and handles it. */
static void pump(struct sl_runner *r, int64_t until_ms)
{
    struct pollfd fds[MAX_SANDBOXES * FDS_EACH + 1];
    for (size_t i = 0; i < r->n; i++) {
        const struct slot *slot = &r->slots[i];
        bool alive = sl_sandbox_is_alive(&slot->sandbox);
        struct pollfd *own = fds + i * FDS_EACH;
        own[SERVER] =
            (struct pollfd){.fd = alive ? sl_server_fd(slot->sandbox.server) : -1, .events = POLLIN};
        own[PROCESS] = (struct pollfd){.fd = alive ? slot->sandbox.pid_fd : -1, .events = POLLIN};
        own[OUTPUT] = (struct pollfd){.fd = alive ? slot->sandbox.pipe.fd : -1, .events = POLLIN};
        own[WATCH] = (struct pollfd){.fd = alive ? slot->sandbox.watch_fd : -1, .events = POLLIN};
        if (alive && slot->is_taken && !slot->is_over && deadline_of(r, slot) < until_ms)
            until_ms = deadline_of(r, slot);
    }
    int64_t left = until_ms - r->clock->now_ms(r->clock);
    fds[r->n * FDS_EACH] = (struct pollfd){.fd = r->cancel_fd, .events = POLLIN};
    poll(fds, r->n * FDS_EACH + 1, left < 0 ? 0 : left > 60000 ? 60000 : (int)left);
    bool is_cancelled = fds[r->n * FDS_EACH].revents;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].sandbox.server)
            react(r, &r->slots[i], fds + i * FDS_EACH);
    if (is_cancelled)
        cancel(r);
}

/* ---- the driver ---- */

static struct slot *free_slot(struct sl_runner *r)
{
    for (size_t i = 0; i < MAX_SANDBOXES; i++)
        if (!r->slots[i].is_taken) {
            r->n = i + 1 > r->n ? i + 1 : r->n;
            return &r->slots[i];
        }
    return NULL;
}

/* Also while this process stands still the sandbox's process does not live longer. */
static void guard(const struct sl_runner *r, const struct slot *slot, int64_t until_ms)
{
    struct sl_guard *who = r->options.sandbox.guard;
    if (who && sl_sandbox_is_alive(&slot->sandbox))
        (void)sl_guard_watch(who, slot->sandbox.pid, until_ms);
}

static void offer(struct sl_runner *r, struct slot *slot, const struct sl_esm_invocation *inv)
{
    struct sl_error error = SL_NO_ERROR;
    if (ensure_process(r, slot, &error) != SL_OK) {
        fail(slot, "Runtime.InvalidEntrypoint", error.text);
        return;
    }
    sl_function_trace(inv->request_id, r->clock->wall_ns(r->clock) / 1000000, slot->trace_id);
    const struct sl_server_event event = {
        .request_id = inv->request_id,
        .function_arn = r->options.sandbox.identity->arn,
        .trace_id = slot->trace_id,
        .payload = inv->payload,
        .timeout_ms = r->options.timeout_ms,
        .until_ms = r->until_ms == INT64_MAX ? 0 : r->until_ms,
    };
    guard(r, slot, r->until_ms);
    slot->is_over = false;
    slot->was_offered = true;
    sl_server_offer(slot->sandbox.server, &event);
}

void sl_runner_begin(void *self, struct sl_esm_invocation *inv)
{
    struct sl_runner *r = self;
    struct slot *slot = free_slot(r);
    inv->tag = slot;
    if (!slot)
        return;
    slot->is_taken = true;
    slot->is_over = true;
    slot->was_offered = false;
    slot->until_ms = r->until_ms;
    slot->fault = sl_faults_draw(&r->options.faults, ++r->invocations);
    if (slot->fault == SL_FAULTS_THROTTLE) {
        end(slot, SL_ESM_THROTTLED,
            SL_LIT("{\"errorType\":\"TooManyRequestsException\",\"errorMessage\":\"Rate Exceeded.\"}"));
    } else if (slot->fault == SL_FAULTS_CRASH) {
        retire(r, slot);
        r->stats.exits++;
        fail(slot, "Runtime.ExitError", "Runtime exited with error: signal: Killed");
    } else {
        offer(r, slot, inv);
    }
}

/* The planned fault replaces the answer. What the function did stays done. */
static void spoil(struct sl_runner *r, struct slot *slot)
{
    if (slot->fault == SL_FAULTS_DIE) {
        retire(r, slot);
        r->stats.exits++;
        fail(slot, "Runtime.ExitError", "Runtime exited with error: signal: Killed");
    } else if (slot->fault == SL_FAULTS_TIMEOUT) {
        fail_timeout(r, slot);
    } else if (slot->fault == SL_FAULTS_LOST) {
        fail(slot, "ServiceException", "the answer was lost");
    }
}

/* An invocation is over when its process asks for the next event, or ends. Only then everything that it does
 * has been seen (a second answer, a late crash), and no result depends on which process is faster. A process
 * that does neither by its deadline is killed; its answer counts. */
static void await_readiness(struct sl_runner *r, struct slot *slot)
{
    const struct sl_sandbox *sb = &slot->sandbox;
    while (sl_sandbox_is_alive(sb) && !sl_server_is_waiting(sb->server)) {
        int64_t deadline_ms = sl_server_deadline_ms(sb->server);
        if (r->clock->now_ms(r->clock) >= deadline_ms) {
            r->stats.timeouts++;
            sl_sandbox_kill_process(&slot->sandbox);
        } else {
            pump(r, deadline_ms);
        }
    }
}

static bool is_json(struct sl_span body)
{
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_DECODE_ANY, NULL);
    bool is = root != NULL || body.len == 0;
    json_decref(root);
    return is;
}

void sl_runner_collect(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct sl_runner *r = self;
    struct slot *slot = inv->tag;
    if (!slot) {
        *out = (struct sl_esm_result){.outcome = SL_ESM_THROTTLED,
                                      .body = SL_LIT("{\"errorType\":\"TooManyRequestsException\"}")};
        return;
    }
    while (!slot->is_over)
        pump(r, INT64_MAX);
    if (slot->was_offered && slot->sandbox.server &&
        sl_server_state(slot->sandbox.server) != SL_SERVER_INIT_FAILED)
        await_readiness(r, slot);
    sl_output_pipe_read(&slot->sandbox.pipe, r->options.sandbox.output);
    read_reports(r);
    spoil(r, slot);
    if (slot->outcome == SL_ESM_ANSWERED)
        r->stats.not_json += !is_json(slot->body);
    *out = (struct sl_esm_result){.outcome = slot->outcome, .body = slot->body};
    if (slot->sandbox.server)
        sl_server_settle(slot->sandbox.server);
    guard(r, slot, INT64_MAX);
    slot->is_taken = false;
}

/* ---- beginning and end ---- */

/* All processes write to it, several at once. They share its position, which the kernel does not lock for a
 * memfd: without O_APPEND one line would go over another. -1: there is none. */
static int open_report(void)
{
    int fd = memfd_create("sluice-report", MFD_CLOEXEC);
    if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) != 0)
        sl_die("the file of the function's reports cannot be set up: %s", strerror(errno));
    return fd;
}

struct sl_runner *sl_runner_new(const struct sl_runner_options *options)
{
    struct sl_runner *r = calloc(1, sizeof(*r));
    struct slot *slots = calloc(MAX_SANDBOXES, sizeof(*slots));
    if (!r || !slots)
        sl_die("out of memory: the sandboxes");
    *r = (struct sl_runner){.options = *options, .clock = sl_clock_system(), .slots = slots};
    for (size_t i = 0; i < MAX_SANDBOXES; i++)
        slots[i].sandbox.pid_fd = slots[i].sandbox.watch_fd = slots[i].sandbox.pipe.fd = -1;
    r->options.sandbox.is_watched = sl_faults_counts_calls(&options->faults);
    r->temp_folder = sl_sandbox_make_temp(sl_vars_get(options->sandbox.vars, "TMPDIR"));
    r->options.sandbox.temp_folder = r->temp_folder;
    r->options.sandbox.report_fd = open_report();
    r->report_errno = errno;
    r->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->until_ms = INT64_MAX;
    sl_buffer_init(&r->report, REPORT_BYTES);
    return r;
}

void sl_runner_set_until(struct sl_runner *r, int64_t until_ms)
{
    r->until_ms = until_ms;
}

void sl_runner_set_outage(struct sl_runner *r, const char *routes)
{
    r->options.sandbox.outage = routes;
}

void sl_runner_cancel(struct sl_runner *r)
{
    (void)!write(r->cancel_fd, &(uint64_t){1}, sizeof(uint64_t));
}

/* Lambda would kill the processes. Here the handlers may close what they opened. */
static void ask_to_stop(struct sl_runner *r)
{
    int64_t until_ms = r->clock->now_ms(r->clock) + STOP_MS;
    for (size_t i = 0; i < r->n; i++)
        if (sl_sandbox_is_alive(&r->slots[i].sandbox) && !r->slots[i].is_taken)
            sl_sandbox_ask_to_stop(&r->slots[i].sandbox);
    for (size_t i = 0; i < r->n; i++)
        while (sl_sandbox_is_alive(&r->slots[i].sandbox) && !r->slots[i].is_taken &&
               r->clock->now_ms(r->clock) < until_ms)
            pump(r, until_ms);
}

void sl_runner_destroy(struct sl_runner *r)
{
    if (!r)
        return;
    ask_to_stop(r);
    for (size_t i = 0; i < r->n; i++)
        retire(r, &r->slots[i]);
    for (size_t i = 0; i < r->n_routes; i++) {
        free(r->routes[i].name);
        free(r->routes[i].handler);
        free(r->routes[i].target);
    }
    if (r->options.sandbox.report_fd >= 0)
        close(r->options.sandbox.report_fd);
    if (r->cancel_fd >= 0)
        close(r->cancel_fd);
    sl_sandbox_remove_temp(r->temp_folder);
    sl_buffer_clean_up(&r->report);
    sl_notes_clean_up(&r->notes);
    free(r->routes);
    free(r->slots);
    free(r);
}

static enum sl_status init_failed(const struct slot *slot, struct sl_error *error)
{
    struct sl_span body = sl_server_body(slot->sandbox.server);
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, 0, NULL);
    const char *message = json_string_value(json_object_get(root, "errorMessage"));
    sl_fail(error, SL_REJECT, "InitError", "%s",
            message ? message : "the function posted an init error without a message");
    json_decref(root);
    return SL_REJECT;
}

enum sl_status sl_runner_warm_up(struct sl_runner *r, struct sl_error *error)
{
    if (r->options.sandbox.report_fd < 0)
        return sl_fail(error, SL_FATAL, "NoReport",
                       "a file in memory for what the function reports cannot be created: %s",
                       strerror(r->report_errno));
    struct slot *slot = free_slot(r);
    enum sl_status status = ensure_process(r, slot, error);
    if (status != SL_OK)
        return status;
    int64_t until_ms = slot->started_ms + INIT_MS;
    while (sl_server_state(slot->sandbox.server) == SL_SERVER_STARTING) {
        if (!sl_sandbox_is_alive(&slot->sandbox)) {
            char how[128];
            sl_sandbox_exit_text(&slot->sandbox, how, sizeof(how));
            return sl_fail(error, SL_REJECT, "ExitError",
                           "the function ended before it asked for an event: %s", how);
        }
        if (r->clock->now_ms(r->clock) >= until_ms)
            return sl_fail(error, SL_REJECT, "InitTimeout",
                           "the function did not ask for an event within %d s", INIT_MS / 1000);
        pump(r, until_ms);
    }
    sl_output_pipe_read(&slot->sandbox.pipe, r->options.sandbox.output);
    if (sl_server_state(slot->sandbox.server) == SL_SERVER_INIT_FAILED)
        return init_failed(slot, error);
    return SL_OK;
}

struct sl_notes *sl_runner_notes(struct sl_runner *r)
{
    return &r->notes;
}

struct sl_runner_stats sl_runner_stats(struct sl_runner *r)
{
    struct sl_runner_stats stats = r->stats;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].sandbox.server) {
            count_protocol(r, &r->slots[i].sandbox);
        }
    struct sl_runner_stats whole = r->stats;
    r->stats = stats;
    return whole;
}

size_t sl_runner_routes(const struct sl_runner *r)
{
    return r->n_routes;
}

const struct sl_runner_route *sl_runner_route(const struct sl_runner *r, size_t i)
{
    return &r->routes[i];
}
