/* Collects the spans of invocations, and sends them when it costs nobody anything: see tracing.h. */
#include "handlers/tracing/tracing.h"

#include "base/array.h"
#include "base/span.h"
#include "handlers/pipeline/route.h"
#include "handlers/tracing/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* OpenTelemetry's batch processor waits so long, too (SDK, "Batching processor"). */
#define WAIT_MS    5000
#define SEND_BYTES (64 * 1024)
/* Of spans that wait: an invocation's 101 spans with their links fit into half of it. */
#define MOST_BYTES (512 * 1024)
#define LINKS_MOST 1000 /* of all of an invocation's spans */

#define SEND_MS  1000
#define CLOSE_MS 300 /* Lambda kills a function half a second after its SIGTERM */
#define SPARE_MS 200 /* before the invocation is killed */
#define LEAST_MS 50
#define PAUSE_MS 30000 /* after a failure */
#define WARN_MS  60000

struct sl_tracing {
    struct sl_log *log;
    struct sl_pipeline *p;
    struct sl_route_stats *before; /* of each route, as the invocation began */
    struct sl_buffer resource, spans, attributes, request;
    size_t n; /* spans that wait */
    int64_t first_ms, pause_ms;
    bool is_again; /* what waits was sent once already */
    uint64_t dropped;
    int64_t warned_ms;
    bool has_warned, is_warm;

    /* The invocation's. */
    struct sl_trace_links links;
    int64_t began_ns, began_wall_ns;
    char trace_id[SL_TRACE_ID_HEX + 1], parent_id[SL_PARENT_ID_HEX + 1]; /* X-Ray's, if it is sampled */
};

/* ---- opening ---- */

static void describe(struct sl_tracing *t, const struct sl_vars *vars)
{
    const char *function = sl_vars_or(vars, "AWS_LAMBDA_FUNCTION_NAME", "");
    const char *name = sl_vars_or(vars, "OTEL_SERVICE_NAME", function[0] ? function : "sluice");
    static const char *const more[][2] = {{"faas.name", "AWS_LAMBDA_FUNCTION_NAME"},
                                          {"faas.version", "AWS_LAMBDA_FUNCTION_VERSION"},
                                          {"faas.instance", "AWS_LAMBDA_LOG_STREAM_NAME"},
                                          {"cloud.region", "AWS_REGION"}};
    sl_otlp_text(&t->resource, "service.name", sl_span_str(name));
    if (function[0]) {
        sl_otlp_text(&t->resource, "cloud.provider", SL_LIT("aws"));
        sl_otlp_text(&t->resource, "cloud.platform", SL_LIT("aws_lambda"));
    }
    for (size_t i = 0; i < SL_COUNT(more); i++)
        sl_otlp_text(&t->resource, more[i][0], sl_span_str(sl_vars_or(vars, more[i][1], "")));
}

struct sl_tracing *sl_tracing_open(const struct sl_vars *vars, struct sl_log *log, struct sl_pipeline *p)
{
    if (!p->spans)
        return NULL;
    struct sl_tracing *t = calloc(1, sizeof(*t));
    if (!t)
        sl_die("out of memory: %zu bytes", sizeof(*t));
    *t = (struct sl_tracing){.log = log, .p = p};
    t->links.routes = calloc(p->n + 1, sizeof(*t->links.routes));
    t->before = calloc(p->n + 1, sizeof(*t->before));
    if (!t->links.routes || !t->before)
        sl_die("out of memory: links of %zu routes", p->n);
    sl_buffer_init(&t->resource, 64 * 1024);
    sl_buffer_init(&t->attributes, 64 * 1024);
    sl_buffer_init(&t->spans, MOST_BYTES);
    sl_buffer_init(&t->request, MOST_BYTES + 128 * 1024);
    describe(t, vars);
    return t;
}

/* ---- an invocation ---- */

/* "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1" */
static struct sl_span field(const char *header, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = header; *at;) {
        size_t len = strcspn(at, ";");
        if (len > n && strncmp(at, name, n) == 0 && at[n] == '=')
            return sl_span(at + n + 1, len - n - 1);
        at += len + (at[len] == ';');
    }
    return sl_span("", 0);
}

/* As W3C's, it is a traceparent like any other. */
static void read_header(struct sl_tracing *t, const char *header)
{
    struct sl_span root = field(header, "Root"), parent = field(header, "Parent");
    char text[80];
    t->trace_id[0] = t->parent_id[0] = '\0';
    if (!sl_span_is(field(header, "Sampled"), "1") || root.len != 35 || !sl_span_starts(root, SL_LIT("1-")) ||
        root.ptr[10] != '-' || parent.len != SL_PARENT_ID_HEX)
        return;
    snprintf(text, sizeof(text), "00-%.8s%.24s-%.16s-01", root.ptr + 2, root.ptr + 11, parent.ptr);
    if (!sl_traceparent_is_valid(sl_span_str(text)))
        return;
    snprintf(t->trace_id, sizeof(t->trace_id), "%.*s", SL_ARG(sl_trace_id(sl_span_str(text))));
    snprintf(t->parent_id, sizeof(t->parent_id), "%.*s", SL_ARG(sl_parent_id(sl_span_str(text))));
}

