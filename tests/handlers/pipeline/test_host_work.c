/* The host table at work for a route: time, log, templates, text, marks, and the limits of each. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "streams/record.h"

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sl_host *const host = &sl_host_table;

#define ROUTE(members) "{'on_failure':'report','routes':[{'name':'r1','handler':'one'" members "}]}"

static struct sl_route *route_of(struct rig *rig)
{
    return &rig->p->routes[0];
}

/* ---- time ---- */

/* It waits only if the wait ends before the slice's deadline. */
static void a_sleep_ends_before_the_deadline(void **state)
{
    (void)state;
    static const struct {
        int64_t left_ms, ms;
        bool sleeps;
    } cases[] = {{100, 99, true}, {100, 100, false}, {100, 101, false}, {100, 0, true},
                 {0, 0, false},   {100, -1, false},  {1, 0, true},      {-5, 0, false}};
    struct rig *rig = rig_new(ROUTE(""));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t now = host->now_ms(route_of(rig));
        const struct sl_slice slice = {.deadline_ms = now + cases[i].left_ms};
        assert_int_equal(host->sleep(route_of(rig), &slice, cases[i].ms), cases[i].sleeps);
        assert_int_equal(host->now_ms(route_of(rig)), now + (cases[i].sleeps ? cases[i].ms : 0));
    }
    rig_destroy(rig);
}

/* ---- the log ---- */

static void lines_below_the_level_are_left_out(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTE(""));
    rig_keep_log(rig);
    for (int level = SL_TRACE; level <= SL_OFF; level++) {
        rig->log.level = (enum sl_level)level;
        for (int line = SL_TRACE; line <= SL_OFF; line++) {
            bool wanted = line >= level && line != SL_OFF;
            char *before = rig_log(rig);
            assert_int_equal(host->log_enabled(route_of(rig), (enum sl_level)line), wanted);
            host->log(route_of(rig), (enum sl_level)line, "%d apples", 3);
            char *after = rig_log(rig);
            assert_int_equal(strlen(after) > strlen(before), wanted);
            assert_true(!wanted || strstr(after + strlen(before), " 3 apples\n"));
            free(before);
            free(after);
        }
    }
    rig_destroy(rig);
}

static void a_line_without_an_end_is_cut(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTE(""));
    rig_keep_log(rig);
    char *long_text = calloc(1, 10000);
    memset(long_text, 'x', 9999);
    host->log(route_of(rig), SL_INFO, "%s", long_text);
    char *log = rig_log(rig);
    assert_int_equal(strspn(strchr(log, 'x'), "x"), 4095);
    free(log);
    free(long_text);
    rig_destroy(rig);
}

/* ---- options ---- */

static void options_that_are_not_set_are_absent(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTE(",'text':'{PK}','to':'mem:x','only':{'events':['INSERT']},'first':'a'"));
    struct sl_route *route = route_of(rig);
    assert_non_null(host->option_template(route, "text"));
    assert_non_null(host->option_queue(route, "to"));
    assert_non_null(host->option_when(route, "only"));
    assert_span_is(host->option_text(route, "first"), "a");
    static const char *const names[] = {"other", "nothing"}; /* a row without a value, and no row */
    for (size_t i = 0; i < 2; i++) {
        assert_null(host->option_text(route, names[i]).ptr);
        assert_int_equal(host->option_integer(route, names[i]), 0);
        assert_false(host->option_bool(route, names[i]));
        assert_null(host->option_template(route, names[i]));
        assert_null(host->option_when(route, names[i]));
        assert_null(host->option_objects(route, names[i]));
        assert_null(host->option_table(route, names[i]));
        assert_null(host->option_queue(route, names[i]));
    }
    rig_destroy(rig);
}

/* ---- templates ---- */

#define MOST  (8 * 1024 * 1024) /* bytes that a template may make */
#define PIECE (64 * 1024)

/* A template that makes so many bytes of an attribute "v" of PIECE bytes. */
static struct sl_template *template_of(struct rig *rig, size_t bytes)
{
    struct sl_buffer text;
    sl_buffer_init_in(&text, rig->arena, 2 * PIECE);
    for (size_t i = 0; i < bytes / PIECE; i++)
        sl_buffer_add_str(&text, "{v}");
    for (size_t i = 0; i < bytes % PIECE; i++)
        sl_buffer_add_char(&text, 'y');
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(host->template_compile(rig->arena, sl_buffer_span(&text), &t, &error), SL_OK);
    return t;
}

