/* A traceparent is VERSION-TRACE-PARENT-FLAGS, in lower-case hexadecimal digits. */
#include "streams/trace_context.h"

#include "base/arena.h"
#include "base/span.h"

#define VERSION_HEX  2
#define PARENT_AT    (VERSION_HEX + 1 + SL_TRACE_ID_HEX + 1)
#define FLAGS_AT     (PARENT_AT + SL_PARENT_ID_HEX + 1)
#define PARENT_BYTES (FLAGS_AT + 2)
/* Of a tracestate: what every participant has to take on (3.3.1.5). */
#define STATE_BYTES 512

static bool is_hex(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!((text.ptr[i] >= '0' && text.ptr[i] <= '9') || (text.ptr[i] >= 'a' && text.ptr[i] <= 'f')))
            return false;
    return true;
}

/* An id of zeros is nobody's. */
static bool is_id(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '0')
            return is_hex(text);
    return false;
}

bool sl_traceparent_is_valid(struct sl_span text)
{
    if (text.len < PARENT_BYTES || text.ptr[VERSION_HEX] != '-' || text.ptr[PARENT_AT - 1] != '-' ||
        text.ptr[FLAGS_AT - 1] != '-')
        return false;
    struct sl_span version = sl_span(text.ptr, VERSION_HEX);
    bool is_first = sl_span_is(version, "00"), is_longer = text.len > PARENT_BYTES;
    return is_hex(version) && !sl_span_is(version, "ff") && is_id(sl_trace_id(text)) &&
           is_id(sl_parent_id(text)) && is_hex(sl_span(text.ptr + FLAGS_AT, 2)) &&
           (!is_longer || (!is_first && text.ptr[PARENT_BYTES] == '-'));
}

bool sl_traceparent_is_sampled(struct sl_span traceparent)
{
    char last = traceparent.ptr[FLAGS_AT + 1];
    return (last <= '9' ? last - '0' : last - 'a' + 10) & 1;
}

/* It goes into a header: printable ASCII. (What its members say is for those who know them.) */
static bool is_state(struct sl_value v)
{
    for (size_t i = 0; i < v.raw.len; i++)
        if (v.raw.ptr[i] < ' ' || v.raw.ptr[i] > '~')
            return false;
    return v.type == SL_S && !v.escaped && v.raw.len && v.raw.len <= STATE_BYTES;
}

bool sl_trace_paths(struct sl_span path, struct sl_arena *arena, struct sl_trace_paths *out)
{
    static const char parent[] = "traceparent", state[] = "tracestate";
    const size_t n = sizeof(parent) - 1;
    *out = (struct sl_trace_paths){.parent = path};
    if (!sl_path_is_valid(path))
        return false;
    if (sl_span_ends(path, SL_LIT(parent)) && (path.len == n || path.ptr[path.len - n - 1] == '.'))
        out->state = sl_span_str(sl_arena_printf(arena, "%.*s%s", (int)(path.len - n), path.ptr, state));
    return true;
}

bool sl_record_trace(const struct sl_record *r, const struct sl_trace_paths *paths,
                     struct sl_trace_context *out)
{
    *out = (struct sl_trace_context){.traceparent = {NULL, 0}};
    if (!paths->parent.ptr)
        return false;
    struct sl_value parent = sl_record_path(r, SL_NEW_IMAGE, paths->parent);
    if (parent.type != SL_S || parent.escaped || !sl_traceparent_is_valid(parent.raw))
        return false;
    out->traceparent = sl_span(parent.raw.ptr, parent.raw.len);
    struct sl_value state = {.type = SL_NONE};
    if (paths->state.ptr)
        state = sl_record_path(r, SL_NEW_IMAGE, paths->state);
    if (is_state(state))
        out->tracestate = state.raw;
    return true;
}
