/* Images: a change that came without its image gets the item from the source table, as it is now. */
#include "handlers/builtin/replicate/replicate_sign.h"

#include "handlers/builtin/toolkit/apply.h"

static enum sl_status image_find(struct replicate_fold *f, struct replicate_change *change,
                                 struct sl_error *error)
{
    const struct replicate *p = f->p;
    const struct sl_record *r = change->record;
    if (p->host->record_event(r) == SL_REMOVE)
        return SL_OK;
    change->image.value = p->host->record_image(r, SL_NEW_IMAGE);
    if (change->image.value.type != SL_NONE)
        return SL_OK;
    if (!p->source)
        return p->host->fail(
            error, p->host->record_view(r) == SL_VIEW_UNKNOWN ? SL_REJECT : SL_FATAL, "ViewType",
            "the record has no NewImage: name the source table in \"source\" so that items are "
            "read back, or enable the stream with NEW_IMAGE or NEW_AND_OLD_IMAGES");
    change->image.is_read_back = change->image.may_carry = true;
    f->n_read_back++;
    return SL_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct sl_span replicate_without_blanks(struct sl_span json)
{
    while (json.len > 0 && is_blank(json.ptr[0]))
        json = (struct sl_span){json.ptr + 1, json.len - 1};
    while (json.len > 0 && is_blank(json.ptr[json.len - 1]))
        json.len--;
    return json;
}

static enum sl_status take_item(const struct replicate *p, struct replicate_change *change,
                                const struct sl_result *result, struct sl_error *error)
{
    if (result->status != SL_OK) {
        sl_outcome_error(p->host, result, error);
        return error->status;
    }
    if (!result->item.ptr) {
        /* Removed since. Its own removal will say whether the replica keeps it. */
        change->is_out = p->expired != SL_EXPIRED_APPLY;
        return SL_OK;
    }
    change->image.value = (struct sl_value){.type = SL_M, .raw = replicate_without_blanks(result->item)};
    if (p->guard == REPLICATE_INLINE && !p->copies_replicated &&
        p->host->value_member(change->image.value, p->guard_attribute).type != SL_NONE)
        return p->host->fail(
            error, SL_FATAL, "ViewType",
            "the source's item carries %.*s, and a stream without both images does not show whether a "
            "replicate made the change: enable it with NEW_AND_OLD_IMAGES, or set "
            "\"replicated\": \"copy\"",
            SL_ARG(p->guard_attribute));
    return SL_OK;
}

/* A tombstone is a deletion, and an item that was one loses our attributes. */
static void image_judge(struct replicate_fold *f, struct replicate_change *change)
{
    const struct replicate *p = f->p;
    struct replicate_image *image = &change->image;
    struct sl_arena *arena = f->slice->arena;
    if (p->guard != REPLICATE_INLINE || image->value.type == SL_NONE || !image->may_carry)
        return;
    if (replicate_is_tombstone(p, image->value, p->host->record_image(change->record, SL_KEYS), arena))
        image->value.type = SL_NONE;
    else
        image->revival = replicate_revival_of(p, change, arena);
}

static void read_back(struct replicate_fold *f)
{
    const struct replicate *p = f->p;
    struct sl_table_op *ops = p->host->alloc(f->slice->arena, f->n_read_back * sizeof(*ops));
    size_t n = 0;
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct replicate_change *change = &f->changes[c];
        if (!change->image.is_read_back)
            continue;
        struct sl_value keys = p->host->record_image(change->record, SL_KEYS);
        change->op = (uint32_t)n;
        ops[n++] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = keys.raw};
    }
    const struct sl_result *results = sl_apply_table(f->slice, p->source, ops, n);
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct replicate_change *change = &f->changes[c];
        struct sl_error error = SL_NO_ERROR;
        if (change->image.is_read_back && take_item(p, change, &results[change->op], &error) != SL_OK)
            replicate_fold_fail(f, change, &error);
    }
}

enum sl_status replicate_read_images(struct replicate_fold *f, struct sl_error *error)
{
    for (uint32_t c = 0; c < f->items.n; c++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = image_find(f, &f->changes[c], &why);
        if (status == SL_FATAL)
            return f->p->host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            replicate_fold_fail(f, &f->changes[c], &why);
    }
    if (f->n_read_back > 0)
        read_back(f);
    for (uint32_t c = 0; c < f->items.n; c++)
        if (!f->changes[c].is_out) {
            image_judge(f, &f->changes[c]);
            replicate_judge_inside(f, &f->changes[c]);
        }
    return SL_OK;
}
