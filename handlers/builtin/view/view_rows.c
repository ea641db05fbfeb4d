/* The rows of an item: a function of one of its images alone. */
#include "handlers/builtin/view/view_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What templates see of an item with an element: members of the names each, each_index and each_name stand
 * before the item's own. */
struct scene {
    const struct view *v;
    const struct sl_record *r;
    struct sl_arena *arena;
    struct sl_span of;
    struct sl_value image;
    struct sl_value item; /* the image, behind the members of the element */
    uint32_t at;          /* the element's place */
    struct sl_span body;  /* what follows the element's members in memory */
    char *front;          /* where their room begins */
};

/* ---- errors ---- */

/* "each[3]: " */
static const char *where_of(const struct scene *s, char text[32])
{
    text[0] = 0;
    if (s->v->each.ptr)
        snprintf(text, 32, "each[%" PRIu32 "]: ", s->at);
    return text;
}

/* ---- keys ---- */

struct sl_span view_key_of_row(const struct view *v, struct sl_value row, const struct sl_span *names,
                               size_t n, struct sl_arena *arena)
{
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < n; i++) {
        struct sl_value value = v->host->value_member(row, names[i]);
        if (!sl_render_is_key(value))
            return (struct sl_span){NULL, 0};
        values[i] = sl_text_canonical(v->host, value, arena);
    }
    return sl_text_key(v->host, arena, names, values, n);
}

/* `key` stays absent where the row is left out, as a part of it is missing. */
static enum sl_status make_key(const struct scene *s, struct sl_span *key, struct sl_error *error)
{
    const struct view *v = s->v;
    struct sl_span names[SL_TEXT_KEY_ATTRIBUTES], values[SL_TEXT_KEY_ATTRIBUTES];
    char where[32];
    *key = (struct sl_span){NULL, 0};
    for (size_t i = 0; i < v->n_keys; i++) {
        struct sl_error why = SL_NO_ERROR;
        struct sl_value value =
            v->host->template_item(v->keys[i].value.compiled, s->r, s->item, s->arena, &why);
        names[i] = v->keys[i].name;
        if (why.status != SL_OK)
            return v->host->fail(error, SL_REJECT, why.code, "%skey.%.*s: %s", where_of(s, where),
                                 SL_ARG(names[i]), why.text);
        if (value.type == SL_NONE && v->skips_missing)
            return SL_OK;
        if (value.type == SL_NONE)
            return v->host->fail(error, SL_REJECT, "MissingAttribute",
                                 "%skey.%.*s: the item lacks what the template names (\"missing\": \"skip\" "
                                 "leaves such rows out)",
                                 where_of(s, where), SL_ARG(names[i]));
        if (!sl_render_is_key(value))
            return v->host->fail(error, SL_REJECT, "KeyType",
                                 "%skey.%.*s: a key attribute is a string, a number or binary, and the item "
                                 "has another type there",
                                 where_of(s, where), SL_ARG(names[i]));
        values[i] = sl_text_canonical(v->host, value, s->arena);
    }
    if (!v->list_table.ptr && sl_span_starts(values[0], SL_LIT("{\"S\":\"sluice:")))
        return v->host->fail(
            error, SL_REJECT, "ReservedKey",
            "%skey.%.*s: it begins with \"sluice:\", as those of the lists that stand beside the "
            "rows; put something before the place, \"USER#{user}\", or give the lists a table of "
            "their own",
            where_of(s, where), SL_ARG(names[0]));
    *key = sl_text_key(v->host, s->arena, names, values, v->n_keys);
    return SL_OK;
}

/* Only a record shows which attributes are the source's key. Without all of them in a row's key two items
 * could make one row. */
static bool names_attribute(const struct view *v, struct sl_span name)
{
    struct sl_template_place place;
    for (size_t i = 0; i < v->n_keys; i++)
        for (size_t k = 0; v->host->template_place(v->keys[i].value.compiled, k, &place); k++)
            if (place.is_whole && !place.is_path && sl_span_eq(place.name, name))
                return true;
    return false;
}

