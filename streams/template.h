/* Templates: text with places, "order {SK} of {PK} is {NewImage.status}".
 *
 * Places: {NewImage.path}, {OldImage.path}, {Keys.path}; {name} alone: the attribute `name` of Keys, else of
 * NewImage, else of OldImage; {table} {region} {event} {eventID} {sequence} {ttl}; {yyyy} {mm} {dd} {hh} {mi}
 * {ss} of the change's creation, UTC.
 * "{{" and "}}" are braces. A value is S (text), N (as written), BOOL, B (base64); others have no text form
 * and count as missing. */
#ifndef SL_STREAMS_TEMPLATE_H
#define SL_STREAMS_TEMPLATE_H

#include "base/buffer.h"
#include "streams/record.h"

/* `out` lives in `arena` and borrows nothing of `text`. On failure: SL_REJECT and the byte in `text`. */
enum sl_status sl_template_compile(struct sl_span text, struct sl_arena *arena, struct sl_template **out,
                                   struct sl_error *error) SL_MUST_USE;

/* What a template is rendered for. */
struct sl_rendering {
    const struct sl_record *record;
    /* Where a bare {name} is looked for. SL_ANY_IMAGE: in Keys, NewImage, OldImage. SL_KEYS: in Keys
     * alone. One of the images, which shows the item before or after the change: in that one, then in
     * Keys. */
    enum sl_image image;
    enum sl_escape escape;
    struct sl_arena *scratch;
};

/* Appends the text to `out`. SL_REJECT, code "MissingAttribute", when a place has no value; `out` is then cut
 * back. */
enum sl_status sl_template_render(const struct sl_template *t, const struct sl_rendering *how,
                                  struct sl_buffer *out, struct sl_error *error) SL_MUST_USE;

/* The same, where a place without a value becomes `otherwise`, escaped likewise. */
void sl_template_render_or(const struct sl_template *t, const struct sl_rendering *how,
                           struct sl_span otherwise, struct sl_buffer *out);

/* When the template is exactly one place that names an attribute ("{total}"), its value; SL_NONE otherwise.
 * `image` as above. */
struct sl_value sl_template_value(const struct sl_template *t, const struct sl_record *r,
                                  enum sl_image image);

/* What the places look at: bits, by the names that plugins know (SL_USES_..., handlers/host_table.h). */
enum {
    SL_TEMPLATE_KEYS = 1,
    SL_TEMPLATE_ITEM = 2, /* bare names and NewImage */
    SL_TEMPLATE_OLD = 4,
    SL_TEMPLATE_EVENT = 8,
    SL_TEMPLATE_TIME = 16,
    SL_TEMPLATE_TABLE = 32
};
unsigned sl_template_uses(const struct sl_template *t);

/* Appends text so that it is safe at its place of use. PATH: every byte but A-Z a-z 0-9 - _ . is %XX, a
 * leading '.' too, empty text is "%"; so no segment is empty, "." or "..", and two texts never become one. */
void sl_escape_text(struct sl_span text, enum sl_escape escape, struct sl_buffer *out);

#endif
