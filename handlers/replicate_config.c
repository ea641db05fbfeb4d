/* Options of the replicate handler, and what they say together. */
#include "handlers/replicate.h"

#include <jansson.h>

/* Attribute names of ours go into JSON as they are. */
#define NAME_BYTES 255

const struct sl_option replicate_options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "the replica: dynamodb://table?region=, sqlite:file.db?table=name"},
    {"guard", SL_OPTION_JSON, 0, 0, 0, NULL, "\"inline\"",
     "where an item's last order is kept: \"inline\", {\"table\": \"guards\", \"key\": \"PK\"}, or \"none\""},
    {"guard_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_order", "inline: the attribute that holds it"},
    {"deleted_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_deleted",
     "inline: the attribute that marks a tombstone"},
    {"expires_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_expires",
     "when a tombstone may go, in epoch seconds: the TTL attribute of the table that holds the guards"},
    {"tombstone_days", SL_OPTION_INTEGER, 0, 1, 3650, NULL, "15",
     "how long a deleted item is remembered; longer than any queue keeps a parked record"},
    {"epoch", SL_OPTION_INTEGER, 0, 0, 999999, NULL, "0",
     "goes before every order: raise it when another table or Region becomes the source"},
    {"source", SL_OPTION_TABLE, 0, 0, 0, NULL, NULL,
     "the source table, to read items back from when the stream does not carry them"},
    {"project", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "list of the attributes to copy; the key always is"},
    {"drop", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "list of attributes not to copy"},
    {"rename", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "{\"old\": \"new\"}: attributes under another name"},
    {"key", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"PK\": \"{tenant}#{id}\"}: the replica's key from templates over the source's key"},
    {"expired", SL_OPTION_ENUM, 0, 0, 0, "delete|keep|keep-any", "delete",
     "removals by TTL: delete, keep the replica's item, keep also where the verdict is inferred"},
    {"replicated", SL_OPTION_ENUM, 0, 0, 0, "skip|copy", "skip",
     "changes that a replicate made: skip (two tables follow each other), copy (a chain of tables)"},
    {.type = SL_OPTION_END},
};

struct opening {
    struct replicate *p;
    const struct sl_host *host;
    struct sl_arena *arena;
    struct sl_error *error;
};

#define BAD(o, ...) (o)->host->fail((o)->error, SL_FATAL, "InvalidConfiguration", __VA_ARGS__)

static struct sl_span keep(struct opening *o, struct sl_span text)
{
    return o->host->join(o->arena, &text, 1);
}

static bool is_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == '"' || name.ptr[i] == '\\')
            return false;
    return name.len > 0 && name.len <= NAME_BYTES;
}

static struct sl_span json_text(const json_t *string)
{
    return (struct sl_span){json_string_value(string), json_string_length(string)};
}

/* The option's JSON, NULL when it is not given; the caller decrefs it. */
static json_t *option_json(struct opening *o, const char *name)
{
    struct sl_span text = o->host->option_text(o->p->route, name);
    return text.len ? json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL) : NULL;
}

/* ---- rules ---- */

static struct replicate_rule *rule_for(struct opening *o, struct sl_span name)
{
    struct replicate *p = o->p;
    for (size_t i = 0; i < p->n_rules; i++)
        if (sl_text_eq(p->rules[i].name, name))
            return &p->rules[i];
    struct replicate_rule *grown = o->host->alloc(o->arena, (p->n_rules + 1) * sizeof(*grown));
    if (p->n_rules > 0)
        memcpy(grown, p->rules, p->n_rules * sizeof(*grown));
    p->rules = grown;
    grown[p->n_rules] = (struct replicate_rule){.name = keep(o, name)};
    return &grown[p->n_rules++];
}

static enum sl_status read_names(struct opening *o, const char *option)
{
    json_t *list = option_json(o, option), *name;
    enum sl_status status = SL_OK;
    size_t i;
    if (list && !json_is_array(list))
        status = BAD(o, "%s: expected a list of attribute names", option);
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name)) {
            status = BAD(o, "%s[%zu]: expected an attribute name", option, i);
            break;
        }
        struct replicate_rule *rule = rule_for(o, json_text(name));
        if (strcmp(option, "drop") == 0)
            rule->is_dropped = true;
        else
            rule->is_kept = true;
    }
    json_decref(list);
    return status;
}

static enum sl_status read_renames(struct opening *o)
{
    json_t *object = option_json(o, "rename"), *value;
    enum sl_status status = SL_OK;
    const char *name;
    if (object && !json_is_object(object))
        status = BAD(o, "rename: expected an object of old and new attribute names");
    json_object_foreach(object, name, value)
    {
        if (!is_name(json_text(value))) {
            status = BAD(o, "rename.%s: expected an attribute name", name);
            break;
        }
        rule_for(o, sl_text_of(name))->renamed = keep(o, json_text(value));
    }
    json_decref(object);
    return status;
}

/* What takes the place of an attribute of the same name. */
static enum sl_status take_places(struct opening *o)
{
    struct replicate *p = o->p;
    size_t n = p->n_rules;
    for (size_t i = 0; i < n; i++) {
        struct sl_span renamed = p->rules[i].renamed;
        if (!renamed.ptr)
            continue;
        if (p->rules[i].is_dropped)
            return BAD(o, "rename.%.*s: the attribute is also in drop", SL_TEXT_ARG(p->rules[i].name));
        for (size_t k = 0; k < i; k++)
            if (sl_text_eq(p->rules[k].renamed, renamed))
                return BAD(o, "rename: two attributes become %.*s", SL_TEXT_ARG(renamed));
        struct replicate_rule *taken = rule_for(o, renamed);
        taken->is_dropped = taken->is_dropped || !taken->renamed.ptr;
    }
    for (size_t i = 0; i < p->n_keys; i++)
        rule_for(o, p->keys[i].name)->is_dropped = true;
    return SL_OK;
}

