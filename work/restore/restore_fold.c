/* Sorted entries, item by item: gaps between changes are noticed, and the newest state becomes a line. */
#include "work/restore/restore_private.h"

#include "base/disk.h"
#include "base/error.h"

#include <errno.h>

static enum sl_status report_gap(struct sl_restore *r, const struct sl_sorter_entry *entry,
                                 struct sl_error *error)
{
    char hex[SL_SHA256_HEX];
    r->report.gaps++;
    if (r->options.any_gap)
        return SL_OK;
    sl_sha256_hex(entry->key, hex);
    return sl_fail(
        error, SL_REJECT, "Gap",
        "%s: changes are missing: the change %.*s of the item whose key has the SHA-256 %.12s... begins with "
        "another item than %s left. The archive's route has a filter, or objects are missing. Restore from "
        "an "
        "unfiltered archive, or pass --unsafe-order to take what is there",
        sl_source_facts(r->options.archive)->name, (int)entry->order_bytes, entry->order, hex,
        !r->has_last || !sl_sorter_same_key(&r->last, entry) || (r->last.flags & SL_RESTORE_IS_BASE)
            ? "the base"
            : "the change before it");
}

/* Through Kinesis a change has no number. What comes after two changes of one time settles them. */
static enum sl_status end_item(struct sl_restore *r, struct sl_error *error)
{
    char hex[SL_SHA256_HEX];
    r->report.removed += r->has_last && r->last.after == SL_RESTORE_ABSENT;
    if (!r->is_tied)
        return SL_OK;
    r->is_tied = false;
    r->report.ties++;
    if (r->options.any_gap)
        return SL_OK;
    sl_sha256_hex(r->last.key, hex);
    return sl_fail(
        error, SL_REJECT, "TiedOrder",
        "%s: the last two changes of the item whose key has the SHA-256 %.12s... have one time, %.*s, and "
        "nothing says which came last: a Kinesis stream carries no sequence numbers. Restore to "
        "another moment, or pass --unsafe-order to take one of them",
        sl_source_facts(r->options.archive)->name, hex, (int)r->last.order_bytes, r->last.order);
}

/* The state in which the entry has to find the item. */
static uint64_t state_left(const struct sl_restore *r, const struct sl_sorter_entry *entry)
{
    bool is_first = !r->has_last || !sl_sorter_same_key(&r->last, entry);
    bool follows_base = is_first || (r->last.flags & SL_RESTORE_IS_BASE);
    if (!is_first && r->is_tied)
        return SL_RESTORE_UNKNOWN;
    if (follows_base && (!r->base_ms || (entry->flags & SL_RESTORE_NEAR_BASE)))
        return SL_RESTORE_UNKNOWN;
    return is_first ? SL_RESTORE_ABSENT : r->last.after;
}

static bool is_double(const struct sl_restore *r, const struct sl_sorter_entry *entry)
{
    return r->has_last && sl_sorter_same_key(&r->last, entry) && entry->order_bytes &&
           r->last.order_bytes == entry->order_bytes &&
           memcmp(r->last.order, entry->order, entry->order_bytes) == 0;
}

static enum sl_status check(struct sl_restore *r, const struct sl_sorter_entry *entry, struct sl_error *error)
{
    uint64_t left = state_left(r, entry);
    if (is_double(r, entry)) {
        r->report.doubles++;
        r->is_tied = r->is_tied || (entry->after != r->last.after && entry->after != SL_RESTORE_UNKNOWN &&
                                    r->last.after != SL_RESTORE_UNKNOWN);
        return SL_OK;
    }
    r->is_tied = false;
    if ((entry->flags & SL_RESTORE_IS_BASE) || left == SL_RESTORE_UNKNOWN ||
        entry->before == SL_RESTORE_UNKNOWN || entry->before == left)
        return SL_OK;
    return report_gap(r, entry, error);
}

/* The newest entry of an item comes with its line, unless the item is gone. An entry that another one of its
 * item follows has none. */
static enum sl_status take_entry(struct sl_restore *r, const struct sl_sorter_entry *entry,
                                 struct sl_span line, struct sl_error *error)
{
    bool is_next = r->has_last && !sl_sorter_same_key(&r->last, entry);
    enum sl_status status = is_next ? end_item(r, error) : SL_OK;
    if (status == SL_OK)
        status = check(r, entry, error);
    r->last = *entry;
    r->has_last = true;
    r->report.items += line.ptr != NULL;
    if (status == SL_OK && line.ptr && fwrite(line.ptr, line.len, 1, r->out) != 1)
        status = sl_fail(error, SL_FATAL, sl_disk_code(errno), "%s: cannot write the restored items: %s",
                         r->options.folder, strerror(errno));
    return status;
}

enum sl_status sl_restore_fold(struct sl_restore *r, size_t entries, bool *is_done, struct sl_error *error)
{
    struct sl_sorter_entry entry;
    struct sl_span line;
    bool has = true;
    enum sl_status status = SL_OK;
    for (; entries > 0 && has && status == SL_OK; entries--) {
        status = sl_sorter_next(r->sorter, &entry, &line, &has, error);
        if (status == SL_OK && has)
            status = take_entry(r, &entry, line, error);
    }
    *is_done = status == SL_OK && !has;
    return *is_done ? end_item(r, error) : status;
}
