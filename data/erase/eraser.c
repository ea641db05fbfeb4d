/* One object's text without the records of some items. */
#include "data/erase/erase.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/map.h"
#include "streams/record.h"
#include "streams/shorthand.h"

#include <stdlib.h>

#define LINE_BYTES ((size_t)16 * 1024 * 1024)

struct sl_eraser {
    struct sl_erase_options options;
    struct sl_arena *arena; /* as long as the eraser */
    struct sl_map items;
    struct sl_sha256 sha;
    struct sl_sha256_key secret;
};

struct sl_eraser *sl_eraser_new(const struct sl_erase_options *options)
{
    struct sl_eraser *eraser = calloc(1, sizeof(*eraser));
    if (!eraser)
        sl_die("out of memory: an erasure");
    eraser->options = *options;
    eraser->arena = sl_arena_new(64 * 1024);
    sl_map_init(&eraser->items, eraser->arena, options->n + 1);
    for (size_t i = 0; i < options->n; i++)
        (void)sl_map_index(&eraser->items, sl_span((const char *)options->items[i], SL_SHA256_BYTES));
    sl_sha256_init(&eraser->sha);
    sl_sha256_key_set(&eraser->sha, &eraser->secret, options->secret);
    return eraser;
}

void sl_eraser_destroy(struct sl_eraser *eraser)
{
    if (!eraser)
        return;
    sl_sha256_key_clean_up(&eraser->secret);
    sl_sha256_clean_up(&eraser->sha);
    sl_arena_destroy(eraser->arena);
    free(eraser);
}

/* Whether it is a record of one of the items; `digest` is its item's. */
static bool is_one(struct sl_eraser *eraser, const struct sl_record *r, struct sl_arena *arena,
                   unsigned char digest[SL_SHA256_BYTES])
{
    struct sl_span key = sl_record_item_key(r, arena);
    sl_sha256_parts(&eraser->sha, &key, 1, digest);
    return sl_map_find(&eraser->items, sl_span((const char *)digest, SL_SHA256_BYTES)) != SL_MAP_NONE;
}

void sl_erase_pseudonym(struct sl_sha256 *sha, const struct sl_sha256_key *secret,
                        const unsigned char item[SL_SHA256_BYTES], char out[SL_SHA256_HEX])
{
    unsigned char digest[SL_SHA256_BYTES];
    sl_sha256_hmac(sha, secret, sl_span((const char *)item, SL_SHA256_BYTES), digest);
    sl_sha256_hex(digest, out);
}

/* ---- what stays of a record ---- */

/* Nobody knows what else a member may hold. */
static bool is_of(struct sl_span name, const char *const *names)
{
    for (; *names; names++)
        if (sl_span_is(name, *names))
            return true;
    return false;
}

static void add_member(struct sl_buffer *out, struct sl_span name, struct sl_span value)
{
    sl_buffer_add_str(out, out->ptr[out->len - 1] == '{' ? "\"" : ",\"");
    sl_buffer_add_span(out, name);
    sl_buffer_add_str(out, "\":");
    sl_json_add_compact(out, value);
}

/* The names of the key's attributes stay; the first of them has the digest. */
static void add_key(struct sl_eraser *eraser, const struct sl_record *r,
                    const unsigned char item[SL_SHA256_BYTES], struct sl_buffer *out)
{
    char hex[SL_SHA256_HEX];
    sl_erase_pseudonym(&eraser->sha, &eraser->secret, item, hex);
    struct sl_iter iter = sl_value_iter(sl_record_image(r, SL_KEYS));
    struct sl_span name;
    struct sl_value value;
    sl_buffer_add_str(out, out->ptr[out->len - 1] == '{' ? "\"Keys\":{" : ",\"Keys\":{");
    while (sl_value_next(&iter, &name, &value)) {
        sl_buffer_add_str(out, out->ptr[out->len - 1] == '{' ? "\"" : ",\"");
        sl_buffer_add_span(out, name);
        sl_buffer_printf(out, "\":{\"S\":\"%s\"}", hex);
    }
    sl_buffer_add_char(out, '}');
}

static void add_stub(struct sl_eraser *eraser, const struct sl_record *r,
                     const unsigned char item[SL_SHA256_BYTES], struct sl_buffer *out)
{
    static const char *const outer[] = {"eventID",        "eventName", "eventVersion", "eventSource",
                                        "eventSourceARN", "awsRegion", "tableName",    "recordFormat",
                                        "userIdentity",   NULL};
    static const char *const inner[] = {"ApproximateCreationDateTime", "ApproximateCreationDateTimePrecision",
                                        "SequenceNumber", "StreamViewType", NULL};
    struct sl_json_walk walk = sl_json_walk(sl_record_text(r, SL_FIELD_RAW));
    struct sl_span name, value;
    sl_buffer_add_str(out, SL_ERASED_LINE "\"");
    sl_buffer_add_str(out, eraser->options.run);
    sl_buffer_add_char(out, '"');
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (is_of(name, outer)) {
            add_member(out, name, value);
        } else if (sl_span_is(name, "dynamodb")) {
            struct sl_json_walk body = sl_json_walk(value);
            sl_buffer_add_str(out, ",\"dynamodb\":{");
            while (sl_json_walk_next(&body, &name, &value))
                if (is_of(name, inner))
                    add_member(out, name, value);
            add_key(eraser, r, item, out);
            sl_buffer_add_char(out, '}');
        }
    }
    sl_buffer_add_str(out, "}\n");
}

