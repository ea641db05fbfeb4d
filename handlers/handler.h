/* Writing a handler for Sluice: this header is the manual.
 *
 * A handler is one C file that exports one symbol, SL_HANDLER. It links nothing of ours: everything it needs
 * comes through struct sl_host. The built-in handlers see nothing more than this. `sluice new-handler NAME`
 * writes a first one.
 *
 * Configuration. A route of sluice.json names the handler:
 *     {"name": "mine", "handler": "my_handler", "options": {"threshold": 10}, "on_failure": "report"}
 * "my_handler" is the file my_handler.so on the handler path.
 *
 * Slices. handle() gets an array of records of one batch, in stream order: those that match the route's
 * `when`. It is called again with parts of the slice when it says SL_REJECT, to find the record to blame.
 *
 * Outcomes, of the call and of single records:
 *   - SL_OK      durable: every record that is not marked otherwise.
 *   - SL_RETRY   the outside world failed, nobody's fault. Tried again while time allows, then by the event
 *                source.
 *   - SL_REJECT  this record can never succeed. Unmarked records of a call that returned it are unknown,
 *                and are tried again in halves. A single one that is rejected goes to `on_failure`.
 *   - SL_FATAL   nothing can succeed here: access denied, no such table. Stops the route with one error.
 *
 * Marks. host->mark() says of one record what became of it; unmarked records take what handle() returns. A
 * record marked SL_OK is not given again, so that a slice that half succeeded moves forward.
 *
 * Repeats. Every record may come more than once, also after success (delivery is at least once), but never a
 * later change of an item before an earlier one that failed. Make effects repeatable, or set SL_ONCE_ONLY:
 * such a handler is called only for records that the answer will not ask for again, after all other routes,
 * and should mark what it has done, since whatever is not marked comes again.
 *
 * Memory. Records, and all views of them, live until handle() returns; what host->alloc puts on slice->arena,
 * until the batch is answered; on the route's arena (route_arena), as long as the handler. Nothing needs
 * freeing.
 *
 * Threads and time. One thread. slice->deadline_ms (on host->now_ms) already leaves time to report: stop
 * before it.
 *
 * Crashes. A handler that dies of a signal takes the process with it; docs/PLUGINS.md says what happens then.
 *
 * ABI. Fields of the structs that begin with struct sl_abi are only appended, and `size` tells which are
 * there. The structs that stand in arrays (sl_option, sl_result, sl_object, sl_table_op, sl_message and what
 * they point to) keep their layout as long as the major number. Changelog: 1.0 is the first.
 */
#ifndef SL_HANDLERS_HANDLER_H
#define SL_HANDLERS_HANDLER_H

#include "base/types.h"
#include "sinks/port.h"
#include "streams/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ABI_MAJOR 1u
#define SL_ABI_MINOR 0u

/* First in every struct that crosses the boundary. It loads when `major` is equal and `minor` is not above
 * the host's; min(size) bytes are taken, the rest is zero. Fields are only appended. */
struct sl_abi {
    uint16_t major, minor;
    uint32_t size;
};

struct sl_host;
struct sl_route; /* one route of sluice.json, while its handler lives */
struct json_t;   /* jansson's, for those who want it */

/* ---- options ---- */

enum sl_option_type {
    SL_OPTION_END = 0,
    SL_OPTION_TEXT,
    SL_OPTION_INTEGER, /* within min..max */
    SL_OPTION_BOOL,
    SL_OPTION_ENUM,     /* one of `values`: "record|item" */
    SL_OPTION_TEMPLATE, /* text with {places}, compiled */
    SL_OPTION_WHEN,     /* a condition object as in a route's "when", compiled */
    SL_OPTION_JSON,     /* any JSON; the handler reads it */
    SL_OPTION_OBJECTS,  /* a target, opened: object store */
    SL_OPTION_TABLE,    /* table */
    SL_OPTION_QUEUE     /* queue */
};

#define SL_OPTION_REQUIRED 1u
#define SL_OPTION_SECRET   2u /* never printed */

/* One row per option: the parser, `sluice check`, the docs, the JSON Schema and the refusal of unknown keys
 * come from it. A route's members and those in its "options" object are the same thing. */
struct sl_option {
    const char *name;
    enum sl_option_type type;
    unsigned flags;
    int64_t min, max;     /* INTEGER; both 0: any */
    const char *values;   /* ENUM */
    const char *fallback; /* the default, as text; NULL: absent */
    const char *help;     /* one line */
};

/* ---- the call ---- */

struct sl_slice {
    struct sl_abi abi;
    const struct sl_record *const *records;
    size_t n;
    int64_t deadline_ms;    /* on host->now_ms() */
    struct sl_arena *arena; /* until the batch is answered */
    const char *request_id; /* "" outside Lambda */
    unsigned attempt;       /* 0 at the first call with these records in this batch */
};

/* A tumbling window's event. What goes back is a function of `state` and `records` alone: when the answer's
 * checkpoint turns out lower, window() is called once more with the same state and fewer records. */
