/* Conditions, patterns and filters against the models: vectors.tsv (check_when.py's and
 * check_conditions.py's, by vectors.py), patterns.tsv and wildcards.tsv (AWS's). */
#include "streams/decode/batch.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- answers ---- */

static const struct sl_record *decode(struct sl_arena *arena, struct sl_span text, struct sl_batch *batch)
{
    struct sl_decode_options options = {.any_shape = true, .ttl_attribute = SL_LIT("expires")};
    if (sl_batch_decode(text, arena, &options, batch, NULL) != SL_OK || batch->n != 1)
        return NULL;
    return sl_batch_record(batch, 0);
}

/* With an argument: what check_when.py and check_conditions.py talk to. A line is a pattern, or a `when` with
 * '!' before it, or a condition on the new item with '@', then a tab and a record; the answer 1, 0, "pattern"
 * or "record" when one of them is refused, "lacks" when an image is missing. With '?' before a `when`:
 * "none", or the nearest filter, '=' or '>' (it lets more through), and whether that matches: "=1". */
static const char *answer_filter(const struct sl_when *when, const struct sl_record *r,
                                 struct sl_arena *arena)
{
    struct sl_buffer text;
    struct sl_when *filter;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&text, 1 << 20);
    enum sl_when_nearest nearest = sl_when_filter(when, &text);
    const char *result = "none";
    if (nearest != SL_WHEN_NO_FILTER &&
        sl_pattern_compile(sl_buffer_span(&text), arena, &filter, &error) != SL_OK)
        result = sl_arena_printf(arena, "%.*s: %s", SL_ARG(sl_buffer_span(&text)), error.text);
    else if (nearest != SL_WHEN_NO_FILTER)
        result = sl_arena_printf(arena, "%c%d", nearest == SL_WHEN_FILTER_EXACT ? '=' : '>',
                                 sl_when_match(filter, r, arena));
    sl_buffer_clean_up(&text);
    return result;
}

static const char *answer(struct sl_span pattern, const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_when *out;
    struct sl_span rest = sl_span_from(pattern, 1);
    bool is_when = pattern.ptr[0] == '!' || pattern.ptr[0] == '?';
    enum sl_status status = is_when                 ? sl_when_compile(rest, arena, &out, NULL)
                            : pattern.ptr[0] == '@' ? sl_where_compile(rest, arena, &out, NULL)
                                                    : sl_pattern_compile(pattern, arena, &out, NULL);
    if (status != SL_OK || !r)
        return status != SL_OK ? "pattern" : "record";
    if (pattern.ptr[0] == '@')
        return sl_where_match(out, sl_record_image(r, SL_NEW_IMAGE), arena) ? "1" : "0";
    if (pattern.ptr[0] == '?')
        return answer_filter(out, r, arena);
    if (sl_when_match(out, r, arena))
        return "1";
    return sl_when_lacks(out, r, arena) ? "lacks" : "0";
}

static int answer_lines(void)
{
    static char line[1 << 20];
    while (fgets(line, sizeof(line), stdin)) {
        struct sl_arena *arena = sl_arena_new(65536);
        char *tab = strchr(line, '\t');
        struct sl_span pattern = sl_span(line, (size_t)(tab - line)),
                       text = sl_span(tab + 1, strlen(tab + 1) - 1);
        struct sl_batch batch;
        puts(answer(pattern, decode(arena, text, &batch), arena));
        sl_arena_destroy(arena);
    }
    return 0;
}

/* ---- the files ---- */

/* The next line that is not a comment, cut at its tabs. False: the file ends. */
static bool next_row(char **rest, char *cells[], size_t n)
{
    char *line;
    do {
        line = strsep(rest, "\n");
    } while (line && (line[0] == '#' || line[0] == '\0'));
    for (size_t i = 0; i < n; i++)
        cells[i] = strsep(&line, "\t");
    return cells[0];
}

static char *read_file(const char *name)
{
    char *bytes = test_read(name, NULL);
    if (!bytes)
        fail_msg("%s: it cannot be read", name);
    return bytes;
}

static const char *ask(const char *condition, const char *record, struct sl_arena *arena)
{
    struct sl_batch batch;
    return answer(sl_span_str(condition), decode(arena, sl_span_str(record), &batch), arena);
}