static enum sl_status check_key(const struct view *v, const struct sl_record *r, struct sl_arena *arena,
                                struct sl_error *error)
{
    struct sl_value value;
    struct sl_span name;
    struct sl_iter iter = v->host->value_iter(v->host->record_image(r, SL_KEYS));
    while (v->host->value_next(&iter, &name, &value)) {
        name = sl_text_plain_name(v->host, name, arena);
        if (!names_attribute(v, name))
            return v->host->fail(error, SL_FATAL, "KeyNotUnique",
                                 "key: no template has a place {%.*s} or {%.*s|key}, an attribute of the "
                                 "source's key, so two items could make one row",
                                 SL_ARG(name), SL_ARG(name));
    }
    return SL_OK;
}

/* ---- items ---- */

struct sl_value view_owner(const struct view *v, struct sl_value row)
{
    struct sl_value of = v->host->value_member(row, SL_LIT(VIEW_OF));
    struct sl_value name = v->host->value_member(of, SL_LIT("view"));
    if (name.type == SL_S && sl_span_eq(name.raw, v->name))
        return v->host->value_member(of, SL_LIT("key"));
    return (struct sl_value){.type = SL_NONE};
}

bool view_is_of_item(const struct view *v, struct sl_value row, const struct sl_record *r)
{
    struct sl_value owner = view_owner(v, row);
    return owner.type == SL_M && v->host->value_equal(owner, v->host->record_image(r, SL_KEYS));
}

struct sl_span view_of(const struct view *v, const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_span keys = v->host->record_image(r, SL_KEYS).raw;
    struct sl_span parts[] = {SL_LIT("{\"M\":{\"view\":{\"S\":\""), v->name, SL_LIT("\"},\"key\":{\"M\":"),
                              keys, SL_LIT("}}}")};
    return v->host->join(arena, parts, SL_COUNT(parts));
}

static void put_copied(const struct scene *s, struct sl_text_object *o)
{
    const struct view *v = s->v;
    struct sl_span raw_name;
    struct sl_value value;
    for (struct sl_iter iter = v->host->value_iter(s->image);
         v->host->value_next(&iter, &raw_name, &value);) {
        struct sl_span name = sl_text_plain_name(v->host, raw_name, s->arena);
        const struct sl_reshape_rule *rule = sl_reshape_rule(&v->shape, name);
        if (!sl_reshape_is_left_out(&v->shape, rule))
            sl_reshape_put(v->host, s->arena, rule, raw_name, value, o);
    }
}

static enum sl_status make_item(const struct scene *s, struct view_row *row, struct sl_error *error)
{
    const struct view *v = s->v;
    struct sl_reshape_made made;
    struct sl_error why = SL_NO_ERROR;
    unsigned char digest[32];
    char where[32];
    if (sl_reshape_make(v->host, &v->shape, s->r, s->item, s->arena, &made, &why) != SL_OK)
        return v->host->fail(error, SL_REJECT, why.code, "%s%s", where_of(s, where), why.text);
    size_t copied = v->is_made ? 0 : s->image.raw.len + v->shape.names_bytes;
    struct sl_text_object o = sl_text_object_begin(v->host, s->arena,
                                                   copied + made.bytes + row->key.len + s->of.len +
                                                       2 * SL_TEXT_MEMBER_BYTES + sizeof(VIEW_OF));
    sl_text_object_members(&o, row->key);
    sl_text_object_text(&o, SL_LIT(VIEW_OF), s->of);
    if (!v->is_made)
        put_copied(s, &o);
    sl_reshape_put_made(v->host, &v->shape, &made, &o);
    row->item = sl_text_object_end(&o);
    struct sl_value value = {.type = SL_M, .raw = row->item};
    /* The text is never shorter than the size by DynamoDB's formula. */
    if (row->item.len > v->table->max_item_bytes && v->host->item_bytes(value) > v->table->max_item_bytes)
        return v->host->fail(error, SL_REJECT, "RowTooLarge",
                             "%sthe row has more than %zu bytes: leave attributes out with \"project\" or "
                             "\"drop\", or make it with \"item\"",
                             where_of(s, where), v->table->max_item_bytes);
    v->host->value_sha256(value, digest);
    memcpy(row->digest, digest, VIEW_DIGEST_BYTES);
    return SL_OK;
}

