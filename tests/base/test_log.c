/* Log lines: what is in them, when they are written, and in which pieces. */
#include "tests/support/test.h"

#include "base/json_write.h"
#include "base/log.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whatever is logged, each line is one JSON object with no control byte in it. */
static void log_lines_cannot_be_injected(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sl_log log;
    sl_log_init(&log, fds[1], SL_INFO, SL_LOG_JSON, sl_clock_system());
    snprintf(log.request_id, sizeof(log.request_id), "id\"\n{");
    log.route = "a\x1b[31m\"";
    sl_log(&log, SL_DEBUG, "%s", "below the level");
    sl_log(&log, SL_WARN, "value %s", "\n{\"level\":\"FATAL\"}\r\xFF");
    sl_log_metric(&log, "fn\n", "Records", 3, "Count");
    close(fds[1]);
    char bytes[4096];
    ssize_t n = read(fds[0], bytes, sizeof(bytes) - 1);
    assert_true(n > 0);
    close(fds[0]);
    bytes[n] = '\0';
    int lines = 0;
    for (char *line = bytes, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        json_t *value = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_true(json_is_object(value));
        for (char *p = line; p < end; p++)
            assert_true((unsigned char)*p >= 0x20);
        json_decref(value);
    }
    assert_int_equal(lines, 2);
    assert_int_equal(sl_log_level("warn", SL_INFO), SL_WARN);
    assert_int_equal(sl_log_level("FATAL", SL_INFO), SL_ERROR);
    assert_int_equal(sl_log_level("what", SL_INFO), SL_INFO);
    sl_log_clean_up(&log);
}

static void text_lines_stay_one_line(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sl_log log;
    sl_log_init(&log, fds[1], SL_INFO, SL_LOG_TEXT, sl_clock_system());
    snprintf(log.request_id, sizeof(log.request_id), "id\n");
    log.route = "a\r";
    sl_log(&log, SL_WARN, "said \"%s\"", "\n\x1b[2J\xC3\xA4");
    close(fds[1]);
    char bytes[256];
    ssize_t n = read(fds[0], bytes, sizeof(bytes));
    close(fds[0]);
    assert_span_is(sl_span(bytes, (size_t)n), "WARN id\\n [a\\x0d] said \"\\n\\x1b[2J\xC3\xA4\"\n");
    sl_log_clean_up(&log);
}

/* ---- into a socket that keeps each write apart ---- */

struct pieces {
    struct sl_log log;
    struct sl_clock_virtual clock;
    int fds[2];
};

static void begin(struct pieces *p, enum sl_level level, enum sl_log_format format)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, p->fds), 0);
    sl_clock_virtual_init(&p->clock, 1600000000000000000, 1);
    sl_log_init(&p->log, p->fds[1], level, format, &p->clock.clock);
}

static void end(struct pieces *p)
{
    sl_log_clean_up(&p->log);
    close(p->fds[0]);
    close(p->fds[1]);
}

/* The next write, with a NUL after it; the caller frees it. NULL: there is none. */
static char *next(struct pieces *p, size_t *len)
{
    static char bytes[1 << 19];
    ssize_t n = recv(p->fds[0], bytes, sizeof(bytes) - 1, 0);
    if (n < 0)
        return NULL;
    *len = (size_t)n;
    bytes[n] = '\0';
    return strdup(bytes);
}

static void next_is(struct pieces *p, const char *text)
{
    size_t n;
    char *got = next(p, &n);
    assert_non_null(got);
    assert_string_equal(got, text);
    free(got);
}

static void nothing_more(struct pieces *p)
{
    size_t n;
    assert_null(next(p, &n));
}

