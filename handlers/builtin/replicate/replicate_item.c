/* The replica's keys and items. An image that is not reshaped is copied as it came, with the guard put in
 * front. Otherwise its top-level attributes are written one after the other, each value as it came. */
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_sign.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- keys ---- */

static enum sl_status key_from_templates(const struct replicate *p, const struct sl_record *r,
                                         struct sl_arena *arena, struct sl_span *key, struct sl_error *error)
{
    struct sl_render in = {.host = p->host, .arena = arena, .record = r, .image = SL_KEYS};
    struct sl_span names[SL_TEXT_KEY_ATTRIBUTES], values[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < p->n_keys; i++) {
        names[i] = p->keys[i].name;
        enum sl_status status = sl_render_key(&in, &p->keys[i].value, &values[i], error);
        if (status != SL_OK)
            return status;
    }
    *key = sl_text_key(p->host, arena, names, values, p->n_keys);
    return SL_OK;
}

static struct sl_span renamed_key(const struct replicate *p, struct sl_value keys, struct sl_arena *arena)
{
    struct sl_text_object o = sl_text_object_begin(p->host, arena, keys.raw.len + p->shape.names_bytes);
    struct sl_span name;
    struct sl_value value;
    for (struct sl_iter iter = p->host->value_iter(keys); p->host->value_next(&iter, &name, &value);) {
        const struct sl_reshape_rule *rule =
            sl_reshape_rule(&p->shape, sl_text_plain_name(p->host, name, arena));
        sl_text_object_value(&o, p->host, sl_reshape_name(rule, name), value);
    }
    return sl_text_object_end(&o);
}

/* Only a record shows which attributes are the source's key. */
static enum sl_status check_sets(const struct replicate *p, struct sl_value keys, struct sl_error *error)
{
    for (size_t i = 0; i < p->shape.n_sets && p->n_keys == 0; i++) {
        struct sl_span name = p->shape.sets[i].name;
        const struct sl_reshape_rule *rule = sl_reshape_rule(&p->shape, name);
        if (p->host->value_member(keys, name).type == SL_NONE || rule->renamed.ptr)
            continue;
        return p->host->fail(error, SL_FATAL, "SetOnKey",
                             "set.%.*s: it is an attribute of the items' key, which \"set\" cannot make; use "
                             "\"key\", or another name",
                             SL_ARG(name));
    }
    return SL_OK;
}

enum sl_status replicate_key(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                             struct sl_span *key, struct sl_error *error)
{
    if (p->n_keys > 0)
        return key_from_templates(p, r, arena, key, error);
    struct sl_value keys = p->host->record_image(r, SL_KEYS);
    enum sl_status status = check_sets(p, keys, error);
    if (status != SL_OK)
        return status;
    *key = p->shape.names_bytes > 0 ? renamed_key(p, keys, arena) : keys.raw;
    return SL_OK;
}

/* ---- items ---- */

/* A key that templates make has no attributes of the source's. */
static bool is_key(const struct replicate *p, struct sl_value keys, struct sl_span name)
{
    return p->n_keys == 0 && p->host->value_member(keys, name).type != SL_NONE;
}

/* Attributes that a replicate put there belong to the item they are on. */
static bool is_ours(const struct replicate *p, const struct replicate_revival *revival, struct sl_span name)
{
    if (p->guard != REPLICATE_INLINE)
        return false;
    return sl_span_eq(name, p->guard_attribute) || sl_span_eq(name, p->write_attribute) ||
           (revival->guard.ptr && sl_span_eq(name, p->deleted_attribute)) ||
           (revival->expires.ptr && sl_span_eq(name, p->ttl_attribute));
}

static bool is_left_out(const struct replicate *p, const struct replicate_change *change, struct sl_span name,
                        const struct sl_reshape_rule *rule)
{
    struct sl_value keys = p->host->record_image(change->record, SL_KEYS);
    if (is_ours(p, &change->image.revival, name))
        return true;
    return sl_reshape_is_left_out(&p->shape, rule) && !is_key(p, keys, name);
}

static void add_attributes(const struct replicate *p, const struct replicate_change *change,
                           struct sl_arena *arena, struct sl_text_object *o)
{
    struct sl_value value;
    struct sl_span raw_name;
    struct sl_iter iter = p->host->value_iter(change->image.value);
    while (p->host->value_next(&iter, &raw_name, &value)) {
        struct sl_span name = sl_text_plain_name(p->host, raw_name, arena);
        const struct sl_reshape_rule *rule = sl_reshape_rule(&p->shape, name);
        if (!is_left_out(p, change, name, rule))
            sl_reshape_put(p->host, arena, rule, raw_name, value, o);
    }
}

