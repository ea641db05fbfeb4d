/* A snapshot in OpenMetrics 1.0 (prometheus.io/docs/specs/om/open_metrics_spec). */
#include "base/array.h"
#include "cli/watch/watch_private.h"

#include "base/clean.h"

#include <inttypes.h>

#define PREFIX "sluice_tail_"

/* ---- the format ---- */

static void begin(struct sl_buffer *out, const char *name, const char *type, const char *help)
{
    sl_buffer_printf(out, "# TYPE " PREFIX "%s %s\n", name, type);
    size_t n = strlen(name);
    static const char *const units[] = {"seconds", "bytes"};
    for (size_t i = 0; i < SL_COUNT(units); i++) {
        size_t u = strlen(units[i]);
        if (n > u && name[n - u - 1] == '_' && strcmp(name + n - u, units[i]) == 0)
            sl_buffer_printf(out, "# UNIT " PREFIX "%s %s\n", name, units[i]);
    }
    sl_buffer_printf(out, "# HELP " PREFIX "%s %s\n", name, help);
}

/* name="value", escaped, and of UTF-8 alone. */
static void add_label(struct sl_buffer *out, const char *name, const char *value)
{
    char text[512];
    sl_clean(sl_span_str(value ? value : ""), text, sizeof(text));
    sl_buffer_printf(out, "%s=\"", name);
    for (const char *p = text; *p; p++) {
        if (*p == '\\' || *p == '"')
            sl_buffer_add_char(out, '\\');
        sl_buffer_add_char(out, *p);
    }
    sl_buffer_add_char(out, '"');
}

static void add_ms(struct sl_buffer *out, int64_t ms)
{
    sl_buffer_printf(out, "%s%" PRId64 ".%03d\n", ms < 0 ? "-" : "", (ms < 0 ? -ms : ms) / 1000,
                     (int)((ms < 0 ? -ms : ms) % 1000));
}

static void counter(struct sl_buffer *out, const char *name, uint64_t value, const char *help)
{
    begin(out, name, "counter", help);
    sl_buffer_printf(out, PREFIX "%s_total %" PRIu64 "\n", name, value);
}

static void gauge(struct sl_buffer *out, const char *name, uint64_t value, const char *help)
{
    begin(out, name, "gauge", help);
    sl_buffer_printf(out, PREFIX "%s %" PRIu64 "\n", name, value);
}

static void gauge_ms(struct sl_buffer *out, const char *name, int64_t ms, const char *help)
{
    begin(out, name, "gauge", help);
    sl_buffer_printf(out, PREFIX "%s ", name);
    add_ms(out, ms);
}

/* ---- the whole ---- */

static void add_counters(const struct sl_vitals *v, struct sl_buffer *out)
{
    counter(out, "records_read", v->read, "Records that the stream gave.");
    counter(out, "records_handled", v->handled, "Records below the checkpoint, filtered ones included.");
    counter(out, "records_filtered", v->filtered, "Records that a filter left out.");
    counter(out, "records_discarded", v->discarded,
            "Records given up after their last retry or for their age.");
    counter(out, "records_trimmed", v->trimmed, "Records that became too old before they were handled.");
    counter(out, "gaps", v->gaps, "Times that records were gone from the stream before they were read.");
    counter(out, "invocations", v->invocations, "Invocations of the function.");
    counter(out, "function_errors", v->function_errors, "Invocations that failed.");
    counter(out, "retries", v->retries, "Invocations that were repeated.");
    counter(out, "throttles", v->throttles, "Invocations that were throttled.");
    counter(out, "reads", v->reads, "Answers to GetRecords.");
    counter(out, "failed_reads", v->failed_reads, "GetRecords requests that failed.");
    counter(out, "process_starts", v->process_starts, "Processes of the function that were started.");
    counter(out, "process_ends", v->process_ends, "Processes of the function that ended.");
    counter(out, "timeouts", v->timeouts, "Invocations that ran into their time-out.");
    counter(out, "leases_lost", v->leases_lost, "Leases of shards that another process took.");
    counter(out, "checkpoints", v->saves, "Places that were saved.");
}

static void add_states(const struct sl_vitals *v, struct sl_buffer *out)
{
    static const char *const names[] = {
        [SL_VITALS_WAITING] = "waiting", [SL_VITALS_OPEN] = "open", [SL_VITALS_DONE] = "done"};
    size_t n[3] = {0}, ours = 0;
    for (size_t i = 0; i < v->n_shards; i++) {
        n[v->shards[i].state]++;
        ours += v->shards[i].is_ours;
    }
    begin(out, "shards", "gauge", "Shards that the stream lists, by what is done with them.");
    for (size_t i = 0; i < 3; i++)
        sl_buffer_printf(out, PREFIX "shards{state=\"%s\"} %zu\n", names[i], n[i]);
    gauge(out, "shards_owned", ours, "Shards that this process may handle.");
    gauge(out, "shards_blocked", v->n_blocked, "Shards whose first record has failed again and again.");
}

