#include "tests/support/scripted_server.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "tests/support/honest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUESTS      20000
#define CONNECTIONS   20000
#define REQUEST_BYTES (32u * 1024 * 1024)
#define TOGETHER_S    60 /* those who are to come together did not: no answer waits any more */

struct connection {
    struct scripted_server *server;
    int fd;
    bool is_idle, is_over;
};

struct scripted_server {
    scripted_fn answer;
    void *arg;
    int listener;
    char url[64];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stops;
    pthread_t *threads; /* the one that accepts, and those that serve */
    size_t n_threads, n_begun, n_free;
    struct scripted_request *requests;
    size_t n_requests;
    struct connection **connections;
    size_t n_connections, n_served;
    size_t n_waiting, n_waves; /* answers that wait to go together */
    bool came_alone;
    size_t reset_bytes;
    unsigned reset_times;
    struct sl_buffer honest;
};

/* ---- forks ---- */

/* A test forks while servers run, and the child has all locks as they were: of the allocator, of SQLite, of a
 * sanitizer. So each thread of a server holds this one, but for where it waits, and a fork takes it: no
 * thread is inside anything then, and none begins or ends (they do so only with their server). */
static pthread_rwlock_t work = PTHREAD_RWLOCK_INITIALIZER;
static bool is_calm;

static void before_fork(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5; /* an answer that waits for what the child does */
    is_calm = pthread_rwlock_timedwrlock(&work, &until) == 0;
}

static void after_fork(void)
{
    if (is_calm)
        pthread_rwlock_unlock(&work);
}

/* There are no other threads, and nobody holds it (an unlock knows its thread by a number that is the
 * parent's). */
static void in_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
    work = fresh;
}

static void forks_wait(void)
{
    static bool is_set;
    if (!is_set && pthread_atfork(before_fork, after_fork, in_child) != 0)
        sl_die("the scripted server cannot hold forks");
    is_set = true;
}

static void begin_to_wait(void)
{
    pthread_rwlock_unlock(&work);
}

static void end_to_wait(void)
{
    pthread_rwlock_rdlock(&work);
}

/* ---- one connection ---- */

static void set_idle(struct connection *c, bool idle)
{
    pthread_mutex_lock(&c->server->mutex);
    c->is_idle = idle;
    pthread_cond_broadcast(&c->server->changed);
    pthread_mutex_unlock(&c->server->mutex);
}

