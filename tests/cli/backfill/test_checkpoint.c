/* The checkpoint file of a backfill: what is saved is read; a file of another job, or none that can be
 * written, is refused before the job begins; and a plan's numbers. */
#include "cli/backfill/checkpoint.h"
#include "cli/backfill/report.h"
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    struct sl_arena *arena;
    char *folder;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    p->arena = sl_arena_new(4096);
    p->folder = test_folder_in_memory();
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    test_folder_remove(p->folder);
    sl_arena_destroy(p->arena);
    free(p);
    return 0;
}

static void what_is_saved_is_read(void **state)
{
    const struct place *p = *state;
    for (int i = 0; i < 4; i++) {
        const char *path = json_printf("%s/cp%d", p->folder, i), *content = i & 2 ? "digest" : NULL;
        struct sl_checkpoint c = {.path = path, .source = "export a", .content = content, .is_done = i & 1};
        struct sl_checkpoint again = {.path = path, .source = "export a"};
        assert_int_equal(sl_checkpoint_save(&c, json_span("{'n':1,'place':{'file':2}}"), NULL), SL_OK);
        assert_int_equal(sl_checkpoint_open(&again, p->arena, NULL), SL_OK);
        assert_int_equal(again.is_done, i & 1);
        assert_span_is(again.state, json("{'n':1,'place':{'file':2}}"));
        assert_span_is(again.place, json("{'file':2}"));
        assert_int_equal(again.content != NULL, content != NULL);
        assert_int_equal(sl_checkpoint_bind(&again, "digest", NULL), content ? SL_OK : SL_REJECT);
        struct sl_error error = SL_NO_ERROR;
        again.content = content;
        assert_int_equal(sl_checkpoint_bind(&again, "other", &error), SL_REJECT);
        assert_string_equal(error.code, "OtherSource");
        assert_non_null(strstr(error.text, path));
    }
    /* Of a job that has not begun, and of one that keeps nothing. */
    struct sl_checkpoint none = {.path = json_printf("%s/none", p->folder), .source = "export a"};
    assert_int_equal(sl_checkpoint_open(&none, p->arena, NULL), SL_OK);
    assert_null(none.state.ptr);
    assert_int_equal(sl_checkpoint_bind(&none, "digest", NULL), SL_OK);
    assert_string_equal(none.content, "digest");
    struct sl_checkpoint nowhere = {.source = "export a"};
    assert_int_equal(sl_checkpoint_open(&nowhere, p->arena, NULL), SL_OK);
    assert_int_equal(sl_checkpoint_save(&nowhere, json_span("{}"), NULL), SL_OK);
}

static void what_is_no_checkpoint_of_the_job_is_refused(void **state)
{
    const struct place *p = *state;
    static const struct {
        const char *text, *code, *why;
    } cases[] = {
        {"", "BadCheckpoint", "is not a checkpoint of sluice backfill"},
        {"[]", "BadCheckpoint", "is not the checkpoint of a backfill; name another file"},
        {"{'sluiceBackfill':2,'source':'export a','state':{}}", "BadCheckpoint", "name another file"},
        {"{'source':'export a','state':{}}", "BadCheckpoint", "name another file"},
        {"{'sluiceBackfill':1,'state':{}}", "BadCheckpoint", "name another file"},
        {"{'sluiceBackfill':1,'source':'export a'}", "BadCheckpoint", "name another file"},
        {"{'sluiceBackfill':1,'source':'export a','state':[]}", "BadCheckpoint", "name another file"},
        {"{'sluiceBackfill':1,'source':'export a','state':{}", "BadCheckpoint", "(byte "},
        {"{'sluiceBackfill':1,'source':'export b','state':{}}", "OtherSource",
         "is the checkpoint of another source, export b; this one is export a"},
    };
    const char *path = json_printf("%s/cp", p->folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_checkpoint c = {.path = path, .source = "export a"};
        test_write(path, json(cases[i].text));
        assert_int_equal(sl_checkpoint_open(&c, p->arena, &error), SL_REJECT);
        assert_string_equal(error.code, cases[i].code);
        if (!strstr(error.text, cases[i].why) || !strstr(error.text, path))
            fail_msg("%s: %s", cases[i].text, error.text);
        assert_null(c.state.ptr);
    }
}

