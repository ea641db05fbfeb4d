/* The test's own handlers: `probe` applies records in each way that the contract allows, `window` counts in
 * the state of a tumbling window. */
#include "tests/simulation/sim.h"

#include "base/span.h"
#include "handlers/pipeline/builtins.h"

#include <stdio.h>
#include <stdlib.h>

struct sim *sim_now;
static const struct sl_host *host;

static struct sim_change *change_at(const struct sl_slice *slice, size_t i)
{
    return sim_change_of(sim_now, host->record_text(slice->records[i], SL_FIELD_SEQUENCE_NUMBER));
}

static bool is_bad(const struct sim_change *c)
{
    return c->poison & 1u << SIM_PROBE;
}

static void apply(struct sim_change *c)
{
    if (!c->applied)
        sim_check_applied(sim_now, c, SIM_PROBE);
    c->applied++;
}

/* ---- probe ---- */

static enum sl_status all_or_nothing(struct sl_slice *slice, struct sl_error *error, bool done)
{
    for (size_t i = 0; i < slice->n; i++)
        if (is_bad(change_at(slice, i)))
            return host->fail(error, SL_REJECT, "Poison", "one of %zu", slice->n);
    for (size_t i = 0; done && i < slice->n; i++)
        apply(change_at(slice, i));
    return SL_OK;
}

static enum sl_status one_by_one(struct sl_slice *slice, struct sl_error *error, bool done, bool marks)
{
    for (size_t i = 0; i < slice->n; i++) {
        struct sim_change *c = change_at(slice, i);
        if (is_bad(c)) {
            struct sl_error why = SL_NO_ERROR;
            host->fail(&why, SL_REJECT, "Poison", "this one");
            if (!marks)
                return host->fail(error, SL_REJECT, "Poison", "record %zu of %zu", i, slice->n);
            host->mark(slice, i, SL_REJECT, &why);
        } else if (done) {
            apply(c);
            if (marks)
                host->mark(slice, i, SL_OK, NULL);
        }
    }
    return SL_OK;
}

static enum sl_status probe_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct sim *s = sim_now;
    (void)self;
    if (s->plan.broken == SIM_PORT_PROBE)
        return host->fail(error, SL_FATAL, "AccessDenied", "not allowed");
    enum sim_fault fault = sim_meets(s, SIM_PORT_PROBE, slice->deadline_ms);
    if (fault == SIM_PARTIAL) {
        /* Half of the slice is done and marked, as by a handler whose sink answers for each record. */
        for (size_t i = 0; i < slice->n / 2; i++) {
            struct sim_change *c = change_at(slice, i);
            if (is_bad(c))
                break;
            apply(c);
            host->mark(slice, i, SL_OK, NULL);
        }
        return host->fail(error, SL_RETRY, "Throttled", "half of it");
    }
    bool done = sim_fault_is_done(fault);
    enum sl_status status = s->plan.probe_mode == 0
                                ? all_or_nothing(slice, error, done)
                                : one_by_one(slice, error, done, s->plan.probe_mode == 1 && done);
    if (fault == SIM_WELL)
        return status;
    return host->fail(error, SL_RETRY, "Throttled", "slow down");
}

static enum sl_status probe_open(const struct sl_host *table, struct sl_route *route, void **self,
                                 struct sl_error *error)
{
    (void)route, (void)self, (void)error;
    host = table;
    return SL_OK;
}

static enum sl_status probe_accepts(void *self, enum sl_view view, struct sl_error *error)
{
    (void)self, (void)view;
    return sim_now->plan.refuses_view ? host->fail(error, SL_FATAL, "ViewType", "not this one") : SL_OK;
}

/* ---- window ---- */

static enum sl_status window_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    (void)self, (void)slice, (void)error;
    return SL_OK;
}

/* A window is identified by the first record that it counted: its last call may be repeated, and a late
 * record opens a new window for the same time. */
static void note_window(struct sim *s, const char *name, int64_t n)
{
    size_t i = 0;
    while (i < s->n_windows && strcmp(s->windows[i].name, name) != 0)
        i++;
    if (i == SIM_WINDOWS) {
        sim_violation(s, "more than %d windows", SIM_WINDOWS);
        return;
    }
    if (i == s->n_windows)
        s->n_windows++;
    snprintf(s->windows[i].name, sizeof(s->windows[i].name), "%s", name);
    s->windows[i].n = n;
}

static enum sl_status window_window(void *self, struct sl_window *window, struct sl_error *error)
{
    int64_t n = 0;
    char name[64] = "none";
    (void)self, (void)error;
    char *state = host->alloc(window->arena, window->state.len + 128);
    memcpy(state, window->state.ptr, window->state.len);
    state[window->state.len] = '\0';
    const char *number = strstr(state, "\"n\":"), *first = strstr(state, "\"first\":\"");
    if (number && first) {
        n = strtoll(number + 4, NULL, 10);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(first + 9, "\""), first + 9);
    } else if (window->n) {
        struct sl_slice slice = {.records = window->records, .n = window->n};
        snprintf(name, sizeof(name), "%s", change_at(&slice, 0)->id);
    }
    n += (int64_t)window->n;
    snprintf(state, 128, "{\"n\":%lld,\"first\":\"%s\"}", (long long)n, name);
    window->new_state = sl_span_str(state);
    if (window->is_final)
        note_window(sim_now, name, n);
    return SL_OK;
}

static const struct sl_handler probe = {.abi = SL_HANDLER_ABI,
                                        .name = "probe",
                                        .open = probe_open,
                                        .handle = probe_handle,
                                        .accepts = probe_accepts};
static const struct sl_handler window = {.abi = SL_HANDLER_ABI,
                                         .name = "window",
                                         .open = probe_open,
                                         .handle = window_handle,
                                         .window = window_window};

extern const struct sl_handler sl_archive_handler, sl_replicate_handler, sl_aggregate_handler,
    sl_view_handler, sl_notify_handler;

const struct sl_handler *const sim_handlers[] = {
    &sl_archive_handler,
    &sl_replicate_handler,
    &sl_aggregate_handler,
    &sl_view_handler,
    &sl_notify_handler,
    &probe,
    &window,
    NULL,
};
