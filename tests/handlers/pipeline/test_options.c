/* Option rows: every type of row meets every kind of value, at its limits; and the rows themselves are
 * checked. */
#include "tests/support/test.h"

#include "base/error.h"
#include "handlers/pipeline/config.h"
#include "handlers/pipeline/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sl_vars no_vars = {.list = (const char *const[]){NULL}};

struct taken {
    struct sl_arena *arena;
    struct sl_config config;
    struct sl_option_set set;
    struct sl_error error;
};

/* The row alone, with this value ("": none). */
static enum sl_status take(struct taken *t, const struct sl_option *rows, const char *value)
{
    const char *config = json_printf("{'on_failure':'report','routes':[{'name':'a','handler':'h'%s%s}]}",
                                     value[0] ? ",'x':" : "", value);
    *t = (struct taken){.arena = sl_arena_new(4096)};
    enum sl_status status = sl_config_parse(sl_span_str(config), &no_vars, t->arena, &t->config, &t->error);
    assert_int_equal(status, SL_OK);
    const struct sl_config_route *route = &t->config.routes[0];
    sl_options_init(&t->set, rows, t->arena);
    status = sl_options_take(&t->set, &route->members, &t->error);
    return status == SL_OK ? sl_options_end(&t->set, route->path, &t->error) : status;
}

/* ---- types and values ---- */

static const char *const values[] = {"'t'", "''", "3", "3.0", "true", "false", "null", "[1]", "{'a':[1, 2]}"};
#define VALUES (sizeof(values) / sizeof(values[0]))

static const char *const kinds[VALUES] = {"a string", "a string",      "a number",
                                          "a number", "true or false", "true or false",
                                          "null",     "an array",      "an object"};

static const struct {
    struct sl_option row;
    const char *takes;     /* one letter for each of the values: y, n, or e: the text is empty */
    const char *type_name; /* as it is told of an empty value */
    const char *wanted;    /* what is to be written instead */
} types[] = {
    {{.type = SL_OPTION_TEXT}, "yynnnnnnn", "text", "a string"},
    {{.type = SL_OPTION_TEMPLATE}, "yynnnnnnn", "template", "a string"},
    {{.type = SL_OPTION_OBJECTS}, "yennnnnnn", "object store target", "a string"},
    {{.type = SL_OPTION_TABLE}, "yennnnnnn", "table target", "a string"},
    {{.type = SL_OPTION_QUEUE}, "yennnnnnn", "queue target", "a string"},
    {{.type = SL_OPTION_ENUM, .values = "s|t"}, "ycnnnnnnn", "choice", "a string"},
    {{.type = SL_OPTION_INTEGER}, "nnynnnnnn", "integer", "a whole number"},
    {{.type = SL_OPTION_INTEGER, .flags = SL_OPTION_NULLABLE}, "nnynnnynn", "integer", "a whole number"},
    {{.type = SL_OPTION_BOOL}, "nnnnyynnn", "true or false", "true or false"},
    {{.type = SL_OPTION_BOOL, .flags = SL_OPTION_NULLABLE}, "nnnnyyynn", "true or false", "true or false"},
    {{.type = SL_OPTION_WHEN}, "nnnnnnnny", "condition", "an object"},
    {{.type = SL_OPTION_JSON}, "yyyyyyyyy", "JSON", ""},
};

static void check_taken(const struct taken *t, enum sl_option_type type, size_t v)
{
    const struct sl_option_value *x = sl_options_get(&t->set, "x");
    bool is_null = strcmp(values[v], "null") == 0 && type != SL_OPTION_JSON;
    assert_true(x->is_set);
    assert_string_equal(x->path, "$.routes[0].x");
    assert_int_equal(x->is_null, is_null);
    if (is_null)
        return;
    if (type == SL_OPTION_INTEGER)
        assert_int_equal(x->integer, 3);
    else if (type == SL_OPTION_BOOL)
        assert_int_equal(x->boolean, values[v][0] == 't');
    else if (type == SL_OPTION_WHEN || type == SL_OPTION_JSON)
        assert_span_is(x->text, json(values[v])); /* as it is written */
    else
        assert_span_is(x->text, v ? "" : "t");
}