struct sl_trace_links *sl_tracing_begin(struct sl_tracing *t, const char *trace_id)
{
    if (!t)
        return NULL;
    struct sl_clock *clock = t->log->clock;
    t->began_ns = clock->now_ns(clock);
    t->began_wall_ns = clock->wall_ns(clock);
    t->links.all = (struct sl_links){.n = 0};
    memset(t->links.routes, 0, t->p->n * sizeof(*t->links.routes));
    for (size_t i = 0; i < t->p->n; i++) {
        t->p->routes[i].began_ns = t->p->routes[i].ended_ns = 0;
        t->before[i] = t->p->routes[i].stats;
    }
    read_header(t, trace_id ? trace_id : "");
    return &t->links;
}

static void make_id(struct sl_clock *clock, char *out)
{
    uint64_t id = clock->random(clock);
    snprintf(out, SL_PARENT_ID_HEX + 1, "%016" PRIx64, id ? id : 1);
}

/* The first half of a new trace's id begins with its second, as X-Ray's do. */
static void make_trace_id(const struct sl_tracing *t, char out[SL_TRACE_ID_HEX + 1])
{
    struct sl_clock *clock = t->log->clock;
    snprintf(out, SL_TRACE_ID_HEX + 1, "%08" PRIx32 "%08" PRIx32 "%016" PRIx64,
             (uint32_t)(t->began_wall_ns / 1000000000), (uint32_t)clock->random(clock), clock->random(clock));
}

static int64_t wall_of(const struct sl_tracing *t, int64_t steady_ns)
{
    return t->began_wall_ns + (steady_ns - t->began_ns);
}

static void add_span(struct sl_tracing *t, const struct sl_otlp_span *span, const struct sl_links *links,
                     size_t *links_left)
{
    const size_t most = links->n < *links_left ? links->n : *links_left;
    sl_otlp_span(&t->spans, span, sl_buffer_span(&t->attributes), links, most);
    *links_left -= most;
    t->n++;
}

static void add_invocation(struct sl_tracing *t, const struct sl_traced *traced, struct sl_otlp_span *span,
                           size_t *links_left)
{
    struct sl_clock *clock = t->log->clock;
    char name[300];
    snprintf(name, sizeof(name), "process %.*s", SL_ARG(traced->table));
    span->name = traced->table.len ? name : "process";
    span->kind = SL_OTLP_CONSUMER;
    span->began_ns = t->began_wall_ns;
    span->ended_ns = wall_of(t, clock->now_ns(clock));
    span->error = traced->error;
    snprintf(span->parent_id, sizeof(span->parent_id), "%s", t->parent_id);
    sl_buffer_reset(&t->attributes);
    sl_otlp_text(&t->attributes, "faas.trigger", SL_LIT("datasource"));
    sl_otlp_text(&t->attributes, "faas.invocation_id", sl_span_str(traced->request_id));
    sl_otlp_bool(&t->attributes, "faas.coldstart", !t->is_warm);
    sl_otlp_text(&t->attributes, "cloud.resource_id", sl_span_str(traced->function_arn));
    sl_otlp_text(&t->attributes, "faas.document.collection", traced->table);
    sl_otlp_integer(&t->attributes, "messaging.batch.message_count", traced->records);
    if (traced->error)
        sl_otlp_text(&t->attributes, "error.type", sl_span_str(traced->error));
    add_span(t, span, &t->links.all, links_left);
}

/* Counts that are not 0. */
static void add_counts(struct sl_tracing *t, const struct sl_route_stats *stats,
                       const struct sl_route_stats *before)
{
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {{"sluice.matched", stats->matched - before->matched},
                  {"sluice.applied", stats->applied - before->applied},
                  {"sluice.parked", stats->parked - before->parked},
                  {"sluice.failed", stats->failed - before->failed},
                  {"sluice.skipped", stats->skipped - before->skipped},
                  {"sluice.set_aside", stats->set_aside - before->set_aside},
                  {"sluice.calls", stats->calls - before->calls}};
    for (size_t i = 0; i < SL_COUNT(counts); i++)
        if (counts[i].n)
            sl_otlp_integer(&t->attributes, counts[i].name, counts[i].n);
}

