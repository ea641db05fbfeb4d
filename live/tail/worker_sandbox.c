/* A worker with one sandbox. The sandbox's process ends with the thread that started it, so it is started and
 * stopped in the worker's thread. */
#include "live/tail/worker_sandbox.h"

#include <stdlib.h>

struct worker {
    struct sl_worker base;
    struct sl_runner *runner;
};

static struct worker *of(struct sl_worker *base)
{
    return (struct worker *)base;
}

static enum sl_status open_worker(struct sl_worker *base, struct sl_error *error)
{
    /* The first one proves the configuration. What stops a later one from starting is a function error of the
     * batch that it was to have. */
    return base->number == 0 ? sl_runner_warm_up(of(base)->runner, error) : SL_OK;
}

static void run(struct sl_worker *base, struct sl_pool_task *task)
{
    struct worker *w = of(base);
    struct sl_esm_result result = {.outcome = SL_ESM_FAILED};
    sl_runner_set_until(w->runner, task->until_ms);
    sl_runner_begin(w->runner, task->inv);
    sl_runner_collect(w->runner, task->inv, &result);
    task->outcome = result.outcome;
    sl_buffer_reset(&task->body);
    sl_buffer_add_span(&task->body, result.body);
    sl_notes_forget(sl_runner_notes(w->runner), task->inv->request_id);
}

static void cancel(struct sl_worker *base)
{
    sl_runner_cancel(of(base)->runner);
}

static void close_worker(struct sl_worker *base)
{
    struct worker *w = of(base);
    sl_runner_destroy(w->runner);
    w->runner = NULL;
}

static size_t routes(const struct sl_worker *base)
{
    return sl_runner_routes(((const struct worker *)base)->runner);
}

static void route(const struct sl_worker *base, size_t i, struct sl_runner_route *out)
{
    *out = *sl_runner_route(((const struct worker *)base)->runner, i);
}

static void stats(struct sl_worker *base, struct sl_runner_stats *sum)
{
    struct sl_runner_stats one = sl_runner_stats(of(base)->runner);
    sum->starts += one.starts;
    sum->exits += one.exits;
    sum->timeouts += one.timeouts;
    sum->init_errors += one.init_errors;
    sum->not_json += one.not_json;
    sum->protocol.second_answers += one.protocol.second_answers;
    sum->protocol.wrong_ids += one.protocol.wrong_ids;
    sum->protocol.refetched += one.protocol.refetched;
    sum->protocol.too_large += one.protocol.too_large;
    sum->protocol.unknown += one.protocol.unknown;
}

struct sl_worker *sl_worker_sandbox_new(size_t number, const struct sl_runner_options *options)
{
    static const struct sl_worker_kind kind = {.open = open_worker,
                                               .run = run,
                                               .close = close_worker,
                                               .cancel = cancel,
                                               .routes = routes,
                                               .route = route,
                                               .stats = stats};
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        sl_die("out of memory: a worker");
    *w = (struct worker){.base = {.kind = &kind, .number = number}, .runner = sl_runner_new(options)};
    return &w->base;
}

void sl_worker_sandbox_destroy(struct sl_worker *worker)
{
    if (worker)
        sl_runner_destroy(of(worker)->runner);
    free(worker);
}