/* ---- texts ---- */

static enum sl_status erase_records(struct sl_eraser *eraser, struct sl_span text, struct sl_arena *arena,
                                    struct sl_buffer *out, uint64_t *n, struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true, .keeps_erased = true};
    struct sl_batch batch = {.n = 0};
    enum sl_status status = text.len ? sl_batch_decode(text, arena, &options, &batch, error) : SL_OK;
    for (size_t i = 0; status == SL_OK && i < batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&batch, i);
        unsigned char item[SL_SHA256_BYTES];
        if (!is_one(eraser, r, arena, item)) {
            sl_buffer_add_span(out, sl_record_text(r, SL_FIELD_RAW));
            sl_buffer_add_char(out, '\n');
            continue;
        }
        ++*n;
        if (eraser->options.format == SL_ERASE_RECORD)
            add_stub(eraser, r, item, out);
    }
    return status;
}

/* A line's item; absent: it has none. */
static struct sl_span item_of(const struct sl_eraser *eraser, struct sl_span line, struct sl_arena *arena)
{
    struct sl_buffer text;
    if (eraser->options.format == SL_ERASE_ITEM)
        return sl_json_walk_member(line, SL_LIT("Item"));
    sl_buffer_init_in(&text, arena, LINE_BYTES);
    if (*line.ptr == '{')
        sl_shorthand_add_item(&text, line);
    return sl_buffer_span(&text);
}

static enum sl_status is_line_one(struct sl_eraser *eraser, struct sl_span line, struct sl_arena *arena,
                                  bool *is, struct sl_error *error)
{
    unsigned char item[SL_SHA256_BYTES];
    struct sl_batch batch;
    struct sl_items_entry entry = {.item = {NULL, 0}};
    enum sl_status status = sl_json_check_loose(line, error);
    if (status == SL_OK)
        entry.item = item_of(eraser, sl_json_find(line, ""), arena);
    struct sl_json_scan scan = {.end = sl_span_end(entry.item)};
    if (status == SL_OK &&
        (!entry.item.len || *entry.item.ptr != '{' || !sl_value_check_item(&scan, entry.item.ptr)))
        status = sl_fail(error, SL_REJECT, "WrongFormat", "it is not in the archive's format");
    if (status == SL_OK)
        status =
            sl_items_decode(&entry, 1, &eraser->options.names, SL_LIT(SL_REPLAYED_ARN), arena, &batch, error);
    *is = status == SL_OK && is_one(eraser, sl_batch_record(&batch, 0), arena, item);
    return status;
}

static enum sl_status erase_lines(struct sl_eraser *eraser, struct sl_span text, struct sl_buffer *out,
                                  uint64_t *n, struct sl_error *error)
{
    struct sl_arena *scratch = sl_arena_new(64 * 1024);
    enum sl_status status = SL_OK;
    while (status == SL_OK && text.len) {
        const struct sl_span line = sl_span_cut(&text, '\n');
        bool is = false;
        sl_arena_reset(scratch);
        if (line.len)
            status = is_line_one(eraser, line, scratch, &is, error);
        if (!is && line.len) {
            sl_buffer_add_span(out, line);
            sl_buffer_add_char(out, '\n');
        }
        *n += is;
    }
    sl_arena_destroy(scratch);
    return status;
}

/* {"record":{...},...}, as dispatch parks it. What a mapping leaves of a batch holds no record. */
static enum sl_status erase_parked(struct sl_eraser *eraser, struct sl_span text, struct sl_arena *arena,
                                   struct sl_buffer *out, uint64_t *n, struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true};
    unsigned char item[SL_SHA256_BYTES];
    struct sl_batch batch = {.n = 0};
    enum sl_status status = sl_json_check_loose(text, error);
    struct sl_span record = status == SL_OK ? sl_json_find(text, "record") : sl_span(NULL, 0);
    if (status == SL_OK && !record.ptr)
        status = sl_fail(error, SL_REJECT, "WrongFormat", "it is no parked record");
    if (status == SL_OK)
        status = sl_batch_decode(record, arena, &options, &batch, error);
    for (size_t i = 0; i < batch.n && status == SL_OK; i++)
        *n += is_one(eraser, sl_batch_record(&batch, i), arena, item);
    if (status == SL_OK && !*n)
        sl_buffer_add_span(out, text);
    return status;
}

enum sl_status sl_eraser_text(struct sl_eraser *eraser, struct sl_span text, struct sl_arena *arena,
                              struct sl_buffer *out, uint64_t *n, struct sl_error *error)
{
    enum sl_erase_format format = eraser->options.format;
    *n = 0;
    enum sl_status status = format == SL_ERASE_RECORD || format == SL_ERASE_EXPORT
                                ? erase_records(eraser, text, arena, out, n, error)
                            : format == SL_ERASE_PARKED ? erase_parked(eraser, text, arena, out, n, error)
                                                        : erase_lines(eraser, text, out, n, error);
    if (status == SL_OK && out->failed)
        status = sl_fail(error, SL_REJECT, "TooLarge", "it is larger than an archive's objects are");
    return status;
}
