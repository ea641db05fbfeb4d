/* What a sandbox is made of: the plan of faults, the function's identity, its log, its folders. */
#include "tests/support/test.h"

#include "base/arena.h"
#include "live/sandbox/faults.h"
#include "live/sandbox/function.h"
#include "live/sandbox/notes.h"
#include "live/sandbox/output.h"
#include "live/sandbox/paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- faults ---- */

static void a_plan_says_when(void **state)
{
    (void)state;
    struct sl_faults f = {.random = 1};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_faults_add(&f, "throttle@2,crash@4-6,lost@5", &error), SL_OK);
    assert_int_equal(sl_faults_add(&f, "die@9", &error), SL_OK);
    static const enum sl_faults_kind wanted[] = {
        SL_FAULTS_NONE,  SL_FAULTS_THROTTLE, SL_FAULTS_NONE, SL_FAULTS_CRASH, SL_FAULTS_CRASH,
        SL_FAULTS_CRASH, SL_FAULTS_NONE,     SL_FAULTS_NONE, SL_FAULTS_DIE,   SL_FAULTS_NONE};
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(sl_faults_draw(&f, i), wanted[i - 1]);
    assert_false(sl_faults_counts_calls(&f));
    assert_int_equal(sl_faults_add(&f, "sink@3,connect@*", &error), SL_OK);
    assert_true(sl_faults_counts_calls(&f));
    assert_int_equal(sl_faults_draw(&f, 3), SL_FAULTS_NONE); /* they count calls */
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(sl_faults_fails_call(&f, SL_FAULTS_SINK, i), i == 3);
        assert_true(sl_faults_fails_call(&f, SL_FAULTS_CONNECT, i));
    }
}

static void a_share_is_drawn(void **state)
{
    (void)state;
    static const int shares[] = {0, 30, 100};
    for (int k = 0; k < 3; k++) {
        struct sl_faults f = {.random = 7};
        struct sl_error error = SL_NO_ERROR;
        char spec[32];
        int found = 0;
        snprintf(spec, sizeof(spec), "timeout@%d%%", shares[k]);
        assert_int_equal(sl_faults_add(&f, spec, &error), SL_OK);
        for (uint64_t i = 1; i <= 1000; i++)
            found += sl_faults_draw(&f, i) == SL_FAULTS_TIMEOUT;
        assert_in_range(found + 60, shares[k] * 10 + (k == 1 ? 0 : 60), shares[k] * 10 + (k == 1 ? 120 : 60));
    }
}

static void a_wrong_plan_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",      "die",     "die@",          "@3",       "dye@3",
                                        "die@0", "die@3-2", "die@3-",        "die@-3",   "die@101%",
                                        "die@x", "die@3x",  "die@3-4x",      "die@1,@2", "die@1,,",
                                        "die@%", "die@1 ",  "die@1234567890"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct sl_faults f = {.random = 1};
        struct sl_error error = SL_NO_ERROR;
        if (sl_faults_add(&f, wrong[i], &error) != SL_REJECT)
            fail_msg("\"%s\" is taken", wrong[i]);
        assert_string_equal(error.code, "InvalidFault");
    }
    struct sl_faults f = {.random = 1};
    struct sl_error error = SL_NO_ERROR;
    for (int i = 0; i < SL_FAULTS_MOST; i++)
        assert_int_equal(sl_faults_add(&f, i % 2 ? "die@3-3" : "die@123456789", &error), SL_OK);
    assert_int_equal(sl_faults_add(&f, "die@1", &error), SL_REJECT);
    assert_non_null(strstr(error.text, "more than 32"));
}

/* ---- who the function is ---- */

