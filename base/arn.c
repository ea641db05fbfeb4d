/* The parts of an ARN. */
#include "base/arn.h"

struct sl_span sl_arn_part(struct sl_span arn, unsigned number)
{
    if (!sl_span_starts(arn, SL_LIT("arn:")))
        return sl_span(NULL, 0);
    for (; number; number--) {
        const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
        if (!colon)
            return sl_span(NULL, 0);
        arn = sl_span_from(arn, (size_t)(colon - arn.ptr) + 1);
    }
    const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
    return colon ? sl_span(arn.ptr, (size_t)(colon - arn.ptr)) : arn;
}
