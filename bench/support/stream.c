/* Answers DescribeStream, GetShardIterator and GetRecords by script. */
#include "bench/support/stream.h"

#include "base/buffer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS   1024
#define REQUEST_BYTES (32 * 1024)
#define ANSWER_BYTES  (64u * 1024 * 1024)
#define DIGITS        21 /* of a sequence number */

struct connection {
    char in[REQUEST_BYTES];
    size_t n;
    struct sl_buffer out;
    size_t sent;
};

struct server {
    const struct bench_stream_script *script;
    uint64_t *reads;
    int64_t began_us;
    struct sl_buffer page; /* a full one: its numbers are written over */
    size_t *number_at, *id_at;
    struct connection *connections[CONNECTIONS];
    int epoll;
};

int64_t bench_stream_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- records ---- */

static void add_record(const struct server *s, struct sl_buffer *b, unsigned long long number, int64_t at_us)
{
    sl_buffer_printf(
        b,
        "{\"eventID\":\"00000000000%021llu\",\"eventName\":\"INSERT\",\"eventVersion\":\"1.1\","
        "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\",\"dynamodb\":{"
        "\"ApproximateCreationDateTime\":%lld,\"Keys\":{\"PK\":{\"S\":\"customer#%llu\"},\"SK\":{\"S\":"
        "\"order#%llu\"}},\"NewImage\":{\"PK\":{\"S\":\"customer#%llu\"},\"SK\":{\"S\":\"order#%llu\"},"
        "\"status\":{\"S\":\"%s\"},\"amount\":{\"N\":\"%llu.25\"},\"t\":{\"N\":\"%lld\"},\"note\":{\"S\":\"",
        number, (long long)(at_us / 1000000), number % 977, number, number % 977, number,
        number % 3 ? "paid" : "open", number % 500, (long long)at_us);
    char *pad = sl_buffer_reserve(b, s->script->record_bytes);
    memset(pad, 'x', s->script->record_bytes);
    b->len += s->script->record_bytes;
    sl_buffer_printf(
        b,
        "\"}},\"SequenceNumber\":\"1%020llu\",\"SizeBytes\":300,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}",
        number);
}

static void make_page(struct server *s)
{
    size_t n = s->script->page_records;
    sl_buffer_init(&s->page, ANSWER_BYTES);
    s->number_at = calloc(n + 1, sizeof(size_t));
    s->id_at = calloc(n + 1, sizeof(size_t));
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(&s->page, i ? "," : "");
        s->id_at[i] = s->page.len + strlen("{\"eventID\":\"00000000000");
        add_record(s, &s->page, i, s->began_us);
        const char *tail = "\",\"SizeBytes\":300,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}";
        s->number_at[i] = s->page.len - strlen(tail) - DIGITS + 1;
    }
}

/* Records of other pages and shards are other records. */
static void number_page(struct server *s, unsigned shard, uint64_t page)
{
    for (size_t i = 0; i < s->script->page_records; i++) {
        char digits[32];
        uint64_t number = ((uint64_t)shard << 40) + page * s->script->page_records + i;
        snprintf(digits, sizeof(digits), "%020llu", (unsigned long long)number);
        memcpy(s->page.ptr + s->number_at[i], digits, 20);
        memcpy(s->page.ptr + s->id_at[i] + 1, digits, 20);
    }
}

/* ---- answers ---- */

static void answer(struct connection *c, struct sl_span body)
{
    sl_buffer_printf(
        &c->out, "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %zu\r\n\r\n",
        body.len);
    sl_buffer_add_span(&c->out, body);
}