static void the_models_give_the_same_answers(void **state)
{
    (void)state;
    char *text = read_file("tests/streams/vectors.tsv"), *rest = text, *cells[3];
    struct sl_arena *arena = sl_arena_new(65536);
    size_t n = 0;
    for (; next_row(&rest, cells, 3); n++) {
        const char *got = ask(cells[0], cells[1], arena);
        if (strcmp(got, cells[2]) != 0)
            fail_msg("%s, not %s: %s on %s", got, cells[2], cells[0], cells[1]);
        sl_arena_reset(arena);
    }
    assert_true(n >= 1000);
    sl_arena_destroy(arena);
    free(text);
}

/* It lets through what the `when` does; and nothing else, when it says that it is exact. */
static void the_nearest_filter_keeps_no_record_back(void **state)
{
    (void)state;
    char *text = read_file("tests/streams/vectors.tsv"), *rest = text, *cells[3];
    struct sl_arena *arena = sl_arena_new(65536);
    size_t exact = 0, wider = 0, none = 0;
    while (next_row(&rest, cells, 3)) {
        if (cells[0][0] != '!' || (cells[2][0] != '0' && cells[2][0] != '1'))
            continue;
        const char *got = ask(sl_arena_printf(arena, "?%s", cells[0] + 1), cells[1], arena);
        bool is_none = strcmp(got, "none") == 0;
        bool is_right = is_none || strcmp(got, ">1") == 0 || (strcmp(got, ">0") == 0 && cells[2][0] == '0') ||
                        (got[0] == '=' && strcmp(got + 1, cells[2]) == 0);
        if (!is_right)
            fail_msg("%s, the filter says %s: %s on %s", cells[2], got, cells[0], cells[1]);
        none += is_none;
        exact += got[0] == '=';
        wider += got[0] == '>';
        sl_arena_reset(arena);
    }
    assert_true(exact >= 40 && wider >= 40 && none >= 10);
    sl_arena_destroy(arena);
    free(text);
}

/* Places of an element in a pattern, in the order of the file's columns; an event for each. */
static const struct {
    const char *pattern, *event;
} places[] = {
    {"{'f':[%s]}", "%s"},
    {"{'f':[{'anything-but':%s}]}", "%s"},
    {"{'$or':[{'f':[%s]},{'eventName':['nothing']}]}", "%s"},
    {"{'f':{'g':[%s]}}", "[{'g':%s},{'h':1}]"},
};

/* The form (which has ' for ") around a text as it is. */
static const char *around(struct sl_arena *arena, const char *form, const char *text)
{
    const char *at = strstr(form, "%s");
    const char *before = json_printf("%.*s", (int)(at - form), form);
    return sl_arena_printf(arena, "%s%s%s", before, text, json(at + 2));
}

static void each_operator_at_each_place_is_as_on_aws(void **state)
{
    (void)state;
    char *text = read_file("tests/streams/patterns.tsv"), *rest = text, *cells[6];
    struct sl_arena *arena = sl_arena_new(65536);
    size_t n = 0;
    for (; next_row(&rest, cells, 6); n++)
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            const char *pattern = around(arena, places[i].pattern, cells[0]);
            const char *event = sl_arena_printf(
                arena, "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"k\":{\"S\":\"x\"}}},\"f\":%s}",
                around(arena, places[i].event, cells[1]));
            const char *got = ask(pattern, event, arena), *want = cells[2 + i];
            want = strcmp(want, "yes") == 0 ? "1" : strcmp(want, "no") == 0 ? "0" : "pattern";
            if (strcmp(got, want) != 0)
                fail_msg("%s, not %s: %s on %s", got, want, pattern, event);
            sl_arena_reset(arena);
        }
    assert_true(n >= 100);
    sl_arena_destroy(arena);
    free(text);
}

static void wildcards_are_refused_above_a_complexity_of_ten(void **state)
{
    (void)state;
    char *text = read_file("tests/streams/wildcards.tsv"), *rest = text, *cells[2];
    struct sl_arena *arena = sl_arena_new(65536);
    struct sl_when *out;
    size_t n = 0;
    for (; next_row(&rest, cells, 2); n++) {
        enum sl_status want = strtoul(cells[0], NULL, 10) > 10 ? SL_REJECT : SL_OK;
        if (sl_pattern_compile(sl_span_str(cells[1]), arena, &out, NULL) != want)
            fail_msg("%s is of complexity %s", cells[1], cells[0]);
        sl_arena_reset(arena);
    }
    assert_true(n >= 100);
    sl_arena_destroy(arena);
    free(text);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return answer_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_models_give_the_same_answers),
        cmocka_unit_test(the_nearest_filter_keeps_no_record_back),
        cmocka_unit_test(each_operator_at_each_place_is_as_on_aws),
        cmocka_unit_test(wildcards_are_refused_above_a_complexity_of_ten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
