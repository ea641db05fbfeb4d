/* TLS against a server in the test's process: which certificates are trusted, what is sent to the others
 * (nothing), which file of roots counts, and that sessions are resumed. */
#include "tests/support/test.h"

#include "net/http.h"
#include "tests/support/disk_fault.h"

#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TLS "tests/net/tls/"

/* ---- the server: one connection after the other ---- */

struct server {
    SSL_CTX *context;
    int listener;
    unsigned port;
    pthread_t thread;
    bool keeps; /* the connection after the first answer */
    size_t handshakes, resumed, requests;
};

/* Reads requests without a body, and answers each. */
static void serve(struct server *s, SSL *ssl)
{
    static const char kept[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    static const char last[] = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    char text[4096];
    size_t n = 0;
    while (n < sizeof(text) && SSL_read(ssl, text + n, 1) == 1) {
        if (++n < 4 || memcmp(text + n - 4, "\r\n\r\n", 4) != 0)
            continue;
        s->requests++;
        const char *answer = s->keeps ? kept : last;
        if (SSL_write(ssl, answer, (int)strlen(answer)) <= 0 || !s->keeps)
            return;
        n = 0;
    }
}

static void *run(void *arg)
{
    struct server *s = arg;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0; close(fd)) {
        SSL *ssl = SSL_new(s->context);
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1) {
            s->handshakes++;
            s->resumed += SSL_session_reused(ssl) == 1;
            serve(s, ssl);
            SSL_shutdown(ssl);
        }
        SSL_free(ssl);
    }
    return NULL;
}

static void start(struct server *s, int version)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    *s = (struct server){.context = SSL_CTX_new(TLS_server_method()),
                         .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(SSL_CTX_use_certificate_chain_file(s->context, TLS "ca.pem"), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(s->context, TLS "key.pem", SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(s->context, version), 1);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    SSL_CTX_free(s->context);
}

/* ---- the client ---- */

static struct sl_http *new_http(const char *bundle, const struct sl_vars *vars)
{
    static const struct sl_vars none = {.list = NULL};
    struct sl_http_options options = {
        .clock = sl_clock_system(), .vars = vars ? vars : &none, .ca_bundle = bundle};
    return sl_http_new(&options);
}

/* One GET; `problem` (may be NULL) is what must be a part of why it failed. */
static enum sl_http_outcome get(struct sl_http *http, const struct server *s, const char *host,
                                const char *problem)
{
    struct sl_http_exchange e;
    char url[64];
    snprintf(url, sizeof(url), "https://%s:%u/", host, s->port);
    sl_http_exchange_init(&e);
    e.method = "GET";
    e.url = url;
    e.timeout_ms = 20000;
    sl_http_start(http, &e);
    while (e.outcome == SL_HTTP_RUNNING)
        sl_http_wait(http, 20000);
    enum sl_http_outcome outcome = e.outcome;
    if (problem && !strstr(e.problem, problem))
        fail_msg("\"%s\" and not \"%s\"", problem, e.problem);
    if (outcome == SL_HTTP_ANSWERED)
        assert_span_is(sl_buffer_span(&e.body), "{}");
    sl_http_exchange_clean_up(&e);
    return outcome;
}

/* ---- who is trusted ---- */

static void what_is_not_trusted_is_asked_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *host, *bundle, *problem; /* NULL: it is trusted */
    } cases[] = {
        {"localhost", TLS "ca.pem", NULL},
        {"localhost", TLS "other.pem", "certificate"},
        {"127.0.0.1", TLS "ca.pem", "127.0.0.1"}, /* the certificate is of another name */
        {"localhost", TLS "missing.pem", TLS "missing.pem: it cannot be read"},
        {"localhost", TLS "key.pem", TLS "key.pem: it has no certificate"},
        {"localhost", "tests/net/tls", "tests/net/tls: it is a folder; name a file of certificates in PEM"},
        {"localhost", "/dev/null", "/dev/null: it has no certificate"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int prepared = 0; prepared < 2; prepared++) {
            struct server s;
            start(&s, TLS1_3_VERSION);
            struct sl_http *http = new_http(cases[i].bundle, NULL);
            if (prepared)
                sl_http_prepare(http);
            for (size_t n = 0; n < 2; n++) /* the second time it is no more trusted */
                assert_int_equal(get(http, &s, cases[i].host, cases[i].problem),
                                 cases[i].problem ? SL_HTTP_UNTRUSTED : SL_HTTP_ANSWERED);
            sl_http_destroy(http);
            stop(&s);
            assert_int_equal(s.requests, cases[i].problem ? 0 : 2);
        }
}