struct sl_window {
    struct sl_abi abi;
    struct sl_span start, end; /* "2020-07-30T17:00:00Z" */
    struct sl_span state;      /* JSON text, {} at the window's beginning */
    struct sl_span new_state;  /* set by the handler, in `arena`: an object of 1 MB at most, which comes back
                                  as the next event's `state`. Absent: `state` is echoed */
    bool is_final, is_terminated_early;
    struct sl_arena *arena;
    int64_t deadline_ms;
    const struct sl_record *const *records; /* those the route was given and the answer takes as done: they
                                               will not come again. Parked ones are not among them */
    size_t n;
};

/* In `flags`: effects that cannot be repeated, called only below the checkpoint that the answer will set. */
#define SL_ONCE_ONLY 1u

struct sl_handler {
    struct sl_abi abi; /* SL_HANDLER_ABI */
    const char *name;
    const char *summary;             /* one line */
    unsigned flags;                  /* SL_ONCE_ONLY */
    size_t max_records;              /* of a slice; 0: the whole batch */
    size_t max_bytes;                /* of a slice's records together; 0: no limit */
    const struct sl_option *options; /* ends with a row of type SL_OPTION_END; NULL: none */

    /* Once, before the first event; options are there, targets opened. What it puts in `*self` comes back in
     * all others. NULL: nothing to do. A failure is an init error: `error` says why. */
    enum sl_status (*open)(const struct sl_host *host, struct sl_route *route, void **self,
                           struct sl_error *error);

    /* See above. `error` is optional detail for what it returns; a mark may carry its own. Required. */
    enum sl_status (*handle)(void *self, struct sl_slice *slice, struct sl_error *error);

    /* Each event of a tumbling window, after handle(); also when the event holds no record. One route at most
     * has it. A failure fails the event. NULL: the state is echoed. */
    enum sl_status (*window)(void *self, struct sl_window *window, struct sl_error *error);

    /* At the end of the process, if that comes in order. NULL: nothing to do. */
    void (*close)(void *self);

    /* Does a record of this view type give the handler what it needs? Says why not in `error`. Asked at start
     * where the configuration tells the view type, else at the first record. NULL: every view type will do.
     */
    enum sl_status (*accepts)(void *self, enum sl_view view, struct sl_error *error);
};

#define SL_HANDLER_ABI                                                                                       \
    {                                                                                                        \
        SL_ABI_MAJOR, SL_ABI_MINOR, (uint32_t)sizeof(struct sl_handler)                                      \
    }

#if defined(_WIN32)
#error "Sluice runs on Linux"
#endif
#define SL_EXPORT __attribute__((visibility("default")))

/* The one symbol: `SL_EXPORT const struct sl_handler SL_HANDLER = {SL_HANDLER_ABI, "mine", ...};` */
#define SL_HANDLER        sluice_handler
#define SL_HANDLER_SYMBOL "sluice_handler"

/* ---- the host ---- */

/* What the host does for a handler. Functions that take an arena put there what they have to make. */
struct sl_host {
    struct sl_abi abi;

    /* Marks record i of the slice. `error` (may be NULL) says why; it is copied. */
    void (*mark)(struct sl_slice *slice, size_t i, enum sl_status status, const struct sl_error *error);

