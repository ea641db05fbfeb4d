/* A full export of a table: its manifests, then its data files in the order of their keys. */
#include "data/source/export_list.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "data/source/source_private.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <stdio.h>
#include <stdlib.h>

/* Text that is checked at a time before the first record. */
#define VERIFY_BYTES ((size_t)64 * 1024 * 1024)

/* Zeroed memory is one that has seen nothing. */
struct sl_repeats {
    struct sl_repeats_slot *slots;
};

/* Digests of so many keys are held; a later key takes the slot of an earlier one. So of two equal keys with
 * n others between them the second one is noticed with the probability exp(-n / SL_REPEATS_SLOTS). Keys that
 * differ are never taken for equal, but for a collision of 128 bits. */
#define SL_REPEATS_SLOTS ((size_t)1 << 18)

/* Digests of the keys that came of late: a table with one slot for each value of a hash. */

struct sl_repeats_slot {
    uint64_t first, second; /* both 0: empty */
};

/* Another hash than sl_hash, so that the two together have 128 bits: Knuth's multiplier of MMIX. */
static uint64_t second_hash(struct sl_span text)
{
    uint64_t hash = text.len;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash + (unsigned char)text.ptr[i] + 1) * UINT64_C(6364136223846793005) + (hash >> 29);
    return hash | 1;
}

static bool came_before(struct sl_repeats *seen, struct sl_span key)
{
    const struct sl_repeats_slot now = {sl_hash(key), second_hash(key)};
    struct sl_repeats_slot *slot = &seen->slots[(now.first ^ now.first >> 32) % SL_REPEATS_SLOTS];
    bool is_same = slot->first == now.first && slot->second == now.second;
    *slot = now;
    return is_same;
}

/* The first record of the batch whose item came before, in this batch or an earlier one; batch->n: none. */
static size_t repeats_find(struct sl_repeats *seen, const struct sl_batch *batch, struct sl_arena *arena)
{
    if (!seen->slots && !(seen->slots = calloc(SL_REPEATS_SLOTS, sizeof(*seen->slots))))
        sl_die("out of memory: keys of an export");
    for (size_t i = 0; i < batch->n; i++)
        if (came_before(seen, sl_record_item_key(sl_batch_record(batch, i), arena)))
            return i;
    return batch->n;
}

static void repeats_clean_up(struct sl_repeats *seen)
{
    free(seen->slots);
    seen->slots = NULL;
}

/* ---- the source ---- */

struct export
{
    struct sl_source source;
    struct sl_source_export what;
    struct sl_store *store;
    struct sl_span id;
    struct sl_export_list list;
    bool is_verifying;
    size_t at; /* the file that is being read, or the next one */
    bool is_open;
    struct sl_text text;
    char *name;               /* of the open file */
    struct sl_text_from skip; /* of the first file that is opened */
    struct sl_repeats seen;
};

/* ---- reading ---- */

static enum sl_status open_next(struct export *e, struct sl_error *error)
{
    struct sl_reader *reader;
    enum sl_status status = sl_store_read(e->store, e->list.files[e->at].key, &reader, error);
    if (status != SL_OK)
        return status;
    free(e->name);
    if (asprintf(&e->name, "%s/%.*s", e->source.facts.name, SL_ARG(e->list.files[e->at].key)) < 0)
        sl_die("out of memory: a file's name");
    const struct sl_text_options options = {.name = e->name,
                                            .clock = e->source.options.sinks->clock,
                                            .ttl_attribute = e->source.options.ttl_attribute,
                                            .wants_md5 = true,
                                            .skip = e->skip};
    sl_text_open(&e->text, &options, reader);
    e->skip = (struct sl_text_from){.byte = 0};
    e->is_open = true;
    return SL_OK;
}

static bool has_its_md5(struct export *e)
{
    unsigned char md5[EVP_MAX_MD_SIZE];
    sl_text_md5(&e->text, md5);
    return memcmp(md5, e->list.files[e->at].md5, SL_MD5_BYTES) == 0;
}

static enum sl_status damaged(const struct export *e, uint64_t given, struct sl_error *error)
{
    return sl_fail(
        error, SL_REJECT, "WrongChecksum",
        "%s: is damaged: its MD5 is not the one in the manifest; %llu of its %llu items were handed "
        "out; copy it again (aws s3 cp)",
        e->name, (unsigned long long)given, (unsigned long long)e->list.files[e->at].items);
}

