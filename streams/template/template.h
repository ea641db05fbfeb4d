/* Templates: text with places, "order {SK} of {PK|after:USER#} is {NewImage.status|lower}".
 *
 * Places: {NewImage.path}, {OldImage.path}, {Keys.path}; {name} alone: the attribute `name` of Keys, else of
 * NewImage, else of OldImage; {table} {region} {event} {eventID} {sequence} {ttl}; {yyyy} {mm} {dd} {hh} {mi}
 * {ss} of the change's creation, UTC. After a place functions may follow, each after a '|': docs/WHEN.md
 * has them all. {NewImage|json} and the like are whole images.
 * "{{" and "}}" are braces. A value is S (text), N (as written), BOOL, B (base64); others have no text form
 * and count as missing, unless a function makes text of them. No function fails: what has no result is
 * missing. */
#ifndef SL_STREAMS_TEMPLATE_TEMPLATE_H
#define SL_STREAMS_TEMPLATE_TEMPLATE_H

#include "base/buffer.h"
#include "base/vars.h"
#include "streams/record.h"

/* The functions of one place, and the bytes of one argument: more than anybody writes by hand. So a rendering
 * holds few copies of a value at a time. */
#define SL_TEMPLATE_FUNCTIONS      16
#define SL_TEMPLATE_ARGUMENT_BYTES 256

/* `out` lives in `arena` and borrows nothing of `text` and `vars`. `vars` has the keys of |hmac:NAME; NULL:
 * there is none. On failure: SL_REJECT and the byte in `text`. */
enum sl_status sl_template_compile(struct sl_span text, const struct sl_vars *vars, struct sl_arena *arena,
                                   struct sl_template **out, struct sl_error *error) SL_MUST_USE;

/* What a template is rendered for. */
struct sl_rendering {
    const struct sl_record *record;
    /* Where a bare {name} is looked for. SL_ANY_IMAGE: in Keys, NewImage, OldImage. SL_KEYS: in Keys
     * alone. One of the images, which shows the item before or after the change: in that one, then in
     * Keys. */
    enum sl_image image;
    enum sl_escape escape;
    struct sl_arena *scratch;
    struct sl_value item; /* of type SL_M: takes the place of the record's NewImage */
};

/* Appends the text to `out`. SL_REJECT, code "MissingAttribute", when a place has no value; `out` is then cut
 * back. With SL_ESCAPE_JSON what |json makes is JSON where the template's text is outside of a string there:
 * {{"item":{NewImage|json}}}. */
enum sl_status sl_template_render(const struct sl_template *t, const struct sl_rendering *how,
                                  struct sl_buffer *out, struct sl_error *error) SL_MUST_USE;

/* The same, where a place without a value becomes `otherwise`, escaped likewise. */
void sl_template_render_or(const struct sl_template *t, const struct sl_rendering *how,
                           struct sl_span otherwise, struct sl_buffer *out);

/* What the template makes as an attribute value. SL_NONE: the value of the attribute that it names, as it is
 * exactly one place without functions, "{total}". SL_N: a number, as it is exactly one place that ends with
 * |number (and |default: with a number). SL_S: everything else is text. */
enum sl_type sl_template_type(const struct sl_template *t);

/* When the type is SL_NONE, the attribute's value; SL_NONE otherwise. `image` as above. */
struct sl_value sl_template_value(const struct sl_template *t, const struct sl_record *r,
                                  enum sl_image image);

/* The attribute value that the template makes, of its type, in `how->scratch`; `how->escape` does not count.
 * SL_REJECT as sl_template_render does; "TooLarge" when the text has more than `max` bytes. */
enum sl_status sl_template_make(const struct sl_template *t, const struct sl_rendering *how, size_t max,
                                struct sl_value *out, struct sl_error *error) SL_MUST_USE;

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

/* The nth place, from 0; false: there are not so many. */
bool sl_template_place(const struct sl_template *t, size_t n, struct sl_template_place *out);

/* Appends text so that it is safe at its place of use. PATH: every byte but A-Z a-z 0-9 - _ . is %XX, a
 * leading '.' too, empty text is "%"; so no segment is empty, "." or "..", and two texts never become one. */
void sl_escape_text(struct sl_span text, enum sl_escape escape, struct sl_buffer *out);

#endif
