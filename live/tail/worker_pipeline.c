/* A worker with a pipeline in this process: what bootstrap does with one event, without its process. */
#include "live/tail/worker_pipeline.h"

#include "base/json_write.h"
#include "handlers/dispatch/drain.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/config.h"
#include "handlers/tracing/tracing.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <stdlib.h>
#include <unistd.h>

#define ARENA_BYTES (256 * 1024)

struct worker {
    struct sl_worker base;
    const struct sl_worker_pipeline_options *options;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_pipeline *pipeline;  /* NULL: it could not be opened again with other secrets */
    struct sl_route_stats *before; /* per route: what the pipelines before it did; NULL: there was none */
    struct sl_arena *arena;
    struct sl_answer answer;
    struct sl_drain *drain;     /* NULL: no letters came yet */
    struct sl_tracing *tracing; /* NULL: no spans are made */
};

static struct worker *of(struct sl_worker *base)
{
    return (struct worker *)base;
}

static void close_pipeline(struct worker *w)
{
    sl_tracing_close(w->tracing, true);
    sl_drain_destroy(w->drain);
    sl_pipeline_close(w->pipeline);
    w->tracing = NULL;
    w->drain = NULL;
    w->pipeline = NULL;
}

static void close_worker(struct sl_worker *base)
{
    struct worker *w = of(base);
    close_pipeline(w);
    free(w->before);
    w->before = NULL;
    sl_sinks_clean_up(&w->sinks);
    sl_buffer_clean_up(&w->answer.body);
    sl_arena_destroy(w->arena);
    sl_log_clean_up(&w->log);
}

static enum sl_status open_pipeline(struct worker *w, struct sl_error *error)
{
    const struct sl_worker_pipeline_options *o = w->options;
    const struct sl_pipeline_options options = {.config_path = o->config_path,
                                                .vars = o->vars,
                                                .clock = sl_clock_system(),
                                                .log = &w->log,
                                                .sinks = &w->sinks,
                                                .handler_path = o->handler_path,
                                                .function_name = o->function_name,
                                                .openers = o->openers};
    enum sl_status status = sl_pipeline_open(&options, &w->pipeline, error);
    if (status == SL_OK)
        w->tracing = sl_tracing_open(o->vars, &w->log, w->pipeline);
    return status;
}

static enum sl_status open_worker(struct sl_worker *base, struct sl_error *error)
{
    struct worker *w = of(base);
    const struct sl_worker_pipeline_options *o = w->options;
    enum sl_level level = sl_log_level(sl_vars_get(o->vars, "AWS_LAMBDA_LOG_LEVEL"), SL_WARN);
    sl_log_init(&w->log, STDERR_FILENO, level, SL_LOG_TEXT, sl_clock_system());
    w->log.no_metrics = true;
    sl_sinks_init(&w->sinks, sl_clock_system(), &w->log, o->vars);
    sl_buffer_init(&w->answer.body, SL_ANSWER_BYTES);
    w->arena = sl_arena_new(ARENA_BYTES);
    enum sl_status status = open_pipeline(w, error);
    if (status != SL_OK)
        close_worker(base);
    return status;
}

static void fail(struct worker *w, struct sl_pool_task *task, const struct sl_error *why)
{
    struct sl_buffer *b = &task->body;
    sl_log(&w->log, SL_ERROR, "%s: %s", why->code, why->text);
    task->outcome = SL_ESM_FAILED;
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "errorType", sl_span_str(why->code));
    sl_json_add_member(b, "errorMessage", sl_span_str(why->text));
    sl_buffer_add_char(b, '}');
}

static void begin_answer(struct sl_answer *a)
{
    sl_buffer_reset(&a->body);
    a->is_ruined = a->is_error = false;
    a->checkpoint = a->parked = a->set_aside = 0;
    sl_error_clear(&a->error);
}

static struct sl_invocation invocation_of(struct worker *w, const struct sl_pool_task *task)
{
    struct sl_clock *clock = sl_clock_system();
    int64_t deadline_ms = clock->now_ms(clock) + w->options->timeout_ms;
    return (struct sl_invocation){.request_id = task->inv->request_id,
                                  .function_arn = w->options->function_arn,
                                  .deadline_ms = task->until_ms < deadline_ms ? task->until_ms : deadline_ms,
                                  .arena = w->arena,
                                  .links = sl_tracing_begin(w->tracing, NULL)};
}

static void end_trace(struct worker *w, const struct sl_invocation *invocation, struct sl_traced traced)
{
    traced.request_id = invocation->request_id;
    traced.function_arn = invocation->function_arn;
    sl_tracing_end(w->tracing, &traced);
    sl_tracing_send(w->tracing, invocation->deadline_ms, w->arena);
}

static void end_answer(struct worker *w, struct sl_pool_task *task, const struct sl_error *why)
{
    if (why) {
        fail(w, task, why);
        return;
    }
    task->outcome = SL_ESM_ANSWERED;
    sl_buffer_add_span(&task->body, sl_buffer_span(&w->answer.body));
}

static void answer(struct worker *w, struct sl_pool_task *task, const struct sl_batch *batch)
{
    struct sl_answer *a = &w->answer;
    const struct sl_invocation invocation = invocation_of(w, task);
    begin_answer(a);
    sl_dispatch(w->pipeline, batch, &invocation, a);
    end_answer(w, task, a->is_error ? &a->error : NULL);
    end_trace(w, &invocation,
              (struct sl_traced){.table = batch->n ? sl_record_text(sl_batch_record(batch, 0), SL_FIELD_TABLE)
                                                   : SL_LIT(""),
                                 .records = batch->n,
                                 .error = a->is_error || a->checkpoint < batch->n ? a->error.code : NULL});
}

