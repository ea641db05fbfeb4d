/* Writes events: {"Records":[...]}, and in a tumbling window the members that a window adds. */
#include "esm/esm_private.h"

#include "base/json_write.h"

void sl_esm_event_json(const struct sl_esm_record *const *records, size_t n, struct sl_buffer *out)
{
    sl_buffer_add_str(out, SL_ESM_EVENT_BEGIN);
    for (size_t i = 0; i < n; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        sl_buffer_add_span(out, records[i]->text);
    }
    sl_buffer_add_str(out, SL_ESM_EVENT_END);
}

static void add_time(struct sl_buffer *b, const char *name, int64_t epoch_s)
{
    char time[SL_TIME_BYTES];
    sl_time_text(epoch_s * 1000000000, time);
    sl_json_add_member(b, name, sl_span(time, 19));
    b->len--;
    sl_buffer_add_str(b, "Z\"");
}

/* The members that a tumbling window adds, with the comma before them. */
static void add_window(struct sl_buffer *b, const struct sl_esm_lane *lane)
{
    const struct sl_esm_track *shard = lane->shard;
    int64_t length = shard->esm->settings.tumbling_s;
    sl_buffer_add_str(b, ",\"window\":{");
    add_time(b, "start", shard->window * length);
    add_time(b, "end", (shard->window + 1) * length);
    sl_buffer_add_str(b, "},\"state\":");
    sl_buffer_add_span(b, shard->state.len ? sl_buffer_span(&shard->state) : SL_LIT("{}"));
    sl_json_add_member(b, "shardId", sl_span_str(shard->shard->id));
    sl_json_add_member(b, "eventSourceARN", sl_span_str(shard->esm->settings.stream_arn));
    sl_buffer_printf(b, ",\"isFinalInvokeForWindow\":%s,\"isWindowTerminatedEarly\":%s",
                     lane->is_final ? "true" : "false", lane->is_terminated_early ? "true" : "false");
}

void sl_esm_write_event(struct sl_esm_lane *lane, const struct sl_esm_part *part)
{
    struct sl_buffer *b = &lane->payload;
    sl_buffer_reset(b);
    sl_esm_event_json(lane->batch + part->from, part->to - part->from, b);
    if (lane->shard->esm->settings.tumbling_s) {
        b->len--;
        add_window(b, lane);
        sl_buffer_add_char(b, '}');
    }
    lane->has_payload = true;
}
