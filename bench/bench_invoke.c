/* A whole invocation, as the platform sees it: a local Runtime API hands out an event and waits for the
 * answer. bootstrap decodes it and dispatches to a route that matches nothing; beside it, where bench/echo.sh
 * could build it, aws-lambda-cpp echoes the same event without looking at it, and so does a function with our
 * runtime library. Prints the median time, the
 * ratio, and the resident memory at its highest. */
#include "bench/support/events.h"

#include "base/error.h"
#include "base/span.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 400

struct server {
    int listener, connection;
    pid_t child;
    struct sl_buffer in; /* what came and is not used yet */
};

static void check(bool ok, const char *what)
{
    if (!ok)
        sl_die("bench_invoke: %s: %s", what, strerror(errno));
}

static void more(struct server *s)
{
    char block[65536];
    ssize_t n = s->connection < 0 ? 0 : recv(s->connection, block, sizeof(block), 0);
    if (n > 0) {
        sl_buffer_add(&s->in, block, (size_t)n);
        return;
    }
    if (s->connection >= 0)
        close(s->connection);
    s->connection = accept(s->listener, NULL, NULL);
    check(s->connection >= 0, "accept");
    setsockopt(s->connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

static size_t content_length(const char *head)
{
    const char *line = strcasestr(head, "\r\ncontent-length:");
    return line ? strtoul(line + 17, NULL, 10) : 0;
}

/* Waits for one whole request; true when it is a GET. */
static bool take_request(struct server *s)
{
    for (;; more(s)) {
        if (!s->in.len)
            continue;
        char *end = memmem(s->in.ptr, s->in.len, "\r\n\r\n", 4);
        if (!end)
            continue;
        size_t head = (size_t)(end - s->in.ptr) + 4;
        *end = '\0';
        size_t whole = head + content_length(s->in.ptr);
        *end = '\r';
        while (s->in.len < whole)
            more(s);
        bool is_get = s->in.ptr[0] == 'G';
        if (!is_get && !memmem(s->in.ptr, head, "/response ", 10))
            sl_die("bench_invoke: an error was posted: %.*s", (int)(whole - head), s->in.ptr + head);
        memmove(s->in.ptr, s->in.ptr + whole, s->in.len - whole);
        s->in.len -= whole;
        return is_get;
    }
}

static void put(struct server *s, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(s->connection, bytes + done, n - done, MSG_NOSIGNAL);
        check(sent > 0, "send");
        done += (size_t)sent;
    }
}

static double round_trip(struct server *s, struct sl_span event)
{
    static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 15\r\n\r\n{\"status\":\"OK\"}";
    char head[512];
    while (!take_request(s)) {
    }
    int n = snprintf(
        head, sizeof(head),
        "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\r\n"
        "Lambda-Runtime-Deadline-Ms: %lld\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        (long long)(time(NULL) + 60) * 1000, event.len);
    double began = bench_seconds();
    put(s, head, (size_t)n);
    put(s, event.ptr, event.len);
    check(!take_request(s), "an answer");
    double took = bench_seconds() - began;
    put(s, accepted, sizeof(accepted) - 1);
    return took;
}

static void start(struct server *s, const char *program)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    *s = (struct server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .connection = -1};
    sl_buffer_init(&s->in, 64u << 20);
    check(bind(s->listener, (struct sockaddr *)&address, size) == 0 && listen(s->listener, 4) == 0, "listen");
    getsockname(s->listener, (struct sockaddr *)&address, &size);
    char api[64];
    snprintf(api, sizeof(api), "127.0.0.1:%d", ntohs(address.sin_port));
    fflush(stdout);
    s->child = fork();
    if (s->child == 0) {
        setenv("AWS_LAMBDA_RUNTIME_API", api, 1);
        setenv("SLUICE_CONFIG", "bench/support/nothing.json", 1);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
}

static double resident_mb(pid_t pid)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return (double)kb / 1024;
}

static void stop(struct server *s)
{
    kill(s->child, SIGKILL);
    waitpid(s->child, NULL, 0);
    close(s->connection);
    close(s->listener);
    sl_buffer_clean_up(&s->in);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_ms(struct server *s, struct sl_span event, size_t rounds)
{
    double took[ROUNDS_MAX];
    for (size_t i = 0; i < rounds / 4; i++)
        round_trip(s, event);
    for (size_t i = 0; i < rounds; i++)
        took[i] = round_trip(s, event);
    qsort(took, rounds, sizeof(took[0]), by_value);
    return took[rounds / 2] * 1000;
}

static void figure(const char *size, const char *what, double value, const char *unit)
{
    char name[128];
    snprintf(name, sizeof(name), "invocation of %s, %s", size, what);
    bench_figure(name, value, unit);
}

struct programs {
    char bootstrap[512], library[512], echo[512];
};

static void compare(const char *size, size_t records, size_t rounds, const struct programs *programs)
{
    struct sl_buffer event;
    struct server ours, theirs, library;
    sl_buffer_init(&event, 64u << 20);
    bench_event(&event, records, 7);
    start(&ours, programs->bootstrap);
    double mine = median_ms(&ours, sl_buffer_span(&event), rounds);
    figure(size, "bootstrap, no route matches", mine, "ms");
    figure(size, "bootstrap, resident", resident_mb(ours.child), "MB");
    stop(&ours);
    start(&library, programs->library);
    double plain = median_ms(&library, sl_buffer_span(&event), rounds);
    figure(size, "sluice-runtime, echo", plain, "ms");
    figure(size, "sluice-runtime, resident", resident_mb(library.child), "MB");
    stop(&library);
    if (access(programs->echo, X_OK) == 0) {
        start(&theirs, programs->echo);
        double other = median_ms(&theirs, sl_buffer_span(&event), rounds);
        figure(size, "aws-lambda-cpp, echo", other, "ms");
        figure(size, "aws-lambda-cpp, resident", resident_mb(theirs.child), "MB");
        figure(size, "bootstrap against the echo", mine / other, "x");
        figure(size, "sluice-runtime against aws-lambda-cpp, both echo", plain / other, "x");
        stop(&theirs);
    }
    sl_buffer_clean_up(&event);
}

int main(void)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    struct programs programs;
    snprintf(programs.bootstrap, sizeof(programs.bootstrap), "%s/bootstrap", build);
    snprintf(programs.library, sizeof(programs.library), "%s/bench/runtime_echo", build);
    snprintf(programs.echo, sizeof(programs.echo), "%s/bench/echo", build);
    compare("105 KB", 100, bench_size(400, 4), &programs);
    compare("5.3 MB", 5000, bench_size(60, 4), &programs);
    return 0;
}
