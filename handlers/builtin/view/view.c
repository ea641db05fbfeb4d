/* The view handler: one item becomes rows under other keys.
 *
 * The rows of an item are a function of the item alone. Beside them stands the item's list: which rows it
 * has, and the order of the change that they are of. A change writes what differs from the list, and the
 * list, in one transaction, on condition that the list is as it was read. So a slice may be delivered again,
 * in part, late and in any order: a change that is not newer than the list is refused, and one that follows a
 * change which never came writes what that one would have. (Without
 * lists, and without "each": view_guard.c.) */
#include "handlers/builtin/view/view_private.h"

static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    const struct view *v = self;
    if (v->is_guarded && view == SL_VIEW_NEW_IMAGE)
        return v->host->fail(
            error, SL_FATAL, "ViewType",
            "without lists the old image says which row goes, and a stream of view type %s has none: "
            "enable it with NEW_AND_OLD_IMAGES, or leave \"list\": false out",
            v->host->view_name(view));
    if (view != SL_VIEW_KEYS_ONLY && view != SL_VIEW_OLD_IMAGE)
        return SL_OK;
    return v->host->fail(
        error, SL_FATAL, "ViewType",
        "a stream of view type %s does not carry the items that rows are made of: enable the "
        "stream with NEW_AND_OLD_IMAGES or NEW_IMAGE",
        v->host->view_name(view));
}

static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct view *v = self;
    out->remembers_s = v->tombstone_s;
    out->units_of_item = v->is_guarded ? 1 : 2;
    out->units_more = v->is_guarded ? 0 : 2;
    return v->expired == SL_EXPIRED_APPLY
               ? SL_OK
               : v->host->fail(error, SL_REJECT, "NotPerItem",
                               "\"expired\": \"keep\": what the view holds of expired items is not in the "
                               "table");
}

static enum sl_status any_order(void *self, struct sl_any_order *out, struct sl_error *error)
{
    const struct view *v = self;
    (void)error;
    out->remembers_s = v->tombstone_s;
    return SL_OK;
}

/* ---- what changes cost ---- */

#define WRITE_UNIT 1024 /* bytes; begun ones count. A transaction costs twice */

static enum sl_status price(void *self, struct sl_price *price, struct sl_error *error)
{
    double n = (double)price->records;
    double u = price->item_bytes ? (double)((price->item_bytes + WRITE_UNIT - 1) / WRITE_UNIT) : 1;
    const struct view *v = self;
    (void)error;
    if (v->is_guarded) {
        price->writes = price->records;
        price->write_units = n * u;
        price->formula =
            "u where a change alters the row (u: KB of the row, here as large as the item, rounded up; "
            "and one more for the old row where the key changes); a change that does not costs nothing";
        return SL_OK;
    }
    price->reads = price->records;
    price->read_units = n;
    price->writes = (size_t)(2 * n);
    price->write_units = n * (2 * u + 2);
    price->formula =
        "2u + 2 where a change alters one row (u: KB of the row, here as large as the item, rounded up; 2u "
        "more for each further row, and for a key that changes): a transaction of the row and the "
        "item's list, and a read of the list; a change that alters no row costs nothing";
    return SL_OK;
}

const struct sl_handler sl_view_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "view",
    .summary = "rows under other keys, made of the source's items",
    .options = view_options,
    .open = view_open,
    .handle = view_handle,
    .accepts = accepts,
    .expect = view_expect,
    .judge = view_judge,
    .trace = view_trace,
    .repair = view_repair,
    .per_item = per_item,
    .price = price,
    .any_order = any_order,
};