    /* Sets `error` if it is not set, returns `status`: `return host->fail(error, SL_REJECT, "NoTotal", "%s
     * has no total", ...)`. */
    enum sl_status (*fail)(struct sl_error *error, enum sl_status status, const char *code,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

    /* -- memory, time, log -- */
    void *(*alloc)(struct sl_arena *arena, size_t n); /* aligned for any type, not zeroed; never NULL */
    struct sl_arena *(*route_arena)(struct sl_route *route); /* lives as long as the handler */
    int64_t (*now_ms)(struct sl_route *route);               /* steady */
    int64_t (*wall_ns)(struct sl_route *route);              /* since 1970 */
    uint64_t (*random)(struct sl_route *route);              /* not for secrets */
    bool (*sleep)(struct sl_route *route, const struct sl_slice *slice,
                  int64_t ms); /* false, at once: that would pass the deadline */
    bool (*log_enabled)(struct sl_route *route, enum sl_level level);
    void (*log)(struct sl_route *route, enum sl_level level, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*metric)(struct sl_route *route, const char *name, double value,
                   const char *unit); /* "Count", "Milliseconds", "Bytes" */

    /* -- the route's options (by the names of the handler's own table; others give nothing) -- */
    const char *(*route_name)(struct sl_route *route);
    unsigned (*route_events)(
        struct sl_route *route); /* bits 1 << SL_INSERT...: what its `when` lets through */
    struct sl_span (*option_text)(
        struct sl_route *route,
        const char *name); /* TEXT, ENUM, JSON (its text), targets (the URL); NUL behind it */
    int64_t (*option_integer)(struct sl_route *route, const char *name);
    bool (*option_bool)(struct sl_route *route, const char *name);
    const struct sl_template *(*option_template)(struct sl_route *route, const char *name);
    const struct sl_when *(*option_when)(struct sl_route *route, const char *name);
    struct sl_object_port *(*option_objects)(struct sl_route *route, const char *name);
    struct sl_table_port *(*option_table)(struct sl_route *route, const char *name);
    struct sl_queue_port *(*option_queue)(struct sl_route *route, const char *name);

    /* -- records (streams/record.h says more of each) -- */
    enum sl_event (*record_event)(const struct sl_record *r);
    enum sl_view (*record_view)(const struct sl_record *r);
    enum sl_ttl (*record_ttl)(const struct sl_record *r);
    int64_t (*record_created_ns)(const struct sl_record *r);
    uint64_t (*record_computed_bytes)(const struct sl_record *r);
    struct sl_span (*record_text)(const struct sl_record *r, enum sl_field field);
    struct sl_span (*record_order)(const struct sl_record *r, struct sl_arena *arena);
    struct sl_span (*record_item_key)(const struct sl_record *r, struct sl_arena *arena);
    struct sl_value (*record_image)(const struct sl_record *r, enum sl_image image);
    struct sl_value (*record_attribute)(const struct sl_record *r, enum sl_image image, struct sl_span name);
    struct sl_value (*record_path)(const struct sl_record *r, enum sl_image image, struct sl_span path);
    bool (*record_changed)(const struct sl_record *r, struct sl_span name);
    struct json_t *(*record_to_json)(
        const struct sl_record *r); /* a new reference: json_decref it. NULL: the host has no jansson */

    /* -- values -- */
    struct sl_span (*value_text)(struct sl_value v, struct sl_arena *arena);
    struct sl_span (*value_bytes)(struct sl_value v, struct sl_arena *arena);
    bool (*value_int64)(struct sl_value v, int64_t *out);
    bool (*value_is_true)(struct sl_value v);
    struct sl_iter (*value_iter)(struct sl_value v);
    bool (*value_next)(struct sl_iter *iter, struct sl_span *name, struct sl_value *value);
    bool (*value_equal)(struct sl_value a, struct sl_value b);
    struct sl_span (*value_plain)(struct sl_value v,
                                  struct sl_arena *arena); /* plain JSON: {"a":1,"b":["x"]} */
    uint64_t (*item_bytes)(struct sl_value image);         /* the item's size by DynamoDB's formula */

    /* -- templates, conditions -- */
    enum sl_status (*template_compile)(struct sl_arena *arena, struct sl_span text, struct sl_template **out,
                                       struct sl_error *error);
    /* The text, in `arena`. SL_REJECT, code "MissingAttribute", when a place has no value. */
    enum sl_status (*template_render)(const struct sl_template *t, const struct sl_record *r,
                                      enum sl_escape escape, struct sl_arena *arena, struct sl_span *out,
                                      struct sl_error *error);
    enum sl_status (*template_render_image)(const struct sl_template *t, const struct sl_record *r,
                                            enum sl_image image, enum sl_escape escape,
                                            struct sl_arena *arena, struct sl_span *out,
                                            struct sl_error *error);
    /* The same, but a place without a value is `otherwise`, escaped likewise. */
    struct sl_span (*template_render_or)(const struct sl_template *t, const struct sl_record *r,
                                         enum sl_image image, enum sl_escape escape, struct sl_arena *arena,
                                         struct sl_span otherwise);
    struct sl_value (*template_value)(const struct sl_template *t, const struct sl_record *r,
                                      enum sl_image image);
    enum sl_status (*when_compile)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                   struct sl_error *error);
    bool (*when_match)(const struct sl_when *when, const struct sl_record *r, struct sl_arena *scratch);
    /* A pattern of the same language on any JSON object: on an item, {"status": {"S": ["OPEN"]}}. */
    enum sl_status (*pattern_compile)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                      struct sl_error *error);
    bool (*pattern_match)(const struct sl_when *pattern, struct sl_span json, struct sl_arena *scratch);

    /* -- exact decimals: DynamoDB's 38 digits -- */
    struct sl_decimal *(*decimal_new)(struct sl_arena *arena); /* zero */
    bool (*decimal_add)(struct sl_decimal *sum, struct sl_span number,
                        bool subtract); /* false: no number; nothing changed */
    bool (*decimal_text)(const struct sl_decimal *d, struct sl_arena *arena,
                         struct sl_span *out); /* false: beyond DynamoDB's range */
    bool (*decimal_is_zero)(const struct sl_decimal *d);
    int (*number_compare)(struct sl_span a, struct sl_span b); /* by value: less than, equal to, above 0 */

    /* -- text, bytes -- */
    struct sl_span (*join)(struct sl_arena *arena, const struct sl_span *parts, size_t n);
    struct sl_span (*json_quote)(struct sl_arena *arena, struct sl_span text); /* with its quotes */
    struct sl_span (*json_unquote)(struct sl_arena *arena,
                                   struct sl_span inner); /* of a name from value_next */
    struct sl_span (*escape)(struct sl_arena *arena, struct sl_span text, enum sl_escape escape);
    struct sl_span (*gzip)(struct sl_arena *arena, const struct sl_span *parts, size_t n,
                           int level); /* one member, the same for the same parts */
    void (*sha256)(struct sl_span bytes, unsigned char out[32]);
};

#ifdef __cplusplus
}
#endif

#endif
