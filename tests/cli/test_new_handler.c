/* `sluice new-handler`: which names it takes, and that it leaves all or nothing. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_whole(struct verbs *v, const char *name)
{
    const char *const files[] = {json_printf("%s.c", name), "Makefile", "sluice.json", "events.jsonl"};
    bool is = true;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%s", name, files[i]);
        const char *text = verb_read(v, path);
        is = is && sl_span_ends(sl_span_str(text), SL_LIT("\n")) && !strstr(text, "@NAME@") &&
             !strstr(text, "@INCLUDE@") && !strstr(text, "@SLUICE@") && !strstr(text, "handler_template");
    }
    return is;
}

static bool is_there(struct verbs *v, const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    return access(path, F_OK) == 0;
}

static void a_name_is_that_of_a_function_in_c(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *name;
        bool is_good;
    } cases[] = {
        {"a", true},
        {"Z", true},
        {"A_1", true},
        {"z9", true},
        {"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", true}, /* 64 */
        {"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", false},
        {"1a", false},
        {"_a", false},
        {"[a", false},
        {"`a", false},
        {"@a", false},
        {"{a", false},
        {"a-b", false},
        {"a.b", false},
        {"a/b", false},
        {"archive", false},
        {"replicate", false},
        {"aggregate", false},
        {"notify", false},
        {"archives", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = verb(v, "new-handler '%s'", cases[i].name);
        if (cases[i].is_good)
            verb_assert(v, status, 0, json_printf("next: cd %s && make try\n", cases[i].name));
        else
            verb_assert(v, status, 2, cases[i].name);
        assert_int_equal(is_there(v, cases[i].name), cases[i].is_good);
        assert_true(!cases[i].is_good || is_whole(v, cases[i].name));
    }
}

static void what_is_there_is_left_alone(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "mine", "a file");
    verb_assert(v, verb(v, "new-handler mine"), 2,
                "mine cannot be created: File exists; nothing was written; choose another");
    assert_string_equal(verb_read(v, "mine"), "a file");
    verb_assert(v, verb(v, "new-handler yours"), 0, "");
    verb_write(v, "yours/yours.c", "changed");
    verb_assert(v, verb(v, "new-handler yours"), 2, "yours cannot be created: File exists");
    assert_string_equal(verb_read(v, "yours/yours.c"), "changed");
}

/* Each operation fails once: then there is no folder, and the same command makes all of it. */
static void it_leaves_all_or_nothing(void **state)
{
    struct verbs *v = *state;
    int n = 1;
    for (;; n++) {
        char name[20];
        snprintf(name, sizeof(name), "h%d", n);
        verb_fault(v, n, ENOSPC, NULL);
        int status = verb(v, "new-handler %s", name);
        if (!disk_fault_came())
            break;
        if (status != 0) {
            verb_assert(v, status, 2, "No space left on device");
            assert_non_null(strstr(verb_err(v), name));
            assert_false(is_there(v, name));
            verb_assert(v, verb(v, "new-handler %s", name), 0, "next: cd ");
        }
        assert_true(is_whole(v, name));
    }
    assert_true(n > 8); /* the folder; each file is opened and written */
}

static int set_up(void **state)
{
    *state = verbs_new();
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_name_is_that_of_a_function_in_c, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_there_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_leaves_all_or_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
