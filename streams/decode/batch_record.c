/* One record of the payload: read into a draft, which becomes a record of the batch. For Kinesis, its data
 * does. */
#include "streams/decode/batch_private.h"

/* The members that only an export's line has count when there is no change. */
static void settle_line(struct sl_draft *draft)
{
    if (draft->has_change) {
        draft->has_item = draft->has_metadata = false;
        return;
    }
    memcpy(draft->image, draft->line, sizeof(draft->image));
    draft->created = draft->written;
}

static bool is_ours(struct sl_decoder *d, struct sl_string source)
{
    if (!source.inner.ptr || source.inner.ptr == d->last.our_source)
        return true;
    if (!sl_decode_text_is(source, SL_LIT("aws:dynamodb")))
        return false;
    d->last.our_source = source.inner.ptr;
    return true;
}

const char *sl_decode_record(struct sl_decoder *d, const char *p)
{
    struct sl_draft draft = {.raw = {p, 0}};
    const char *next = sl_decode_draft(d, p, d->any_shape, &draft);
    if (!next)
        return NULL;
    if (draft.has_kinesis)
        return sl_decode_kinesis(d, &draft, next);
    settle_line(&draft);
    if ((!draft.has_change && !draft.has_item && !draft.has_metadata) || !is_ours(d, draft.event_source))
        return sl_decode_foreign(d, &draft);
    return sl_decode_add(d, &draft, next);
}
