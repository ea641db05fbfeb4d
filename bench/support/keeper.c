/* A keep-alive server in a process of its own: reads requests and answers each after the same delay. */
#include "bench/support/keeper.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)

static struct keeper_shared *shared;
static char reply[2 * 1024 * 1024]; /* a page of a scan is 1 MB */
static size_t reply_bytes;
static unsigned pause_us;

static size_t body_bytes(const char *head)
{
    const char *line = strcasestr(head, "\r\ncontent-length:");
    return line ? (size_t)strtoull(line + 17, NULL, 10) : 0;
}

/* Reads one request; what follows it stays in the buffer. Returns false at the end. */
static int read_one(int fd, char *buffer, size_t *have)
{
    char *end;
    buffer[*have] = '\0';
    while (!(end = strstr(buffer, "\r\n\r\n"))) {
        ssize_t n = recv(fd, buffer + *have, BUFFER_BYTES - 1 - *have, 0);
        if (n <= 0)
            return 0;
        *have += (size_t)n;
        buffer[*have] = '\0';
    }
    size_t head = (size_t)(end - buffer) + 4, left = body_bytes(buffer), here = *have - head;
    if (here >= left) {
        memmove(buffer, buffer + head + left, here - left);
        *have = here - left;
        return 1;
    }
    for (left -= here; left;) {
        ssize_t n = recv(fd, buffer, left < BUFFER_BYTES - 1 ? left : BUFFER_BYTES - 1, 0);
        if (n <= 0)
            return 0;
        left -= (size_t)n;
    }
    *have = 0;
    return 1;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *buffer = malloc(BUFFER_BYTES);
    size_t have = 0;
    while (buffer && read_one(fd, buffer, &have)) {
        __atomic_add_fetch(&shared->requests, 1, __ATOMIC_RELAXED);
        uint32_t held = __atomic_add_fetch(&shared->held, 1, __ATOMIC_RELAXED);
        if (held > __atomic_load_n(&shared->most_held, __ATOMIC_RELAXED))
            __atomic_store_n(&shared->most_held, held, __ATOMIC_RELAXED);
        if (pause_us)
            usleep(pause_us);
        __atomic_sub_fetch(&shared->held, 1, __ATOMIC_RELAXED);
        if (send(fd, reply, reply_bytes, MSG_NOSIGNAL) < 0)
            break;
    }
    free(buffer);
    close(fd);
    return NULL;
}

static void serve_all(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL), one = 1;
        pthread_t thread;
        if (fd < 0)
            _exit(0);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

int keeper_listen(unsigned *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 128) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        sl_die("the local server cannot listen");
    *port = ntohs(at.sin_port);
    return listener;
}

void keeper_start(struct keeper *keeper, const char *answer, unsigned delay_us)
{
    unsigned port;
    int listener = keeper_listen(&port);
    snprintf(keeper->url, sizeof(keeper->url), "http://127.0.0.1:%u", port);
    keeper->shared = shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reply_bytes = (size_t)snprintf(
        reply, sizeof(reply),
        "HTTP/1.1 200 OK\r\netag: \"x\"\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: "
        "%zu\r\n\r\n%s",
        strlen(answer), answer);
    pause_us = delay_us;
    fflush(NULL);
    keeper->pid = fork();
    if (keeper->pid == 0)
        serve_all(listener);
    close(listener);
}

void keeper_stop(struct keeper *keeper)
{
    kill(keeper->pid, SIGKILL);
    waitpid(keeper->pid, NULL, 0);
    munmap(keeper->shared, sizeof(*keeper->shared));
}
