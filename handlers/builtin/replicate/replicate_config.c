/* The replicate handler's options: read and checked. */
#include "handlers/builtin/replicate/replicate_private.h"

#include "handlers/builtin.h"
#include "base/array.h"

#include <stdio.h>

const struct sl_option replicate_options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "the replica: dynamodb://table?region=, opensearch://host/index, postgres://host/db?table=name, "
     "sqlite:file.db?table=name"},
    {"guard", SL_OPTION_JSON, 0, 0, 0, NULL, "\"inline\"",
     "where the order of an item's last change is kept: \"inline\", {\"table\": \"guards\", "
     "\"key\": \"PK\"}, or \"none\""},
    {"guard_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_order",
     "inline: the attribute that holds the order"},
    {"write_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_write",
     "inline: the attribute that holds the signature of the write"},
    {"tombstones", SL_OPTION_JSON, 0, 0, 0, NULL, "\"inline\"",
     "inline guards: where deleted items are remembered: \"inline\" (on the replica), or "
     "{\"table\": \"tombstones\", \"key\": \"PK\"}"},
    {"deleted_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_deleted",
     "inline: the attribute that marks a tombstone"},
    {"expires_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_expires",
     "attribute with the time, in epoch seconds, from which a tombstone may be deleted: make it the TTL "
     "attribute of the table that holds the guards"},
    {"tombstone_days", SL_OPTION_INTEGER, 0, 1, 3650, NULL, "15",
     "how many days a deleted item is remembered: more than a queue keeps a parked record"},
    {"epoch", SL_OPTION_INTEGER, 0, 0, 999999, NULL, "0",
     "compared before the order: raise it by one when another table or Region becomes the source"},
    {"source", SL_OPTION_TABLE, 0, 0, 0, NULL, NULL,
     "the source table: items are read back from it if the stream does not carry them, or two changes "
     "have one time (Kinesis)"},
    {"project", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "list of the attributes to copy; the key is always copied"},
    {"drop", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "list of attributes not to copy, also within maps and lists: \"card.number\", \"lines[*].card\""},
    {"set", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"day\": \"{created|date:yyyy-mm-dd}\"}: attributes that templates make of the source's item, instead "
     "of "
     "copying them"},
    {"rename", SL_OPTION_JSON, 0, 0, 0, NULL, NULL, "{\"old\": \"new\"}: attributes under another name"},
    {"where", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "a condition on the item, {\"status\": [\"OPEN\"]}: the replica holds the items that match; one that "
     "stops "
     "matching is removed"},
    {"key", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"PK\": \"{tenant}#{id}\"}: templates that make the replica's key from the source's key attributes"},
    {"expired", SL_OPTION_ENUM, 0, 0, 0, "delete|keep|keep-any", "delete",
     "removals by TTL: delete, keep the replica's item, keep it also where the verdict is inferred"},
    {"replicated", SL_OPTION_ENUM, 0, 0, 0, "skip|copy", "skip",
     "changes that a replicate route made: skip (two tables follow each other), copy (a chain of tables)"},
    {"unsigned", SL_OPTION_ENUM, 0, 0, 0, "skip|copy", "skip",
     "changes with a guard and without a signature, as an earlier release wrote them: skip them, or copy "
     "them as a user's"},
    {.type = SL_OPTION_END},
};

const struct sl_option_use replicate_uses[] = {
    {"guard_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"write_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"deleted_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"expires_attribute", 0, "guard", "\"none\"", true, "\"guard\" is \"none\": nothing is remembered"},
    {"tombstone_days", 0, "guard", "\"none\"", true, "\"guard\" is \"none\": nothing is remembered"},
    {"epoch", 0, "guard", "\"none\"", true, "\"guard\" is \"none\": no order is compared"},
    {.option = NULL},
};

struct opening {
    struct sl_opening base;
    struct replicate *p;
};

#define BAD(o, ...) SL_OPENING_BAD(&(o)->base, __VA_ARGS__)

static struct sl_span keep(const struct opening *o, struct sl_span text)
{
    return sl_opening_keep(&o->base, text);
}

/* ---- the key ---- */

