/* Rows and what was expected: by value, whatever the order, and only what counts. */
#include "base/arena.h"
#include "tests/support/test.h"
#include "data/verify/compare.h"

#include <stdio.h>
#include <string.h>

struct pair {
    const char *item, *row;
    const char *differ; /* the names that differ, with a blank between; NULL: right */
};

static const struct pair pairs[] = {
    {"{'a':{'S':'x'}}", "{'a':{'S':'x'}}", NULL},
    {"{'a':{'S':'x'},'b':{'N':'1'}}", "{'b':{'N':'1.0'},'a':{'S':'x'}}", NULL},
    {"{'a':{'SS':['x','y']}}", "{'a':{'SS':['y','x']}}", NULL},
    {"{'a':{'M':{'p':{'N':'1e2'},'q':{'NULL':true}}}}", "{'a':{'M':{'q':{'NULL':true},'p':{'N':'100'}}}}",
     NULL},
    {"{'a':{'L':[{'S':'x'},{'S':'y'}]}}", "{'a':{'L':[{'S':'y'},{'S':'x'}]}}", "a"},
    {"{'a':{'S':'1'}}", "{'a':{'N':'1'}}", "a"},
    {"{'a':{'S':'x'}}", "{'a':{'S':'x'},'b':{'S':'y'}}", "b"},
    {"{'a':{'S':'x'},'b':{'S':'y'}}", "{'b':{'S':'y'}}", "a"},
    {"{'a':{'S':'x'},'c':{'N':'1'},'b':{'S':'y'}}", "{'b':{'S':'z'},'d':{'N':'1'},'a':{'S':'x'}}", "b c d"},
    {"{'\\u0061':{'S':'\\u0078'}}", "{'a':{'S':'x'}}", NULL},
    {"{'a':{'S':'x'}}", "{'a':{'S':'x'},'ours':{'S':'1'}}", NULL},
    {"{'a':{'S':'x'},'ignored':{'S':'1'}}", "{'a':{'S':'x'},'ignored':{'S':'2'}}", NULL},
    {"{}", "{}", NULL},
};

static struct sl_span own[] = {{"ours", 4}}, ignored[] = {{"ignored", 7}}, counted[] = {{"a", 1}};

static void names_that_differ(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const struct sl_compare c = {ignored, 1, arena};
        const struct sl_expected e = {.item = json_span(pairs[i].item), .own = own, .n_own = 1};
        struct sl_span *names, row = json_span(pairs[i].row);
        char text[64] = "";
        size_t n;
        sl_compare_names(&c, &e, row, &names, &n);
        for (size_t k = 0; k < n; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", k ? " " : "",
                     SL_ARG(names[k]));
        assert_string_equal(text, pairs[i].differ ? pairs[i].differ : "");
        assert_int_equal(sl_compare_is_right(&c, &e, row), !pairs[i].differ);
        /* The other way round the same names differ. */
        const struct sl_expected back = {.item = row, .own = own, .n_own = 1};
        assert_int_equal(sl_compare_is_right(&c, &back, e.item), !pairs[i].differ);
    }
    sl_arena_destroy(arena);
}

static void rows_that_are_not_there(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_compare c = {NULL, 0, arena};
    const struct sl_span none = {NULL, 0}, row = json_span("{'a':{'S':'x'}}");
    struct sl_expected e = {.item = none};
    assert_true(sl_compare_is_right(&c, &e, none));
    assert_false(sl_compare_is_right(&c, &e, row));
    e.item = row;
    assert_false(sl_compare_is_right(&c, &e, none));
    e.may_be_absent = true;
    assert_true(sl_compare_is_right(&c, &e, none));
    assert_true(sl_compare_is_right(&c, &e, row));
    sl_arena_destroy(arena);
}

static void guards_and_marks(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_compare c = {NULL, 0, arena};
    struct sl_expected e = {.item = json_span("{'a':{'S':'x'}}"),
                            .own = own,
                            .n_own = 1,
                            .guard = SL_LIT("ours"),
                            .absence = SL_LIT("gone")};
    assert_true(sl_compare_is_right(&c, &e, json_span("{'ours':{'S':'1'},'a':{'S':'x'}}")));
    assert_false(sl_compare_is_right(&c, &e, json_span("{'a':{'S':'x'}}")));
    assert_true(sl_compare_is_right(&c, &e, json_span("{'\\u006furs':{'S':'1'},'a':{'S':'x'}}")));
    e.item = json_span("{'a':{'S':'x'},'gone':{'BOOL':true}}");
    assert_false(
        sl_compare_is_right(&c, &e, json_span("{'ours':{'S':'1'},'a':{'S':'x'},'gone':{'BOOL':true}}")));
    assert_false(sl_compare_is_right(
        &c, &e, json_span("{'ours':{'S':'1'},'a':{'S':'x'},'g\\u006fne':{'BOOL':true}}")));
    sl_arena_destroy(arena);
}

static void only_what_counts(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_compare c = {NULL, 0, arena};
    const struct sl_expected e = {
        .item = json_span("{'a':{'S':'x'},'b':{'S':'y'}}"), .counts = counted, .n_counts = 1};
    assert_true(sl_compare_is_right(&c, &e, json_span("{'z':{'S':'z'},'a':{'S':'x'}}")));
    assert_false(sl_compare_is_right(&c, &e, json_span("{'z':{'S':'z'},'a':{'S':'y'}}")));
    assert_false(sl_compare_is_right(&c, &e, json_span("{'z':{'S':'z'}}")));
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_differ),
        cmocka_unit_test(rows_that_are_not_there),
        cmocka_unit_test(guards_and_marks),
        cmocka_unit_test(only_what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
