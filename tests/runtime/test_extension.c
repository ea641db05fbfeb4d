/* The internal extension: its registration, and the question that waits for ever, on a virtual clock; then
 * with the real process, alone and with workers. */
#include "tests/support/disk_fault.h"
#include "tests/support/haste.h"
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/api/extension.h"
#include "runtime/start.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- by itself ---- */

struct desk {
    int listener;
    char address[64];
    struct sl_clock_virtual clock;
    struct sl_extension *e;
    struct sl_error error;
    const char *reply; /* to the registration */
    char asked[4096];  /* the last request */
    pthread_t thread;
};

static int take_request(struct desk *d)
{
    size_t n = 0;
    int fd = accept(d->listener, NULL, NULL);
    assert_true(fd >= 0);
    d->asked[0] = '\0';
    while (!strstr(d->asked, "\r\n\r\n") ||
           (strstr(d->asked, "Content-Length: 13") && !strstr(d->asked, "[]}"))) {
        ssize_t more = recv(fd, d->asked + n, sizeof(d->asked) - 1 - n, 0);
        assert_true(more > 0);
        n += (size_t)more;
        d->asked[n] = '\0';
    }
    return fd;
}

static void *register_one(void *arg)
{
    struct desk *d = arg;
    int fd = take_request(d);
    /* In two pieces. */
    size_t n = strlen(d->reply), half = n / 2;
    (void)!write(fd, d->reply, half);
    usleep(2000);
    (void)!write(fd, d->reply + half, n - half);
    close(fd);
    return NULL;
}

static void desk_open(struct desk *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    *d = (struct desk){.error = SL_NO_ERROR};
    sl_clock_virtual_init(&d->clock, 1700000000, 1);
    d->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(d->listener, 16), 0);
    assert_int_equal(getsockname(d->listener, (struct sockaddr *)&at, &size), 0);
    snprintf(d->address, sizeof(d->address), "127.0.0.1:%d", ntohs(at.sin_port));
}

static void desk_close(struct desk *d)
{
    sl_extension_close(d->e);
    close(d->listener);
}

static enum sl_status enlist(struct desk *d, const char *endpoint, const char *reply)
{
    d->reply = reply;
    sl_error_clear(&d->error);
    assert_int_equal(pthread_create(&d->thread, NULL, register_one, d), 0);
    enum sl_status status = sl_extension_open(endpoint, &d->clock.clock, &d->e, &d->error);
    pthread_join(d->thread, NULL);
    return status;
}

static void registers_as_one_that_wants_no_events(void **state)
{
    (void)state;
    static const char *const forms[] = {"%s", "http://%s", "http://%s/", "http://%s/a/b//"};
    for (size_t i = 0; i < 4; i++) {
        struct desk d;
        char endpoint[128];
        desk_open(&d);
        snprintf(endpoint, sizeof(endpoint), "%s", d.address);
        const char *mark = strstr(forms[i], "%s");
        snprintf(endpoint, sizeof(endpoint), "%.*s%s%s", (int)(mark - forms[i]), forms[i], d.address,
                 mark + 2);
        assert_int_equal(enlist(&d, endpoint, API_REGISTERED), SL_OK);
        const char *wanted = i == 3 ? "POST /a/b/2020-01-01/extension/register HTTP/1.1\r\n"
                                    : "POST /2020-01-01/extension/register HTTP/1.1\r\n";
        assert_int_equal(strncmp(d.asked, wanted, strlen(wanted)), 0);
        char host[96];
        snprintf(host, sizeof(host), "\r\nHost: %s\r\n", d.address);
        assert_non_null(strstr(d.asked, host));
        assert_non_null(strstr(d.asked, "\r\nLambda-Extension-Name: sluice\r\n"));
        assert_non_null(strstr(d.asked, "\r\n\r\n{\"events\":[]}"));
        assert_int_equal(sl_extension_fd(d.e), -1);
        assert_int_equal(sl_extension_wait_ms(d.e), 0);
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
        assert_true(sl_extension_fd(d.e) >= 0);
        assert_int_equal(sl_extension_wait_ms(d.e), 60000);
        close(take_request(&d));
        wanted = i == 3 ? "GET /a/b/2020-01-01/extension/event/next HTTP/1.1\r\n"
                        : "GET /2020-01-01/extension/event/next HTTP/1.1\r\n";
        assert_int_equal(strncmp(d.asked, wanted, strlen(wanted)), 0);
        assert_non_null(strstr(d.asked, "\r\nLambda-Extension-Identifier: id-1\r\n\r\n"));
        desk_close(&d);
    }
}