/* Adds the scene's row, if there is one. */
static enum sl_status add_row(const struct scene *s, void *arg, struct sl_error *error)
{
    struct view_rows *out = arg;
    struct view_row *row = &out->list[out->n];
    *row = (struct view_row){.at = s->at};
    if (s->v->where && !s->v->host->where_match(s->v->where, s->item, s->arena))
        return SL_OK;
    enum sl_status status = make_key(s, &row->key, error);
    if (status == SL_OK && row->key.ptr)
        status = make_item(s, row, error);
    out->n += row->item.ptr != NULL;
    return status;
}

/* ---- elements ---- */

bool view_is_of_element(struct sl_span name)
{
    return sl_span_is(name, "each") || sl_span_is(name, "each_index") || sl_span_is(name, "each_name");
}

/* The image, or, if it has attributes of the names that an element's members have, a copy without them. */
static struct sl_span visible(const struct scene *s)
{
    const struct sl_host *host = s->v->host;
    struct sl_span image = s->image.raw, name;
    struct sl_value value;
    if (!memmem(image.ptr, image.len, "each", 4) && !memchr(image.ptr, '\\', image.len))
        return image;
    struct sl_text_object o = sl_text_object_begin(host, s->arena, image.len + SL_TEXT_MEMBER_BYTES);
    for (struct sl_iter iter = host->value_iter(s->image); host->value_next(&iter, &name, &value);)
        if (!view_is_of_element(sl_text_plain_name(host, name, s->arena)))
            sl_text_object_value(&o, host, name, value);
    return sl_text_object_end(&o);
}

/* The members of an element go in front of the image's, right where those begin: the image is copied once.
 * What is made of the scene is made before the next element takes its place. */
static void open_scene(struct scene *s, size_t element_bytes)
{
    struct sl_span shown = visible(s);
    struct sl_value item = {.type = SL_M, .raw = shown}, value;
    struct sl_iter iter = s->v->host->value_iter(item);
    size_t front = element_bytes + 128;
    s->front = s->v->host->alloc(s->arena, front + shown.len);
    s->body = (struct sl_span){s->front + front, shown.len};
    memcpy(s->front + front, shown.ptr, shown.len);
    s->front[front] = s->v->host->value_next(&iter, NULL, &value) ? ',' : ' ';
}

static void set_scene(struct scene *s, struct sl_span name, struct sl_value element)
{
    char *at = s->front;
    at += snprintf(at, 48, "{\"each_index\":{\"N\":\"%" PRIu32 "\"},", s->at);
    if (name.ptr) {
        at = sl_text_put(at, SL_LIT("\"each_name\":{\"S\":\""));
        at = sl_text_put(at, name);
        at = sl_text_put(at, SL_LIT("\"},"));
    }
    at = sl_text_put(at, SL_LIT("\"each\":"));
    at = s->v->host->value_put(at, element);
    size_t len = (size_t)(at - s->front);
    char *begin = memmove((char *)(uintptr_t)s->body.ptr - len, s->front, len);
    s->item.raw = (struct sl_span){begin, len + s->body.len};
}

/* What is done with each element. */
typedef enum sl_status (*scene_fn)(const struct scene *s, void *arg, struct sl_error *error);

static bool can_walk(struct sl_value v)
{
    return v.type == SL_L || v.type == SL_M || v.type == SL_SS || v.type == SL_NS || v.type == SL_BS;
}

static enum sl_status walk(struct scene *s, struct sl_value walked, scene_fn at, void *arg,
                           struct sl_error *error)
{
    const struct sl_host *host = s->v->host;
    enum sl_status status = SL_OK;
    struct sl_span name = {NULL, 0};
    struct sl_value element;
    open_scene(s, walked.raw.len);
    struct sl_iter iter = host->value_iter(walked);
    while (status == SL_OK && host->value_next(&iter, &name, &element)) {
        set_scene(s, walked.type == SL_M ? name : (struct sl_span){NULL, 0}, element);
        status = at(s, arg, error);
        s->at++;
    }
    return status;
}

