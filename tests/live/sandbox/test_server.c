/* The local Runtime API, by a client of a few lines: which states, codes and counts each request meets. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "live/sandbox/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RUNTIME "/2018-06-01/runtime/"
#define LARGEST (6 * 1024 * 1024 + 100)

static const struct sl_server_event event = {.request_id = "id-1",
                                             .function_arn = "arn:f",
                                             .trace_id = "Root=1",
                                             .payload = {"{\"a\":1}", 7},
                                             .timeout_ms = 600000};

static int set_up(void **state)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_server *s;
    assert_int_equal(sl_server_start(&s, &error), SL_OK);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    sl_server_stop(*state);
    return 0;
}

static int dial(const struct sl_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)sl_server_port(s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static void turn(struct sl_server *s)
{
    struct pollfd ready = {.fd = sl_server_fd(s), .events = POLLIN};
    (void)poll(&ready, 1, 20);
    sl_server_run(s);
}

static void ask(struct sl_server *s, int fd, const char *method, const char *path, const char *body,
                size_t len)
{
    char head[500];
    int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", method,
                     path, len);
    assert_int_equal(send(fd, head, (size_t)n, 0), n);
    for (size_t done = 0; done < len;) {
        ssize_t sent = send(fd, body + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0)
            done += (size_t)sent;
        turn(s);
    }
}

/* What has been answered within a while; "" when nothing was. */
static const char *answer(struct sl_server *s, int fd)
{
    static char text[4096];
    size_t n = 0;
    for (int i = 0; i < 250 && (!n || !strstr(text, "\r\n\r\n")); i++) {
        turn(s);
        ssize_t more = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);
        n += more > 0 ? (size_t)more : 0;
        text[n] = '\0';
    }
    text[n] = '\0';
    return text;
}

/* One request on a connection of its own: its code. */
static long code_of(struct sl_server *s, const char *method, const char *path, const char *body)
{
    int fd = dial(s);
    ask(s, fd, method, path, body, strlen(body));
    const char *text = answer(s, fd);
    close(fd);
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? strtol(text + 9, NULL, 10) : 0;
}

static long post(struct sl_server *s, const char *rest, const char *body)
{
    char path[300];
    snprintf(path, sizeof(path), RUNTIME "%s", rest);
    return code_of(s, "POST", path, body);
}

static void an_event_waits_for_its_question_and_the_other_way_round(void **state)
{
    struct sl_server *s = *state;
    assert_int_equal(sl_server_state(s), SL_SERVER_STARTING);
    int fd = dial(s);
    ask(s, fd, "GET", RUNTIME "invocation/next", "", 0);
    turn(s);
    turn(s);
    assert_int_equal(sl_server_state(s), SL_SERVER_IDLE);
    assert_true(sl_server_is_waiting(s));
    sl_server_offer(s, &event);
    assert_false(sl_server_is_waiting(s));
    const char *text = answer(s, fd);
    assert_int_equal(sl_server_state(s), SL_SERVER_RUNNING);
    assert_non_null(strstr(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "Lambda-Runtime-Aws-Request-Id: id-1\r\n"));
    assert_non_null(strstr(text, "Lambda-Runtime-Invoked-Function-Arn: arn:f\r\n"));
    assert_non_null(strstr(text, "Lambda-Runtime-Trace-Id: Root=1\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{\"a\":1}"));
    struct sl_clock *clock = sl_clock_system();
    const char *deadline = strstr(text, "Lambda-Runtime-Deadline-Ms: ");
    assert_non_null(deadline);
    int64_t left = strtoll(deadline + 28, NULL, 10) - clock->wall_ns(clock) / 1000000;
    assert_in_range(left, 300000, 600000);
    assert_in_range(sl_server_deadline_ms(s) - clock->now_ms(clock), 300000, 600000);
    assert_int_equal(post(s, "invocation/id-1/response", "[1]"), 202);
    assert_int_equal(sl_server_state(s), SL_SERVER_ANSWERED);
    assert_span_is(sl_server_body(s), "[1]");
    sl_server_settle(s);
    assert_int_equal(sl_server_state(s), SL_SERVER_IDLE);
    /* An event that is there before the question, with a limit that ends it earlier. */
    struct sl_server_event second = event;
    second.request_id = "id-2";
    second.trace_id = "";
    second.until_ms = clock->now_ms(clock) + 500;
    sl_server_offer(s, &second);
    assert_int_equal(sl_server_state(s), SL_SERVER_OFFERED);
    ask(s, fd, "GET", RUNTIME "invocation/next", "", 0);
    text = answer(s, fd);
    assert_non_null(strstr(text, "Request-Id: id-2\r\n"));
    assert_null(strstr(text, "Trace-Id"));
    assert_int_equal(sl_server_deadline_ms(s), second.until_ms);
    assert_int_equal(post(s, "invocation/id-2/error", "{}"), 202);
    assert_int_equal(sl_server_state(s), SL_SERVER_FAILED);
    struct sl_server_faults f = sl_server_faults(s);
    assert_int_equal(f.second_answers + f.wrong_ids + f.refetched + f.too_large + f.unknown, 0);
    close(fd);
}

static void take_event(struct sl_server *s)
{
    sl_server_offer(s, &event);
    assert_int_equal(code_of(s, "GET", RUNTIME "invocation/next", ""), 200);
}

