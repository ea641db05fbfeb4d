/* The JSON Schema of sluice.json, from the option rows. */
#include "handlers/pipeline/config.h"

#include "base/embed.h"
#include "base/json_write.h"
#include "base/span.h"

/* "$defs": what a `when` is, and all that is in it. The parser is streams/when; a test holds both against the
 * same conditions. */
SL_EMBED(sl_text_when_schema, "handlers/pipeline/when.schema.json");

/* A handler's routes: what every route has and the handler's own, in the route or in "options". */
static void add_handler(const struct sl_handler *handler, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"if\":{\"properties\":{\"handler\":{\"const\":");
    sl_json_add_string(out, sl_span_str(handler->name));
    sl_buffer_add_str(out, "}}},\"then\":{\"additionalProperties\":false,\"properties\":{");
    sl_options_schema(sl_config_route_rows, out);
    bool has_rows = handler->options && handler->options->type != SL_OPTION_END;
    if (has_rows)
        sl_buffer_add_char(out, ',');
    sl_options_schema(handler->options, out);
    sl_buffer_add_str(out, "}}}");
}

static void add_routes(const struct sl_handler *const *handlers, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"object\","
                           "\"required\":[\"name\",\"handler\"],\"properties\":{");
    sl_options_schema(sl_config_route_rows, out);
    sl_buffer_add_str(out, "},\"allOf\":[");
    for (size_t i = 0; handlers[i]; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        add_handler(handlers[i], out);
    }
    sl_buffer_add_str(out, "]}}");
}

void sl_config_schema(const struct sl_handler *const *handlers, struct sl_buffer *out)
{
    sl_buffer_add_str(
        out, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"sluice.json\","
             "\"type\":\"object\",\"required\":[\"routes\"],\"additionalProperties\":false,"
             "\"properties\":{\"routes\":");
    add_routes(handlers, out);
    sl_buffer_add_char(out, ',');
    sl_options_schema(sl_config_rows + 1, out);
    sl_buffer_add_str(out, "},\"$defs\":");
    sl_buffer_add_str(out, sl_text_when_schema);
    sl_buffer_add_str(out, "}\n");
}
