/* Opening a built-in handler: reading the options that are JSON.
 *
 * Errors are of class SL_FATAL, code "InvalidConfiguration", and begin with the option's path. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_OPENING_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_OPENING_H

#include "handlers/builtin/toolkit/render.h"

#include <jansson.h>

/* What open() was given; `arena` is the route's. */
struct sl_opening {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_arena *arena;
    struct sl_error *error;
};

/* Refuses the configuration: `return SL_OPENING_BAD(o, "rename.%s: ...", name);` */
#define SL_OPENING_BAD(o, ...) (o)->host->fail((o)->error, SL_FATAL, "InvalidConfiguration", __VA_ARGS__)

/* The same for a condition below `path`, whose error begins with a path inside the condition. */
enum sl_status sl_opening_bad_inside(const struct sl_opening *o, const char *path,
                                     const struct sl_error *why) SL_MUST_USE;

/* Is the option this text? */
bool sl_opening_is(const struct sl_opening *o, const char *option, const char *text);

/* The option's JSON, NULL when it is not given. The caller frees it with json_decref. */
json_t *sl_opening_json(const struct sl_opening *o, const char *option);

/* The nth value, from 0, of an array or object that jansson has read, as it was written: a number keeps its
 * digits, which jansson does not. (jansson gives an object's members in the order in which they were
 * written.) */
struct sl_span sl_opening_written(struct sl_span json, size_t n);

/* A copy in the route's arena. */
struct sl_span sl_opening_keep(const struct sl_opening *o, struct sl_span text);

/* The string's text, borrowed from it; absent for other JSON. */
struct sl_span sl_opening_text(const json_t *string);

/* Is it a name of 1 to 255 bytes that needs no escapes? Such names are written into JSON as they are. */
bool sl_opening_is_name(struct sl_span name);

/* Compiles a template; `where` is the path of the option that holds it. */
enum sl_status sl_opening_template(const struct sl_opening *o, const char *where, struct sl_span text,
                                   struct sl_render_template *out) SL_MUST_USE;

/* The option "where", compiled; NULL: it is not given. */
enum sl_status sl_opening_where(const struct sl_opening *o, const struct sl_when **out) SL_MUST_USE;

#endif
