/* Templates: parsed into parts once, rendered for each record; what comes from the record is escaped. */
#include "streams/template.h"

#include "base/json_write.h"
#include "base/time.h"
#include "streams/names.h"

enum place {
    LITERAL,
    ATTRIBUTE, /* of one image */
    BARE,      /* of Keys, else of an image */
    TABLE,
    REGION,
    EVENT,
    EVENT_ID,
    SEQUENCE,
    TTL,
    TIME
};

struct part {
    enum place place;
    enum sl_image image;  /* of an ATTRIBUTE */
    bool is_path;         /* ATTRIBUTE, BARE: more than a plain name */
    struct sl_span text;  /* the literal, or the attribute's name or path */
    struct sl_span whole; /* as written between the braces: for errors */
    unsigned at, n;       /* of a TIME: where in sl_time_text's form */
};

struct sl_template {
    size_t n;
    struct part parts[];
};

/* ---- escaping ---- */

static bool is_path_safe(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* One to one: '%' is always followed by two digits, except in the text "%", which means an empty text. */
static void escape_path(struct sl_span text, struct sl_buffer *out)
{
    static const char hex[] = "0123456789ABCDEF";
    if (text.len == 0)
        sl_buffer_add_char(out, '%');
    for (size_t i = 0; i < text.len;) {
        size_t run = i;
        while (run < text.len && is_path_safe((unsigned char)text.ptr[run]) &&
               (run > 0 || text.ptr[0] != '.'))
            run++;
        sl_buffer_add(out, text.ptr + i, run - i);
        if (run < text.len) {
            unsigned char c = (unsigned char)text.ptr[run];
            sl_buffer_add(out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
        i = run + 1;
    }
}

void sl_escape_text(struct sl_span text, enum sl_escape escape, struct sl_buffer *out)
{
    switch (escape) {
    case SL_ESCAPE_JSON:
        sl_json_add_escaped(out, text);
        break;
    case SL_ESCAPE_PATH:
        escape_path(text, out);
        break;
    default:
        sl_buffer_add_span(out, text);
    }
}

/* ---- compiling ---- */

static const struct {
    const char *name;
    struct part part;
} fixed_places[] = {
    {"table", {.place = TABLE}},
    {"region", {.place = REGION}},
    {"event", {.place = EVENT}},
    {"eventID", {.place = EVENT_ID}},
    {"sequence", {.place = SEQUENCE}},
    {"ttl", {.place = TTL}},
    {"yyyy", {.place = TIME, .at = 0, .n = 4}},
    {"mm", {.place = TIME, .at = 5, .n = 2}},
    {"dd", {.place = TIME, .at = 8, .n = 2}},
    {"hh", {.place = TIME, .at = 11, .n = 2}},
    {"mi", {.place = TIME, .at = 14, .n = 2}},
    {"ss", {.place = TIME, .at = 17, .n = 2}},
};

static const char *const image_names[] = {
    [SL_KEYS] = "Keys", [SL_NEW_IMAGE] = "NewImage", [SL_OLD_IMAGE] = "OldImage"};

static enum sl_status fail(struct sl_error *error, struct sl_span text, const char *at, const char *why)
{
    return sl_fail_at(error, SL_REJECT, "InvalidTemplate", (size_t)(at - text.ptr), "%s", why);
}

/* The byte after a name, which ends before '.' or '[', or is in backquotes. NULL: there is no name. */
static const char *skip_name(const char *p, const char *end)
{
    const char *begin = p;
    if (p < end && *p == '`') {
        const char *close = memchr(p + 1, '`', (size_t)(end - p - 1));
        return close && close > p + 1 ? close + 1 : NULL;
    }
    while (p < end && *p != '.' && *p != '[' && *p != '`')
        p++;
    return p > begin ? p : NULL;
}

static const char *skip_index(const char *p, const char *end)
{
    const char *begin = ++p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > begin && p - begin < 9 && p < end && *p == ']' ? p + 1 : NULL;
}

/* Where the path breaks the grammar "a.b[0].`c.d`", NULL when it does not. */
static const char *find_fault(struct sl_span path)
{
    const char *end = sl_span_end(path), *next = skip_name(path.ptr, end), *p = path.ptr;
    while (next && next < end) {
        p = next;
        if (*p == '.')
            next = skip_name(p + 1, end);
        else
            next = *p == '[' ? skip_index(p, end) : NULL;
    }
    return next ? NULL : p;
}

static bool is_plain_name(struct sl_span path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.ptr[i] == '.' || path.ptr[i] == '[' || path.ptr[i] == '`')
            return false;
    return true;
}

/* The text between the braces. */
static enum sl_status read_place(struct sl_span text, struct sl_span inner, struct part *out,
                                 struct sl_error *error)
{
    *out = (struct part){.place = BARE, .text = inner};
    for (size_t i = 0; i < sizeof(fixed_places) / sizeof(fixed_places[0]); i++)
        if (sl_span_is(inner, fixed_places[i].name)) {
            *out = fixed_places[i].part;
            out->whole = inner;
            return SL_OK;
        }
    for (size_t i = 0; i < 3; i++) {
        struct sl_span image = sl_span_str(image_names[i]);
        if (sl_span_eq(inner, image))
            return fail(error, text, inner.ptr, "an attribute is expected, as in {NewImage.status}");
        if (sl_span_starts(inner, image) && inner.ptr[image.len] == '.')
            *out = (struct part){
                .place = ATTRIBUTE, .image = (enum sl_image)i, .text = sl_span_from(inner, image.len + 1)};
    }
    out->whole = inner;
    out->is_path = !is_plain_name(out->text);
    const char *fault = find_fault(out->text);
    return fault ? fail(error, text, fault, "a path such as {a}, {a.b[0]} or {`a.b`} is expected") : SL_OK;
}

/* The brace that closes the place at `p`: none within backquotes. */
static const char *find_close(const char *p, const char *end)
{
    bool quoted = false;
    for (; p < end && (quoted || *p != '}'); p++) {
        if (*p == '`')
            quoted = !quoted;
        else if (*p == '{' && !quoted)
            return NULL;
    }
    return p < end ? p : NULL;
}

/* The next part at `*p`, which moves past it. A literal ends after a doubled brace, of which it holds one. */
static enum sl_status read_part(struct sl_span text, const char **p, struct part *out, struct sl_error *error)
{
    const char *begin = *p, *end = sl_span_end(text), *at = begin;
    while (at < end && *at != '{' && *at != '}')
        at++;
    bool is_doubled = end - at >= 2 && at[0] == at[1];
    if (at > begin || is_doubled) {
        *out = (struct part){.place = LITERAL, .text = sl_span(begin, (size_t)(at - begin) + is_doubled)};
        *p = at + 2 * is_doubled;
        return SL_OK;
    }
    if (*at == '}')
        return fail(error, text, at, "a lone '}'; write \"}}\" for a brace");
    const char *close = find_close(at + 1, end);
    if (!close)
        return fail(error, text, at, "'{' is not closed; write \"{{\" for a brace");
    *p = close + 1;
    return read_place(text, sl_span(at + 1, (size_t)(close - at - 1)), out, error);
}

enum sl_status sl_template_compile(struct sl_span text, struct sl_arena *arena, struct sl_template **out,
                                   struct sl_error *error)
{
    struct sl_span own = sl_span(sl_arena_copy(arena, text), text.len);
    size_t most = 1;
    for (size_t i = 0; i < own.len; i++)
        most += own.ptr[i] == '{' || own.ptr[i] == '}';
    struct sl_template *t = sl_arena_zalloc(arena, sizeof(*t) + 2 * most * sizeof(t->parts[0]));
    for (const char *p = own.ptr; p < sl_span_end(own); t->n++) {
        enum sl_status status = read_part(own, &p, &t->parts[t->n], error);
        if (status != SL_OK)
            return status;
    }
    *out = t;
    return SL_OK;
}

unsigned sl_template_uses(const struct sl_template *t)
{
    static const unsigned uses[] = {
        [LITERAL] = 0,
        [BARE] = SL_TEMPLATE_ITEM,
        [TABLE] = SL_TEMPLATE_TABLE,
        [REGION] = SL_TEMPLATE_TABLE,
        [EVENT] = SL_TEMPLATE_EVENT,
        [EVENT_ID] = SL_TEMPLATE_EVENT,
        [SEQUENCE] = SL_TEMPLATE_EVENT,
        [TTL] = SL_TEMPLATE_EVENT,
        [TIME] = SL_TEMPLATE_TIME,
    };
    static const unsigned images[] = {
        [SL_KEYS] = SL_TEMPLATE_KEYS, [SL_NEW_IMAGE] = SL_TEMPLATE_ITEM, [SL_OLD_IMAGE] = SL_TEMPLATE_OLD};
    unsigned all = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct part *part = &t->parts[i];
        all |= part->place == ATTRIBUTE ? images[part->image] : uses[part->place];
    }
    return all;
}

/* ---- rendering ---- */

/* A rendering that is under way. */
struct run {
    const struct sl_rendering *how;
    char time[SL_TIME_BYTES]; /* made when first asked for */
};

static struct sl_value look(const struct sl_record *r, enum sl_image image, const struct part *part)
{
    return part->is_path ? sl_record_path(r, image, part->text) : sl_record_attribute(r, image, part->text);
}

static struct sl_value bare_value(const struct sl_record *r, enum sl_image image, const struct part *part)
{
    /* An image holds its key attributes too: where one is named, Keys are used only when the image lacks
     * the attribute. */
    struct sl_value v = look(r, image == SL_ANY_IMAGE ? SL_KEYS : image, part);
    if (v.type != SL_NONE || image == SL_KEYS)
        return v;
    if (image != SL_ANY_IMAGE)
        return look(r, SL_KEYS, part);
    v = look(r, SL_NEW_IMAGE, part);
    return v.type == SL_NONE ? look(r, SL_OLD_IMAGE, part) : v;
}

static struct sl_value attribute_value(const struct sl_record *r, enum sl_image image,
                                       const struct part *part)
{
    return part->place == BARE ? bare_value(r, image, part) : look(r, part->image, part);
}

static struct sl_span attribute_text(const struct sl_rendering *how, const struct part *part)
{
    struct sl_value v = attribute_value(how->record, how->image, part);
    if (v.type == SL_BOOL)
        return v.raw;
    return sl_value_text(v, how->scratch);
}

static struct sl_span time_text(struct run *x, const struct part *part)
{
    int64_t created = sl_record_created_ns(x->how->record);
    if (created == 0)
        return sl_span(NULL, 0);
    if (!x->time[0])
        sl_time_text(created, x->time);
    return sl_span(x->time + part->at, part->n);
}

/* The place's text; absent when it has no value. */
static struct sl_span place_text(struct run *x, const struct part *part)
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
    case TIME:
        return time_text(x, part);
    default:
        return attribute_text(x->how, part);
    }
}

