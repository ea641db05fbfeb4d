/* Inside the replicate handler: what `sluice verify` asks for, see handlers/expect.h. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_EXPECT_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_EXPECT_H

#include "handlers/builtin/replicate/replicate_private.h"

/* struct sl_handler's. */
enum sl_status replicate_expect(void *self, struct sl_expect *e, struct sl_error *error) SL_MUST_USE;
enum sl_status replicate_judge(void *self, struct sl_judge *j, struct sl_error *error) SL_MUST_USE;
enum sl_status replicate_trace(void *self, struct sl_trace *t, struct sl_error *error) SL_MUST_USE;

/* The replica's item without what is ours; the image itself where nothing is reshaped. `image.value`,
 * `record` and `key` of the change are set. (replicate_item.c) */
enum sl_status replicate_shape(const struct replicate *p, const struct replicate_change *change,
                               struct sl_arena *arena, struct sl_span *item,
                               struct sl_error *error) SL_MUST_USE;

/* Is the error of an item's key no error? An item of which no key can be made has no row and never had one,
 * since key attributes do not change; where "where" leaves it out, nothing is to be done. (replicate_fold.c)
 */
bool replicate_has_no_place(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                            const struct sl_error *error);

/* The name that an attribute of the source's key has on the replica; absent: it is not copied.
 * (replicate_item.c) */
struct sl_span replicate_held_name(const struct replicate *p, struct sl_span name);

/* What changes cost. */
enum sl_status replicate_price(void *self, struct sl_price *price, struct sl_error *error) SL_MUST_USE;

#endif