static void expect_render(struct rig *rig, size_t bytes)
{
    const struct sl_record *r = sl_batch_record(&rig->batch, 0);
    struct sl_template *t = template_of(rig, bytes);
    struct sl_span text;
    for (int which = 0; which < 3; which++) {
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = SL_OK;
        if (which == 0)
            status = host->template_render(t, r, SL_ESCAPE_NONE, rig->arena, &text, &error);
        else if (which == 1)
            status =
                host->template_render_image(t, r, SL_NEW_IMAGE, SL_ESCAPE_NONE, rig->arena, &text, &error);
        else
            text = host->template_item(t, r, host->record_image(r, SL_NEW_IMAGE), rig->arena, &error).raw;
        if (bytes <= MOST) {
            assert_int_equal(status, SL_OK);
            assert_int_equal(error.status, SL_OK);
            assert_int_equal(text.len, bytes);
            continue;
        }
        assert_string_equal(error.code, "TooLarge");
        assert_int_equal(error.status, SL_REJECT);
        assert_true(which == 2 ? text.ptr == NULL : status == SL_REJECT);
    }
    text = host->template_render_or(t, r, SL_ANY_IMAGE, SL_ESCAPE_NONE, rig->arena, SL_LIT("-"));
    assert_int_equal(text.len, bytes <= MOST ? bytes : 0); /* a cut one would be worse than none */
    assert_true((text.ptr != NULL) == (bytes <= MOST));
}

static void a_templates_text_has_a_limit(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTE(""));
    char *v = calloc(1, PIECE + 1);
    memset(v, 'x', PIECE);
    rig_event_text(
        rig,
        json_printf("{'Records':[{'eventID':'e','eventName':'INSERT','eventSource':'aws:dynamodb',"
                    "'dynamodb':{'Keys':{'PK':{'S':'a'}},'NewImage':{'PK':{'S':'a'},'v':{'S':'%s'}},"
                    "'SequenceNumber':'1000'}}]}",
                    v),
        1);
    static const size_t sizes[] = {PIECE, MOST - 1, MOST, MOST + 1, MOST + PIECE};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        expect_render(rig, sizes[i]);
    free(v);
    rig_destroy(rig);
}

/* A place without a value: the first attribute that is named and missing is told, but where the template's
 * attribute is left out. */
static void a_place_without_a_value_has_a_stated_result(void **state)
{
    (void)state;
    struct rig *rig = rig_new(ROUTE(""));
    rig_event(rig, 1, NULL);
    const struct sl_record *r = sl_batch_record(&rig->batch, 0);
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    struct sl_span text;
    assert_int_equal(host->template_compile(rig->arena, SL_LIT("a{w}b"), &t, &error), SL_OK);
    assert_int_equal(host->template_render(t, r, SL_ESCAPE_NONE, rig->arena, &text, &error), SL_REJECT);
    assert_string_equal(error.code, "MissingAttribute");
    assert_span_is(host->template_render_or(t, r, SL_ANY_IMAGE, SL_ESCAPE_PATH, rig->arena, SL_LIT("x/y")),
                   "ax%2Fyb");
    sl_error_clear(&error);
    assert_int_equal(host->template_item(t, r, host->record_image(r, SL_NEW_IMAGE), rig->arena, &error).type,
                     SL_NONE);
    assert_int_equal(error.status, SL_OK);
    rig_destroy(rig);
}

/* ---- numbers, text, bytes ---- */

static void numbers_compare_by_value(void **state)
{
    (void)state;
    /* In rising order; those of one line are equal. What is not a number is below every number. */
    static const char *const lines[][2] = {{"x", ""},    {"-1e2", "-100"}, {"-0.5", "-5E-1"}, {"0", "-0"},
                                           {"1", "1.0"}, {"9", "9"},       {"10", "1e1"}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++)
            for (size_t which = 0; which < 4; which++) {
                int got =
                    host->number_compare(sl_span_str(lines[i][which / 2]), sl_span_str(lines[k][which % 2]));
                if ((got > 0) - (got < 0) != (i > k) - (i < k))
                    fail_msg("%s and %s: %d", lines[i][which / 2], lines[k][which % 2], got);
            }
}

