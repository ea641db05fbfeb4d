/* Templates: rendered for each record; what comes from the record is escaped. */
#include "base/json_write.h"
#include "base/time.h"
#include "streams/names.h"
#include "streams/template/template_private.h"

/* A rendering that is under way. */
struct run {
    const struct sl_rendering *how;
    char time[SL_TIME_BYTES]; /* made when first asked for */
};

/* ---- attributes ---- */

static struct sl_value look(const struct sl_rendering *how, enum sl_image image, const struct part *part)
{
    if (image == SL_NEW_IMAGE && how->item.type != SL_NONE)
        return part->is_path ? sl_value_path(how->item, part->text) : sl_value_member(how->item, part->text);
    return part->is_path ? sl_record_path(how->record, image, part->text)
                         : sl_record_attribute(how->record, image, part->text);
}

static struct sl_value bare_value(const struct sl_rendering *how, const struct part *part)
{
    /* An image holds its key attributes too: where one is named, Keys are used only when the image lacks
     * the attribute. */
    enum sl_image image = how->image;
    struct sl_value v = look(how, image == SL_ANY_IMAGE ? SL_KEYS : image, part);
    if (v.type != SL_NONE || image == SL_KEYS)
        return v;
    if (image != SL_ANY_IMAGE)
        return look(how, SL_KEYS, part);
    v = look(how, SL_NEW_IMAGE, part);
    return v.type == SL_NONE ? look(how, SL_OLD_IMAGE, part) : v;
}

static struct sl_value image_value(const struct sl_rendering *how, enum sl_image image)
{
    bool is_item = image == SL_NEW_IMAGE && how->item.type != SL_NONE;
    return is_item ? how->item : sl_record_image(how->record, image);
}

static struct sl_value attribute_value(const struct sl_rendering *how, const struct part *part)
{
    if (part->place == IMAGE)
        return image_value(how, part->image);
    return part->place == BARE ? bare_value(how, part) : look(how, part->image, part);
}

static bool is_attribute(const struct part *part)
{
    return part->place == ATTRIBUTE || part->place == BARE || part->place == IMAGE;
}

/* ---- places ---- */

static struct sl_span time_text(struct run *x, const struct part *part)
{
    int64_t created = sl_record_created_ns(x->how->record);
    if (created == 0)
        return sl_span(NULL, 0);
    if (!x->time[0])
        sl_time_text(created, x->time);
    return sl_span(x->time + part->at, part->n);
}

/* Of a place other than an attribute; absent when it has no value. */
static struct sl_span fixed_text(struct run *x, const struct part *part)
{
    const struct sl_record *r = x->how->record;
    switch (part->place) {
    case TABLE:
        return sl_record_text(r, SL_FIELD_TABLE);
    case REGION:
        return sl_record_text(r, SL_FIELD_REGION);
    case EVENT:
        return sl_span_str(sl_event_name(sl_record_event(r)));
    case EVENT_ID:
        return sl_record_text(r, SL_FIELD_EVENT_ID);
    case SEQUENCE:
        return sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    case TTL:
        return sl_span_str(sl_ttl_name(sl_record_ttl(r)));
    default:
        return time_text(x, part);
    }
}

/* The place's text; absent when it has no value. */
static struct sl_span place_text(struct run *x, const struct part *part)
{
    struct template_datum d = {.type = SL_NONE};
    if (is_attribute(part)) {
        d.value = attribute_value(x->how, part);
        d.type = d.value.type;
    } else {
        d.text = fixed_text(x, part);
        d.type = d.text.ptr ? SL_S : SL_NONE;
    }
    if (part->chain)
        template_chain_run(part->chain, &d, x->how->scratch);
    return template_datum_text(&d, x->how->scratch);
}

static enum sl_status missing(const struct sl_rendering *how, const struct part *part, struct sl_error *error)
{
    if (is_attribute(part) && !part->chain && attribute_value(how, part).type != SL_NONE)
        return sl_fail(error, SL_REJECT, "MissingAttribute",
                       "{%.*s} is a map, a list, a set or NULL, which a template cannot write; |json makes "
                       "text of it",
                       SL_ARG(part->whole));
    return sl_fail(error, SL_REJECT, "MissingAttribute", "the record has no value for {%.*s}",
                   SL_ARG(part->whole));
}

/* ---- the whole ---- */

/* Appends the parts up to one without a value, and returns that one; NULL when all have one. */
static const struct part *render(const struct sl_template *t, const struct sl_rendering *how,
                                 struct sl_span otherwise, struct sl_buffer *out)
{
    struct run x = {.how = how};
    for (size_t i = 0; i < t->n; i++) {
        const struct part *part = &t->parts[i];
        if (part->place == LITERAL) {
            sl_buffer_add_span(out, part->text);
            continue;
        }
        struct sl_span text = place_text(&x, part);
        bool is_raw = text.ptr && part->is_json && how->escape == SL_ESCAPE_JSON;
        if (!text.ptr)
            text = otherwise;
        if (!text.ptr)
            return part;
        sl_escape_text(text, is_raw ? SL_ESCAPE_NONE : how->escape, out);
    }
    return NULL;
}

static enum sl_status too_large(size_t max, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "TooLarge",
                   "the text of a template is longer than its limit of %zu bytes", max);
}

enum sl_status sl_template_render(const struct sl_template *t, const struct sl_rendering *how,
                                  struct sl_buffer *out, struct sl_error *error)
{
    size_t before = out->len;
    const struct part *without = render(t, how, sl_span(NULL, 0), out);
    if (!without && !out->failed)
        return SL_OK;
    out->len = before;
    return without ? missing(how, without, error) : too_large(out->max, error);
}

void sl_template_render_or(const struct sl_template *t, const struct sl_rendering *how,
                           struct sl_span otherwise, struct sl_buffer *out)
{
    render(t, how, otherwise.ptr ? otherwise : SL_LIT(""), out);
}

/* ---- as a value ---- */

struct sl_value sl_template_value(const struct sl_template *t, const struct sl_record *r, enum sl_image image)
{
    const struct sl_rendering how = {.record = r, .image = image};
    return t->type == SL_NONE ? attribute_value(&how, &t->parts[0]) : (struct sl_value){.type = SL_NONE};
}

/* A text as an S holds it: within JSON's quotes. */
static struct sl_value string_of(struct sl_span text, struct sl_arena *scratch)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, scratch, SIZE_MAX / 4);
    sl_buffer_reserve(&out, text.len + 1);
    sl_json_add_escaped(&out, text);
    struct sl_span raw = sl_buffer_span(&out);
    return (struct sl_value){SL_S, memchr(raw.ptr, '\\', raw.len) != NULL, raw};
}

enum sl_status sl_template_make(const struct sl_template *t, const struct sl_rendering *how, size_t max,
                                struct sl_value *out, struct sl_error *error)
{
    struct sl_rendering plain = *how;
    struct sl_buffer text;
    if (t->type == SL_NONE) {
        *out = attribute_value(how, &t->parts[0]);
        return out->type != SL_NONE ? SL_OK : missing(how, &t->parts[0], error);
    }
    plain.escape = SL_ESCAPE_NONE;
    sl_buffer_init_in(&text, how->scratch, max);
    sl_buffer_reserve(&text, 1);
    enum sl_status status = sl_template_render(t, &plain, &text, error);
    if (status != SL_OK)
        return status;
    *out = (struct sl_value){t->type, false, sl_buffer_span(&text)};
    if (t->type == SL_S)
        *out = string_of(out->raw, how->scratch);
    return SL_OK;
}