/* The brackets are not a part of the address. */
static void an_address_of_version_6_is_in_brackets(void **state)
{
    (void)state;
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof(at);
    struct desk d;
    desk_open(&d);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0) {
        close(d.listener);
        skip(); /* this machine has none */
    }
    close(d.listener);
    d.listener = fd;
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(d.address, sizeof(d.address), "[::1]:%d", ntohs(at.sin6_port));
    assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
    desk_close(&d);
}

/* "two.test" has two addresses; at the one that `refuses` says nobody listens. */
static int refuses;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out)
{
    static __typeof__(&getaddrinfo) real;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &symbol, sizeof(real));
    if (strcmp(host, "two.test") != 0)
        return real(host, port, hints, out);
    int failed = real(refuses == 0 ? "127.0.0.2" : "127.0.0.1", port, hints, out);
    return failed ? failed : real(refuses == 1 ? "127.0.0.2" : "127.0.0.1", port, hints, &(*out)->ai_next);
}

/* A name may have several addresses: the first at which somebody answers is enough. */
static void of_two_addresses_one_is_enough(void **state)
{
    (void)state;
    for (refuses = 0; refuses < 2; refuses++) {
        struct desk d;
        char endpoint[64];
        desk_open(&d);
        snprintf(endpoint, sizeof(endpoint), "two.test:%s", strchr(d.address, ':') + 1);
        assert_int_equal(enlist(&d, endpoint, API_REGISTERED), SL_OK);
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
        close(take_request(&d));
        assert_non_null(strstr(d.asked, "\r\nHost: two.test:"));
        desk_close(&d);
    }
}

static void a_wrong_registration_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *text;
    } cases[] = {
        {API_STATUS(403, "Forbidden"), "answered 403 to the registration"},
        {"HTTP/1.1 500 Oh\r\nlambda-extension-identifier: id\r\n\r\nwhy not",
         "500 to the registration: why not"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "answered 200 to the registration: {}"},
        {"HTTP/1.1 200 OK\r\nLambda-Extension-Identifier:  \r\n\r\n", "answered 200"},
        {"HTTP/1.1 201 Made\r\nLambda-Extension-Identifier: id\r\n\r\n", "answered 201"},
        {"FTP/1.1 200 OK\r\nLambda-Extension-Identifier: id\r\n\r\n", "answered 0"},
        {"HTTP/1.1\r\nLambda-Extension-Identifier:id\r\n\r\n", "answered 0"},
        {"HTTP/1.1 200 OK\r\nLambda-Extension-Identifier: id\r\n", "broke off its answer"},
        {"", "broke off its answer"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct desk d;
        desk_open(&d);
        assert_int_equal(enlist(&d, d.address, cases[i].reply), SL_FATAL);
        assert_string_equal(d.error.code, "NotRegistered");
        if (!strstr(d.error.text, cases[i].text))
            fail_msg("%zu: %s", i, d.error.text);
        assert_null(d.e);
        desk_close(&d);
    }
}

/* A clock on which each look takes so long. */
struct slow_clock {
    struct sl_clock clock;
    int64_t ms, step_ms;
};

static int64_t slow_now_ms(struct sl_clock *clock)
{
    struct slow_clock *slow = (struct slow_clock *)clock;
    return slow->ms += slow->step_ms;
}

/* Three seconds, and the function goes on without it. */
static void a_registration_that_hangs_is_given_up(void **state)
{
    (void)state;
    for (int64_t step_ms = 2999; step_ms <= 3000; step_ms++) {
        struct slow_clock slow = {.clock = *sl_clock_system(), .step_ms = step_ms};
        struct sl_extension *e = NULL;
        struct desk d;
        desk_open(&d);
        slow.clock.now_ms = slow_now_ms;
        assert_int_equal(sl_extension_open(d.address, &slow.clock, &e, &d.error), SL_FATAL);
        assert_string_equal(d.error.code, "NotRegistered");
        assert_string_equal(d.error.text, "the Extensions API did not answer the registration in time");
        desk_close(&d);
    }
}

