/* A walk over what differs between the two images of a record. */
#include "handlers/pipeline/host_private.h"

#include "base/json.h"
#include "base/span.h"
#include "streams/record.h"

static struct sl_diff nothing(void)
{
    return (struct sl_diff){.image = SL_KEYS};
}

struct sl_diff sl_host_record_diff(const struct sl_record *r, struct sl_arena *arena)
{
    enum sl_event event = sl_record_event(r);
    struct sl_value after = sl_record_image(r, SL_NEW_IMAGE), before = sl_record_image(r, SL_OLD_IMAGE);
    struct sl_diff diff = {.record = r, .arena = arena};
    /* As in record_changed: without an image that is needed nothing differs. */
    if (event == SL_REMOVE ? before.type == SL_NONE : after.type == SL_NONE)
        return nothing();
    if (event == SL_MODIFY && before.type == SL_NONE)
        return nothing();
    diff.image = event == SL_REMOVE ? SL_OLD_IMAGE : SL_NEW_IMAGE;
    diff.iter = sl_value_iter(event == SL_REMOVE ? before : after);
    return diff;
}

static struct sl_span name_of(const struct sl_diff *diff, struct sl_span inner)
{
    bool is_escaped = inner.len && memchr(inner.ptr, '\\', inner.len);
    return is_escaped ? sl_json_unescape(inner, diff->arena) : inner;
}

/* The new image's attributes, then those that only the old one has. An INSERT has nothing before and a REMOVE
 * nothing after, even if it brings that image. */
bool sl_host_diff_next(struct sl_diff *diff, struct sl_span *name, struct sl_value *before,
                       struct sl_value *after)
{
    const struct sl_value none = {.type = SL_NONE};
    struct sl_span inner;
    struct sl_value here;
    while (diff->image != SL_KEYS) {
        enum sl_event event = sl_record_event(diff->record);
        bool is_new = diff->image == SL_NEW_IMAGE;
        if (!sl_value_next(&diff->iter, &inner, &here)) {
            bool goes_on = is_new && event == SL_MODIFY;
            diff->image = goes_on ? SL_OLD_IMAGE : SL_KEYS;
            if (goes_on)
                diff->iter = sl_value_iter(sl_record_image(diff->record, SL_OLD_IMAGE));
            continue;
        }
        *name = name_of(diff, inner);
        enum sl_image other = is_new ? SL_OLD_IMAGE : SL_NEW_IMAGE;
        struct sl_value there = event == SL_MODIFY ? sl_record_attribute(diff->record, other, *name) : none;
        *before = is_new ? there : here;
        *after = is_new ? here : there;
        if (is_new ? !sl_value_equal(here, there) : there.type == SL_NONE)
            return true;
    }
    return false;
}
