/* What bootstrap reads from its environment: each variable within its bounds, at them, and beyond. */
#include "tests/support/test.h"

#include "runtime/settings.h"

#include <stdio.h>
#include <stdlib.h>

#define LAMBDA "AWS_LAMBDA_LOG_GROUP_NAME=group"

/* The settings of an environment of up to three variables, and of a program beside which no configuration is.
 */
static struct sl_settings read_from(const char *program, const char *a, const char *b, const char *c)
{
    struct sl_settings s;
    char *environment[4] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c, NULL};
    sl_settings_init(&s, environment, program);
    return s;
}

static struct sl_settings read_one(const char *a)
{
    return read_from("/var/runtime/bootstrap", a, NULL, NULL);
}

static void the_configuration_is_looked_for_in_three_places(void **state)
{
    (void)state;
    char *task = test_folder(), *other = test_folder(), path[300], root[300], program[300], named[300];
    snprintf(path, sizeof(path), "%s/sluice.json", task);
    snprintf(root, sizeof(root), "LAMBDA_TASK_ROOT=%s", task);
    snprintf(program, sizeof(program), "%s/bootstrap", other);
    snprintf(named, sizeof(named), "SLUICE_CONFIG=%s/my.json", other);
    char beside[300];
    snprintf(beside, sizeof(beside), "%s/sluice.json", other);
    struct sl_settings s = read_from(program, root, NULL, NULL);
    assert_string_equal(s.config_path, beside); /* there is none in LAMBDA_TASK_ROOT */
    sl_settings_clean_up(&s);
    test_write(path, "{}");
    s = read_from(program, root, NULL, NULL);
    assert_string_equal(s.config_path, path);
    sl_settings_clean_up(&s);
    s = read_from(program, root, named, NULL);
    assert_string_equal(s.config_path, named + strlen("SLUICE_CONFIG="));
    sl_settings_clean_up(&s);
    s = read_from(program, NULL, NULL, NULL);
    assert_string_equal(s.config_path, beside);
    sl_settings_clean_up(&s);
    s = read_from("bootstrap", NULL, NULL, NULL);
    assert_string_equal(s.config_path, "./sluice.json");
    sl_settings_clean_up(&s);
    s = read_from("/bootstrap", NULL, NULL, NULL);
    assert_string_equal(s.handler_path[0], "//handlers");
    sl_settings_clean_up(&s);
    test_folder_remove(task);
    test_folder_remove(other);
}

/* Folders come after the two that are always there; empty ones are none. */
static void folders_of_plugins_are_separated_by_colons(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "/a", "/a:/b", ":/a::/b:", "/a:/b:/c", "/a:/b:/c:"};
    static const size_t counts[] = {0, 1, 2, 2, 3, 3};
    static const char *const wanted[] = {"/a", "/b", "/c"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char variable[200];
        snprintf(variable, sizeof(variable), "SLUICE_HANDLER_PATH=%s", texts[i]);
        struct sl_settings s = read_one(variable);
        assert_string_equal(s.handler_path[0], "/var/runtime/handlers");
        assert_string_equal(s.handler_path[1], "/opt/sluice/handlers");
        for (size_t k = 0; k < counts[i]; k++)
            assert_string_equal(s.handler_path[2 + k], wanted[k]);
        assert_null(s.handler_path[2 + counts[i]]);
        sl_settings_clean_up(&s);
    }
    char many[600] = "SLUICE_HANDLER_PATH=";
    for (size_t at = strlen(many); at + 4 < sizeof(many); at += 3)
        snprintf(many + at, 4, "/x:");
    struct sl_settings s = read_one(many);
    size_t n = 0;
    while (s.handler_path[n])
        n++;
    assert_int_equal(n, sizeof(s.handler_path) / sizeof(s.handler_path[0]) - 1);
    sl_settings_clean_up(&s);
}

static void workers_are_from_1_to_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned workers;
    } cases[] = {{"0", 1}, {"1", 1}, {"2", 2}, {"1024", 1024}, {"1025", 1}, {"-1", 1}, {"3x", 1}, {"x", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char variable[100];
        snprintf(variable, sizeof(variable), "AWS_LAMBDA_MAX_CONCURRENCY=%s", cases[i].text);
        struct sl_settings s = read_one(variable);
        assert_int_equal(s.workers, cases[i].workers);
        sl_settings_clean_up(&s);
    }
    struct sl_settings s = read_one(NULL);
    assert_int_equal(s.workers, 1);
    assert_int_equal(s.report_fd, -1);
    sl_settings_clean_up(&s);
}

/* docs/METRICS.md: off outside of Lambda; a value that is none of the choices is named, and the default is
 * used. */
