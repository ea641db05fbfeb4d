/* The Runtime API, on libmicrohttpd. */
#include "live/sandbox/server.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

/* The limit of Lambda's Runtime API for events and answers. */
#define PAYLOAD_BYTES (6 * 1024 * 1024 + 100)

/* What a connection may buffer: answers are short. libmicrohttpd clears all of it for each request. */
#define CONNECTION_BYTES ((size_t)(32 * 1024))

#define PREFIX "/2018-06-01/runtime/"

struct sl_server {
    struct MHD_Daemon *daemon;
    int fd;
    unsigned port;
    enum sl_server_state state;
    struct sl_server_event event;
    char request_id[64], last_id[64]; /* of this event, and of the previous one */
    int64_t deadline_ms;
    bool is_stopping;
    struct MHD_Connection *parked;
    struct sl_buffer body;
    struct sl_server_faults faults;
};

/* A request that is being received. */
struct request {
    struct sl_buffer body;
    bool is_too_large;
};

/* ---- replies ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result accept_post(struct MHD_Connection *connection)
{
    return reply(connection, MHD_HTTP_ACCEPTED, "{\"status\":\"OK\"}\n");
}

static enum MHD_Result refuse_state(struct MHD_Connection *connection)
{
    return reply(
        connection, MHD_HTTP_FORBIDDEN,
        "{\"errorMessage\":\"State transition is not allowed\",\"errorType\":\"InvalidStateTransition\"}\n");
}

static enum MHD_Result refuse_id(struct MHD_Connection *connection)
{
    return reply(connection, MHD_HTTP_BAD_REQUEST,
                 "{\"errorMessage\":\"Invalid request ID\",\"errorType\":\"InvalidRequestID\"}\n");
}

/* ---- next ---- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (value && value[0])
        MHD_add_response_header(response, name, value);
}

static void start_clock(struct sl_server *s, char text[32])
{
    struct sl_clock *clock = sl_clock_system();
    if (s->state == SL_SERVER_OFFERED)
        s->deadline_ms = clock->now_ms(clock) + s->event.timeout_ms;
    if (s->event.until_ms && s->event.until_ms < s->deadline_ms)
        s->deadline_ms = s->event.until_ms;
    int64_t left_ms = s->deadline_ms - clock->now_ms(clock);
    snprintf(text, 32, "%lld", (long long)(clock->wall_ns(clock) / 1000000 + left_ms));
}

static enum MHD_Result serve_event(struct sl_server *s, struct MHD_Connection *connection)
{
    char deadline[32];
    start_clock(s, deadline);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        s->event.payload.len, (void *)(uintptr_t)s->event.payload.ptr, MHD_RESPMEM_PERSISTENT);
    add_header(response, "Content-Type", "application/json");
    add_header(response, "Lambda-Runtime-Aws-Request-Id", s->request_id);
    add_header(response, "Lambda-Runtime-Deadline-Ms", deadline);
    add_header(response, "Lambda-Runtime-Invoked-Function-Arn", s->event.function_arn);
    add_header(response, "Lambda-Runtime-Trace-Id", s->event.trace_id);
    s->state = SL_SERVER_RUNNING;
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_next(struct sl_server *s, struct MHD_Connection *connection)
{
    if (s->is_stopping)
        return MHD_NO;
    if (s->state == SL_SERVER_RUNNING)
        s->faults.refetched++;
    if (s->state == SL_SERVER_OFFERED || s->state == SL_SERVER_RUNNING)
        return serve_event(s, connection);
    if (s->state == SL_SERVER_STARTING)
        s->state = SL_SERVER_IDLE;
    s->parked = connection;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

/* ---- posts ---- */

static enum MHD_Result on_answer(struct sl_server *s, struct MHD_Connection *connection,
                                 struct request *request, const char *id, bool is_error)
{
    bool is_current = strcmp(id, s->request_id) == 0 && s->request_id[0];
    if (!is_current) {
        bool is_old = s->last_id[0] && strcmp(id, s->last_id) == 0;
        s->faults.second_answers += is_old;
        s->faults.wrong_ids += !is_old;
        return refuse_id(connection);
    }
    if (s->state != SL_SERVER_RUNNING) {
        s->faults.second_answers++;
        return refuse_state(connection);
    }
    struct sl_buffer body = s->body;
    s->body = request->body;
    request->body = body;
    s->state = is_error || request->is_too_large ? SL_SERVER_FAILED : SL_SERVER_ANSWERED;
    if (!request->is_too_large)
        return accept_post(connection);
    s->faults.too_large++;
    sl_buffer_reset(&s->body);
    sl_buffer_printf(
        &s->body,
        "{\"errorType\":\"Function.ResponseSizeTooLarge\",\"errorMessage\":\"Response payload size "
        "exceeded maximum allowed payload size (%d bytes).\"}",
        PAYLOAD_BYTES);
    return reply(connection, MHD_HTTP_CONTENT_TOO_LARGE,
                 "{\"errorMessage\":\"Exceeded maximum allowed payload "
                 "size\",\"errorType\":\"RequestEntityTooLarge\"}\n");
}

static enum MHD_Result on_init_error(struct sl_server *s, struct MHD_Connection *connection,
                                     struct request *request)
{
    if (s->state != SL_SERVER_STARTING && s->state != SL_SERVER_OFFERED)
        return refuse_state(connection);
    struct sl_buffer body = s->body;
    s->body = request->body;
    request->body = body;
    s->state = SL_SERVER_INIT_FAILED;
    return accept_post(connection);
}

