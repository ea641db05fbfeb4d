/* The aggregate handler's options: read and checked. */
#include "base/arena.h"
#include "handlers/builtin/aggregate/aggregate_private.h"

#include "handlers/builtin.h"
#include "base/array.h"
#include "handlers/builtin/toolkit/opening.h"

#include <stdio.h>
#include <stdlib.h>

/* How long marks of events are kept, and at least rows of items whose removal counts: longer than the 14 days
 * for which a failure queue keeps a message. */
#define REPEAT_DAYS 15

const struct sl_option aggregate_options[] = {
    {"to", SL_OPTION_TABLE, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "the totals: dynamodb://table?region=, postgres://host/db?table=name, sqlite:file.db?table=name"},
    {"counters", SL_OPTION_JSON, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "list of {\"key\": {\"PK\": template}, \"add\": {\"orders\": 1, \"revenue\": \"{total}\"}}; also "
     "\"where\": a condition on the item, \"distinct\": {\"customers\": \"{PK}\"}, \"members\": {\"by\": "
     "\"{total}\"}, \"running_max\" and \"running_min\""},
    {"per", SL_OPTION_ENUM, 0, 0, 0, "item|event", "item",
     "item: what each item contributes now; event: what each change contributes, counted once"},
    {"mode", SL_OPTION_ENUM, 0, 0, 0, "exact|at-least-once", "exact",
     "exact: a ledger says what has been counted; at-least-once: half the price, but a record that is "
     "delivered again is counted again"},
    {"ledger", SL_OPTION_JSON, 0, 0, 0, NULL, NULL,
     "{\"table\": name, \"key\": \"PK\", \"name\": text}: the table of the ledger (default: the totals' "
     "table), and the name in the keys of its rows (default: the route's name)"},
    {"forget_after_days", SL_OPTION_INTEGER, 0, -1, 3650, NULL, "-1",
     "after how many days the ledger may forget removed items, and events; 0: never; -1: items never, events "
     "after 15"},
    {"expires_attribute", SL_OPTION_TEXT, 0, 0, 0, NULL, "sluice_expires",
     "attribute with the time, in epoch seconds, from which a ledger row may be deleted: make it the TTL "
     "attribute of its table"},
    {"expired", SL_OPTION_ENUM, 0, 0, 0, "subtract|keep|keep-any", "subtract",
     "removals by TTL: subtract what the item contributed, keep it, keep it also where the verdict is "
     "inferred"},
    {"epoch", SL_OPTION_INTEGER, 0, 0, SL_ORDER_EPOCH_MAX, NULL, "0",
     "goes before every order: raise it when another table or Region becomes the source, then backfill"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "an item that lacks what a counter names: reject it, leave it out of that counter (skip), or put "
     "nothing (for an amount, 0) in the place (empty)"},
    {"empty", SL_OPTION_ENUM, 0, 0, 0, "keep|delete", "keep",
     "rows whose counts are all zero: keep them, or delete them (every counter needs an amount that is 1)"},
    {"shards", SL_OPTION_INTEGER, 0, 0, 1000, NULL, "0",
     "spreads each counter over this many rows (\"#0\", \"#1\", ... after its first key attribute); readers "
     "add them up"},
    {"own_rows", SL_OPTION_ENUM, 0, 0, 0, "refuse|mark", "refuse",
     "totals kept in the source table itself: refuse them, or mark their rows with sluice_row and do not "
     "count "
     "those rows"},
    {.type = SL_OPTION_END},
};

const struct sl_option_use aggregate_uses[] = {
    {"ledger", 0, "mode", "exact", false, "\"mode\" is not \"exact\": there is no ledger"},
    {"forget_after_days", 0, "mode", "exact", false, "\"mode\" is not \"exact\": there is no ledger"},
    {"expires_attribute", 0, "mode", "exact", false, "\"mode\" is not \"exact\": there is no ledger"},
    {.option = NULL},
};

struct opening {
    struct sl_opening base;
    struct aggregate *a;
};

#define BAD(o, ...) SL_OPENING_BAD(&(o)->base, __VA_ARGS__)

