/* The replicate handler: the table ends up equal to the source.
 *
 * A slice is folded: of each item only its newest change is written, with a guard, so that it takes effect
 * only if it is newer than what is there. A write that the guard refuses has been overtaken, which is
 * success. So a slice may be delivered again, in part, late and in any order. */
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_repair.h"

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct replicate *p = self;
    struct replicate_fold f = {.p = p, .slice = slice};
    p->records_epoch = slice->epoch >= 0 ? slice->epoch : p->epoch;
    if (sl_loop_closes(&f.p->loop, f.p->host, slice))
        return sl_loop_refuse(&f.p->loop, f.p->host, "", error);
    enum sl_status status = replicate_fold_slice(&f, error);
    if (status == SL_OK)
        status = replicate_read_images(&f, error);
    if (status != SL_OK)
        return status;
    replicate_write_changes(&f);
    return sl_outcome_end(&f.outcome, error);
}

/* Removals need no image, and with a source to read from nothing does. */
static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    const struct replicate *p = self;
    bool only_removals = (p->events & ~(1u << SL_REMOVE)) == 0;
    if (p->source || only_removals || (view != SL_VIEW_KEYS_ONLY && view != SL_VIEW_OLD_IMAGE))
        return SL_OK;
    return p->host->fail(
        error, SL_FATAL, "ViewType",
        "a stream of view type %s does not carry the items: name the source table in \"source\" so "
        "that they are read back, or enable the stream with NEW_IMAGE or NEW_AND_OLD_IMAGES",
        p->host->view_name(view));
}

/* Guards tell an item from the changes that came before it or after it. */
static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct replicate *p = self;
    const char *why =
        p->expired != SL_EXPIRED_APPLY
            ? "\"expired\": \"keep\": what the replica holds of expired items is not in the table"
            : NULL;
    for (size_t i = 0; i < p->n_keys && !why; i++)
        if (!sl_render_is_of_item(p->host, p->keys[i].value.compiled, out))
            why = "a template of its \"key\" names the time or the event of a change";
    bool is_transaction = p->guard == REPLICATE_SIDE || p->tombstones.table.ptr;
    out->remembers_s = p->tombstone_s;
    out->units_of_item = is_transaction ? 2 : 1;
    out->units_more = is_transaction ? 2 : 0; /* the guard's row, or a look at the mark */
    if (why)
        return p->host->fail(error, SL_REJECT, "NotPerItem", "%s", why);
    /* The code says that nothing else is in the way: a restore goes into an empty table. */
    return p->guard != REPLICATE_NONE ? SL_OK
                                      : p->host->fail(error, SL_REJECT, "NoGuard", "%s",
                                                      "without guards an item would replace what is newer");
}

/* A guard refuses what is older, whenever it comes; a removal is remembered for some days. */
static enum sl_status any_order(void *self, struct sl_any_order *out, struct sl_error *error)
{
    const struct replicate *p = self;
    out->remembers_s = p->tombstone_s;
    if (p->guard == REPLICATE_NONE)
        return p->host->fail(error, SL_REJECT, "NotAnyOrder",
                             "guard: without guards a late change would replace what is newer");
    if (p->source && p->expired != SL_EXPIRED_APPLY)
        return p->host->fail(
            error, SL_REJECT, "NotAnyOrder",
            "expired: what is kept of expired items cannot be read back from \"source\" later");
    return SL_OK;
}

const struct sl_handler sl_replicate_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "replicate",
    .summary = "a table that ends up equal to the source",
    .options = replicate_options,
    .open = replicate_open,
    .handle = handle,
    .accepts = accepts,
    .expect = replicate_expect,
    .judge = replicate_judge,
    .trace = replicate_trace,
    .repair = replicate_repair,
    .per_item = per_item,
    .price = replicate_price,
    .any_order = any_order,
};
