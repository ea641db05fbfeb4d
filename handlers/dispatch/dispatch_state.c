/* The state of one batch: the lowest failure, the items' keys, the time, and pauses between tries. */
#include "base/clock.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/watch.h"
#include "streams/record.h"

/* The pause between two tries is drawn from the whole of 0 to BASE * 2^tries. */
#define BACK_OFF_BASE_MS 50
#define BACK_OFF_MOST_MS 5000

int64_t sl_dispatch_now(const struct sl_dispatch *d)
{
    return d->clock->now_ms(d->clock);
}

struct sl_why *sl_dispatch_why(struct sl_dispatch *d, enum sl_status status, const char *code,
                               const char *text)
{
    struct sl_why *why = sl_arena_alloc(d->arena, sizeof(*why));
    *why = (struct sl_why){.status = status,
                           .code = sl_arena_copy(d->arena, sl_span_str(code)),
                           .text = sl_arena_copy(d->arena, sl_span_str(text))};
    return why;
}

const struct sl_why *sl_dispatch_why_of(struct sl_dispatch *d, enum sl_status status,
                                        const struct sl_error *error)
{
    bool has_text = error && error->text[0];
    return sl_dispatch_why(d, status, error && error->code[0] ? error->code : "Unspecified",
                           has_text ? error->text : "the handler gave no reason");
}

void sl_dispatch_fail(struct sl_dispatch *d, size_t index, struct sl_route *route, const struct sl_why *why)
{
    if (index > d->k || (index == d->k && d->failed_route != route))
        return;
    d->k = index;
    d->failure = why;
    d->failed_route = route;
}

void sl_dispatch_ruin(struct sl_dispatch *d, struct sl_route *route, const struct sl_why *why)
{
    d->is_ruined = true;
    d->k = 0;
    d->failure = why;
    d->failed_route = route;
}

void sl_dispatch_look(struct sl_dispatch *d, struct sl_route *route, const char *function)
{
    struct sl_call_watch *watch = d->p->options.watch;
    if (!watch || watch->is_whole(watch))
        return;
    const char *text =
        sl_arena_printf(d->arena, "the handler closed descriptors that are not its own, in %s()", function);
    sl_dispatch_ruin(d, route, sl_dispatch_why(d, SL_FATAL, "HandlerClosedDescriptors", text));
}

void sl_dispatch_note(struct sl_dispatch *d, bool is_parked, size_t index, const struct sl_route *route,
                      const struct sl_why *why)
{
    if (is_parked && d->n_notes == SL_ANSWER_NOTES)
        return;
    bool is_full = d->n_notes == 0 || (d->n_notes >= 16 && (d->n_notes & (d->n_notes - 1)) == 0);
    if (is_full) {
        struct sl_answer_note *notes =
            sl_arena_alloc(d->arena, (d->n_notes ? 2 * d->n_notes : 16) * sizeof(*notes));
        if (d->n_notes)
            memcpy(notes, d->notes, d->n_notes * sizeof(*notes));
        d->notes = notes;
    }
    d->notes[d->n_notes++] = (struct sl_answer_note){
        .is_parked = is_parked,
        .route = route->config->name,
        .code = why->code,
        .text = why->text,
        .id = sl_record_text(sl_batch_record(d->batch, index), SL_FIELD_IDENTIFIER),
    };
}

struct sl_span sl_dispatch_key(struct sl_dispatch *d, size_t index)
{
    if (!d->keys)
        d->keys = sl_arena_zalloc(d->arena, d->n * sizeof(*d->keys));
    if (!d->keys[index].ptr)
        d->keys[index] = sl_record_item_key(sl_batch_record(d->batch, index), d->arena);
    return d->keys[index];
}

bool sl_dispatch_back_off(struct sl_dispatch *d, unsigned tries, int64_t deadline_ms)
{
    uint64_t most = BACK_OFF_BASE_MS;
    for (unsigned i = 0; i < tries && most < BACK_OFF_MOST_MS; i++)
        most *= 2;
    most = most < BACK_OFF_MOST_MS ? most : BACK_OFF_MOST_MS;
    int64_t wait = 1 + (int64_t)(d->clock->random(d->clock) % most);
    if (deadline_ms - sl_dispatch_now(d) <= wait)
        return false;
    d->clock->sleep_ms(d->clock, wait);
    return true;
}
