/* Templates of the built-in handlers: rendered as text, as an attribute value or as a key, with a stated
 * result for a record that lacks what they name. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_RENDER_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_RENDER_H

#include "handlers/handler.h"

/* The option "missing": what becomes of a record that lacks what a template names. */
enum sl_missing { SL_MISSING_REJECT, SL_MISSING_SKIP, SL_MISSING_EMPTY };
#define SL_MISSING_VALUES "reject|skip|empty"

enum sl_missing sl_render_missing(const struct sl_host *host, struct sl_route *route);

/* Does the error say that something is missing, and the option that this is to be skipped? */
bool sl_render_is_skipped(enum sl_missing missing, const struct sl_error *error);

/* Does the template name an image, "{NewImage.a}" or "{OldImage|json}"? */
bool sl_render_names_image(struct sl_span template_text);

/* Does the template look at the item alone? One that names the change's time, its event or the old image
 * renders another text for each change of an item. `facts->needs_table` is set when it names the table or
 * Region. */
bool sl_render_is_of_item(const struct sl_host *host, const struct sl_template *t, struct sl_per_item *facts);

/* A template, and what it makes: see template_type in handlers/host_table.h. SL_NONE: it is one place alone,
 * "{total}", which means the attribute itself. */
struct sl_render_template {
    struct sl_template *compiled;
    enum sl_type type;
};

enum sl_status sl_render_compile(const struct sl_host *host, struct sl_arena *arena, struct sl_span text,
                                 struct sl_render_template *out, struct sl_error *error) SL_MUST_USE;

/* What is rendered, and how. */
struct sl_render {
    const struct sl_host *host;
    struct sl_arena *arena; /* where the texts go */
    const struct sl_record *record;
    enum sl_image image; /* where names are looked for, see SL_ANY_IMAGE */
    enum sl_missing missing;
    enum sl_escape escape;
};

/* The template's text. With SL_MISSING_EMPTY a place without a value is empty. Else SL_REJECT, code
 * "MissingAttribute". */
enum sl_status sl_render_text(const struct sl_render *in, const struct sl_template *t, struct sl_span *out,
                              struct sl_error *error) SL_MUST_USE;

/* The attribute that a template of one place names, or the number that |number makes of one; SL_NONE for
 * other templates. */
struct sl_value sl_render_value(const struct sl_render *in, const struct sl_render_template *t);

/* Can the value be a key attribute: S, N or B? */
bool sl_render_is_key(struct sl_value value);

/* The template as an attribute value of a key, {"S":"STATUS#OPEN"}: a template of one place keeps the
 * attribute's type if a key may have it, and |number makes a number; everything else is a string. Equal
 * values are equal texts. */
enum sl_status sl_render_key(const struct sl_render *in, const struct sl_render_template *t,
                             struct sl_span *out, struct sl_error *error) SL_MUST_USE;

#endif
