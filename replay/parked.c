/* Where a replay parked records: see replay/parked.h. */
#include "replay/parked.h"

#include "base/buffer.h"
#include "base/span.h"
#include "handlers/pipeline/config.h"
#include "sinks/target.h"

#include <inttypes.h>
#include <string.h>

extern char **environ;

static void add_route(const struct sl_config_route *route, uint64_t parked, struct sl_buffer *out)
{
    sl_buffer_printf(out, "%sparked          %8" PRIu64 "   of %s, in ", out->len ? "" : "\n", parked,
                     route->name);
    for (size_t i = 0; i < route->on_failure.n; i++)
        sl_buffer_printf(out, "%s%.*s", i ? ", or if that was not possible " : "",
                         SL_ARG(sl_target_shown(route->on_failure.urls[i])));
    sl_buffer_add_char(out, '\n');
}

/* The processes name their routes as the configuration does. */
static void add_routes(const struct sl_config *config, const struct sl_runner *runner, struct sl_buffer *out)
{
    for (size_t i = 0; i < sl_runner_routes(runner); i++)
        for (size_t k = 0; k < config->n_routes; k++) {
            const struct sl_runner_route *r = sl_runner_route(runner, i);
            if (r->parked && config->routes[k].on_failure.n && strcmp(r->name, config->routes[k].name) == 0)
                add_route(&config->routes[k], r->parked, out);
        }
}

const char *sl_parked_text(const char *config, const struct sl_runner *runner, struct sl_arena *arena)
{
    const struct sl_vars vars = {(const char *const *)environ};
    struct sl_config read;
    struct sl_buffer text;
    if (sl_config_read(config, &vars, arena, &read, NULL) != SL_OK)
        return "";
    sl_buffer_init(&text, SL_CONFIG_BYTES);
    add_routes(&read, runner, &text);
    const char *lines = sl_arena_copy(arena, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return lines;
}
