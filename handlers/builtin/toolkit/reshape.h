/* What of an item a row holds: the options "project", "drop", "rename" and "set". */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_RESHAPE_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_RESHAPE_H

#include "handlers/builtin/toolkit/opening.h"
#include "handlers/builtin/toolkit/prune.h"
#include "handlers/builtin/toolkit/text.h"

/* What becomes of an attribute. */
struct sl_reshape_rule {
    struct sl_span name;
    bool is_kept;                 /* named in `project` */
    bool is_dropped;              /* named in `drop`, or its place is taken: by a new name, or by `set` */
    struct sl_span renamed;       /* its new name; absent: none */
    const struct sl_prune *prune; /* what `drop` leaves out of its value; NULL: nothing */
};

/* An attribute that a template makes of the item. */
struct sl_reshape_set {
    struct sl_span name;
    struct sl_render_template value;
};

/* Zeroed: items are copied as they are. */
struct sl_reshape {
    bool is_projected; /* only what `project` names */
    struct sl_reshape_rule *rules;
    uint32_t n_rules;
    size_t room_rules;
    struct sl_prune dropped;
    const char *option; /* that made the sets */
    struct sl_reshape_set *sets;
    size_t n_sets;
    size_t names_bytes; /* of all new names: what an item may become longer by */
};

/* Reads those of the options that the handler has. */
enum sl_status sl_reshape_open(const struct sl_opening *o, struct sl_reshape *s) SL_MUST_USE;

/* Reads an object of attributes and templates into `sets`: `option` is "set", or another of its form. */
enum sl_status sl_reshape_open_sets(const struct sl_opening *o, struct sl_reshape *s,
                                    const char *option) SL_MUST_USE;

/* What takes an attribute's name takes its place: a new name, a template, a key attribute that templates make
 * (`keys`). Two of them with one name are refused. After sl_reshape_open; each has a rule then. */
enum sl_status sl_reshape_take_places(const struct sl_opening *o, struct sl_reshape *s,
                                      const struct sl_span *keys, size_t n_keys) SL_MUST_USE;

/* Is there anything to do? */
bool sl_reshape_is_plain(const struct sl_reshape *s);

/* The attribute's rule; NULL: there is none. */
const struct sl_reshape_rule *sl_reshape_rule(const struct sl_reshape *s, struct sl_span name);

bool sl_reshape_is_left_out(const struct sl_reshape *s, const struct sl_reshape_rule *rule);

/* The attribute's name in the row. `name` as it is written in JSON; `rule` may be NULL. */
struct sl_span sl_reshape_name(const struct sl_reshape_rule *rule, struct sl_span name);

/* Adds the attribute, renamed and without what `drop` leaves out of it. */
void sl_reshape_put(const struct sl_host *host, struct sl_arena *arena, const struct sl_reshape_rule *rule,
                    struct sl_span name, struct sl_value value, struct sl_text_object *o);

/* The values of all sets; SL_NONE: the item does not get the attribute. */
struct sl_reshape_made {
    struct sl_value *values;
    size_t bytes; /* what their members take at most */
};
enum sl_status sl_reshape_make(const struct sl_host *host, const struct sl_reshape *s,
                               const struct sl_record *r, struct sl_value item, struct sl_arena *arena,
                               struct sl_reshape_made *out, struct sl_error *error) SL_MUST_USE;
void sl_reshape_put_made(const struct sl_host *host, const struct sl_reshape *s,
                         const struct sl_reshape_made *made, struct sl_text_object *o);

#endif