static bool carries(const struct replicate *p, const struct replicate_change *change, struct sl_span name)
{
    const struct replicate_image *image = &change->image;
    if (image->is_read_back) /* it has no index */
        return p->host->value_member(image->value, name).type != SL_NONE;
    return image->may_carry && p->host->record_attribute(change->record, SL_NEW_IMAGE, name).type != SL_NONE;
}

/* Each attribute that templates make, of the key too, has a rule. */
static bool is_reshaped(const struct replicate *p, const struct replicate_change *change)
{
    if (change->is_shaped)
        return false;
    return !sl_reshape_is_plain(&p->shape) ||
           (p->guard == REPLICATE_INLINE &&
            (carries(p, change, p->guard_attribute) || carries(p, change, p->write_attribute)));
}

struct sl_span replicate_held_name(const struct replicate *p, struct sl_span name)
{
    const struct sl_reshape_rule *rule = sl_reshape_rule(&p->shape, name);
    bool is_copied = p->n_keys == 0 || !sl_reshape_is_left_out(&p->shape, rule);
    return is_copied ? sl_reshape_name(rule, name) : (struct sl_span){NULL, 0};
}

static enum sl_status check_size(const struct replicate *p, struct sl_span item, struct sl_error *error)
{
    /* The text is never shorter than the size by DynamoDB's formula. */
    if (p->guard != REPLICATE_INLINE || item.len <= p->table->max_item_bytes)
        return SL_OK;
    struct sl_value image = {.type = SL_M, .raw = item};
    size_t bytes = p->host->item_bytes(image);
    size_t guard_bytes =
        p->guard_attribute.len + REPLICATE_GUARD_BYTES + p->write_attribute.len + REPLICATE_SIGNATURE_BYTES;
    if (bytes <= p->table->max_item_bytes || bytes - guard_bytes > p->table->max_item_bytes)
        return SL_OK;
    return p->host->fail(
        error, SL_REJECT, "ItemTooLargeForGuard",
        "the item has %zu bytes, and there is no room for its guard and signature of %zu bytes: use "
        "\"guard\": {\"table\": ...}",
        bytes - guard_bytes, guard_bytes);
}

static void add_guard(const struct replicate *p, const struct sl_order *guard, struct sl_text_object *o)
{
    sl_text_object_name(o, p->guard_attribute);
    o->at = sl_text_put(o->at, guard->value);
}

/* ---- signed objects: the signature goes in front of what it signs ---- */

static size_t room_for_signature(const struct replicate *p)
{
    return p->write_attribute.len + REPLICATE_SIGNATURE_BYTES + REPLICATE_REVIVED_BYTES +
           2 * SL_TEXT_MEMBER_BYTES;
}

static struct sl_text_object signed_begin(const struct replicate *p, struct sl_arena *arena, size_t room)
{
    size_t front = room_for_signature(p);
    struct sl_text_object o = sl_text_object_begin(p->host, arena, front + room);
    o.begin += front;
    *o.begin = '{';
    o.at = o.begin + 1;
    return o;
}

static struct sl_span signed_end(const struct replicate *p, const struct replicate_change *change,
                                 struct sl_text_object *o)
{
    struct sl_span item = sl_text_object_end(o);
    char *front = o->begin - room_for_signature(p);
    struct sl_text_object member = {front, front + 1};
    sl_text_object_name(&member, p->write_attribute);
    member.at = sl_text_put(member.at, SL_LIT("{\"S\":\""));
    member.at = replicate_sign(p, change, item, member.at);
    member.at = sl_text_put(member.at, SL_LIT("\"},"));
    /* Up to the item, whose brace the comma replaces. */
    size_t len = (size_t)(member.at - front);
    char *begin = o->begin + 1 - len;
    *front = '{';
    memmove(begin, front, len);
    return (struct sl_span){begin, item.len - 1 + len};
}