static struct sl_span keep(const struct opening *o, struct sl_span text)
{
    return sl_opening_keep(&o->base, text);
}

static void *make(const struct opening *o, size_t n, size_t item_bytes)
{
    return sl_arena_zalloc(o->base.arena, n * item_bytes);
}

/* A member of a counter, and where it is in the configuration: "counters[0].add.n". */
struct member {
    char path[320];
    const json_t *json;
};

static struct member member_at(size_t counter, const char *group, const char *name, const json_t *json)
{
    struct member m = {.json = json};
    snprintf(m.path, sizeof(m.path), "counters[%zu].%s.%s", counter, group, name);
    return m;
}

/* Totals over items look at one image at a time: a template that names an image would render the same text
 * before and after a change. */
static enum sl_status compile(struct opening *o, const struct member *m, struct sl_render_template *out)
{
    struct sl_span text = sl_opening_text(m->json);
    if (!o->a->per_event && sl_render_names_image(text))
        return BAD(o, "%s: write {name} without its image; it is looked up before and after a change",
                   m->path);
    return sl_opening_template(&o->base, m->path, text, out);
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
        if (!sl_opening_is_name(sl_span_str(name)))
            return BAD(o, "counters[0].key: a key attribute's name is empty, too long, or holds quotes");
        first = first.ptr ? first : sl_span_str(name);
        a->key_names[a->n_key_names++] = keep(o, sl_span_str(name));
    }
    if (a->n_key_names == 2 && strcmp(a->key_names[0].ptr, a->key_names[1].ptr) > 0) {
        struct sl_span other = a->key_names[0];
        a->key_names[0] = a->key_names[1];
        a->key_names[1] = other;
    }
    a->shard_key = sl_span_eq(a->key_names[0], first) ? 0 : 1;
    return SL_OK;
}

static enum sl_status read_key(struct opening *o, size_t i, const json_t *key)
{
    struct aggregate *a = o->a;
    size_t n = json_object_size(key);
    if (!json_is_object(key) || n < 1 || n > SL_TEXT_KEY_ATTRIBUTES)
        return BAD(
            o, "counters[%zu].key: expected an object of one or two key attributes and their templates", i);
    enum sl_status status = i == 0 ? read_key_names(o, key) : SL_OK;
    struct aggregate_counter *c = &a->counters[i];
    c->keys = make(o, SL_TEXT_KEY_ATTRIBUTES, sizeof(*c->keys));
    for (size_t k = 0; k < a->n_key_names && status == SL_OK; k++) {
        const char *name = a->key_names[k].ptr;
        struct member m = member_at(i, "key", name, json_object_get(key, name));
        if (!m.json || n != a->n_key_names)
            return BAD(
                o, "counters[%zu].key: all counters have the same key attributes; counters[0] has others", i);
        if (sl_opening_text(m.json).len == 0)
            return BAD(o, "%s: expected a template", m.path);
        status = compile(o, &m, &c->keys[k]);
    }
    return status;
}

/* ---- amounts ---- */

/* Can the template make a number, by what is outside of its places: "-{total}", "{cents}e-2"? An argument in
 * backquotes may hold a brace. */
static bool is_around_number(struct sl_span text)
{
    bool is_inside = false, is_quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        is_quoted = is_inside && (c == '`' ? !is_quoted : is_quoted);
        if (is_quoted)
            continue;
        if (!is_inside && c != '{' && !strchr("0123456789+-.eE", c))
            return false;
        is_inside = c == '{' || (is_inside && c != '}');
    }
    return true;
}

