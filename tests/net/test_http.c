/* The interface of net/http.h: what is sent arrives as it was given, in any shape; answers are read in any
 * shape; and each end has its outcome. */
#include "tests/support/test.h"

#include "net/http.h"
#include "tests/support/scripted_server.h"
#include "tests/support/wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KB ((size_t)1024)

static struct sl_http *new_http(void)
{
    static const struct sl_vars none = {.list = NULL};
    struct sl_http_options options = {.clock = sl_clock_system(), .vars = &none};
    return sl_http_new(&options);
}

static void run_exchange(struct sl_http *http, struct sl_http_exchange *e)
{
    sl_http_start(http, e);
    while (e->outcome == SL_HTTP_RUNNING)
        sl_http_wait(http, 10000);
}

static void answer_done(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    reply->status = 200;
    reply->body = SL_LIT("done");
}

static const struct scripted_request *last_request(struct scripted_server *server)
{
    return scripted_server_request(server, scripted_server_requests(server) - 1);
}

/* ---- what is sent ---- */

/* Around the length up to which pieces are joined, in pieces of any sizes. */
static void a_body_in_pieces_arrives_whole(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1000, 64 * KB - 2, 64 * KB - 1, 64 * KB, 200 * KB};
    static char bytes[200 * KB];
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_http *http = new_http();
    struct sl_http_exchange e;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 251);
    sl_http_exchange_init(&e);
    e.method = "POST";
    e.url = scripted_server_url(server);
    e.timeout_ms = 10000;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (size_t pieces = 0; pieces <= 5; pieces++) {
            struct sl_span parts[5];
            size_t at = 0;
            for (size_t k = 0; k < pieces; k++) { /* some of them are empty */
                size_t n = k + 1 == pieces ? lengths[i] - at : sl_random_step(&seed) % (lengths[i] - at + 1);
                parts[k] = sl_span(bytes + at, k % 3 == 1 && k + 1 < pieces ? 0 : n);
                at += parts[k].len;
            }
            e.parts = parts;
            e.n_parts = pieces;
            e.body_bytes = at;
            if (i + pieces == 6)
                scripted_server_close_idle(server); /* it is sent again, from its start */
            run_exchange(http, &e);
            assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
            struct sl_span got = last_request(server)->body;
            assert_int_equal(got.len, at);
            assert_memory_equal(got.ptr, bytes, at);
        }
    assert_int_equal(sl_http_connections(http), 1 + 6);
    sl_http_exchange_clean_up(&e);
    sl_http_destroy(http);
    scripted_server_stop(server);
}

/* One after the other on one transfer, which keeps the last one. */
static void a_request_goes_where_its_url_says(void **state)
{
    (void)state;
    static char longest[20 * KB];
    static const char *const paths[] = {"/a", "/a", "/b?x=%41", "/a",    NULL,      "/a",
                                        NULL, NULL, "/ab",      "/",     "/c/../d", "/c/./d/.",
                                        "/a", "/a", longest,    longest, "/a/%",    "/a/b/c"};
    struct scripted_server *servers[2] = {scripted_server_start(answer_done, NULL),
                                          scripted_server_start(answer_done, NULL)};
    struct sl_http *http = new_http();
    struct sl_http_exchange e;
    snprintf(longest, sizeof(longest), "/%0*d", (int)sizeof(longest) - 10, 1);
    sl_http_exchange_init(&e);
    e.method = "GET";
    e.timeout_ms = 10000;
    for (size_t i = 0; i < 4 * (sizeof(paths) / sizeof(paths[0])); i++) {
        const char *path = paths[i % (sizeof(paths) / sizeof(paths[0]))];
        struct scripted_server *server = servers[i / 3 % 2];
        char url[21 * KB];
        snprintf(url, sizeof(url), "%s%s", path ? scripted_server_url(server) : "http://h:port/",
                 path ? path : "");
        e.url = url;
        size_t before = scripted_server_requests(server);
        run_exchange(http, &e);
        assert_int_equal(e.outcome, path ? SL_HTTP_ANSWERED : SL_HTTP_NOT_SENT);
        assert_int_equal(scripted_server_requests(server), before + (path != NULL));
        if (path && !strstr(path, "/.")) /* (those are resolved) */
            assert_string_equal(last_request(server)->path, path);
        else if (path)
            assert_string_equal(last_request(server)->path, strstr(path, "..") ? "/d" : "/c/d/");
        if (!path)
            assert_non_null(strstr(e.problem, "URL"));
    }
    sl_http_exchange_clean_up(&e);
    sl_http_destroy(http);
    for (size_t i = 0; i < 2; i++)
        scripted_server_stop(servers[i]);
}

