/* The memory of answers: many at once, of any length and in any order, stay below the bound; none is lost,
 * and none fails because another one was long. */
#include "tests/support/test.h"

#include "net/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB       ((size_t)1024)
#define MB       (1024 * KB)
#define SMALL    (64 * KB) /* an answer up to here is not counted */
#define MOST     64
#define CYCLE    251 /* of the bytes of an answer */
#define PIECE    (64 * KB)
#define CHUNK    (40 * KB)
#define STALL_MS 30

/* ---- a server in a process of its own: what it holds is not ours ---- */

enum manner {
    WITH_LENGTH,
    IN_CHUNKS,  /* the length is known at the end */
    UNTIL_END,  /* the connection's end is the answer's */
    LATE_CHUNK, /* a chunk, a long pause, and the rest */
    SLOWLY,     /* with its length, in 8 pieces with pauses */
    TOO_SLOWLY, /* with longer ones */
    MANNERS = TOO_SLOWLY
};

struct server {
    int listener;
    unsigned port;
    pid_t pid;
};

static char bytes[PIECE + CYCLE];

static void fill_bytes(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % CYCLE);
}

/* Bytes `from` to `from + n` of any answer. */
static const char *part_of_answer(size_t from)
{
    return bytes + from % CYCLE;
}

static bool put(int fd, const char *text, size_t n)
{
    while (n) {
        ssize_t done = send(fd, text, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

static bool put_answer(int fd, size_t n, enum manner manner)
{
    static const int pauses[] = {[SLOWLY] = STALL_MS / 8, [TOO_SLOWLY] = STALL_MS};
    bool chunked = manner == IN_CHUNKS || manner == LATE_CHUNK;
    size_t step = chunked ? CHUNK : manner >= SLOWLY ? n / 8 + 1 : PIECE;
    char line[100];
    for (size_t at = 0; at < n; at += step) {
        size_t len = n - at < step ? n - at : step;
        int head = snprintf(line, sizeof(line), "%zx\r\n", len);
        if (chunked && !put(fd, line, (size_t)head))
            return false;
        for (size_t done = 0, take; done < len; done += take) {
            take = len - done < PIECE ? len - done : PIECE;
            if (!put(fd, part_of_answer(at + done), take))
                return false;
        }
        if (chunked && !put(fd, "\r\n", 2))
            return false;
        if (manner >= SLOWLY || (manner == LATE_CHUNK && at == 0))
            poll(NULL, 0, manner >= SLOWLY ? pauses[manner] : STALL_MS);
    }
    return !chunked || put(fd, "0\r\n\r\n", 5);
}

/* Each request's path is "/BYTES/MANNER". */
static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char head[2048], line[200];
    for (size_t n = 0; n < sizeof(head) - 1 && read(fd, head + n, 1) == 1;) {
        head[++n] = '\0';
        if (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)
            continue;
        char *end;
        size_t len = strtoul(head + strlen("GET /"), &end, 10);
        enum manner manner = (enum manner)strtoul(end + 1, NULL, 10);
        int said = manner == IN_CHUNKS || manner == LATE_CHUNK
                       ? snprintf(line, sizeof(line), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                   : manner == UNTIL_END
                       ? snprintf(line, sizeof(line), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
                       : snprintf(line, sizeof(line), "HTTP/1.1 200 OK\r\ncontent-length: %zu\r\n\r\n", len);
        if (!put(fd, line, (size_t)said) || !put_answer(fd, len, manner) || manner == UNTIL_END)
            break;
        n = 0;
    }
    /* What the client has not read yet stays in the socket: a close under load may drop it. */
    shutdown(fd, SHUT_WR);
    while (read(fd, head, sizeof(head)) > 0)
        ;
    close(fd);
    return NULL;
}

static void accept_all(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        pthread_t thread;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 256 * KB);
        if (pthread_create(&thread, &small, serve, (void *)(intptr_t)fd) != 0)
            _exit(1);
        pthread_detach(thread);
    }
    _exit(0);
}

static void start(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(s->listener, MOST), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0)
        accept_all(s->listener);
    close(s->listener);
}

static void stop(struct server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

/* ---- a client ---- */

struct asked {
    struct sl_http_exchange exchange;
    char url[80];
    size_t bytes;
    enum manner manner;
    unsigned kept; /* turns that its answer is kept for after it came */
    bool is_used;
};

struct client {
    struct server server;
    struct sl_http *http;
    struct asked asked[MOST];
    size_t n;
    size_t peak; /* of the memory of counted answers */
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static void open_client(struct client *c, size_t held_bytes)
{
    static const char *none[] = {NULL};
    static struct sl_vars vars = {.list = none};
    struct sl_http_options options = {.clock = sl_clock_system(), .vars = &vars, .held_bytes = held_bytes};
    fill_bytes();
    start(&c->server);
    c->http = sl_http_new(&options);
    for (size_t i = 0; i < MOST; i++)
        sl_http_exchange_init(&c->asked[i].exchange);
}

static void close_client(struct client *c)
{
    for (size_t i = 0; i < MOST; i++)
        sl_http_exchange_clean_up(&c->asked[i].exchange);
    sl_http_destroy(c->http);
    stop(&c->server);
}

static void ask(struct client *c, struct asked *a, size_t n, enum manner manner)
{
    a->bytes = n;
    a->manner = manner;
    a->is_used = false;
    a->kept = 0;
    snprintf(a->url, sizeof(a->url), "http://127.0.0.1:%u/%zu/%d", c->server.port, n, (int)manner);
    a->exchange.method = "GET";
    a->exchange.url = a->url;
    a->exchange.timeout_ms = 60000;
    a->exchange.answer_bytes = a->exchange.answer_bytes ? a->exchange.answer_bytes : 17 * MB;
    sl_http_start(c->http, &a->exchange);
}

static void look_at(struct client *c)
{
    size_t held = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->asked[i].exchange.body.room > SMALL)
            held += c->asked[i].exchange.body.room;
    c->peak = held > c->peak ? held : c->peak;
}

static void is_whole(const struct asked *a)
{
    const struct sl_buffer *body = &a->exchange.body;
    assert_string_equal(a->exchange.problem, "");
    assert_int_equal(a->exchange.outcome, SL_HTTP_ANSWERED);
    assert_int_equal(body->len, a->bytes);
    for (size_t at = 0, n; at < body->len; at += n) {
        n = body->len - at < PIECE ? body->len - at : PIECE;
        assert_memory_equal(body->ptr + at, part_of_answer(at), n);
    }
}

/* Uses what has come: at once, or some turns later. */
static size_t use(struct client *c)
{
    size_t left = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct asked *a = &c->asked[i];
        if (a->is_used)
            continue;
        left++;
        if (a->exchange.outcome == SL_HTTP_RUNNING || (a->kept && a->kept--))
            continue;
        is_whole(a);
        sl_http_exchange_forget(&a->exchange);
        assert_in_range(a->exchange.body.room, 0, SMALL);
        a->is_used = true;
        left--;
    }
    return left;
}

static void use_all(struct client *c)
{
    do {
        sl_http_wait(c->http, 1000);
        look_at(c);
    } while (use(c));
}

/* ---- any lengths, any manners, any order ---- */

static size_t draw_bytes(void)
{
    static const size_t edges[] = {0, 1, SMALL - 1, SMALL, SMALL + 1, 256 * KB, 300 * KB};
    return draw(2) ? edges[draw(sizeof(edges) / sizeof(*edges))] : draw(400 * KB);
}

static void any_answers_come_whole_and_stay_below_the_bound(void **state)
{
    (void)state;
    struct client c = {.n = MOST};
    const size_t bound = 1 * MB;
    open_client(&c, bound);
    for (uint64_t round = 1; round <= 12; round++) {
        seed = round;
        bool known = round % 3, kept = round % 2;
        for (size_t i = 0; i < MOST; i++) {
            ask(&c, &c.asked[i], draw_bytes(),
                known ? (draw(2) ? WITH_LENGTH : SLOWLY) : (enum manner)draw(MANNERS));
            c.asked[i].kept = kept ? (unsigned)draw(3) : 0;
        }
        c.peak = 0;
        use_all(&c);
        /* one that does not say its length may need twice of it, and goes on when no other does; what was
         * not used yet when it began to is not waited for */
        size_t beyond = known ? 0 : 2 * 400 * KB;
        assert_in_range(c.peak, bound / 2, bound + (kept ? 3 * 800 * KB : beyond));
    }
    close_client(&c);
}

/* ---- true sizes ---- */

static size_t high_water_kb(void)
{
    char line[200];
    size_t kb = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtoul(line + 6, NULL, 10);
    fclose(status);
    return kb;
}

/* What the process takes is asked where the allocator is the system's. */
#ifdef SL_SANITIZED
#define IS_MEASURED false
#else
#define IS_MEASURED true
#endif

static void twelve_of_16_mb_fit_into_a_function_of_128_mb(void **state)
{
    (void)state;
    struct client c = {.n = 12};
    open_client(&c, 0);
    size_t before = high_water_kb();
    for (size_t i = 0; i < c.n; i++)
        ask(&c, &c.asked[i], 16 * MB, WITH_LENGTH);
    use_all(&c);
    assert_int_equal(c.peak, SL_HTTP_HELD_BYTES);
    if (IS_MEASURED)
        assert_in_range(high_water_kb() - before, 1, 48 * KB);
    close_client(&c);
}

/* ---- what becomes of the others ---- */

/* The first takes all memory, and is slow; the others are paused, but for those in `small`. */
static void begin_slowly(struct client *c, size_t small)
{
    open_client(c, 512 * KB);
    ask(c, &c->asked[0], 512 * KB, TOO_SLOWLY);
    while (c->asked[0].exchange.body.len == 0)
        sl_http_wait(c->http, 1);
    for (size_t i = 1; i < c->n; i++)
        ask(c, &c->asked[i], i < c->n - small ? 300 * KB : SMALL, i % 2 ? WITH_LENGTH : IN_CHUNKS);
}

static void small_answers_do_not_wait(void **state)
{
    (void)state;
    struct client c = {.n = 12};
    begin_slowly(&c, 6);
    for (size_t i = 6; i < c.n; i++)
        while (c.asked[i].exchange.outcome == SL_HTTP_RUNNING)
            sl_http_wait(c.http, 1000);
    assert_int_equal(c.asked[0].exchange.outcome, SL_HTTP_RUNNING);
    use_all(&c);
    close_client(&c);
}

static void one_that_waits_too_long_ends_in_time_and_alone(void **state)
{
    (void)state;
    struct client c = {.n = 8};
    begin_slowly(&c, 0);
    for (size_t i = 1; i < 3; i++) {
        sl_http_wait(c.http, STALL_MS / 4);
        sl_http_abandon(c.http, &c.asked[i].exchange);
        ask(&c, &c.asked[i], 300 * KB, WITH_LENGTH);
        sl_http_abandon(c.http, &c.asked[i].exchange);
        c.asked[i].exchange.timeout_ms = 2 * STALL_MS;
        sl_http_start(c.http, &c.asked[i].exchange);
    }
    for (size_t i = 1; i < 3; i++) {
        while (c.asked[i].exchange.outcome == SL_HTTP_RUNNING)
            sl_http_wait(c.http, 1000);
        assert_int_not_equal(c.asked[i].exchange.outcome, SL_HTTP_ANSWERED);
        assert_true(c.asked[i].exchange.timed_out);
        c.asked[i].is_used = true;
    }
    assert_int_equal(c.asked[0].exchange.outcome, SL_HTTP_RUNNING);
    use_all(&c);
    close_client(&c);
}

/* It is abandoned in the middle of its body: what it held is free for the others. */
static void one_that_is_broken_off_gives_its_memory_back(void **state)
{
    (void)state;
    struct client c = {.n = 8};
    begin_slowly(&c, 0);
    sl_http_wait(c.http, 2);
    sl_http_abandon(c.http, &c.asked[0].exchange);
    sl_http_exchange_forget(&c.asked[0].exchange);
    c.asked[0].is_used = true;
    c.peak = 0;
    use_all(&c);
    assert_in_range(c.peak, 300 * KB, 512 * KB + 600 * KB);
    close_client(&c);
}

static void one_that_is_too_long_fails_alone(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 5 * KB, SMALL - 1, SMALL, SMALL + 1, 100 * KB, 200 * KB, 300 * KB};
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
        for (int manner = 0; manner < MANNERS; manner++) {
            struct client c = {.n = 6};
            size_t most = lengths[l];
            open_client(&c, 256 * KB);
            c.asked[2].exchange.answer_bytes = most;
            for (size_t i = 0; i < c.n; i++)
                ask(&c, &c.asked[i], i == 2 ? most + 1 : 200 * KB,
                    i == 2 ? (enum manner)manner : WITH_LENGTH);
            struct sl_http_exchange *long_one = &c.asked[2].exchange;
            while (long_one->outcome == SL_HTTP_RUNNING) {
                sl_http_wait(c.http, 1000);
                c.asked[2].is_used = true;
                use(&c);
            }
            assert_int_equal(long_one->outcome, SL_HTTP_BROKEN);
            assert_string_equal(long_one->problem, "the answer is longer than this operation's answers are");
            sl_http_exchange_forget(long_one);
            use_all(&c);
            ask(&c, &c.asked[2], most, (enum manner)manner); /* as long as it may be */
            use_all(&c);
            close_client(&c);
        }
}

/* What is received goes on beyond the bound only when nothing else goes on. */
static void an_answer_longer_than_the_bound_comes(void **state)
{
    (void)state;
    for (int manner = 0; manner < MANNERS; manner++) {
        struct client c = {.n = 5};
        open_client(&c, 128 * KB);
        for (size_t i = 0; i < c.n; i++)
            ask(&c, &c.asked[i], 400 * KB, (enum manner)manner);
        use_all(&c);
        assert_in_range(c.peak, 400 * KB, manner == WITH_LENGTH || manner == SLOWLY ? 400 * KB : 1200 * KB);
        close_client(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_answers_come_whole_and_stay_below_the_bound),
        cmocka_unit_test(twelve_of_16_mb_fit_into_a_function_of_128_mb),
        cmocka_unit_test(small_answers_do_not_wait),
        cmocka_unit_test(one_that_waits_too_long_ends_in_time_and_alone),
        cmocka_unit_test(one_that_is_broken_off_gives_its_memory_back),
        cmocka_unit_test(one_that_is_too_long_fails_alone),
        cmocka_unit_test(an_answer_longer_than_the_bound_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
