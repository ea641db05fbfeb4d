/* Our attributes on items, and the signature that tells a replicate's write from a copy of it. */
#include "handlers/builtin/replicate/replicate_sign.h"

#include "base/hash.h"

#define VERSION      "1:"
#define GUARD_DIGITS 16
#define ITEM_DIGITS  32

/* ---- stamps ---- */

static struct sl_value *place_of(const struct replicate *p, struct replicate_stamp *stamp,
                                 struct sl_span name)
{
    if (sl_span_eq(name, p->guard_attribute))
        return &stamp->guard;
    if (sl_span_eq(name, p->write_attribute))
        return &stamp->write;
    if (sl_span_eq(name, p->deleted_attribute))
        return &stamp->deleted;
    return sl_span_eq(name, p->ttl_attribute) ? &stamp->expires : NULL;
}

struct replicate_stamp replicate_stamp_of(const struct replicate *p, struct sl_value image,
                                          struct sl_arena *arena)
{
    struct replicate_stamp stamp = {.n_members = 0};
    struct sl_iter iter = p->host->value_iter(image);
    struct sl_span name;
    struct sl_value value;
    for (; p->host->value_next(&iter, &name, &value); stamp.n_members++) {
        struct sl_value *place = place_of(p, &stamp, sl_text_plain_name(p->host, name, arena));
        if (place)
            *place = value;
    }
    return stamp;
}

bool replicate_stamp_has_guard(const struct replicate_stamp *stamp)
{
    return stamp->guard.type == SL_S && stamp->guard.raw.len == REPLICATE_GUARD_BYTES;
}

/* ---- signatures ---- */

/* FNV-1a: it tells guards apart that are written by chance, and takes no time. */
static char *put_guard_digest(char *at, struct sl_span guard)
{
    uint64_t hash = sl_hash(guard);
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[hash >> shift & 15];
    return at;
}

static char *put_item_digest(const struct replicate *p, char *at, struct sl_span item)
{
    unsigned char bytes[32];
    p->host->value_sha256((struct sl_value){.type = SL_M, .raw = item}, bytes);
    for (size_t i = 0; i < ITEM_DIGITS; i++)
        *at++ = "0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
    return at;
}

static char *put_signature(const struct replicate *p, struct sl_span guard, struct sl_span item, char *at)
{
    at = sl_text_put(at, SL_LIT(VERSION));
    at = put_guard_digest(at, guard);
    *at++ = ':';
    return put_item_digest(p, at, item);
}

char *replicate_sign(const struct replicate *p, const struct replicate_change *change, struct sl_span item,
                     char *at)
{
    const struct replicate_revival *revival = &change->image.revival;
    at = put_signature(p, change->guard.text, item, at);
    if (!revival->guard.ptr)
        return at;
    *at++ = ':';
    at = sl_text_put(at, revival->guard);
    *at++ = ':';
    return sl_text_put(at, revival->expires);
}

/* Does the signature belong to this guard? */
static bool is_of_guard(const struct replicate_stamp *stamp)
{
    char digits[GUARD_DIGITS];
    struct sl_span write = stamp->write.raw;
    if (stamp->write.type != SL_S || write.len < REPLICATE_SIGNATURE_BYTES ||
        memcmp(write.ptr, VERSION, strlen(VERSION)) != 0)
        return false;
    put_guard_digest(digits, stamp->guard.raw);
    return memcmp(write.ptr + strlen(VERSION), digits, GUARD_DIGITS) == 0;
}

static bool signs(const struct replicate *p, const struct replicate_stamp *stamp, struct sl_span item)
{
    char wanted[REPLICATE_SIGNATURE_BYTES];
    put_signature(p, stamp->guard.raw, item, wanted);
    return memcmp(wanted, stamp->write.raw.ptr, sizeof(wanted)) == 0;
}

enum replicate_signature replicate_sign_check(const struct replicate *p, struct sl_value image,
                                              const struct replicate_stamp *stamp, struct sl_arena *arena)
{
    if (!is_of_guard(stamp))
        return REPLICATE_UNSIGNED;
    struct sl_span item = replicate_without(p, image, p->write_attribute, arena);
    return signs(p, stamp, item) ? REPLICATE_SIGNED : REPLICATE_EDITED;
}