/* A kept connection that ends while the request is on its way: libcurl sends it again. */
static void a_request_on_a_kept_connection_that_ends_is_sent_again(void **state)
{
    (void)state;
    static char bytes[300 * KB];
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_http *http = new_http();
    struct sl_http_exchange e;
    const struct sl_span parts[] = {{bytes, 100 * KB}, {bytes + 100 * KB, 200 * KB}};
    memset(bytes, 'x', sizeof(bytes));
    bytes[0] = 'a';
    sl_http_exchange_init(&e);
    e.method = "PUT";
    e.url = scripted_server_url(server);
    e.timeout_ms = 10000;
    run_exchange(http, &e);
    assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
    e.parts = parts;
    e.n_parts = 2;
    e.body_bytes = sizeof(bytes);
    scripted_server_reset_requests(server, 64 * KB, 1);
    run_exchange(http, &e);
    if (e.outcome == SL_HTTP_ANSWERED) {
        struct sl_span got = last_request(server)->body;
        assert_int_equal(got.len, sizeof(bytes));
        assert_memory_equal(got.ptr, bytes, sizeof(bytes));
    } else {
        assert_int_equal(e.outcome, SL_HTTP_BROKEN); /* a reset that came after some bytes */
    }
    sl_http_exchange_clean_up(&e);
    sl_http_destroy(http);
    scripted_server_stop(server);
}

/* Lines that are joined for libcurl, lines that it looks for, and ones without a value. */
static void header_lines_arrive_one_by_one(void **state)
{
    (void)state;
    static const char *const names[] = {"x-amz-target", "authorization", "content-type", "date",
                                        "if-match",     "range",         "x-empty",      "accept",
                                        "hostage",      "user-agent"};
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_http *http = new_http();
    static char lines[10][7000];
    static const size_t lengths[] = {1, 50, 2500, 3200, 3300, 6400}; /* together above 32 KB at last */
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        size_t len = lengths[k];
        struct sl_http_exchange e;
        sl_http_exchange_init(&e);
        e.method = "GET";
        e.url = scripted_server_url(server);
        e.timeout_ms = 10000;
        for (size_t i = 0; i < 10; i++) {
            bool is_empty = strcmp(names[i], "x-empty") == 0;
            size_t n = (size_t)snprintf(lines[i], sizeof(lines[i]), "%s%s", names[i], is_empty ? ";" : ": ");
            memset(lines[i] + n, (int)('a' + i), len);
            lines[i][is_empty ? n : n + len] = '\0';
            e.headers[e.n_headers++] = lines[i];
        }
        run_exchange(http, &e);
        assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
        const struct scripted_request *request = last_request(server);
        for (size_t i = 0; i < 10; i++) {
            struct sl_span value = scripted_header(request, names[i]);
            bool is_empty = strcmp(names[i], "x-empty") == 0;
            assert_non_null(value.ptr);
            assert_int_equal(value.len, is_empty ? 0 : len);
            for (size_t at = 0; at < value.len; at++)
                assert_int_equal(value.ptr[at], 'a' + (int)i);
        }
        sl_http_exchange_clean_up(&e);
    }
    sl_http_destroy(http);
    scripted_server_stop(server);
}

/* ---- what is answered ---- */

#define LONG_HEAD_LINE 8000

