/* A snapshot as one line: for a terminal, and as JSON for logs. */
#include "cli/watch/watch_private.h"

#include "base/clean.h"
#include "base/json_write.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>

#define BLOCKED_MOST 8 /* shards that one line of JSON names */

void sl_watch_rate_take(struct sl_watch_rate *rate, const struct sl_vitals *v)
{
    int64_t ms = v->now_ms - rate->at_ms;
    if (ms <= 0)
        return;
    if (rate->at_ms && v->handled >= rate->handled)
        rate->per_second = (double)(v->handled - rate->handled) * 1000 / (double)ms;
    rate->handled = v->handled;
    rate->at_ms = v->now_ms;
}

static size_t count(const struct sl_vitals *v, enum sl_vitals_shard_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_shards; i++)
        n += v->shards[i].state == state;
    return n;
}

/* The one that has been blocked the longest; NULL: none is. */
static const struct sl_vitals_shard *find_blocked(const struct sl_vitals *v)
{
    const struct sl_vitals_shard *found = NULL;
    for (size_t i = 0; i < v->n_shards; i++) {
        const struct sl_vitals_shard *shard = &v->shards[i];
        if (shard->blocked_since_ms && (!found || shard->blocked_since_ms < found->blocked_since_ms))
            found = shard;
    }
    return found;
}

/* ---- the terminal ---- */

/* "340 ms", "12.3 s", "41 min", "7 h" */
static void add_span(struct sl_buffer *out, int64_t ms)
{
    if (ms < 1000)
        sl_buffer_printf(out, "%" PRId64 " ms", ms);
    else if (ms < 120000)
        sl_buffer_printf(out, "%" PRId64 ".%d s", ms / 1000, (int)(ms % 1000 / 100));
    else if (ms < 120 * 60000)
        sl_buffer_printf(out, "%" PRId64 " min", ms / 60000);
    else
        sl_buffer_printf(out, "%" PRId64 " h", ms / 3600000);
}

static void add_blocked(const struct sl_vitals *v, struct sl_buffer *out)
{
    const struct sl_vitals_shard *shard = find_blocked(v);
    if (!shard)
        return;
    char since[SL_TIME_BYTES];
    sl_time_text(shard->blocked_since_ms * 1000000, since);
    sl_buffer_printf(out, ", %zu blocked: %s since %.8sZ (", v->n_blocked, shard->id, since + 11);
    add_span(out, v->now_ms - shard->blocked_since_ms);
    sl_buffer_add_str(out, ")");
}

void sl_watch_line(const struct sl_vitals *v, const struct sl_watch_rate *rate, size_t columns,
                   struct sl_buffer *out)
{
    char text[1024];
    struct sl_buffer line;
    sl_buffer_init(&line, 8192);
    sl_buffer_add_str(&line, "lag ");
    add_span(&line, v->lag_ms);
    sl_buffer_printf(&line, ", %.*f records/s, %zu of %zu shards open, %" PRIu64 " retries",
                     rate->per_second < 10 ? 1 : 0, rate->per_second, count(v, SL_VITALS_OPEN), v->n_shards,
                     v->retries);
    add_blocked(v, &line);
    if (v->discarded)
        sl_buffer_printf(&line, ", %" PRIu64 " discarded", v->discarded);
    if (v->trouble)
        sl_buffer_printf(&line, ", %s", v->trouble);
    if (v->is_ending)
        sl_buffer_add_str(&line, ", ending");
    size_t room = columns < sizeof(text) ? columns + 1 : sizeof(text);
    sl_buffer_add(out, text, sl_clean(sl_buffer_span(&line), text, room));
    sl_buffer_clean_up(&line);
}

/* ---- JSON ---- */

static void add_time(struct sl_buffer *out, const char *name, int64_t ms)
{
    char text[SL_TIME_BYTES];
    sl_time_text(ms * 1000000, text);
    sl_json_add_member(out, name, sl_span_str(text));
}

static void add_shards(const struct sl_vitals *v, struct sl_buffer *out)
{
    sl_buffer_add_str(out, ",\"shards\":{");
    sl_json_add_integer(out, "open", (int64_t)count(v, SL_VITALS_OPEN));
    sl_json_add_integer(out, "waiting", (int64_t)count(v, SL_VITALS_WAITING));
    sl_json_add_integer(out, "done", (int64_t)count(v, SL_VITALS_DONE));
    sl_json_add_integer(out, "blocked", (int64_t)v->n_blocked);
    sl_buffer_add_str(out, "},\"blocked\":[");
    for (size_t i = 0, n = 0; i < v->n_shards && n < BLOCKED_MOST; i++) {
        const struct sl_vitals_shard *shard = &v->shards[i];
        if (!shard->blocked_since_ms)
            continue;
        sl_buffer_add_str(out, n++ ? ",{" : "{");
        sl_json_add_member(out, "shard", sl_span_str(shard->id));
        sl_json_add_member(out, "at", sl_span_str(shard->blocked_at ? shard->blocked_at : ""));
        add_time(out, "since", shard->blocked_since_ms);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_char(out, ']');
}

void sl_watch_json(const struct sl_vitals *v, const struct sl_watch_rate *rate, struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    add_time(out, "time", v->now_ms);
    sl_json_add_member(out, "message", SL_LIT("tail"));
    sl_json_add_integer(out, "lag_ms", v->lag_ms);
    sl_buffer_printf(out, ",\"records_per_second\":%.1f", rate->per_second);
    sl_json_add_integer(out, "read", (int64_t)v->read);
    sl_json_add_integer(out, "handled", (int64_t)v->handled);
    sl_json_add_integer(out, "discarded", (int64_t)v->discarded);
    sl_json_add_integer(out, "function_errors", (int64_t)v->function_errors);
    sl_json_add_integer(out, "retries", (int64_t)v->retries);
    sl_json_add_integer(out, "gaps", (int64_t)v->gaps);
    sl_json_add_integer(out, "leases_lost", (int64_t)v->leases_lost);
    sl_json_add_integer(out, "memory_bytes", (int64_t)v->memory_bytes);
    if (v->through_ms)
        add_time(out, "through", v->through_ms);
    if (v->trouble)
        sl_json_add_member(out, "trouble", sl_span_str(v->trouble));
    add_shards(v, out);
    sl_buffer_add_str(out, "}\n");
}
