/* Options of the aggregate handler, and what they say together. */
#include "handlers/aggregate.h"

#include <jansson.h>

#define NAME_BYTES 255

/* Marks of events have to go some day; a failure queue keeps a message for 14 days at most. */
#define EVENT_DAYS 15

const struct sl_option aggregate_options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "the totals: dynamodb://table?region=, sqlite:file.db?table=name"},
    {"counters", SL_OPTION_JSON, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "list of {\"key\": {\"PK\": template}, \"add\": {\"orders\": 1, \"revenue\": \"{total}\"}}; also "
     "\"when\": a "
     "pattern on the item, \"running_max\" and \"running_min\""},
    {"per", SL_OPTION_ENUM, 0, 0, 0, "item|event", "item",
     "item: what each item contributes now; event: what each change contributes, once and for all"},
    {"mode", SL_OPTION_ENUM, 0, 0, 0, "exact|at-least-once", "exact",
     "exact: a ledger says what has been counted; at-least-once: half the price, counts again what comes "
     "again"},
    {"ledger", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"table\": name, \"key\": \"PK\", \"name\": text}: where the ledger is kept (in the totals' table), "
     "and what "
     "its rows are called by (the route's name)"},
    {"forget_after_days", SL_OPTION_INTEGER, 0, -1, 3650, NULL, "-1",
     "when the ledger may forget items that are gone, and events; 0: never; -1: items never, events after "
     "15"},
    {"expires_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_expires",
     "when a ledger row may go, in epoch seconds: the TTL attribute of its table"},
    {"expired", SL_OPTION_ENUM, 0, 0, 0, "subtract|keep|keep-any", "subtract",
     "removals by TTL: subtract what the item contributed, keep it, keep it also where the verdict is "
     "inferred"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "an item that lacks what a counter names: rejected, not in that counter, or with nothing (0) in its "
     "place"},
    {"shards", SL_OPTION_INTEGER, 0, 0, 1000, NULL, "0",
     "spreads each counter over so many rows (\"#0\" and on behind its first key attribute): readers add "
     "them up"},
    {"own_rows", SL_OPTION_ENUM, 0, 0, 0, "refuse|mark", "refuse",
     "totals in the source table itself: refuse, or mark their rows with sluice_row and leave them out"},
    {.type = SL_OPTION_END},
};

struct opening {
    struct aggregate *a;
    const struct sl_host *host;
    struct sl_arena *arena;
    struct sl_error *error;
};

#define BAD(o, ...) (o)->host->fail((o)->error, SL_FATAL, "InvalidConfiguration", __VA_ARGS__)

static struct sl_span keep(struct opening *o, struct sl_span text)
{
    return o->host->join(o->arena, &text, 1);
}

static struct sl_span json_text(const json_t *string)
{
    return (struct sl_span){json_string_value(string), json_string_length(string)};
}

/* Names of ours go into JSON as they are. */
static bool is_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == '"' || name.ptr[i] == '\\')
            return false;
    return name.len > 0 && name.len <= NAME_BYTES;
}

static enum sl_status compile(struct opening *o, size_t counter, const char *member, const char *name,
                              struct sl_span text, struct sl_text_template *out)
{
    struct sl_error why = {.offset = SIZE_MAX};
    if (sl_text_compile(o->host, o->arena, text, out, &why) == SL_OK)
        return SL_OK;
    return BAD(o, "counters[%zu].%s.%s: byte %zu: %s", counter, member, name, why.offset, why.text);
}

/* Templates over one image at a time: an image's name would make before and after the same. */
static bool is_item_template(const struct opening *o, struct sl_span text)
{
    return o->a->per_event || !sl_text_names_image(text);
}

/* ---- keys ---- */

static enum sl_status read_key_names(struct opening *o, const json_t *key)
{
    struct aggregate *a = o->a;
    const char *name;
    json_t *value;
    struct sl_span first = {NULL, 0};
    json_object_foreach((json_t *)key, name, value)
    {
        if (!is_name(sl_text_of(name)))
            return BAD(o, "counters[0].key: a key attribute's name is empty, too long, or holds quotes");
        first = first.ptr ? first : sl_text_of(name);
        a->key_names[a->n_key_names++] = keep(o, sl_text_of(name));
    }
    if (a->n_key_names == 2 && strcmp(a->key_names[0].ptr, a->key_names[1].ptr) > 0) {
        struct sl_span other = a->key_names[0];
        a->key_names[0] = a->key_names[1];
        a->key_names[1] = other;
    }
    a->shard_key = sl_text_eq(a->key_names[0], first) ? 0 : 1;
    return SL_OK;
}

