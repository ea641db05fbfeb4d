/* OTLP in JSON: the members that have a value, in the order of the schema. */
#include "handlers/tracing/otlp.h"

#include "base/json_write.h"
#include "base/span.h"
#include "base/version.h"

#include <inttypes.h>

#define STATUS_ERROR 2 /* trace.proto, Status.StatusCode */

static void begin_attribute(struct sl_buffer *out, const char *name)
{
    sl_buffer_add_str(out, out->len ? ",{" : "{");
    sl_json_add_member(out, "key", sl_span_str(name));
    sl_buffer_add_str(out, ",\"value\":{");
}

void sl_otlp_text(struct sl_buffer *out, const char *name, struct sl_span value)
{
    if (!value.len)
        return;
    begin_attribute(out, name);
    sl_json_add_member(out, "stringValue", value);
    sl_buffer_add_str(out, "}}");
}

void sl_otlp_integer(struct sl_buffer *out, const char *name, uint64_t value)
{
    begin_attribute(out, name);
    sl_buffer_printf(out, "\"intValue\":\"%" PRIu64 "\"}}", value);
}

void sl_otlp_bool(struct sl_buffer *out, const char *name, bool value)
{
    begin_attribute(out, name);
    sl_buffer_printf(out, "\"boolValue\":%s}}", value ? "true" : "false");
}

static void add_links(struct sl_buffer *out, const struct sl_links *links, size_t most)
{
    const size_t n = links->n < most ? links->n : most;
    sl_buffer_add_str(out, ",\"links\":[");
    for (size_t i = 0; i < n; i++) {
        const struct sl_trace_context *context = &links->list[i];
        sl_buffer_add_str(out, i ? ",{" : "{");
        sl_json_add_member(out, "traceId", sl_trace_id(context->traceparent));
        sl_json_add_member(out, "spanId", sl_parent_id(context->traceparent));
        if (context->tracestate.len)
            sl_json_add_member(out, "traceState", context->tracestate);
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_char(out, ']');
    if (links->n - n + links->dropped)
        sl_buffer_printf(out, ",\"droppedLinksCount\":%zu", links->n - n + links->dropped);
}

void sl_otlp_span(struct sl_buffer *out, const struct sl_otlp_span *span, struct sl_span attributes,
                  const struct sl_links *links, size_t most)
{
    sl_buffer_add_str(out, out->len ? ",{" : "{");
    sl_json_add_member(out, "traceId", sl_span_str(span->trace_id));
    sl_json_add_member(out, "spanId", sl_span_str(span->id));
    if (span->parent_id[0])
        sl_json_add_member(out, "parentSpanId", sl_span_str(span->parent_id));
    sl_json_add_member(out, "name", sl_span_str(span->name));
    sl_buffer_printf(out,
                     ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64 "\"",
                     (int)span->kind, span->began_ns, span->ended_ns);
    sl_buffer_add_str(out, ",\"attributes\":[");
    sl_buffer_add_span(out, attributes);
    sl_buffer_add_char(out, ']');
    if (links && links->n)
        add_links(out, links, most);
    if (span->error) {
        sl_buffer_printf(out, ",\"status\":{\"code\":%d", STATUS_ERROR);
        sl_json_add_member(out, "message", sl_span_str(span->error));
        sl_buffer_add_char(out, '}');
    }
    sl_buffer_add_char(out, '}');
}

void sl_otlp_request(struct sl_buffer *out, struct sl_span resource, struct sl_span spans)
{
    sl_buffer_add_str(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    sl_buffer_add_span(out, resource);
    sl_buffer_add_str(out, "]},\"scopeSpans\":[{\"scope\":{");
    sl_json_add_member(out, "name", SL_LIT("sluice"));
    sl_json_add_member(out, "version", sl_span_str(sl_version));
    sl_buffer_add_str(out, "},\"spans\":[");
    sl_buffer_add_span(out, spans);
    sl_buffer_add_str(out, "]}]}]}");
}
