#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch_run.h"
#include "streams/record.h"

#include <jansson.h>

void sl_answer_window_bounds(struct sl_dispatch *d, struct sl_span window, struct sl_span *start,
                             struct sl_span *end)
{
    json_t *bounds = json_loadb(window.ptr ? window.ptr : "", window.len, 0, NULL);
    const char *from = json_string_value(json_object_get(bounds, "start"));
    const char *to = json_string_value(json_object_get(bounds, "end"));
    *start = from ? sl_span_str(sl_arena_copy(d->arena, sl_span_str(from))) : (struct sl_span){0};
    *end = to ? sl_span_str(sl_arena_copy(d->arena, sl_span_str(to))) : (struct sl_span){0};
    json_decref(bounds);
}

static struct sl_span identifier(const struct sl_dispatch *d, size_t index)
{
    return sl_record_text(sl_batch_record(d->batch, index), SL_FIELD_IDENTIFIER);
}

/* The error for the log, and for the event source where it is a function error. */
static void say_failure(const struct sl_dispatch *d, struct sl_answer *out)
{
    const struct sl_why *why = d->failure;
    if (d->n == 0)
        sl_fail(&out->error, why->status, why->code, "route %s: %s", d->failed_route->config->name,
                why->text);
    else
        sl_fail(&out->error, why->status, why->code, "route %s, record %zu of %zu, sequence number %.*s: %s",
                d->failed_route->config->name, d->k + 1, d->n, SL_ARG(identifier(d, d->k)), why->text);
}

/* A partial answer at the first record of several would make the event source count attempts on all of them
 * and at last give them all up; on a function error it halves the batch until the rejected one is alone.
 * Where the outside world failed, halves would not help: the batch is to come again whole. */
static bool is_function_error(const struct sl_dispatch *d)
{
    if (!d->failure)
        return false;
    if (!d->p->config.reports_failures || d->n == 0)
        return true;
    return d->k == 0 && d->n > 1 && d->failure->status == SL_REJECT;
}

size_t sl_answer_floor(const struct sl_dispatch *d)
{
    return is_function_error(d) ? 0 : d->k;
}

static void write_body(const struct sl_dispatch *d, struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    if (d->batch->is_window) {
        struct sl_span echo = d->batch->state.ptr ? d->batch->state : SL_LIT("{}");
        sl_json_add_raw(out, "state", d->has_state ? d->state : echo);
    }
    sl_json_add_raw(out, "batchItemFailures", SL_LIT("["));
    if (d->failure) {
        sl_buffer_add_char(out, '{');
        sl_json_add_member(out, "itemIdentifier", identifier(d, d->k));
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_str(out, "]}");
}

void sl_answer_write(struct sl_dispatch *d, struct sl_answer *out)
{
    out->checkpoint = d->k;
    out->parked = d->n_durable;
    out->is_error = is_function_error(d);
    sl_error_clear(&out->error);
    sl_buffer_reset(&out->body);
    if (d->failure)
        say_failure(d, out);
    if (!out->is_error)
        write_body(d, &out->body);
}