static enum sl_status read_key(struct opening *o, size_t i, const json_t *key)
{
    struct aggregate *a = o->a;
    size_t n = json_object_size(key);
    if (!json_is_object(key) || n < 1 || n > 2)
        return BAD(
            o, "counters[%zu].key: expected an object of one or two key attributes and their templates", i);
    enum sl_status status = i == 0 ? read_key_names(o, key) : SL_OK;
    struct aggregate_counter *c = &a->counters[i];
    c->keys = o->host->alloc(o->arena, 2 * sizeof(*c->keys));
    for (size_t k = 0; k < a->n_key_names && status == SL_OK; k++) {
        const char *name = a->key_names[k].ptr;
        const json_t *value = json_object_get(key, name);
        if (!json_is_string(value) || n != a->n_key_names)
            return BAD(o,
                       "counters[%zu].key.%s: expected a template; all counters have the same key attributes",
                       i, name);
        if (!is_item_template(o, json_text(value)))
            return BAD(
                o,
                "counters[%zu].key.%s: write {name} without its image: it is looked for before and after "
                "a change",
                i, name);
        status = compile(o, i, "key", name, json_text(value), &c->keys[k]);
    }
    return status;
}

/* ---- amounts ---- */

static enum sl_status read_amount(struct opening *o, size_t i, const char *member, const char *name,
                                  const json_t *value, struct aggregate_amount *out)
{
    out->name = keep(o, sl_text_of(name));
    if (!is_name(out->name))
        return BAD(o, "counters[%zu].%s: an attribute's name is empty, too long, or holds quotes", i, member);
    if (json_is_integer(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        out->constant = keep(o, sl_text_of(text));
        free(text);
        return SL_OK;
    }
    if (!json_is_string(value))
        return BAD(o, "counters[%zu].%s.%s: expected an integer, or a decimal or template as text", i, member,
                   name);
    struct sl_span text = json_text(value);
    if (o->host->decimal_add(o->host->decimal_new(o->arena), text, false)) {
        out->constant = keep(o, text);
        return SL_OK;
    }
    if (!is_item_template(o, text))
        return BAD(o,
                   "counters[%zu].%s.%s: write {name} without its image: it is looked for before and after a "
                   "change",
                   i, member, name);
    return compile(o, i, member, name, text, &out->value);
}

static enum sl_status read_amounts(struct opening *o, size_t i, const json_t *counter, const char *member,
                                   enum sl_set_verb verb)
{
    struct aggregate_counter *c = &o->a->counters[i];
    const json_t *object = json_object_get(counter, member);
    const char *name;
    json_t *value;
    if (object && !json_is_object(object))
        return BAD(o, "counters[%zu].%s: expected an object of attributes and amounts", i, member);
    json_object_foreach((json_t *)object, name, value)
    {
        struct aggregate_amount *amount = &c->amounts[c->n_amounts++];
        *amount = (struct aggregate_amount){.verb = verb};
        enum sl_status status = read_amount(o, i, member, name, value, amount);
        if (status != SL_OK)
            return status;
        o->a->has_extremes = o->a->has_extremes || verb != SL_ADD;
    }
    return SL_OK;
}

/* ---- counters ---- */

static enum sl_status read_when(struct opening *o, size_t i, const json_t *when)
{
    struct sl_error why = {.offset = SIZE_MAX};
    struct sl_when *compiled = NULL;
    if (!when)
        return SL_OK;
    char *text = json_dumps(when, JSON_ENCODE_ANY | JSON_COMPACT);
    enum sl_status status = o->host->pattern_compile(o->arena, sl_text_of(text), &compiled, &why);
    free(text);
    o->a->counters[i].when = compiled;
    return status == SL_OK ? SL_OK : BAD(o, "counters[%zu].when: %s", i, why.text);
}

static enum sl_status check_members(struct opening *o, size_t i, const json_t *counter)
{
    static const char *const known[] = {"key", "add", "when", "running_max", "running_min", NULL};
    const char *name;
    json_t *value;
    if (!json_is_object(counter))
        return BAD(o, "counters[%zu]: expected an object", i);
    json_object_foreach((json_t *)counter, name, value)
    {
        if (!known[sl_text_index(sl_text_of(name), known)])
            return BAD(
                o, "counters[%zu].%s: no such member; key, add, when, running_max and running_min are known",
                i, name);
    }
    return SL_OK;
}

static enum sl_status read_counter(struct opening *o, size_t i, const json_t *counter)
{
    struct aggregate_counter *c = &o->a->counters[i];
    *c = (struct aggregate_counter){0};
    enum sl_status status = check_members(o, i, counter);
    if (status == SL_OK)
        status = read_key(o, i, json_object_get(counter, "key"));
    if (status == SL_OK)
        status = read_when(o, i, json_object_get(counter, "when"));
    size_t n = json_object_size(json_object_get(counter, "add")) +
               json_object_size(json_object_get(counter, "running_max")) +
               json_object_size(json_object_get(counter, "running_min"));
    c->amounts = o->host->alloc(o->arena, (n + 1) * sizeof(*c->amounts));
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "add", SL_ADD);
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "running_max", SL_SET_MAX);
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "running_min", SL_SET_MIN);
    if (status == SL_OK && c->n_amounts == 0)
        status = BAD(o, "counters[%zu].add: missing: what is counted", i);
    return status;
}

