/* A restore, step by step: the base and the archive go to the sorter, and come out as each item's newest
 * state. */
#include "data/restore/restore.h"

#include "base/disk.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/sha256.h"
#include "base/time.h"
#include "data/sorter.h"
#include "streams/record.h"
#include "streams/value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE_BYTES      ((size_t)1024 * 1024)
#define TEXT_BYTES       (2 * SL_SOURCE_RECORD_BYTES)
#define ENTRIES          20000 /* of a step */
#define OUT_BUFFER_BYTES ((size_t)1024 * 1024)
#define ASIDE            SL_RESTORE_RESULT ".new"
#define PATH_BYTES       4096

/* States of an item beside the digest of its image. */
#define SL_RESTORE_ABSENT  0u
#define SL_RESTORE_UNKNOWN 1u

/* Flags of an entry. */
#define SL_RESTORE_IS_BASE   1u
#define SL_RESTORE_NEAR_BASE 2u /* of the base's own second: the base may hold it already */

enum sl_restore_phase {
    SL_RESTORE_BASE,
    SL_RESTORE_ARCHIVE,
    SL_RESTORE_MERGE,
    SL_RESTORE_FOLD,
    SL_RESTORE_DONE
};

struct sl_restore {
    struct sl_restore_options options;
    struct sl_restore_report report;
    enum sl_restore_phase phase;
    struct sl_arena *arena; /* of one piece */
    struct sl_sha256 sha;
    struct sl_buffer text; /* where canonical texts and lines are made */
    struct sl_sorter *sorter;
    int64_t base_ms;                   /* 0: there is no base */
    char table[SL_SOURCE_TABLE_BYTES]; /* of all records; "" until one says it */
    FILE *out;                         /* the result, under another name */
    struct sl_sorter_entry last;       /* the one before, of the same or another item */
    bool has_last, is_tied;            /* the last of the item is of two that differ, and have one order */
};

/* A record becomes an entry: which item it is of, when it happened, from which state to which, and the line
 * that it is worth. */

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

static enum sl_status check_change(struct sl_restore *r, const struct sl_record *record, int64_t ms,
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
    enum sl_status status = check_change(r, record, ms, order, error);
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

static enum sl_status check_table(struct sl_restore *r, const struct sl_record *record,
                                  struct sl_error *error)
{
    if (sl_source_same_table(record, r->table))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "TwoTables",
                   "%s: holds the tables %s and %.*s: restore from the objects of one table (a prefix of "
                   "the archive), with the export of the same one",
                   sl_source_facts(r->options.archive)->name, r->table,
                   SL_ARG(sl_record_text(record, SL_FIELD_TABLE)));
}

/* One record of the base, or one change of the archive, goes to the sorter. */
static enum sl_status restore_take(struct sl_restore *r, const struct sl_record *record, bool is_base,
                                   struct sl_error *error)
{
    if (check_table(r, record, error) != SL_OK)
        return SL_REJECT;
    return is_base ? take_base(r, record, error) : take_change(r, record, error);
}

/* Sorted entries, item by item: gaps between changes are noticed, and the newest state becomes a line. */

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

static enum sl_status check_entry(struct sl_restore *r, const struct sl_sorter_entry *entry,
                                  struct sl_error *error)
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
        status = check_entry(r, entry, error);
    r->last = *entry;
    r->has_last = true;
    r->report.items += line.ptr != NULL;
    if (status == SL_OK && line.ptr && fwrite(line.ptr, line.len, 1, r->out) != 1)
        status = sl_fail(error, SL_FATAL, sl_disk_code(errno), "%s: cannot write the restored items: %s",
                         r->options.folder, strerror(errno));
    return status;
}

/* Some sorted entries become lines of the result. */
static enum sl_status restore_fold(struct sl_restore *r, size_t entries, bool *is_done,
                                   struct sl_error *error)
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

/* ---- opening ---- */

static const char *time_text(int64_t ms, char out[SL_TIME_BYTES])
{
    sl_time_text(ms * 1000000, out);
    return out;
}

static enum sl_status check_times(struct sl_restore *r, struct sl_error *error)
{
    char base[SL_TIME_BYTES], until[SL_TIME_BYTES];
    int64_t until_ms = r->options.until_ms;
    if (until_ms <= 0 || until_ms % 1000)
        return sl_fail(error, SL_REJECT, "InvalidTime",
                       "a restore ends at a whole second: changes are known to the second");
    if (!r->options.base)
        return SL_OK;
    r->base_ms = sl_source_facts(r->options.base)->time_ms;
    if (!r->base_ms)
        return sl_fail(error, SL_REJECT, "NoTime", "%s: does not say at which time it shows the table",
                       sl_source_facts(r->options.base)->name);
    if (r->base_ms > until_ms)
        return sl_fail(error, SL_REJECT, "BaseTooNew",
                       "%s: shows the table as it was at %s, which is after %s: take an older export",
                       sl_source_facts(r->options.base)->name, time_text(r->base_ms, base),
                       time_text(until_ms, until));
    return SL_OK;
}

static enum sl_status open_result(struct sl_restore *r, struct sl_error *error)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/" ASIDE, r->options.folder);
    r->out = fopen(path, "wb");
    if (!r->out)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot create %s: %s", path, strerror(errno));
    setvbuf(r->out, NULL, _IOFBF, OUT_BUFFER_BYTES);
    return SL_OK;
}