/* ---- all rows ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct view_row *x = a, *y = b;
    size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    int order = memcmp(x->key.ptr, y->key.ptr, n);
    return order ? order : (x->key.len > y->key.len) - (x->key.len < y->key.len);
}

void view_rows_sort(struct view_rows *rows)
{
    if (rows->n > 1)
        qsort(rows->list, rows->n, sizeof(*rows->list), compare_rows);
}

static enum sl_status check_keys(const struct view *v, const struct view_rows *rows, struct sl_error *error)
{
    for (size_t i = 1; i < rows->n; i++)
        if (sl_span_eq(rows->list[i - 1].key, rows->list[i].key))
            return v->host->fail(error, SL_REJECT, "DuplicateRow",
                                 "each[%" PRIu32 "] and each[%" PRIu32
                                 "] make a row of the same key: name in "
                                 "\"key\" what tells the elements apart",
                                 rows->list[i - 1].at, rows->list[i].at);
    return SL_OK;
}

size_t view_elements(const struct view *v, struct sl_value value)
{
    struct sl_value element;
    size_t n = 0;
    for (struct sl_iter iter = v->host->value_iter(value); v->host->value_next(&iter, NULL, &element);)
        n++;
    return n;
}

enum sl_status view_rows_make(const struct view *v, const struct sl_record *r, enum sl_image image,
                              struct sl_arena *arena, struct view_rows *out, struct sl_error *error)
{
    struct scene s = {.v = v, .r = r, .arena = arena, .image = v->host->record_image(r, image)};
    *out = (struct view_rows){.n = 0};
    enum sl_status status = check_key(v, r, arena, error);
    if (status != SL_OK || s.image.type == SL_NONE)
        return status;
    s.item = s.image;
    s.of = view_of(v, r, arena);
    if (!v->each.ptr) {
        out->list = v->host->alloc(arena, sizeof(*out->list));
        return add_row(&s, out, error);
    }
    struct sl_value walked = v->host->record_path(r, image, v->each);
    if (walked.type == SL_NONE || walked.type == SL_NULL)
        return SL_OK;
    if (!can_walk(walked))
        return v->host->fail(error, SL_REJECT, "NotAList", "each: %.*s is no list, set or map in this item",
                             SL_ARG(v->each));
    out->list = v->host->alloc(arena, (view_elements(v, walked) + 1) * sizeof(*out->list));
    status = walk(&s, walked, add_row, out, error);
    view_rows_sort(out);
    return status == SL_OK ? check_keys(v, out, error) : status;
}

/* Does the template find what it names? */
struct filling {
    const struct sl_template *t;
    bool is_filled;
};

static enum sl_status fill(const struct scene *s, void *arg, struct sl_error *error)
{
    struct filling *f = arg;
    (void)error;
    f->is_filled =
        f->is_filled || s->v->host->template_item(f->t, s->r, s->item, s->arena, NULL).type != SL_NONE;
    return SL_OK;
}

bool view_fills(const void *self, const struct sl_record *r, const struct sl_template *t,
                struct sl_arena *arena)
{
    const struct view *v = self;
    struct scene s = {.v = v, .r = r, .arena = arena, .image = v->host->record_image(r, SL_NEW_IMAGE)};
    struct sl_value walked = v->each.ptr ? v->host->record_path(r, SL_NEW_IMAGE, v->each) : s.image;
    struct filling f = {.t = t};
    struct sl_error unused = SL_NO_ERROR;
    s.item = s.image;
    if (s.image.type == SL_NONE || !can_walk(walked))
        return false;
    (void)!(v->each.ptr ? walk(&s, walked, fill, &f, &unused) : fill(&s, &f, &unused));
    return f.is_filled;
}

bool view_rows_are_equal(const struct view_rows *a, const struct view_rows *b)
{
    bool are_equal = a->n == b->n;
    for (size_t i = 0; i < a->n && are_equal; i++)
        are_equal = sl_span_eq(a->list[i].key, b->list[i].key) &&
                    memcmp(a->list[i].digest, b->list[i].digest, VIEW_DIGEST_BYTES) == 0;
    return are_equal;
}

const struct view_row *view_rows_find(const struct view_rows *rows, struct sl_span key)
{
    const struct view_row wanted = {.key = key};
    return rows->n && key.ptr ? bsearch(&wanted, rows->list, rows->n, sizeof(*rows->list), compare_rows)
                              : NULL;
}
