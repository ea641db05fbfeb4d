/* The option "expired", and the removals that stay without effect because of it. */
#include "handlers/builtin/toolkit/expired.h"

enum sl_expired sl_expired_option(const struct sl_host *host, struct sl_route *route)
{
    struct sl_span text = host->option_text(route, "expired");
    if (sl_span_is(text, "keep"))
        return SL_EXPIRED_KEEP;
    return sl_span_is(text, "keep-any") ? SL_EXPIRED_KEEP_ANY : SL_EXPIRED_APPLY;
}

bool sl_expired_is_kept(enum sl_expired expired, const struct sl_host *host, const struct sl_record *r)
{
    if (expired == SL_EXPIRED_APPLY)
        return false;
    enum sl_ttl ttl = host->record_ttl(r);
    return ttl == SL_TTL_EXPIRED || (ttl == SL_TTL_INFERRED && expired == SL_EXPIRED_KEEP_ANY);
}
