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

static void add_count(struct sl_buffer *b, const char *label, uint64_t number)
{
    sl_buffer_add_str(b, label);
    sl_buffer_add_integer(b, (int64_t)number);
}

static void add_ms(struct sl_buffer *b, const char *label, uint64_t ns)
{
    sl_buffer_add_str(b, label);
    sl_buffer_add_thousandths(b, ns / 1000);
}

static void add_mb(struct sl_buffer *b, const char *label, uint64_t kb)
{
    sl_buffer_add_str(b, label);
    sl_buffer_add_thousandths(b, kb * 10 / 1024 * 100);
}

/* ---- text ---- */

static void add_route_text(struct sl_buffer *b, const struct sl_route_stats *r)
{
    sl_buffer_add_str(b, "; ");
    sl_buffer_add_str(b, r->name);
    add_count(b, ": matched ", r->matched);
    add_count(b, ", applied ", r->applied);
    add_count(b, ", parked ", r->parked);
    add_count(b, ", failed ", r->failed);
    add_count(b, ", skipped ", r->skipped);
    if (r->waits_in) {
        add_count(b, ", set aside ", r->set_aside);
        add_count(b, ", probes ", r->probes);
    }
    add_count(b, ", bytes ", r->bytes);
    add_ms(b, ", handle ", r->handle_ns);
    add_ms(b, " ms, sinks ", r->sink_ns);
    sl_buffer_add_str(b, " ms");
}

static void make_text(struct sl_buffer *b, const struct sl_sums *sums)
{
    add_count(b, "records ", sums->records);
    add_ms(b, ", decode ", sums->decode_ns);
    add_mb(b, " ms, peak memory ", sums->peak_kb);
    sl_buffer_add_str(b, " MB");
    if (sums->age_ms >= 0) {
        sl_buffer_add_str(b, ", oldest record ");
        sl_buffer_add_thousandths(b, (uint64_t)sums->age_ms);
        sl_buffer_add_str(b, " s");
    }
    if (sums->letters) {
        add_count(b, ", letters ", sums->letters);
        sl_buffer_add_str(b, ", the oldest ");
        sl_buffer_add_thousandths(b, (uint64_t)sums->letter_age_ms);
        sl_buffer_add_str(b, " s");
    }
    for (size_t i = 0; i < sums->n_routes; i++)
        if (sums->routes[i].matched)
            add_route_text(b, &sums->routes[i]);
}

/* ---- JSON ---- */

static void add_route_json(struct sl_buffer *b, const struct sl_route_stats *r)
{
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "name", sl_span_str(r->name));
    add_count(b, ",\"matched\":", r->matched);
    add_count(b, ",\"applied\":", r->applied);
    add_count(b, ",\"parked\":", r->parked);
    add_count(b, ",\"failed\":", r->failed);
    add_count(b, ",\"skipped\":", r->skipped);
    if (r->waits_in) {
        add_count(b, ",\"setAside\":", r->set_aside);
        add_count(b, ",\"probes\":", r->probes);
    }
    add_count(b, ",\"bytes\":", r->bytes);
    add_ms(b, ",\"handleMs\":", r->handle_ns);
    add_ms(b, ",\"sinkMs\":", r->sink_ns);
    sl_buffer_add_char(b, '}');
}

static void make_members(struct sl_buffer *b, const struct sl_sums *sums)
{
    add_count(b, ",\"records\":", sums->records);
    add_ms(b, ",\"decodeMs\":", sums->decode_ns);
    add_mb(b, ",\"peakMemoryMB\":", sums->peak_kb);
    if (sums->age_ms >= 0)
        add_count(b, ",\"iteratorAgeMs\":", (uint64_t)sums->age_ms);
    if (sums->letters) {
        add_count(b, ",\"letters\":", sums->letters);
        add_count(b, ",\"letterAgeMs\":", (uint64_t)sums->letter_age_ms);
    }
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
