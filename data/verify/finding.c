/* Findings as JSON lines. */
#include "data/verify/finding.h"

#include "base/json_write.h"
#include "base/time.h"
#include "handlers/pipeline/host.h"

static const char *const kinds[] = {
    [SL_VERDICT_EQUAL] = "equal",          [SL_VERDICT_MISSING] = "missing",
    [SL_VERDICT_STALE] = "stale",          [SL_VERDICT_DIFFERENT] = "different",
    [SL_VERDICT_LEFT_OVER] = "left over",  [SL_VERDICT_REVIVED] = "revived",
    [SL_VERDICT_UNGUARDED] = "unguarded",  [SL_VERDICT_COLLISION] = "collision",
    [SL_VERDICT_NOT_JUDGED] = "not judged"};

static const char *const results[] = {[SL_FINDING_DIFFERENT] = "different",
                                      [SL_FINDING_PENDING] = "pending",
                                      [SL_FINDING_UNSETTLED] = "unsettled",
                                      [SL_FINDING_NOT_COMPARABLE] = "not comparable"};

/* DynamoDB began in 2012: an order of an earlier time was made of none. */
#define FIRST_MS INT64_C(1325376000000)

bool sl_finding_has_time(const struct sl_judge *judge)
{
    return judge->written_ms >= FIRST_MS && judge->written_ms < INT64_MAX / 1000000;
}

const char *sl_finding_kind(enum sl_verdict verdict)
{
    return kinds[verdict];
}

bool sl_finding_is_removal(enum sl_verdict verdict)
{
    return verdict == SL_VERDICT_LEFT_OVER || verdict == SL_VERDICT_REVIVED;
}

static void add_time(struct sl_buffer *b, const char *name, int64_t ms)
{
    char text[SL_TIME_BYTES];
    sl_time_text(ms * 1000000, text);
    sl_json_add_member(b, name, sl_span_str(text));
}

void sl_finding_add_digest(struct sl_buffer *b, const char *name, struct sl_span item)
{
    unsigned char bytes[32];
    char text[33];
    if (!item.ptr)
        return;
    sl_host_table.value_sha256((struct sl_value){.type = SL_M, .raw = item}, bytes);
    for (size_t i = 0; i < 32; i++)
        text[i] = "0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
    sl_json_add_member(b, name, sl_span(text, 32));
}

static void add_names(struct sl_buffer *b, const struct sl_judge *judge)
{
    if (judge->n_names == 0)
        return;
    sl_json_add_raw(b, "attributes", SL_LIT("["));
    for (size_t i = 0; i < judge->n_names; i++) {
        sl_buffer_add_str(b, i ? "," : "");
        sl_buffer_add_char(b, '"');
        sl_json_add_exact(b, judge->names[i]);
        sl_buffer_add_char(b, '"');
    }
    sl_buffer_add_char(b, ']');
}

static void add_row(struct sl_buffer *b, const struct sl_finding *f)
{
    const struct sl_judge *judge = f->judge;
    if (f->result == SL_FINDING_DIFFERENT || judge->verdict != SL_VERDICT_EQUAL)
        sl_json_add_member(b, "kind", sl_span_str(sl_finding_kind(judge->verdict)));
    if (f->expected->table.ptr)
        sl_json_add_member(b, "table", f->expected->table);
    sl_json_add_raw(b, "key", f->expected->key);
    add_names(b, judge);
    if (judge->other_key.ptr)
        sl_json_add_raw(b, "other_source_key", judge->other_key);
    if (judge->guard.ptr)
        sl_json_add_member(b, "guard", judge->guard);
    sl_json_add_raw(b, "owned", judge->is_owned ? SL_LIT("true") : SL_LIT("false"));
    if (sl_finding_has_time(judge)) {
        add_time(b, "written", judge->written_ms);
        sl_json_add_integer(b, "age_s", (f->seen_ms - judge->written_ms) / 1000);
    }
    sl_finding_add_digest(b, "row_sha256", judge->row);
    if (f->shows_values && f->expected->item.ptr)
        sl_json_add_raw(b, "expected", f->expected->item);
    if (f->shows_values && judge->row.ptr)
        sl_json_add_raw(b, "row", judge->row);
}

void sl_finding_write(const struct sl_finding *f, struct sl_buffer *b)
{
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "result", sl_span_str(results[f->result]));
    sl_json_add_member(b, "route", sl_span_str(f->route));
    sl_json_add_member(b, "handler", sl_span_str(f->handler));
    sl_json_add_member(b, "target", sl_span_str(f->target));
    sl_json_add_member(b, "direction", f->is_forward ? SL_LIT("forward") : SL_LIT("backward"));
    if (f->source_key.ptr)
        sl_json_add_raw(b, "source_key", f->source_key);
    if (f->judge)
        add_row(b, f);
    if (f->code)
        sl_json_add_member(b, "code", sl_span_str(f->code));
    if (f->why)
        sl_json_add_member(b, "why", sl_span_str(f->why));
    sl_finding_add_digest(b, "source_sha256", f->source);
    if (f->shows_values && f->source.ptr)
        sl_json_add_raw(b, "source", f->source);
    if (f->looks)
        sl_json_add_integer(b, "looks", f->looks);
    add_time(b, "seen", f->seen_ms);
    sl_buffer_add_str(b, "}\n");
}
