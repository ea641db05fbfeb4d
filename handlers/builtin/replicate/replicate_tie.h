/* Inside the replicate handler: changes of one item that have one order. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_TIE_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_TIE_H

#include "handlers/builtin/replicate/replicate_private.h"

/* Are two guards of one epoch and order? (replicate_guard.c) */
bool replicate_guard_is_same(struct sl_span a, struct sl_span b);

/* Are two changes of one item and order different ones, and nothing says which was first? */
bool replicate_tie_is_mixed(const struct replicate *p, const struct sl_record *a, const struct sl_record *b,
                            struct sl_arena *arena);

/* Makes repairs of the changes that are tied and written, of what the source has now. Returns whether there
 * are any. */
bool replicate_ties_take(struct replicate_fold *f);

#endif