static void describe(const struct server *s, struct connection *c)
{
    struct sl_buffer b;
    sl_buffer_init(&b, ANSWER_BYTES);
    sl_buffer_add_str(&b, "{\"StreamDescription\":{\"StreamStatus\":\"ENABLED\",\"Shards\":[");
    for (unsigned i = 0; i < s->script->shards; i++)
        sl_buffer_printf(
            &b, "%s{\"ShardId\":\"shardId-%06u\",\"SequenceNumberRange\":{\"StartingSequenceNumber\":\"1\"}}",
            i ? "," : "", i);
    sl_buffer_add_str(&b, "]}}");
    answer(c, sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
}

static void iterator(struct connection *c, const char *body)
{
    char text[96];
    const char *shard = strstr(body, "shardId-");
    unsigned number = shard ? (unsigned)strtoul(shard + 8, NULL, 10) : 0;
    snprintf(text, sizeof(text), "{\"ShardIterator\":\"i:%u:0\"}", number);
    answer(c, sl_span_str(text));
}

/* The shard's k-th record is available at this time. */
static int64_t available_us(const struct server *s, unsigned shard, uint64_t k)
{
    double nth = (double)k * s->script->shards + shard;
    return s->began_us + (int64_t)(nth / s->script->rate * 1e6);
}

static uint64_t add_timed(struct server *s, struct sl_buffer *b, unsigned shard, uint64_t at)
{
    int64_t now = bench_stream_now_us();
    uint64_t k = at;
    for (; k - at < 1000 && available_us(s, shard, k) <= now; k++) {
        sl_buffer_add_str(b, k > at ? "," : "");
        add_record(s, b, ((uint64_t)shard << 40) + k, available_us(s, shard, k));
    }
    return k;
}

static void records(struct server *s, struct connection *c, const char *body)
{
    struct sl_buffer b;
    const char *it = strstr(body, "\"i:");
    char *end = NULL;
    unsigned shard = it ? (unsigned)strtoul(it + 3, &end, 10) : 0;
    uint64_t at = end ? strtoull(end + 1, NULL, 10) : 0;
    bool is_full =
        s->script->rate <= 0 && s->script->page_records && (!s->script->pages || at < s->script->pages);
    ++*s->reads;
    sl_buffer_init(&b, ANSWER_BYTES);
    sl_buffer_add_str(&b, "{\"Records\":[");
    if (s->script->rate > 0) {
        at = add_timed(s, &b, shard, at);
    } else if (is_full) {
        number_page(s, shard, at++);
        sl_buffer_add_span(&b, sl_buffer_span(&s->page));
    }
    sl_buffer_printf(&b, "],\"NextShardIterator\":\"i:%u:%llu\"}", shard, (unsigned long long)at);
    answer(c, sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
}

/* ---- connections ---- */

static void serve(struct server *s, struct connection *c, const char *body)
{
    if (strstr(c->in, ".DescribeStream"))
        describe(s, c);
    else if (strstr(c->in, ".GetShardIterator"))
        iterator(c, body);
    else
        records(s, c, body);
}

/* A whole request is served; libcurl sends the next one after its answer. */
static void take_request(struct server *s, struct connection *c)
{
    c->in[c->n] = '\0';
    char *body = strstr(c->in, "\r\n\r\n"), *length = strcasestr(c->in, "content-length:");
    if (!body || !length)
        return;
    body += 4;
    if ((size_t)(body - c->in) + strtoul(length + 15, NULL, 10) > c->n)
        return;
    serve(s, c, body);
    c->n = 0;
}

static bool flush(struct connection *c, int fd)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(fd, c->out.ptr + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            return false;
        c->sent += (size_t)n;
    }
    sl_buffer_clean_up(&c->out);
    sl_buffer_init(&c->out, ANSWER_BYTES);
    c->sent = 0;
    return true;
}

static bool go_on(struct server *s, int fd)
{
    struct connection *c = s->connections[fd];
    ssize_t n = recv(fd, c->in + c->n, sizeof(c->in) - 1 - c->n, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return false;
    if (n > 0) {
        c->n += (size_t)n;
        take_request(s, c);
    }
    return flush(c, fd);
}

static void hang_up(struct server *s, int fd)
{
    sl_buffer_clean_up(&s->connections[fd]->out);
    free(s->connections[fd]);
    s->connections[fd] = NULL;
    close(fd);
}

static void take_connection(struct server *s, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0 || fd >= CONNECTIONS) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    s->connections[fd] = calloc(1, sizeof(struct connection));
    sl_buffer_init(&s->connections[fd]->out, ANSWER_BYTES);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void run(struct server *s, int listener)
{
    struct epoll_event events[64], first = {.events = EPOLLIN, .data.fd = listener};
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, listener, &first);
    for (;;) {
        int n = epoll_wait(s->epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                take_connection(s, listener);
            else if (s->connections[fd] && !go_on(s, fd))
                hang_up(s, fd);
        }
    }
}

void bench_stream_start(struct bench_stream *stream, const struct bench_stream_script *script)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t *reads = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 512) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0 || reads == MAP_FAILED)
        sl_die("bench: no port to listen on");
    *stream = (struct bench_stream){.reads = reads};
    snprintf(stream->url, sizeof(stream->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
    stream->pid = fork();
    if (stream->pid == 0) {
        struct server s = {.script = script, .reads = reads, .began_us = bench_stream_now_us()};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        make_page(&s);
        run(&s, listener);
    }
    close(listener);
}

void bench_stream_stop(struct bench_stream *stream)
{
    kill(stream->pid, SIGKILL);
    waitpid(stream->pid, NULL, 0);
    munmap((void *)(uintptr_t)stream->reads, 4096);
}
