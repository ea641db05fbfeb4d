/* An archive, erased: what holds the items is found, replaced, and looked for again. */
#include "data/erase/erase.h"

#include "base/array.h"
#include "base/error.h"
#include "base/gzip.h"
#include "base/json_write.h"
#include "data/recall/recall.h"
#include "data/recall/shelf.h"
#include "data/source/listing.h"
#include "data/source/store.h"
#include "data/source/whole.h"
#include "sinks/rewrite.h"
#include "streams/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_MS      60000
#define PIECE_BYTES  ((size_t)4 * 1024 * 1024)
#define LEVEL        6 /* of gzip, as the archive's default */
#define ATTEMPTS     5 /* at an object that others replace, too */
#define LEDGER_BYTES ((size_t)256 * 1024 * 1024)
#define PATH_BYTES   256

struct erase {
    const struct sl_erase_options *o;
    struct sl_erase_counts *counts;
    struct sl_object_port *port;
    const struct sl_rewriter *rewriter;
    struct sl_eraser *eraser;
    struct sl_arena *arena, *pages; /* of one object; of one page of a listing */
    struct sl_buffer ledger;
    char table[SL_SOURCE_TABLE_BYTES]; /* of the records that were found; "": none says it */
    char **holding;                    /* keys of the objects that hold something */
    size_t n, room;
};

static struct sl_call call_of(struct erase *e, struct sl_arena *arena)
{
    struct sl_clock *clock = e->o->sinks->clock;
    return (struct sl_call){.arena = arena, .deadline_ms = clock->now_ms(clock) + CALL_MS};
}

static bool is_stopped(const struct erase *e)
{
    return e->o->is_stopped && e->o->is_stopped(e->o->arg);
}

static enum sl_status stopped(struct sl_error *error)
{
    return sl_fail(error, SL_RETRY, "Stopped", "stopped: run it again, and it goes on");
}

static bool is_ours(const struct erase *e, struct sl_span key)
{
    if (sl_store_is_ours(key) || e->o->format == SL_ERASE_PARKED)
        return !sl_store_is_ours(key);
    if (e->o->format == SL_ERASE_EXPORT)
        return sl_span_ends(key, SL_LIT(".json")) || sl_span_ends(key, SL_LIT(".json.gz"));
    return sl_source_is_archived(key);
}

static enum sl_status list(struct erase *e, struct sl_span prefix, sl_listing_fn *each,
                           struct sl_error *error)
{
    return sl_listing_each(e->port, e->o->sinks->clock, prefix, sl_span(NULL, 0), each, e, error);
}

static void say_unreadable(struct erase *e, struct sl_span key, const struct sl_error *why)
{
    e->counts->unreadable++;
    (void)sl_fail(&e->counts->why, why->status, why->code, "%.*s: %s", SL_ARG(key), why->text);
}

/* ---- what holds something ---- */

static void hold(struct erase *e, struct sl_span key)
{
    if (e->n && sl_span_is(key, e->holding[e->n - 1]))
        return;
    char *copy = strndup(key.ptr, key.len);
    if (!copy)
        sl_die("out of memory: an object's key");
    SL_PUSH(e->holding, e->n, e->room, "objects that hold something") = copy;
}

static void forget_holding(struct erase *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->holding[i]);
    e->n = 0;
}

/* Another table's item may have the same key, and is not meant. */
static enum sl_status check_table(struct erase *e, const struct sl_record *r, struct sl_error *error)
{
    if (sl_source_same_table(r, e->table))
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "TwoTables",
        "%s: has records of these keys of two tables, %s and %.*s: nobody can say which are meant; "
        "nothing was written",
        e->o->place, e->table, SL_ARG(sl_record_text(r, SL_FIELD_TABLE)));
}

/* By the index; `is_proof`: without one. */
static enum sl_status recall(struct erase *e, bool is_proof, struct sl_error *error)
{
    const struct sl_recall_options options = {.sinks = e->o->sinks,
                                              .place = e->o->place,
                                              .items = e->o->items,
                                              .n = e->o->n,
                                              .writes_no_index = e->o->is_plan};
    struct sl_recall *r;
    struct sl_recall_piece piece = {.item = NULL};
    enum sl_status status = sl_recall_open(&options, &r, error);
    if (status != SL_OK)
        return status;
    while (status == SL_OK && !piece.piece.is_last) {
        sl_arena_reset(e->arena);
        const struct sl_call call = call_of(e, e->arena);
        status = is_stopped(e) ? stopped(error) : sl_recall_pull(r, PIECE_BYTES, &call, &piece, error);
        for (size_t i = 0; status == SL_OK && i < piece.piece.batch.n; i++)
            if (piece.item[i] != SL_RECALL_NONE) {
                status = check_table(e, sl_batch_record(&piece.piece.batch, i), error);
                hold(e, piece.object.key);
                e->counts->records += !is_proof;
            }
    }
    const struct sl_recall_report report = sl_recall_report(r);
    e->counts->objects = is_proof ? e->counts->objects : report.objects;
    e->counts->read_again += is_proof ? report.read : 0;
    sl_recall_close(r);
    if (status == SL_REJECT && strcmp(error->code, "NoArchive") == 0)
        return SL_OK;
    return status;
}

