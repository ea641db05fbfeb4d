/* The Extensions API: one registration, and one question that waits for ever. Plain sockets: of an answer
 * nothing matters but its status and, once, a header. */
#include "runtime/api/extension.h"

#include "base/span.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME          "sluice"
#define NAME_BYTES    256
#define ANSWER_BYTES  4096
#define REQUEST_BYTES 1024
#define REGISTER_MS   3000
#define FIRST_MS      100 /* the pause before a question is asked again; doubled with each failure in a row */
#define LAST_MS       5000
#define IDLE_MS       60000
#define STEADY_MS     60000 /* a question that waited so long was no failure */

struct sl_extension {
    struct sl_clock *clock;
    char host[NAME_BYTES], port[16], path[NAME_BYTES]; /* `path`: before the API's own */
    char id[NAME_BYTES];
    int fd;
    dev_t device; /* of the socket: a plugin may close it, and its number becomes another file's */
    ino_t inode;
    int64_t asked_ms;
    int64_t due_ms; /* when to ask again */
    int failures;   /* in a row */
};

/* ---- the address ---- */

static bool copy(char *out, size_t room, struct sl_span text)
{
    int n = snprintf(out, room, "%.*s", SL_ARG(text));
    return (size_t)n < room;
}

/* "host:port", "http://host:port/path", "[::1]:port". */
static bool read_endpoint(struct sl_extension *e, const char *endpoint)
{
    const char *scheme = strstr(endpoint, "://");
    const char *at = scheme ? scheme + 3 : endpoint;
    const char *end = at + strcspn(at, "/");
    const char *colon = memrchr(at, ':', (size_t)(end - at));
    struct sl_span host = sl_span(at, (size_t)((colon ? colon : end) - at)), path = sl_span_str(end);
    if (host.len > 2 && host.ptr[0] == '[')
        host = sl_span(host.ptr + 1, host.len - 2);
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    struct sl_span port = colon ? sl_span(colon + 1, (size_t)(end - colon - 1)) : SL_LIT("80");
    return copy(e->host, sizeof(e->host), host) && copy(e->port, sizeof(e->port), port) &&
           copy(e->path, sizeof(e->path), path);
}

/* ---- one connection ---- */

static int connect_to(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = REGISTER_MS / 1000};
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect(), too */
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial(const struct sl_extension *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int fd = -1;
    if (getaddrinfo(e->host, e->port, &hints, &list) != 0)
        return -1;
    for (const struct addrinfo *one = list; one && fd < 0; one = one->ai_next)
        fd = connect_to(one);
    freeaddrinfo(list);
    return fd;
}

static bool send_all(int fd, const char *text, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        text += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* The connection with the request on it; -1 when it cannot be made. */
static int ask(const struct sl_extension *e, const char *first_line, const char *rest)
{
    char request[REQUEST_BYTES];
    const char *space = strchr(first_line, ' ');
    int n = snprintf(request, sizeof(request), "%.*s %s/2020-01-01/extension%s HTTP/1.1\r\nHost: %s:%s\r\n%s",
                     (int)(space - first_line), first_line, e->path, space + 1, e->host, e->port, rest);
    assert(n > 0 && (size_t)n < sizeof(request)); /* each part is shorter than 256 bytes */
    int fd = dial(e);
    if (fd < 0 || send_all(fd, request, (size_t)n))
        return fd;
    close(fd);
    return -1;
}

/* 0: this is no answer. */
static int status_of(const char *answer)
{
    const char *space = strncmp(answer, "HTTP/1.", 7) == 0 ? strchr(answer, ' ') : NULL;
    return space ? (int)strtol(space, NULL, 10) : 0;
}

/* ---- registering ---- */

static int64_t now_ms(const struct sl_extension *e)
{
    return e->clock->now_ms(e->clock);
}

/* Reads until the head is there, or longer if more comes with it. What has happened instead; NULL: nothing.
 */
static const char *read_answer(const struct sl_extension *e, int fd, char out[ANSWER_BYTES])
{
    const int64_t end_ms = now_ms(e) + REGISTER_MS;
    size_t n = 0;
    out[0] = '\0';
    while (!strstr(out, "\r\n\r\n") && n < ANSWER_BYTES - 1) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = end_ms - now_ms(e);
        if (left <= 0 || poll(&ready, 1, (int)left) != 1)
            return "did not answer the registration in time";
        ssize_t more = recv(fd, out + n, ANSWER_BYTES - 1 - n, 0);
        if (more <= 0)
            return "broke off its answer to the registration";
        n += (size_t)more;
        out[n] = '\0';
    }
    return NULL;
}

static bool take_id(struct sl_extension *e, const char *answer)
{
    static const char name[] = "\nLambda-Extension-Identifier:";
    const char *at = strcasestr(answer, name);
    if (!at)
        return false;
    at += sizeof(name) - 1;
    at += strspn(at, " \t");
    return copy(e->id, sizeof(e->id), sl_span(at, strcspn(at, "\r\n"))) && e->id[0];
}

