/* The wire itself: peers that read slowly and peers that are gone, proxies, and headers that cannot be sent.
 */
#include "tests/support/test.h"

#include "net/http.h"
#include "net/idle.h"
#include "net/uri.h"
#include "tests/support/scripted_server.h"

#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a server that reads as it likes ---- */

enum manner {
    READS_SLOWLY, /* pauses in the middle of each body */
    IS_GONE,      /* after its first answer, the first connection acknowledges nothing any more */
};

#define PAUSE_MS   (SL_IDLE_DEAD_MS + 1500)
#define BODY_BYTES (4800 * 1000)

struct server {
    enum manner manner;
    int listener;
    unsigned port;
    size_t connections, answers;
    pthread_t thread;
};

/* From here on the kernel drops what arrives: to the other side, this peer is gone. */
static int attach(int fd)
{
    struct sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
    struct sock_fprog program = {1, &drop};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static void vanish(int fd)
{
    assert_int_equal(attach(fd), 0);
}

static bool read_head(int fd, size_t *body)
{
    char head[4096];
    size_t n = 0;
    while (n < sizeof(head) - 1 && read(fd, head + n, 1) == 1) {
        head[++n] = '\0';
        if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0) {
            const char *length = strcasestr(head, "content-length: ");
            *body = length ? strtoul(length + 16, NULL, 10) : 0;
            return true;
        }
    }
    return false;
}

static bool read_body(int fd, size_t left, bool slowly)
{
    static char bytes[64 * 1024];
    size_t pause_at = left / 2;
    while (left) {
        ssize_t n = read(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
        if (n <= 0)
            return false;
        left -= (size_t)n;
        if (slowly && left <= pause_at) {
            poll(NULL, 0, PAUSE_MS);
            slowly = false;
        }
    }
    return true;
}

static void serve(struct server *s, int fd, bool first)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    size_t body;
    while (read_head(fd, &body)) {
        if (!read_body(fd, body, s->manner == READS_SLOWLY && body > 1000))
            return;
        s->answers++;
        if (write(fd, answer, sizeof(answer) - 1) < 0)
            return;
        if (first && s->manner == IS_GONE) {
            poll(NULL, 0, 50); /* the answer is on its way */
            vanish(fd);
            return;
        }
    }
}

static void *run(void *arg)
{
    struct server *s = arg;
    int fds[8];
    for (s->connections = 0; s->connections < 8;) {
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            break;
        fds[s->connections++] = fd;
        serve(s, fd, s->connections == 1);
    }
    for (size_t i = 0; i < s->connections; i++)
        close(fds[i]);
    return NULL;
}

static void start(struct server *s, enum manner manner)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int small = 64 * 1024;
    *s = (struct server){.manner = manner, .listener = socket(AF_INET, SOCK_STREAM, 0)};
    setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)); /* its window closes soon */
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    close(s->listener);
    pthread_join(s->thread, NULL);
}

/* ---- requests ---- */

static const char *const no_vars[] = {NULL};

static struct sl_http *new_http(const struct sl_vars *vars)
{
    struct sl_http_options options = {.clock = sl_clock_system(), .vars = vars};
    return sl_http_new(&options);
}

static void begin(struct sl_http *http, struct sl_http_exchange *e, char *url, struct sl_span *body)
{
    sl_http_exchange_init(e);
    e->method = "PUT";
    e->url = url;
    e->parts = body;
    e->n_parts = 1;
    e->body_bytes = body->len;
    e->timeout_ms = 30000;
    sl_http_start(http, e);
}

static void wait_for(struct sl_http *http, struct sl_http_exchange *e)
{
    while (e->outcome == SL_HTTP_RUNNING)
        sl_http_wait(http, 30000);
}

static void assert_answered(struct sl_http_exchange *e)
{
    if (e->outcome != SL_HTTP_ANSWERED || e->status != 200)
        fail_msg("outcome %d, status %d: %s", (int)e->outcome, e->status, e->problem);
    sl_http_exchange_clean_up(e);
}

/* TCP_USER_TIMEOUT of the client's sockets to this port; -1 when it has none. */
static int user_timeout(unsigned port)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof(peer);
        unsigned ms = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || ntohs(peer.sin_port) != port)
            continue;
        len = sizeof(ms);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len), 0);
        return (int)ms;
    }
    return -1;
}

/* On new and on kept connections, a peer that lives is waited for, and one that is gone is replaced before an
 * exchange without progress would be given up. */
