/* Folding a slice: of each item only its newest change is written. */
#include "base/map.h"
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_sign.h"
#include "handlers/builtin/replicate/replicate_tie.h"

static void record_fold(struct replicate_fold *f, size_t i, struct sl_span item_key, bool may_carry)
{
    const struct sl_record *r = f->slice->records[i];
    struct sl_span order = sl_order_digits(f->p->host, r, f->slice->arena);
    uint32_t known = f->items.n;
    uint32_t c = sl_map_index(&f->items, item_key);
    struct replicate_change *change = &f->changes[c];
    if (c == known)
        *change =
            (struct replicate_change){.item_key = item_key, .order = order, .last = SL_OUTCOME_NO_RECORD};
    int after = sl_span_compare_digits(order, change->order);
    if (c == known || after > 0)
        change->is_mixed = false;
    else if (after == 0 && !change->is_mixed)
        change->is_mixed = replicate_tie_is_mixed(f->p, change->record, r, f->slice->arena);
    if (after >= 0) {
        change->newest = (uint32_t)i;
        change->record = r;
        change->order = order;
        change->image.may_carry = may_carry;
    }
    change->was_inside = change->was_inside || replicate_was_inside(f->p, r, f->slice->arena);
    f->before[i] = change->last;
    change->last = (uint32_t)i;
}

/* An echo that asks for a repair. */
static void return_add(struct replicate_fold *f, size_t i)
{
    const struct replicate *p = f->p;
    struct sl_value image = p->host->record_image(f->slice->records[i], SL_NEW_IMAGE);
    struct replicate_stamp stamp = replicate_stamp_of(p, image, f->slice->arena);
    struct replicate_revival revival = replicate_sign_revival(&stamp);
    if (!revival.guard.ptr)
        return;
    if (!f->returns)
        f->returns = p->host->alloc(f->slice->arena, f->slice->n * sizeof(*f->returns));
    f->returns[f->n_returns++] = (struct replicate_return){.record = (uint32_t)i, .revival = revival};
}

bool replicate_has_no_place(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                            const struct sl_error *error)
{
    struct sl_value image = p->host->record_image(r, SL_NEW_IMAGE);
    if (!p->where || error->status != SL_REJECT || strcmp(error->code, "MissingAttribute") != 0)
        return false;
    return p->host->record_event(r) == SL_REMOVE ||
           (image.type != SL_NONE && !replicate_is_inside(p, image, arena));
}

/* Items are distinguished by the replica's key if templates make it, otherwise by their own. */
static enum sl_status record_take(struct replicate_fold *f, size_t i, struct sl_error *error)
{
    const struct replicate *p = f->p;
    const struct sl_record *r = f->slice->records[i];
    enum replicate_origin origin;
    bool may_carry;
    if (p->host->record_image(r, SL_KEYS).type == SL_NONE)
        return p->host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    enum sl_status status = replicate_origin(p, r, f->slice->arena, &origin, &may_carry, error);
    if (status == SL_OK && origin == REPLICATE_ECHO)
        return_add(f, i);
    f->n_unsigned += origin == REPLICATE_ECHO_UNSIGNED;
    if (status == SL_OK && origin != REPLICATE_USER)
        p->host->note(f->slice, i, SL_EFFECT_LEFT_OUT);
    if (status != SL_OK || origin != REPLICATE_USER || sl_expired_is_kept(p->expired, p->host, r))
        return status;
    struct sl_error why = SL_NO_ERROR;
    struct sl_span key;
    if (p->n_keys == 0)
        key = p->host->record_item_key(r, f->slice->arena);
    else
        status = replicate_key(p, r, f->slice->arena, &key, &why);
    if (status != SL_OK && replicate_has_no_place(p, r, f->slice->arena, &why)) {
        p->host->note(f->slice, i, SL_EFFECT_LEFT_OUT);
        return SL_OK;
    }
    if (status != SL_OK)
        return p->host->fail(error, status, why.code, "%s", why.text);
    record_fold(f, i, key, may_carry);
    return SL_OK;
}

enum sl_status replicate_fold_slice(struct replicate_fold *f, struct sl_error *error)
{
    const struct sl_host *host = f->p->host;
    struct sl_arena *arena = f->slice->arena;
    size_t n = f->slice->n;
    sl_outcome_init(&f->outcome, host, f->slice);
    sl_map_init(&f->items, arena, n);
    f->changes = host->alloc(arena, n * sizeof(*f->changes));
    f->before = host->alloc(arena, n * sizeof(*f->before));
    for (size_t i = 0; i < n; i++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = record_take(f, i, &why);
        if (status == SL_FATAL)
            return host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_outcome_fail(&f->outcome, i, &why);
    }
    return SL_OK;
}

void replicate_fold_fail(struct replicate_fold *f, struct replicate_change *change,
                         const struct sl_error *error)
{
    change->is_out = true;
    sl_outcome_fail_folded(&f->outcome, change->last, change->newest, f->before, error);
}
