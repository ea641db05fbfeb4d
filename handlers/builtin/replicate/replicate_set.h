/* Inside the replicate handler: "set", attributes that templates make of the source's item. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_SET_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_SET_H

#include "handlers/builtin/replicate/replicate_private.h"
#include "handlers/builtin/toolkit/opening.h"

/* Reads the option. */
enum sl_status replicate_set_open(const struct sl_opening *o, struct replicate *p) SL_MUST_USE;

/* SL_FATAL when `set` names an attribute of the source's key. */
enum sl_status replicate_set_check(const struct replicate *p, struct sl_value keys,
                                   struct sl_error *error) SL_MUST_USE;

/* The values of all sets; SL_NONE: the item does not get the attribute. */
struct replicate_made {
    struct sl_value *values;
    size_t bytes; /* what their members take at most */
};
enum sl_status replicate_set_make(const struct replicate *p, const struct replicate_change *change,
                                  struct sl_arena *arena, struct replicate_made *out,
                                  struct sl_error *error) SL_MUST_USE;

#endif
