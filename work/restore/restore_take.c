/* A record becomes an entry: which item it is of, when it happened, from which state to which, and the line
 * that it is worth. */
#include "work/restore/restore_private.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "streams/record.h"
#include "streams/value.h"

#include <inttypes.h>

static uint64_t digest64(struct sl_restore *r, struct sl_span text)
{
    unsigned char digest[SL_SHA256_BYTES];
    uint64_t out;
    sl_sha256_parts(&r->sha, &text, 1, digest);
    memcpy(&out, digest, sizeof(out));
    return out > SL_RESTORE_UNKNOWN ? out : out + 2;
}

/* Numbers by value, sets without order: two spellings of one item are one state. */
static uint64_t state_of(struct sl_restore *r, struct sl_value image)
{
    if (image.type == SL_NONE)
        return SL_RESTORE_UNKNOWN;
    sl_buffer_reset(&r->text);
    sl_value_canonical(image, &r->text);
    return digest64(r, sl_buffer_span(&r->text));
}

static uint64_t state_before(struct sl_restore *r, const struct sl_record *record)
{
    if (sl_record_event(record) == SL_INSERT)
        return SL_RESTORE_ABSENT;
    return state_of(r, sl_record_image(record, SL_OLD_IMAGE));
}

static enum sl_status refuse(const struct sl_restore *r, const struct sl_record *record, const char *code,
                             const char *what, struct sl_error *error)
{
    struct sl_span id = sl_record_text(record, SL_FIELD_SEQUENCE_NUMBER);
    return sl_fail(error, SL_REJECT, code, "%s: the change %.*s %s",
                   sl_source_facts(r->options.archive)->name, id.ptr ? (int)id.len : 1, id.ptr ? id.ptr : "?",
                   what);
}

/* The text goes in without line feeds: a record may have come in a document. */
static void add_json(struct sl_buffer *out, struct sl_span json)
{
    if (memchr(json.ptr, '\n', json.len) || memchr(json.ptr, '\r', json.len))
        sl_json_add_compact(out, json);
    else
        sl_buffer_add_span(out, json);
}

/* {"Metadata":{"WriteTimestampMicros":{"N":"..."}},"Keys":{...},"NewImage":{...}} */
static struct sl_span line_of(struct sl_restore *r, const struct sl_record *record, int64_t us)
{
    sl_buffer_reset(&r->text);
    sl_buffer_printf(&r->text,
                     "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"%" PRId64 "\"}},\"Keys\":", us);
    add_json(&r->text, sl_record_image(record, SL_KEYS).raw);
    sl_buffer_add_str(&r->text, ",\"NewImage\":");
    add_json(&r->text, sl_record_image(record, SL_NEW_IMAGE).raw);
    sl_buffer_add_str(&r->text, "}\n");
    return sl_buffer_span(&r->text);
}

static enum sl_status add(struct sl_restore *r, struct sl_sorter_entry *entry, const struct sl_record *record,
                          int64_t us, struct sl_error *error)
{
    struct sl_span key = sl_record_item_key(record, r->arena), line = {NULL, 0};
    sl_sha256_parts(&r->sha, &key, 1, entry->key);
    if (entry->after != SL_RESTORE_ABSENT)
        line = line_of(r, record, us);
    return sl_sorter_add(r->sorter, entry, line, error);
}

static enum sl_status take_base(struct sl_restore *r, const struct sl_record *record, struct sl_error *error)
{
    struct sl_sorter_entry entry = {.before = SL_RESTORE_UNKNOWN, .flags = SL_RESTORE_IS_BASE};
    entry.after = state_of(r, sl_record_image(record, SL_NEW_IMAGE));
    r->report.base_items++;
    return add(r, &entry, record, r->base_ms * 1000, error);
}

static enum sl_status check(struct sl_restore *r, const struct sl_record *record, int64_t ms,
                            struct sl_span order, struct sl_error *error)
{
    if (!ms)
        return refuse(r, record, "NoTime", "does not say when it happened (ApproximateCreationDateTime)",
                      error);
    if (!order.len || order.len > SL_SORTER_ORDER_BYTES)
        return refuse(r, record, "NoOrder", "has no sequence number", error);
    if (sl_record_event(record) != SL_REMOVE && sl_record_image(record, SL_NEW_IMAGE).type == SL_NONE)
        return refuse(
            r, record, "NoNewImage",
            "has no new image: an archive of a stream with KEYS_ONLY or OLD_IMAGE cannot be restored", error);
    return SL_OK;
}

/* Whether the change is one of those between the base and the moment. */
static bool is_wanted(struct sl_restore *r, int64_t ms)
{
    struct sl_restore_report *n = &r->report;
    n->changes++;
    n->first_ms = n->first_ms && n->first_ms < ms ? n->first_ms : ms;
    n->last_ms = n->last_ms > ms ? n->last_ms : ms;
    bool is_after = ms >= r->options.until_ms, is_before = !is_after && ms / 1000 < r->base_ms / 1000;
    n->after += is_after;
    n->before += is_before;
    return !is_after && !is_before;
}

static enum sl_status take_change(struct sl_restore *r, const struct sl_record *record,
                                  struct sl_error *error)
{
    int64_t ns = sl_record_created_ns(record), ms = ns / 1000000;
    struct sl_span order = sl_record_order(record, r->arena);
    enum sl_status status = check(r, record, ms, order, error);
    if (status != SL_OK || !is_wanted(r, ms))
        return status;
    struct sl_sorter_entry entry = {.before = state_before(r, record), .after = SL_RESTORE_ABSENT};
    entry.flags = r->base_ms && ms / 1000 == r->base_ms / 1000 ? SL_RESTORE_NEAR_BASE : 0;
    entry.order_bytes = (uint32_t)order.len;
    memcpy(entry.order, order.ptr, order.len);
    if (sl_record_event(record) != SL_REMOVE)
        entry.after = state_of(r, sl_record_image(record, SL_NEW_IMAGE));
    r->report.without_old_images += entry.before == SL_RESTORE_UNKNOWN;
    return add(r, &entry, record, ns / 1000, error);
}

/* Keys of two tables may be the same. */
static enum sl_status check_table(struct sl_restore *r, const struct sl_record *record,
                                  struct sl_error *error)
{
    struct sl_span table = sl_record_text(record, SL_FIELD_TABLE);
    if (!table.len || sl_span_is(table, r->table))
        return SL_OK;
    if (r->table[0])
        return sl_fail(error, SL_REJECT, "TwoTables",
                       "%s: holds the tables %s and %.*s: restore from the objects of one table (a prefix of "
                       "the archive), with the export of the same one",
                       sl_source_facts(r->options.archive)->name, r->table, SL_ARG(table));
    snprintf(r->table, sizeof(r->table), "%.*s", SL_ARG(table));
    return SL_OK;
}

enum sl_status sl_restore_take(struct sl_restore *r, const struct sl_record *record, bool is_base,
                               struct sl_error *error)
{
    if (check_table(r, record, error) != SL_OK)
        return SL_REJECT;
    return is_base ? take_base(r, record, error) : take_change(r, record, error);
}