/* What the object holds; and the text without it. */
static enum sl_status look(struct erase *e, struct sl_span key, struct sl_whole *whole, struct sl_buffer *out,
                           uint64_t *n, struct sl_error *error)
{
    enum sl_status status = sl_whole_read(e->port, e->o->sinks->clock, key, e->arena, whole, error);
    sl_buffer_init_in(out, e->arena, SL_WHOLE_BYTES);
    return status == SL_OK ? sl_eraser_text(e->eraser, whole->text, e->arena, out, n, error) : status;
}

static enum sl_status look_at(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct erase *e = arg;
    struct sl_whole whole;
    struct sl_buffer out;
    struct sl_error why = SL_NO_ERROR;
    uint64_t n = 0;
    if (!is_ours(e, entry->key))
        return SL_OK;
    if (is_stopped(e))
        return stopped(error);
    sl_arena_reset(e->arena);
    e->counts->objects++;
    enum sl_status status = look(e, entry->key, &whole, &out, &n, &why);
    if (status == SL_RETRY || status == SL_FATAL)
        return sl_fail(error, status, why.code, "%s", why.text);
    if (status != SL_OK)
        say_unreadable(e, entry->key, &why);
    else if (n)
        hold(e, entry->key);
    e->counts->records += n;
    return SL_OK;
}

static enum sl_status find(struct erase *e, bool is_proof, struct sl_error *error)
{
    const struct sl_erase_counts before = *e->counts;
    if (e->o->format == SL_ERASE_RECORD)
        return recall(e, is_proof, error);
    e->counts->objects = 0;
    enum sl_status status = list(e, sl_span(NULL, 0), look_at, error);
    if (is_proof) {
        e->counts->read_again += e->counts->objects;
        e->counts->records = before.records;
        e->counts->objects = before.objects;
    }
    return status;
}

/* ---- replacing ---- */

static struct sl_result put(struct erase *e, struct sl_span key, const struct sl_whole *whole,
                            const struct sl_buffer *text)
{
    struct sl_buffer packed;
    struct sl_span body = sl_buffer_span(text);
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = call_of(e, e->arena);
    sl_buffer_init_in(&packed, e->arena, 2 * SL_WHOLE_BYTES);
    if (whole->was_packed) {
        sl_gzip_add(&packed, &body, 1, LEVEL);
        body = sl_buffer_span(&packed);
    }
    const struct sl_object_rewrite rewrite = {
        .object = {.key = key,
                   .body = body,
                   .content_type = "application/x-ndjson",
                   .content_encoding = whole->was_packed ? "gzip" : NULL},
        .etag = whole->etag,
        .note = e->o->run};
    e->rewriter->replace(e->port, &rewrite, &result, &call);
    return result;
}

static struct sl_result remove_object(struct erase *e, struct sl_span key, struct sl_span etag)
{
    const struct sl_object_removal removal = {.key = key, .etag = etag};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = call_of(e, e->arena);
    e->port->remove(e->port, &removal, 1, &result, &call);
    return result;
}

static void note_in_ledger(struct erase *e, struct sl_span key, uint64_t records, struct sl_span etag,
                           bool is_removed)
{
    struct sl_buffer *b = &e->ledger;
    sl_buffer_add_str(b, b->len ? ",\n{" : "\n{");
    sl_json_add_member(b, "object", key);
    sl_json_add_integer(b, "records", (int64_t)records);
    sl_json_add_member(b, "etag_before", etag);
    sl_json_add_member(b, "result", is_removed ? SL_LIT("removed") : SL_LIT("rewritten"));
    sl_buffer_add_char(b, '}');
}

