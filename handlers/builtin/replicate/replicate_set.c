/* "set": attributes of the replica's items that templates make of the source's. */
#include "handlers/builtin/replicate/replicate_set.h"

#include <stdio.h>

/* A template that looks at more than the item makes another item of each change; then no audit can know which
 * one is right. */
#define USES_ALLOWED (SL_USES_ITEM | SL_USES_KEYS)

static enum sl_status read_set(const struct sl_opening *o, struct replicate *p, const char *name,
                               const json_t *value)
{
    struct replicate_set *set = &p->sets[p->n_sets++];
    char where[300];
    *set = (struct replicate_set){.name = sl_opening_keep(o, sl_span_str(name))};
    if (!sl_opening_is_name(set->name) || !json_is_string(value))
        return SL_OPENING_BAD(o, "set.%s: expected an attribute name and a template", name);
    snprintf(where, sizeof(where), "set.%s", name);
    enum sl_status status = sl_opening_template(o, where, sl_opening_text(value), &set->value);
    if (status != SL_OK)
        return status;
    if (o->host->template_uses(set->value.compiled) & ~USES_ALLOWED)
        return SL_OPENING_BAD(
            o,
            "set.%s: the template names the time or the event of a change, the old image, or "
            "the table; the replica's items are made of the source's items alone",
            name);
    return SL_OK;
}

enum sl_status replicate_set_open(const struct sl_opening *o, struct replicate *p)
{
    json_t *object = sl_opening_json(o, "set"), *value;
    const char *name;
    enum sl_status status = SL_OK;
    if (object && (!json_is_object(object) || json_object_size(object) == 0))
        status = SL_OPENING_BAD(o, "set: expected an object of attribute names and templates");
    if (status == SL_OK && object)
        p->sets = o->host->alloc(o->arena, json_object_size(object) * sizeof(*p->sets));
    json_object_foreach(object, name, value)
    {
        if (status == SL_OK)
            status = read_set(o, p, name, value);
    }
    json_decref(object);
    return status;
}

/* Only a record shows which attributes are the source's key. */
enum sl_status replicate_set_check(const struct replicate *p, struct sl_value keys, struct sl_error *error)
{
    for (size_t i = 0; i < p->n_sets && p->n_keys == 0; i++) {
        struct sl_span name = p->sets[i].name;
        if (p->host->value_member(keys, name).type == SL_NONE || replicate_is_renamed(p, name))
            continue;
        return p->host->fail(error, SL_FATAL, "SetOnKey",
                             "set.%.*s: it is an attribute of the items' key, which \"set\" cannot make; use "
                             "\"key\", or another name",
                             SL_ARG(name));
    }
    return SL_OK;
}

enum sl_status replicate_set_make(const struct replicate *p, const struct replicate_change *change,
                                  struct sl_arena *arena, struct replicate_made *out, struct sl_error *error)
{
    *out = (struct replicate_made){.bytes = 0};
    if (p->n_sets == 0)
        return SL_OK;
    out->values = p->host->alloc(arena, p->n_sets * sizeof(*out->values));
    for (size_t i = 0; i < p->n_sets; i++) {
        struct sl_error why = SL_NO_ERROR;
        out->values[i] = p->host->template_item(p->sets[i].value.compiled, change->record,
                                                change->image.value, arena, &why);
        if (why.status != SL_OK)
            return p->host->fail(error, SL_REJECT, why.code, "set.%.*s: %s", SL_ARG(p->sets[i].name),
                                 why.text);
        out->bytes += p->sets[i].name.len + out->values[i].raw.len + REPLICATE_MEMBER_BYTES;
    }
    return SL_OK;
}