static enum sl_status missing(const struct sl_rendering *how, const struct part *part, struct sl_error *error)
{
    bool is_attribute = part->place == ATTRIBUTE || part->place == BARE;
    if (is_attribute && attribute_value(how->record, how->image, part).type != SL_NONE)
        return sl_fail(error, SL_REJECT, "MissingAttribute",
                       "{%.*s} is a map, a list, a set or NULL, which a template cannot write",
                       SL_ARG(part->whole));
    return sl_fail(error, SL_REJECT, "MissingAttribute", "the record has no value for {%.*s}",
                   SL_ARG(part->whole));
}

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
        if (!text.ptr)
            text = otherwise;
        if (!text.ptr)
            return part;
        sl_escape_text(text, how->escape, out);
    }
    return NULL;
}

enum sl_status sl_template_render(const struct sl_template *t, const struct sl_rendering *how,
                                  struct sl_buffer *out, struct sl_error *error)
{
    size_t before = out->len;
    const struct part *without = render(t, how, sl_span(NULL, 0), out);
    if (!without && !out->failed)
        return SL_OK;
    out->len = before;
    if (without)
        return missing(how, without, error);
    return sl_fail(error, SL_REJECT, "TooLarge",
                   "the text of a template is longer than its limit of %zu bytes", out->max);
}

void sl_template_render_or(const struct sl_template *t, const struct sl_rendering *how,
                           struct sl_span otherwise, struct sl_buffer *out)
{
    render(t, how, otherwise.ptr ? otherwise : SL_LIT(""), out);
}

struct sl_value sl_template_value(const struct sl_template *t, const struct sl_record *r, enum sl_image image)
{
    if (t->n != 1 || (t->parts[0].place != ATTRIBUTE && t->parts[0].place != BARE))
        return (struct sl_value){.type = SL_NONE};
    return attribute_value(r, image, &t->parts[0]);
}
