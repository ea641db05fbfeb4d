/* Lines of a repair's files. */
#include "data/repair/audit.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/time.h"

static void begin_line(struct sl_buffer *out, int64_t now_ms)
{
    char time[SL_TIME_BYTES];
    sl_time_text(now_ms * 1000000, time);
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "time", sl_span_str(time));
}

static void add_outcome(struct sl_buffer *out, const struct sl_repair_outcome *outcome)
{
    sl_json_add_member(out, "outcome", sl_span_str(sl_repaired_name(outcome->outcome)));
    if (outcome->code)
        sl_json_add_member(out, "code", sl_span_str(outcome->code));
    if (outcome->why)
        sl_json_add_member(out, "why", sl_span_str(outcome->why));
}

void sl_audit_line(const struct sl_finding *finding, const struct sl_repair_outcome *outcome, int64_t now_ms,
                   bool with_key, struct sl_buffer *out)
{
    begin_line(out, now_ms);
    sl_json_add_member(out, "route", sl_span_str(finding->route));
    if (with_key)
        sl_json_add_raw(out, "source_key", finding->source_key);
    else
        sl_finding_add_digest(out, "key_sha256", finding->source_key);
    sl_json_add_member(out, "kind", sl_span_str(sl_finding_kind(finding->judge->verdict)));
    add_outcome(out, outcome);
    sl_finding_add_digest(out, "before_sha256", finding->judge->row);
    sl_finding_add_digest(out, "after_sha256", outcome->written);
    sl_buffer_add_str(out, "}\n");
}

bool sl_audit_sum_read(struct sl_span line, struct sl_arena *arena, struct sl_audit_sum *out)
{
    *out = (struct sl_audit_sum){.kind = sl_json_text(line, "kind", arena),
                                 .target = sl_json_text(line, "target", arena),
                                 .key = sl_json_find(line, "key"),
                                 .attribute = sl_json_text(line, "attribute", arena),
                                 .difference = sl_json_text(line, "difference", arena),
                                 .mark = sl_json_find(line, "mark")};
    return sl_span_is(sl_json_find(line, "result"), "\"different\"");
}

void sl_audit_sum_line(const struct sl_audit_sum *sum, struct sl_span added,
                       const struct sl_repair_outcome *outcome, int64_t now_ms, bool with_key,
                       struct sl_buffer *out)
{
    begin_line(out, now_ms);
    sl_json_add_member(out, "target", sum->target);
    if (with_key)
        sl_json_add_raw(out, "key", sum->key);
    else
        sl_finding_add_digest(out, "key_sha256", sum->key);
    sl_json_add_member(out, "kind", sum->kind);
    if (sum->attribute.ptr)
        sl_json_add_member(out, "attribute", sum->attribute);
    add_outcome(out, outcome);
    if (added.ptr)
        sl_json_add_member(out, "added", added);
    sl_buffer_add_str(out, "}\n");
}

void sl_audit_saved(const struct sl_finding *finding, struct sl_span after, struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "route", sl_span_str(finding->route));
    sl_json_add_member(out, "target", sl_span_str(finding->target));
    sl_json_add_raw(out, "source_key", finding->source_key);
    if (finding->judge->row.ptr)
        sl_json_add_raw(out, "before", finding->judge->row);
    if (after.ptr)
        sl_json_add_raw(out, "after", after);
    sl_buffer_add_str(out, "}\n");
}

enum sl_status sl_audit_read(struct sl_span line, struct sl_arena *arena, struct sl_audit_undo *out,
                             struct sl_error *error)
{
    *out = (struct sl_audit_undo){.route = sl_json_text(line, "route", arena),
                                  .target = sl_json_text(line, "target", arena),
                                  .source_key = sl_json_find(line, "source_key"),
                                  .before = sl_json_find(line, "before"),
                                  .after = sl_json_find(line, "after")};
    bool is_saved = out->route.ptr && out->target.ptr && out->source_key.ptr && *out->source_key.ptr == '{' &&
                    (out->before.ptr || out->after.ptr) && !sl_json_find(line, "result").ptr;
    return is_saved ? SL_OK
                    : sl_fail(error, SL_REJECT, "NoUndo",
                              "it is no line that sluice repair --save has written; give the file of --save");
}
