/* Templates: parsed into parts once. */
#include "base/array.h"
#include "streams/template/template_private.h"

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

/* ---- paths ---- */

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

/* ---- places ---- */

/* The part of one of the images, "NewImage" or "NewImage.path"; false: it names neither. */
static bool read_image(struct sl_span name, struct part *out)
{
    for (size_t i = 0; i < 3; i++) {
        struct sl_span image = sl_span_str(image_names[i]);
        *out = (struct part){.place = IMAGE, .image = (enum sl_image)i, .text = name};
        if (sl_span_eq(name, image))
            return true;
        if (!sl_span_starts(name, image) || name.ptr[image.len] != '.')
            continue;
        out->place = ATTRIBUTE;
        out->text = sl_span_from(name, image.len + 1);
        return true;
    }
    return false;
}

/* What stands before the functions. */
static enum sl_status read_name(const struct template_reader *r, struct sl_span name, bool is_followed,
                                struct part *out)
{
    for (size_t i = 0; i < SL_COUNT(fixed_places); i++)
        if (sl_span_is(name, fixed_places[i].name)) {
            *out = fixed_places[i].part;
            return SL_OK;
        }
    if (!read_image(name, out))
        *out = (struct part){.place = BARE, .text = name};
    if (out->place == IMAGE)
        return is_followed ? SL_OK
                           : template_fail(r, name.ptr,
                                           "an attribute is expected, as in {NewImage.status}; the whole "
                                           "image is {NewImage|json}");
    out->is_path = !is_plain_name(out->text);
    const char *fault = find_fault(out->text);
    return fault ? template_fail(r, fault, "a path such as {a}, {a.b[0]} or {`a.b`} is expected") : SL_OK;
}

/* The '|' after the name; the end when there is none. */
static const char *find_functions(struct sl_span inner)
{
    bool quoted = false;
    const char *p = inner.ptr, *end = sl_span_end(inner);
    for (; p < end && (quoted || *p != '|'); p++)
        quoted ^= *p == '`';
    return p;
}

/* The text between the braces. */
static enum sl_status read_place(const struct template_reader *r, struct sl_span inner, struct part *out)
{
    const char *end = sl_span_end(inner), *bar = find_functions(inner);
    bool is_followed = bar < end;
    enum sl_status status = read_name(r, sl_span(inner.ptr, (size_t)(bar - inner.ptr)), is_followed, out);
    out->whole = inner;
    if (status != SL_OK || !is_followed)
        return status;
    status = template_chain_read(r, sl_span(bar + 1, (size_t)(end - bar - 1)), &out->chain);
    if (status == SL_OK && out->place == IMAGE &&
        !sl_span_is(sl_span_str(out->chain->calls[0].function->name), "json"))
        return template_fail(r, bar + 1, "a whole image has no text; expected json after it");
    return status;
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

/* ---- the whole ---- */

/* The next part at `*p`, which moves past it. A literal ends after a doubled brace, of which it holds one. */
static enum sl_status read_part(const struct template_reader *r, const char **p, struct part *out)
{
    const char *begin = *p, *end = r->text.ptr + r->text.len, *at = begin;
    while (at < end && *at != '{' && *at != '}')
        at++;
    bool is_doubled = end - at >= 2 && at[0] == at[1];
    if (at > begin || is_doubled) {
        *out = (struct part){.place = LITERAL, .text = sl_span(begin, (size_t)(at - begin) + is_doubled)};
        *p = at + 2 * is_doubled;
        return SL_OK;
    }
    if (*at == '}')
        return template_fail(r, at, "a lone '}'; write \"}}\" for a brace");
    const char *close = find_close(at + 1, end);
    if (!close)
        return template_fail(r, at,
                             "'{' is not closed; write \"{{\" for a brace, and an argument with braces in "
                             "backquotes");
    *p = close + 1;
    return read_place(r, sl_span(at + 1, (size_t)(close - at - 1)), out);
}

/* Is the place after this literal within a JSON string? */
static bool ends_in_string(struct sl_span literal, bool in_string)
{
    for (size_t i = 0; i < literal.len; i++) {
        if (literal.ptr[i] == '\\' && in_string)
            i++;
        else if (literal.ptr[i] == '"')
            in_string = !in_string;
    }
    return in_string;
}

static void mark_json(struct sl_template *t)
{
    bool in_string = false;
    for (size_t i = 0; i < t->n; i++) {
        struct part *part = &t->parts[i];
        if (part->place == LITERAL)
            in_string = ends_in_string(part->text, in_string);
        else
            part->is_json = !in_string && part->chain && template_chain_makes_json(part->chain);
    }
}

static enum sl_type type_of(const struct sl_template *t)
{
    const struct part *only = &t->parts[0];
    if (t->n != 1 || only->place == LITERAL)
        return SL_S;
    if (only->chain)
        return only->chain->calls[only->chain->n - 1].makes;
    return only->place == ATTRIBUTE || only->place == BARE ? SL_NONE : SL_S;
}

enum sl_status sl_template_compile(struct sl_span text, const struct sl_vars *vars, struct sl_arena *arena,
                                   struct sl_template **out, struct sl_error *error)
{
    struct sl_span own = sl_span(sl_arena_copy(arena, text), text.len);
    struct template_reader r = {.text = own, .vars = vars, .arena = arena, .error = error};
    size_t most = 1;
    for (size_t i = 0; i < own.len; i++)
        most += own.ptr[i] == '{' || own.ptr[i] == '}';
    struct sl_template *t = sl_arena_zalloc(arena, sizeof(*t) + 2 * most * sizeof(t->parts[0]));
    for (const char *p = own.ptr; p < sl_span_end(own); t->n++) {
        enum sl_status status = read_part(&r, &p, &t->parts[t->n]);
        if (status != SL_OK)
            return status;
    }
    t->type = type_of(t);
    mark_json(t);
    *out = t;
    return SL_OK;
}

enum sl_type sl_template_type(const struct sl_template *t)
{
    return t->type;
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
        bool is_of_image = part->place == ATTRIBUTE || part->place == IMAGE;
        all |= is_of_image ? images[part->image] : uses[part->place];
    }
    return all;
}

bool sl_template_place(const struct sl_template *t, size_t n, struct sl_template_place *out)
{
    struct sl_span before = SL_LIT("");
    for (size_t i = 0; i < t->n; i++) {
        const struct part *part = &t->parts[i];
        if (part->place != LITERAL && n-- == 0) {
            bool is_named = part->place == ATTRIBUTE || part->place == BARE;
            bool is_keyed = part->chain && template_chain_ends_with_key(part->chain);
            *out = (struct sl_template_place){
                .before = before,
                .name = is_named ? part->text : sl_span(NULL, 0),
                .is_path = part->is_path,
                .is_keyed = is_keyed,
                .is_whole = !part->chain || (is_keyed && part->chain->n == 1)};
            return true;
        }
        before = part->place == LITERAL ? part->text : SL_LIT("");
    }
    return false;
}
