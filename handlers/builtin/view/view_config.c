/* The view handler's options: read and checked. */
#include "handlers/builtin/view/view_private.h"

#include "base/array.h"
#include "handlers/builtin.h"

#include <stdio.h>

const struct sl_option view_options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "the table of the rows: dynamodb://table?region=, postgres://host/db?table=name, "
     "sqlite:file.db?table=name; without \"each\" also opensearch://host/index"},
    {"key", SL_OPTION_JSON, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "{\"PK\": \"PRODUCT#{each.sku}\", \"SK\": \"ORDER#{PK|key}#{each.id|key}\"}: templates that make a "
     "row's "
     "key; they name every attribute of the source's key"},
    {"each", SL_OPTION_TEXT, 0, 0, 0, NULL, NULL,
     "\"lines[*]\": a list, set or map of the item; each element is a row, and templates see it as {each}, "
     "{each_index}, and a map's member as {each_name}"},
    {"where", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "a condition on the item, {\"status\": [\"OPEN\"]}, and on the element, {\"each\": {\"qty\": [1]}}: the "
     "view has rows of what matches"},
    {"item", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"qty\": \"{each.qty}\"}: what a row holds beside its key; without it the item's attributes"},
    {"project", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "list of the item's attributes that a row holds"},
    {"drop", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "list of attributes that a row does not hold, also within maps and lists: \"lines[*].card\""},
    {"rename", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "{\"old\": \"new\"}: attributes under another name"},
    {"set", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"day\": \"{created|date:yyyy-mm-dd}\"}: attributes that templates make, beside those that are "
     "copied"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, "reject|skip", "reject",
     "an item or element that lacks what a key's template names: reject the record, or make no row of it"},
    {"list", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"table\": name, \"key\": \"PK\", \"name\": text}: the table of the lists that say which rows an item "
     "has (default: that of the rows), and the view's name (default: the route's); false, without \"each\": "
     "no lists, each row has the order of its last change"},
    {"expires_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_expires",
     "attribute with the time, in epoch seconds, from which the empty list of an item may be deleted: make "
     "it "
     "the TTL attribute of the lists' table"},
    {"tombstone_days", SL_OPTION_INTEGER, 0, 1, 3650, NULL, "15",
     "how many days an item without rows is remembered: more than a queue keeps a parked record"},
    {"epoch", SL_OPTION_INTEGER, 0, 0, 999999, NULL, "0",
     "compared before the order: raise it by one when another table or Region becomes the source"},
    {"expired", SL_OPTION_ENUM, 0, 0, 0, "delete|keep|keep-any", "delete",
     "removals by TTL: delete the item's rows, keep them, keep them also where the verdict is inferred"},
    {.type = SL_OPTION_END},
};

struct opening {
    struct sl_opening base;
    struct view *v;
};

#define BAD(o, ...) SL_OPENING_BAD(&(o)->base, __VA_ARGS__)

/* ---- the key ---- */

/* Templates that look at more than the item make another row of each change. */
#define USES_ALLOWED (SL_USES_ITEM | SL_USES_KEYS)

/* Values that are joined are told apart by a '#', which |key keeps out of them. */
static enum sl_status check_joined(const struct opening *o, const struct view_key *key)
{
    const struct sl_host *host = o->base.host;
    struct sl_template_place place;
    if (!host->template_place(key->value.compiled, 1, &place))
        return SL_OK;
    for (size_t i = 0; host->template_place(key->value.compiled, i, &place); i++) {
        if (!place.is_keyed)
            return BAD(
                o,
                "key.%.*s: several places are joined, so each ends with |key, as in {PK|key}: else two "
                "items could make one key",
                SL_ARG(key->name));
        if (i > 0 && !memchr(place.before.ptr, '#', place.before.len))
            return BAD(
                o,
                "key.%.*s: between two places stands a '#', as in {PK|key}#{SK|key}: else two items could "
                "make one key",
                SL_ARG(key->name));
    }
    return SL_OK;
}