static int lowest_free_descriptor(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Whatever of the system's fails: the registration says so, and the question is asked again; no descriptor is
 * lost. A signal that comes while the request is sent means nothing. */
static void what_the_system_refuses_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *only, *code;
        int err;
    } cases[] = {{"socket", "NoExtensionsApi", EMFILE}, {"send", "NoExtensionsApi", ECONNRESET}};
    for (size_t i = 0; i < 2; i++) {
        struct desk d;
        desk_open(&d);
        int lowest = lowest_free_descriptor();
        disk_fault_begin(1, cases[i].err, cases[i].only);
        assert_int_equal(sl_extension_open(d.address, &d.clock.clock, &d.e, &d.error), SL_FATAL);
        assert_string_equal(d.error.code, cases[i].code);
        assert_non_null(strstr(d.error.text, d.address));
        assert_int_equal(lowest_free_descriptor(), lowest);
        desk_close(&d);
    }
    static const char *const of_questions[] = {"socket", "send", "fstat"};
    for (size_t i = 0; i < 3; i++) {
        struct desk d;
        desk_open(&d);
        disk_fault_begin(1, EINTR, "send");
        assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
        assert_true(disk_fault_came());
        int lowest = lowest_free_descriptor();
        disk_fault_begin(1, ENOBUFS, of_questions[i]);
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
        assert_true(disk_fault_came());
        assert_non_null(strstr(d.error.text, "cannot be asked: there is no connection"));
        assert_int_equal(sl_extension_fd(d.e), -1);
        assert_int_equal(lowest_free_descriptor(), lowest);
        d.clock.ms += 100;
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
        assert_true(sl_extension_fd(d.e) >= 0);
        desk_close(&d);
        assert_int_equal(lowest_free_descriptor(), d.listener);
    }
}

/* The longest identifier, and one that is a byte longer; the longest answer, and one that never ends. */
static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct desk d;
        char reply[9000], fill[8001];
        memset(fill, 'x', sizeof(fill) - 1);
        fill[sizeof(fill) - 1] = '\0';
        if (i < 2)
            snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nlambda-extension-identifier: %.*s\r\n\r\n",
                     255 + i, fill);
        else
            snprintf(reply, sizeof(reply),
                     "HTTP/1.1 200 OK\r\nlambda-extension-identifier: a\r\nx: %.*s\r\n\r\n",
                     i == 2 ? 3900 : 8000, fill);
        desk_open(&d);
        assert_int_equal(enlist(&d, d.address, reply), i % 2 && i < 3 ? SL_FATAL : SL_OK);
        desk_close(&d);
    }
    /* A refusal whose head never ends: its status is all that is said. */
    struct desk d;
    char reply[9000];
    int n = snprintf(reply, sizeof(reply), "HTTP/1.1 403 Forbidden\r\nx: ");
    memset(reply + n, 'x', 8000);
    reply[n + 8000] = '\0';
    desk_open(&d);
    assert_int_equal(enlist(&d, d.address, reply), SL_FATAL);
    assert_string_equal(d.error.text, "the Extensions API answered 403 to the registration");
    desk_close(&d);
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    struct sl_clock_virtual clock;
    char endpoint[600];
    sl_clock_virtual_init(&clock, 1700000000, 1);
    static const struct {
        const char *before;
        int fill;
        const char *after, *code;
    } cases[] = {
        {"", 256, ":1", "InvalidEndpoint"},
        {"127.0.0.1:", 16, "", "InvalidEndpoint"},
        {"127.0.0.1:1/", 255, "", "InvalidEndpoint"},
        {"127.0.0.1:1/", 254, "", "NoExtensionsApi"},
        {"127.0.0.1:1", 0, "", "NoExtensionsApi"},
        {"[::1]:1", 0, "", "NoExtensionsApi"},
        {"127.255.255.254", 0, "", "NoExtensionsApi"},
        {"[]:1", 0, "", "NoExtensionsApi"},
        {"no.such.host.invalid:1", 0, "", "NoExtensionsApi"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_extension *e = NULL;
        struct sl_error error = SL_NO_ERROR;
        int n = snprintf(endpoint, sizeof(endpoint), "%s", cases[i].before);
        memset(endpoint + n, 'x', (size_t)cases[i].fill);
        snprintf(endpoint + n + cases[i].fill, 20, "%s", cases[i].after);
        assert_int_equal(sl_extension_open(endpoint, &clock.clock, &e, &error), SL_FATAL);
        if (strcmp(error.code, cases[i].code) != 0)
            fail_msg("%zu: %s %s", i, error.code, error.text);
        assert_null(e);
    }
}

/* How the question ends: it is asked again after pauses that double up to five seconds, and only the first
 * failure in a row is told. */