static void texts_are_joined_and_escaped(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_span parts[] = {SL_LIT("ab"), {NULL, 0}, SL_LIT("c"), SL_LIT("")};
    struct sl_span joined = host->join(arena, parts, 4);
    assert_span_is(joined, "abc");
    assert_int_equal(joined.ptr[3], '\0');
    joined = host->join(arena, NULL, 0);
    assert_true(joined.ptr && joined.len == 0 && joined.ptr[0] == '\0');
    struct sl_span quoted = host->json_quote(arena, SL_LIT("a\"\\\n\xC3\xA9"));
    assert_span_is(quoted, "\"a\\\"\\\\\\n\xC3\xA9\"");
    assert_span_is(host->json_unquote(arena, sl_span(quoted.ptr + 1, quoted.len - 2)), "a\"\\\n\xC3\xA9");
    assert_span_is(host->escape(arena, SL_LIT("a/b"), SL_ESCAPE_PATH), "a%2Fb");
    assert_span_is(host->escape(arena, SL_LIT("a\"b"), SL_ESCAPE_JSON), "a\\\"b");
    struct sl_span nothing = host->escape(arena, SL_LIT(""), SL_ESCAPE_NONE);
    assert_true(nothing.ptr && nothing.len == 0); /* empty, not absent */
    sl_arena_destroy(arena);
}

static void gzip_is_one_member_of_all_parts(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_span parts[] = {SL_LIT("one,"), {NULL, 0}, SL_LIT("two,"), SL_LIT("three")};
    for (size_t n = 0; n <= 4; n++) {
        struct sl_span packed = host->gzip(arena, parts, n, 6), plain = host->join(arena, parts, n);
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        char out[64];
        size_t used = 0, len = 0;
        assert_int_equal(
            libdeflate_gzip_decompress_ex(d, packed.ptr, packed.len, out, sizeof(out), &used, &len), 0);
        assert_int_equal(used, packed.len);
        assert_true(sl_span_eq(sl_span(out, len), plain));
        libdeflate_free_decompressor(d);
    }
    sl_arena_destroy(arena);
}

/* ---- marks ---- */

static void wrong_marks_are_misuse(void **state)
{
    (void)state;
    static const struct {
        size_t i;
        int status;
        bool is_misuse;
    } cases[] = {{0, SL_OK, false},       {1, SL_FATAL, false}, {2, SL_OK, true},
                 {0, SL_FATAL + 1, true}, {1, -1, true},        {SIZE_MAX, SL_OK, true}};
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct sl_mark marks[2] = {{0}};
        struct sl_slice_call call = {.slice = {.n = 2, .arena = arena}, .marks = marks};
        host->mark(&call.slice, cases[k].i, (enum sl_status)cases[k].status, NULL);
        assert_int_equal(call.is_misused, cases[k].is_misuse);
        assert_int_equal(marks[0].is_set + marks[1].is_set, !cases[k].is_misuse);
        host->mark(&call.slice, 7, SL_OK, NULL);
        assert_true(call.is_misused);
        assert_int_equal(call.misused_at, cases[k].is_misuse ? cases[k].i : 7); /* the first is told */
    }
    sl_arena_destroy(arena);
}

/* A mark keeps what was noted, and a note the mark; notes that do not exist are ignored. */
static void notes_stay_beside_marks(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_mark marks[2] = {{0}};
    struct sl_slice_call call = {.slice = {.n = 2, .arena = arena}, .marks = marks};
    host->note(&call.slice, 0, SL_EFFECT_LEFT_OUT);
    host->mark(&call.slice, 0, SL_OK, NULL);
    host->mark(&call.slice, 1, SL_RETRY, NULL);
    host->note(&call.slice, 1, SL_EFFECT_REPEATED);
    host->note(&call.slice, 1, (enum sl_effect)(SL_EFFECT_LEFT_OUT + 1));
    host->note(&call.slice, 2, SL_EFFECT_REPEATED);
    assert_true(marks[0].is_set && marks[0].status == SL_OK && marks[0].note == SL_EFFECT_LEFT_OUT);
    assert_true(marks[1].is_set && marks[1].status == SL_RETRY && marks[1].note == SL_EFFECT_REPEATED);
    assert_false(call.is_misused);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleep_ends_before_the_deadline),
        cmocka_unit_test(lines_below_the_level_are_left_out),
        cmocka_unit_test(a_line_without_an_end_is_cut),
        cmocka_unit_test(options_that_are_not_set_are_absent),
        cmocka_unit_test(a_templates_text_has_a_limit),
        cmocka_unit_test(a_place_without_a_value_has_a_stated_result),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(texts_are_joined_and_escaped),
        cmocka_unit_test(gzip_is_one_member_of_all_parts),
        cmocka_unit_test(wrong_marks_are_misuse),
        cmocka_unit_test(notes_stay_beside_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