/* The whole file was read: is it the one that the manifest means? */
static enum sl_status check_file(struct export *e, uint64_t given, struct sl_error *error)
{
    const struct sl_manifest_file *file = &e->list.files[e->at];
    if (!has_its_md5(e))
        return damaged(e, given, error);
    if (e->text.from.record == file->items)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "WrongCount",
                   "%s: has %llu items, the manifest says %llu; %llu were handed out; export the table again",
                   e->name, (unsigned long long)e->text.from.record, (unsigned long long)file->items,
                   (unsigned long long)given);
}

/* Of a file that is damaged, that is the reason, whatever was found in it first. */
static enum sl_status refuse(struct export *e, uint64_t given, const struct sl_call *call,
                             const struct sl_error *why, struct sl_error *error)
{
    if (sl_text_drain(&e->text, call) && !has_its_md5(e))
        return damaged(e, given, error);
    return sl_fail_at(error, SL_REJECT, why->code, why->offset,
                      "%s; %llu of the file's %llu items were handed out", why->text,
                      (unsigned long long)given, (unsigned long long)e->list.files[e->at].items);
}

static void close_file(struct export *e)
{
    sl_text_close(&e->text);
    e->is_open = false;
    e->at++;
    if (e->is_verifying && e->at == e->list.n) {
        e->is_verifying = false;
        e->at = 0;
    }
}

/* Items that are taken for one would replace each other, and nobody would miss them. */
static enum sl_status check_keys(struct export *e, uint64_t first, const struct sl_call *call,
                                 const struct sl_batch *batch, struct sl_error *error)
{
    const struct sl_source_keys *keys = &e->source.options.keys;
    if (e->source.options.as_received)
        return SL_OK;
    size_t i = repeats_find(&e->seen, batch, call->arena);
    if (i == batch->n)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "RepeatedKey",
                   "%s: the item of record %llu has the same %.*s%s%.*s as one before it, and an export has "
                   "each key once: name all key attributes of the table (PK,SK)",
                   e->name, (unsigned long long)first + i, SL_ARG(keys->names[0]), keys->n > 1 ? "," : "",
                   SL_ARG(keys->n > 1 ? keys->names[1] : SL_LIT("")));
}

static enum sl_status pull_file(struct export *e, size_t max_bytes, const struct sl_call *call,
                                struct sl_source_piece *out, struct sl_error *error)
{
    enum sl_status status = e->is_open ? SL_OK : open_next(e, error);
    if (status != SL_OK)
        return status;
    uint64_t stored = e->text.stored_bytes, given = e->is_verifying ? 0 : e->text.from.record;
    struct sl_error why = SL_NO_ERROR;
    if (e->is_verifying)
        status = sl_text_scan(&e->text, VERIFY_BYTES, call, &why);
    else
        status = sl_source_pull_text(&e->source, &e->text, max_bytes, call, out, &why);
    out->stored_bytes = e->text.stored_bytes - stored;
    if (status == SL_REJECT)
        return refuse(e, given, call, &why, error);
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s", why.text);
    if (out->batch.n && check_keys(e, given, call, &out->batch, error) != SL_OK)
        return SL_REJECT;
    return e->text.is_at_end ? check_file(e, given, error) : SL_OK;
}

static void add_place(const struct export *e, const struct sl_call *call, struct sl_source_piece *out)
{
    struct sl_buffer place;
    sl_source_place_begin(&place, call, "export", e->id);
    sl_json_add_integer(&place, "file", (int64_t)e->at);
    const struct sl_text_from beginning = {.byte = 0};
    sl_source_place_add_from(&place, e->is_verifying ? &beginning : e->is_open ? &e->text.from : &e->skip);
    if (e->is_verifying)
        sl_json_add_raw(&place, "verifying", SL_LIT("true"));
    out->place = sl_source_place_end(&place);
}

static enum sl_status pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                           struct sl_source_piece *out, struct sl_error *error)
{
    struct export *e = (struct export *)source;
    while (e->at < e->list.n) {
        out->file = e->at;
        enum sl_status status = pull_file(e, max_bytes, call, out, error);
        bool is_end = status == SL_OK && e->text.is_at_end, was_verifying = e->is_verifying;
        if (status != SL_OK)
            return status;
        if (is_end)
            close_file(e);
        if (!is_end || out->batch.n || was_verifying)
            break;
    }
    out->is_last = e->at == e->list.n;
    add_place(e, call, out);
    return SL_OK;
}

