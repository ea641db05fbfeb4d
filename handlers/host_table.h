/* What the host does for a handler: the table that open() gets, group by group.
 *
 * Public: part of handler.h. A plugin never includes it alone. C11 and C++11.
 *
 * A function that takes an arena puts there what it has to make. On slice->arena that lives until the batch
 * is answered, on route_arena as long as the handler. What a function returns is borrowed from the arena or
 * from the record. None of them fails on a record: the whole record was checked when it was decoded. */
#ifndef SL_HANDLERS_HOST_TABLE_H
#define SL_HANDLERS_HOST_TABLE_H

#include "base/types.h"
#include "sinks/port.h"
#include "streams/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First in every struct that crosses the boundary between host and plugin. A plugin loads if its `major` is
 * the host's and its `minor` is not above the host's. Of two sizes the smaller one is copied; the rest is
 * zero. Fields are only appended. */
struct sl_abi {
    uint16_t major, minor;
    uint32_t size;
};

struct sl_slice; /* the records of one call, see handler.h */
struct sl_route; /* one route of sluice.json, while its handler lives */
struct json_t;   /* jansson's, for those who want it */

/* A walk over what differs between two images; see record_diff. */
struct sl_diff {
    const struct sl_record *record; /* private */
    struct sl_arena *arena;
    struct sl_iter iter;
    enum sl_image image;
};

/* What became of a record that succeeded; see note. */
enum sl_effect {
    SL_EFFECT_APPLIED = 0, /* its effect was made */
    SL_EFFECT_REPEATED,    /* it had been made already */
    SL_EFFECT_OVERTAKEN,   /* a later change of the item is there: this one is not needed */
    SL_EFFECT_LEFT_OUT     /* nothing of it belongs there */
};

/* What a template looks at; see template_uses. */
#define SL_USES_KEYS  1u  /* {Keys.a}, {Keys|json} */
#define SL_USES_ITEM  2u  /* {a}, {NewImage.a}, {NewImage|json} */
#define SL_USES_OLD   4u  /* {OldImage.a}, {OldImage|json} */
#define SL_USES_EVENT 8u  /* {event}, {eventID}, {sequence}, {ttl} */
#define SL_USES_TIME  16u /* {yyyy}, ..., {ss} */
#define SL_USES_TABLE 32u /* {table}, {region} */

struct sl_host {
    struct sl_abi abi;

    /* ---- outcomes ---- */

    /* Sets the outcome of record i of the slice. `error` (may be NULL) says why; it is copied. The last mark
     * of a record counts. An index that is not below slice->n, or a value that is not a status, spoils the
     * call: it counts as SL_FATAL. */
    void (*mark)(struct sl_slice *slice, size_t i, enum sl_status status, const struct sl_error *error);

    /* The same, with a port's result of the operation that the record needed. */
    void (*mark_result)(struct sl_slice *slice, size_t i, const struct sl_result *result);