static enum sl_status read_amount(struct opening *o, const struct member *m, struct aggregate_amount *out)
{
    if (json_is_integer(m->json)) {
        char *text = json_dumps(m->json, JSON_ENCODE_ANY);
        out->constant = keep(o, sl_span_str(text));
        free(text);
        return SL_OK;
    }
    if (!json_is_string(m->json))
        return BAD(o, "%s: expected an integer, or a decimal or template as text", m->path);
    struct sl_span text = sl_opening_text(m->json);
    if (o->base.host->decimal_add(o->base.host->decimal_new(o->base.arena), text, false)) {
        out->constant = keep(o, text);
        return SL_OK;
    }
    if (!memchr(text.ptr, '{', text.len))
        return BAD(o, "%s: \"%.*s\" is not a number; for an attribute's value write \"{%.*s}\"", m->path,
                   SL_ARG(text), SL_ARG(text));
    if (!is_around_number(text))
        return BAD(o,
                   "%s: what is outside of the {place} is not part of a number; an amount is a number or one "
                   "{attribute}",
                   m->path);
    return compile(o, m, &out->value);
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
        *amount = (struct aggregate_amount){.verb = verb, .name = keep(o, sl_span_str(name))};
        struct member m = member_at(i, member, name, value);
        if (!sl_opening_is_name(amount->name))
            return BAD(o, "counters[%zu].%s: an attribute's name is empty, too long, or holds quotes", i,
                       member);
        enum sl_status status = read_amount(o, &m, amount);
        if (status != SL_OK)
            return status;
        o->a->has_extremes = o->a->has_extremes || verb != SL_ADD;
    }
    return SL_OK;
}

/* ---- values that are counted once, and members ---- */

static enum sl_status read_distinct(struct opening *o, size_t i, const json_t *distinct)
{
    struct aggregate_counter *c = &o->a->counters[i];
    const char *name;
    json_t *value;
    if (distinct && (!json_is_object(distinct) || json_object_size(distinct) == 0))
        return BAD(o, "counters[%zu].distinct: expected an object of attributes and templates", i);
    c->distinct = make(o, json_object_size(distinct), sizeof(*c->distinct));
    json_object_foreach((json_t *)distinct, name, value)
    {
        struct aggregate_distinct *d = &c->distinct[c->n_distinct++];
        struct member m = member_at(i, "distinct", name, value);
        d->name = keep(o, sl_span_str(name));
        if (!sl_opening_is_name(d->name))
            return BAD(o, "counters[%zu].distinct: an attribute's name is empty, too long, or holds quotes",
                       i);
        if (!json_is_string(value))
            return BAD(o, "%s: expected a template of the value, as text", m.path);
        enum sl_status status = compile(o, &m, &d->value);
        if (status != SL_OK)
            return status;
        if (!o->base.host->template_uses(d->value.compiled))
            return BAD(o,
                       "%s: has no {place}, so every item has the same value; for an attribute's value write "
                       "\"{%s}\"",
                       m.path, json_string_value(value));
        o->a->has_distinct = true;
    }
    return SL_OK;
}

static enum sl_status read_members(struct opening *o, size_t i, const json_t *members)
{
    struct aggregate_counter *c = &o->a->counters[i];
    struct member m =
        member_at(i, "members", AGGREGATE_MEMBER_BY, json_object_get(members, AGGREGATE_MEMBER_BY));
    if (!members)
        return SL_OK;
    if (!json_is_object(members) || !m.json || json_object_size(members) != 1)
        return BAD(o, "counters[%zu].members: expected {\"by\": a template of the number}", i);
    if (o->a->n_key_names != 2)
        return BAD(o,
                   "counters[%zu].members: its rows are sorted by the table's sort key: give \"key\" the "
                   "partition key and the sort key, in this order, of a table that has both",
                   i);
    c->has_members = o->a->has_members = true;
    c->by.name = SL_LIT("members.by");
    return read_amount(o, &m, &c->by);
}

/* ---- counters ---- */

typedef enum sl_status (*compile_fn)(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                     struct sl_error *error);

/* "where", on the item's plain values; "when", a pattern on the item with its types: compiled from the text
 * as it was written, since jansson's numbers are not exact. */
static enum sl_status read_condition(struct opening *o, const char *path, struct sl_span json,
                                     compile_fn compile_condition, const struct sl_when **out)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_when *compiled = NULL;
    enum sl_status status = compile_condition(o->base.arena, json, &compiled, &why);
    *out = compiled;
    return status == SL_OK ? SL_OK : sl_opening_bad_inside(&o->base, path, &why);
}

