/* A keep-alive server over TLS in a process of its own, with a thread for each connection. */
#include "bench/support/keeper_tls.h"

#include "base/error.h"
#include "bench/support/keeper.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
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

#define BUFFER_BYTES (64 * 1024)

static struct keeper_tls_shared *shared;
static SSL_CTX *context;

/* Requests are small and come one after the other: what has come ends with a whole one or is read on. */
static int is_whole(const char *buffer, size_t have)
{
    const char *end = strstr(buffer, "\r\n\r\n"), *line = strcasestr(buffer, "\r\ncontent-length:");
    return end && have >= (size_t)(end - buffer) + 4 + (line ? strtoull(line + 17, NULL, 10) : 0);
}

static void answer_all(SSL *ssl, char *buffer)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\n"
                                "content-length: 2\r\n\r\n{}";
    size_t have = 0;
    for (int n; (n = SSL_read(ssl, buffer + have, (int)(BUFFER_BYTES - 1 - have))) > 0;) {
        have += (size_t)n;
        buffer[have] = '\0';
        if (!is_whole(buffer, have))
            continue;
        have = 0;
        if (SSL_write(ssl, reply, sizeof(reply) - 1) <= 0)
            return;
    }
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    SSL *ssl = SSL_new(context);
    char *buffer = malloc(BUFFER_BYTES);
    SSL_set_fd(ssl, fd);
    if (buffer && SSL_accept(ssl) == 1) {
        __atomic_add_fetch(SSL_session_reused(ssl) ? &shared->resumed : &shared->full, 1, __ATOMIC_RELAXED);
        answer_all(ssl, buffer);
    }
    free(buffer);
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static void serve_all(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
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

static void open_context(const char *folder)
{
    char ca[256], key[256];
    snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, ca) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        sl_die("the local server cannot read %s and %s", ca, key);
}

void keeper_tls_start(struct keeper_tls *keeper, const char *folder)
{
    unsigned port;
    int listener = keeper_listen(&port);
    snprintf(keeper->url, sizeof(keeper->url), "https://localhost:%u", port);
    keeper->shared = shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    keeper->pid = fork();
    if (keeper->pid == 0) {
        open_context(folder);
        serve_all(listener);
    }
    close(listener);
}

void keeper_tls_stop(struct keeper_tls *keeper)
{
    kill(keeper->pid, SIGKILL);
    waitpid(keeper->pid, NULL, 0);
    munmap(keeper->shared, sizeof(*keeper->shared));
}
