/* The JSON Schema of sluice.json, from the option rows. */
#include "handlers/pipeline/config.h"

#include "base/embed.h"
#include "base/json_write.h"
#include "base/span.h"

/* "$defs": what a `when` is, and what the options are that have a form of their own ("replicate.guard"). The
 * parsers are streams/when and the handlers; a test holds them and the schema against the same
 * configurations. */
SL_EMBED(sl_text_when_schema, "handlers/pipeline/when.schema.json");
SL_EMBED(sl_text_options_schema, "handlers/pipeline/options.schema.json");

/* What is between the braces of an embedded object. */
static void add_members(const char *object, struct sl_buffer *out)
{
    struct sl_span text = sl_span_str(object);
    const char *end = memrchr(text.ptr, '}', text.len);
    sl_buffer_add(out, strchr(object, '{') + 1, (size_t)(end - strchr(object, '{') - 1));
}

static bool has_rows(const struct sl_handler *handler)
{
    return handler->options && handler->options->type != SL_OPTION_END;
}

/* The handler's options as an object of their own: "options" in a route is one. */
static void add_options(const struct sl_handler *handler, struct sl_buffer *out)
{
    const struct sl_option_defs defs = {handler->name, sl_text_options_schema};
    sl_json_add_string(out, sl_span_str(handler->name));
    sl_buffer_add_str(out, ":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    sl_options_schema(handler->options, &defs, out);
    sl_buffer_add_str(out, "}}");
}

/* An option is in the route or in its "options", and not in both. */
static void add_either(const struct sl_handler *handler, struct sl_buffer *out)
{
    const char *comma = "";
    sl_buffer_add_str(out, ",\"dependentSchemas\":{");
    for (const struct sl_option *row = handler->options; row->type != SL_OPTION_END; row++, comma = ",")
        sl_buffer_printf(out, "%s\"%s\":{\"properties\":{\"options\":{\"properties\":{\"%s\":false}}}}",
                         comma, row->name, row->name);
    sl_buffer_printf(out, "},\"allOf\":[{\"properties\":{\"options\":{\"$ref\":\"#/$defs/%s\"}}}",
                     handler->name);
    for (const struct sl_option *row = handler->options; row->type != SL_OPTION_END; row++)
        if (row->flags & SL_OPTION_REQUIRED)
            sl_buffer_printf(
                out,
                ",{\"anyOf\":[{\"required\":[\"%s\"]},{\"required\":[\"options\"],\"properties\":{"
                "\"options\":{\"required\":[\"%s\"]}}}]}",
                row->name, row->name);
    sl_buffer_add_char(out, ']');
}

/* A handler's routes: what every route has and the handler's own, in the route or in "options". */
static void add_handler(const struct sl_handler *handler, struct sl_buffer *out)
{
    const struct sl_option_defs defs = {"route", sl_text_options_schema};
    sl_buffer_add_str(out, "{\"if\":{\"required\":[\"handler\"],\"properties\":{\"handler\":{\"const\":");
    sl_json_add_string(out, sl_span_str(handler->name));
    sl_buffer_add_str(out, "}}},\"then\":{\"additionalProperties\":false,\"properties\":{");
    sl_options_schema(sl_config_route_rows, &defs, out);
    if (!has_rows(handler)) {
        sl_buffer_add_str(out, "}}}");
        return;
    }
    for (const struct sl_option *row = handler->options; row->type != SL_OPTION_END; row++) {
        sl_buffer_add_char(out, ',');
        sl_json_add_string(out, sl_span_str(row->name));
        sl_buffer_printf(out, ":{\"$ref\":\"#/$defs/%s/properties/%s\"}", handler->name, row->name);
    }
    sl_buffer_add_char(out, '}');
    add_either(handler, out);
    sl_buffer_add_str(out, "}}");
}

static void add_routes(const struct sl_handler *const *handlers, struct sl_buffer *out)
{
    const struct sl_option_defs defs = {"route", sl_text_options_schema};
    sl_buffer_printf(out,
                     "{\"type\":\"array\",\"minItems\":1,\"maxItems\":%d,\"items\":{\"type\":\"object\","
                     "\"required\":[\"name\",\"handler\"],\"properties\":{",
                     SL_CONFIG_ROUTES_MAX);
    sl_options_schema(sl_config_route_rows, &defs, out);
    sl_buffer_add_str(out, "},\"allOf\":[");
    for (size_t i = 0; handlers[i]; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        add_handler(handlers[i], out);
    }
    sl_buffer_add_str(out, "]}}");
}

static void add_defs(const struct sl_handler *const *handlers, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "\"$defs\":{");
    add_members(sl_text_when_schema, out);
    sl_buffer_add_char(out, ',');
    add_members(sl_text_options_schema, out);
    for (size_t i = 0; handlers[i]; i++) {
        sl_buffer_add_char(out, ',');
        add_options(handlers[i], out);
    }
    sl_buffer_add_char(out, '}');
}

void sl_config_schema(const struct sl_handler *const *handlers, struct sl_buffer *out)
{
    const struct sl_option_defs defs = {"top", sl_text_options_schema};
    sl_buffer_add_str(
        out,
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"sluice.json\","
        "\"type\":\"object\",\"required\":[\"routes\"],\"additionalProperties\":false,"
        "\"anyOf\":[{\"required\":[\"on_failure\"]},{\"properties\":{\"routes\":{\"items\":{\"required\":"
        "[\"on_failure\"]}}}}],\"properties\":{\"routes\":");
    add_routes(handlers, out);
    sl_buffer_add_char(out, ',');
    sl_options_schema(sl_config_rows + 1, &defs, out);
    sl_buffer_add_str(out, "},");
    add_defs(handlers, out);
    sl_buffer_add_str(out, "}\n");
}
