/* The replica's keys and items. An image that is not reshaped is copied as it came, with the guard put in
 * front. Otherwise its top-level attributes are written one after the other, each value as it came. */
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_set.h"
#include "handlers/builtin/replicate/replicate_sign.h"

#include <inttypes.h>
#include <stdio.h>

struct sl_span replicate_plain_name(const struct replicate *p, struct sl_span name, struct sl_arena *arena)
{
    return memchr(name.ptr, '\\', name.len) ? p->host->json_unquote(arena, name) : name;
}

/* ---- writing ---- */

/* An object's JSON while it is written, in memory that was made large enough. */
struct object {
    char *begin, *at;
};

static struct object object_begin(const struct replicate *p, struct sl_arena *arena, size_t room)
{
    char *begin = p->host->alloc(arena, room);
    *begin = '{';
    return (struct object){begin, begin + 1};
}

static void add_text(struct object *o, struct sl_span text)
{
    o->at = sl_text_put(o->at, text);
}

static void add_comma(struct object *o)
{
    if (o->at > o->begin + 1)
        *o->at++ = ',';
}

static void add_name(struct object *o, struct sl_span name)
{
    add_comma(o);
    *o->at++ = '"';
    add_text(o, name);
    add_text(o, SL_LIT("\":"));
}

static struct sl_span object_end(struct object *o)
{
    *o->at++ = '}';
    return (struct sl_span){o->begin, (size_t)(o->at - o->begin)};
}

/* ---- keys ---- */

static const struct replicate_rule *rule_of(const struct replicate *p, struct sl_span name)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (sl_span_eq(p->rules[i].name, name))
            return &p->rules[i];
    return NULL;
}

bool replicate_is_renamed(const struct replicate *p, struct sl_span name)
{
    const struct replicate_rule *rule = rule_of(p, name);
    return rule && rule->renamed.ptr;
}

static size_t renames_bytes(const struct replicate *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        n += p->rules[i].renamed.len + 2;
    return n;
}

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

/* The name of an attribute on the replica, as it is written in JSON. */
static struct sl_span new_name(const struct replicate_rule *rule, struct sl_span raw_name)
{
    return rule && rule->renamed.ptr ? rule->renamed : raw_name;
}

static struct sl_span renamed_key(const struct replicate *p, struct sl_value keys, struct sl_arena *arena)
{
    struct object o = object_begin(p, arena, keys.raw.len + renames_bytes(p));
    struct sl_span name;
    struct sl_value value;
    for (struct sl_iter iter = p->host->value_iter(keys); p->host->value_next(&iter, &name, &value);) {
        add_name(&o, new_name(rule_of(p, replicate_plain_name(p, name, arena)), name));
        o.at = p->host->value_put(o.at, value);
    }
    return object_end(&o);
}

enum sl_status replicate_key(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                             struct sl_span *key, struct sl_error *error)
{
    if (p->n_keys > 0)
        return key_from_templates(p, r, arena, key, error);
    struct sl_value keys = p->host->record_image(r, SL_KEYS);
    enum sl_status status = replicate_set_check(p, keys, error);
    if (status != SL_OK)
        return status;
    *key = renames_bytes(p) > 0 ? renamed_key(p, keys, arena) : keys.raw;
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
                        const struct replicate_rule *rule)
{
    struct sl_value keys = p->host->record_image(change->record, SL_KEYS);
    if (is_ours(p, &change->image.revival, name))
        return true;
    if (rule && rule->is_dropped && !is_key(p, keys, name))
        return true;
    return p->is_projected && !(rule && rule->is_kept) && !is_key(p, keys, name);
}

static void add_attributes(const struct replicate *p, const struct replicate_change *change,
                           struct sl_arena *arena, struct object *o)
{
    struct sl_value value;
    struct sl_span raw_name;
    struct sl_iter iter = p->host->value_iter(change->image.value);
    while (p->host->value_next(&iter, &raw_name, &value)) {
        struct sl_span name = replicate_plain_name(p, raw_name, arena);
        const struct replicate_rule *rule = rule_of(p, name);
        if (is_left_out(p, change, name, rule))
            continue;
        add_name(o, new_name(rule, raw_name));
        o->at = rule && rule->prune ? sl_prune_put(p->host, arena, rule->prune, value, o->at)
                                    : p->host->value_put(o->at, value);
    }
}

