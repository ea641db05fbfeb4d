#include "tests/support/wire.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUESTS  64
#define REQUEST_BYTES (8 * 1024 * 1024)

struct wire {
    const struct wire_step *steps;
    size_t n;
    int listener;
    char address[32];
    pthread_t thread;
    pthread_mutex_t mutex;
    struct sl_span requests[MAX_REQUESTS];
    size_t n_requests, n_connections;
};

static size_t body_length(const char *head, size_t n)
{
    for (size_t i = 0; i + 16 < n; i++)
        if (strncasecmp(head + i, "\ncontent-length:", 16) == 0)
            return strtoul(head + i + 16, NULL, 10);
    return 0;
}

/* Reads one request; false when the connection ended instead. */
static bool read_request(int fd, bool head_only, char *bytes, size_t *n)
{
    size_t whole = SIZE_MAX;
    *n = 0;
    while (*n < whole && *n < REQUEST_BYTES - 1) {
        ssize_t got = recv(fd, bytes + *n, whole == SIZE_MAX ? 1 : whole - *n, 0);
        if (got <= 0)
            return false;
        *n += (size_t)got;
        if (whole == SIZE_MAX && *n >= 4 && memcmp(bytes + *n - 4, "\r\n\r\n", 4) == 0)
            whole = head_only ? *n : *n + body_length(bytes, *n);
    }
    bytes[*n] = '\0';
    return true;
}

static bool serve_one(struct wire *w, int fd, char *bytes)
{
    size_t n;
    bool has_step = w->n_requests < w->n;
    const struct wire_step *step = has_step ? &w->steps[w->n_requests] : NULL;
    if (!read_request(fd, step && step->close_early, bytes, &n))
        return false;
    char *copy = malloc(n + 1);
    memcpy(copy, bytes, n + 1);
    pthread_mutex_lock(&w->mutex);
    if (w->n_requests < MAX_REQUESTS)
        w->requests[w->n_requests++] = sl_span(copy, n);
    else
        free(copy);
    pthread_mutex_unlock(&w->mutex);
    if (!step || step->close_early)
        return false;
    size_t len = step->len ? step->len : strlen(step->reply);
    for (size_t done = 0; done < len;) {
        ssize_t sent = send(fd, step->reply + done, len - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return !step->close;
}

static void *serve(void *arg)
{
    struct wire *w = arg;
    char *bytes = malloc(REQUEST_BYTES);
    for (;;) {
        int fd = accept(w->listener, NULL, NULL);
        if (fd < 0)
            break;
        pthread_mutex_lock(&w->mutex);
        w->n_connections++;
        pthread_mutex_unlock(&w->mutex);
        while (serve_one(w, fd, bytes)) {
        }
        close(fd);
    }
    free(bytes);
    return NULL;
}

struct wire *wire_start(const struct wire_step *steps, size_t n)
{
    struct wire *w = calloc(1, sizeof(*w));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    w->steps = steps;
    w->n = n;
    w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(w->listener, (struct sockaddr *)&at, size) != 0 || listen(w->listener, 16) != 0 ||
        getsockname(w->listener, (struct sockaddr *)&at, &size) != 0)
        abort();
    snprintf(w->address, sizeof(w->address), "127.0.0.1:%d", ntohs(at.sin_port));
    pthread_mutex_init(&w->mutex, NULL);
    if (pthread_create(&w->thread, NULL, serve, w) != 0)
        abort();
    return w;
}

void wire_stop(struct wire *w)
{
    shutdown(w->listener, SHUT_RDWR);
    pthread_join(w->thread, NULL);
    close(w->listener);
    for (size_t i = 0; i < w->n_requests; i++)
        free((char *)w->requests[i].ptr);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

const char *wire_address(const struct wire *w)
{
    return w->address;
}

size_t wire_requests(struct wire *w)
{
    pthread_mutex_lock(&w->mutex);
    size_t n = w->n_requests;
    pthread_mutex_unlock(&w->mutex);
    return n;
}

size_t wire_connections(struct wire *w)
{
    pthread_mutex_lock(&w->mutex);
    size_t n = w->n_connections;
    pthread_mutex_unlock(&w->mutex);
    return n;
}

struct sl_span wire_request(struct wire *w, size_t i)
{
    return i < wire_requests(w) ? w->requests[i] : sl_span(NULL, 0);
}
