/* Writes the trace: one line per invocation. */
#include "replay/output/trace.h"

#include "base/json_write.h"

#include <jansson.h>

const char *sl_trace_verb_name(enum sl_esm_verb verb)
{
    static const char *const names[] = {"advance", "checkpoint", "retry", "bisect", "discard"};
    return names[verb];
}

static bool is_one_line(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20)
            return false;
    return true;
}

static void add_answer(struct sl_buffer *out, struct sl_span body)
{
    json_t *root = body.len ? json_loadb(body.ptr, body.len, JSON_DECODE_ANY, NULL) : NULL;
    if (!root) {
        sl_json_add_member(out, "answer", body.ptr ? body : SL_LIT(""));
    } else if (is_one_line(body)) {
        sl_json_add_raw(out, "answer", body);
    } else {
        char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
        sl_json_add_raw(out, "answer", sl_span_str(text ? text : "null"));
        free(text);
    }
    json_decref(root);
}

static void add_id(struct sl_buffer *out, const char *name, struct sl_span id)
{
    if (id.ptr)
        sl_json_add_member(out, name, id);
    else
        sl_json_add_raw(out, name, SL_LIT("null"));
}

static void add_ids(struct sl_buffer *out, const struct sl_esm_invocation *inv)
{
    sl_buffer_add_str(out, ",\"ids\":[");
    for (size_t i = 0; i < inv->n; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        sl_json_add_string(out, inv->records[i]->id);
    }
    sl_buffer_add_char(out, ']');
}

void sl_trace_add_line(const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision, bool with_ids, struct sl_buffer *out)
{
    static const struct sl_span absent = {NULL, 0};
    sl_buffer_add_char(out, '{');
    sl_json_add_integer(out, "time_ms", inv->time_ms);
    sl_json_add_member(out, "shard", sl_span_str(inv->shard->id));
    add_id(out, "first", inv->n ? inv->records[0]->id : absent);
    add_id(out, "last", inv->n ? inv->records[inv->n - 1]->id : absent);
    sl_json_add_integer(out, "records", (int64_t)inv->n);
    sl_json_add_integer(out, "bytes", (int64_t)inv->payload.len);
    sl_json_add_integer(out, "attempt", inv->attempt);
    add_answer(out, result->body);
    sl_json_add_member(out, "decision", sl_span_str(sl_trace_verb_name(decision->verb)));
    add_id(out, "checkpoint", decision->checkpoint);
    if (with_ids)
        add_ids(out, inv);
    sl_buffer_add_str(out, "}\n");
}