static void add_gauges(const struct sl_vitals *v, struct sl_buffer *out)
{
    gauge_ms(out, "lag_seconds", v->lag_ms, "Age of the oldest record that is not handled.");
    gauge_ms(out, "start_timestamp_seconds", v->started_ms, "When the process began.");
    if (v->through_ms)
        gauge_ms(out, "through_timestamp_seconds", v->through_ms,
                 "Every change before this time is handled.");
    gauge(out, "memory_bytes", v->memory_bytes, "Memory of pages that are read and not handled.");
    gauge(out, "memory_limit_bytes", v->memory_limit_bytes, "What that may become (--memory).");
    gauge(out, "workers", v->workers, "Invocations that can run at a time.");
    gauge(out, "workers_busy", v->busy_workers, "Invocations that run now.");
    gauge(out, "reads_failing", v->trouble != NULL, "1 while the stream cannot be read.");
    gauge(out, "ending", v->is_ending, "1 when the process is about to end.");
}

static void add_stream(const struct sl_vitals *v, struct sl_buffer *out)
{
    begin(out, "stream", "info", "The stream that is read.");
    sl_buffer_add_str(out, PREFIX "stream_info{");
    add_label(out, "arn", v->stream_arn);
    sl_buffer_add_str(out, "} 1\n");
}

/* ---- routes ---- */

static const struct route_counter {
    const char *name, *help;
    size_t at; /* in struct sl_vitals_route */
} route_counters[] = {
    {"route_records_matched", "Records that the route took.", offsetof(struct sl_vitals_route, matched)},
    {"route_records_applied", "Records whose effects are done.", offsetof(struct sl_vitals_route, applied)},
    {"route_records_parked", "Records that were parked with their error.",
     offsetof(struct sl_vitals_route, parked)},
    {"route_records_set_aside", "Records that wait in the route's queue, because its target was down.",
     offsetof(struct sl_vitals_route, set_aside)},
    {"route_records_failed", "Records that failed for now.", offsetof(struct sl_vitals_route, failed)},
    {"route_calls", "Calls of the route's handler.", offsetof(struct sl_vitals_route, calls)},
    {"route_bytes", "Bytes of the records that the route took.", offsetof(struct sl_vitals_route, bytes)},
};

static uint64_t value_of(const struct sl_vitals_route *route, const struct route_counter *c)
{
    uint64_t value;
    memcpy(&value, (const char *)route + c->at, sizeof(value));
    return value;
}

static void add_routes(const struct sl_vitals *v, struct sl_buffer *out)
{
    for (size_t c = 0; v->n_routes && c < SL_COUNT(route_counters); c++) {
        begin(out, route_counters[c].name, "counter", route_counters[c].help);
        for (size_t i = 0; i < v->n_routes; i++) {
            sl_buffer_printf(out, PREFIX "%s_total{", route_counters[c].name);
            add_label(out, "route", v->routes[i].name);
            sl_buffer_add_str(out, ",");
            add_label(out, "handler", v->routes[i].handler);
            sl_buffer_printf(out, "} %" PRIu64 "\n", value_of(&v->routes[i], &route_counters[c]));
        }
    }
}

/* ---- shards ---- */

static bool is_shown(const struct sl_vitals_shard *shard)
{
    return shard->state == SL_VITALS_OPEN && shard->is_ours;
}

static int64_t blocked_ms(const struct sl_vitals *v, const struct sl_vitals_shard *shard)
{
    int64_t since = shard->blocked_since_ms;
    return since && v->now_ms > since ? v->now_ms - since : 0;
}

static void add_shard_times(const struct sl_vitals *v, const char *name, const char *help, bool is_blocked,
                            struct sl_buffer *out)
{
    begin(out, name, "gauge", help);
    for (size_t i = 0; i < v->n_shards; i++) {
        if (!is_shown(&v->shards[i]))
            continue;
        sl_buffer_printf(out, PREFIX "%s{", name);
        add_label(out, "shard", v->shards[i].id);
        sl_buffer_add_str(out, "} ");
        add_ms(out, is_blocked ? blocked_ms(v, &v->shards[i]) : v->shards[i].lag_ms);
    }
}

static void add_shard_memory(const struct sl_vitals *v, struct sl_buffer *out)
{
    begin(out, "shard_memory_bytes", "gauge", "Memory of the shard's pages.");
    for (size_t i = 0; i < v->n_shards; i++) {
        if (!is_shown(&v->shards[i]))
            continue;
        sl_buffer_add_str(out, PREFIX "shard_memory_bytes{");
        add_label(out, "shard", v->shards[i].id);
        sl_buffer_printf(out, "} %zu\n", v->shards[i].memory_bytes);
    }
}

static void add_shards(const struct sl_vitals *v, bool is_per_shard, struct sl_buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_shards; i++)
        n += is_shown(&v->shards[i]);
    if (n == 0 || (n > SL_WATCH_SHARDS && !is_per_shard))
        return;
    add_shard_times(v, "shard_lag_seconds", "Age of the shard's oldest record that is not handled.", false,
                    out);
    add_shard_times(v, "shard_blocked_seconds", "For how long the shard's first record has failed.", true,
                    out);
    add_shard_memory(v, out);
}

void sl_watch_metrics(const struct sl_vitals *v, bool is_per_shard, struct sl_buffer *out)
{
    add_stream(v, out);
    add_counters(v, out);
    add_states(v, out);
    add_gauges(v, out);
    add_routes(v, out);
    add_shards(v, is_per_shard, out);
    sl_buffer_add_str(out, "# EOF\n");
}