/* Found before the first item is written, and not at the first save. */
static void a_place_for_it_is_looked_for_first(void **state)
{
    const struct place *p = *state;
    const struct {
        const char *path, *code, *why;
    } cases[] = {
        {json_printf("%s/no/cp", p->folder), "CheckpointNotSaved", "nothing can be created in"},
        {json_printf("%s/file/cp", p->folder), "CheckpointNotSaved", "nothing can be created in"},
        {p->folder, "BadCheckpoint", "is no file; name one"},
        {"/no-such-folder/cp", "CheckpointNotSaved",
         "nothing can be created in /no-such-folder: No such file"},
    };
    test_write(json_printf("%s/file", p->folder), "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_checkpoint c = {.path = cases[i].path, .source = "export a"};
        assert_int_equal(sl_checkpoint_open(&c, p->arena, &error), SL_REJECT);
        assert_string_equal(error.code, cases[i].code);
        if (!strstr(error.text, cases[i].why))
            fail_msg("%s: %s", cases[i].path, error.text);
    }
    /* In the root folder, and in the one where we are. */
    const char *const fine[] = {"/sluice-no-such-checkpoint", "sluice-no-such-checkpoint"};
    for (size_t i = 0; i < 2; i++) {
        struct sl_checkpoint c = {.path = fine[i], .source = "export a"};
        if (access(i ? "." : "/", W_OK) == 0)
            assert_int_equal(sl_checkpoint_open(&c, p->arena, NULL), SL_OK);
        assert_int_not_equal(access(fine[i], F_OK), 0);
    }
}

/* The old one stays when the new one cannot be written. */
static void a_save_that_fails_keeps_the_old_one(void **state)
{
    const struct place *p = *state;
    const char *path = json_printf("%s/cp", p->folder);
    struct sl_checkpoint c = {.path = path, .source = "export a"};
    assert_int_equal(sl_checkpoint_save(&c, json_span("{'n':0}"), NULL), SL_OK);
    for (int n = 1;; n++) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_checkpoint again = {.path = path, .source = "export a"};
        disk_fault_begin(n, ENOSPC, NULL);
        enum sl_status status = sl_checkpoint_save(&c, json_span(json_printf("{'n':%d}", n)), &error);
        disk_fault_end();
        assert_int_equal(sl_checkpoint_open(&again, p->arena, NULL), SL_OK);
        if (status == SL_OK) {
            assert_span_is(again.state, json_printf("{'n':%d}", n));
        } else {
            assert_string_equal(error.code, "CheckpointNotSaved");
            assert_non_null(strstr(error.text, "cp: the checkpoint cannot be written: No space left"));
        }
        if (!disk_fault_came())
            break;
    }
}

/* ---- a plan's numbers ---- */

static void a_plan_says_what_the_whole_costs(void **state)
{
    (void)state;
    static const struct {
        uint64_t items, records;
        double read_units, write_units;
        bool reads_table;
        const char *text;
    } cases[] = {
        {100, 100, 0, 0, false, "write units      200, about $0.00"},
        {100000000, 100, 0, 0, false, "write units      200000000, about $125.00"},
        {100, 100, 0, 2, false, "time             100 s at least, at the limits given\n"},
        {6000, 100, 0, 2, false, "time             100 min at least"},
        {100000, 100, 0, 2, false, "time             27.8 h at least"},
        {1000000, 100, 0, 2, false, "time             11.6 days at least"},
        {1000000, 100, 0, 0, true, "read units       250001, about $0.03"},
        {1000000, 100, 10, 0, true, "time             6.9 h at least"},
        {1000000, 100, 10, 2, true, "time             11.6 days at least"},
        {0, 100, 0, 2, false, "items            not known: what follows is of the first 100 alone"},
        {100, 0, 0, 2, false, "items            100\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_source_facts facts = {.name = "orders", .items = cases[i].items};
        const struct sl_backfill_plan plan = {.facts = &facts,
                                              .sample = {.records = cases[i].records,
                                                         .item_bytes = 1024 * cases[i].records,
                                                         .units = 2 * (double)cases[i].records},
                                              .read_units = cases[i].read_units,
                                              .write_units = cases[i].write_units,
                                              .reads_table = cases[i].reads_table};
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);
        sl_backfill_print_plan(&plan, out);
        fclose(out);
        if (!strstr(text, cases[i].text))
            fail_msg("%s\nlacks %s", text, cases[i].text);
        assert_int_equal(strstr(text, "read units") != NULL, cases[i].reads_table);
        bool has_limit = (cases[i].read_units > 0 || cases[i].write_units > 0) && cases[i].records;
        assert_int_equal(strstr(text, "time  ") != NULL, has_limit);
        free(text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_read),
        TEST(what_is_no_checkpoint_of_the_job_is_refused),
        TEST(a_place_for_it_is_looked_for_first),
        TEST(a_save_that_fails_keeps_the_old_one),
        TEST(a_plan_says_what_the_whole_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