static void add_route(struct sl_tracing *t, size_t i, const struct sl_otlp_span *invocation,
                      size_t *links_left)
{
    const struct sl_route *route = &t->p->routes[i];
    const struct sl_route_stats *stats = &route->stats, *before = &t->before[i];
    const char *name = route->config->name;
    struct sl_otlp_span span = {.name = name, .kind = SL_OTLP_INTERNAL};
    if (stats->matched == before->matched)
        return;
    memcpy(span.trace_id, invocation->trace_id, sizeof(span.trace_id));
    memcpy(span.parent_id, invocation->id, sizeof(span.parent_id));
    make_id(t->log->clock, span.id);
    span.began_ns = route->ended_ns ? wall_of(t, route->began_ns) : invocation->began_ns;
    span.ended_ns = route->ended_ns ? wall_of(t, route->ended_ns) : invocation->began_ns;
    span.error = stats->failed > before->failed ? "RecordsFailed" : NULL;
    sl_buffer_reset(&t->attributes);
    sl_otlp_text(&t->attributes, "sluice.route", sl_span_str(name));
    sl_otlp_text(&t->attributes, "sluice.handler", sl_span_str(route->config->handler));
    sl_otlp_text(&t->attributes, "sluice.target", sl_target_shown(sl_span_str(stats->target)));
    add_counts(t, stats, before);
    add_span(t, &span, &t->links.routes[i], links_left);
}

static void drop(struct sl_tracing *t, size_t n)
{
    t->dropped += n;
    sl_buffer_reset(&t->spans);
    t->n = 0;
    t->is_again = false;
}

void sl_tracing_end(struct sl_tracing *t, const struct sl_traced *traced)
{
    if (!t)
        return;
    struct sl_clock *clock = t->log->clock;
    const size_t before = t->spans.len, n = t->n;
    size_t links_left = LINKS_MOST;
    struct sl_otlp_span span = {.kind = SL_OTLP_CONSUMER};
    if (t->links.all.n || t->trace_id[0]) {
        if (t->trace_id[0])
            memcpy(span.trace_id, t->trace_id, sizeof(span.trace_id));
        else
            make_trace_id(t, span.trace_id);
        make_id(clock, span.id);
        add_invocation(t, traced, &span, &links_left);
        for (size_t i = 0; i < t->p->n; i++)
            add_route(t, i, &span, &links_left);
        if (!n)
            t->first_ms = clock->now_ms(clock);
    }
    t->is_warm = true;
    if (!t->spans.failed)
        return;
    t->dropped += t->n - n; /* nobody has taken those before, so there is no room */
    t->n = n;
    t->spans.len = before;
    t->spans.failed = false;
}

/* ---- sending ---- */

static void warn(struct sl_tracing *t, const struct sl_result *result)
{
    const int64_t now = t->log->clock->now_ms(t->log->clock);
    if (t->has_warned && now - t->warned_ms < WARN_MS)
        return;
    t->has_warned = true;
    t->warned_ms = now;
    sl_log(t->log, SL_WARN, "trace_to: spans were not taken (%" PRIu64 " dropped so far): %s: %s", t->dropped,
           result->code, result->text);
}

static void send(struct sl_tracing *t, int64_t deadline_ms, struct sl_arena *arena)
{
    struct sl_clock *clock = t->log->clock;
    const struct sl_call call = {.arena = arena, .deadline_ms = deadline_ms};
    struct sl_result result = {.status = SL_OK};
    sl_buffer_reset(&t->request);
    sl_otlp_request(&t->request, sl_buffer_span(&t->resource), sl_buffer_span(&t->spans));
    const struct sl_message message = {.body = sl_buffer_span(&t->request)};
    t->p->spans->apply(t->p->spans, &message, 1, &result, &call);
    if (result.status == SL_OK) {
        drop(t, 0);
        return;
    }
    t->pause_ms = clock->now_ms(clock) + PAUSE_MS;
    if (result.status != SL_RETRY || t->is_again)
        drop(t, t->n);
    else
        t->is_again = true;
    warn(t, &result);
}

void sl_tracing_send(struct sl_tracing *t, int64_t deadline_ms, struct sl_arena *arena)
{
    if (!t || !t->n)
        return;
    const int64_t now = t->log->clock->now_ms(t->log->clock);
    const int64_t end = deadline_ms - SPARE_MS < now + SEND_MS ? deadline_ms - SPARE_MS : now + SEND_MS;
    bool is_due = t->spans.len >= SEND_BYTES || now - t->first_ms >= WAIT_MS;
    if (is_due && now >= t->pause_ms && end >= now + LEAST_MS)
        send(t, end, arena);
}

void sl_tracing_close(struct sl_tracing *t, bool sends)
{
    if (!t)
        return;
    if (t->n && sends) {
        struct sl_arena *arena = sl_arena_new(4096);
        send(t, t->log->clock->now_ms(t->log->clock) + CLOSE_MS, arena);
        sl_arena_destroy(arena);
    }
    sl_buffer_clean_up(&t->resource);
    sl_buffer_clean_up(&t->attributes);
    sl_buffer_clean_up(&t->spans);
    sl_buffer_clean_up(&t->request);
    free(t->links.routes);
    free(t->before);
    free(t);
}
