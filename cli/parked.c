/* Where a replay parked records: see cli/parked.h. */
#include "cli/parked.h"

#include "base/buffer.h"
#include "base/span.h"
#include "handlers/pipeline/config.h"
#include "sinks/target.h"

#include <inttypes.h>
#include <string.h>

#define SHOWN 5 /* reasons of a route */

static struct sl_parked_reason *reason_of(struct sl_parked_reasons *reasons, const struct sl_note *note,
                                          struct sl_arena *arena)
{
    for (size_t i = 0; i < reasons->n; i++) {
        struct sl_parked_reason *r = &reasons->list[i];
        if (strcmp(r->route, note->route) == 0 && strcmp(r->code, note->code) == 0 &&
            strcmp(r->text, note->text) == 0)
            return r;
    }
    if (reasons->n == SL_PARKED_REASONS)
        return &reasons->list[SL_PARKED_REASONS - 1];
    struct sl_parked_reason *r = &reasons->list[reasons->n++];
    const bool is_last = reasons->n == SL_PARKED_REASONS;
    *r = (struct sl_parked_reason){
        .route = is_last ? "" : sl_arena_copy(arena, sl_span_str(note->route)),
        .code = is_last ? "" : sl_arena_copy(arena, sl_span_str(note->code)),
        .text = is_last ? "" : sl_arena_copy(arena, sl_span_str(note->text)),
    };
    return r;
}

void sl_parked_add(struct sl_parked_reasons *reasons, const struct sl_notes *notes, const char *request_id,
                   struct sl_arena *arena)
{
    for (size_t i = 0; i < notes->n; i++)
        if (notes->list[i].is_parked && strcmp(notes->list[i].request_id, request_id) == 0)
            reason_of(reasons, &notes->list[i], arena)->n++;
}

/* The most frequent first; what is not named is in the route's own line. */
static void add_reasons(const struct sl_parked_reasons *reasons, const char *route, struct sl_buffer *out)
{
    bool is_shown[SL_PARKED_REASONS] = {false};
    for (size_t shown = 0; shown < SHOWN; shown++) {
        size_t most = SL_PARKED_REASONS;
        for (size_t i = 0; i < reasons->n; i++)
            if (!is_shown[i] && strcmp(reasons->list[i].route, route) == 0 &&
                (most == SL_PARKED_REASONS || reasons->list[i].n > reasons->list[most].n))
                most = i;
        if (most == SL_PARKED_REASONS)
            return;
        is_shown[most] = true;
        const struct sl_parked_reason *r = &reasons->list[most];
        sl_buffer_printf(out, "  reason        %8" PRIu64 "   %s: %s\n", r->n, r->code, r->text);
    }
}

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
static void add_routes(const struct sl_config *config, const struct sl_runner *runner,
                       const struct sl_parked_reasons *reasons, struct sl_buffer *out)
{
    for (size_t i = 0; i < sl_runner_routes(runner); i++)
        for (size_t k = 0; k < config->n_routes; k++) {
            const struct sl_runner_route *r = sl_runner_route(runner, i);
            if (!r->parked || !config->routes[k].on_failure.n || strcmp(r->name, config->routes[k].name) != 0)
                continue;
            add_route(&config->routes[k], r->parked, out);
            add_reasons(reasons, r->name, out);
        }
}

const char *sl_parked_text(const char *config, const struct sl_vars *vars, const struct sl_runner *runner,
                           const struct sl_parked_reasons *reasons, struct sl_arena *arena)
{
    struct sl_config read;
    struct sl_buffer text;
    if (sl_config_read(config, vars, arena, &read, NULL) != SL_OK)
        return "";
    sl_buffer_init(&text, SL_CONFIG_BYTES);
    add_routes(&read, runner, reasons, &text);
    const char *lines = sl_arena_copy(arena, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return lines;
}
