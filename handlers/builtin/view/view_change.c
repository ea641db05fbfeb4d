/* What a change does to the rows of its item: a function of the record alone. */
#include "handlers/builtin/view/view_private.h"

/* Are all attributes of which rows are made written alike in both images? Most changes need no more than this
 * look. (Templates take a number as it is written, so equal values are not enough.) */
static bool is_untouched(const struct view *v, const struct sl_record *r)
{
    const struct sl_host *host = v->host;
    if (v->reads_more || host->record_image(r, SL_OLD_IMAGE).type == SL_NONE ||
        host->record_image(r, SL_NEW_IMAGE).type == SL_NONE)
        return false;
    for (size_t i = 0; i < v->n_reads; i++) {
        struct sl_value old = host->record_attribute(r, SL_OLD_IMAGE, v->reads[i]);
        struct sl_value new = host->record_attribute(r, SL_NEW_IMAGE, v->reads[i]);
        if (old.type != new.type || !sl_span_eq(old.raw, new.raw))
            return false;
    }
    return true;
}

static enum sl_status check_record(const struct view *v, const struct sl_record *r, struct sl_arena *arena,
                                   struct sl_error *error)
{
    const struct sl_host *host = v->host;
    bool is_removal = host->record_event(r) == SL_REMOVE;
    bool is_known = host->record_view(r) != SL_VIEW_UNKNOWN;
    if (host->record_image(r, SL_KEYS).type == SL_NONE)
        return host->fail(error, SL_REJECT, "NoKeys", "the record has no Keys");
    if (!is_removal && host->record_image(r, SL_NEW_IMAGE).type == SL_NONE)
        return host->fail(error, is_known ? SL_FATAL : SL_REJECT, "ViewType",
                          "the record has no NewImage, of which the rows are made: enable the stream with "
                          "NEW_AND_OLD_IMAGES or NEW_IMAGE");
    if (v->is_guarded && host->record_event(r) != SL_INSERT &&
        host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return host->fail(
            error, is_known ? SL_FATAL : SL_REJECT, "ViewType",
            "the record has no OldImage, and without lists it alone says which row goes: enable the "
            "stream with NEW_AND_OLD_IMAGES");
    if (sl_order_is_time(host, r, arena))
        return host->fail(
            error, SL_FATAL, "OrderIsTime",
            "through Kinesis two changes of an item can have one time, and nobody knows which is "
            "the last: follow the table's own stream");
    return SL_OK;
}

/* Does the change alter the item's rows? Of images that do not make rows, or are not in the record, nobody
 * knows what was there. A removal that is kept leaves rows that no old image shows. */
static enum sl_status judge(const struct view *v, const struct sl_record *r, struct sl_arena *arena,
                            struct view_change *out, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    bool is_insert = v->host->record_event(r) == SL_INSERT;
    out->alters = true;
    enum sl_status status = view_rows_make(v, r, SL_NEW_IMAGE, arena, &out->new, error);
    if (status != SL_OK)
        return status;
    bool knows_old = v->host->record_image(r, SL_OLD_IMAGE).type != SL_NONE;
    if (is_insert && v->expired == SL_EXPIRED_APPLY)
        out->alters = out->new.n > 0;
    else if (knows_old && view_rows_make(v, r, SL_OLD_IMAGE, arena, &out->old, &why) == SL_OK)
        out->alters = !view_rows_are_equal(&out->old, &out->new);
    else
        out->old.n = 0;
    return SL_OK;
}

enum sl_status view_change_make(const struct view *v, const struct sl_record *r, struct sl_arena *arena,
                                struct view_change *out, struct sl_error *error)
{
    *out = (struct view_change){.alters = false};
    enum sl_status status = check_record(v, r, arena, error);
    if (status != SL_OK ||
        (v->host->record_event(r) == SL_REMOVE && sl_expired_is_kept(v->expired, v->host, r)) ||
        is_untouched(v, r))
        return status;
    out->digits = sl_order_digits(v->host, r, arena);
    return judge(v, r, arena, out, error);
}