static enum sl_status read_conditions(struct opening *o, size_t i, const json_t *counter)
{
    struct aggregate_counter *c = &o->a->counters[i];
    const struct sl_host *host = o->base.host;
    struct sl_span written = sl_opening_written(host->option_text(o->base.route, "counters"), i);
    enum sl_status status = SL_OK;
    const char *name;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)counter, name, value)
    {
        struct sl_span json = sl_opening_written(written, n++);
        bool is_where = strcmp(name, "where") == 0;
        char path[64];
        snprintf(path, sizeof(path), "counters[%zu].%s", i, name);
        if (status == SL_OK && (is_where || strcmp(name, "when") == 0))
            status = read_condition(o, path, json, is_where ? host->where_compile : host->pattern_compile,
                                    is_where ? &c->where : &c->when);
    }
    return status;
}

static enum sl_status check_members(struct opening *o, size_t i, const json_t *counter)
{
    static const char *const known[] = {"key",     "add",         "where",       "when", "distinct",
                                        "members", "running_max", "running_min", NULL};
    const char *name;
    json_t *value;
    if (!json_is_object(counter))
        return BAD(o, "counters[%zu]: expected an object", i);
    json_object_foreach((json_t *)counter, name, value)
    {
        if (!known[sl_text_index(sl_span_str(name), known)])
            return BAD(
                o,
                "counters[%zu].%s: unknown member; known are key, add, where, when, distinct, members, "
                "running_max and running_min",
                i, name);
    }
    return SL_OK;
}

static enum sl_status read_counter(struct opening *o, size_t i, const json_t *counter)
{
    struct aggregate_counter *c = &o->a->counters[i];
    enum sl_status status = check_members(o, i, counter);
    if (status == SL_OK)
        status = read_key(o, i, json_object_get(counter, "key"));
    if (status == SL_OK)
        status = read_conditions(o, i, counter);
    size_t n = json_object_size(json_object_get(counter, "add")) +
               json_object_size(json_object_get(counter, "running_max")) +
               json_object_size(json_object_get(counter, "running_min"));
    c->amounts = make(o, n, sizeof(*c->amounts));
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "add", SL_ADD);
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "running_max", SL_SET_MAX);
    if (status == SL_OK)
        status = read_amounts(o, i, counter, "running_min", SL_SET_MIN);
    if (status == SL_OK)
        status = read_distinct(o, i, json_object_get(counter, "distinct"));
    if (status == SL_OK)
        status = read_members(o, i, json_object_get(counter, "members"));
    if (status == SL_OK && c->n_amounts == 0 && c->n_distinct == 0 && !c->has_members)
        status = BAD(o, "counters[%zu].add: missing; it says what is counted", i);
    return status;
}

static enum sl_status read_counters(struct opening *o)
{
    struct aggregate *a = o->a;
    json_t *list = sl_opening_json(&o->base, "counters"), *counter;
    size_t i;
    enum sl_status status = SL_OK;
    a->n_counters = json_array_size(list);
    if (a->n_counters < 1 || a->n_counters > AGGREGATE_COUNTERS)
        status = BAD(o, "counters: expected a list of 1 to %d counters", AGGREGATE_COUNTERS);
    else
        a->counters = make(o, a->n_counters, sizeof(*a->counters));
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
        return BAD(o, "ledger: expected an object with table, key or name");
    json_object_foreach((json_t *)ledger, name, value)
    {
        struct sl_span text = sl_opening_text(value);
        if (!sl_opening_is_name(text))
            return BAD(o, "ledger.%s: expected a text without quotes", name);
        if (strcmp(name, "table") == 0)
            a->ledger_table = keep(o, text);
        else if (strcmp(name, "name") == 0)
            a->name = keep(o, text);
        else if (strcmp(name, "key") == 0)
            a->ledger_keys[0] = keep(o, text);
        else
            return BAD(o, "ledger.%s: unknown member; known are table, key and name", name);
    }
    return SL_OK;
}

