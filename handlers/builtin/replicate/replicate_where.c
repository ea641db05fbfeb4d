/* Which items the replica holds: those that match "where", of those that are there.
 *
 * An item that stops matching is removed as a deleted one is, with a tombstone or a mark. One that did not
 * match before either is not there, and most items of a table may be such: for them nothing is written. Only
 * in a later epoch the replica may hold such an item, of the table that was followed before; it is removed
 * where a lower guard stands, and leaves nothing where no guard stands. So it is with an item of a backfill
 * that does not match or is a tombstone: it is no change, and every change knows better. */
#include "handlers/builtin/replicate/replicate_sign.h"

bool replicate_is_inside(const struct replicate *p, struct sl_value item, struct sl_arena *arena)
{
    return !p->where || p->host->where_match(p->where, item, arena);
}

bool replicate_was_inside(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena)
{
    const struct sl_host *host = p->host;
    if (sl_order_is_of_item(host, r, arena))
        return false;
    if (!p->where)
        return true;
    struct sl_value old = host->record_image(r, SL_OLD_IMAGE);
    if (host->record_event(r) == SL_INSERT || old.type == SL_NONE)
        return host->record_event(r) != SL_INSERT;
    bool is_tombstone =
        p->guard == REPLICATE_INLINE && replicate_is_tombstone(p, old, host->record_image(r, SL_KEYS), arena);
    return !is_tombstone && replicate_is_inside(p, old, arena);
}

void replicate_judge_inside(struct replicate_fold *f, struct replicate_change *change)
{
    const struct replicate *p = f->p;
    struct replicate_image *image = &change->image;
    if (image->value.type != SL_NONE && replicate_is_inside(p, image->value, f->slice->arena))
        return;
    image->value.type = SL_NONE;
    if (change->was_inside || change->is_mixed) /* of tied changes any may be the last */
        return;
    change->is_faint = p->records_epoch > 0;
    change->is_out = !change->is_faint;
    p->host->note(f->slice, change->newest, SL_EFFECT_LEFT_OUT);
}