static struct sl_source_file file_at(const struct sl_source *source, size_t i)
{
    const struct export *e = (const struct export *)source;
    const struct sl_manifest_file *file = &e->list.files[i];
    return (struct sl_source_file){
        .key = file->key,
        .md5 = sl_base64_encode(sl_span((const char *)file->md5, SL_MD5_BYTES), source->arena),
        .items = file->items,
        .bytes = e->list.entries ? e->list.entries[i].bytes : 0};
}

static void close_export(struct sl_source *source)
{
    struct export *e = (struct export *)source;
    sl_text_close(&e->text);
    sl_store_close(e->store);
    sl_export_list_clean_up(&e->list);
    repeats_clean_up(&e->seen);
    free(e->name);
}

/* ---- opening ---- */

static enum sl_status open_all(struct export *e, const struct sl_call *call, struct sl_error *error)
{
    const struct sl_export_list_options options = {
        .store = e->store, .arena = e->source.arena, .table = e->what.table, .call = call};
    enum sl_status status = sl_export_list_read(&options, &e->list, error);
    if (status != SL_OK)
        return status;
    e->id = e->list.summary.id;
    e->source.facts.table_arn = e->list.summary.table_arn;
    e->source.facts.time_ms = e->list.summary.time_ms;
    e->source.facts.items = e->list.summary.items;
    e->source.facts.bytes = e->list.bytes;
    return SL_OK;
}

static enum sl_status open_one(struct export *e, struct sl_error *error)
{
    struct sl_manifest_file file = {.key = e->what.file, .items = e->what.items};
    if (!sl_store_is_key(file.key) || !sl_span_starts(file.key, SL_LIT("data/")))
        return sl_fail(error, SL_REJECT, "InvalidKey",
                       "%s: \"%.*s\" is no data file of an export; write data/NAME", e->source.facts.name,
                       SL_ARG(file.key));
    if (!sl_manifest_read_md5(e->what.md5, file.md5))
        return sl_fail(error, SL_REJECT, "NoChecksum", "%s/%.*s: \"%.*s\" is not an MD5 in base64",
                       e->source.facts.name, SL_ARG(file.key), SL_ARG(e->what.md5));
    sl_export_list_add(&e->list, &file);
    e->id = file.key;
    e->source.facts.items = file.items;
    return SL_OK;
}

static enum sl_status go_on(struct export *e, struct sl_error *error)
{
    bool is_there;
    uint64_t at = 0;
    enum sl_status status = sl_source_place_check(&e->source, "export", e->id, &is_there, error);
    e->is_verifying = e->what.verify_first && e->list.n;
    if (status != SL_OK || !is_there)
        return status;
    bool is_whole =
        sl_source_place_number(&e->source, "file", &at) && sl_source_place_from(&e->source, &e->skip);
    e->is_verifying &= sl_json_find(e->source.options.place, "verifying").ptr != NULL;
    if (!is_whole || at > e->list.n)
        return sl_source_place_bad(&e->source, error);
    e->at = (size_t)at;
    return SL_OK;
}

enum sl_status sl_source_open_export(const struct sl_source_options *options,
                                     const struct sl_source_export *what, const struct sl_call *call,
                                     struct sl_source **out, struct sl_error *error)
{
    struct export *e = sl_source_new(options, sizeof(*e));
    e->source.pull = pull;
    e->source.file = file_at;
    e->source.close = close_export;
    e->source.facts = (struct sl_source_facts){.name = what->place, .is_items = true};
    e->what = *what;
    enum sl_status status = sl_store_open(options->sinks, what->place, &e->store, error);
    if (status == SL_OK)
        e->source.facts.name = sl_store_name(e->store);
    if (status == SL_OK)
        status = what->file.ptr ? open_one(e, error) : open_all(e, call, error);
    e->source.facts.n_files = e->list.n;
    if (status == SL_OK)
        status = go_on(e, error);
    if (status != SL_OK)
        sl_source_close(&e->source);
    else
        *out = &e->source;
    return status;
}