/* ---- the key ---- */

static enum sl_status read_key_attribute(struct opening *o, const char *name, const json_t *value)
{
    struct replicate_key *key = &o->p->keys[o->p->n_keys++];
    struct sl_span text = json_text(value);
    key->name = keep(o, sl_text_of(name));
    if (!is_name(key->name) || !json_is_string(value))
        return BAD(o, "key.%s: expected a template", name);
    if (sl_text_names_image(text))
        return BAD(
            o, "key.%s: only attributes of the source's key may make the replica's, since they never change",
            name);
    struct sl_error why = {.offset = SIZE_MAX};
    if (sl_text_compile(o->host, o->arena, text, &key->value, &why) != SL_OK)
        return BAD(o, "key.%s: byte %zu: %s", name, why.offset, why.text);
    return SL_OK;
}

static enum sl_status read_key(struct opening *o)
{
    json_t *object = option_json(o, "key"), *value;
    const char *name;
    enum sl_status status = SL_OK;
    if (object && (!json_is_object(object) || json_object_size(object) < 1 || json_object_size(object) > 2))
        status = BAD(o, "key: expected an object of one or two attributes and their templates");
    if (status == SL_OK && object)
        o->p->keys = o->host->alloc(o->arena, 2 * sizeof(*o->p->keys));
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_key_attribute(o, name, value);
    }
    json_decref(object);
    return status;
}

/* ---- the guard ---- */

static enum sl_status read_side_table(struct opening *o, const json_t *guard)
{
    const json_t *table = json_object_get(guard, "table"), *key = json_object_get(guard, "key");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)guard, name, value)
    {
        if (strcmp(name, "table") != 0 && strcmp(name, "key") != 0)
            return BAD(o, "guard.%s: no such member; table and key are known", name);
        if (!is_name(json_text(value)))
            return BAD(o, "guard.%s: expected a name", name);
    }
    if (!table)
        return BAD(o, "guard.table: missing: the name of the table that keeps the guards");
    o->p->guard = REPLICATE_SIDE;
    o->p->guard_table = keep(o, json_text(table));
    o->p->guard_key = key ? keep(o, json_text(key)) : SL_TEXT("PK");
    if (sl_text_eq(o->p->guard_table, o->p->target.table))
        return BAD(o, "guard.table: the replica itself cannot keep its guards in rows of their own");
    return SL_OK;
}

static enum sl_status read_guard(struct opening *o)
{
    json_t *guard = option_json(o, "guard");
    enum sl_status status = SL_OK;
    if (json_is_object(guard))
        status = read_side_table(o, guard);
    else if (sl_text_eq(json_text(guard), SL_TEXT("none")))
        o->p->guard = REPLICATE_NONE;
    else if (!sl_text_eq(json_text(guard), SL_TEXT("inline")))
        status = BAD(o, "guard: expected \"inline\", \"none\" or {\"table\": name}");
    json_decref(guard);
    return status;
}

enum sl_status replicate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error)
{
    static const char *const expired[] = {"delete", "keep", "keep-any", NULL};
    struct sl_arena *arena = host->route_arena(route);
    struct replicate *p = host->alloc(arena, sizeof(*p));
    struct opening o = {p, host, arena, error};
    *p = (struct replicate){.host = host,
                            .route = route,
                            .table = host->option_table(route, "to"),
                            .source = host->option_table(route, "source"),
                            .guard_attribute = host->option_text(route, "guard_attribute"),
                            .deleted_attribute = host->option_text(route, "deleted_attribute"),
                            .ttl_attribute = host->option_text(route, "expires_attribute"),
                            .epoch = host->option_integer(route, "epoch"),
                            .tombstone_s = host->option_integer(route, "tombstone_days") * 86400,
                            .is_projected = host->option_text(route, "project").len > 0,
                            .events = host->route_events(route)};
    *self = p;
    p->expired = (enum replicate_expired)sl_text_index(host->option_text(route, "expired"), expired);
    p->copies_replicated = sl_text_eq(host->option_text(route, "replicated"), SL_TEXT("copy"));
    if (!is_name(p->guard_attribute) || !is_name(p->deleted_attribute) || !is_name(p->ttl_attribute))
        return BAD(&o, "guard_attribute, deleted_attribute and expires_attribute are names of attributes");
    if (sl_text_eq(p->guard_attribute, p->deleted_attribute) ||
        sl_text_eq(p->guard_attribute, p->ttl_attribute) ||
        sl_text_eq(p->deleted_attribute, p->ttl_attribute))
        return BAD(&o,
                   "guard_attribute, deleted_attribute and expires_attribute: each has a name of its own");
    sl_loop_init(&p->target, host->option_text(route, "to"));
    enum sl_status status = read_guard(&o);
    status = status == SL_OK ? read_names(&o, "project") : status;
    status = status == SL_OK ? read_names(&o, "drop") : status;
    status = status == SL_OK ? read_renames(&o) : status;
    status = status == SL_OK ? read_key(&o) : status;
    return status == SL_OK ? take_places(&o) : status;
}