static enum sl_status read_key_attribute(struct opening *o, const char *name, const json_t *value)
{
    struct replicate_key *key = &o->p->keys[o->p->n_keys++];
    struct sl_span text = sl_opening_text(value);
    *key = (struct replicate_key){.name = {NULL, 0}};
    key->name = keep(o, sl_span_str(name));
    if (!sl_opening_is_name(key->name) || !json_is_string(value))
        return BAD(o, "key.%s: expected a template", name);
    if (text.len == 0)
        return BAD(o, "key.%s: is empty, and a key attribute cannot be", name);
    if (sl_render_names_image(text))
        return BAD(o,
                   "key.%s: use attributes of the source's key only; others change, and would move the item",
                   name);
    if (text.len > 2 && text.ptr[0] == '{' && !memchr(text.ptr + 1, '{', text.len - 1) &&
        !memchr(text.ptr, '|', text.len) && memchr(text.ptr, '}', text.len) == text.ptr + text.len - 1)
        key->place = keep(o, (struct sl_span){text.ptr + 1, text.len - 2});
    char where[300];
    snprintf(where, sizeof(where), "key.%s", name);
    return sl_opening_template(&o->base, where, text, &key->value);
}

/* Without a place every item would be the same row. */
static enum sl_status check_key(struct opening *o)
{
    const struct replicate *p = o->p;
    unsigned uses = 0;
    for (size_t i = 0; i < p->n_keys; i++)
        uses |= o->base.host->template_uses(p->keys[i].value.compiled);
    if (p->n_keys && !uses)
        return BAD(o,
                   "key: no template has a {place}, so all items would have one key and replace each other");
    return SL_OK;
}

static enum sl_status read_key(struct opening *o)
{
    json_t *object = sl_opening_json(&o->base, "key"), *value;
    const char *name;
    enum sl_status status = SL_OK;
    if (object && (!json_is_object(object) || json_object_size(object) < 1 || json_object_size(object) > 2))
        status = BAD(o, "key: expected an object of one or two attributes and their templates");
    if (status == SL_OK && object)
        o->p->keys = o->base.host->alloc(o->base.arena, 2 * sizeof(*o->p->keys));
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_key_attribute(o, name, value);
    }
    json_decref(object);
    return status == SL_OK ? check_key(o) : status;
}

/* ---- the guard ---- */

static enum sl_status read_side_table(struct opening *o, const char *option, const json_t *json,
                                      struct replicate_side *side)
{
    const json_t *table = json_object_get(json, "table"), *key = json_object_get(json, "key");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)json, name, value)
    {
        if (strcmp(name, "table") != 0 && strcmp(name, "key") != 0)
            return BAD(o, "%s.%s: unknown member; known are table and key", option, name);
        if (!sl_opening_is_name(sl_opening_text(value)))
            return BAD(o, "%s.%s: expected a name", option, name);
    }
    if (!table)
        return BAD(o, "%s.table: missing; it names the table that keeps the %s", option,
                   strcmp(option, "guard") == 0 ? "guards" : "tombstones");
    if (!(o->p->table->can & SL_TABLE_GROUPS))
        return BAD(o,
                   "%s.table: the replica's target has no transactions, which keep the rows of two tables in "
                   "step; use \"inline\"",
                   option);
    side->table = keep(o, sl_opening_text(table));
    side->key = key ? keep(o, sl_opening_text(key)) : SL_LIT("PK");
    if (sl_span_eq(side->table, o->p->loop.target.table))
        return BAD(o, "%s.table: the replica cannot keep these rows itself; name another table", option);
    return SL_OK;
}

static enum sl_status read_guard(struct opening *o)
{
    json_t *guard = sl_opening_json(&o->base, "guard");
    enum sl_status status = SL_OK;
    if (json_is_object(guard)) {
        o->p->guard = REPLICATE_SIDE;
        status = read_side_table(o, "guard", guard, &o->p->guards);
    } else if (sl_span_is(sl_opening_text(guard), "none")) {
        o->p->guard = REPLICATE_NONE;
    } else if (!sl_span_is(sl_opening_text(guard), "inline")) {
        status = BAD(o, "guard: expected \"inline\", \"none\" or {\"table\": name}");
    }
    json_decref(guard);
    return status;
}

static enum sl_status read_tombstones(struct opening *o)
{
    json_t *tombstones = sl_opening_json(&o->base, "tombstones");
    enum sl_status status = SL_OK;
    if (json_is_object(tombstones) && o->p->guard != REPLICATE_INLINE)
        status = BAD(o, "tombstones: only a replica with inline guards keeps tombstones; remove the option");
    else if (json_is_object(tombstones))
        status = read_side_table(o, "tombstones", tombstones, &o->p->tombstones);
    else if (!sl_span_is(sl_opening_text(tombstones), "inline"))
        status = BAD(o, "tombstones: expected \"inline\" or {\"table\": name}");
    json_decref(tombstones);
    return status;
}

/* ---- the source ---- */