enum sl_status sl_restore_open(const struct sl_restore_options *options, struct sl_restore **out,
                               struct sl_error *error)
{
    struct sl_restore *r = calloc(1, sizeof(*r));
    if (!r)
        sl_die("out of memory: a restore");
    r->options = *options;
    r->phase = options->base ? SL_RESTORE_BASE : SL_RESTORE_ARCHIVE;
    r->arena = sl_arena_new(256 * 1024);
    sl_sha256_init(&r->sha);
    sl_buffer_init(&r->text, TEXT_BYTES);
    *out = NULL;
    enum sl_status status = check_times(r, error);
    if (status == SL_OK)
        status = open_result(r, error);
    if (status != SL_OK) {
        sl_restore_close(r);
        return status;
    }
    r->sorter = sl_sorter_open(r->options.folder, options->chunk_bytes);
    *out = r;
    return SL_OK;
}

void sl_restore_close(struct sl_restore *r)
{
    if (!r)
        return;
    if (r->out)
        fclose(r->out);
    sl_sorter_close(r->sorter);
    sl_buffer_clean_up(&r->text);
    sl_sha256_clean_up(&r->sha);
    sl_arena_destroy(r->arena);
    free(r);
}

const struct sl_restore_report *sl_restore_report(const struct sl_restore *r)
{
    return &r->report;
}

/* ---- reading ---- */

/* After the last change of the archive: it has to begin at the base, or before it. */
static enum sl_status check_beginning(const struct sl_restore *r, struct sl_error *error)
{
    char base[SL_TIME_BYTES], since[SL_TIME_BYTES];
    int64_t since_ms = r->options.since_ms ? r->options.since_ms : r->report.first_ms;
    if (!r->base_ms || r->options.any_gap || (since_ms && since_ms <= r->base_ms))
        return SL_OK;
    if (!since_ms)
        return sl_fail(
            error, SL_REJECT, "ArchiveTooNew",
            "%s: holds no change, so it is not known that it begins before the base, %s; if it does, "
            "say since when it holds every change (--consumer-since)",
            sl_source_facts(r->options.archive)->name, time_text(r->base_ms, base));
    return sl_fail(
        error, SL_REJECT, "ArchiveTooNew",
        "%s: begins at %s, and the base shows the table as it was at %s: changes between them may be "
        "missing. Take a newer export; or, if the archive holds every change since an earlier time, "
        "say so (--consumer-since)",
        sl_source_facts(r->options.archive)->name, time_text(since_ms, since), time_text(r->base_ms, base));
}

static enum sl_status read_piece(struct sl_restore *r, int64_t deadline_ms, struct sl_error *error)
{
    bool is_base = r->phase == SL_RESTORE_BASE;
    struct sl_source_piece piece;
    sl_arena_reset(r->arena);
    const struct sl_call call = {.arena = r->arena, .deadline_ms = deadline_ms};
    size_t bytes = r->options.piece_bytes ? r->options.piece_bytes : PIECE_BYTES;
    enum sl_status status =
        sl_source_pull(is_base ? r->options.base : r->options.archive, bytes, &call, &piece, error);
    if (status != SL_OK)
        return status;
    for (size_t i = 0; i < piece.batch.n && status == SL_OK; i++)
        status = restore_take(r, sl_batch_record(&piece.batch, i), is_base, error);
    if (status != SL_OK || !piece.is_last)
        return status;
    r->phase = is_base ? SL_RESTORE_ARCHIVE : SL_RESTORE_MERGE;
    return is_base ? SL_OK : check_beginning(r, error);
}

/* ---- the result ---- */

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return result;
}

/* Whole or not at all. */
static enum sl_status end(struct sl_restore *r, struct sl_error *error)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    FILE *out = r->out;
    r->out = NULL;
    snprintf(from, sizeof(from), "%s/" ASIDE, r->options.folder);
    snprintf(to, sizeof(to), "%s/" SL_RESTORE_RESULT, r->options.folder);
    bool is_good = fflush(out) == 0 && fsync(fileno(out)) == 0;
    is_good = fclose(out) == 0 && is_good && rename(from, to) == 0 && sync_folder(r->options.folder) == 0;
    if (!is_good)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot write %s: %s", to, strerror(errno));
    r->phase = SL_RESTORE_DONE;
    return SL_OK;
}

enum sl_status sl_restore_step(struct sl_restore *r, int64_t deadline_ms, bool *is_done,
                               struct sl_error *error)
{
    bool is_over = false;
    enum sl_status status = SL_OK;
    switch (r->phase) {
    case SL_RESTORE_BASE:
    case SL_RESTORE_ARCHIVE:
        status = read_piece(r, deadline_ms, error);
        break;
    case SL_RESTORE_MERGE:
        status = sl_sorter_merge(r->sorter, ENTRIES, &is_over, error);
        r->phase = is_over ? SL_RESTORE_FOLD : SL_RESTORE_MERGE;
        break;
    case SL_RESTORE_FOLD:
        status = restore_fold(r, ENTRIES, &is_over, error);
        if (status == SL_OK && is_over)
            status = end(r, error);
        break;
    case SL_RESTORE_DONE:
        break;
    }
    *is_done = r->phase == SL_RESTORE_DONE;
    return status;
}