static void a_line_says_when_how_bad_and_whose(void **state)
{
    (void)state;
    struct pieces p;
    begin(&p, SL_INFO, SL_LOG_JSON);
    sl_log(&p.log, SL_INFO, "a %d", 1);
    next_is(&p, json("{'timestamp':'2020-09-13T12:26:40.000Z','level':'INFO','message':'a 1'}\n"));
    snprintf(p.log.request_id, sizeof(p.log.request_id), "q1");
    p.log.route = "r1";
    sl_log(&p.log, SL_ERROR, "b\tc\n\xE2\x80\xAE\xC2\x85");
    next_is(&p, json("{'timestamp':'2020-09-13T12:26:40.000Z','level':'ERROR','requestId':'q1','route':'r1',"
                     "'message':'b\\tc\\n\\\\u202e\\\\u0085'}\n"));
    sl_log_facts(&p.log, SL_WARN, SL_LIT("m"), SL_LIT(",\"n\":1"));
    next_is(&p, json("{'timestamp':'2020-09-13T12:26:40.000Z','level':'WARN','requestId':'q1','route':'r1',"
                     "'message':'m','n':1}\n"));
    end(&p);
    begin(&p, SL_TRACE, SL_LOG_TEXT);
    sl_log(&p.log, SL_TRACE, "a");
    next_is(&p, "TRACE a\n");
    snprintf(p.log.request_id, sizeof(p.log.request_id), "q1");
    p.log.route = "r1";
    sl_log_facts(&p.log, SL_DEBUG, SL_LIT("m"), SL_LIT(",\"n\":1"));
    next_is(&p, "DEBUG q1 [r1] m\n");
    end(&p);
    sl_log_clean_up(NULL);
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    for (int level = SL_TRACE; level <= SL_OFF; level++)
        for (int line = SL_TRACE; line <= SL_ERROR; line++) {
            struct pieces p;
            begin(&p, (enum sl_level)level, SL_LOG_TEXT);
            sl_log(&p.log, (enum sl_level)line, "x");
            sl_log_facts(&p.log, (enum sl_level)line, SL_LIT("y"), SL_LIT(""));
            for (int i = 0; i < 2 && line >= level; i++) {
                size_t n;
                free(next(&p, &n));
            }
            nothing_more(&p);
            end(&p);
        }
    struct pieces p;
    begin(&p, SL_TRACE, SL_LOG_TEXT);
    sl_log_write(&p.log, SL_OFF, "x");
    p.log.fd = -1;
    sl_log(&p.log, SL_ERROR, "x");
    nothing_more(&p);
    end(&p);
}

static void a_level_is_read_in_either_case(void **state)
{
    (void)state;
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};
    for (int i = 0; i < 5; i++) {
        char lower[8] = {0};
        for (size_t k = 0; names[i][k]; k++)
            lower[k] = (char)(names[i][k] | 0x20);
        assert_int_equal(sl_log_level(names[i], SL_OFF), i);
        assert_int_equal(sl_log_level(lower, SL_OFF), i);
    }
    assert_int_equal(sl_log_level("fatal", SL_TRACE), SL_ERROR);
    assert_int_equal(sl_log_level(NULL, SL_WARN), SL_WARN);
    assert_int_equal(sl_log_level("", SL_DEBUG), SL_DEBUG);
}

/* Lines of these lengths in one go. */
static void put(struct pieces *p, const size_t *lengths, size_t n)
{
    struct sl_buffer *b = sl_log_metrics_begin(&p->log);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 1; k < lengths[i]; k++)
            sl_buffer_add_char(b, (char)('a' + i));
        sl_buffer_add_char(b, '\n');
    }
    sl_log_metrics_end(&p->log);
}

/* Whole lines, as many as a pipe takes at once; a longer one goes alone. */
static void lines_go_out_whole(void **state)
{
    (void)state;
    static const struct {
        size_t lines[4], pieces[4];
    } cases[] = {
        {{10, 20}, {30}},
        {{PIPE_BUF}, {PIPE_BUF}},
        {{PIPE_BUF + 1}, {PIPE_BUF + 1}},
        {{PIPE_BUF - 1, 1}, {PIPE_BUF}},
        {{PIPE_BUF - 1, 2}, {PIPE_BUF - 1, 2}},
        {{PIPE_BUF, 1}, {PIPE_BUF, 1}},
        {{2000, 2000, 2000}, {4000, 2000}},
        {{5000, 10, 10}, {5000, 20}},
        {{10, 5000, 10}, {10, 5000, 10}},
        {{3000, 3000, 3000, 900}, {3000, 3000, 3900}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pieces p;
        size_t n = 0, len = 0;
        begin(&p, SL_INFO, SL_LOG_JSON);
        while (n < 4 && cases[i].lines[n])
            n++;
        put(&p, cases[i].lines, n);
        for (size_t k = 0; k < 4 && cases[i].pieces[k]; k++) {
            char *got = next(&p, &len);
            assert_non_null(got);
            assert_int_equal(len, cases[i].pieces[k]);
            assert_int_equal(got[len - 1], '\n');
            free(got);
        }
        nothing_more(&p);
        put(&p, cases[i].lines, 0); /* nothing of it is left */
        nothing_more(&p);
        end(&p);
    }
}

/* A line that is too long is cut, and the next one begins at its own beginning. */
static void a_line_has_240_kilobytes_at_most(void **state)
{
    (void)state;
    size_t head = strlen("INFO \n");
    char *text = malloc(SL_LOG_LINE_BYTES + 10);
    memset(text, 'x', SL_LOG_LINE_BYTES + 10);
    char *path = test_folder(), *name = NULL;
    assert_true(asprintf(&name, "%s/log", path) > 0);
    for (size_t bytes = SL_LOG_LINE_BYTES - head - 1; bytes <= SL_LOG_LINE_BYTES + 10; bytes += 6) {
        struct sl_log log;
        FILE *file = fopen(name, "w");
        sl_log_init(&log, fileno(file), SL_INFO, SL_LOG_TEXT, sl_clock_system());
        sl_log_facts(&log, SL_INFO, sl_span(text, bytes), SL_LIT(""));
        sl_log(&log, SL_INFO, "next");
        sl_log_clean_up(&log);
        fclose(file);
        size_t len, whole = bytes + head < SL_LOG_LINE_BYTES ? bytes + head : SL_LOG_LINE_BYTES;
        char *got = test_read(name, &len);
        assert_int_equal(len, whole + strlen("INFO next\n"));
        assert_int_equal(got[whole - 1], '\n');
        assert_string_equal(got + whole, "INFO next\n");
        free(got);
    }
    free(text);
    free(name);
    test_folder_remove(path);
}

static void metrics_are_lines_unless_nobody_collects_them(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        [SL_TRACE] = NULL, [SL_DEBUG] = NULL, [SL_INFO] = NULL, [SL_WARN] = "WARN", [SL_ERROR] = "FATAL"};
    for (int level = SL_TRACE; level <= SL_ERROR; level++) {
        struct pieces p;
        begin(&p, (enum sl_level)level, SL_LOG_JSON);
        const char *got = sl_log_metrics_level(&p.log);
        assert_true(got == wanted[level] || strcmp(got, wanted[level]) == 0);
        p.log.format = SL_LOG_TEXT;
        assert_null(sl_log_metrics_level(&p.log));
        end(&p);
    }
    struct pieces p;
    begin(&p, SL_WARN, SL_LOG_JSON);
    p.clock.ms = 5;
    p.log.route = "r1";
    sl_log_metric(&p.log, "fn", "Records", 3, "Count");
    next_is(&p, json("{'_aws':{'Timestamp':1600000000005,'CloudWatchMetrics':[{'Namespace':'Sluice',"
                     "'Dimensions':[['Function','Route']],'Metrics':[{'Name':'Records','Unit':'Count'}]}]},"
                     "'level':'WARN','Function':'fn','Route':'r1','Records':3}\n"));
    p.log.no_metrics = true;
    assert_null(sl_log_metrics_begin(&p.log));
    sl_log_metric(&p.log, "fn", "Records", 3, "Count");
    nothing_more(&p);
    end(&p);
}

