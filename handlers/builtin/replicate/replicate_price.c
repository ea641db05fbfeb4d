/* What a change costs, in each form of guard. docs/HANDLERS.md has the same in words; a test holds both
 * against what DynamoDB Local says that it consumed. */
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_sign.h"

#define WRITE_UNIT 1024 /* bytes; begun ones count. A transaction costs twice */
#define READ_UNIT  4096 /* of a consistent read */

static double units(uint32_t bytes, uint32_t unit)
{
    return bytes ? (double)((bytes + unit - 1) / unit) : 1;
}

/* Of one change: units for the item's own (`u`), and more for rows that fit one unit. */
struct cost {
    unsigned item, more, writes;
    const char *formula;
};

static struct cost cost_of(const struct replicate *p, enum sl_event event)
{
    static const struct cost once = {1, 0, 1, "u"},
                             beside = {2, 2, 2, "2u + 2, a transaction of the item and its guard's row"},
                             make = {2, 2, 2, "2u + 2, a transaction of the item and a look at its mark"},
                             bury = {2, 3, 3,
                                     "2u + 3: a transaction of the tombstone and its mark, then a delete"};
    if (p->guard == REPLICATE_SIDE)
        return beside;
    if (p->guard == REPLICATE_NONE || !p->tombstones.table.ptr || event == SL_MODIFY)
        return once;
    return event == SL_INSERT ? make : bury;
}

enum sl_status replicate_price(void *self, struct sl_price *price, struct sl_error *error)
{
    const struct replicate *p = self;
    struct cost cost = cost_of(p, price->event);
    uint32_t bytes = price->item_bytes;
    bool is_inline = p->guard == REPLICATE_INLINE;
    bool is_read = p->source && price->event != SL_REMOVE &&
                   (price->view == SL_VIEW_KEYS_ONLY || price->view == SL_VIEW_OLD_IMAGE);
    (void)error;
    if (is_inline)
        bytes += (uint32_t)(p->guard_attribute.len + REPLICATE_GUARD_BYTES + p->write_attribute.len +
                            REPLICATE_SIGNATURE_BYTES);
    double u = units(bytes, WRITE_UNIT);
    price->writes = price->records * cost.writes;
    price->write_units = (double)price->records * (cost.item * u + cost.more);
    price->reads = is_read ? price->records : 0;
    price->read_units = is_read ? (double)price->records * units(price->item_bytes, READ_UNIT) : 0;
    const struct sl_span parts[] = {sl_span_str(cost.formula),
                                    is_inline ? SL_LIT(" (u: KB of the item with its guard, rounded up)")
                                              : SL_LIT(" (u: KB of the item, rounded up)"),
                                    is_read ? SL_LIT(", and a read of the item") : SL_LIT("")};
    price->formula = p->host->join(price->arena, parts, 3).ptr;
    return SL_OK;
}
