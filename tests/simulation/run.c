/* Runs one seed: the mapping delivers its shards to dispatch, and the oracle looks at what happens. */
#include "tests/simulation/sim.h"

#include "base/span.h"
#include "tests/support/counts.h"

#include <stdio.h>

#define EPOCH_NS 1790000000000000000

struct sl_pipeline *sim_open_pipeline(struct sim *s, struct sl_log *log)
{
    static const struct sl_vars no_vars = {.list = NULL};
    static const char *const nowhere[] = {NULL};
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", s->config_fd);
    struct sl_pipeline_options options = {.config_path = path,
                                          .vars = &no_vars,
                                          .clock = &s->clock.clock,
                                          .log = log,
                                          .sinks = &s->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "f",
                                          .builtins = sim_handlers,
                                          .openers = &sim_openers};
    struct sl_error error = SL_NO_ERROR;
    struct sl_pipeline *p = NULL;
    if (sl_pipeline_open(&options, &p, &error) != SL_OK)
        sim_violation(s, "the pipeline cannot be opened: %s", error.text);
    return p;
}

/* ---- one invocation ---- */

static void dispatch(struct sim *s, const struct sl_esm_invocation *inv)
{
    struct sl_batch batch;
    struct sl_error error = SL_NO_ERROR;
    struct sl_invocation invocation = {.request_id = inv->request_id,
                                       .function_arn = s->settings.function_arn,
                                       .deadline_ms = s->clock.ms + s->timeout_ms,
                                       .arena = s->call};
    const struct sl_decode_options options = {.any_shape = false};
    sl_arena_reset(s->call);
    s->invocations++;
    s->has_crashed = false;
    if (sl_batch_decode(inv->payload, s->call, &options, &batch, &error) != SL_OK) {
        sim_violation(s, "an event does not decode: %s", error.text);
        return;
    }
    const struct counts before = counts_of(s->p);
    sl_dispatch(s->p, &batch, &invocation, &s->answer);
    const char *wrong = counts_wrong(s->p, &before, &s->answer, &batch, true);
    if (wrong)
        sim_violation(s, "%s", wrong);
    if (s->clock.ms >= invocation.deadline_ms && !s->has_crashed)
        sim_violation(s, "an invocation would have been killed at its deadline");
    const struct sim_change *first = inv->n ? inv->records[0]->tag : NULL;
    bool is_poison = first && !s->parks && (first->poison & s->routes);
    if (s->reports && s->answer.is_error && first && !is_poison && !s->has_crashed)
        sim_violation(s, "a function error would split the batch for %s: %s", first->id,
                      s->answer.error.text);
}

static void invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    struct sim *s = self;
    *out = (struct sl_esm_result){.duration_ms = 1};
    bool is_faulty = s->clock.ms <= SIM_FAULTY_MS;
    if (s->violation[0] ||
        (is_faulty && s->plan.throttle_one_in && sim_draw(s, s->plan.throttle_one_in) == 0)) {
        out->outcome = SL_ESM_THROTTLED;
        return;
    }
    dispatch(s, inv);
    if (s->has_crashed) {
        sl_pipeline_close(s->p);
        s->p = sim_open_pipeline(s, &s->log);
    }
    bool is_lost = is_faulty && s->plan.lost_answer_one_in && sim_draw(s, s->plan.lost_answer_one_in) == 0;
    out->outcome = s->has_crashed || is_lost || s->answer.is_error ? SL_ESM_FAILED : SL_ESM_ANSWERED;
    out->body = out->outcome == SL_ESM_FAILED ? SL_LIT("{\"errorMessage\":\"x\",\"errorType\":\"X\"}")
                                              : sl_buffer_span(&s->answer.body);
}

static void decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *decision)
{
    struct sim *s = self;
    (void)result;
    if (decision->is_malformed)
        sim_violation(s, "an answer was malformed: %.*s", SL_ARG(result->body));
    if (decision->verb == SL_ESM_ADVANCE)
        sim_check_done(s, inv->records, inv->n);
    else if (decision->verb == SL_ESM_CHECKPOINT)
        sim_check_done(s, inv->records, decision->failed);
}

static void discarded(void *self, const struct sl_esm_discard *discard)
{
    sim_check_discard(self, discard);
}

/* ---- one seed ---- */

void sim_run(struct sim *s, uint64_t seed, int config_fd)
{
    *s = (struct sim){.seed = seed, .chance = seed * 0x9E3779B97F4A7C15u, .config_fd = config_fd};
    sim_now = s;
    s->arena = sl_arena_new(256 * 1024);
    s->call = sl_arena_new(256 * 1024);
    sl_clock_virtual_init(&s->clock, EPOCH_NS, seed);
    sl_log_init(&s->log, -1, SL_OFF, SL_LOG_TEXT, &s->clock.clock);
    sl_buffer_init(&s->answer.body, SL_ANSWER_BYTES);
    sim_choose_plan(s);
    sim_write_history(s);
    sim_write_ledger(s);
    sim_write_config(s);
    struct sl_error error = SL_NO_ERROR;
    if (sl_esm_settings_check(&s->settings, &error) != SL_OK)
        sim_violation(s, "the mapping is refused: %s", error.text);
    s->p = sim_open_pipeline(s, &s->log);
    if (s->violation[0])
        return;
    const struct sl_esm_driver driver = {
        .self = s, .invoke = invoke, .decided = decided, .discarded = discarded};
    struct sl_esm *esm = sl_esm_new(&s->settings, s->shards, s->n_shards, &s->clock, &driver);
    while (!s->violation[0] && sl_esm_step(esm))
        if (s->invocations > 20000)
            sim_violation(s, "the run has not ended after %llu invocations",
                          (unsigned long long)s->invocations);
    sl_esm_destroy(esm);
    sim_drain_all(s);
    sim_check_end(s);
}

void sim_clean_up(struct sim *s)
{
    sim_drain_clean_up(s);
    sl_pipeline_close(s->p);
    sl_buffer_clean_up(&s->answer.body);
    sl_log_clean_up(&s->log);
    sl_arena_destroy(s->call);
    sl_arena_destroy(s->arena);
}