/* With a reset instead of an orderly close. */
static void reset(int fd)
{
    struct linger linger = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static size_t content_length(struct sl_span head)
{
    struct scripted_request request = {.head = head.ptr};
    struct sl_span text = scripted_header(&request, "content-length");
    return text.len ? (size_t)strtoull(text.ptr, NULL, 10) : 0;
}

/* Bytes that this request may still be read by: SIZE_MAX unless a reset is due. */
static size_t allowance(struct scripted_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t bytes = SIZE_MAX;
    if (server->reset_times) {
        server->reset_times--;
        bytes = server->reset_bytes;
    }
    pthread_mutex_unlock(&server->mutex);
    return bytes;
}

/* Reads one request into `in`; the offset of its body, 0 when the connection is over. */
static size_t read_request(struct connection *c, struct sl_buffer *in)
{
    size_t body = 0, wanted = SIZE_MAX, allowed = SIZE_MAX;
    bool begun = false;
    sl_buffer_reset(in);
    while (in->len < wanted) {
        size_t room = body ? wanted - in->len : 1; /* the head byte by byte: nothing is read ahead */
        char *end = sl_buffer_reserve(in, room + 1);
        if (begun && in->len >= allowed) {
            reset(c->fd);
            return 0;
        }
        if (allowed != SIZE_MAX && room > allowed - in->len)
            room = allowed - in->len;
        if (!begun)
            set_idle(c, true);
        begin_to_wait();
        ssize_t n = recv(c->fd, end, room, 0);
        end_to_wait();
        if (!begun) {
            set_idle(c, false);
            allowed = allowance(c->server);
            begun = true;
        }
        if (n <= 0)
            return 0;
        in->len += (size_t)n;
        in->ptr[in->len] = '\0';
        if (!body && in->len >= 4 && memcmp(in->ptr + in->len - 4, "\r\n\r\n", 4) == 0) {
            body = in->len;
            wanted = body + content_length(sl_span(in->ptr, body));
        }
    }
    return body;
}

static const struct scripted_request *keep_request(struct scripted_server *server, const struct sl_buffer *in,
                                                   size_t body)
{
    struct scripted_request *request = &server->requests[server->n_requests];
    char *text = malloc(in->len + 1);
    memcpy(text, in->ptr, in->len);
    text[in->len] = '\0';
    char *space = strchr(text, ' '), *end = strchr(space + 1, ' ');
    char *line = strstr(text, "\r\n");
    *space = *end = '\0';
    text[body - 1] = '\0'; /* the head ends before its last newline */
    *request = (struct scripted_request){
        .number = server->n_requests++,
        .method = text,
        .path = space + 1,
        .head = line + 2,
        .body = sl_span(text + body, in->len - body),
    };
    return request;
}

static void write_answer(const struct scripted_reply *reply, struct sl_buffer *out)
{
    sl_buffer_reset(out);
    sl_buffer_printf(out, "HTTP/1.1 %d Scripted\r\n%s", reply->status, reply->headers ? reply->headers : "");
    if (reply->with_crc)
        sl_buffer_printf(out, "x-amz-crc32: %lu\r\n", (unsigned long)sl_crc32(0, reply->body));
    if (reply->chunked)
        sl_buffer_add_str(out, "transfer-encoding: chunked\r\n\r\n");
    else if (reply->is_bare)
        sl_buffer_add_str(out, "\r\n");
    else
        sl_buffer_printf(out, "content-length: %lld\r\n\r\n",
                         (long long)reply->body.len + (long long)reply->more);
    for (size_t i = 0; reply->chunked && i < reply->body.len; i += 7) {
        size_t n = reply->body.len - i < 7 ? reply->body.len - i : 7;
        sl_buffer_printf(out, "%zx\r\n%.*s\r\n", n, (int)n, reply->body.ptr + i);
    }
    if (reply->chunked)
        sl_buffer_add_str(out, "0\r\n\r\n");
    else
        sl_buffer_add_span(out, reply->body);
    if (reply->flip && reply->body.len && !reply->chunked)
        out->ptr[out->len - 1 - reply->body.len / 2] ^= 4;
}

static bool send_all(int fd, const char *bytes, size_t len, unsigned byte_ms)
{
    for (size_t done = 0; done < len;) {
        size_t room = byte_ms ? 1 : len - done;
        begin_to_wait();
        ssize_t n = send(fd, bytes + done, room, MSG_NOSIGNAL);
        if (n > 0 && byte_ms)
            usleep(byte_ms * 1000);
        end_to_wait();
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The wave that the answer goes with. The mutex is held: waves are in the order of requests. */
static size_t join_wave(struct scripted_server *server, size_t together)
{
    size_t wave = server->n_waves;
    if (together && (++server->n_waiting >= together || server->came_alone)) {
        server->n_waiting = 0;
        server->n_waves++;
        pthread_cond_broadcast(&server->changed);
    }
    return wave;
}

static void wait_for_wave(struct scripted_server *server, size_t wave)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TOGETHER_S;
    begin_to_wait();
    pthread_mutex_lock(&server->mutex);
    while (server->n_waves == wave && !server->stops && !server->came_alone)
        if (pthread_cond_timedwait(&server->changed, &server->mutex, &until) == ETIMEDOUT)
            server->came_alone = true;
    pthread_mutex_unlock(&server->mutex);
    end_to_wait();
}

/* False when the connection is to end. */
static bool answer_one(struct connection *c, const struct sl_buffer *in, size_t body, struct sl_buffer *out)
{
    struct scripted_server *server = c->server;
    struct scripted_reply reply = {.status = 200};
    pthread_mutex_lock(&server->mutex);
    if (server->n_requests == REQUESTS) {
        pthread_mutex_unlock(&server->mutex);
        return false;
    }
    const struct scripted_request *request = keep_request(server, in, body);
    server->answer(server->arg, request, &reply);
    if (reply.is_honest)
        honest_answer(request, &reply, &server->honest);
    write_answer(&reply, out);
    size_t wave = join_wave(server, reply.together);
    pthread_mutex_unlock(&server->mutex);
    if (reply.together)
        wait_for_wave(server, wave);
    size_t len = reply.cut && reply.cut < out->len ? reply.cut : out->len;
    bool sent = send_all(c->fd, out->ptr, len, reply.byte_ms);
    if (reply.resets)
        reset(c->fd);
    return sent && len == out->len && !reply.closes && !reply.is_bare && !reply.resets;
}

static void serve(struct connection *c)
{
    struct sl_buffer in, out;
    sl_buffer_init(&in, REQUEST_BYTES);
    sl_buffer_init(&out, REQUEST_BYTES);
    for (;;) {
        size_t body = read_request(c, &in);
        if (!body || !answer_one(c, &in, body, &out))
            break;
    }
    sl_buffer_clean_up(&in);
    sl_buffer_clean_up(&out);
    pthread_mutex_lock(&c->server->mutex);
    close(c->fd);
    c->fd = -1;
    c->is_over = true;
    pthread_cond_broadcast(&c->server->changed);
    pthread_mutex_unlock(&c->server->mutex);
}

/* ---- threads ---- */

static void thread_begun(struct scripted_server *server)
{
    end_to_wait();
    pthread_mutex_lock(&server->mutex);
    server->n_begun++;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
}

/* Returns when it has begun. */
static void begin_thread(struct scripted_server *server, void *(*run)(void *))
{
    pthread_mutex_lock(&server->mutex);
    size_t wanted = server->n_begun + 1;
    if (pthread_create(&server->threads[server->n_threads++], NULL, run, server) != 0)
        sl_die("the scripted server cannot begin a thread");
    while (server->n_begun < wanted)
        pthread_cond_wait(&server->changed, &server->mutex);
    pthread_mutex_unlock(&server->mutex);
}

/* The next connection that nobody serves; NULL: the server stops. */
static struct connection *next_connection(struct scripted_server *server)
{
    struct connection *c = NULL;
    begin_to_wait();
    pthread_mutex_lock(&server->mutex);
    server->n_free++;
    while (!server->stops && server->n_served == server->n_connections)
        pthread_cond_wait(&server->changed, &server->mutex);
    server->n_free--;
    if (server->n_served < server->n_connections)
        c = server->connections[server->n_served++];
    pthread_mutex_unlock(&server->mutex);
    end_to_wait();
    return c;
}

static void *serve_all(void *arg)
{
    struct scripted_server *server = arg;
    thread_begun(server);
    for (struct connection *c; (c = next_connection(server));)
        serve(c);
    begin_to_wait();
    return NULL;
}

static void take_connection(struct scripted_server *server, int fd)
{
    struct connection *c = calloc(1, sizeof(*c));
    *c = (struct connection){.server = server, .fd = fd};
    pthread_mutex_lock(&server->mutex);
    server->connections[server->n_connections++] = c;
    if (server->stops)
        shutdown(fd, SHUT_RDWR);
    bool is_served = server->n_free >= server->n_connections - server->n_served;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
    if (!is_served)
        begin_thread(server, serve_all);
}

static void *accept_all(void *arg)
{
    struct scripted_server *server = arg;
    thread_begun(server);
    for (;;) {
        begin_to_wait();
        int fd = accept(server->listener, NULL, NULL);
        end_to_wait();
        if (server->stops || server->n_connections == CONNECTIONS) {
            if (fd >= 0)
                close(fd);
            begin_to_wait();
            return NULL;
        }
        if (fd >= 0)
            take_connection(server, fd);
    }
}

struct scripted_server *scripted_server_start(scripted_fn answer, void *arg)
{
    struct scripted_server *server = calloc(1, sizeof(*server));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    sl_buffer_init(&server->honest, REQUEST_BYTES);
    server->answer = answer;
    server->arg = arg;
    server->requests = calloc(REQUESTS, sizeof(*server->requests));
    server->connections = calloc(CONNECTIONS, sizeof(*server->connections));
    server->threads = calloc(CONNECTIONS + 1, sizeof(*server->threads));
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(server->listener, 64) != 0 || getsockname(server->listener, (struct sockaddr *)&at, &len) != 0)
        sl_die("the scripted server cannot listen");
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->changed, NULL);
    forks_wait();
    begin_thread(server, accept_all);
    return server;
}