/* An answer with so many long header lines; freed by the caller. */
static char *long_head(size_t lines)
{
    struct sl_buffer text;
    char line[LONG_HEAD_LINE + 1];
    sl_buffer_init(&text, 1024 * KB);
    memset(line, 'h', sizeof(line));
    memcpy(line, "x-line: ", 8);
    memcpy(line + LONG_HEAD_LINE - 2, "\r\n", 3);
    sl_buffer_add_str(&text, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n");
    for (size_t i = 0; i < lines; i++)
        sl_buffer_add_str(&text, line);
    sl_buffer_add(&text, "\r\n{}", sizeof("\r\n{}"));
    return text.ptr;
}

static void every_end_has_its_outcome(void **state)
{
    (void)state;
    char *fits = long_head(8), *too_long = long_head(9);
    const struct {
        struct wire_step step;
        enum sl_http_outcome outcome;
        int status;
        const char *body;
    } cases[] = {
        {{.reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"}, SL_HTTP_ANSWERED, 200, "{}"},
        {{.reply = "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"}, SL_HTTP_ANSWERED, 404, ""},
        {{.reply = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 OK\r\nx-b: 2\r\ncontent-length: 1\r\n\r\nx"},
         SL_HTTP_ANSWERED,
         201,
         "x"},
        {{.reply = "HTTP/1.1 200 OK\r\n\r\nto the end", .close = true}, SL_HTTP_ANSWERED, 200, "to the end"},
        {{.reply = "HTTP/1.1 200 OK\ncontent-length: 1\n\nx"}, SL_HTTP_ANSWERED, 200, "x"},
        {{.reply = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nxy", .close = true}, SL_HTTP_BROKEN, 0, NULL},
        {{.reply = "HTTP/1.1 200 OK\r\ncontent-le", .close = true}, SL_HTTP_BROKEN, 0, NULL},
        {{.reply = "HTTP/1.1 200 OK\r\n", .close = true}, SL_HTTP_BROKEN, 0, NULL},
        {{.reply = "HTTP/1.1 200 OK\r\nx\n", .close = true}, SL_HTTP_BROKEN, 0, NULL}, /* no empty line */
        {{.reply = "HTTP/1.1 100 Continue\r\n\r\n", .close = true}, SL_HTTP_BROKEN, 0, NULL},
        {{.reply = "nonsense", .close = true}, SL_HTTP_BROKEN, 0, NULL},
        {{.reply = fits}, SL_HTTP_ANSWERED, 200, "{}"},
        {{.reply = too_long}, SL_HTTP_BROKEN, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire *wire = wire_start(&cases[i].step, 1);
        struct sl_http *http = new_http();
        struct sl_http_exchange e;
        char url[64];
        snprintf(url, sizeof(url), "http://%s/", wire_address(wire));
        sl_http_exchange_init(&e);
        e.method = "GET";
        e.url = url;
        e.timeout_ms = 10000;
        run_exchange(http, &e);
        if (e.outcome != cases[i].outcome || e.status != cases[i].status)
            fail_msg("%zu: outcome %d, status %d: %s", i, (int)e.outcome, e.status, e.problem);
        assert_int_equal(e.problem[0] != '\0', e.outcome != SL_HTTP_ANSWERED);
        assert_false(e.timed_out);
        if (cases[i].body)
            assert_span_is(sl_buffer_span(&e.body), cases[i].body);
        assert_null(i == 2 ? NULL : sl_http_header(&e, "x-b").ptr);
        sl_http_exchange_clean_up(&e);
        sl_http_destroy(http);
        wire_stop(wire);
    }
    free(fits);
    free(too_long);
}

static void header_values_are_found_by_their_name(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\nETag:\"a\"\r\nx-long: 1\r\nX-LONGER:  \t two words \t \r\n"
                               "empty:\r\nblank:   \r\nlast: end";
    static const struct {
        const char *name, *value;
    } cases[] = {{"etag", "\"a\""}, {"x-long", "1"}, {"x-longer", "two words"},
                 {"empty", ""},     {"BLANK", ""},   {"last", "end"}};
    struct sl_http_exchange other;
    sl_http_exchange_init(&other);
    sl_buffer_add_str(&other.head, "a:\r\nlast:");
    assert_non_null(sl_http_header(&other, "last").ptr);
    assert_span_is(sl_http_header(&other, "last"), "");
    sl_http_exchange_clean_up(&other);
    static const char *const absent[] = {"x-lon", "tag", "a", "las", "words", "HTTP/1.1 200 OK", "x-longer "};
    struct sl_http_exchange e;
    sl_http_exchange_init(&e);
    assert_null(sl_http_header(&e, "etag").ptr);
    sl_buffer_add_str(&e.head, head);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_non_null(sl_http_header(&e, cases[i].name).ptr);
        assert_span_is(sl_http_header(&e, cases[i].name), cases[i].value);
    }
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        assert_null(sl_http_header(&e, absent[i]).ptr);
    sl_http_exchange_clean_up(&e);
}

static void dates_are_read(void **state)
{
    (void)state;
    char text[80];
    assert_int_equal(sl_http_date(SL_LIT("Fri, 20 Nov 2026 21:04:00 GMT")), 1795208640);
    assert_int_equal(sl_http_date(SL_LIT("yesterday")), -1);
    assert_int_equal(sl_http_date(SL_LIT("")), -1);
    for (int n = 38; n <= 41; n++) {
        snprintf(text, sizeof(text), "%*s", n, "Fri, 20 Nov 2026 21:04:00 GMT");
        assert_int_equal(sl_http_date(sl_span(text, (size_t)n)), n < 40 ? 1795208640 : -1);
    }
}

/* ---- waiting ---- */

static void a_bell_ends_the_wait(void **state)
{
    (void)state;
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_clock *real = sl_clock_system();
    struct sl_http *http = new_http();
    struct sl_http_exchange e;
    int ends[2];
    char silent;
    assert_int_equal(pipe(ends), 0);
    int64_t began = real->now_ms(real);
    assert_int_equal(sl_http_wait(http, 60000), 0); /* nothing runs: it does not wait */
    assert_int_equal(sl_http_wait_or(http, 20, ends[0]), 0);
    assert_in_range(real->now_ms(real) - began, 19, 30000);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(sl_http_wait_or(http, 60000, ends[0]), 0);
    sl_http_exchange_init(&e);
    e.method = "GET";
    e.url = scripted_server_url(server);
    e.timeout_ms = 60000;
    sl_http_start(http, &e);
    while (e.outcome == SL_HTTP_RUNNING) /* it is driven although the bell rings */
        sl_http_wait_or(http, 60000, ends[0]);
    assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
    assert_in_range(real->now_ms(real) - began, 0, 50000);
    assert_int_equal(read(ends[0], &silent, 1), 1);
    sl_http_start(http, &e);
    while (e.outcome == SL_HTTP_RUNNING) /* and when nobody rings it */
        sl_http_wait_or(http, 60000, ends[0]);
    assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
    sl_http_abandon(http, &e); /* it is over already */
    assert_int_equal(e.outcome, SL_HTTP_ANSWERED);
    close(ends[0]);
    close(ends[1]);
    sl_http_exchange_clean_up(&e);
    sl_http_destroy(http);
    scripted_server_stop(server);
}

/* A server that says nothing, for each of several exchanges: the one whose time is over, and the one that is
 * broken off, end; the last goes on. */
static void a_time_that_is_over_ends_one_exchange(void **state)
{
    (void)state;
    struct sl_http *http = new_http();
    struct sl_http_exchange e[3];
    const struct wire_step never = {.reply = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
                                    .close = false};
    const struct wire_step steps[] = {never, never, never};
    struct wire *wire = wire_start(steps, 3);
    char url[64];
    snprintf(url, sizeof(url), "http://%s/", wire_address(wire));
    for (size_t i = 0; i < 3; i++) {
        sl_http_exchange_init(&e[i]);
        e[i].method = "GET";
        e[i].url = url;
        e[i].timeout_ms = i == 0 ? 300 : 60000;
        sl_http_start(http, &e[i]);
    }
    assert_int_equal(sl_http_wait(http, 5), 3);
    assert_int_equal(sl_http_wait(http, 30000), 2);
    assert_true(e[0].outcome == SL_HTTP_BROKEN || e[0].outcome == SL_HTTP_NOT_SENT);
    assert_true(e[0].timed_out);
    sl_http_abandon(http, &e[1]);
    assert_true(e[1].outcome == SL_HTTP_BROKEN || e[1].outcome == SL_HTTP_NOT_SENT);
    assert_false(e[1].timed_out);
    assert_int_equal(e[2].outcome, SL_HTTP_RUNNING);
    sl_http_abandon(http, &e[2]);
    for (size_t i = 0; i < 3; i++)
        sl_http_exchange_clean_up(&e[i]);
    sl_http_destroy(http);
    wire_stop(wire);
}

/* ---- memory ---- */

static void a_secret_answer_is_wiped_and_another_is_kept(void **state)
{
    (void)state;
    struct scripted_server *server = scripted_server_start(answer_done, NULL);
    struct sl_http *http = new_http();
    for (int is_secret = 0; is_secret < 2; is_secret++) {
        struct sl_http_exchange e;
        sl_http_exchange_init(&e);
        e.method = "GET";
        e.url = scripted_server_url(server);
        e.timeout_ms = 10000;
        e.is_secret = is_secret;
        run_exchange(http, &e);
        assert_span_is(sl_buffer_span(&e.body), "done");
        sl_http_exchange_forget(&e);
        assert_int_equal(e.body.len, is_secret ? 0 : 4);
        assert_memory_equal(e.body.ptr, is_secret ? "\0\0\0\0" : "done", 4);
        sl_http_exchange_clean_up(&e);
    }
    sl_http_destroy(http);
    sl_http_destroy(NULL);
    scripted_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_in_pieces_arrives_whole),
        cmocka_unit_test(a_request_goes_where_its_url_says),
        cmocka_unit_test(a_request_on_a_kept_connection_that_ends_is_sent_again),
        cmocka_unit_test(header_lines_arrive_one_by_one),
        cmocka_unit_test(every_end_has_its_outcome),
        cmocka_unit_test(header_values_are_found_by_their_name),
        cmocka_unit_test(dates_are_read),
        cmocka_unit_test(a_bell_ends_the_wait),
        cmocka_unit_test(a_time_that_is_over_ends_one_exchange),
        cmocka_unit_test(a_secret_answer_is_wiped_and_another_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