enum sl_status replicate_item(const struct replicate *p, const struct replicate_change *change,
                              struct sl_arena *arena, struct sl_span *item, struct sl_error *error)
{
    struct sl_span image = change->image.value.raw;
    bool reshaped = is_reshaped(p, change), is_inline = p->guard == REPLICATE_INLINE;
    struct sl_reshape_made made = {.bytes = 0};
    *item = image;
    if (!is_inline && !reshaped)
        return SL_OK;
    enum sl_status status = reshaped ? sl_reshape_make(p->host, &p->shape, change->record,
                                                       change->image.value, arena, &made, error)
                                     : SL_OK;
    if (status != SL_OK)
        return status;
    size_t room = image.len + made.bytes + p->shape.names_bytes + change->key.len + p->guard_attribute.len +
                  change->guard.value.len + 2 * SL_TEXT_MEMBER_BYTES;
    struct sl_text_object o =
        is_inline ? signed_begin(p, arena, room) : sl_text_object_begin(p->host, arena, room);
    if (is_inline)
        add_guard(p, &change->guard, &o);
    if (p->n_keys > 0 && !change->is_shaped)
        sl_text_object_members(&o, change->key);
    if (reshaped) {
        add_attributes(p, change, arena, &o);
        sl_reshape_put_made(p->host, &p->shape, &made, &o);
    } else {
        sl_text_object_members(&o, image);
    }
    *item = is_inline ? signed_end(p, change, &o) : sl_text_object_end(&o);
    return check_size(p, *item, error);
}

enum sl_status replicate_shape(const struct replicate *p, const struct replicate_change *change,
                               struct sl_arena *arena, struct sl_span *item, struct sl_error *error)
{
    struct sl_span image = change->image.value.raw;
    struct sl_reshape_made made;
    *item = image;
    if (sl_reshape_is_plain(&p->shape))
        return SL_OK;
    enum sl_status status =
        sl_reshape_make(p->host, &p->shape, change->record, change->image.value, arena, &made, error);
    if (status != SL_OK)
        return status;
    size_t room = image.len + made.bytes + p->shape.names_bytes + change->key.len + 2 * SL_TEXT_MEMBER_BYTES;
    struct sl_text_object o = sl_text_object_begin(p->host, arena, room);
    if (p->n_keys > 0)
        sl_text_object_members(&o, change->key);
    add_attributes(p, change, arena, &o);
    sl_reshape_put_made(p->host, &p->shape, &made, &o);
    *item = sl_text_object_end(&o);
    return SL_OK;
}

/* ---- tombstones ---- */

static void add_tombstone(const struct replicate *p, struct sl_span key, const struct sl_order *guard,
                          struct sl_span expires, struct sl_text_object *o)
{
    sl_text_object_members(o, key);
    add_guard(p, guard, o);
    sl_text_object_name(o, p->deleted_attribute);
    o->at = sl_text_put(o->at, SL_LIT("{\"BOOL\":true}"));
    sl_text_object_name(o, p->ttl_attribute);
    o->at = sl_text_put(o->at, SL_LIT("{\"N\":\""));
    o->at = sl_text_put(o->at, expires);
    o->at = sl_text_put(o->at, SL_LIT("\"}"));
}

static size_t tombstone_bytes(const struct replicate *p, struct sl_span key, const struct sl_order *guard,
                              struct sl_span expires)
{
    return key.len + p->guard_attribute.len + guard->value.len + p->deleted_attribute.len +
           p->ttl_attribute.len + expires.len + 4 * SL_TEXT_MEMBER_BYTES;
}

struct sl_span replicate_tombstone_bare(const struct replicate *p, struct sl_span key,
                                        const struct sl_order *guard, struct sl_span expires,
                                        struct sl_arena *arena)
{
    struct sl_text_object o = sl_text_object_begin(p->host, arena, tombstone_bytes(p, key, guard, expires));
    add_tombstone(p, key, guard, expires, &o);
    return sl_text_object_end(&o);
}

struct sl_span replicate_tombstone(const struct replicate *p, const struct replicate_change *change,
                                   struct sl_arena *arena)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%" PRId64, p->host->wall_ns(p->route) / 1000000000 + p->tombstone_s);
    struct sl_span expires = sl_span_str(digits);
    struct sl_text_object o =
        signed_begin(p, arena, tombstone_bytes(p, change->key, &change->guard, expires));
    add_tombstone(p, change->key, &change->guard, expires, &o);
    return signed_end(p, change, &o);
}

struct sl_span replicate_without(const struct replicate *p, struct sl_value item, struct sl_span name,
                                 struct sl_arena *arena)
{
    struct sl_text_object o = sl_text_object_begin(p->host, arena, item.raw.len + SL_TEXT_MEMBER_BYTES);
    struct sl_iter iter = p->host->value_iter(item);
    struct sl_span raw_name;
    struct sl_value value;
    while (p->host->value_next(&iter, &raw_name, &value)) {
        if (sl_span_eq(sl_text_plain_name(p->host, raw_name, arena), name))
            continue;
        sl_text_object_name(&o, raw_name);
        o.at = p->host->value_put(o.at, value);
    }
    return sl_text_object_end(&o);
}
