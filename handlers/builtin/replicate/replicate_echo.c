/* Echoes: changes that a replicate itself made, which the table at the other end has already.
 *
 * A change is an echo if its signature is that of the item as it is now, and the guard before it is absent or
 * smaller: a replicate never writes over a guard that is not. Everything else is a user's: an update leaves
 * the guard as it is, a put leaves it out or puts back one that was there, a copy is another item.
 *
 * Items of a release without signatures are told by the guard alone. Taken for a user's, an echo would go
 * back, and could undo there what was written since; so they are echoes unless the configuration says that no
 * such release runs any more ("unsigned": "copy"). */
#include "handlers/builtin/replicate/replicate_sign.h"

/* May the image carry the name? A look at its bytes: most items need no look at their attributes. */
static bool may_carry(struct sl_span raw, struct sl_span name)
{
    return memmem(raw.ptr, raw.len, name.ptr, name.len) != NULL;
}

static bool may_carry_ours(const struct replicate *p, struct sl_span raw)
{
    return raw.len > 0 && (may_carry(raw, p->guard_attribute) || may_carry(raw, p->write_attribute) ||
                           (memchr(raw.ptr, '\\', raw.len) && memmem(raw.ptr, raw.len, "\\u", 2)));
}

static enum sl_status check_key(const struct replicate *p, const struct sl_record *r, struct sl_error *error)
{
    const struct sl_span names[] = {p->guard_attribute, p->write_attribute};
    struct sl_value keys = p->host->record_image(r, SL_KEYS);
    for (size_t i = 0; i < 2; i++)
        if (p->host->value_member(keys, names[i]).type != SL_NONE)
            return p->host->fail(error, SL_FATAL, "GuardInKey",
                                 "%s: %.*s is an attribute of the items' key, which cannot hold a guard; "
                                 "choose another name",
                                 i ? "write_attribute" : "guard_attribute", SL_ARG(names[i]));
    return SL_OK;
}

static enum sl_status check_guard(const struct replicate *p, const struct sl_record *r,
                                  const struct replicate_stamp *stamp, struct sl_error *error)
{
    /* Taken for an echo, such an item would be lost; copied, its attribute would be. */
    if (!replicate_stamp_has_guard(stamp))
        return p->host->fail(
            error, SL_REJECT, "NoGuard",
            "the item has an attribute %.*s of its own, which is not a replicate's guard; choose "
            "another guard_attribute",
            SL_ARG(p->guard_attribute));
    if (p->host->record_event(r) == SL_MODIFY && p->host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return p->host->fail(
            error, SL_FATAL, "ViewType",
            "the item carries %.*s, and without OldImage nothing shows whether a replicate made "
            "the change: enable the stream with NEW_AND_OLD_IMAGES, or set \"replicated\": "
            "\"copy\"",
            SL_ARG(p->guard_attribute));
    return SL_OK;
}

/* Our repair of a revived item: it takes the tombstone's attributes, and changes nothing of the user's. */
static bool is_repair(const struct replicate *p, const struct sl_record *r,
                      const struct replicate_stamp *after, const struct replicate_stamp *before,
                      struct sl_arena *arena)
{
    const struct sl_host *host = p->host;
    struct sl_span name;
    struct sl_value old, new;
    if (before->deleted.type == SL_NONE || after->deleted.type != SL_NONE ||
        replicate_is_tombstone(p, host->record_image(r, SL_OLD_IMAGE), host->record_image(r, SL_KEYS), arena))
        return false;
    for (struct sl_diff diff = host->record_diff(r, arena); host->diff_next(&diff, &name, &old, &new);)
        if (new.type != SL_NONE ||
            (!sl_span_eq(name, p->deleted_attribute) && !sl_span_eq(name, p->ttl_attribute)))
            return false;
    return true;
}

static enum replicate_origin origin_of_write(const struct replicate *p, const struct sl_record *r,
                                             const struct replicate_stamp *after, struct sl_arena *arena)
{
    struct replicate_stamp before = replicate_stamp_of(p, p->host->record_image(r, SL_OLD_IMAGE), arena);
    bool has_moved = before.guard.type == SL_NONE ||
                     (before.guard.type == SL_S && sl_order_compare(before.guard.raw, after->guard.raw) < 0);
    if (!has_moved)
        return is_repair(p, r, after, &before, arena) ? REPLICATE_ECHO : REPLICATE_USER;
    switch (replicate_sign_check(p, p->host->record_image(r, SL_NEW_IMAGE), after, arena)) {
    case REPLICATE_SIGNED:
        return REPLICATE_ECHO;
    case REPLICATE_UNSIGNED:
        return p->copies_unsigned ? REPLICATE_USER : REPLICATE_ECHO_UNSIGNED;
    default:
        return REPLICATE_USER;
    }
}

enum sl_status replicate_origin(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                                enum replicate_origin *origin, bool *carries, struct sl_error *error)
{
    const struct sl_host *host = p->host;
    bool is_removal = host->record_event(r) == SL_REMOVE;
    struct sl_value image = host->record_image(r, is_removal ? SL_OLD_IMAGE : SL_NEW_IMAGE);
    *origin = REPLICATE_USER;
    *carries = p->guard == REPLICATE_INLINE && may_carry_ours(p, image.raw);
    if (!*carries)
        return SL_OK;
    enum sl_status status = check_key(p, r, error);
    if (status != SL_OK || p->copies_replicated)
        return status;
    if (is_removal) {
        /* The change that made the tombstone was an echo already. */
        *origin = replicate_is_tombstone(p, image, host->record_image(r, SL_KEYS), arena) ? REPLICATE_ECHO
                                                                                          : REPLICATE_USER;
        return SL_OK;
    }
    struct replicate_stamp stamp = replicate_stamp_of(p, image, arena);
    if (stamp.guard.type == SL_NONE)
        return SL_OK;
    status = check_guard(p, r, &stamp, error);
    if (status != SL_OK)
        return status;
    bool is_item = sl_order_is_of_item(host, r, arena);
    *origin = is_item ? REPLICATE_HELD : origin_of_write(p, r, &stamp, arena);
    return SL_OK;
}