/* Whoever replaced it meanwhile may have written the items again, so it is read again. */
static enum sl_status replace(struct erase *e, const char *key, struct sl_error *error)
{
    struct sl_span name = sl_span_str(key);
    struct sl_result result = {.status = SL_OK};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct sl_whole whole;
        struct sl_buffer text;
        uint64_t n = 0;
        sl_arena_reset(e->arena);
        enum sl_status status = look(e, name, &whole, &text, &n, error);
        if (status == SL_REJECT && strcmp(error->code, "NoSuchKey") == 0)
            return SL_OK;
        if (status != SL_OK || n == 0)
            return status;
        bool is_empty = text.len == 0;
        result = is_empty ? remove_object(e, name, whole.etag) : put(e, name, &whole, &text);
        if (result.status == SL_OK) {
            e->counts->rewritten += !is_empty;
            e->counts->removed += is_empty;
            note_in_ledger(e, name, n, whole.etag, is_empty);
            return SL_OK;
        }
        if (strcmp(result.code, "PreconditionFailed") != 0)
            break;
    }
    return sl_fail(error, result.status == SL_REJECT ? SL_FATAL : result.status, result.code, "%s",
                   result.text);
}

/* ---- versions ---- */

static void count_version(struct erase *e, bool is_proof)
{
    e->counts->versions += !is_proof;
    e->counts->left += is_proof;
}

static enum sl_status holds(struct erase *e, const struct sl_object_version *version, bool *holds_one,
                            struct sl_error *error)
{
    struct sl_object_piece piece = {.bytes = {NULL, 0}};
    struct sl_whole whole = {.was_packed = false};
    struct sl_buffer out;
    struct sl_error why = SL_NO_ERROR;
    uint64_t n = 0;
    sl_arena_reset(e->arena);
    const struct sl_call call = call_of(e, e->arena);
    *holds_one = false;
    if (version->is_marker || !is_ours(e, version->key))
        return SL_OK;
    e->rewriter->read(e->port, version, &piece, &call);
    if (piece.result.status == SL_RETRY || piece.result.status == SL_FATAL)
        return sl_fail(error, piece.result.status, piece.result.code, "%s", piece.result.text);
    if (piece.result.status != SL_OK) /* it went meanwhile */
        return SL_OK;
    sl_buffer_init_in(&out, e->arena, SL_WHOLE_BYTES);
    enum sl_status status = sl_whole_unpack(piece.bytes, e->arena, &whole, &why);
    if (status == SL_OK)
        status = sl_eraser_text(e->eraser, whole.text, e->arena, &out, &n, &why);
    if (status != SL_OK)
        say_unreadable(e, version->key, &why);
    *holds_one = n > 0;
    return SL_OK;
}

static enum sl_status remove_version(struct erase *e, const struct sl_object_version *version,
                                     struct sl_error *error)
{
    struct sl_result result;
    const struct sl_call call = call_of(e, e->arena);
    e->rewriter->remove(e->port, version, 1, &result, &call);
    if (result.status == SL_OK)
        return SL_OK;
    if (strcmp(result.code, "AccessDenied") != 0)
        return sl_fail(error, result.status, result.code, "%s", result.text);
    return sl_fail(
        error, SL_REJECT, "Locked",
        "the version %.*s of %.*s may not be removed: %s; if Object Lock holds it, it stays until its time "
        "is over; else the role needs s3:DeleteObjectVersion",
        SL_ARG(version->version), SL_ARG(version->key), result.text);
}

/* An index of old says little, and is of no use. */
static bool is_old_index(const struct sl_object_version *version)
{
    return sl_span_starts(version->key, SL_LIT(SL_SHELF_FOLDER));
}

static enum sl_status take_version(struct erase *e, const struct sl_object_version *version, bool is_proof,
                                   struct sl_error *error)
{
    bool holds_one = false;
    if (version->is_latest && !(version->is_marker && is_old_index(version)))
        return SL_OK;
    enum sl_status status = holds(e, version, &holds_one, error);
    if (status == SL_OK && is_ours(e, version->key) && !version->is_marker)
        e->counts->read_again += is_proof;
    if (status == SL_OK && holds_one)
        count_version(e, is_proof);
    if (status != SL_OK || e->o->is_plan || !(is_old_index(version) || (holds_one && !is_proof)))
        return status;
    return remove_version(e, version, error);
}

static enum sl_status each_version(struct erase *e, bool is_proof, struct sl_error *error)
{
    char *key = NULL, *version = NULL;
    enum sl_status status = SL_OK;
    for (bool more = e->rewriter->list != NULL; more && status == SL_OK;) {
        struct sl_version_page page;
        sl_arena_reset(e->pages);
        const struct sl_call call = call_of(e, e->pages);
        e->rewriter->list(e->port, sl_span_str(key), sl_span_str(version), &page, &call);
        if (page.result.status != SL_OK)
            status = sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t i = 0; i < page.n && status == SL_OK; i++)
            status = is_stopped(e) ? stopped(error) : take_version(e, &page.versions[i], is_proof, error);
        free(key);
        free(version);
        more = status == SL_OK && page.next_key.ptr;
        key = more ? strndup(page.next_key.ptr, page.next_key.len) : NULL;
        version =
            more && page.next_version.ptr ? strndup(page.next_version.ptr, page.next_version.len) : NULL;
    }
    return status;
}