/* Which file counts: the option's, the variable's, the first of the known places that is there. */
static void the_file_of_roots_is_looked_for(void **state)
{
    (void)state;
    static const char *const ours[] = {"AWS_CA_BUNDLE=" TLS "ca.pem", NULL}, *const another[] = {
                                                                                 "AWS_CA_BUNDLE=" TLS
                                                                                 "other.pem",
                                                                                 NULL};
    const struct {
        const char *bundle;
        const char *const *vars;
        enum sl_http_outcome outcome;
    } cases[] = {
        {NULL, ours, SL_HTTP_ANSWERED},
        {NULL, another, SL_HTTP_UNTRUSTED},
        {TLS "ca.pem", another, SL_HTTP_ANSWERED},
        {TLS "other.pem", ours, SL_HTTP_UNTRUSTED},
        {NULL, NULL, SL_HTTP_UNTRUSTED}, /* the system's, which do not know ours */
    };
    struct server s;
    start(&s, TLS1_3_VERSION);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_vars vars = {.list = cases[i].vars};
        struct sl_http *http = new_http(cases[i].bundle, &vars);
        assert_int_equal(get(http, &s, "localhost", NULL), cases[i].outcome);
        sl_http_destroy(http);
    }
    for (int prepared = 0; prepared < 2; prepared++) {
        struct sl_http *http = new_http(NULL, NULL);
        disk_fault_begin(1, ENOENT, "access");
        disk_fault->times = 4; /* as many places are known */
        if (prepared)
            sl_http_prepare(http);
        assert_int_equal(get(http, &s, "localhost", "no file of root certificates was found"),
                         SL_HTTP_UNTRUSTED);
        assert_true(disk_fault_came());
        disk_fault_end();
        sl_http_destroy(http);
    }
    stop(&s);
}

static void copy_file(const char *from, const char *to)
{
    size_t len;
    char *text = test_read(from, &len);
    assert_non_null(text);
    test_write(to, text);
    free(text);
}

/* The file is replaced while the process lives: the new one counts for new handshakes (a session that is
 * resumed has been verified); one that is gone or broken does not take away what was read before. */
static void roots_that_change_count_at_the_next_handshake(void **state)
{
    (void)state;
    char *folder = test_folder();
    const char *path = json_printf("%s/roots.pem", folder), *next = json_printf("%s/next.pem", folder);
    struct server s;
    start(&s, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(s.context, 0); /* no session is resumed */
    copy_file(TLS "other.pem", path);
    struct sl_http *http = new_http(path, NULL);
    assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_UNTRUSTED);
    copy_file(TLS "ca.pem", next);
    assert_int_equal(rename(next, path), 0);
    assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_ANSWERED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_ANSWERED);
    test_write(path, "-----BEGIN CERTIFICATE-----\nhalf a copy");
    assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_ANSWERED);
    copy_file(TLS "other.pem", path);
    assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_UNTRUSTED);
    sl_http_destroy(http);
    stop(&s);
    test_folder_remove(folder);
}

/* ---- sessions ---- */

static void a_closed_connection_s_session_is_resumed(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++)
        for (int keeps = 0; keeps < 2; keeps++) {
            struct server s;
            start(&s, versions[i]);
            s.keeps = keeps;
            struct sl_http *http = new_http(TLS "ca.pem", NULL);
            for (size_t n = 0; n < 5; n++)
                assert_int_equal(get(http, &s, "localhost", NULL), SL_HTTP_ANSWERED);
            assert_int_equal(sl_http_connections(http), keeps ? 1 : 5);
            sl_http_destroy(http);
            stop(&s);
            assert_int_equal(s.requests, 5);
            assert_int_equal(s.handshakes, keeps ? 1 : 5);
            assert_int_equal(s.resumed, keeps ? 0 : 4);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_trusted_is_asked_nothing),
        cmocka_unit_test(the_file_of_roots_is_looked_for),
        cmocka_unit_test(roots_that_change_count_at_the_next_handshake),
        cmocka_unit_test(a_closed_connection_s_session_is_resumed),
    };
    signal(SIGPIPE, SIG_IGN); /* a client that does not trust the server is gone when it writes */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
