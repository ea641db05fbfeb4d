/* Option tables: one row per option. Everything else comes from the rows: reading and checking the
 * configuration, the refusal of unknown names, `sluice check`, the tables in docs/CONFIG.md, the JSON Schema.
 *
 * Reading is pure: targets are not opened here, templates and conditions not compiled
 * (handlers/pipeline/pipeline.c does). Every refusal has status SL_FATAL, code "InvalidConfiguration", and a
 * text that begins with the JSON path. */
#ifndef SL_HANDLERS_PIPELINE_OPTIONS_H
#define SL_HANDLERS_PIPELINE_OPTIONS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "handlers/handler.h"

/* In Sluice's own rows only, never in a handler's: null may be written instead of a value. */
#define SL_OPTION_NULLABLE 0x10000u

/* More than any handler needs; a longer table has lost its end. */
#define SL_OPTIONS_MAX 256

struct sl_option_value {
    bool is_set;  /* given, or filled in from its row's fallback */
    bool is_null; /* given as null */
    struct sl_span
        text; /* TEXT, ENUM, TEMPLATE, targets: the text; WHEN, JSON: the JSON; followed by a NUL */
    int64_t integer;
    bool boolean;
    const char *path; /* where it was given: "$.routes[0].options.format"; NULL for a fallback */

    /* What the pipeline made of it. */
    struct sl_template *template;
    struct sl_when *when;
    struct sl_object_port *objects;
    struct sl_table_port *table;
    struct sl_queue_port *queue;
};

/* The values of one table's rows. */
struct sl_option_set {
    const struct sl_option *rows; /* borrowed, NULL: none */
    size_t n;
    struct sl_option_value *values; /* one per row */
    struct sl_arena *arena;
};

struct sl_options_source {
    const struct json_t *object;
    const char *path;                /* of the object: "$.routes[0]" */
    const struct sl_option *foreign; /* rows of members that are read elsewhere; NULL: none */
    struct sl_span text; /* the whole file's: JSON and conditions are taken from it, since names may repeat in
                            a pattern, which no tree keeps */
};

void sl_options_init(struct sl_option_set *set, const struct sl_option *rows, struct sl_arena *arena);

/* Reads the members of one object. May be called again with another object; a name given twice is refused. */
enum sl_status sl_options_take(struct sl_option_set *set, const struct sl_options_source *source,
                               struct sl_error *error) SL_MUST_USE;

/* After the last object: fills in fallbacks, and refuses what is required and absent as missing at `path`. */
enum sl_status sl_options_end(struct sl_option_set *set, const char *path,
                              struct sl_error *error) SL_MUST_USE;

/* The value of that name, NULL when the table has no such row. */
struct sl_option_value *sl_options_get(const struct sl_option_set *set, const char *name);
/* Its text; absent: there is no such row, or it was not given and has no fallback. */
struct sl_span sl_options_text(const struct sl_option_set *set, const char *name);

/* Is the table itself well made (a plugin brings its own)? The text names the row. */
enum sl_status sl_options_check_rows(const struct sl_option *rows, struct sl_error *error) SL_MUST_USE;

/* The known name nearest to a mistyped one, among rows and NULL-terminated names (either may be NULL); NULL
 * when none is near. */
const char *sl_options_closest_name(const char *name, const struct sl_option *rows, const char *const *names);

/* "text", "integer", "object store target": what docs and messages call the type. */
const char *sl_options_type_name(enum sl_option_type type);

/* Markdown: a table of the rows. */
void sl_options_help(const struct sl_option *rows, struct sl_buffer *out);

/* Where options have a schema of their own: the text of a JSON object with members "OWNER.OPTION", which the
 * schema has as its "$defs". */
struct sl_option_defs {
    const char *owner; /* of the rows: "replicate" */
    const char *text;
};

/* JSON Schema: the members of "properties", `"name":{...},...`, without the braces around them. */
void sl_options_schema(const struct sl_option *rows, const struct sl_option_defs *defs,
                       struct sl_buffer *out);

#endif