static void an_identity_agrees_with_the_stream(void **state)
{
    (void)state;
    static const struct {
        const char *stream, *function, *region, *arn, *version;
    } cases[] = {
        {"arn:aws-cn:dynamodb:cn-north-1:111122223333:table/t/stream/x", NULL, "cn-north-1",
         "arn:aws-cn:lambda:cn-north-1:111122223333:function:sluice", "$LATEST"},
        {"word", "f_9-Z", "us-east-1", "arn:aws:lambda:us-east-1:123456789012:function:f_9-Z", "$LATEST"},
        {"", "arn:aws:lambda:eu-west-1:1:function:f:17", "eu-west-1",
         "arn:aws:lambda:eu-west-1:1:function:f:17", "17"},
        {"", "arn:aws:lambda:eu-west-1:1:function:f:live1", "eu-west-1",
         "arn:aws:lambda:eu-west-1:1:function:f:live1", "$LATEST"},
        {"", "", NULL, NULL, NULL},
        {"", "a b", NULL, NULL, NULL},
        {"", "f:1", NULL, NULL, NULL},
        {"", "arn:aws:sqs:eu-west-1:1:function:f", NULL, NULL, NULL},
        {"", "arn:aws:lambda:eu-west-1:1:layer:f", NULL, NULL, NULL},
        {"", "arn:aws:lambda::1:function:f", NULL, NULL, NULL},
        {"", "arn:aws:lambda:eu-west-1:1:function", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_function out;
        struct sl_error error = SL_NO_ERROR;
        const struct sl_function_told told = {.function = cases[i].function};
        enum sl_status status = sl_function_make(cases[i].stream, &told, arena, &out, &error);
        assert_int_equal(status, cases[i].arn ? SL_OK : SL_REJECT);
        if (status == SL_OK) {
            assert_string_equal(out.arn, cases[i].arn);
            assert_string_equal(out.region, cases[i].region);
            assert_string_equal(out.version, cases[i].version);
            assert_string_equal(out.log_group, sl_arena_printf(arena, "/aws/lambda/%s", out.name));
        } else {
            assert_string_equal(error.code, "InvalidFunction");
        }
        sl_arena_destroy(arena);
    }
}

static void a_name_has_64_characters_at_most(void **state)
{
    (void)state;
    char name[66];
    memset(name, 'n', 65);
    name[65] = '\0';
    for (int i = 0; i < 2; i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_function out;
        struct sl_error error = SL_NO_ERROR;
        const struct sl_function_told told = {.function = name + i, .region = "us-west-2"};
        assert_int_equal(sl_function_make("", &told, arena, &out, &error), i ? SL_OK : SL_REJECT);
        if (i)
            assert_string_equal(out.region, "us-west-2");
        sl_arena_destroy(arena);
    }
    static const char *const odd[] = {"a`", "a{", "a@", "a[", "a/", "a:", "a.", ":a", "a:b"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_function out;
        const struct sl_function_told told = {.function = odd[i]};
        assert_int_equal(sl_function_make("", &told, arena, &out, NULL), SL_REJECT);
        sl_arena_destroy(arena);
    }
}

static void traces_and_streams_have_lambdas_form(void **state)
{
    (void)state;
    char trace[SL_FUNCTION_TRACE_BYTES];
    sl_function_trace("01234567-89ab-cdef-0123-456789abcdef", 1700000000123, trace);
    assert_string_equal(trace, "Root=1-6553f100-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=0");
    sl_function_trace("0123456789abcdef0123456789abcdefXYZ", 1700000000123, trace); /* of another form */
    assert_string_equal(trace, "Root=1-6553f100-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=0");
    struct sl_arena *arena = sl_arena_new(1024);
    const struct sl_function identity = {.version = "$LATEST"};
    const char *one = sl_function_log_stream(&identity, 1700000000123, 1, arena);
    assert_int_equal(strncmp(one, "2023/11/14/[$LATEST]", 20), 0);
    assert_int_equal(strlen(one), 20 + 32);
    assert_int_equal(strspn(one + 20, "0123456789abcdef"), 32);
    assert_string_not_equal(one, sl_function_log_stream(&identity, 1700000000123, 2, arena));
    sl_arena_destroy(arena);
}

/* ---- its log ---- */

static void lines_are_the_same_but_for_ids_and_times(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        {"", ""},
        {"id 01234567-89ab-cdef-0123-456789abcdef end", "id 11111111-2222-3333-4444-555555555555 end"},
        {"2026-01-01T00:00:00 x", "2025-12-31 23:59:59 x"},
        {"2026-01-01T00:00:00.123Z x", "2025-12-31T23:59:59.9Z x"},
        {"2026-01-01T00:00:00,123 x", "2025-12-31T23:59:59 x"},
        {"a 2026-01-01T00:00:00.5 b 01234567-89AB-cdef-0123-456789abcdef",
         "a 2026-01-02T00:00:00 b 01234567-89ab-cdef-0123-456789abcde0"},
        {"x 2026-01-01T00:00:00.", "x 2026-01-01T00:00:00"},
    };
    static const char *const different[][2] = {
        {"a", "b"},
        {"id 01234567-89ab-cdef-0123-456789abcdef end", "id 01234567-89ab-cdef-0123-456789abcdef End"},
        {"id 01234567-89ab-cdef-0123-456789abcdef", "id 01234567-89ab-cdef-0123-456789abcdeg"},
        {"2026-01-01T00:00:0x", "2026-01-02T00:00:0x"},
        {"2026-01-01T00:00:00x1", "2026-01-01T00:00:00x2"},
        {"2026-01-01T00:00:00.1;1", "2026-01-01T00:00:00.1;2"},
        {"01234567-89ab-cdef-0123-456789abcde", "01234567-89ab-cdef-0123-456789abcdf"},
        {"12", "21"},
        {"2026-01-01T00:00:00", ""},
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (sl_output_hash(sl_span_str(same[i][0])) != sl_output_hash(sl_span_str(same[i][1])))
            fail_msg("%s and %s", same[i][0], same[i][1]);
    for (size_t i = 0; i + 1 < sizeof(different) / sizeof(different[0]); i++)
        if (sl_output_hash(sl_span_str(different[i][0])) == sl_output_hash(sl_span_str(different[i][1])))
            fail_msg("%s and %s", different[i][0], different[i][1]);
}

/* What is written to standard error meanwhile. */
static char *said(void (*speak)(struct sl_output *))
{
    char *folder = test_folder_in_memory(), path[300];
    struct sl_output *o;
    struct sl_error error = SL_NO_ERROR;
    snprintf(path, sizeof(path), "%s/err", folder);
    int before = test_stderr_into(path);
    assert_int_equal(sl_output_open(NULL, &o, &error), SL_OK);
    speak(o);
    sl_output_close(o);
    test_stderr_back(before);
    char *text = test_read(path, NULL);
    test_folder_remove(folder);
    return text;
}

static void speak_often(struct sl_output *o)
{
    for (int i = 0; i < 1445; i++)
        sl_output_line(o, SL_LIT("again"));
    sl_output_line(o, SL_LIT("once"));
    for (int i = 0; i < 2; i++)
        sl_output_line(o, sl_span_str(i ? "2026-01-01T00:00:00 twice" : "2026-01-01T00:00:01 twice"));
    (void)sl_output_settle(o);
    sl_output_line(o, SL_LIT("once"));
    for (int i = 0; i < 999; i++)
        sl_output_line(o, SL_LIT("many"));
}

static void speak_much(struct sl_output *o)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i <= SL_OUTPUT_LINES; i++) {
            char line[1200];
            memset(line, 'a', sizeof(line));
            int n = snprintf(line, 20, "%d/%d", i, i);
            line[n] = i == 7 ? 'b' : ' ';
            if (i == 7) /* a character of two bytes across the limit */
                memcpy(line + 511, "\xC3\xBC", 2);
            sl_output_line(o, sl_span(line, i == 7 ? 600 : (size_t)n));
        }
}