static enum sl_status read_key_attribute(struct opening *o, const char *name, const json_t *value)
{
    struct view_key *key = &o->v->keys[o->v->n_keys++];
    struct sl_span text = sl_opening_text(value);
    char where[300];
    *key = (struct view_key){.name = sl_opening_keep(&o->base, sl_span_str(name))};
    if (!sl_opening_is_name(key->name) || !json_is_string(value) || text.len == 0)
        return BAD(o, "key.%s: expected an attribute name and a template", name);
    snprintf(where, sizeof(where), "key.%s", name);
    enum sl_status status = sl_opening_template(&o->base, where, text, &key->value);
    if (status != SL_OK)
        return status;
    if (o->base.host->template_uses(key->value.compiled) & ~USES_ALLOWED)
        return BAD(o,
                   "key.%s: the template names the time or the event of a change, the old image, or the "
                   "table; rows are made of the source's items alone",
                   name);
    return check_joined(o, key);
}

static enum sl_status read_key(struct opening *o)
{
    json_t *object = sl_opening_json(&o->base, "key"), *value;
    const char *name;
    enum sl_status status = SL_OK;
    if (!json_is_object(object) || json_object_size(object) < 1 ||
        json_object_size(object) > SL_TEXT_KEY_ATTRIBUTES)
        status = BAD(o, "key: expected an object of one or two attributes and their templates");
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_key_attribute(o, name, value);
    }
    json_decref(object);
    return status;
}

/* ---- what is walked, and what rows hold ---- */

/* "lines[*]" */
static enum sl_status read_each(struct opening *o)
{
    struct sl_span text = o->base.host->option_text(o->base.route, "each");
    const char *why;
    struct sl_prune unused = {.name = {NULL, 0}};
    if (!text.ptr)
        return SL_OK;
    if (text.len < 4 || memcmp(text.ptr + text.len - 3, "[*]", 3) != 0)
        return BAD(o, "each: expected a path that ends with [*], such as \"lines[*]\"");
    text.len -= 3;
    if (memmem(text.ptr, text.len, "[*]", 3))
        return BAD(o, "each: [*] stands once, at the end of the path");
    why = sl_prune_add(o->base.host, o->base.arena, &unused, text);
    if (why)
        return BAD(o, "each: %s", why);
    o->v->each = text;
    return SL_OK;
}

static enum sl_status read_shape(struct opening *o)
{
    static const char *const copies[] = {"project", "drop", "rename", "set"};
    const struct sl_host *host = o->base.host;
    struct view *v = o->v;
    v->is_made = host->option_text(o->base.route, "item").len > 0;
    for (size_t i = 0; i < SL_COUNT(copies) && v->is_made; i++)
        if (host->option_text(o->base.route, copies[i]).len)
            return BAD(o, "%s: \"item\" makes all that a row holds; remove one of the two", copies[i]);
    if (v->is_made)
        return sl_reshape_open_sets(&o->base, &v->shape, "item");
    if (v->each.ptr && !host->option_text(o->base.route, "project").len)
        return BAD(o, "item: with \"each\" say what a row holds: templates in \"item\", or attributes of the "
                      "item in \"project\"");
    return sl_reshape_open(&o->base, &v->shape);
}

/* ---- names ---- */

static bool is_ours(struct sl_span name)
{
    return sl_span_is(name, VIEW_OF) || sl_span_is(name, VIEW_LIST_ROWS) || sl_span_is(name, VIEW_ORDER) ||
           sl_span_is(name, VIEW_LIST_REPAIRS);
}

static enum sl_status check_name(const struct opening *o, const char *option, struct sl_span name)
{
    bool is_of_tombstone =
        o->v->is_guarded && (sl_span_is(name, VIEW_DELETED) || sl_span_eq(name, o->v->expires_attribute));
    return is_ours(name) || is_of_tombstone
               ? BAD(o,
                     "%s: %.*s is an attribute that the view itself writes; choose another "
                     "name",
                     option, SL_ARG(name))
               : SL_OK;
}

