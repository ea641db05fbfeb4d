/* The answer: what the event source gets, by k and what stopped there. */
#include "handlers/dispatch/dispatch_answer.h"

#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"

static struct sl_span identifier(const struct sl_dispatch *d, size_t index)
{
    return sl_record_text(sl_batch_record(d->batch, index), SL_FIELD_IDENTIFIER);
}

/* The error goes to the log, and to the event source if it is a function error. */
static void say_failure(const struct sl_dispatch *d, struct sl_answer *out)
{
    const struct sl_why *why = d->failure;
    if (d->n == 0 || d->is_ruined)
        sl_fail(&out->error, why->status, why->code, "route %s: %s", d->failed_route->config->name,
                why->text);
    else
        sl_fail(&out->error, why->status, why->code, "route %s, record %zu of %zu, sequence number %.*s: %s",
                d->failed_route->config->name, d->k + 1, d->n, SL_ARG(identifier(d, d->k)), why->text);
}

/* A partial answer at the first record of several would make the event source count attempts on all of them,
 * and at last give them all up. On a function error it halves the batch until the rejected record is alone,
 * or the one that a handler may have died of. Where the outside world failed, halves would not help: the
 * whole batch is to be retried. */
static bool is_function_error(const struct sl_dispatch *d)
{
    if (!d->failure)
        return false;
    if (!d->p->config.reports_failures || d->n == 0 || d->is_ruined)
        return true;
    return d->k == 0 && d->n > 1 && (d->failure->status == SL_REJECT || d->failure->is_unproven);
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
    if (d->failure && d->k < d->n)
        sl_dispatch_note(d, false, d->k, d->failed_route, d->failure);
    out->notes = d->notes;
    out->n_notes = d->n_notes;
    out->checkpoint = d->k;
    out->parked = d->n_durable;
    out->set_aside = d->n_letters;
    out->is_ruined = d->is_ruined;
    out->is_error = is_function_error(d);
    sl_error_clear(&out->error);
    sl_buffer_reset(&out->body);
    if (d->failure)
        say_failure(d, out);
    if (!out->is_error)
        write_body(d, &out->body);
}
