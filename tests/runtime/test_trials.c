/* Trials by themselves: what they leave behind where they cannot be made, and what is too large for one. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "runtime/api/client.h"
#include "runtime/contain/trials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sl_log quiet;
static const struct sl_pipeline_options options = {.log = &quiet};

static int lowest_free_descriptor(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Memory that forks share: the kernel says so. */
static size_t shared_mappings(void)
{
    size_t n = 0;
    char line[500];
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        n += strstr(line, " rw-s ") != NULL;
    fclose(maps);
    return n;
}

static bool has_child(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0;
}

/* Whatever the system refuses: no descriptor, no memory and no process is left. */
static void what_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *only;
        int err;
    } cases[] = {{"mmap", ENOMEM}, {"socketpair", EMFILE}, {"fork", EAGAIN}};
    const int lowest = lowest_free_descriptor();
    const size_t shared = shared_mappings();
    assert_true(shared > 0); /* the faults' own */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        disk_fault_begin(1, cases[i].err, cases[i].only);
        assert_null(sl_trials_open(&options));
        assert_true(disk_fault_came());
        assert_int_equal(lowest_free_descriptor(), lowest);
        assert_int_equal(shared_mappings(), shared);
        assert_false(has_child());
    }
    struct sl_trials *trials = sl_trials_open(&options);
    assert_non_null(trials);
    assert_int_equal(sl_trials_fd(trials), lowest);
    assert_true(has_child());
    sl_trials_close(trials);
    assert_int_equal(shared_mappings(), shared);
    assert_int_equal(lowest_free_descriptor(), lowest);
    assert_false(has_child());
    sl_trials_close(NULL);
}

/* More than an event can have cannot be passed on: that is said, and nobody is asked. */
static void what_is_too_large_is_not_tried(void **state)
{
    (void)state;
    const size_t n = SL_RUNTIME_PAYLOAD_BYTES + 1;
    char *text = calloc(1, n);
    assert_non_null(text);
    struct sl_trials *trials = sl_trials_open(&options);
    const struct sl_batch batch = {.payload = {text, n}};
    struct sl_clock *clock = sl_clock_system();
    const struct sl_trial_order order = {.route_name = "r", .kill_ms = clock->now_ms(clock) + 60000};
    struct sl_trial trial = {.end = SL_TRIAL_RETURNED};
    sl_trials_begin(trials, &batch, "id", "");
    sl_trials_run(trials, &order, &trial);
    assert_int_equal(trial.end, SL_TRIAL_UNABLE);
    sl_trials_close(trials);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(what_is_too_large_is_not_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
