/* The summary line of an invocation, as text or as JSON. */
#include "runtime/summary.h"

#include "base/json_write.h"

void sl_summary_init(struct sl_summary *s)
{
    sl_buffer_init(&s->text, SL_LOG_LINE_BYTES);
    sl_buffer_init(&s->members, SL_LOG_LINE_BYTES);
}

void sl_summary_clean_up(struct sl_summary *s)
{
    sl_buffer_clean_up(&s->text);
    sl_buffer_clean_up(&s->members);
}

/* ---- text ---- */

static void add_route_text(struct sl_buffer *b, const struct sl_route_stats *r)
{
    sl_buffer_printf(b, "; %s: matched %llu, applied %llu, parked %llu, failed %llu, skipped %llu", r->name,
                     (unsigned long long)r->matched, (unsigned long long)r->applied,
                     (unsigned long long)r->parked, (unsigned long long)r->failed,
                     (unsigned long long)r->skipped);
    sl_buffer_printf(b, ", %llu bytes, handle %.3f ms, sinks %.3f ms", (unsigned long long)r->bytes,
                     sl_sums_ms(r->handle_ns), sl_sums_ms(r->sink_ns));
}

static void make_text(struct sl_buffer *b, const struct sl_sums *sums)
{
    sl_buffer_printf(b, "records %llu, decode %.3f ms, peak memory %.1f MB",
                     (unsigned long long)sums->records, sl_sums_ms(sums->decode_ns),
                     sl_sums_mb(sums->peak_kb));
    if (sums->age_ms >= 0)
        sl_buffer_printf(b, ", oldest record %.3f s", (double)sums->age_ms / 1000);
    for (size_t i = 0; i < sums->n_routes; i++)
        if (sums->routes[i].matched)
            add_route_text(b, &sums->routes[i]);
}

/* ---- JSON ---- */

static void add_ms(struct sl_buffer *b, const char *name, uint64_t ns)
{
    sl_buffer_printf(b, ",\"%s\":%.15g", name, sl_sums_ms(ns));
}

static void add_route_json(struct sl_buffer *b, const struct sl_route_stats *r)
{
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "name", sl_span_str(r->name));
    sl_json_add_integer(b, "matched", (int64_t)r->matched);
    sl_json_add_integer(b, "applied", (int64_t)r->applied);
    sl_json_add_integer(b, "parked", (int64_t)r->parked);
    sl_json_add_integer(b, "failed", (int64_t)r->failed);
    sl_json_add_integer(b, "skipped", (int64_t)r->skipped);
    sl_json_add_integer(b, "bytes", (int64_t)r->bytes);
    add_ms(b, "handleMs", r->handle_ns);
    add_ms(b, "sinkMs", r->sink_ns);
    sl_buffer_add_char(b, '}');
}

static void make_members(struct sl_buffer *b, const struct sl_sums *sums)
{
    sl_buffer_printf(b, ",\"records\":%llu", (unsigned long long)sums->records);
    add_ms(b, "decodeMs", sums->decode_ns);
    sl_buffer_printf(b, ",\"peakMemoryMB\":%.15g", sl_sums_mb(sums->peak_kb));
    if (sums->age_ms >= 0)
        sl_buffer_printf(b, ",\"iteratorAgeMs\":%lld", (long long)sums->age_ms);
    sl_buffer_add_str(b, ",\"routes\":[");
    for (size_t i = 0, shown = 0; i < sums->n_routes; i++) {
        if (!sums->routes[i].matched)
            continue;
        if (shown++)
            sl_buffer_add_char(b, ',');
        add_route_json(b, &sums->routes[i]);
    }
    sl_buffer_add_char(b, ']');
}

void sl_summary_write(struct sl_summary *s, struct sl_log *log, const struct sl_sums *sums)
{
    if (log->level > SL_INFO)
        return;
    sl_buffer_reset(&s->text);
    sl_buffer_reset(&s->members);
    if (log->format == SL_LOG_JSON) {
        sl_buffer_add_str(&s->text, "invocation summary");
        make_members(&s->members, sums);
    } else {
        make_text(&s->text, sums);
    }
    sl_log_facts(log, SL_INFO, sl_buffer_span(&s->text), sl_buffer_span(&s->members));
}
