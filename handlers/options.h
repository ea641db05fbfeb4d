/* Option tables: one row per option, and everything else comes from the rows: reading the configuration with
 * its checks, the refusal of unknown names, `sluice check`, the tables in docs/CONFIG.md, the JSON Schema.
 *
 * Reading is pure: targets are not opened here, templates and conditions not compiled (handlers/pipeline.c
 * does). Every refusal has status SL_FATAL, code "InvalidConfiguration", and a text that begins with the JSON
 * path. */
#ifndef SL_HANDLERS_OPTIONS_H
#define SL_HANDLERS_OPTIONS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "handlers/handler.h"

/* Allowed in Sluice's own rows, not in a handler's: null takes the place of a value. */
#define SL_OPTION_NULLABLE 0x10000u

/* More than any handler needs; a larger count is a table without its end. */
#define SL_OPTIONS_MAX 256

struct sl_option_value {
    bool is_set;         /* given, or there by its row's fallback */
    bool is_null;        /* given as null */
    struct sl_span text; /* TEXT, ENUM, TEMPLATE, targets: the text; WHEN, JSON: the JSON; NUL behind it */
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

/* JSON text of a value as the file has it: names may repeat in a pattern, which no tree keeps. `path` is the
 * value's; the absent span when there is none. */
typedef struct sl_span (*sl_raw_json_fn)(void *arg, const char *path, const struct json_t *value);

struct sl_options_source {
    const struct json_t *object;
    const char *path;                /* of the object: "$.routes[0]" */
    const struct sl_option *foreign; /* rows of members that somebody else reads; NULL: none */
    sl_raw_json_fn raw;
    void *raw_arg;
};

void sl_options_init(struct sl_option_set *set, const struct sl_option *rows, struct sl_arena *arena);

/* Reads the members of one object. May be called again with another object; a name given twice is refused. */
enum sl_status sl_options_take(struct sl_option_set *set, const struct sl_options_source *source,
                               struct sl_error *error) SL_MUST_USE;

/* After the last object: fallbacks are filled in, what is required and absent is refused as missing at
 * `path`.
 */
enum sl_status sl_options_end(struct sl_option_set *set, const char *path,
                              struct sl_error *error) SL_MUST_USE;

/* The value of that name, NULL when the table has no such row. */
struct sl_option_value *sl_options_get(const struct sl_option_set *set, const char *name);

/* Is the table itself well made (a plugin brings its own)? The text names the row. */
enum sl_status sl_options_check_rows(const struct sl_option *rows, struct sl_error *error) SL_MUST_USE;

/* The known name nearest to a mistyped one, among rows and NULL-terminated names (either may be NULL); NULL
 * when none is near. */
const char *sl_closest_name(const char *name, const struct sl_option *rows, const char *const *names);

/* "text", "integer", "object store target": how docs and messages call the type. */
const char *sl_option_type_name(enum sl_option_type type);

/* Markdown: a table of the rows. */
void sl_options_help(const struct sl_option *rows, struct sl_buffer *out);

/* JSON Schema: the members of "properties", `"name":{...},...`, without the braces around. */
void sl_options_schema(const struct sl_option *rows, struct sl_buffer *out);

#endif
