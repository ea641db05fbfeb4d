/* What a batch did, as one JSON line. */
#include "runtime/report.h"

#include "base/json_write.h"

#include <unistd.h>

#define REPORT_BYTES (8 * 1024 * 1024) /* thousands of routes, and all notes at their longest */
#define REASON_BYTES 500               /* of a note: the rest is in the log */

static void add_route(struct sl_buffer *b, const struct sl_route_stats *r)
{
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "name", sl_span_str(r->name));
    sl_json_add_member(b, "handler", sl_span_str(r->handler));
    sl_json_add_member(b, "to", sl_span_str(r->target));
    sl_json_add_integer(b, "matched", (int64_t)r->matched);
    sl_json_add_integer(b, "applied", (int64_t)r->applied);
    sl_json_add_integer(b, "parked", (int64_t)r->parked);
    sl_json_add_integer(b, "failed", (int64_t)r->failed);
    sl_json_add_integer(b, "skipped", (int64_t)r->skipped);
    if (r->waits_in)
        sl_json_add_integer(b, "setAside", (int64_t)r->set_aside);
    sl_json_add_integer(b, "calls", (int64_t)r->calls);
    sl_json_add_integer(b, "bytes", (int64_t)r->bytes);
    sl_buffer_add_char(b, '}');
}

static void add_note(struct sl_buffer *b, const struct sl_answer_note *note)
{
    struct sl_span text = sl_span_str(note->text);
    text.len = text.len < REASON_BYTES ? text.len : REASON_BYTES;
    sl_buffer_add_char(b, '{');
    sl_json_add_raw(b, "parked", note->is_parked ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_member(b, "route", sl_span_str(note->route));
    sl_json_add_member(b, "id", note->id);
    sl_json_add_member(b, "code", sl_span_str(note->code));
    sl_json_add_member(b, "message", text);
    sl_buffer_add_char(b, '}');
}

void sl_report_batch(int fd, const struct sl_pipeline *p, const char *request_id, size_t records,
                     const struct sl_answer *answer)
{
    struct sl_buffer b;
    sl_buffer_init(&b, REPORT_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "requestId", sl_span_str(request_id));
    sl_json_add_integer(&b, "records", (int64_t)records);
    sl_json_add_integer(&b, "checkpoint", (int64_t)answer->checkpoint);
    sl_json_add_integer(&b, "parked", (int64_t)answer->parked);
    if (answer->set_aside)
        sl_json_add_integer(&b, "setAside", (int64_t)answer->set_aside);
    sl_buffer_add_str(&b, ",\"routes\":[");
    for (size_t i = 0; i < sl_pipeline_routes(p); i++) {
        struct sl_route_stats stats = sl_pipeline_stats(p, i);
        if (i)
            sl_buffer_add_char(&b, ',');
        add_route(&b, &stats);
    }
    sl_buffer_add_str(&b, "],\"notes\":[");
    for (size_t i = 0; i < answer->n_notes; i++) {
        if (i)
            sl_buffer_add_char(&b, ',');
        add_note(&b, &answer->notes[i]);
    }
    sl_buffer_add_str(&b, "]}\n");
    if (!b.failed)
        (void)!write(fd, b.ptr, b.len);
    sl_buffer_clean_up(&b);
}
