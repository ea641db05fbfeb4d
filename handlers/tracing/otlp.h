/* Spans as OTLP writes them in JSON (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding": ids are
 * hexadecimal, 64-bit numbers are texts; opentelemetry-proto 1.x, trace/v1/trace.proto). */
#ifndef SL_HANDLERS_TRACING_OTLP_H
#define SL_HANDLERS_TRACING_OTLP_H

#include "base/buffer.h"
#include "handlers/dispatch/links.h"

enum sl_otlp_kind { SL_OTLP_INTERNAL = 1, SL_OTLP_CONSUMER = 5 };

struct sl_otlp_span {
    char trace_id[SL_TRACE_ID_HEX + 1], id[SL_PARENT_ID_HEX + 1];
    char parent_id[SL_PARENT_ID_HEX + 1]; /* "": it begins its trace */
    const char *name;
    enum sl_otlp_kind kind;
    int64_t began_ns, ended_ns; /* since 1970 */
    const char *error;          /* a code; NULL: none */
};

/* An attribute each, after a comma unless `out` is empty. */
void sl_otlp_text(struct sl_buffer *out, const char *name,
                  struct sl_span value); /* an empty one is left out */
void sl_otlp_integer(struct sl_buffer *out, const char *name, uint64_t value);
void sl_otlp_bool(struct sl_buffer *out, const char *name, bool value);

/* A span, after a comma unless `out` is empty. `attributes` is what the three above wrote; `links` may be
 * NULL, and no more than `most` of them are written: the others count as dropped. */
void sl_otlp_span(struct sl_buffer *out, const struct sl_otlp_span *span, struct sl_span attributes,
                  const struct sl_links *links, size_t most);

/* The request: one resource, one scope, these spans. */
void sl_otlp_request(struct sl_buffer *out, struct sl_span resource, struct sl_span spans);

#endif
