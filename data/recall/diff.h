/* What differs between two items, place by place. */
#ifndef SL_DATA_RECALL_DIFF_H
#define SL_DATA_RECALL_DIFF_H

#include "streams/value.h"

/* Called for each difference: `path` as sl_value_path takes it, borrowed for the call; SL_NONE before: it was
 * added; SL_NONE after: it was removed. Maps and lists are looked into; a list's elements are compared place
 * by place. Numbers are compared by value, sets without order. */
typedef void sl_diff_found(void *arg, struct sl_span path, struct sl_value before, struct sl_value after);

/* Of two images (SL_M); one may be SL_NONE: then each attribute of the other one is found. First what is in
 * `after`, in its order, then what is no longer there. */
void sl_diff(struct sl_value before, struct sl_value after, struct sl_arena *arena, sl_diff_found *found,
             void *arg);

#endif
