/* sluice.json: read, its ${NAME} replaced by variables, checked by option rows. No handler is loaded and no
 * target is opened here.
 *
 * ${NAME} may be in any string, and means the environment's variable, else that of SLUICE_VARIABLES (a JSON
 * object of texts), else the file's own ("variables"). An unset name is refused; "$${" is a plain "${". The
 * value goes in as text: whatever it holds, it stays inside its string. Every refusal has status SL_FATAL and
 * begins with the JSON path; a syntax error has the byte as its offset. */
#ifndef SL_HANDLERS_PIPELINE_CONFIG_H
#define SL_HANDLERS_PIPELINE_CONFIG_H

#include "base/vars.h"
#include "handlers/pipeline/options.h"
#include "streams/trace_context.h"

/* People write configurations; this is far more than any of them has. */
#define SL_CONFIG_BYTES (1024 * 1024)

#define SL_CONFIG_ROUTES_MAX 100

/* Where a route's rejected records go. */
struct sl_config_failure {
    bool is_report; /* rejected records are reported to the event source, nothing is parked */
    const char *path;
    bool is_list;               /* written as a list of targets */
    const struct sl_span *urls; /* in the order in which they are tried; each is followed by a NUL */
    size_t n;
};

struct sl_config_route {
    const char *name, *handler;
    const char *path;    /* "$.routes[0]" */
    struct sl_span when; /* JSON text, absent when not given */
    const char *when_path;
    struct sl_config_failure on_failure;
    int64_t max_records, max_bytes; /* 0: the handler's own */
    struct sl_span
        set_aside; /* target of the queue where records wait while the route's own is down; absent */
    const char *set_aside_path;
    bool is_paused;                            /* all of its records wait there */
    struct sl_options_source members, options; /* for the handler's rows; options.object may be NULL */
};

struct sl_config {
    struct sl_arena *arena;
    struct sl_vars vars;          /* the configuration's variables and those that it was read with */
    struct sl_span text;          /* the file's, expanded */
    struct sl_span ttl_attribute; /* absent: not set */
    struct sl_trace_paths trace;  /* where writers leave their trace's context */
    struct sl_span trace_to;      /* target of trace spans; absent: none are made */
    enum sl_view view;            /* SL_VIEW_UNKNOWN: not set */
    bool reports_failures;
    bool max_parked_is_set;
    int64_t max_parked; /* -1: no limit */
    int64_t reserve_ms; /* -1: not set, so by dispatch's rule */
    struct sl_config_route *routes;
    size_t n_routes;
};

/* The text of a file of JSON that a person wrote, at most `most` bytes, in `arena`. */
enum sl_status sl_config_file(const char *path, size_t most, struct sl_arena *arena, struct sl_span *out,
                              struct sl_error *error) SL_MUST_USE;

/* The configuration's. */
enum sl_status sl_config_text(const char *path, struct sl_arena *arena, struct sl_span *out,
                              struct sl_error *error) SL_MUST_USE;

/* The file's tree, as jansson has it, which the caller releases; what is in it was not checked. NULL: `error`
 * says why. */
struct json_t *sl_config_tree(const char *path, struct sl_arena *arena, struct sl_error *error);

/* Everything in `out` lives in `arena`. */
enum sl_status sl_config_read(const char *path, const struct sl_vars *vars, struct sl_arena *arena,
                              struct sl_config *out, struct sl_error *error) SL_MUST_USE;

/* The same from text. */
enum sl_status sl_config_parse(struct sl_span text, const struct sl_vars *vars, struct sl_arena *arena,
                               struct sl_config *out, struct sl_error *error) SL_MUST_USE;

/* Is it "${secretsmanager:...}" or "${ssm:...}", and nothing else? `reference` is what is between the braces.
 */
bool sl_config_is_secret(struct sl_span text, struct sl_span *reference);

/* The option rows, for docs and schema. */
extern const struct sl_option sl_config_rows[];       /* top level */
extern const struct sl_option sl_config_route_rows[]; /* of every route */

struct sl_handler;
/* The JSON Schema of sluice.json with these handlers (NULL-terminated). */
void sl_config_schema(const struct sl_handler *const *handlers, struct sl_buffer *out);

#endif
