/* Any text as sluice.json: refused with a path, or read; what is read, the built-in handlers' rows take or
 * refuse. */
#include "base/span.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/config.h"
#include "streams/template/template.h"
#include "streams/when/when.h"
#include "tests/fuzz/fuzz.h"

static void read_options(const struct sl_config_route *route, const struct sl_option *rows,
                         struct sl_arena *arena)
{
    struct sl_option_set set;
    struct sl_error error = SL_NO_ERROR;
    sl_options_init(&set, rows, arena);
    enum sl_status status = sl_options_take(&set, &route->members, &error);
    if (status == SL_OK && route->options.object)
        status = sl_options_take(&set, &route->options, &error);
    if (status == SL_OK)
        status = sl_options_end(&set, route->path, &error);
    FUZZ_CHECK((status == SL_OK) == (error.status == SL_OK));
    FUZZ_CHECK(status == SL_OK || error.text[0] == '$');
    for (size_t i = 0; status == SL_OK && i < set.n; i++) {
        struct sl_template *template;
        struct sl_when *when;
        const struct sl_option_value *value = &set.values[i];
        if (value->is_set && rows[i].type == SL_OPTION_TEMPLATE)
            (void)!sl_template_compile(value->text, NULL, arena, &template, NULL);
        if (value->is_set && rows[i].type == SL_OPTION_WHEN)
            (void)!sl_when_compile(value->text, arena, &when, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const list[] = {"NAME=value", "ODD=a\"b\\c\n${NAME}", NULL};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_config config;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status =
        sl_config_parse(sl_span((const char *)data, size), &(struct sl_vars){.list = list}, arena, &config, &error);
    FUZZ_CHECK(status == SL_OK || (status == SL_FATAL && error.text[0] && error.code[0]));
    for (size_t i = 0; status == SL_OK && i < config.n_routes; i++) {
        struct sl_when *when;
        if (config.routes[i].when.ptr)
            (void)!sl_when_compile(config.routes[i].when, arena, &when, NULL);
        FUZZ_CHECK(config.routes[i].on_failure.is_report != (config.routes[i].on_failure.n > 0));
        for (size_t k = 0; sl_builtins[k]; k++)
            read_options(&config.routes[i], sl_builtins[k]->options, arena);
    }
    sl_arena_destroy(arena);
    return 0;
}