static void metrics_are_each_off_or_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
        size_t n_wrong;
    } cases[] = {{"each", 0, 0},
                 {"EACH", 0, 0},
                 {"off", SL_METRICS_OFF, 0},
                 {"1", 1000, 0},
                 {"86400", 86400000, 0},
                 {"86401", 0, 1},
                 {"0", 0, 1},
                 {"-1", 0, 1},
                 {"sometimes", 0, 1},
                 {"60s", 0, 1},
                 {"Off", SL_METRICS_OFF, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char variable[100];
        snprintf(variable, sizeof(variable), "SLUICE_METRICS=%s", cases[i].text);
        for (int in_lambda = 0; in_lambda < 2; in_lambda++) {
            struct sl_settings s =
                read_from("/var/runtime/bootstrap", variable, in_lambda ? LAMBDA : NULL, NULL);
            bool is_default_off = cases[i].n_wrong && !in_lambda;
            assert_int_equal(s.metrics_ms, is_default_off ? SL_METRICS_OFF : cases[i].ms);
            assert_int_equal(s.n_wrong, cases[i].n_wrong);
            if (s.n_wrong)
                assert_non_null(strstr(s.wrong[0], cases[i].text));
            sl_settings_clean_up(&s);
        }
    }
    struct sl_settings s = read_one(NULL), t = read_one(LAMBDA);
    assert_int_equal(s.metrics_ms, SL_METRICS_OFF);
    assert_int_equal(t.metrics_ms, 0);
    sl_settings_clean_up(&s);
    sl_settings_clean_up(&t);
}

static void choices_have_two_words(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        bool has_summary, has_shutdown; /* in Lambda */
        size_t n_wrong;
    } cases[] = {{NULL, true, false, 0},
                 {"SLUICE_SUMMARY=on", true, false, 0},
                 {"SLUICE_SUMMARY=ON", true, false, 0},
                 {"SLUICE_SUMMARY=off", false, false, 0},
                 {"SLUICE_SUMMARY=no", true, false, 1},
                 {"SLUICE_SHUTDOWN=1", true, true, 0},
                 {"SLUICE_SHUTDOWN=0", true, false, 0},
                 {"SLUICE_SHUTDOWN=yes", true, false, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_settings s = read_from("/var/runtime/bootstrap", LAMBDA, cases[i].variable, NULL);
        assert_int_equal(s.has_summary, cases[i].has_summary);
        assert_int_equal(s.has_shutdown, cases[i].has_shutdown);
        assert_int_equal(s.n_wrong, cases[i].n_wrong);
        sl_settings_clean_up(&s);
    }
    struct sl_settings s = read_one(NULL), t = read_one("SLUICE_SUMMARY=on");
    assert_false(s.has_summary);
    assert_true(t.has_summary);
    sl_settings_clean_up(&s);
    sl_settings_clean_up(&t);
    s = read_from("/x", "SLUICE_SUMMARY=no", "SLUICE_METRICS=no", "SLUICE_SHUTDOWN=no");
    assert_int_equal(s.n_wrong, 3);
    sl_settings_clean_up(&s);
}

/* Whoever reads the report of each batch needs neither summary nor metrics. */
static void a_report_takes_the_place_of_both(void **state)
{
    (void)state;
    static const int fds[] = {0, 3, 1 << 20};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        char variable[100];
        snprintf(variable, sizeof(variable), "SLUICE_REPORT_FD=%d", fds[i]);
        struct sl_settings s = read_from("/x", variable, LAMBDA, "SLUICE_METRICS=each");
        assert_int_equal(s.report_fd, fds[i]);
        assert_false(s.has_summary);
        assert_int_equal(s.metrics_ms, SL_METRICS_OFF);
        sl_settings_clean_up(&s);
    }
}

static void the_log_is_as_lambda_says(void **state)
{
    (void)state;
    struct sl_settings s = read_from("/x", "AWS_LAMBDA_LOG_FORMAT=json", "AWS_LAMBDA_LOG_LEVEL=ERROR",
                                     "AWS_LAMBDA_FUNCTION_NAME=f");
    assert_int_equal(s.log_format, SL_LOG_JSON);
    assert_int_equal(s.log_level, SL_ERROR);
    assert_string_equal(s.function_name, "f");
    assert_string_equal(s.temp_folder, "/tmp");
    assert_null(s.endpoint);
    sl_settings_clean_up(&s);
    s = read_from("/x", "AWS_LAMBDA_LOG_FORMAT=Text", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9001", "TMPDIR=/t");
    assert_int_equal(s.log_format, SL_LOG_TEXT);
    assert_int_equal(s.log_level, SL_INFO);
    assert_string_equal(s.function_name, "");
    assert_string_equal(s.temp_folder, "/t");
    assert_string_equal(s.endpoint, "127.0.0.1:9001");
    sl_settings_clean_up(&s);
    sl_settings_clean_up(NULL);
}

/* The environment is copied: what a handler does to its own later changes nothing. */
static void the_environment_is_kept_as_it_was(void **state)
{
    (void)state;
    char variable[] = "AWS_REGION=eu-west-1", second[] = "X=1", *environment[] = {variable, second, NULL};
    struct sl_settings s;
    sl_settings_init(&s, environment, "/x");
    memset(variable, '?', sizeof(variable) - 1);
    memset(second, '?', sizeof(second) - 1);
    assert_string_equal(s.vars.list[0], "AWS_REGION=eu-west-1");
    assert_string_equal(s.vars.list[1], "X=1");
    assert_null(s.vars.list[2]);
    sl_settings_clean_up(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_is_looked_for_in_three_places),
        cmocka_unit_test(folders_of_plugins_are_separated_by_colons),
        cmocka_unit_test(workers_are_from_1_to_1024),
        cmocka_unit_test(metrics_are_each_off_or_seconds),
        cmocka_unit_test(choices_have_two_words),
        cmocka_unit_test(a_report_takes_the_place_of_both),
        cmocka_unit_test(the_log_is_as_lambda_says),
        cmocka_unit_test(the_environment_is_kept_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