static void answer_letters(struct worker *w, struct sl_pool_task *task)
{
    const struct sl_invocation invocation = invocation_of(w, task);
    struct sl_drained drained = {.letters = 0};
    struct sl_error why = SL_NO_ERROR;
    if (!w->drain)
        w->drain = sl_drain_new(&(struct sl_drain_options){.pipeline = w->pipeline});
    begin_answer(&w->answer);
    enum sl_status status =
        sl_drain_event(w->drain, task->inv->payload, &invocation, &w->answer, &drained, &why);
    end_answer(w, task, status == SL_OK ? NULL : &why);
    end_trace(w, &invocation,
              (struct sl_traced){.records = drained.records, .error = status == SL_OK ? NULL : why.code});
}

static void add_stats(struct sl_route_stats *sum, const struct sl_route_stats *more)
{
    sum->matched += more->matched;
    sum->applied += more->applied;
    sum->parked += more->parked;
    sum->set_aside += more->set_aside;
    sum->failed += more->failed;
    sum->calls += more->calls;
    sum->bytes += more->bytes;
}

/* A secret was changed, and a target has refused the old one. */
static void renew_secrets(struct worker *w)
{
    if (!sl_sinks_secrets_changed(&w->sinks))
        return;
    size_t n = sl_pipeline_routes(w->pipeline);
    if (!w->before && !(w->before = calloc(n + 1, sizeof(*w->before))))
        sl_die("out of memory: what routes did");
    for (size_t i = 0; i < n; i++) {
        const struct sl_route_stats stats = sl_pipeline_stats(w->pipeline, i);
        add_stats(&w->before[i], &stats);
    }
    close_pipeline(w);
}

static void run(struct sl_worker *base, struct sl_pool_task *task)
{
    struct worker *w = of(base);
    struct sl_error why = SL_NO_ERROR;
    sl_buffer_reset(&task->body);
    if (!w->pipeline && open_pipeline(w, &why) != SL_OK) {
        fail(w, task, &why);
        return;
    }
    const struct sl_decode_options options = {.ttl_attribute = sl_pipeline_ttl_attribute(w->pipeline)};
    struct sl_batch batch;
    snprintf(w->log.request_id, sizeof(w->log.request_id), "%s", task->inv->request_id);
    if (sl_drain_is_event(task->inv->payload))
        answer_letters(w, task);
    else if (sl_batch_decode(task->inv->payload, w->arena, &options, &batch, &why) != SL_OK)
        fail(w, task, &why);
    else
        answer(w, task, &batch);
    sl_arena_reset(w->arena);
    renew_secrets(w);
    w->log.request_id[0] = '\0';
}

static size_t routes(const struct sl_worker *base)
{
    const struct worker *w = (const struct worker *)base;
    return w->pipeline ? sl_pipeline_routes(w->pipeline) : 0;
}

static void route(const struct sl_worker *base, size_t i, struct sl_runner_route *out)
{
    const struct worker *w = (const struct worker *)base;
    struct sl_route_stats s = sl_pipeline_stats(w->pipeline, i);
    if (w->before)
        add_stats(&s, &w->before[i]);
    *out = (struct sl_runner_route){.name = (char *)(uintptr_t)s.name,
                                    .handler = (char *)(uintptr_t)s.handler,
                                    .target = (char *)(uintptr_t)s.target,
                                    .matched = s.matched,
                                    .applied = s.applied,
                                    .parked = s.parked,
                                    .set_aside = s.set_aside,
                                    .failed = s.failed,
                                    .calls = s.calls,
                                    .bytes = s.bytes};
}

struct sl_worker *sl_worker_pipeline_new(size_t number, const struct sl_worker_pipeline_options *options)
{
    static const struct sl_worker_kind kind = {
        .open = open_worker, .run = run, .close = close_worker, .routes = routes, .route = route};
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        sl_die("out of memory: a worker");
    *w = (struct worker){.base = {.kind = &kind, .number = number}, .options = options};
    return &w->base;
}

void sl_worker_pipeline_destroy(struct sl_worker *worker)
{
    free(worker);
}

/* ---- what may run here ---- */

static enum sl_status check_route(const struct sl_config_route *route, bool trusts_plugins, bool is_shared,
                                  struct sl_error *error)
{
    const struct sl_handler *handler = sl_builtin_named(route->handler)->handler;
    if (!handler && (!trusts_plugins || is_shared))
        return sl_fail(
            error, SL_REJECT, "Usage",
            "--in-process: the handler %s of the route %s is a plugin, which can crash or hang this "
            "process: leave --in-process out%s",
            route->handler, route->name, is_shared ? "" : ", or say --trust-plugins");
    if (is_shared && handler->flags & SL_ONCE_ONLY)
        return sl_fail(
            error, SL_REJECT, "Usage",
            "--in-process: the route %s sends what cannot be sent twice, and nothing could stop it "
            "when its lease is lost: leave --in-process or --leases out",
            route->name);
    return SL_OK;
}

enum sl_status sl_worker_pipeline_check(const char *config_path, const struct sl_vars *vars,
                                        bool trusts_plugins, bool is_shared, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_config config;
    enum sl_status status = sl_config_read(config_path, vars, arena, &config, error);
    for (size_t i = 0; status == SL_OK && i < config.n_routes; i++)
        status = check_route(&config.routes[i], trusts_plugins, is_shared, error);
    sl_arena_destroy(arena);
    return status;
}