static void interrupt(int signal)
{
    (void)signal;
}

/* A full pipe takes a part of a line; a signal interrupts the wait; the reader still sees it whole. */
static void a_slow_reader_sees_whole_lines(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sigaction action = {.sa_handler = interrupt}, old; /* no SA_RESTART */
    sigaction(SIGUSR1, &action, &old);
    pid_t child = fork();
    if (child == 0) {
        struct sl_log log;
        close(fds[0]);
        sl_log_init(&log, fds[1], SL_INFO, SL_LOG_TEXT, sl_clock_system());
        char *text = malloc(200000);
        memset(text, 'x', 200000);
        sl_log_facts(&log, SL_INFO, sl_span(text, 200000), SL_LIT(""));
        sl_log(&log, SL_INFO, "next");
        _exit(0);
    }
    close(fds[1]);
    static char bytes[300000];
    size_t n = 0;
    for (int i = 0; i < 20; i++) {
        usleep(2000);
        kill(child, SIGUSR1);
        ssize_t got = read(fds[0], bytes + n, 10000);
        assert_true(got > 0);
        n += (size_t)got;
    }
    for (ssize_t got; (got = read(fds[0], bytes + n, sizeof(bytes) - n)) > 0;)
        n += (size_t)got;
    close(fds[0]);
    sigaction(SIGUSR1, &old, NULL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(n, strlen("INFO \n") + 200000 + strlen("INFO next\n"));
    assert_memory_equal(bytes + 200000 + strlen("INFO "), "\nINFO next\n", 11);
}

/* A reader that has gone: nothing of what could not be written comes later. */
static void what_cannot_be_written_is_left_out(void **state)
{
    (void)state;
    struct pieces p;
    begin(&p, SL_INFO, SL_LOG_TEXT);
    signal(SIGPIPE, SIG_IGN);
    int fd = p.log.fd;
    p.log.fd = p.fds[1] + 1000; /* closed */
    sl_log(&p.log, SL_INFO, "lost");
    p.log.fd = fd;
    sl_log(&p.log, SL_INFO, "seen");
    next_is(&p, "INFO seen\n");
    nothing_more(&p);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_lines_cannot_be_injected),
        cmocka_unit_test(text_lines_stay_one_line),
        cmocka_unit_test(a_line_says_when_how_bad_and_whose),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(a_level_is_read_in_either_case),
        cmocka_unit_test(lines_go_out_whole),
        cmocka_unit_test(a_line_has_240_kilobytes_at_most),
        cmocka_unit_test(metrics_are_lines_unless_nobody_collects_them),
        cmocka_unit_test(a_slow_reader_sees_whole_lines),
        cmocka_unit_test(what_cannot_be_written_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
