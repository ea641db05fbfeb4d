/* A tumbling window's state: made by the one route whose handler has window(). */
#include "base/json.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_call.h"
#include "handlers/dispatch/dispatch_private.h"

#include <jansson.h>

/* The most state a shard may have: beyond it Lambda ends the window early. */
#define STATE_BYTES (1024 * 1024)

static size_t applied_below_k(const struct sl_dispatch *d, const struct sl_run *run)
{
    size_t n = 0;
    for (size_t i = 0; run && i < run->n && run->entries[i].index < d->k; i++)
        if (run->entries[i].state == SL_ENTRY_APPLIED)
            d->slice[n++] = sl_batch_record(d->batch, run->entries[i].index);
    return n;
}

static void fail_window(struct sl_dispatch *d, struct sl_route *route, enum sl_status status,
                        const struct sl_error *error)
{
    /* Single records are not to blame: a half of the batch would fail too. */
    status = status == SL_RETRY ? SL_RETRY : SL_FATAL;
    bool has_text = error->text[0];
    d->k = 0;
    d->failed_route = route;
    d->failure = sl_dispatch_why(d, status, error->code[0] ? error->code : "WindowFailed",
                                 has_text ? error->text : "the handler's window() failed and gave no reason");
    sl_route_enter(route);
    sl_log(d->p->options.log, SL_ERROR, "the window's state was not made (%s): %s: %s",
           sl_status_name(status), d->failure->code, d->failure->text);
    sl_route_leave(route);
}

static enum sl_status check_state(struct sl_span state, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    if (state.len > STATE_BYTES)
        return sl_fail(error, SL_FATAL, "StateTooLarge",
                       "the window's new state is %zu bytes; Lambda keeps %d at most", state.len,
                       STATE_BYTES);
    if (sl_json_check(state, &why) != SL_OK || state.ptr[0] != '{')
        return sl_fail(error, SL_FATAL, "InvalidState", "the window's new state is not a JSON object: %s",
                       why.text);
    return SL_OK;
}

static enum sl_status call_window(struct sl_dispatch *d, struct sl_route *route, struct sl_window *window,
                                  struct sl_error *error)
{
    sl_route_enter(route);
    const struct sl_call_time time = sl_call_time_begin(route);
    enum sl_status status = route->loaded.handler.window(route->self, window, error);
    sl_call_time_add(route, &time);
    sl_error_seal(error);
    sl_route_leave(route);
    sl_dispatch_look(d, route, "window");
    route->stats.calls++;
    if (status == SL_OK && window->new_state.ptr)
        status = check_state(window->new_state, error);
    return status;
}

static struct sl_span kept_text(struct sl_arena *arena, const json_t *value)
{
    return sl_span_str(json_is_string(value) ? sl_arena_copy(arena, sl_span_str(json_string_value(value)))
                                             : NULL);
}

/* Of {"start":...,"end":...}; absent when not there. */
static void read_bounds(struct sl_arena *arena, struct sl_span json, struct sl_window *window)
{
    json_t *bounds = json_loadb(json.ptr ? json.ptr : "", json.len, 0, NULL);
    window->start = kept_text(arena, json_object_get(bounds, "start"));
    window->end = kept_text(arena, json_object_get(bounds, "end"));
    json_decref(bounds);
}

bool sl_dispatch_window(struct sl_dispatch *d, struct sl_route *route, const struct sl_run *run)
{
    const struct sl_batch *batch = d->batch;
    struct sl_window window = {
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(window)},
        .state = batch->state.ptr ? batch->state : SL_LIT("{}"),
        .is_final = batch->is_final && d->k == d->n, /* else the rest is delivered again, as the last */
        .is_terminated_early = batch->is_terminated_early,
        .arena = d->arena,
        .deadline_ms = d->end_ms,
        .records = d->slice,
        .n = applied_below_k(d, run),
    };
    read_bounds(d->arena, batch->window, &window);
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status;
    unsigned tries = 0;
    do {
        sl_error_clear(&error);
        status = call_window(d, route, &window, &error);
    } while (status == SL_RETRY && !d->is_ruined && sl_dispatch_back_off(d, tries++, d->end_ms));
    if (d->is_ruined)
        return false;
    d->has_state = status == SL_OK;
    d->state = window.new_state.ptr ? window.new_state : window.state;
    if (status != SL_OK)
        fail_window(d, route, status, &error);
    return status == SL_OK;
}