static void each_type_takes_its_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        for (size_t v = 0; v < VALUES; v++) {
            struct sl_option rows[2] = {types[i].row, {.type = SL_OPTION_END}};
            struct taken t;
            char wanted[200] = "";
            rows[0].name = "x";
            enum sl_status status = take(&t, rows, values[v]);
            if (types[i].takes[v] == 'n')
                snprintf(wanted, sizeof(wanted), "$.routes[0].x: is %s; write %s", kinds[v], types[i].wanted);
            else if (types[i].takes[v] == 'e')
                snprintf(wanted, sizeof(wanted), "$.routes[0].x: is empty (%s)", types[i].type_name);
            else if (types[i].takes[v] == 'c')
                snprintf(wanted, sizeof(wanted),
                         "$.routes[0].x: \"\" is not one of s|t; did you mean \"s\"?");
            assert_int_equal(status, wanted[0] ? SL_FATAL : SL_OK);
            assert_string_equal(t.error.text, wanted);
            if (!wanted[0])
                check_taken(&t, rows[0].type, v);
            assert_string_equal(sl_options_type_name(rows[0].type), types[i].type_name);
            sl_arena_destroy(t.arena);
        }
    assert_string_equal(sl_options_type_name(SL_OPTION_END), "unknown");
    assert_string_equal(sl_options_type_name((enum sl_option_type)(SL_OPTION_QUEUE + 1)), "unknown");
}

/* ---- limits ---- */