    /* Fills `error`, if it is not NULL and empty, and returns `status`:
     *     return host->fail(error, SL_REJECT, "NoTotal", "%.*s has no total", SL_ARG(key));
     * `code` is short and stable (max_parked counts by it). The text is one plain line. */
    enum sl_status (*fail)(struct sl_error *error, enum sl_status status, const char *code,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

    /* ---- memory, time, log ---- */

    /* Aligned for any type, not zeroed, never NULL. Freed with the arena. */
    void *(*alloc)(struct sl_arena *arena, size_t n);
    struct sl_arena *(*route_arena)(struct sl_route *route);

    int64_t (*now_ms)(struct sl_route *route);  /* steady: the clock of deadlines */
    int64_t (*wall_ns)(struct sl_route *route); /* since 1970-01-01T00:00:00Z */
    uint64_t (*random)(struct sl_route *route); /* 64 bits, not for secrets */
    /* Waits and returns true. If the wait would not end before the slice's deadline: returns false at once.
     */
    bool (*sleep)(struct sl_route *route, const struct sl_slice *slice, int64_t ms);

    /* One line, with the request's id and the route's name. Never log an item's values. */
    void (*log)(struct sl_route *route, enum sl_level level, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    bool (*log_enabled)(struct sl_route *route, enum sl_level level); /* ask before expensive arguments */
    /* To CloudWatch, in the embedded metric format. Units as there: "Count", "Milliseconds", "Bytes". */
    void (*metric)(struct sl_route *route, const char *name, double value, const char *unit);

    /* ---- the route and its options, by the names in the handler's own table ---- */

    const char *(*route_name)(struct sl_route *route);
    /* The events that `when` may let through, as bits: 1 << SL_INSERT, ... */
    unsigned (*route_events)(struct sl_route *route);

    /* Of TEXT, ENUM, JSON (its text) and targets (the URL), followed by a NUL. Absent when the option is not
     * set and has no default, or the name is not in the table. */
    struct sl_span (*option_text)(struct sl_route *route, const char *name);
    int64_t (*option_integer)(struct sl_route *route, const char *name);
    bool (*option_bool)(struct sl_route *route, const char *name);
    /* NULL when not set. */
    const struct sl_template *(*option_template)(struct sl_route *route, const char *name);
    const struct sl_when *(*option_when)(struct sl_route *route, const char *name);
    struct sl_object_port *(*option_objects)(struct sl_route *route, const char *name);
    struct sl_table_port *(*option_table)(struct sl_route *route, const char *name);
    struct sl_queue_port *(*option_queue)(struct sl_route *route, const char *name);

    /* ---- records ---- */

    enum sl_event (*record_event)(const struct sl_record *r);
    enum sl_view (*record_view)(const struct sl_record *r);
    enum sl_ttl (*record_ttl)(const struct sl_record *r); /* who removed the item: a user, or TTL? */
    /* When the change was made, in nanoseconds since 1970; 0: unknown. DynamoDB Streams has whole seconds. */
    int64_t (*record_created_ns)(const struct sl_record *r);
    uint64_t (*record_computed_bytes)(const struct sl_record *r); /* SizeBytes, by DynamoDB's formula */
    /* One of the record's texts. SL_FIELD_RAW is its JSON as it came. */
    struct sl_span (*record_text)(const struct sl_record *r, enum sl_field field);
    /* The change's place among the changes of its item: digits, compared by length, then bytewise.
     * (SL_FIELD_IDENTIFIER names the change, but has no order.) Absent when the record does not have it. */
    struct sl_span (*record_order)(const struct sl_record *r, struct sl_arena *arena);
    /* The item's identity: the same text for the same item of a table, however its key was written. */
    struct sl_span (*record_item_key)(const struct sl_record *r, struct sl_arena *arena);

    /* Keys or an image as a value of type SL_M; SL_NONE when the record does not have it. A REMOVE has no
     * SL_NEW_IMAGE, and the stream's view type may leave out either image. */
    struct sl_value (*record_image)(const struct sl_record *r, enum sl_image image);
    /* One attribute by its name; SL_NONE when it is not there. The first look into an image makes an index;
     * each further one takes about 10 ns. */
    struct sl_value (*record_attribute)(const struct sl_record *r, enum sl_image image, struct sl_span name);
    /* The same by path, "lines[0].price". A name that holds '.', '[' or '`' is written in backquotes. */
    struct sl_value (*record_path)(const struct sl_record *r, enum sl_image image, struct sl_span path);

    /* Does the attribute differ between the images? Numbers compare by value, sets and maps without order.
     * For an INSERT or REMOVE: is it there? False when an image that is needed is missing. */
    bool (*record_changed)(const struct sl_record *r, struct sl_span name);
    /* Lists every attribute for which record_changed is true, once:
     *     struct sl_diff diff = host->record_diff(r, slice->arena);
     *     while (host->diff_next(&diff, &name, &before, &after))
     * `before` is SL_NONE for a new attribute, `after` for a removed one. */
    struct sl_diff (*record_diff)(const struct sl_record *r, struct sl_arena *arena);
    bool (*diff_next)(struct sl_diff *diff, struct sl_span *name, struct sl_value *before,
                      struct sl_value *after);

    /* The whole record as a jansson tree: a new reference, free it with json_decref. Convenient, and much
     * slower than all of the above, as it makes a tree of every value. A plugin that uses it includes
     * <jansson.h> and links nothing. */
    struct json_t *(*record_to_json)(const struct sl_record *r);

    /* ---- values: the type is v.type, and v.raw its JSON text ---- */

    /* S, N and B as text (B as it is written, in base64); absent for other types. Copied to `arena` only if
     * the text had escapes. An N keeps every digit. */
    struct sl_span (*value_text)(struct sl_value v, struct sl_arena *arena);
    struct sl_span (*value_bytes)(struct sl_value v, struct sl_arena *arena); /* of a B, decoded */
    bool (*value_int64)(struct sl_value v, int64_t *out); /* an N that is an integer and fits; else false */
    bool (*value_is_true)(struct sl_value v);             /* a BOOL that is true */
    /* The member of an M. SL_NONE when it is not there, and for other types. */
    struct sl_value (*value_member)(struct sl_value v, struct sl_span name);
    /* The elements of M, L, SS, NS and BS in the order in which they are written; none for other types:
     *     struct sl_iter iter = host->value_iter(v);
     *     while (host->value_next(&iter, &name, &element))
     * `name` (may be NULL) is the name of an M's member, as written: json_unquote it if it may hold a
     * backslash. The elements of a set are S, N or B. */
    struct sl_iter (*value_iter)(struct sl_value v);
    bool (*value_next)(struct sl_iter *iter, struct sl_span *name, struct sl_value *value);
    bool (*value_equal)(struct sl_value a, struct sl_value b); /* as DynamoDB compares */

    struct sl_span (*value_json)(struct sl_value v, struct sl_arena *arena); /* {"N":"1"}: what ports take */
    /* Plain JSON: {"a":1,"b":["x"]}. A B is {"base64":"..."}. */
    struct sl_span (*value_plain)(struct sl_value v, struct sl_arena *arena);
    uint64_t (*item_bytes)(struct sl_value image); /* an item's size by DynamoDB's formula */

    /* ---- templates and conditions (options of these types are already compiled) ---- */

    enum sl_status (*template_compile)(struct sl_arena *arena, struct sl_span text, struct sl_template **out,
                                       struct sl_error *error);
    /* The text, in `arena`. SL_REJECT: code "MissingAttribute" when a place has no value, "TooLarge" when the
     * text has more than 8 MB. A bare {name} is looked up in Keys, then NewImage, then OldImage; in the
     * second form in `image` alone. */
    enum sl_status (*template_render)(const struct sl_template *t, const struct sl_record *r,
                                      enum sl_escape escape, struct sl_arena *arena, struct sl_span *out,
                                      struct sl_error *error);
    enum sl_status (*template_render_image)(const struct sl_template *t, const struct sl_record *r,
                                            enum sl_image image, enum sl_escape escape,
                                            struct sl_arena *arena, struct sl_span *out,
                                            struct sl_error *error);
    /* The same, but a place without a value becomes `otherwise`, escaped like a value. Absent when the text
     * has more than 8 MB. */
    struct sl_span (*template_render_or)(const struct sl_template *t, const struct sl_record *r,
                                         enum sl_image image, enum sl_escape escape, struct sl_arena *arena,
                                         struct sl_span otherwise);
    /* The value of a template that is one place without functions, "{total}"; SL_NONE for other templates. */
    struct sl_value (*template_value)(const struct sl_template *t, const struct sl_record *r,
                                      enum sl_image image);

    /* A condition like a route's "when". */
    enum sl_status (*when_compile)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                   struct sl_error *error);
    bool (*when_match)(const struct sl_when *when, const struct sl_record *r, struct sl_arena *scratch);
    /* A pattern of the same language for any JSON object, for example an item: {"status": {"S": ["OPEN"]}}.
     */
    enum sl_status (*pattern_compile)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                      struct sl_error *error);
    bool (*pattern_match)(const struct sl_when *pattern, struct sl_span json, struct sl_arena *scratch);

