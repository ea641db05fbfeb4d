/* The last line of the log, by itself: what it says of the place, that it stays one line of the log's format
 * whatever the names hold, and that nothing is said where there is no log any more. */
#include "tests/support/leaks.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/contain/crash.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct death {
    enum sl_log_format format;
    const char *route, *request_id;
    bool is_in_port, is_taken_back;
};

/* What a process says that dies of the signal. */
static const char *last_words(const struct death *death, int number)
{
    int ends[2], status;
    static char said[2000];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct sl_log log;
        leaks_are_meant();
        sl_log_init(&log, ends[1], SL_INFO, death->format, sl_clock_system());
        snprintf(log.request_id, sizeof(log.request_id), "%s", death->request_id);
        log.route = death->route;
        log.is_in_port = death->is_in_port;
        sl_crash_report(&log);
        if (death->is_taken_back)
            sl_crash_report(NULL);
        kill(getpid(), number);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t more; (more = read(ends[0], said + n, sizeof(said) - 1 - n)) > 0;)
        n += (size_t)more;
    said[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
    return said;
}

#define AGAIN "; the batch will be delivered again\n"

static void it_says_where(void **state)
{
    (void)state;
    static const struct {
        struct death death;
        int number;
        const char *line;
    } cases[] = {
        {{.request_id = ""}, SIGSEGV, "FATAL the process died of SIGSEGV\n"},
        {{.request_id = "", .route = "r"},
         SIGBUS,
         "FATAL the process died of SIGBUS in the handler of route r\n"},
        {{.request_id = "id"}, SIGFPE, "FATAL the process died of SIGFPE, request id" AGAIN},
        {{.request_id = "id", .route = "r"},
         SIGILL,
         "FATAL the process died of SIGILL in the handler of route r, request id" AGAIN},
        {{.request_id = "id", .route = "r", .is_in_port = true},
         SIGABRT,
         "FATAL the process died of SIGABRT in a port of route r, request id" AGAIN},
        {{.request_id = "", .route = "r", .is_in_port = true, .format = SL_LOG_JSON},
         SIGSEGV,
         "{\"level\":\"FATAL\",\"message\":\"the process died of SIGSEGV in a port of route r\"}\n"},
        {{.request_id = "id", .route = "r", .is_taken_back = true}, SIGSEGV, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(last_words(&cases[i].death, cases[i].number), cases[i].line);
}

/* A name is the operator's, an id the platform's: whatever they hold, the line is one of its format. */
static void it_is_one_line_whatever_the_names_hold(void **state)
{
    (void)state;
    char odd[200], long_route[600];
    size_t n = 0;
    for (int c = 1; c < 0x80 && n < 127; c++)
        odd[n++] = (char)c;
    odd[n] = '\0';
    memset(long_route, 'r', sizeof(long_route) - 1);
    long_route[sizeof(long_route) - 1] = '\0';
    const struct death deaths[] = {
        {.format = SL_LOG_JSON, .route = odd, .request_id = odd},
        {.format = SL_LOG_JSON, .route = long_route, .request_id = odd},
        {.route = odd, .request_id = odd},
        {.route = long_route, .request_id = odd},
    };
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        const char *said = last_words(&deaths[i], SIGSEGV);
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
        for (const char *c = said; c[1]; c++)
            assert_true(*c >= 0x20);
        assert_true(strlen(said) < 512);
        assert_non_null(strstr(said, "the process died of SIGSEGV in the handler of route "));
        if (deaths[i].route == odd)
            assert_non_null(strstr(said, "#$%&'()*+,-./0123456789"));
        if (deaths[i].format != SL_LOG_JSON)
            continue;
        json_t *line = json_loads(said, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(line, "level")), "FATAL");
        assert_true(json_is_string(json_object_get(line, "message")));
        json_decref(line);
    }
}

int main(void)
{
#if defined(SL_SANITIZED)
    return 0; /* the sanitizer says more */
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_where),
        cmocka_unit_test(it_is_one_line_whatever_the_names_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