/* "invocation/{id}/response" or ".../error". */
static enum MHD_Result on_invocation(struct sl_server *s, struct MHD_Connection *connection,
                                     struct request *request, const char *rest)
{
    char id[64];
    const char *slash = strchr(rest, '/');
    size_t n = slash ? (size_t)(slash - rest) : 0;
    bool is_error = slash && strcmp(slash, "/error") == 0;
    if (!slash || (!is_error && strcmp(slash, "/response") != 0)) {
        s->faults.unknown++;
        return reply(connection, MHD_HTTP_NOT_FOUND, "{\"errorMessage\":\"404 page not found\"}\n");
    }
    snprintf(id, sizeof(id), "%.*s", (int)(n < sizeof(id) ? n : sizeof(id) - 1), rest);
    return on_answer(s, connection, request, n < sizeof(id) ? id : "", is_error);
}

static enum MHD_Result route(struct sl_server *s, struct MHD_Connection *connection, const char *url,
                             const char *method, struct request *request)
{
    struct sl_span path = sl_span_str(url), prefix = SL_LIT(PREFIX);
    bool is_get = strcmp(method, "GET") == 0, is_post = strcmp(method, "POST") == 0;
    if (is_get && sl_span_is(path, "/ping"))
        return reply(connection, MHD_HTTP_OK, "pong");
    if (sl_span_starts(path, prefix)) {
        const char *rest = url + prefix.len;
        if (is_get && strcmp(rest, "invocation/next") == 0)
            return on_next(s, connection);
        if (is_post && strcmp(rest, "init/error") == 0)
            return on_init_error(s, connection, request);
        if (is_post && strncmp(rest, "invocation/", 11) == 0)
            return on_invocation(s, connection, request, rest + 11);
    }
    s->faults.unknown++;
    return reply(connection, MHD_HTTP_NOT_FOUND, "{\"errorMessage\":\"404 page not found\"}\n");
}

/* Called with the head, then with each piece of the body, then without a piece: then it answers. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes, size_t *n,
                                  void **state)
{
    (void)version;
    struct request *request = *state;
    if (!request) {
        request = calloc(1, sizeof(*request));
        if (!request)
            sl_die("out of memory: a request");
        sl_buffer_init(&request->body, PAYLOAD_BYTES);
        *state = request;
        return MHD_YES;
    }
    if (*n) {
        sl_buffer_add(&request->body, bytes, *n);
        request->is_too_large |= request->body.failed;
        *n = 0;
        return MHD_YES;
    }
    return route(arg, connection, url, method, request);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct sl_server *s = arg;
    struct request *request = *state;
    (void)code;
    if (s->parked == connection)
        s->parked = NULL;
    if (request)
        sl_buffer_clean_up(&request->body);
    free(request);
    *state = NULL;
}

/* ---- the daemon ---- */

enum sl_status sl_server_start(struct sl_server **out, struct sl_error *error)
{
    struct sl_server *s = calloc(1, sizeof(*s));
    if (!s)
        sl_die("out of memory: the Runtime API server");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sl_buffer_init(&s->body, PAYLOAD_BYTES);
    s->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
                                 MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_END);
    const union MHD_DaemonInfo *port = NULL, *fd = NULL;
    if (s->daemon) {
        port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
        fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    }
    if (!port || !fd) {
        sl_server_stop(s);
        return sl_fail(error, SL_FATAL, "NoServer",
                       "the local Runtime API cannot listen on a port of 127.0.0.1");
    }
    s->port = port->port;
    s->fd = fd->listen_fd;
    *out = s;
    return SL_OK;
}

void sl_server_stop(struct sl_server *s)
{
    if (!s)
        return;
    s->is_stopping = true;
    if (s->parked)
        MHD_resume_connection(s->parked); /* the daemon cannot stop while a connection is suspended */
    if (s->daemon) {
        MHD_run(s->daemon);
        MHD_stop_daemon(s->daemon);
    }
    sl_buffer_clean_up(&s->body);
    free(s);
}

unsigned sl_server_port(const struct sl_server *s)
{
    return s->port;
}

int sl_server_fd(const struct sl_server *s)
{
    return s->fd;
}

/* The daemon may have work left although its descriptor is not readable: then its timeout is 0. */
void sl_server_run(struct sl_server *s)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    do
        MHD_run(s->daemon);
    while (MHD_get_timeout(s->daemon, &left_ms) == MHD_YES && left_ms == 0);
}

enum sl_server_state sl_server_state(const struct sl_server *s)
{
    return s->state;
}

bool sl_server_is_waiting(const struct sl_server *s)
{
    return s->parked != NULL;
}

void sl_server_offer(struct sl_server *s, const struct sl_server_event *event)
{
    snprintf(s->last_id, sizeof(s->last_id), "%s", s->request_id);
    snprintf(s->request_id, sizeof(s->request_id), "%s", event->request_id);
    s->event = *event;
    s->state = SL_SERVER_OFFERED;
    if (s->parked) {
        MHD_resume_connection(s->parked);
        s->parked = NULL;
        sl_server_run(s);
    }
}

int64_t sl_server_deadline_ms(const struct sl_server *s)
{
    return s->deadline_ms;
}

struct sl_span sl_server_body(const struct sl_server *s)
{
    return sl_buffer_span(&s->body);
}

void sl_server_settle(struct sl_server *s)
{
    if (s->state != SL_SERVER_STARTING && s->state != SL_SERVER_INIT_FAILED)
        s->state = SL_SERVER_IDLE;
}

struct sl_server_faults sl_server_faults(const struct sl_server *s)
{
    return s->faults;
}