static size_t times(const char *text, const char *words)
{
    size_t n = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

static void repeated_lines_are_counted(void **state)
{
    (void)state;
    char *text = said(speak_often);
    assert_string_equal(text, "again\nonce\n2026-01-01T00:00:01 twice\n\xC3\x97 1,445  again\n\xC3\x97 2  "
                              "2026-01-01T00:00:01 twice\nonce\nmany\n\xC3\x97 999  many\n");
    free(text);
    text = said(speak_much);
    assert_int_equal(times(text, "1023/1023\n"), 2);
    assert_int_equal(times(text, "1024/1024\n"), 2); /* for it there is no room */
    assert_int_equal(times(text, "\xC3\x97 2  "), SL_OUTPUT_LINES);
    char *counts = strstr(text, "\xC3\x97 2  7/7b");
    assert_non_null(counts);
    assert_int_equal(strcspn(counts, "\n"), strlen("\xC3\x97 2  ") + 511);
    free(text);
}

static void a_file_gets_every_line(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), path[300];
    struct sl_output *o;
    struct sl_output_pipe p;
    struct sl_error error = SL_NO_ERROR;
    int fd = -1;
    snprintf(path, sizeof(path), "%s/log", folder);
    assert_int_equal(sl_output_open(path, &o, &error), SL_OK);
    assert_true(sl_output_pipe_open(&p, &fd));
    assert_int_equal(write(fd, "a\nb\n\nhal", 8), 8);
    sl_output_pipe_read(&p, o);
    assert_int_equal(write(fd, "f\nrest", 6), 6);
    sl_output_pipe_read(&p, o);
    assert_true(p.fd >= 0);
    char *longest = malloc(SL_OUTPUT_LINE_BYTES);
    memset(longest, 'x', SL_OUTPUT_LINE_BYTES);
    for (size_t done = 0; done < SL_OUTPUT_LINE_BYTES - 3; done += 4093) {
        assert_int_equal(write(fd, longest, 4093), 4093);
        sl_output_pipe_read(&p, o);
    }
    close(fd);
    sl_output_pipe_read(&p, o);
    assert_int_equal(p.fd, -1);
    sl_output_pipe_close(&p, o);
    assert_true(sl_output_settle(o));
    sl_output_close(o);
    char *text = test_read(path, NULL);
    assert_int_equal(strncmp(text, "a\nb\n\nhalf\nrestxxx", 17), 0);
    size_t n = strlen(text), pieces = times(text + 10, "\n");
    assert_int_equal(n, 10 + 4 + 4093 * 17 + 2);
    assert_int_equal(pieces, 2);
    assert_int_equal(strcspn(text + 10, "\n"), SL_OUTPUT_LINE_BYTES);
    free(text);
    free(longest);
    assert_true(sl_output_settle(NULL));
    sl_output_close(NULL);
    assert_int_equal(sl_output_open("/nowhere/log", &o, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "--log /nowhere/log: cannot be written"));
    sl_output_close(o);
    test_folder_remove(folder);
}