static enum sl_status read_counters(struct opening *o)
{
    struct aggregate *a = o->a;
    struct sl_span text = o->host->option_text(a->route, "counters");
    json_t *list = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL), *counter;
    size_t i;
    enum sl_status status = SL_OK;
    a->n_counters = json_array_size(list);
    if (a->n_counters < 1 || a->n_counters > AGGREGATE_COUNTERS)
        status = BAD(o, "counters: expected a list of 1 to %d counters", AGGREGATE_COUNTERS);
    else
        a->counters = o->host->alloc(o->arena, a->n_counters * sizeof(*a->counters));
    json_array_foreach(list, i, counter)
    {
        if (status == SL_OK)
            status = read_counter(o, i, counter);
    }
    json_decref(list);
    return status;
}

/* ---- the ledger ---- */

static enum sl_status read_ledger_members(struct opening *o, const json_t *ledger)
{
    struct aggregate *a = o->a;
    const char *name;
    json_t *value;
    if (ledger && !json_is_object(ledger))
        return BAD(o, "ledger: expected an object with table, key, name");
    json_object_foreach((json_t *)ledger, name, value)
    {
        struct sl_span text = json_text(value);
        if (!is_name(text))
            return BAD(o, "ledger.%s: expected a text without quotes", name);
        if (strcmp(name, "table") == 0)
            a->ledger_table = keep(o, text);
        else if (strcmp(name, "name") == 0)
            a->name = keep(o, text);
        else if (strcmp(name, "key") == 0)
            a->ledger_keys[0] = keep(o, text);
        else
            return BAD(o, "ledger.%s: no such member; table, key and name are known", name);
    }
    return SL_OK;
}

/* In the totals' own table the rows have its key attributes, all of them the same text. */
static enum sl_status read_ledger(struct opening *o)
{
    struct aggregate *a = o->a;
    struct sl_span text = o->host->option_text(a->route, "ledger");
    json_t *ledger = text.len ? json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL) : NULL;
    enum sl_status status = read_ledger_members(o, ledger);
    json_decref(ledger);
    if (status != SL_OK)
        return status;
    a->n_ledger_keys = 1;
    if (a->ledger_table.ptr) {
        a->ledger_keys[0] = a->ledger_keys[0].ptr ? a->ledger_keys[0] : SL_TEXT("PK");
        return SL_OK;
    }
    if (a->ledger_keys[0].ptr)
        return BAD(
            o, "ledger.key: only with a table of its own; in the totals' table the key attributes are known");
    a->n_ledger_keys = a->n_key_names;
    memcpy(a->ledger_keys, a->key_names, sizeof(a->ledger_keys));
    return SL_OK;
}

enum sl_status aggregate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error)
{
    static const char *const expired[] = {"subtract", "keep", "keep-any", NULL};
    struct sl_arena *arena = host->route_arena(route);
    struct aggregate *a = host->alloc(arena, sizeof(*a));
    struct opening o = {a, host, arena, error};
    *a = (struct aggregate){.host = host,
                            .route = route,
                            .table = host->option_table(route, "to"),
                            .shards = host->option_integer(route, "shards"),
                            .expires_attribute = host->option_text(route, "expires_attribute"),
                            .name = sl_text_of(host->route_name(route)),
                            .missing = sl_text_missing(host, route),
                            .events = host->route_events(route)};
    *self = a;
    sl_loop_init(&a->target, host->option_text(route, "to"));
    a->per_event = sl_text_eq(host->option_text(route, "per"), SL_TEXT("event"));
    a->has_ledger = sl_text_eq(host->option_text(route, "mode"), SL_TEXT("exact"));
    a->marks_own = sl_text_eq(host->option_text(route, "own_rows"), SL_TEXT("mark"));
    a->expired = (enum aggregate_expired)sl_text_index(host->option_text(route, "expired"), expired);
    int64_t days = host->option_integer(route, "forget_after_days");
    a->forget_s = 86400 * (days >= 0 ? days : a->per_event ? EVENT_DAYS : 0);
    if (!is_name(a->expires_attribute))
        return BAD(&o, "expires_attribute: expected the name of an attribute");
    enum sl_status status = read_counters(&o);
    return status == SL_OK ? read_ledger(&o) : status;
}
