/* Rows made of items: what is copied, left out, renamed, and made by templates. */
#include "handlers/builtin/toolkit/reshape.h"

#include "base/array.h"

#include <stdio.h>

/* A template that looks at more than the item makes another row of each change; then no audit can know which
 * one is right. */
#define USES_ALLOWED (SL_USES_ITEM | SL_USES_KEYS)

/* ---- rules ---- */

static struct sl_reshape_rule *rule_for(const struct sl_opening *o, struct sl_reshape *s, struct sl_span name)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (sl_span_eq(s->rules[i].name, name))
            return &s->rules[i];
    SL_PUSH_IN(o->arena, s->rules, s->n_rules, s->room_rules) =
        (struct sl_reshape_rule){.name = sl_opening_keep(o, name)};
    return &s->rules[s->n_rules - 1];
}

/* A plain "a.b" also names the attribute that is itself called so: until 1.3 it named that one alone, and
 * what was left out then has to stay left out. */
static enum sl_status read_drop(const struct sl_opening *o, struct sl_reshape *s, size_t i,
                                struct sl_span path)
{
    const char *why = sl_prune_add(o->host, o->arena, &s->dropped, path);
    if (why)
        return SL_OPENING_BAD(o, "drop[%zu]: %s", i, why);
    if (!memchr(path.ptr, '`', path.len))
        rule_for(o, s, path)->is_dropped = true;
    for (const struct sl_prune *step = s->dropped.below; step; step = step->next) {
        struct sl_reshape_rule *rule = rule_for(o, s, step->name);
        rule->is_dropped = rule->is_dropped || step->is_left_out;
        rule->prune = step;
    }
    return SL_OK;
}

static enum sl_status read_names(const struct sl_opening *o, struct sl_reshape *s, const char *option)
{
    json_t *list = sl_opening_json(o, option), *name;
    enum sl_status status = SL_OK;
    size_t i;
    if (list && !json_is_array(list))
        status = SL_OPENING_BAD(o, "%s: expected a list of attribute names", option);
    json_array_foreach(list, i, name)
    {
        if (sl_opening_text(name).len == 0) {
            status = SL_OPENING_BAD(o, "%s[%zu]: expected an attribute name", option, i);
            break;
        }
        if (strcmp(option, "drop") == 0)
            status = read_drop(o, s, i, sl_opening_text(name));
        else
            rule_for(o, s, sl_opening_text(name))->is_kept = true;
        if (status != SL_OK)
            break;
    }
    json_decref(list);
    return status;
}

static enum sl_status read_renames(const struct sl_opening *o, struct sl_reshape *s)
{
    json_t *object = sl_opening_json(o, "rename"), *value;
    enum sl_status status = SL_OK;
    const char *name;
    if (object && !json_is_object(object))
        status = SL_OPENING_BAD(o, "rename: expected an object of old and new attribute names");
    json_object_foreach(object, name, value)
    {
        if (!name[0] || !sl_opening_is_name(sl_opening_text(value))) {
            status =
                SL_OPENING_BAD(o, "rename.%s: expected an attribute name, and the name that it gets", name);
            break;
        }
        rule_for(o, s, sl_span_str(name))->renamed = sl_opening_keep(o, sl_opening_text(value));
        s->names_bytes += json_string_length(value) + 2;
    }
    json_decref(object);
    return status;
}

/* ---- sets ---- */

static enum sl_status read_set(const struct sl_opening *o, struct sl_reshape_set *set, const char *option,
                               const char *name, const json_t *value)
{
    char where[300];
    *set = (struct sl_reshape_set){.name = sl_opening_keep(o, sl_span_str(name))};
    if (!sl_opening_is_name(set->name) || !json_is_string(value))
        return SL_OPENING_BAD(o, "%s.%s: expected an attribute name and a template", option, name);
    snprintf(where, sizeof(where), "%s.%s", option, name);
    enum sl_status status = sl_opening_template(o, where, sl_opening_text(value), &set->value);
    if (status != SL_OK)
        return status;
    if (o->host->template_uses(set->value.compiled) & ~USES_ALLOWED)
        return SL_OPENING_BAD(o,
                              "%s.%s: the template names the time or the event of a change, the old image, "
                              "or the table; what is written is made of the source's items alone",
                              option, name);
    return SL_OK;
}

enum sl_status sl_reshape_open_sets(const struct sl_opening *o, struct sl_reshape *s, const char *option)
{
    json_t *object = sl_opening_json(o, option), *value;
    const char *name;
    enum sl_status status = SL_OK;
    s->option = option;
    if (object && (!json_is_object(object) || json_object_size(object) == 0))
        status = SL_OPENING_BAD(o, "%s: expected an object of attribute names and templates", option);
    if (status == SL_OK && object)
        s->sets = o->host->alloc(o->arena, json_object_size(object) * sizeof(*s->sets));
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_set(o, &s->sets[s->n_sets++], option, name, value);
    }
    json_decref(object);
    return status;
}