    /* ---- exact decimals with DynamoDB's 38 digits; numbers are texts, as in an N ---- */

    struct sl_decimal *(*decimal_new)(struct sl_arena *arena); /* zero */
    /* False: `number` is not a number, and nothing changed. */
    bool (*decimal_add)(struct sl_decimal *sum, struct sl_span number, bool subtract);
    /* False: the sum is beyond what an N can hold. */
    bool (*decimal_text)(const struct sl_decimal *d, struct sl_arena *arena, struct sl_span *out);
    bool (*decimal_is_zero)(const struct sl_decimal *d);
    int (*number_compare)(struct sl_span a, struct sl_span b); /* by value: < 0, 0 or > 0 */

    /* ---- text, bytes ---- */

    struct sl_span (*join)(struct sl_arena *arena, const struct sl_span *parts,
                           size_t n);                                             /* followed by a NUL */
    struct sl_span (*json_quote)(struct sl_arena *arena, struct sl_span text);    /* with its quotes */
    struct sl_span (*json_unquote)(struct sl_arena *arena, struct sl_span inner); /* from between quotes */
    struct sl_span (*escape)(struct sl_arena *arena, struct sl_span text, enum sl_escape escape);
    /* One gzip member. `level` is 1 (fast) to 9 (small). The same build makes the same bytes of the same
     * parts. */
    struct sl_span (*gzip)(struct sl_arena *arena, const struct sl_span *parts, size_t n, int level);
    void (*sha256)(struct sl_span bytes, unsigned char out[32]);