/* What a well-behaved runtime never does is refused, and counted by its kind. */
static void each_fault_has_its_code_and_its_count(void **state)
{
    struct sl_server *s = *state;
    assert_int_equal(post(s, "invocation//response", "x"), 400); /* nothing was offered */
    assert_int_equal(sl_server_faults(s).wrong_ids, 1);
    sl_server_offer(s, &event);
    assert_int_equal(post(s, "invocation/id-1/response", "x"), 403); /* not fetched yet */
    assert_int_equal(sl_server_faults(s).second_answers, 1);
    take_event(s);
    int64_t deadline_ms = sl_server_deadline_ms(s);
    assert_int_equal(code_of(s, "GET", RUNTIME "invocation/next", ""), 200);
    assert_int_equal(sl_server_faults(s).refetched, 1);
    assert_int_equal(sl_server_deadline_ms(s), deadline_ms);
    assert_int_equal(post(s, "invocation/id-2/response", "x"), 400);
    assert_int_equal(sl_server_faults(s).wrong_ids, 2);
    assert_int_equal(sl_server_state(s), SL_SERVER_RUNNING);
    assert_int_equal(post(s, "init/error", "x"), 403);
    assert_int_equal(post(s, "invocation/id-1/response", "x"), 202);
    assert_int_equal(post(s, "invocation/id-1/error", "y"), 403);
    assert_int_equal(sl_server_faults(s).second_answers, 2);
    assert_span_is(sl_server_body(s), "x");
    struct sl_server_event second = event;
    second.request_id = "id-2";
    sl_server_settle(s);
    sl_server_offer(s, &second);
    assert_int_equal(post(s, "invocation/id-1/response", "z"), 400); /* of the event before */
    assert_int_equal(sl_server_faults(s).second_answers, 3);
    assert_int_equal(sl_server_faults(s).wrong_ids, 2);
    char longest[100];
    memset(longest, 'i', sizeof(longest));
    for (size_t n = 63; n <= 64; n++) {
        char path[200];
        snprintf(path, sizeof(path), "invocation/%.*s/response", (int)n, longest);
        assert_int_equal(post(s, path, ""), 400);
    }
    assert_int_equal(sl_server_faults(s).wrong_ids, 4);
}

static void routes_that_do_not_exist_are_counted(void **state)
{
    struct sl_server *s = *state;
    static const char *const paths[][2] = {{"GET", "/"},
                                           {"POST", RUNTIME "invocation/next"},
                                           {"POST", RUNTIME "invocation/id-1"},
                                           {"POST", RUNTIME "invocation/id-1/answer"},
                                           {"GET", RUNTIME "init/error"},
                                           {"GET", RUNTIME "invocation/id-1/response"},
                                           {"POST", "/ping"},
                                           {"GET", "/2020-01-01/extension/event/next"}};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(code_of(s, paths[i][0], paths[i][1], ""), 404);
        assert_int_equal(sl_server_faults(s).unknown, i + 1);
    }
    assert_int_equal(code_of(s, "GET", "/ping", ""), 200);
    assert_int_equal(sl_server_faults(s).unknown, 8);
}

static void an_init_error_is_taken_before_the_first_event_is_fetched(void **state)
{
    struct sl_server *s = *state;
    sl_server_offer(s, &event);
    assert_int_equal(post(s, "init/error", "{\"errorMessage\":\"m\"}"), 202);
    assert_int_equal(sl_server_state(s), SL_SERVER_INIT_FAILED);
    assert_span_is(sl_server_body(s), "{\"errorMessage\":\"m\"}");
    sl_server_settle(s);
    assert_int_equal(sl_server_state(s), SL_SERVER_INIT_FAILED);
    assert_int_equal(post(s, "init/error", "x"), 403);
}

/* The largest answer, and one byte more. */
static void an_answer_that_is_too_large_is_a_function_error(void **state)
{
    struct sl_server *s = *state;
    char *body = malloc(LARGEST + 1);
    assert_non_null(body);
    memset(body, 'x', LARGEST + 1);
    for (size_t more = 0; more < 2; more++) {
        take_event(s);
        int fd = dial(s);
        ask(s, fd, "POST", RUNTIME "invocation/id-1/response", body, LARGEST + more);
        assert_int_equal(strtol(answer(s, fd) + 9, NULL, 10), more ? 413 : 202);
        close(fd);
        assert_int_equal(sl_server_faults(s).too_large, more);
        assert_int_equal(sl_server_state(s), more ? SL_SERVER_FAILED : SL_SERVER_ANSWERED);
        struct sl_span said = sl_server_body(s);
        assert_true(more ? memmem(said.ptr, said.len, "ResponseSizeTooLarge", 20) != NULL
                         : said.len == LARGEST);
        sl_server_settle(s);
    }
    free(body);
}

static void it_stops_while_a_question_waits(void **state)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_server *s;
    (void)state;
    assert_int_equal(sl_server_start(&s, &error), SL_OK);
    int fd = dial(s);
    ask(s, fd, "GET", RUNTIME "invocation/next", "", 0);
    turn(s);
    turn(s);
    assert_true(sl_server_is_waiting(s));
    sl_server_stop(s);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    /* One whose asker has gone. */
    assert_int_equal(sl_server_start(&s, &error), SL_OK);
    fd = dial(s);
    ask(s, fd, "GET", RUNTIME "invocation/next", "", 0);
    turn(s);
    turn(s);
    close(fd);
    sl_server_offer(s, &event);
    turn(s);
    assert_false(sl_server_is_waiting(s));
    sl_server_stop(s);
    sl_server_stop(NULL);
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(an_event_waits_for_its_question_and_the_other_way_round),
        SERVES(each_fault_has_its_code_and_its_count),
        SERVES(routes_that_do_not_exist_are_counted),
        SERVES(an_init_error_is_taken_before_the_first_event_is_fetched),
        SERVES(an_answer_that_is_too_large_is_a_function_error),
        cmocka_unit_test(it_stops_while_a_question_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