struct replicate_revival replicate_sign_revival(const struct replicate_stamp *stamp)
{
    struct replicate_revival none = {.guard = {NULL, 0}};
    struct sl_span write = stamp->write.raw;
    if (write.len <= REPLICATE_SIGNATURE_BYTES + 1 + REPLICATE_GUARD_BYTES)
        return none;
    const char *guard = write.ptr + REPLICATE_SIGNATURE_BYTES + 1, *expires = guard + REPLICATE_GUARD_BYTES;
    if (guard[-1] != ':' || *expires++ != ':')
        return none;
    struct sl_span left = {expires, (size_t)(write.ptr + write.len - expires)};
    return (struct replicate_revival){{guard, REPLICATE_GUARD_BYTES},
                                      left.len ? left : (struct sl_span){NULL, 0}};
}

/* ---- tombstones ---- */

static size_t members_of(const struct replicate *p, struct sl_value map)
{
    size_t n = 0;
    struct sl_value value;
    for (struct sl_iter iter = p->host->value_iter(map); p->host->value_next(&iter, NULL, &value);)
        n++;
    return n;
}

/* A release without signatures wrote key, guard, mark and time, and nothing else. */
static bool looks_like_tombstone(const struct replicate *p, const struct replicate_stamp *stamp,
                                 struct sl_value keys)
{
    return stamp->write.type == SL_NONE && stamp->deleted.type == SL_BOOL && stamp->expires.type == SL_N &&
           stamp->n_members == members_of(p, keys) + 3;
}

static bool is_tombstone(const struct replicate *p, struct sl_value image,
                         const struct replicate_stamp *stamp, struct sl_value keys, struct sl_arena *arena)
{
    if (!replicate_stamp_has_guard(stamp) || stamp->deleted.type == SL_NONE)
        return false;
    enum replicate_signature signature = replicate_sign_check(p, image, stamp, arena);
    return signature == REPLICATE_SIGNED ||
           (signature == REPLICATE_UNSIGNED && looks_like_tombstone(p, stamp, keys));
}

bool replicate_is_tombstone(const struct replicate *p, struct sl_value image, struct sl_value keys,
                            struct sl_arena *arena)
{
    struct replicate_stamp stamp = replicate_stamp_of(p, image, arena);
    return is_tombstone(p, image, &stamp, keys, arena);
}

bool replicate_is_absent(const struct replicate *p, struct sl_value row, struct sl_span key,
                         struct sl_arena *arena)
{
    struct sl_value keys = {.type = SL_M, .raw = key};
    return row.type == SL_NONE ||
           (p->guard == REPLICATE_INLINE && replicate_is_tombstone(p, row, keys, arena));
}

/* Does the item still have the time that its tombstone had? The signature is that of key, guard, mark and
 * time. Without one, what the change has not touched is taken for it. */
static bool has_own_time(const struct replicate *p, const struct replicate_change *change,
                         const struct replicate_stamp *stamp, struct sl_arena *arena)
{
    if (stamp->expires.type != SL_N)
        return false;
    if (is_of_guard(stamp)) {
        struct sl_order guard = sl_order_of(p->host, arena, stamp->guard.raw);
        struct sl_span keys = p->host->record_image(change->record, SL_KEYS).raw;
        return signs(p, stamp, replicate_tombstone_bare(p, keys, &guard, stamp->expires.raw, arena));
    }
    struct sl_value before = p->host->record_attribute(change->record, SL_OLD_IMAGE, p->ttl_attribute);
    return before.type == SL_NONE || p->host->value_equal(before, stamp->expires);
}

struct replicate_revival replicate_revival_of(const struct replicate *p,
                                              const struct replicate_change *change, struct sl_arena *arena)
{
    struct replicate_revival revival = {.guard = {NULL, 0}};
    struct replicate_stamp stamp = replicate_stamp_of(p, change->image.value, arena);
    if (!replicate_stamp_has_guard(&stamp) || stamp.deleted.type == SL_NONE)
        return revival;
    revival.guard = stamp.guard.raw;
    if (has_own_time(p, change, &stamp, arena))
        revival.expires = stamp.expires.raw;
    return revival;
}