static void add_sets(const struct replicate *p, const struct replicate_made *made, struct object *o)
{
    for (size_t i = 0; i < p->n_sets; i++)
        if (made->values[i].type != SL_NONE) {
            add_name(o, p->sets[i].name);
            o->at = p->host->value_put(o->at, made->values[i]);
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
    return p->n_rules > 0 || p->is_projected ||
           (p->guard == REPLICATE_INLINE &&
            (carries(p, change, p->guard_attribute) || carries(p, change, p->write_attribute)));
}

struct sl_span replicate_held_name(const struct replicate *p, struct sl_span name)
{
    const struct replicate_rule *rule = rule_of(p, name);
    bool is_copied =
        p->n_keys == 0 || (!(rule && rule->is_dropped) && (!p->is_projected || (rule && rule->is_kept)));
    return is_copied ? new_name(rule, name) : (struct sl_span){NULL, 0};
}

/* What is between the braces of an object, which has nothing around them. */
static struct sl_span without_braces(struct sl_span json)
{
    return (struct sl_span){json.ptr + 1, json.len - 2};
}

static bool is_blank(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\r\n", text.ptr[i]))
            return false;
    return true;
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

static void add_guard(const struct replicate *p, const struct sl_order *guard, struct object *o)
{
    add_name(o, p->guard_attribute);
    add_text(o, guard->value);
}

/* The members of an object, as they are written there. */
static void add_members(struct object *o, struct sl_span json)
{
    struct sl_span inside = without_braces(json);
    if (is_blank(inside))
        return;
    add_comma(o);
    add_text(o, inside);
}

/* ---- signed objects: the signature goes in front of what it signs ---- */

static size_t room_for_signature(const struct replicate *p)
{
    return p->write_attribute.len + REPLICATE_SIGNATURE_BYTES + REPLICATE_REVIVED_BYTES +
           2 * REPLICATE_MEMBER_BYTES;
}

static struct object signed_begin(const struct replicate *p, struct sl_arena *arena, size_t room)
{
    size_t front = room_for_signature(p);
    struct object o = object_begin(p, arena, front + room);
    o.begin += front;
    *o.begin = '{';
    o.at = o.begin + 1;
    return o;
}

static struct sl_span signed_end(const struct replicate *p, const struct replicate_change *change,
                                 struct object *o)
{
    struct sl_span item = object_end(o);
    char *front = o->begin - room_for_signature(p);
    struct object member = {front, front + 1};
    add_name(&member, p->write_attribute);
    add_text(&member, SL_LIT("{\"S\":\""));
    member.at = replicate_sign(p, change, item, member.at);
    add_text(&member, SL_LIT("\"},"));
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
    struct replicate_made made = {.bytes = 0};
    *item = image;
    if (!is_inline && !reshaped)
        return SL_OK;
    enum sl_status status = reshaped ? replicate_set_make(p, change, arena, &made, error) : SL_OK;
    if (status != SL_OK)
        return status;
    size_t room = image.len + made.bytes + renames_bytes(p) + change->key.len + p->guard_attribute.len +
                  change->guard.value.len + 2 * REPLICATE_MEMBER_BYTES;
    struct object o = is_inline ? signed_begin(p, arena, room) : object_begin(p, arena, room);
    if (is_inline)
        add_guard(p, &change->guard, &o);
    if (p->n_keys > 0 && !change->is_shaped)
        add_members(&o, change->key);
    if (reshaped) {
        add_attributes(p, change, arena, &o);
        add_sets(p, &made, &o);
    } else {
        add_members(&o, image);
    }
    *item = is_inline ? signed_end(p, change, &o) : object_end(&o);
    return check_size(p, *item, error);
}

enum sl_status replicate_shape(const struct replicate *p, const struct replicate_change *change,
                               struct sl_arena *arena, struct sl_span *item, struct sl_error *error)
{
    struct sl_span image = change->image.value.raw;
    struct replicate_made made;
    *item = image;
    if (p->n_rules == 0 && !p->is_projected)
        return SL_OK;
    enum sl_status status = replicate_set_make(p, change, arena, &made, error);
    if (status != SL_OK)
        return status;
    size_t room = image.len + made.bytes + renames_bytes(p) + change->key.len + 2 * REPLICATE_MEMBER_BYTES;
    struct object o = object_begin(p, arena, room);
    if (p->n_keys > 0)
        add_members(&o, change->key);
    add_attributes(p, change, arena, &o);
    add_sets(p, &made, &o);
    *item = object_end(&o);
    return SL_OK;
}

/* ---- tombstones ---- */

static void add_tombstone(const struct replicate *p, struct sl_span key, const struct sl_order *guard,
                          struct sl_span expires, struct object *o)
{
    add_members(o, key);
    add_guard(p, guard, o);
    add_name(o, p->deleted_attribute);
    add_text(o, SL_LIT("{\"BOOL\":true}"));
    add_name(o, p->ttl_attribute);
    add_text(o, SL_LIT("{\"N\":\""));
    add_text(o, expires);
    add_text(o, SL_LIT("\"}"));
}

static size_t tombstone_bytes(const struct replicate *p, struct sl_span key, const struct sl_order *guard,
                              struct sl_span expires)
{
    return key.len + p->guard_attribute.len + guard->value.len + p->deleted_attribute.len +
           p->ttl_attribute.len + expires.len + 4 * REPLICATE_MEMBER_BYTES;
}

struct sl_span replicate_tombstone_bare(const struct replicate *p, struct sl_span key,
                                        const struct sl_order *guard, struct sl_span expires,
                                        struct sl_arena *arena)
{
    struct object o = object_begin(p, arena, tombstone_bytes(p, key, guard, expires));
    add_tombstone(p, key, guard, expires, &o);
    return object_end(&o);
}

struct sl_span replicate_tombstone(const struct replicate *p, const struct replicate_change *change,
                                   struct sl_arena *arena)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%" PRId64, p->host->wall_ns(p->route) / 1000000000 + p->tombstone_s);
    struct sl_span expires = sl_span_str(digits);
    struct object o = signed_begin(p, arena, tombstone_bytes(p, change->key, &change->guard, expires));
    add_tombstone(p, change->key, &change->guard, expires, &o);
    return signed_end(p, change, &o);
}

struct sl_span replicate_without(const struct replicate *p, struct sl_value item, struct sl_span name,
                                 struct sl_arena *arena)
{
    struct object o = object_begin(p, arena, item.raw.len + REPLICATE_MEMBER_BYTES);
    struct sl_iter iter = p->host->value_iter(item);
    struct sl_span raw_name;
    struct sl_value value;
    while (p->host->value_next(&iter, &raw_name, &value)) {
        if (sl_span_eq(replicate_plain_name(p, raw_name, arena), name))
            continue;
        add_name(&o, raw_name);
        o.at = p->host->value_put(o.at, value);
    }
    return object_end(&o);
}
