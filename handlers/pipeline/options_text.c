/* Option rows as text: the tables in the docs, the JSON Schema. */
#include "handlers/pipeline/options.h"

#include "base/json_write.h"
#include "base/span.h"

#include <inttypes.h>
#include <stdio.h>

/* A bare '|' would end the table's cell. */
static void add_cell(struct sl_buffer *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            sl_buffer_add_char(out, '\\');
        sl_buffer_add_char(out, *text);
    }
}

static void add_kind(struct sl_buffer *out, const struct sl_option *row)
{
    if (row->type == SL_OPTION_ENUM) {
        add_cell(out, row->values);
        return;
    }
    sl_buffer_add_str(out, sl_options_type_name(row->type));
    if (row->type == SL_OPTION_INTEGER && (row->min || row->max))
        sl_buffer_printf(out, ", %" PRId64 " to %" PRId64, row->min, row->max);
    if (row->flags & SL_OPTION_NULLABLE)
        sl_buffer_add_str(out, " or null");
    if (row->flags & SL_OPTION_SECRET)
        sl_buffer_add_str(out, ", never printed");
}

static void add_default(struct sl_buffer *out, const struct sl_option *row)
{
    if (row->flags & SL_OPTION_REQUIRED) {
        sl_buffer_add_str(out, "required");
    } else if (row->fallback) {
        sl_buffer_add_char(out, '`');
        add_cell(out, row->fallback);
        sl_buffer_add_char(out, '`');
    } else {
        sl_buffer_add_str(out, "none");
    }
}

void sl_options_help(const struct sl_option *rows, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "| name | value | default | |\n|---|---|---|---|\n");
    for (; rows && rows->type != SL_OPTION_END; rows++) {
        sl_buffer_printf(out, "| `%s` | ", rows->name);
        add_kind(out, rows);
        sl_buffer_add_str(out, " | ");
        add_default(out, rows);
        sl_buffer_add_str(out, " | ");
        add_cell(out, rows->help ? rows->help : "");
        sl_buffer_add_str(out, " |\n");
    }
}

static void add_choices(struct sl_buffer *out, const char *values)
{
    sl_buffer_add_str(out, "\"enum\":[");
    for (const char *at = values;;) {
        size_t n = strcspn(at, "|");
        sl_json_add_string(out, sl_span(at, n));
        if (!at[n])
            break;
        sl_buffer_add_char(out, ',');
        at += n + 1;
    }
    sl_buffer_add_char(out, ']');
}

/* A variable may be in the place of any text, and nobody knows its value here. */
static void add_text_type(struct sl_buffer *out, const struct sl_option *row)
{
    static const char *const refs[] = {
        [SL_OPTION_TEXT] = NULL,     [SL_OPTION_TEMPLATE] = "template", [SL_OPTION_OBJECTS] = "objects",
        [SL_OPTION_TABLE] = "table", [SL_OPTION_QUEUE] = "queue",       [SL_OPTION_WHEN] = "when"};
    if (row->type == SL_OPTION_ENUM) {
        sl_buffer_add_str(out, "\"anyOf\":[{");
        add_choices(out, row->values);
        sl_buffer_add_str(out, "},{\"$ref\":\"#/$defs/variable\"}]");
    } else if (refs[row->type]) {
        sl_buffer_printf(out, "\"$ref\":\"#/$defs/%s\"", refs[row->type]);
    } else {
        sl_buffer_add_str(out, "\"type\":\"string\"");
    }
}

static bool has_def(const struct sl_option_defs *defs, const char *name)
{
    char member[160];
    int n = snprintf(member, sizeof(member), "\"%s.%s\":", defs->owner, name);
    return n > 0 && (size_t)n < sizeof(member) && strstr(defs->text, member);
}

static void add_type(struct sl_buffer *out, const struct sl_option *row, const struct sl_option_defs *defs)
{
    if (has_def(defs, row->name)) {
        sl_buffer_printf(out, "\"$ref\":\"#/$defs/%s.%s\"", defs->owner, row->name);
    } else if (row->type == SL_OPTION_INTEGER || row->type == SL_OPTION_BOOL) {
        const char *type = row->type == SL_OPTION_INTEGER ? "integer" : "boolean";
        sl_buffer_printf(
            out, row->flags & SL_OPTION_NULLABLE ? "\"type\":[\"%s\",\"null\"]" : "\"type\":\"%s\"", type);
        if (row->type == SL_OPTION_INTEGER && (row->min || row->max))
            sl_buffer_printf(out, ",\"minimum\":%" PRId64 ",\"maximum\":%" PRId64, row->min, row->max);
    } else if (row->type != SL_OPTION_JSON) { /* of which the handler takes what it likes */
        add_text_type(out, row);
    }
}

static void add_schema_default(struct sl_buffer *out, const struct sl_option *row)
{
    if (!row->fallback)
        return;
    if (row->type == SL_OPTION_INTEGER || row->type == SL_OPTION_BOOL || row->type == SL_OPTION_JSON ||
        row->type == SL_OPTION_WHEN)
        sl_json_add_raw(out, "default", sl_span_str(row->fallback));
    else
        sl_json_add_member(out, "default", sl_span_str(row->fallback));
}

void sl_options_schema(const struct sl_option *rows, const struct sl_option_defs *defs, struct sl_buffer *out)
{
    for (size_t i = 0; rows && rows[i].type != SL_OPTION_END; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        sl_json_add_string(out, sl_span_str(rows[i].name));
        sl_buffer_add_str(out, ":{");
        add_type(out, &rows[i], defs);
        if (rows[i].help)
            sl_json_add_member(out, "description", sl_span_str(rows[i].help));
        add_schema_default(out, &rows[i]);
        sl_buffer_add_char(out, '}');
    }
}