static void a_question_that_ends_is_asked_again(void **state)
{
    (void)state;
    static const char *const ends[] = {"", "HTTP/1.1 200 OK\r\n\r\n{}", "HTTP/1.1 403 Forbidden\r\n\r\n"};
    static const int pauses[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    static const char *const texts[] = {"ended: the connection was closed", "was answered, with status 200",
                                        "was answered, with status 403"};
    for (size_t i = 0; i < 3; i++) {
        struct desk d;
        desk_open(&d);
        assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
        for (size_t k = 0; k < 8; k++) {
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
            int fd = take_request(&d);
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK); /* it waits */
            (void)!write(fd, ends[i], strlen(ends[i]));
            close(fd);
            sl_error_clear(&d.error);
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
            assert_string_equal(d.error.code, k ? "" : "ExtensionLost");
            assert_true(k || strstr(d.error.text, texts[i]));
            assert_int_equal(sl_extension_fd(d.e), -1);
            assert_int_equal(sl_extension_wait_ms(d.e), pauses[k]);
            d.clock.ms += pauses[k] - 1;
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
            assert_int_equal(sl_extension_fd(d.e), -1);
            assert_int_equal(sl_extension_wait_ms(d.e), 1);
            d.clock.ms += 1 + (int)(k % 2);
            assert_int_equal(sl_extension_wait_ms(d.e), 0);
        }
        desk_close(&d);
    }
}

/* A connection that is reset, and not closed in order. */
static void a_connection_that_is_reset_is_asked_again(void **state)
{
    (void)state;
    const struct linger now = {.l_onoff = 1};
    struct desk d;
    desk_open(&d);
    assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
    assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
    int fd = take_request(&d);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
    assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
    assert_non_null(strstr(d.error.text, "ended: the connection was closed"));
    d.clock.ms += 100;
    assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
    close(take_request(&d));
    desk_close(&d);
}

/* A question that waited for a minute was no failure: the next one that ends is told again. */
static void a_question_that_waited_long_was_no_failure(void **state)
{
    (void)state;
    for (int waited_ms = 59999; waited_ms <= 60000; waited_ms++) {
        struct desk d;
        desk_open(&d);
        assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
            int fd = take_request(&d);
            if (k) {
                d.clock.ms += waited_ms;
                assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
            }
            close(fd);
            sl_error_clear(&d.error);
            assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
            d.clock.ms += k ? 0 : 100;
        }
        bool is_new = waited_ms == 60000;
        assert_string_equal(d.error.code, is_new ? "ExtensionLost" : "");
        assert_int_equal(sl_extension_wait_ms(d.e), is_new ? 100 : 200);
        desk_close(&d);
    }
}

/* A handler closed its connection, and the number is another file's by now (a pipe's, a socket's), which is
 * left alone. */
static void a_connection_that_a_handler_closed_is_missed(void **state)
{
    (void)state;
    for (int is_taken = 0; is_taken < 3; is_taken++) {
        struct desk d;
        int ends[2];
        desk_open(&d);
        assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_OK);
        int fd = take_request(&d), number = sl_extension_fd(d.e);
        close(number);
        assert_int_equal(is_taken == 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
        if (is_taken)
            assert_int_equal(dup2(ends[0], number), number);
        sl_error_clear(&d.error);
        assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
        assert_non_null(strstr(d.error.text, "ended: a handler closed its connection"));
        assert_int_equal(sl_extension_fd(d.e), -1);
        if (is_taken) {
            assert_int_equal(write(ends[1], "x", 1), 1);
            char byte;
            assert_int_equal(read(number, &byte, 1), 1);
            if (number != ends[0])
                close(number);
        }
        close(ends[0]);
        close(ends[1]);
        close(fd);
        desk_close(&d);
    }
}

static void without_a_server_it_is_asked_again(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d);
    assert_int_equal(enlist(&d, d.address, API_REGISTERED), SL_OK);
    close(d.listener);
    assert_int_equal(sl_extension_turn(d.e, &d.error), SL_RETRY);
    assert_non_null(strstr(d.error.text, "cannot be asked: there is no connection"));
    assert_int_equal(sl_extension_wait_ms(d.e), 100);
    d.listener = -1;
    desk_close(&d);
    sl_extension_close(NULL);
}

/* ---- in the process ---- */

#define CLOSES                                                                                               \
    "{'report_batch_item_failures':true,'routes':[{'name':'c','handler':'closes','told':'${DIR}/told',"      \
    "'on_failure':'report'}]}"

static int set_up(void **state)
{
    *state = api_new();
    api_set(*state, "SLUICE_SHUTDOWN=1");
    return 0;
}

static int tear_down(void **state)
{
    api_destroy(*state);
    return 0;
}