/* A row's key and its own attributes need different names. `at` is left out where its name is taken. */
static enum sl_status check_ledger_keys(struct opening *o)
{
    struct aggregate *a = o->a;
    a->has_at = true;
    for (size_t i = 0; i < a->n_ledger_keys; i++) {
        struct sl_span name = a->ledger_keys[i];
        bool is_taken = sl_span_is(name, AGGREGATE_ROW_ORDER) || sl_span_is(name, AGGREGATE_ROW_SUMS);
        if (is_taken && a->has_ledger && !a->per_event)
            return BAD(o,
                       "ledger: its rows have an attribute %.*s of their own, so it cannot be their key too: "
                       "give the ledger a table with another key",
                       SL_ARG(name));
        a->has_at = a->has_at && !sl_span_is(name, AGGREGATE_ROW_AT);
    }
    return SL_OK;
}

/* In the totals' table the ledger's rows have the key attributes of the totals, all with the same text. */
static enum sl_status read_ledger(struct opening *o)
{
    struct aggregate *a = o->a;
    json_t *ledger = sl_opening_json(&o->base, "ledger");
    enum sl_status status = read_ledger_members(o, ledger);
    json_decref(ledger);
    if (status != SL_OK)
        return status;
    a->n_ledger_keys = 1;
    if (a->ledger_table.ptr) {
        a->ledger_keys[0] = a->ledger_keys[0].ptr ? a->ledger_keys[0] : SL_LIT("PK");
        return check_ledger_keys(o);
    }
    if (a->ledger_keys[0].ptr)
        return BAD(o, "ledger.key: only for a ledger with its own table; set ledger.table too");
    a->n_ledger_keys = a->n_key_names;
    memcpy(a->ledger_keys, a->key_names, sizeof(a->ledger_keys));
    return check_ledger_keys(o);
}

/* A removal that is kept adds the old image. When it is delivered again its row has to be there. */
static int64_t forget_days(const struct aggregate *a, int64_t days)
{
    if (days < 0)
        return a->per_event ? REPEAT_DAYS : 0;
    bool is_short = days > 0 && days < REPEAT_DAYS && !a->per_event && a->expired != SL_EXPIRED_APPLY;
    return is_short ? REPEAT_DAYS : days;
}

enum sl_status aggregate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error)
{
    struct sl_arena *arena = host->route_arena(route);
    struct aggregate *a = host->alloc(arena, sizeof(*a));
    struct opening o = {{host, route, arena, error}, a};
    *a = (struct aggregate){.host = host,
                            .route = route,
                            .table = host->option_table(route, "to"),
                            .per_event = sl_opening_is(&o.base, "per", "event"),
                            .has_ledger = sl_opening_is(&o.base, "mode", "exact"),
                            .marks_own = sl_opening_is(&o.base, "own_rows", "mark"),
                            .deletes_empty = sl_opening_is(&o.base, "empty", "delete"),
                            .epoch = host->option_integer(route, "epoch"),
                            .shards = host->option_integer(route, "shards"),
                            .expires_attribute = host->option_text(route, "expires_attribute"),
                            .name = sl_span_str(host->route_name(route)),
                            .missing = sl_render_missing(host, route),
                            .expired = sl_expired_option(host, route),
                            .events = host->route_events(route)};
    *self = a;
    sl_loop_init(&a->loop, host->option_text(route, "to"));
    aggregate_source_init(a, arena);
    a->forget_s = 86400 * forget_days(a, host->option_integer(route, "forget_after_days"));
    if ((a->table->can & (SL_TABLE_GROUPS | SL_TABLE_UPDATES)) != (SL_TABLE_GROUPS | SL_TABLE_UPDATES))
        return BAD(&o, "to: this target has no transactions, and counters need them: keep the totals in a "
                       "dynamodb:, postgres: or sqlite: table");
    if (!sl_opening_is_name(a->expires_attribute))
        return BAD(&o, "expires_attribute: expected the name of an attribute");
    enum sl_status status = read_counters(&o);
    if (status == SL_OK)
        status = read_ledger(&o);
    return status == SL_OK ? aggregate_check(a, error) : status;
}