void scripted_server_stop(struct scripted_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->stops = true;
    for (size_t i = 0; i < server->n_connections; i++)
        if (server->connections[i]->fd >= 0)
            shutdown(server->connections[i]->fd, SHUT_RDWR);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
    shutdown(server->listener, SHUT_RDWR);
    for (size_t i = 0; i < server->n_threads; i++)
        pthread_join(server->threads[i], NULL);
    close(server->listener);
    for (size_t i = 0; i < server->n_connections; i++)
        free(server->connections[i]);
    for (size_t i = 0; i < server->n_requests; i++)
        free((char *)(uintptr_t)server->requests[i].method);
    pthread_mutex_destroy(&server->mutex);
    pthread_cond_destroy(&server->changed);
    free(server->requests);
    free(server->connections);
    free(server->threads);
    sl_buffer_clean_up(&server->honest);
    free(server);
}

const char *scripted_server_url(const struct scripted_server *server)
{
    return server->url;
}

void scripted_server_reset_requests(struct scripted_server *server, size_t bytes, unsigned times)
{
    pthread_mutex_lock(&server->mutex);
    server->reset_bytes = bytes;
    server->reset_times = times;
    pthread_mutex_unlock(&server->mutex);
}

void scripted_server_close_idle(struct scripted_server *server)
{
    pthread_mutex_lock(&server->mutex);
    for (size_t i = 0; i < server->n_connections; i++) {
        struct connection *c = server->connections[i];
        while (!c->is_over && !c->is_idle) /* it is about to be: its answer is out already */
            pthread_cond_wait(&server->changed, &server->mutex);
        if (!c->is_over)
            shutdown(c->fd, SHUT_RDWR);
        while (!c->is_over)
            pthread_cond_wait(&server->changed, &server->mutex);
    }
    pthread_mutex_unlock(&server->mutex);
}

size_t scripted_server_requests(struct scripted_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t n = server->n_requests;
    pthread_mutex_unlock(&server->mutex);
    return n;
}

size_t scripted_server_connections(struct scripted_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t n = server->n_connections;
    pthread_mutex_unlock(&server->mutex);
    return n;
}

const struct scripted_request *scripted_server_request(struct scripted_server *server, size_t i)
{
    return &server->requests[i];
}

struct sl_span scripted_header(const struct scripted_request *request, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = request->head; line && *line;) {
        const char *end = strstr(line, "\r\n");
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            const char *value = line + n + 1;
            while (*value == ' ')
                value++;
            return sl_span(value, end ? (size_t)(end - value) : strlen(value));
        }
        line = end ? end + 2 : NULL;
    }
    return sl_span(NULL, 0);
}