enum sl_status sl_reshape_open(const struct sl_opening *o, struct sl_reshape *s)
{
    s->is_projected = o->host->option_text(o->route, "project").len > 0;
    enum sl_status status = read_names(o, s, "project");
    status = status == SL_OK ? read_names(o, s, "drop") : status;
    status = status == SL_OK ? read_renames(o, s) : status;
    return status == SL_OK ? sl_reshape_open_sets(o, s, "set") : status;
}

/* ---- places ---- */

static enum sl_status take_set_places(const struct sl_opening *o, struct sl_reshape *s,
                                      const struct sl_span *keys, size_t n_keys)
{
    for (size_t i = 0; i < s->n_sets; i++) {
        struct sl_span name = s->sets[i].name;
        for (size_t k = 0; k < n_keys; k++)
            if (sl_span_eq(keys[k], name))
                return SL_OPENING_BAD(o, "%s.%.*s: \"key\" makes this attribute", s->option, SL_ARG(name));
        for (size_t k = 0; k < s->n_rules; k++)
            if (sl_span_eq(s->rules[k].renamed, name))
                return SL_OPENING_BAD(o, "set.%.*s: rename.%.*s makes this attribute", SL_ARG(name),
                                      SL_ARG(s->rules[k].name));
        struct sl_reshape_rule *taken = rule_for(o, s, name);
        taken->is_dropped = taken->is_dropped || !taken->renamed.ptr;
    }
    return SL_OK;
}

enum sl_status sl_reshape_take_places(const struct sl_opening *o, struct sl_reshape *s,
                                      const struct sl_span *keys, size_t n_keys)
{
    uint32_t n = s->n_rules;
    for (uint32_t i = 0; i < n; i++) {
        struct sl_span renamed = s->rules[i].renamed;
        if (!renamed.ptr)
            continue;
        if (s->rules[i].is_dropped)
            return SL_OPENING_BAD(o, "rename.%.*s: the attribute is in drop, too", SL_ARG(s->rules[i].name));
        for (uint32_t k = 0; k < i; k++)
            if (sl_span_eq(s->rules[k].renamed, renamed))
                return SL_OPENING_BAD(o, "rename: two attributes become %.*s", SL_ARG(renamed));
        struct sl_reshape_rule *taken = rule_for(o, s, renamed);
        taken->is_dropped = taken->is_dropped || !taken->renamed.ptr;
    }
    for (size_t i = 0; i < n_keys; i++)
        rule_for(o, s, keys[i])->is_dropped = true;
    return take_set_places(o, s, keys, n_keys);
}

/* ---- items ---- */

bool sl_reshape_is_plain(const struct sl_reshape *s)
{
    return s->n_rules == 0 && !s->is_projected;
}

const struct sl_reshape_rule *sl_reshape_rule(const struct sl_reshape *s, struct sl_span name)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (sl_span_eq(s->rules[i].name, name))
            return &s->rules[i];
    return NULL;
}

bool sl_reshape_is_left_out(const struct sl_reshape *s, const struct sl_reshape_rule *rule)
{
    return (rule && rule->is_dropped) || (s->is_projected && !(rule && rule->is_kept));
}

struct sl_span sl_reshape_name(const struct sl_reshape_rule *rule, struct sl_span name)
{
    return rule && rule->renamed.ptr ? rule->renamed : name;
}

void sl_reshape_put(const struct sl_host *host, struct sl_arena *arena, const struct sl_reshape_rule *rule,
                    struct sl_span name, struct sl_value value, struct sl_text_object *o)
{
    if (!rule || !rule->prune) {
        sl_text_object_value(o, host, sl_reshape_name(rule, name), value);
        return;
    }
    sl_text_object_name(o, sl_reshape_name(rule, name));
    o->at = sl_prune_put(host, arena, rule->prune, value, o->at);
}

enum sl_status sl_reshape_make(const struct sl_host *host, const struct sl_reshape *s,
                               const struct sl_record *r, struct sl_value item, struct sl_arena *arena,
                               struct sl_reshape_made *out, struct sl_error *error)
{
    *out = (struct sl_reshape_made){.bytes = 0};
    if (s->n_sets == 0)
        return SL_OK;
    out->values = host->alloc(arena, s->n_sets * sizeof(*out->values));
    for (size_t i = 0; i < s->n_sets; i++) {
        struct sl_error why = SL_NO_ERROR;
        out->values[i] = host->template_item(s->sets[i].value.compiled, r, item, arena, &why);
        if (why.status != SL_OK)
            return host->fail(error, SL_REJECT, why.code, "%s.%.*s: %s", s->option, SL_ARG(s->sets[i].name),
                              why.text);
        out->bytes += s->sets[i].name.len + out->values[i].raw.len + SL_TEXT_MEMBER_BYTES;
    }
    return SL_OK;
}

void sl_reshape_put_made(const struct sl_host *host, const struct sl_reshape *s,
                         const struct sl_reshape_made *made, struct sl_text_object *o)
{
    for (size_t i = 0; i < s->n_sets; i++)
        if (made->values[i].type != SL_NONE)
            sl_text_object_value(o, host, s->sets[i].name, made->values[i]);
}
