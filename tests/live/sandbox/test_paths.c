/* Where plugins are looked for: the folders that a verb in its own process takes are those of the function.
 */
#include "tests/support/test.h"

#include "handlers/pipeline/loader.h"
#include "live/sandbox/paths.h"

#include <stdlib.h>
#include <unistd.h>

static struct sl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = sl_arena_new(4096);
    unsetenv("SLUICE_HANDLER_PATH");
    return chdir("/tmp");
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("SLUICE_HANDLER_PATH");
    sl_arena_destroy(arena);
    return 0;
}

/* The folders after our own and the layers': joined by a blank. */
static const char *others(const char *given, const char *config)
{
    const char *const *list = sl_paths_folders(arena, given, config);
    assert_string_equal(list[0], sl_arena_printf(arena, "%s/handlers", sl_paths_own_folder(arena)));
    assert_string_equal(list[1], "/opt/sluice/handlers");
    const char *all = "";
    for (size_t i = 2; list[i]; i++)
        all = sl_arena_printf(arena, "%s%s%s", all, all[0] ? " " : "", list[i]);
    return all;
}

static void folders_of_a_verb(void **state)
{
    (void)state;
    assert_string_equal(others(NULL, "sluice.json"), "/tmp/handlers");
    assert_string_equal(others(NULL, "/etc/app/sluice.json"), "/etc/app/handlers");
    assert_string_equal(others(NULL, "app/sluice.json"), "/tmp/app/handlers");
    assert_string_equal(others("a:/b::c:", "sluice.json"), "/tmp/a /b /tmp/c");
    assert_string_equal(others("/a:/b:/a", "sluice.json"), "/a /b");
    assert_string_equal(others("", "sluice.json"), "");
    assert_string_equal(others("/opt/sluice/handlers:/b", "sluice.json"), "/b");

    setenv("SLUICE_HANDLER_PATH", "/env:/tmp/handlers", 1);
    assert_string_equal(others(NULL, "sluice.json"), "/tmp/handlers /env");
    assert_string_equal(others("/a", "sluice.json"), "/a"); /* what is given counts alone */
}

static void too_many_folders_are_left_out(void **state)
{
    (void)state;
    const char *given = "/0";
    for (int i = 1; i < 100; i++)
        given = sl_arena_printf(arena, "%s:/%d", given, i);
    const char *const *list = sl_paths_folders(arena, given, "sluice.json");
    size_t n = 0;
    while (list[n])
        n++;
    assert_int_equal(n, SL_LOADER_FOLDERS);
    assert_string_equal(list[63], "/61");
}

/* A folder that was removed has no name. */
static void a_path_stays_as_it_is_when_its_folder_is_gone(void **state)
{
    (void)state;
    char *folder = test_folder();
    assert_int_equal(chdir(folder), 0);
    test_folder_remove(folder);
    assert_string_equal(sl_paths_absolute(arena, "a/b"), "a/b");
    assert_string_equal(sl_paths_absolute(arena, "/a/b"), "/a/b");
    assert_int_equal(chdir("/tmp"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_of_a_verb, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_folders_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_stays_as_it_is_when_its_folder_is_gone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
