/* The option "expired": whether a removal by TTL has the effect of any other removal. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_EXPIRED_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_EXPIRED_H

#include "handlers/handler.h"

enum sl_expired {
    SL_EXPIRED_APPLY,   /* as any other; each handler has its own word for it: "delete", "subtract" */
    SL_EXPIRED_KEEP,    /* "keep": no effect where the verdict is `expired` */
    SL_EXPIRED_KEEP_ANY /* "keep-any": also where it is `inferred` */
};

enum sl_expired sl_expired_option(const struct sl_host *host, struct sl_route *route);

/* Does the record remove an item that is to be kept? */
bool sl_expired_is_kept(enum sl_expired expired, const struct sl_host *host, const struct sl_record *r);

#endif