/* ---- its notes ---- */

static void notes_are_kept_until_their_invocation_is_over(void **state)
{
    (void)state;
    struct sl_notes notes = {0};
    for (int i = 0; i < 3; i++) {
        const char *list = "";
        for (int k = 0; k < 20; k++)
            list = json_printf("%s%s{'route':'a','id':'%d'}", list, k ? "," : "", 100 * i + k);
        json_t *report = json_loads(json_printf("{'requestId':'r%d','notes':[%s]}", i, list), 0, NULL);
        sl_notes_add(&notes, report);
        json_decref(report);
    }
    assert_int_equal(notes.n, 60);
    sl_notes_forget(&notes, "r1");
    assert_int_equal(notes.n, 40);
    for (int i = 0; i < 40; i++) {
        assert_string_equal(notes.list[i].request_id, i < 20 ? "r0" : "r2");
        assert_string_equal(notes.list[i].id, json_printf("%d", i < 20 ? i : 180 + i));
    }
    sl_notes_clean_up(&notes);
    assert_int_equal(notes.n, 0);
    sl_notes_clean_up(&notes);
}

/* ---- folders ---- */

static void folders_of_plugins_are_those_of_the_function(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    char cwd[2000];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_string_equal(sl_paths_absolute(arena, "/a/b"), "/a/b");
    assert_string_equal(sl_paths_absolute(arena, "a"), sl_arena_printf(arena, "%s/a", cwd));
    assert_string_equal(sl_paths_handlers(arena, "/a::/b:", "x.json", "/outer"), "/a:/b");
    assert_string_equal(sl_paths_handlers(arena, "p", "x.json", NULL), sl_arena_printf(arena, "%s/p", cwd));
    assert_string_equal(sl_paths_handlers(arena, NULL, "/etc/x.json", NULL), "/etc/handlers");
    assert_string_equal(sl_paths_handlers(arena, NULL, "/etc/x.json", ""), "/etc/handlers");
    assert_string_equal(sl_paths_handlers(arena, NULL, "/etc/x.json", "/o:/p"), "/etc/handlers:/o:/p");
    assert_string_equal(sl_paths_handlers(arena, NULL, "x.json", NULL),
                        sl_arena_printf(arena, "%s/handlers", cwd));
    const char *own = sl_paths_own_folder(arena);
    assert_true(own[0] == '/' && own[strlen(own) - 1] != '/');
    assert_int_equal(setenv("SLUICE_HANDLER_PATH", "/o:/etc/handlers:/o", 1), 0);
    const char *const *list = sl_paths_folders(arena, NULL, "/etc/x.json");
    assert_string_equal(list[0], sl_arena_printf(arena, "%s/handlers", own));
    assert_string_equal(list[1], "/opt/sluice/handlers");
    assert_string_equal(list[2], "/etc/handlers");
    assert_string_equal(list[3], "/o");
    assert_null(list[4]);
    unsetenv("SLUICE_HANDLER_PATH");
    sl_arena_destroy(arena);
}