/* The same text is the same table. `sluice check` finds it in other words, too. */
static enum sl_status check_source(struct opening *o)
{
    const struct sl_host *host = o->base.host;
    struct sl_span source = host->option_text(o->base.route, "source");
    if (source.len && sl_span_eq(source, host->option_text(o->base.route, "to")))
        return BAD(o, "source: is the replica itself (\"to\"); name the table that the stream is of");
    return SL_OK;
}

/* ---- our attributes ---- */

static const char *const ours[] = {"guard_attribute", "write_attribute", "deleted_attribute",
                                   "expires_attribute"};
#define N_OURS SL_COUNT(ours)

static enum sl_status check_attributes(struct opening *o)
{
    for (size_t i = 0; i < N_OURS; i++) {
        struct sl_span name = o->base.host->option_text(o->base.route, ours[i]);
        if (!sl_opening_is_name(name))
            return BAD(o, "%s: expected the name of an attribute", ours[i]);
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(name, o->base.host->option_text(o->base.route, ours[k])))
                return BAD(o, "%s: \"%.*s\" is the %s too; give each attribute a name of its own", ours[i],
                           SL_ARG(name), ours[k]);
    }
    return SL_OK;
}

static enum sl_status check_place(struct opening *o, const char *option, struct sl_span from,
                                  struct sl_span to)
{
    for (size_t i = 0; i < N_OURS && o->p->guard == REPLICATE_INLINE; i++)
        if (sl_span_eq(to, o->base.host->option_text(o->base.route, ours[i])))
            return BAD(o, "%s.%.*s: %.*s is the %s, which replicate itself writes; choose another name",
                       option, SL_ARG(from), SL_ARG(to), ours[i]);
    return SL_OK;
}

/* Nothing of the source's may take the place of an attribute of ours. */
static enum sl_status check_places(struct opening *o)
{
    const struct replicate *p = o->p;
    enum sl_status status = SL_OK;
    const struct sl_reshape *shape = &p->shape;
    for (size_t i = 0; i < shape->n_rules && status == SL_OK; i++)
        if (shape->rules[i].renamed.ptr)
            status = check_place(o, "rename", shape->rules[i].name, shape->rules[i].renamed);
    for (size_t i = 0; i < p->n_keys && status == SL_OK; i++)
        status = check_place(o, "key", p->keys[i].name, p->keys[i].name);
    for (size_t i = 0; i < shape->n_sets && status == SL_OK; i++)
        status = check_place(o, "set", shape->sets[i].name, shape->sets[i].name);
    return status;
}

static enum sl_status take_places(struct opening *o)
{
    struct sl_span keys[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < o->p->n_keys; i++)
        keys[i] = o->p->keys[i].name;
    return sl_reshape_take_places(&o->base, &o->p->shape, keys, o->p->n_keys);
}

enum sl_status replicate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error)
{
    struct sl_arena *arena = host->route_arena(route);
    struct replicate *p = host->alloc(arena, sizeof(*p));
    struct opening o = {{host, route, arena, error}, p};
    *p = (struct replicate){.host = host,
                            .route = route,
                            .table = host->option_table(route, "to"),
                            .source = host->option_table(route, "source"),
                            .guard_attribute = host->option_text(route, "guard_attribute"),
                            .write_attribute = host->option_text(route, "write_attribute"),
                            .deleted_attribute = host->option_text(route, "deleted_attribute"),
                            .ttl_attribute = host->option_text(route, "expires_attribute"),
                            .epoch = host->option_integer(route, "epoch"),
                            .records_epoch = host->option_integer(route, "epoch"),
                            .tombstone_s = host->option_integer(route, "tombstone_days") * 86400,
                            .expired = sl_expired_option(host, route),
                            .copies_replicated = sl_opening_is(&o.base, "replicated", "copy"),
                            .copies_unsigned = sl_opening_is(&o.base, "unsigned", "copy"),
                            .events = host->route_events(route)};
    *self = p;
    sl_loop_init(&p->loop, host->option_text(route, "to"));
    enum sl_status status = check_attributes(&o);
    status = status == SL_OK ? check_source(&o) : status;
    status = status == SL_OK ? read_guard(&o) : status;
    status = status == SL_OK ? read_tombstones(&o) : status;
    status = status == SL_OK ? sl_reshape_open(&o.base, &p->shape) : status;
    status = status == SL_OK ? sl_opening_where(&o.base, &p->where) : status;
    status = status == SL_OK ? read_key(&o) : status;
    status = status == SL_OK ? check_places(&o) : status;
    return status == SL_OK ? take_places(&o) : status;
}