static void a_process_registers_and_waits(void **state)
{
    struct api *a = *state;
    api_start(a, CLOSES);
    struct api_request *registration = api_take(a, API_REGISTER);
    assert_string_equal(api_body(registration), "{\"events\":[]}");
    assert_int_equal(api_count(a, API_NEXT, 20), 0); /* first this, then events */
    api_reply(a, registration, API_REGISTERED);
    struct api_request *asks = api_take(a, API_ASK);
    assert_non_null(strstr(api_head(asks), "Lambda-Extension-Identifier: id-1"));
    api_deliver_all(a, api_event(1000, 2));
    api_reply(a, asks, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    asks = api_take(a, API_ASK); /* asked again while the process waits for an event */
    api_deliver_all(a, api_event(1002, 2));
    assert_true(api_is_open(asks));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "told", "closed"), 1);
    assert_int_equal(
        api_times(a, "err", "WARN ExtensionLost: the extension's next was answered, with status 200"), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
}

static int start_in_haste(void *arg)
{
    extern char **environ;
    (void)arg;
    haste(20);
    return sl_start("bootstrap", environ);
}

/* However often in a row: one line, and the process goes on. */
static void a_question_that_keeps_ending_is_told_once(void **state)
{
    struct api *a = *state;
    char path[300];
    snprintf(path, sizeof(path), "%s/sluice.json", api_folder(a));
    test_write(path, json(CLOSES));
    api_start_this(a, start_in_haste, NULL);
    api_reply(a, api_take(a, API_REGISTER), API_REGISTERED);
    for (int i = 0; i < 4; i++)
        api_hang_up(a, api_take(a, API_ASK), NULL, 0);
    api_await(a, API_ASK, 1);
    api_deliver_all(a, api_event(1000, 2));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "ExtensionLost"), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
}

static void without_the_registration_a_process_goes_on(void **state)
{
    struct api *a = *state;
    api_start(a, CLOSES);
    api_reply(a, api_take(a, API_REGISTER), API_STATUS(403, "Forbidden"));
    api_deliver_all(a, api_event(1000, 2));
    assert_int_equal(api_count(a, API_ASK, 20), 0);
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "err", "WARN NotRegistered: the Extensions API answered 403"), 1);
    assert_int_equal(api_times(a, "err", "going on without SIGTERM"), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
}

static void off_means_off(void **state)
{
    struct api *a = *state;
    api_set(a, "SLUICE_SHUTDOWN=0");
    api_start(a, CLOSES);
    api_deliver_all(a, api_event(1000, 1));
    assert_int_equal(api_count(a, "POST /2020", 20), 0);
    assert_int_equal(api_stop(a), 0);
    api_set(a, "SLUICE_SHUTDOWN=1");
    api_set(a, "AWS_LAMBDA_RUNTIME_API=");
    api_start(a, CLOSES);
    assert_int_equal(api_wait(a), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
}

static void workers_have_one_for_all(void **state)
{
    struct api *a = *state;
    api_set(a, "AWS_LAMBDA_MAX_CONCURRENCY=3");
    api_start(a, CLOSES);
    api_reply(a, api_take(a, API_REGISTER), API_REGISTERED);
    struct api_request *asks = api_take(a, API_ASK);
    api_await(a, API_NEXT, 3);
    assert_int_equal(api_count(a, "POST /2020", 0), 0);
    api_hang_up(a, asks, NULL, 0);
    asks = api_take(a, API_ASK); /* the parent asks again */
    for (size_t i = 0; i < 6; i++)
        api_deliver_all(a, api_event(1000 + i, 1));
    assert_true(api_is_open(asks));
    assert_int_equal(api_stop(a), 0);
    assert_int_equal(api_times(a, "told", "closed"), 3);
    assert_int_equal(api_times(a, "err", "ExtensionLost: the extension's next ended"), 1);
    assert_int_equal(api_times(a, "err", "\n"), 1);
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_as_one_that_wants_no_events),
        cmocka_unit_test(an_address_of_version_6_is_in_brackets),
        cmocka_unit_test(of_two_addresses_one_is_enough),
        cmocka_unit_test(a_wrong_registration_is_refused),
        cmocka_unit_test(a_registration_that_hangs_is_given_up),
        cmocka_unit_test(what_the_system_refuses_is_said),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(an_address_that_is_none_is_refused),
        cmocka_unit_test(a_question_that_ends_is_asked_again),
        cmocka_unit_test(a_connection_that_is_reset_is_asked_again),
        cmocka_unit_test(a_question_that_waited_long_was_no_failure),
        cmocka_unit_test(a_connection_that_a_handler_closed_is_missed),
        cmocka_unit_test(without_a_server_it_is_asked_again),
        SERVES(a_process_registers_and_waits),
        SERVES(a_question_that_keeps_ending_is_told_once),
        SERVES(without_the_registration_a_process_goes_on),
        SERVES(off_means_off),
        SERVES(workers_have_one_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