/* What a row gets of its own takes the place of what the item has. */
static enum sl_status take_places(struct opening *o)
{
    struct view *v = o->v;
    struct sl_span taken[SL_TEXT_KEY_ATTRIBUTES + 6];
    enum sl_status status = SL_OK;
    size_t n = 0;
    for (size_t i = 0; i < v->n_keys && status == SL_OK; i++) {
        status = check_name(o, "key", v->keys[i].name);
        taken[n++] = v->keys[i].name;
    }
    for (size_t i = 0; i < v->shape.n_sets && status == SL_OK; i++)
        status = check_name(o, v->is_made ? "item" : "set", v->shape.sets[i].name);
    for (size_t i = 0; i < v->shape.n_rules && status == SL_OK; i++)
        if (v->shape.rules[i].renamed.ptr)
            status = check_name(o, "rename", v->shape.rules[i].renamed);
    if (status != SL_OK)
        return status;
    taken[n++] = SL_LIT(VIEW_OF);
    taken[n++] = SL_LIT(VIEW_LIST_ROWS);
    taken[n++] = SL_LIT(VIEW_ORDER);
    taken[n++] = SL_LIT(VIEW_LIST_REPAIRS);
    if (v->is_guarded) {
        taken[n++] = SL_LIT(VIEW_DELETED);
        taken[n++] = v->expires_attribute;
    }
    return sl_reshape_take_places(&o->base, &v->shape, taken, n);
}

/* ---- what rows are made of ---- */

static void add_name(struct opening *o, struct sl_span name)
{
    struct view *v = o->v;
    if (!v->each.ptr || !view_is_of_element(name))
        SL_PUSH_IN(o->base.arena, v->reads, v->n_reads, v->room_reads) = sl_opening_keep(&o->base, name);
}

/* The attribute at the beginning of the path. */
static void add_path(struct opening *o, struct sl_span path)
{
    size_t n = 0;
    if (path.len == 0 || path.ptr[0] == '`' || path.ptr[0] == '$')
        o->v->reads_more = true;
    while (n < path.len && path.ptr[n] != '.' && path.ptr[n] != '[')
        n++;
    path.len = n;
    add_name(o, path);
}

static void add_reads(struct opening *o, const struct sl_template *t)
{
    struct sl_template_place place;
    for (size_t i = 0; o->base.host->template_place(t, i, &place); i++)
        if (place.is_path || !place.name.ptr)
            add_path(o, place.name);
        else
            add_name(o, place.name);
}

/* A change of none of them alters no row. */
static void list_reads(struct opening *o)
{
    struct view *v = o->v;
    struct sl_span where = o->base.host->option_text(o->base.route, "where");
    json_t *object = where.len ? json_loadb(where.ptr, where.len, 0, NULL) : NULL, *value;
    const char *name;
    v->reads_more = !v->is_made && !v->shape.is_projected;
    for (size_t i = 0; i < v->n_keys; i++)
        add_reads(o, v->keys[i].value.compiled);
    for (size_t i = 0; i < v->shape.n_sets; i++)
        add_reads(o, v->shape.sets[i].value.compiled);
    for (size_t i = 0; i < v->shape.n_rules; i++)
        if (v->shape.rules[i].is_kept)
            add_name(o, v->shape.rules[i].name);
    json_object_foreach(object, name, value)
    {
        add_path(o, sl_span_str(name));
    }
    json_decref(object);
    if (v->each.ptr)
        add_path(o, v->each);
}

/* ---- the lists ---- */

static enum sl_status read_list_members(struct opening *o, const json_t *list)
{
    struct view *v = o->v;
    const char *name;
    json_t *value;
    if (json_is_false(list)) {
        v->is_guarded = true;
        return SL_OK;
    }
    if (list && !json_is_object(list))
        return BAD(o, "list: expected an object with table, key or name, or false");
    json_object_foreach((json_t *)list, name, value)
    {
        struct sl_span text = sl_opening_text(value);
        if (!sl_opening_is_name(text))
            return BAD(o, "list.%s: expected a text without quotes", name);
        if (strcmp(name, "table") == 0)
            v->list_table = sl_opening_keep(&o->base, text);
        else if (strcmp(name, "name") == 0)
            v->name = sl_opening_keep(&o->base, text);
        else if (strcmp(name, "key") == 0)
            v->list_keys[v->n_list_keys++] = sl_opening_keep(&o->base, text);
        else
            return BAD(o, "list.%s: unknown member; known are table, key and name", name);
    }
    return SL_OK;
}