static void slow_peers_are_waited_for_and_gone_ones_are_replaced(void **state)
{
    (void)state;
    static char bytes[BODY_BYTES], urls[3][64];
    struct sl_vars vars = {.list = no_vars};
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    bool can_vanish = attach(probe) == 0;
    close(probe);
    if (!can_vanish)
        skip(); /* this kernel lets no user drop what arrives */
    struct server servers[3]; /* slow on a new connection, slow on a kept one, gone */
    struct sl_http_exchange e[3];
    struct sl_span small = SL_LIT("{}"), big = sl_span(bytes, sizeof(bytes));
    struct sl_clock *real = sl_clock_system();
    struct sl_http *http = new_http(&vars);
    for (size_t i = 0; i < 3; i++) {
        start(&servers[i], i == 2 ? IS_GONE : READS_SLOWLY);
        snprintf(urls[i], sizeof(urls[i]), "http://127.0.0.1:%u/", servers[i].port);
    }
    for (size_t i = 1; i < 3; i++) {
        begin(http, &e[i], urls[i], &small);
        assert_true(user_timeout(servers[i].port) <= 0); /* a new connection has its own time-out */
        wait_for(http, &e[i]);
        assert_answered(&e[i]);
    }
    poll(NULL, 0, 200); /* the peer vanishes */
    int64_t began = real->now_ms(real);
    for (size_t i = 0; i < 3; i++) {
        begin(http, &e[i], urls[i], i == 2 ? &small : &big);
        if (i)
            assert_int_equal(user_timeout(servers[i].port), SL_IDLE_DEAD_MS);
    }
    wait_for(http, &e[2]);
    assert_in_range(real->now_ms(real) - began, SL_IDLE_DEAD_MS - 1000, SL_IDLE_DEAD_MS + 7000);
    assert_answered(&e[2]);
    assert_int_equal(servers[2].connections, 2);
    assert_int_equal(user_timeout(servers[1].port), 0);
    for (size_t i = 0; i < 2; i++) {
        wait_for(http, &e[i]);
        assert_answered(&e[i]);
        assert_int_equal(servers[i].connections, 1);
    }
    poll(NULL, 0, SL_IDLE_PAUSE_MS + 10);
    begin(http, &e[0], urls[0], &small);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(user_timeout(servers[i].port), SL_IDLE_DEAD_MS);
    wait_for(http, &e[0]);
    assert_answered(&e[0]);
    sl_http_destroy(http);
    for (size_t i = 0; i < 3; i++)
        stop(&servers[i]);
}

/* ---- hosts and proxies ---- */

static const char *const local[] = {
    "localhost",
    "LocalHost",
    "localhost.",
    "x.localhost",
    "127.0.0.1",
    "127.9.8.7",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.170.2]",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.169.254",
    "0xA9FEA9FE",
    "[fd00:ec2::254]",
    "[fd00:ec2::23]",
    "[FD00:0EC2:0::0023]",
};
static const char *const elsewhere[] = {
    "example.com",
    "localhost.example.com",
    "notlocalhost",
    "128.0.0.1",
    "169.253.1.1",
    "10.0.0.1",
    "[::2]",
    "[fd00:ec2::1]",
    "[fd00:ec2::2541]",
    "[::ffff:10.0.0.1]",
};

static void local_hosts_are_known_in_every_spelling(void **state)
{
    (void)state;
    char url[128];
    struct sl_uri uri;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        snprintf(url, sizeof(url), "http%s://%s:8000/x", i % 2 ? "s" : "", local[i]);
        if (!sl_uri_parse(url, &uri) || !sl_uri_is_local(&uri))
            fail_msg("%s is local", url);
    }
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        snprintf(url, sizeof(url), "http%s://%s:8000/x", i % 2 ? "s" : "", elsewhere[i]);
        if (!sl_uri_parse(url, &uri) || sl_uri_is_local(&uri))
            fail_msg("%s is not local", url);
    }
}

/* What is no host at all is no place, and so not local. */
static void what_is_no_host_is_not_local(void **state)
{
    (void)state;
    static const char *const hosts[] = {"", "[]", "[x]", "[::1", "[127.0.0.1]", ".", "ocalhost", "256.0.0.1"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct sl_uri uri = {.is_https = false};
        snprintf(uri.host, sizeof(uri.host), "%s", hosts[i]);
        if (sl_uri_is_local(&uri))
            fail_msg("%s", hosts[i]);
    }
}

/* The header's words: an absolute URL of http or https with a host and without a user. A request that was
 * meant for another scheme, or somebody's name before the host, never goes out. */
