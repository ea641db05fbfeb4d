/* docs/CONFIG.md and docs/sluice.schema.json say what the rows say. `make bless` (BLESS=1) writes them anew.
 */
#include "tests/support/test.h"

#include "base/buffer.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sl_option *rows_named(struct sl_span name)
{
    if (sl_span_is(name, "top"))
        return sl_config_rows;
    if (sl_span_is(name, "route"))
        return sl_config_route_rows;
    for (size_t i = 0; sl_builtins[i]; i++)
        if (sl_span_is(name, sl_builtins[i]->name))
            return sl_builtins[i]->options;
    fail_msg("docs/CONFIG.md: no rows are called %.*s", SL_ARG(name));
    return NULL;
}

/* The text, with what stands between its marks made from the rows. */
static size_t fill(const char *text, struct sl_buffer *out)
{
    static const char begin[] = "<!-- rows: ", end[] = "<!-- end -->";
    size_t n = 0;
    for (const char *mark; (mark = strstr(text, begin)); n++) {
        const char *name = mark + strlen(begin), *close = strstr(name, " -->\n"), *after = strstr(mark, end);
        assert_non_null(close);
        assert_non_null(after);
        sl_buffer_add(out, text, (size_t)(close - text) + strlen(" -->\n"));
        sl_options_help(rows_named(sl_span(name, (size_t)(close - name))), out);
        sl_buffer_add_str(out, end);
        text = after + strlen(end);
    }
    sl_buffer_add_str(out, text);
    sl_buffer_add_char(out, '\0');
    return n;
}

static void compare(const char *path, const char *wanted)
{
    if (getenv("BLESS"))
        test_write(path, wanted);
    char *is = test_read(path, NULL);
    if (!is || strcmp(is, wanted) != 0)
        fail_msg("%s is older than the option rows; run make bless", path);
    free(is);
}

static void tables_are_in_step(void **state)
{
    (void)state;
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 20);
    char *text = test_read("docs/CONFIG.md", NULL);
    assert_non_null(text);
    size_t builtins = 0;
    while (sl_builtins[builtins])
        builtins++;
    assert_int_equal(fill(text, &out), builtins + 2);
    compare("docs/CONFIG.md", out.ptr);
    sl_buffer_clean_up(&out);
    free(text);
}

static void schema_is_in_step(void **state)
{
    (void)state;
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 20);
    sl_config_schema(sl_builtins, &out);
    json_t *schema = json_loadb(out.ptr, out.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(schema);
    char *text = json_dumps(schema, JSON_INDENT(2));
    sl_buffer_reset(&out);
    sl_buffer_add_str(&out, text);
    sl_buffer_add(&out, "\n", 2);
    compare("docs/sluice.schema.json", out.ptr);
    free(text);
    json_decref(schema);
    sl_buffer_clean_up(&out);
}

/* The example is a configuration, as far as that can be told without handlers. */
static void example_is_right(void **state)
{
    (void)state;
    static const char *const list[] = {"FAILURE_QUEUE=q", "ARCHIVE_BUCKET=b", NULL};
    char *text = test_read("docs/CONFIG.md", NULL), *begin = strchr(strstr(text, "```json"), '\n');
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_config config;
    struct sl_error error = SL_NO_ERROR;
    if (sl_config_parse(sl_span(begin, (size_t)(strstr(begin, "```") - begin)),
                        &(struct sl_vars){.list = list}, arena, &config, &error) != SL_OK)
        fail_msg("docs/CONFIG.md: %s", error.text);
    assert_int_equal(config.n_routes, 3);
    sl_arena_destroy(arena);
    free(text);
}

static void rows_are_well_made(void **state)
{
    (void)state;
    for (size_t i = 0; sl_builtins[i]; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (sl_options_check_rows(sl_builtins[i]->options, &error) != SL_OK)
            fail_msg("%s: %s", sl_builtins[i]->name, error.text);
        for (const struct sl_option *row = sl_builtins[i]->options; row->type != SL_OPTION_END; row++)
            assert_non_null(row->help);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_in_step),
        cmocka_unit_test(schema_is_in_step),
        cmocka_unit_test(example_is_right),
        cmocka_unit_test(rows_are_well_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
