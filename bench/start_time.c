/* Start to first `next` beside an empty C program, in turns, so that both meet the same machine:
 * start_time ROOT EMPTY [ROUNDS]. ROOT holds var/task as the zip has it, and nothing else is needed there;
 * EMPTY is a program that returns at once. Needs the right to chroot. One JSON line a figure. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_DEFAULT 200
#define ROUNDS_MAX     10000

static void fail(const char *what)
{
    fprintf(stderr, "start_time: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* vfork, so that the size of this process does not count. The child borrows the memory until it is another.
 */
static pid_t start(const char *root, const char *program, char *const *environment)
{
    char *const argv[] = {(char *)program, NULL};
    pid_t child = vfork();
    if (child == 0) {
        if (!root || (chroot(root) == 0 && chdir("/") == 0))
            execve(program, argv, environment);
        _exit(127);
    }
    if (child < 0)
        fail("vfork");
    return child;
}

static double time_empty(const char *program, char *const *environment)
{
    int status;
    double began = now_ms();
    pid_t child = start(NULL, program, environment);
    if (waitpid(child, &status, 0) != child || status != 0)
        fail(program);
    return now_ms() - began;
}

/* Until the whole head of the first request is here. It is a Runtime API that never has an event. */
static double time_first_next(const char *root, int listener, char *const *environment)
{
    static const char wanted[] = "GET /2018-06-01/runtime/invocation/next ";
    char head[4096] = "";
    size_t n = 0;
    double began = now_ms();
    pid_t child = start(root, "/var/task/bootstrap", environment);
    int connection = accept(listener, NULL, NULL);
    while (connection >= 0 && !strstr(head, "\r\n\r\n")) {
        ssize_t got = n + 1 < sizeof(head) ? recv(connection, head + n, sizeof(head) - 1 - n, 0) : 0;
        if (got <= 0)
            break;
        n += (size_t)got;
        head[n] = '\0';
    }
    double took = now_ms() - began;
    if (strncmp(head, wanted, sizeof(wanted) - 1) != 0) {
        errno = EPROTO;
        fail(n ? head : "/var/task/bootstrap printed nothing");
    }
    close(connection);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return took;
}

static int listen_somewhere(char *api, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct timeval patience = {.tv_sec = 10};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
        fail("listen on 127.0.0.1");
    snprintf(api, size, "AWS_LAMBDA_RUNTIME_API=127.0.0.1:%d", ntohs(address.sin_port));
    return listener;
}

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, value, unit);
}

int main(int argc, char **argv)
{
    long rounds = argc > 3 ? strtol(argv[3], NULL, 10) : ROUNDS_DEFAULT;
    if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: start_time ROOT EMPTY [ROUNDS]\n");
        return 2;
    }
    char api[64];
    int listener = listen_somewhere(api, sizeof(api));
    /* As Lambda has it, and what the shipped configuration names. */
    char *environment[] = {api,
                           "LAMBDA_TASK_ROOT=/var/task",
                           "LANG=en_US.UTF-8",
                           "TZ=:UTC",
                           "_HANDLER=bootstrap",
                           "LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/"
                           "var/task:/var/task/lib:/opt/lib",
                           "PATH=/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin",
                           "AWS_REGION=eu-central-1",
                           "AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
                           "AWS_SECRET_ACCESS_KEY=example",
                           "AWS_LAMBDA_FUNCTION_NAME=start",
                           "AWS_LAMBDA_LOG_FORMAT=JSON",
                           "SLUICE_REPORT_BATCH_ITEM_FAILURES=true",
                           "FAILURE_QUEUE=arn:aws:sqs:eu-central-1:123456789012:failures",
                           "FAILURE_BUCKET=failures",
                           "ARCHIVE_BUCKET=archive",
                           "REPLICA_TABLE=replica",
                           "REPLICA_REGION=eu-central-1",

                           "TOTALS_TABLE=totals",
                           NULL};
    double *empty = calloc((size_t)rounds * 2, sizeof(*empty)), *next = empty + rounds;
    if (!empty)
        fail("memory");
    for (long i = 0; i < rounds; i++) {
        empty[i] = time_empty(argv[2], environment);
        next[i] = time_first_next(argv[1], listener, environment);
    }
    qsort(empty, (size_t)rounds, sizeof(*empty), by_value);
    qsort(next, (size_t)rounds, sizeof(*next), by_value);
    figure("empty C process, start to end, median", empty[rounds / 2], "ms");
    figure("bootstrap from the zip, start to first next, median", next[rounds / 2], "ms");
    figure("start to first next against an empty C process", next[rounds / 2] / empty[rounds / 2], "x");
    free(empty);
    return 0;
}