static void urls_are_absolute_and_without_a_user(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host; /* NULL: it is refused */
        bool is_https;
    } cases[] = {
        {"http://h", "h", false},
        {"HTTPS://h:443/a?b#c", "h", true},
        {"https://[2606:4700::1]:8443/", "[2606:4700::1]", true},
        {"http://h:65535/", "h", false},
        {"http://user@h/", NULL, false},
        {"http://user:word@h/", NULL, false},
        {"http://:word@h/", NULL, false},
        {"http://@h/", NULL, false},
        {"http://h:0/", NULL, false},
        {"http://h:00000/", NULL, false},
        {"http://h:65536/", NULL, false},
        {"http://h:x/", NULL, false},
        {"ftp://h/", NULL, false},
        {"gopher://h/", NULL, false},
        {"file:///h", NULL, false},
        {"http:/h/", NULL, false},
        {"http:///h/", NULL, false},
        {"http://", NULL, false},
        {"http://h h/", NULL, false},
        {"h/path", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_uri uri;
        bool is_good = sl_uri_parse(cases[i].url, &uri);
        if (is_good != (cases[i].host != NULL))
            fail_msg("%s is %s", cases[i].url, is_good ? "taken" : "refused");
        if (is_good)
            assert_string_equal(uri.host, cases[i].host);
        assert_int_equal(uri.is_https && is_good, cases[i].is_https);
    }
    for (int n = SL_URI_HOST_BYTES - 3; n <= SL_URI_HOST_BYTES + 1; n++) { /* a host that is as long */
        char url[SL_URI_HOST_BYTES + 16];
        struct sl_uri uri;
        snprintf(url, sizeof(url), "http://%0*d.x/", n - 2, 1);
        assert_int_equal(sl_uri_parse(url, &uri), n < SL_URI_HOST_BYTES);
    }
}

/* ---- sockets that cannot say what was acknowledged ---- */

/* No time-out is set that nothing could take away again, and one stays where its end cannot be seen. */
static void only_what_can_be_watched_is_watched(void **state)
{
    (void)state;
    struct server s;
    struct sl_idle idle = {.sockets = NULL};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int pair[2], fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    sl_idle_add(&idle, pair[0]);
    sl_idle_rest(&idle);
    assert_false(idle.sockets[0].is_armed);
    sl_idle_forget(&idle, pair[0]);
    assert_int_equal(idle.n, 0);
    start(&s, READS_SLOWLY);
    at.sin_port = htons((uint16_t)s.port);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    sl_idle_add(&idle, fd);
    sl_idle_check(&idle, SL_IDLE_CHECK_MS); /* it may have moved before */
    sl_idle_check(&idle, 2 * SL_IDLE_CHECK_MS - 1);
    assert_int_equal(user_timeout(s.port), 0);
    sl_idle_check(&idle, 2 * SL_IDLE_CHECK_MS); /* nothing was sent */
    assert_int_equal(user_timeout(s.port), SL_IDLE_DEAD_MS);
    assert_int_equal(write(fd, "GET", 3), 3);
    poll(NULL, 0, 50);
    sl_idle_check(&idle, 3 * SL_IDLE_CHECK_MS); /* the peer lives */
    assert_int_equal(user_timeout(s.port), 0);
    sl_idle_rest(&idle);
    assert_int_equal(user_timeout(s.port), SL_IDLE_DEAD_MS);
    assert_int_equal(write(fd, " / ", 3), 3);
    poll(NULL, 0, 50);
    sl_idle_rest(&idle); /* from here on */
    sl_idle_check(&idle, 4 * SL_IDLE_CHECK_MS);
    assert_int_equal(user_timeout(s.port), SL_IDLE_DEAD_MS);
    close(fd);
    sl_idle_check(&idle, 5 * SL_IDLE_CHECK_MS);
    assert_true(idle.sockets[0].is_armed);
    sl_idle_forget(&idle, pair[0]);
    assert_int_equal(idle.n, 1);
    sl_idle_forget(&idle, fd);
    assert_int_equal(idle.n, 0);
    sl_idle_clean_up(&idle);
    stop(&s);
    close(pair[0]);
    close(pair[1]);
}

static void answer_done(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}")};
}

static unsigned patience_ms =
    60; /* where nobody listens; the proxy answers at once, on a machine that is not busy */

/* Whether a request to the host comes to the proxy. */
static bool asks_proxy(struct sl_http *http, struct scripted_server *proxy, const char *host, bool is_https,
                       bool is_private)
{
    struct sl_http_exchange e;
    char url[128];
    size_t before = scripted_server_connections(proxy) + scripted_server_requests(proxy);
    snprintf(url, sizeof(url), "http%s://%s:9/keys", is_https ? "s" : "", host);
    sl_http_exchange_init(&e);
    e.method = "GET";
    e.url = url;
    e.headers[0] = "Authorization: canary";
    e.n_headers = 1;
    e.timeout_ms = patience_ms;
    e.is_private = is_private;
    sl_http_start(http, &e);
    while (e.outcome == SL_HTTP_RUNNING)
        sl_http_wait(http, 1000);
    sl_http_exchange_clean_up(&e);
    return scripted_server_connections(proxy) + scripted_server_requests(proxy) > before;
}

