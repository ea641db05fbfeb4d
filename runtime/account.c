/* What invocations did: counted, said in a line each, and written as metrics when it is time. */
#include "runtime/account.h"

#include "runtime/metrics.h"
#include "runtime/summary.h"

#include <stdlib.h>
#include <sys/resource.h>

struct sl_account {
    const struct sl_settings *settings;
    struct sl_log *log;
    struct sl_pipeline *p;
    struct sl_summary summary;
    struct sl_metrics metrics;
    bool is_warm;
    struct sl_sums one;     /* of the last invocation */
    struct sl_sums waiting; /* of those whose metrics were not written yet */
    int64_t began_ms;       /* when the first of these ended */
};

/* ---- sums ---- */

uint64_t sl_sums_handle_ns(const struct sl_sums *sums)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < sums->n_routes; i++)
        ns += sums->routes[i].handle_ns;
    return ns;
}

uint64_t sl_sums_sink_ns(const struct sl_sums *sums)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < sums->n_routes; i++)
        ns += sums->routes[i].sink_ns;
    return ns;
}

static void open_sums(struct sl_sums *sums, struct sl_pipeline *p)
{
    sums->n_routes = sl_pipeline_routes(p);
    sums->routes = calloc(sums->n_routes + 1, sizeof(*sums->routes));
    if (!sums->routes)
        sl_die("out of memory: sums of %zu routes", sums->n_routes);
    sums->age_ms = -1;
}

static void empty(struct sl_sums *sums)
{
    struct sl_route_stats *routes = sums->routes;
    memset(routes, 0, sums->n_routes * sizeof(*routes));
    *sums = (struct sl_sums){.age_ms = -1, .routes = routes, .n_routes = sums->n_routes};
}

static uint64_t peak_kb(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss;
}

static int64_t age_ms(const struct sl_account *a, int64_t created_ns)
{
    int64_t ms = (a->log->clock->wall_ns(a->log->clock) - created_ns) / 1000000;
    return created_ns == 0 ? -1 : ms < 0 ? 0 : ms;
}

static void take(struct sl_account *a, const struct sl_invoked *invoked)
{
    struct sl_sums *one = &a->one;
    one->invocations = 1;
    one->records = invoked->records;
    one->parked = invoked->parked;
    one->set_aside = invoked->set_aside;
    one->letters = invoked->letters;
    one->letter_age_ms = invoked->letter_age_ms;
    one->failed = invoked->is_failed;
    one->cold = !a->is_warm;
    one->decode_ns = invoked->decode_ns;
    one->age_ms = age_ms(a, invoked->created_ns);
    one->peak_kb = peak_kb();
    for (size_t i = 0; i < one->n_routes; i++)
        one->routes[i] = sl_pipeline_stats(a->p, i);
    a->is_warm = true;
}

static void add_route(struct sl_route_stats *to, const struct sl_route_stats *from)
{
    to->name = from->name;
    to->waits_in = from->waits_in;
    to->matched += from->matched;
    to->applied += from->applied;
    to->parked += from->parked;
    to->failed += from->failed;
    to->skipped += from->skipped;
    to->set_aside += from->set_aside;
    to->probes += from->probes;
    to->bytes += from->bytes;
    to->handle_ns += from->handle_ns;
    to->sink_ns += from->sink_ns;
}

static void add(struct sl_sums *to, const struct sl_sums *from)
{
    to->invocations += from->invocations;
    to->records += from->records;
    to->parked += from->parked;
    to->set_aside += from->set_aside;
    to->letters += from->letters;
    to->letter_age_ms = from->letter_age_ms > to->letter_age_ms ? from->letter_age_ms : to->letter_age_ms;
    to->failed += from->failed;
    to->cold += from->cold;
    to->decode_ns += from->decode_ns;
    to->age_ms = from->age_ms > to->age_ms ? from->age_ms : to->age_ms;
    to->peak_kb = from->peak_kb > to->peak_kb ? from->peak_kb : to->peak_kb;
    for (size_t i = 0; i < to->n_routes; i++)
        add_route(&to->routes[i], &from->routes[i]);
}

/* ---- an invocation ---- */

struct sl_account *sl_account_open(const struct sl_settings *settings, struct sl_log *log,
                                   struct sl_pipeline *p)
{
    struct sl_account *a = calloc(1, sizeof(*a));
    if (!a)
        sl_die("out of memory: %zu bytes", sizeof(*a));
    a->settings = settings;
    a->log = log;
    a->p = p;
    open_sums(&a->one, p);
    open_sums(&a->waiting, p);
    sl_summary_init(&a->summary);
    sl_metrics_init(&a->metrics, log, settings->function_name, p);
    return a;
}

static void write_metrics(struct sl_account *a)
{
    if (a->waiting.invocations)
        sl_metrics_write(&a->metrics, &a->waiting);
    empty(&a->waiting);
}

void sl_account_close(struct sl_account *a)
{
    if (!a)
        return;
    write_metrics(a);
    free(a->one.routes);
    free(a->waiting.routes);
    sl_summary_clean_up(&a->summary);
    sl_metrics_clean_up(&a->metrics);
    free(a);
}

void sl_account_add(struct sl_account *a, const struct sl_invoked *invoked)
{
    take(a, invoked);
    if (a->settings->has_summary && !invoked->is_work)
        sl_summary_write(&a->summary, a->log, &a->one);
    if (a->settings->metrics_ms == SL_METRICS_OFF)
        return;
    const int64_t now_ms = a->log->clock->now_ms(a->log->clock);
    if (!a->waiting.invocations)
        a->began_ms = now_ms;
    add(&a->waiting, &a->one);
    if (now_ms - a->began_ms >= a->settings->metrics_ms)
        write_metrics(a);
}