static void numbers_have_limits(void **state)
{
    (void)state;
    static const struct {
        int64_t min, max;
        const char *value;
        bool fits;
    } cases[] = {
        {2, 4, "1", false},
        {2, 4, "2", true},
        {2, 4, "4", true},
        {2, 4, "5", false},
        {-3, -1, "-4", false},
        {-3, -1, "-3", true},
        {-3, -1, "0", false},
        {0, 1, "-1", false},
        {0, 1, "0", true},
        {-1, 0, "0", true},
        {-1, 0, "1", false},
        {0, 0, "-9223372036854775808", true},
        {0, 0, "9223372036854775807", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_option rows[2] = {
            {.name = "x", .type = SL_OPTION_INTEGER, .min = cases[i].min, .max = cases[i].max},
            {.type = SL_OPTION_END}};
        struct taken t;
        char wanted[120];
        snprintf(wanted, sizeof(wanted),
                 "$.routes[0].x: %s is out of range; write a number from %" PRId64 " to %" PRId64,
                 cases[i].value, cases[i].min, cases[i].max);
        assert_int_equal(take(&t, rows, cases[i].value), cases[i].fits ? SL_OK : SL_FATAL);
        assert_string_equal(t.error.text, cases[i].fits ? "" : wanted);
        sl_arena_destroy(t.arena);
    }
}

/* Of very many choices, the near one of the first is offered; all of them are taken. */
static void many_choices_are_all_taken(void **state)
{
    (void)state;
    char choices[600] = "";
    for (int i = 10; i < 60; i++)
        snprintf(choices + strlen(choices), sizeof(choices) - strlen(choices), "%schoice%d",
                 i > 10 ? "|" : "", i);
    const struct sl_option rows[2] = {{.name = "x", .type = SL_OPTION_ENUM, .values = choices},
                                      {.type = SL_OPTION_END}};
    struct taken t;
    for (int i = 10; i < 60; i++) {
        assert_int_equal(take(&t, rows, json_printf("'choice%d'", i)), SL_OK);
        sl_arena_destroy(t.arena);
    }
    static const char *const wrong[] = {"'choice1'", "'choice100'", "'choice10|choice11'", "'choise25'"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(take(&t, rows, wrong[i]), SL_FATAL);
        assert_non_null(strstr(t.error.text, "is not one of choice10|choice11|"));
        sl_arena_destroy(t.arena);
    }
}

/* ---- what is not written ---- */

static void fallbacks_are_values(void **state)
{
    (void)state;
    static const struct sl_option rows[] = {
        {.name = "yes", .type = SL_OPTION_BOOL, .fallback = "true"},
        {.name = "no", .type = SL_OPTION_BOOL, .fallback = "false"},
        {.name = "n", .type = SL_OPTION_INTEGER, .fallback = "-12"},
        {.name = "text", .type = SL_OPTION_TEXT, .fallback = "7"},
        {.name = "none", .type = SL_OPTION_INTEGER},
        {.type = SL_OPTION_END},
    };
    struct taken t;
    assert_int_equal(take(&t, rows, ""), SL_OK);
    assert_true(sl_options_get(&t.set, "yes")->boolean);
    assert_false(sl_options_get(&t.set, "no")->boolean);
    assert_int_equal(sl_options_get(&t.set, "n")->integer, -12);
    assert_span_is(sl_options_get(&t.set, "text")->text, "7");
    assert_int_equal(sl_options_get(&t.set, "text")->integer, 0);
    assert_false(sl_options_get(&t.set, "text")->boolean || sl_options_get(&t.set, "n")->boolean);
    assert_false(sl_options_get(&t.set, "none")->is_set);
    sl_arena_destroy(t.arena);
}

static void what_is_required_is_named_by_its_help_or_type(void **state)
{
    (void)state;
    const struct sl_option helped[] = {
        {.name = "x", .type = SL_OPTION_QUEUE, .flags = SL_OPTION_REQUIRED, .help = "where it goes"},
        {.type = SL_OPTION_END}};
    const struct sl_option bare[] = {{.name = "x", .type = SL_OPTION_QUEUE, .flags = SL_OPTION_REQUIRED},
                                     {.type = SL_OPTION_END}};
    struct taken t;
    assert_int_equal(take(&t, helped, ""), SL_FATAL);
    assert_string_equal(t.error.text, "$.routes[0].x: is missing: where it goes");
    sl_arena_destroy(t.arena);
    assert_int_equal(take(&t, bare, ""), SL_FATAL);
    assert_string_equal(t.error.text, "$.routes[0].x: is missing: queue target");
    sl_arena_destroy(t.arena);
    assert_int_equal(take(&t, NULL, "1"), SL_FATAL); /* a handler without rows takes nothing */
    assert_string_equal(t.error.text, "$.routes[0].x: is not known here");
    sl_arena_destroy(t.arena);
}

/* ---- rows ---- */

static void fallbacks_have_to_fit_their_rows(void **state)
{
    (void)state;
    static const struct {
        struct sl_option row;
        const char *fault; /* "": none */
    } cases[] = {
        {{.type = SL_OPTION_INTEGER, .min = 1, .max = 3, .fallback = "1"}, ""},
        {{.type = SL_OPTION_INTEGER, .min = 1, .max = 3, .fallback = "3"}, ""},
        {{.type = SL_OPTION_INTEGER, .min = 1, .max = 3, .fallback = "0"},
         "its fallback is not a number in range"},
        {{.type = SL_OPTION_INTEGER, .min = 1, .max = 3, .fallback = "4"},
         "its fallback is not a number in range"},
        {{.type = SL_OPTION_INTEGER, .fallback = "x"}, "its fallback is not a number in range"},
        {{.type = SL_OPTION_INTEGER, .fallback = ""}, "its fallback is not a number in range"},
        {{.type = SL_OPTION_INTEGER, .fallback = "1x"}, "its fallback is not a number in range"},
        {{.type = SL_OPTION_INTEGER, .min = 2, .max = 2}, ""},
        {{.type = SL_OPTION_INTEGER, .min = 3, .max = 2}, "its min is above its max"},
        {{.type = SL_OPTION_BOOL, .fallback = "true"}, ""},
        {{.type = SL_OPTION_BOOL, .fallback = "false"}, ""},
        {{.type = SL_OPTION_BOOL, .fallback = ""}, "its fallback is neither true nor false"},
        {{.type = SL_OPTION_ENUM, .values = "a|bc", .fallback = "bc"}, ""},
        {{.type = SL_OPTION_ENUM, .values = "a|bc", .fallback = "b"},
         "its fallback is not one of its values"},
        {{.type = SL_OPTION_ENUM, .values = "a|bc", .fallback = "a|bc"},
         "its fallback is not one of its values"},
        {{.type = SL_OPTION_TEXT, .fallback = ""}, ""},
        {{.type = (enum sl_option_type)(SL_OPTION_QUEUE + 1)}, "its type is not known"},
        {{.type = (enum sl_option_type) - 1}, "its type is not known"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_option rows[3] = {
            {.name = "first", .type = SL_OPTION_TEXT}, cases[i].row, {.type = SL_OPTION_END}};
        struct sl_error error = SL_NO_ERROR;
        char wanted[120];
        rows[1].name = "x_1";
        snprintf(wanted, sizeof(wanted), "row 1 (\"x_1\") of its option table: %s", cases[i].fault);
        assert_int_equal(sl_options_check_rows(rows, &error), cases[i].fault[0] ? SL_FATAL : SL_OK);
        assert_string_equal(error.text, cases[i].fault[0] ? wanted : "");
    }
}

static void names_of_rows_are_plain(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_good;
    } cases[] = {{"a", true},    {"a_1", true}, {"1", true},   {"", false},
                 {"a-b", false}, {"aB", false}, {"a b", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_option rows[2] = {{.name = cases[i].name, .type = SL_OPTION_TEXT},
                                          {.type = SL_OPTION_END}};
        assert_int_equal(sl_options_check_rows(rows, NULL), cases[i].is_good ? SL_OK : SL_FATAL);
    }
}

/* A table without an end would be read for ever. */
static void tables_have_an_end(void **state)
{
    (void)state;
    for (size_t n = SL_OPTIONS_MAX - 1; n <= SL_OPTIONS_MAX + 1; n++) {
        struct sl_option *rows = calloc(n + 1, sizeof(*rows));
        struct sl_error error = SL_NO_ERROR;
        char names[SL_OPTIONS_MAX + 1][8];
        for (size_t i = 0; i < n; i++) {
            snprintf(names[i], sizeof(names[i]), "x%zu", i);
            rows[i] = (struct sl_option){.name = names[i], .type = SL_OPTION_TEXT};
        }
        bool fits = n <= SL_OPTIONS_MAX;
        assert_int_equal(sl_options_check_rows(rows, &error), fits ? SL_OK : SL_FATAL);
        assert_string_equal(error.text, fits ? "" : "its option table does not end within 256 rows");
        free(rows);
    }
}

/* ---- the table of the documents ---- */

static void the_table_says_all_of_a_row(void **state)
{
    (void)state;
    static const struct sl_option rows[] = {
        {.name = "a", .type = SL_OPTION_TEXT, .flags = SL_OPTION_SECRET, .help = "one|two"},
        {.name = "b", .type = SL_OPTION_QUEUE, .flags = SL_OPTION_REQUIRED},
        {.name = "c",
         .type = SL_OPTION_INTEGER,
         .flags = SL_OPTION_NULLABLE,
         .min = 0,
         .max = 5,
         .fallback = "2"},
        {.name = "d", .type = SL_OPTION_INTEGER, .min = -5, .max = 0},
        {.name = "e", .type = SL_OPTION_INTEGER},
        {.name = "f", .type = SL_OPTION_ENUM, .values = "x|y", .fallback = "x"},
        {.name = "g", .type = SL_OPTION_JSON, .fallback = "{\"a|b\":1}"},
        {.type = SL_OPTION_END},
    };
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_options_help(rows, &text);
    sl_buffer_add_char(&text, '\0');
    assert_string_equal(text.ptr, "| name | value | default | |\n|---|---|---|---|\n"
                                  "| `a` | text, never printed | none | one\\|two |\n"
                                  "| `b` | queue target | required |  |\n"
                                  "| `c` | integer, 0 to 5 or null | `2` |  |\n"
                                  "| `d` | integer, -5 to 0 | none |  |\n"
                                  "| `e` | integer | none |  |\n"
                                  "| `f` | x\\|y | `x` |  |\n"
                                  "| `g` | JSON | `{\"a\\|b\":1}` |  |\n");
    sl_buffer_reset(&text);
    sl_options_help(NULL, &text);
    assert_span_is(sl_buffer_span(&text), "| name | value | default | |\n|---|---|---|---|\n");
    sl_buffer_clean_up(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_takes_its_values),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(many_choices_are_all_taken),
        cmocka_unit_test(fallbacks_are_values),
        cmocka_unit_test(what_is_required_is_named_by_its_help_or_type),
        cmocka_unit_test(fallbacks_have_to_fit_their_rows),
        cmocka_unit_test(names_of_rows_are_plain),
        cmocka_unit_test(tables_have_an_end),
        cmocka_unit_test(the_table_says_all_of_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