/* Makes files there and removes others, until the folder is gone; says when it is well under way. */
static _Noreturn void write_and_remove(const char *folder, int told)
{
    char path[600];
    for (int n = 0;; n++) {
        snprintf(path, sizeof(path), "%s/%d", folder, n % 64);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || (n == 100 && write(told, "x", 1) != 1))
            _exit(0);
        close(fd);
        snprintf(path, sizeof(path), "%s/%d", folder, (n + 17) % 64);
        unlink(path);
    }
}

/* A process that a plugin has started writes there and removes, while the folder is removed. */
static void a_folder_for_files_goes_while_others_write(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), said;
    for (int i = 0; i < 50; i++) {
        char *temp = sl_paths_make_temp(folder);
        int told[2];
        assert_int_equal(pipe(told), 0);
        pid_t writer = fork();
        if (writer == 0)
            write_and_remove(temp, told[1]);
        assert_int_equal(read(told[0], &said, 1), 1);
        sl_paths_remove_temp(temp);
        assert_int_equal(access(temp, F_OK), -1);
        waitpid(writer, NULL, 0);
        close(told[0]);
        close(told[1]);
        free(temp);
    }
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

static void a_folder_for_files_goes_with_everything_in_it(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), path[600];
    char *temp = sl_paths_make_temp(folder);
    assert_non_null(temp);
    assert_non_null(strstr(temp, "/sluice-replay-"));
    snprintf(path, sizeof(path), "%s/deep", temp);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/deep/file", temp);
    test_write(path, "x");
    sl_paths_remove_temp(temp);
    assert_int_equal(access(temp, F_OK), -1);
    assert_int_equal(access(folder, F_OK), 0);
    free(temp);
    assert_null(sl_paths_make_temp("/nowhere/at/all"));
    temp = sl_paths_make_temp("");
    assert_int_equal(strncmp(temp, "/tmp/sluice-replay-", 19), 0);
    sl_paths_remove_temp(temp);
    free(temp);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_says_when),
        cmocka_unit_test(a_share_is_drawn),
        cmocka_unit_test(a_wrong_plan_is_refused),
        cmocka_unit_test(an_identity_agrees_with_the_stream),
        cmocka_unit_test(a_name_has_64_characters_at_most),
        cmocka_unit_test(traces_and_streams_have_lambdas_form),
        cmocka_unit_test(lines_are_the_same_but_for_ids_and_times),
        cmocka_unit_test(repeated_lines_are_counted),
        cmocka_unit_test(a_file_gets_every_line),
        cmocka_unit_test(notes_are_kept_until_their_invocation_is_over),
        cmocka_unit_test(folders_of_plugins_are_those_of_the_function),
        cmocka_unit_test(a_folder_for_files_goes_with_everything_in_it),
        cmocka_unit_test(a_folder_for_files_goes_while_others_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