/* As libcurl reads NO_PROXY. */
static void a_list_names_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *url, *list;
        bool is_named;
    } cases[] = {
        {"https://a.example", "", false},           {"https://a.example", "*", true},
        {"https://a.example", "example", true},     {"https://a.example", ".example", true},
        {"https://a.example", "a.example", true},   {"https://a.example.", "a.EXAMPLE", true},
        {"https://A.example", "b,a.example", true}, {"https://ba.example", "a.example", false},
        {"https://example", ".a.example", false},   {"https://a.example", "x y\tz,, example", true},
        {"https://10.1.2.3", "10.0.0.0/8", true},   {"https://10.1.2.3", "10.1.2.2/31", true},
        {"https://10.1.2.3", "10.1.2.4/31", false}, {"https://10.1.2.3", "10.1.2.3", true},
        {"https://10.1.2.3", "0.0.0.0/0", true},    {"https://10.1.2.3", "10.0.0.0/33", false},
        {"https://10.1.2.3", "10.0.0.0/", false},   {"https://[fd00::1]", "fd00::/8", true},
        {"https://[fd00::1]", "[fd00::1]", true},   {"https://[fd00::1]", "fc00::/9", false},
        {"https://[fd00::1]", "10.0.0.0/0", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_uri uri;
        assert_true(sl_uri_parse(cases[i].url, &uri));
        if (sl_uri_is_named(&uri, cases[i].list) != cases[i].is_named)
            fail_msg("%s in %s", cases[i].url, cases[i].list);
    }
}

static void credentials_and_this_machine_are_asked_without_a_proxy(void **state)
{
    (void)state;
    struct scripted_server *proxy = scripted_server_start(answer_done, NULL);
    char lines[4][128];
    const char *list[] = {lines[0], lines[1], NULL};
    struct sl_vars vars = {.list = list};
    snprintf(lines[0], sizeof(lines[0]), "http_proxy=%s", scripted_server_url(proxy));
    snprintf(lines[1], sizeof(lines[1]), "HTTPS_PROXY=%s", scripted_server_url(proxy));
    struct sl_http *http = new_http(&vars);
    for (int is_https = 0; is_https < 2; is_https++) {
        for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
            if (asks_proxy(http, proxy, local[i], is_https, i % 2))
                fail_msg("%s was asked through the proxy", local[i]);
        assert_false(asks_proxy(http, proxy, "10.255.255.1", is_https, true));
        assert_false(asks_proxy(http, proxy, "user@10.255.255.1", is_https, false)); /* no URL of ours */
        patience_ms = 20000;
        assert_true(asks_proxy(http, proxy, "10.255.255.1", is_https, false));
        assert_true(asks_proxy(http, proxy, "[fd00:ec2::1]", is_https, false));
        patience_ms = 60;
    }
    sl_http_destroy(http);
    scripted_server_stop(proxy);
}

/* ---- headers ---- */

static void no_header_can_hold_a_control_character(void **state)
{
    (void)state;
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_vars vars = {.list = no_vars};
    struct sl_http *http = new_http(&vars);
    struct sl_http_exchange e;
    char line[64];
    sl_http_exchange_init(&e);
    e.method = "POST";
    e.url = scripted_server_url(server);
    e.timeout_ms = 5000;
    for (size_t at = 0; at < SL_HTTP_HEADERS; at++)
        for (int c = 1; c < 256; c++) {
            bool is_control = c < ' ' || c == 0x7F;
            if (!is_control && c % 16 != (int)at % 16)
                continue; /* some of the others */
            snprintf(line, sizeof(line), "x-one: a%cb: c", c);
            for (e.n_headers = 0; e.n_headers < SL_HTTP_HEADERS; e.n_headers++)
                e.headers[e.n_headers] = e.n_headers == at ? line : "x-other: fine";
            sl_http_start(http, &e);
            wait_for(http, &e);
            assert_int_equal(e.outcome, is_control ? SL_HTTP_UNSENDABLE : SL_HTTP_ANSWERED);
            if (is_control)
                assert_string_equal(e.problem, "the header x-one holds a control character");
        }
    sl_http_exchange_clean_up(&e);
    sl_http_destroy(http);
    scripted_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_hosts_are_known_in_every_spelling),
        cmocka_unit_test(what_is_no_host_is_not_local),
        cmocka_unit_test(urls_are_absolute_and_without_a_user),
        cmocka_unit_test(only_what_can_be_watched_is_watched),
        cmocka_unit_test(a_list_names_hosts),
        cmocka_unit_test(credentials_and_this_machine_are_asked_without_a_proxy),
        cmocka_unit_test(no_header_can_hold_a_control_character),
        cmocka_unit_test(slow_peers_are_waited_for_and_gone_ones_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