/* ---- the ledger: what was done to the archive, for whoever wonders later ---- */

static enum sl_status write_ledger(struct erase *e, struct sl_error *error)
{
    char key[PATH_BYTES];
    struct sl_buffer text;
    struct sl_result result;
    /* Who imports or redrives the other formats takes every object below the place for one of theirs. */
    if (e->o->format != SL_ERASE_RECORD || (!e->counts->rewritten && !e->counts->removed))
        return SL_OK;
    sl_buffer_init(&text, LEDGER_BYTES + 4096);
    sl_buffer_add_char(&text, '{');
    sl_json_add_member(&text, "erasure", sl_span_str(e->o->run));
    sl_json_add_integer(&text, "items", (int64_t)e->o->n);
    sl_json_add_integer(&text, "records", (int64_t)e->counts->records);
    sl_buffer_add_str(&text, ",\"objects\":[");
    sl_buffer_add_span(&text, sl_buffer_span(&e->ledger));
    sl_buffer_add_str(&text, "\n]}\n");
    snprintf(key, sizeof(key), SL_STORE_OWN "erasures/%s.json", e->o->run);
    const struct sl_object object = {
        .key = sl_span_str(key), .body = sl_buffer_span(&text), .content_type = "application/json"};
    sl_arena_reset(e->arena);
    const struct sl_call call = call_of(e, e->arena);
    e->port->apply(e->port, &object, 1, &result, &call);
    sl_buffer_clean_up(&text);
    return result.status == SL_OK ? SL_OK : sl_fail(error, result.status, result.code, "%s", result.text);
}

/* ---- the archive ---- */

static enum sl_status drop_index(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct erase *e = arg;
    sl_arena_reset(e->arena);
    const struct sl_result result = remove_object(e, entry->key, sl_span(NULL, 0));
    return result.status == SL_OK ? SL_OK : sl_fail(error, result.status, result.code, "%s", result.text);
}

static enum sl_status prove(struct erase *e, struct sl_error *error)
{
    forget_holding(e);
    e->counts->unreadable = 0;
    enum sl_status status = list(e, SL_LIT(SL_SHELF_FOLDER), drop_index, error);
    if (status == SL_OK)
        status = find(e, true, error);
    e->counts->left = e->n;
    return status == SL_OK ? each_version(e, true, error) : status;
}

static enum sl_status run(struct erase *e, struct sl_error *error)
{
    enum sl_status status = find(e, false, error);
    e->counts->holding = e->n;
    for (size_t i = 0; i < e->n && status == SL_OK && !e->o->is_plan; i++)
        status = is_stopped(e) ? stopped(error) : replace(e, e->holding[i], error);
    if (status == SL_OK || status == SL_RETRY) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status ledger = e->o->is_plan ? SL_OK : write_ledger(e, &why);
        if (status == SL_OK && ledger != SL_OK)
            status = sl_fail(error, ledger, why.code, "%s", why.text);
    }
    if (status == SL_OK)
        status = each_version(e, false, error);
    return status == SL_OK && !e->o->is_plan ? prove(e, error) : status;
}

enum sl_status sl_erase_archive(const struct sl_erase_options *options, struct sl_erase_counts *counts,
                                struct sl_error *error)
{
    struct erase e = {.o = options, .counts = counts};
    *counts = (struct sl_erase_counts){.why = SL_NO_ERROR};
    if (sl_target_objects(options->sinks, sl_span_str(options->place), &e.port, error) != SL_OK)
        return SL_FATAL;
    e.rewriter = sl_rewriter_of(e.port);
    if (!e.rewriter) {
        e.port->close(e.port);
        return sl_fail(error, SL_FATAL, "NoRewrite", "%s: this kind of target cannot be rewritten",
                       options->place);
    }
    e.eraser = sl_eraser_new(options);
    e.arena = sl_arena_new(1024 * 1024);
    e.pages = sl_arena_new(64 * 1024);
    sl_buffer_init(&e.ledger, LEDGER_BYTES);
    enum sl_status status = run(&e, error);
    e.port->close(e.port);
    forget_holding(&e);
    free(e.holding);
    sl_buffer_clean_up(&e.ledger);
    sl_arena_destroy(e.pages);
    sl_arena_destroy(e.arena);
    sl_eraser_destroy(e.eraser);
    return status;
}
