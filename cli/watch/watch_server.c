/* /metrics, /health and /ready, on libmicrohttpd. */
#include "cli/watch/watch_private.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define CONNECTIONS 16 /* scrapers, and who looks by hand */
#define TIMEOUT_S   10
#define MEMORY      (16u * 1024) /* of one connection: its request's head */
#define ARENA_BYTES (64 * 1024)
#define HOST_BYTES  256

struct sl_watch_server {
    struct sl_watch *watch;
    struct MHD_Daemon *daemon;
    bool is_per_shard;
    char name[HOST_BYTES]; /* the host in `listen` */
    unsigned port;
};

/* ---- answers ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code, const char *type,
                             struct sl_span text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text.len, (void *)(uintptr_t)text.ptr, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned code, const char *text)
{
    return reply(connection, code, "text/plain; charset=utf-8", sl_span_str(text));
}

static enum MHD_Result on_metrics(struct sl_watch_server *server, struct MHD_Connection *connection,
                                  const struct sl_vitals *v, const struct sl_watch_state *state)
{
    struct sl_buffer text;
    if (!state->has_one)
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "it has not begun to read\n");
    sl_buffer_init(&text, SL_WATCH_TEXT_BYTES);
    sl_watch_metrics(v, server->is_per_shard, &text);
    enum MHD_Result result =
        text.failed
            ? say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "the metrics are too long\n")
            : reply(connection, MHD_HTTP_OK, "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return result;
}

/* Whether the process lives. A target that is down is no reason to start it again. */
static enum MHD_Result on_health(struct MHD_Connection *connection, const struct sl_watch_state *state)
{
    if (state->has_one && !state->is_fresh)
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the engine has not moved for 30 s\n");
    return say(connection, MHD_HTTP_OK, "ok\n");
}

/* Whether it handles what it is to handle. */
static enum MHD_Result on_ready(struct MHD_Connection *connection, const struct sl_watch_state *state)
{
    const char *why = !state->has_one         ? "it has not begun to read\n"
                      : !state->is_fresh      ? "the engine has not moved for 30 s\n"
                      : state->is_ending      ? "it is about to end\n"
                      : state->has_lost_lease ? "a lease was lost in the last minute\n"
                                              : NULL;
    return say(connection, why ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, why ? why : "ok\n");
}

/* ---- requests ---- */

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* "[::1]:9464", "127.0.0.1:9464", "name": the host alone, without brackets. */
static bool read_host(const char *text, char host[HOST_BYTES])
{
    bool has_brackets = text[0] == '[';
    const char *begin = text + has_brackets;
    size_t n = strcspn(begin, has_brackets ? "]" : ":");
    const char *rest = begin + n + (has_brackets && begin[n] == ']');
    bool is_well = n > 0 && n < HOST_BYTES && (!has_brackets || begin[n] == ']') &&
                   (!*rest || (*rest == ':' && rest[1 + strspn(rest + 1, "0123456789")] == '\0'));
    snprintf(host, HOST_BYTES, "%.*s", is_well ? (int)n : 0, begin);
    return is_well;
}

bool sl_watch_server_takes_host(const char *text, const char *name)
{
    char host[HOST_BYTES];
    if (!text || !read_host(text, host))
        return false;
    return is_address(host) || strcasecmp(host, "localhost") == 0 || strcasecmp(host, name) == 0;
}

static enum MHD_Result route(struct sl_watch_server *server, struct MHD_Connection *connection,
                             const char *path)
{
    struct sl_arena *arena = sl_arena_new(ARENA_BYTES);
    struct sl_vitals v = {0};
    struct sl_watch_state state;
    enum MHD_Result result;
    sl_watch_look(server->watch, arena, &v, &state);
    if (strcmp(path, "/metrics") == 0)
        result = on_metrics(server, connection, &v, &state);
    else if (strcmp(path, "/health") == 0)
        result = on_health(connection, &state);
    else if (strcmp(path, "/ready") == 0)
        result = on_ready(connection, &state);
    else
        result = say(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /health and /ready\n");
    sl_arena_destroy(arena);
    return result;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body, size_t *body_len,
                                  void **state)
{
    struct sl_watch_server *server = arg;
    (void)version;
    (void)body;
    if (*body_len) { /* of a POST: nothing is kept of it */
        *body_len = 0;
        return MHD_YES;
    }
    if (!*state) { /* the head; the body, if any, comes next */
        *state = server;
        return MHD_YES;
    }
    if (!sl_watch_server_takes_host(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
                                    server->name))
        return say(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                   "the Host header is neither an address, nor localhost, nor the name in --listen\n");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD are all there is\n");
    return route(server, connection, path);
}

/* ---- starting ---- */

static bool read_listen(const char *listen, char name[HOST_BYTES], const char **port)
{
    const char *colon = strrchr(listen, ':');
    *port = colon ? colon + 1 : "";
    size_t digits = strspn(*port, "0123456789");
    return colon && digits >= 1 && digits <= 5 && !(*port)[digits] && strtol(*port, NULL, 10) <= 65535 &&
           read_host(listen, name);
}

static struct MHD_Daemon *start_at(struct sl_watch_server *server, const struct addrinfo *at)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
                            MHD_OPTION_END);
}

static enum sl_status open_daemon(struct sl_watch_server *server, const char *listen, const char *port,
                                  struct sl_error *error)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int err = getaddrinfo(server->name, port, &wanted, &found);
    if (err)
        return sl_fail(error, SL_REJECT, "Usage", "--listen %s: %s", listen, gai_strerror(err));
    server->daemon = start_at(server, found);
    freeaddrinfo(found);
    if (!server->daemon)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--listen %s: cannot listen there; is the port taken, or is it below 1024?", listen);
    return SL_OK;
}

enum sl_status sl_watch_server_start(struct sl_watch *watch, const struct sl_watch_options *options,
                                     struct sl_watch_server **out, struct sl_error *error)
{
    const char *port;
    struct sl_watch_server *server = calloc(1, sizeof(*server));
    if (!server)
        sl_die("out of memory: the server of metrics");
    server->watch = watch;
    server->is_per_shard = options->is_per_shard;
    enum sl_status status = SL_OK;
    if (!read_listen(options->listen, server->name, &port))
        status = sl_fail(error, SL_REJECT, "Usage", "--listen %s: write HOST:PORT, such as 127.0.0.1:9464",
                         options->listen);
    else
        status = open_daemon(server, options->listen, port, error);
    if (status != SL_OK) {
        free(server);
        return status;
    }
    server->port = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    *out = server;
    return SL_OK;
}

void sl_watch_server_stop(struct sl_watch_server *server)
{
    if (!server)
        return;
    MHD_stop_daemon(server->daemon);
    free(server);
}

unsigned sl_watch_server_port(const struct sl_watch_server *server)
{
    return server->port;
}
