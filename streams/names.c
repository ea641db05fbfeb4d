/* The names of events, view types and verdicts. */
#include "streams/names.h"

#include "base/span.h"

const char *sl_event_name(enum sl_event event)
{
    static const char *const names[] = {"?", "INSERT", "MODIFY", "REMOVE"};
    return names[(unsigned)event <= SL_REMOVE ? event : 0];
}

const char *sl_view_name(enum sl_view view)
{
    static const char *const names[] = {"", "KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    return names[(unsigned)view <= SL_VIEW_NEW_AND_OLD_IMAGES ? view : SL_VIEW_UNKNOWN];
}

const char *sl_ttl_name(enum sl_ttl ttl)
{
    static const char *const names[] = {"unknown", "user", "inferred", "expired"};
    return names[(unsigned)ttl <= SL_TTL_EXPIRED ? ttl : SL_TTL_UNKNOWN];
}

enum sl_view sl_view_named(struct sl_span name)
{
    for (enum sl_view view = SL_VIEW_KEYS_ONLY; view <= SL_VIEW_NEW_AND_OLD_IMAGES; view++)
        if (sl_span_is(name, sl_view_name(view)))
            return view;
    return SL_VIEW_UNKNOWN;
}