    /* ---- since 1.1 ---- */

    const char *(*event_name)(enum sl_event event); /* "INSERT", "MODIFY", "REMOVE" */
    const char *(*view_name)(enum sl_view view);    /* "KEYS_ONLY", ...; "" for SL_VIEW_UNKNOWN */
    const char *(*ttl_name)(enum sl_ttl ttl);       /* "unknown", "user", "inferred", "expired" */
    /* Writes value_json's text at `at` and returns where it ends. The caller has made room for v.raw.len +
     * SL_VALUE_JSON_BYTES bytes. */
    char *(*value_put)(char *at, struct sl_value v);
    /* JSON text of a record, without the whitespace between its tokens. */
    struct sl_span (*json_compact)(struct sl_arena *arena, struct sl_span json);

    /* ---- since 1.2 ---- */

    /* SHA-256 of what the value says, not of how it is written: equal values (see value_equal) have equal
     * digests, in this and every later version. */
    void (*value_sha256)(struct sl_value v, unsigned char out[32]);

    /* ---- since 1.3 ---- */

    /* Says what became of record i of the slice, for reports. It counts if the record succeeds. A record
     * without a note was applied. An index that is not below slice->n is ignored. */
    void (*note)(struct sl_slice *slice, size_t i, enum sl_effect note);
    /* What the template's places look at, as bits SL_USES_... */
    unsigned (*template_uses)(const struct sl_template *t);

    /* ---- since 1.4 ---- */

    /* What the template makes as an attribute value. SL_NONE: the attribute that it names, "{total}", of
     * whatever type. SL_N: it is one place that ends with |number. SL_S: all others make text. */
    enum sl_type (*template_type)(const struct sl_template *t);
    /* The attribute value that the template makes of an item, of the type above, in `arena`. `item` (an SL_M)
     * takes the place of the record's NewImage, where bare names are looked for, too. SL_NONE when a place
     * has no value; then `error` is set only if the text was too long. */
    struct sl_value (*template_item)(const struct sl_template *t, const struct sl_record *r,
                                     struct sl_value item, struct sl_arena *arena, struct sl_error *error);

    /* A condition on the plain values of an item, {"status": ["PAID"]}: see docs/WHEN.md. For where_match
     * alone. */
    enum sl_status (*where_compile)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                    struct sl_error *error);
    /* `item` is an image, or another M; SL_NONE: there is no item. */
    bool (*where_match)(const struct sl_when *where, struct sl_value item, struct sl_arena *scratch);
    /* Where when_match said no: the images, as bits 1 << enum sl_image, that the condition needs to tell and
     * that the record does not carry. 0 for nearly all records. */
    unsigned (*when_lacks)(const struct sl_when *when, const struct sl_record *r, struct sl_arena *scratch);

    /* ---- since 1.6 ---- */

    /* The template's nth place, from 0; false: there are not so many. */
    bool (*template_place)(const struct sl_template *t, size_t n, struct sl_template_place *out);

    /* ---- since 1.7 ---- */

    /* The trace context that the change's writer left in the item, where the configuration's "trace" says.
     * False: there is none. A message goes on with it whose attributes are "traceparent" and "tracestate". */
    bool (*record_trace)(struct sl_route *route, const struct sl_record *r, struct sl_trace_context *out);
};

#ifdef __cplusplus
}
#endif

#endif