static enum sl_status enlist(struct sl_extension *e, struct sl_error *error)
{
    static const char rest[] = "Lambda-Extension-Name: " NAME "\r\nContent-Type: application/json\r\n"
                               "Content-Length: 13\r\nConnection: close\r\n\r\n{\"events\":[]}";
    char answer[ANSWER_BYTES];
    int fd = ask(e, "POST /register", rest);
    if (fd < 0)
        return sl_fail(error, SL_FATAL, "NoExtensionsApi", "%s:%s cannot be reached", e->host, e->port);
    const char *instead = read_answer(e, fd, answer);
    close(fd);
    if (instead)
        return sl_fail(error, SL_FATAL, "NotRegistered", "the Extensions API %s", instead);
    int status = status_of(answer);
    if (status == 200 && take_id(e, answer))
        return SL_OK;
    const char *body = strstr(answer, "\r\n\r\n");
    return sl_fail(error, SL_FATAL, "NotRegistered",
                   "the Extensions API answered %d to the registration%s%.200s", status,
                   body && body[4] ? ": " : "", body ? body + 4 : "");
}

enum sl_status sl_extension_open(const char *endpoint, struct sl_clock *clock, struct sl_extension **out,
                                 struct sl_error *error)
{
    struct sl_extension *e = calloc(1, sizeof(*e));
    if (!e)
        sl_die("out of memory: %zu bytes", sizeof(*e));
    e->clock = clock;
    e->fd = -1;
    enum sl_status status = SL_OK;
    if (!read_endpoint(e, endpoint))
        status =
            sl_fail(error, SL_FATAL, "InvalidEndpoint", "the address \"%.100s\" is not host:port", endpoint);
    if (status == SL_OK)
        status = enlist(e, error);
    if (status == SL_OK)
        *out = e;
    else
        sl_extension_close(e);
    return status;
}

/* ---- the question ---- */

static bool is_ours(const struct sl_extension *e)
{
    struct stat facts;
    return e->fd >= 0 && fstat(e->fd, &facts) == 0 && facts.st_dev == e->device && facts.st_ino == e->inode;
}

static void hang_up(struct sl_extension *e)
{
    if (is_ours(e))
        close(e->fd);
    e->fd = -1;
}

/* Only the first of failures in a row is told. */
static enum sl_status fail(struct sl_extension *e, const char *why, struct sl_error *error)
{
    int64_t pause = FIRST_MS;
    hang_up(e);
    for (int i = 0; i < e->failures && pause < LAST_MS; i++)
        pause *= 2;
    e->due_ms = now_ms(e) + (pause < LAST_MS ? pause : LAST_MS);
    if (e->failures++ == 0)
        sl_fail(error, SL_RETRY, "ExtensionLost", "the extension's next %s; it is asked again until it waits",
                why);
    return SL_RETRY;
}

static enum sl_status begin(struct sl_extension *e, struct sl_error *error)
{
    char rest[REQUEST_BYTES];
    struct stat facts;
    snprintf(rest, sizeof(rest), "Lambda-Extension-Identifier: %s\r\n\r\n", e->id);
    int fd = ask(e, "GET /event/next", rest);
    if (fd >= 0 && fstat(fd, &facts) != 0) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        return fail(e, "cannot be asked: there is no connection", error);
    e->fd = fd;
    e->device = facts.st_dev;
    e->inode = facts.st_ino;
    e->asked_ms = now_ms(e);
    return SL_OK;
}

/* Nothing should come: no events were asked for. */
static enum sl_status look(struct sl_extension *e, struct sl_error *error)
{
    char answer[ANSWER_BYTES], why[64];
    if (!is_ours(e))
        return fail(e, "ended: a handler closed its connection", error);
    ssize_t n = recv(e->fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
        if (now_ms(e) - e->asked_ms >= STEADY_MS)
            e->failures = 0;
        return SL_OK;
    }
    if (n <= 0)
        return fail(e, "ended: the connection was closed", error);
    answer[n] = '\0';
    snprintf(why, sizeof(why), "was answered, with status %d", status_of(answer));
    return fail(e, why, error);
}

enum sl_status sl_extension_turn(struct sl_extension *e, struct sl_error *error)
{
    if (e->fd < 0 && now_ms(e) < e->due_ms)
        return SL_OK;
    return e->fd < 0 ? begin(e, error) : look(e, error);
}

int sl_extension_fd(const struct sl_extension *e)
{
    return e->fd;
}

int sl_extension_wait_ms(const struct sl_extension *e)
{
    int64_t left = e->due_ms - now_ms(e);
    return e->fd >= 0 ? IDLE_MS : left < 0 ? 0 : (int)left;
}

void sl_extension_close(struct sl_extension *e)
{
    if (!e)
        return;
    hang_up(e);
    free(e);
}