/* Lists need transactions, and rows without lists an old image that tells of all that an item has there. */
static enum sl_status check_lists(struct opening *o)
{
    struct view *v = o->v;
    bool can_list = v->table->can & SL_TABLE_GROUPS;
    if (!can_list && v->each.ptr)
        return BAD(
            o, "to: this target has no transactions, and with \"each\" a view needs them: keep its rows in a "
               "dynamodb:, postgres: or sqlite: table");
    if (!can_list && v->list_table.ptr)
        return BAD(o, "list.table: this target has no tables beside it; leave the option out");
    v->is_guarded = v->is_guarded || !can_list;
    if (v->is_guarded && v->each.ptr)
        return BAD(
            o, "list: false is for views without \"each\": an item with several rows needs a list of them");
    if (v->is_guarded && sl_span_is(v->expires_attribute, VIEW_DELETED))
        return BAD(o, "expires_attribute: expected the name of an attribute that nothing else has");
    if (v->is_guarded && v->expired != SL_EXPIRED_APPLY)
        return BAD(
            o, "expired: without lists the rows of expired items cannot be kept: an item that is put again "
               "would not find them");
    return SL_OK;
}

/* Beside the rows a list has the rows' key attributes, all with the same text. */
static enum sl_status read_list(struct opening *o)
{
    struct view *v = o->v;
    json_t *list = sl_opening_json(&o->base, "list");
    enum sl_status status = read_list_members(o, list);
    json_decref(list);
    if (status == SL_OK)
        status = check_lists(o);
    if (status != SL_OK || v->is_guarded)
        return status;
    if (v->list_table.ptr) {
        if (sl_span_eq(v->list_table, v->loop.target.table))
            return BAD(o, "list.table: it is the rows' own table; leave the option out");
        if (v->n_list_keys == 0)
            v->list_keys[v->n_list_keys++] = SL_LIT("PK");
        return check_name(o, "list.key", v->list_keys[0]);
    }
    if (v->n_list_keys)
        return BAD(o, "list.key: only for lists with their own table; set list.table too");
    for (size_t i = 0; i < v->n_keys; i++) {
        if (v->keys[i].value.type == SL_N)
            return BAD(
                o,
                "key.%.*s: it is a number, and the key of a list that stands beside the rows is a text: "
                "give the lists a table of their own with \"list\": {\"table\": ...}",
                SL_ARG(v->keys[i].name));
        v->list_keys[v->n_list_keys++] = v->keys[i].name;
    }
    return SL_OK;
}

enum sl_status view_open(const struct sl_host *host, struct sl_route *route, void **self,
                         struct sl_error *error)
{
    struct sl_arena *arena = host->route_arena(route);
    struct view *v = host->alloc(arena, sizeof(*v));
    struct opening o = {{host, route, arena, error}, v};
    *v = (struct view){.host = host,
                       .route = route,
                       .table = host->option_table(route, "to"),
                       .name = sl_span_str(host->route_name(route)),
                       .skips_missing = sl_opening_is(&o.base, "missing", "skip"),
                       .expires_attribute = host->option_text(route, "expires_attribute"),
                       .epoch = host->option_integer(route, "epoch"),
                       .records_epoch = host->option_integer(route, "epoch"),
                       .tombstone_s = host->option_integer(route, "tombstone_days") * 86400,
                       .expired = sl_expired_option(host, route)};
    *self = v;
    sl_loop_init(&v->loop, host->option_text(route, "to"));
    if (!(v->table->can & SL_TABLE_TESTS))
        return BAD(&o,
                   "to: this target has no conditions, and a view needs them: keep its rows in a dynamodb:, "
                   "postgres:, sqlite: or opensearch: table");
    if (!sl_opening_is_name(v->expires_attribute) || is_ours(v->expires_attribute))
        return BAD(&o, "expires_attribute: expected the name of an attribute that nothing else has");
    enum sl_status status = read_key(&o);
    status = status == SL_OK ? read_each(&o) : status;
    status = status == SL_OK ? read_list(&o) : status;
    status = status == SL_OK ? sl_opening_where(&o.base, &v->where) : status;
    status = status == SL_OK ? read_shape(&o) : status;
    status = status == SL_OK ? take_places(&o) : status;
    if (status == SL_OK)
        list_reads(&o);
    return status;
}
