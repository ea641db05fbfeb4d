/* A recall: the archive's listing is cut into runs; of a run that the index knows, the objects with hits go
 * to the source; of another one all do, and their items go into a new index. */
#include "data/recall/recall.h"

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "data/recall/shelf.h"
#include "data/source/store.h"
#include "streams/record.h"

#include <stdlib.h>

/* The objects of an hour come until it is over, and late ones for a while after it. What changed so recently
 * is not written down: the next object would make it void. */
#define STILL_WRITTEN_S 7200

/* An archive with fewer objects is read as fast. */
#define LEAST_OBJECTS 100

/* An object that is listed, and belongs to the run that is being cut; or one that the source was given. */
struct object {
    char *key, *etag;
    uint64_t bytes;
    int64_t modified_s;
    /* Given to the source: */
    bool is_new;                  /* its items go into the new index */
    bool ends_run;                /* and it is the last of its run: */
    uint64_t number;              /* in the run */
    struct sl_item_index_run run; /* of the last one */
};

struct objects {
    struct object *list;
    size_t n, room;
    size_t gone; /* of them, at the beginning */
};

struct sl_recall {
    struct sl_recall_options options;
    struct sl_recall_report report;
    struct sl_store *store;
    struct sl_object_port *writes; /* NULL: no index is written */
    struct sl_shelf *shelf;
    struct sl_source *source;
    struct sl_arena *arena, *scratch; /* as long as the recall; of one object's records */
    struct sl_map items;              /* their digests */
    uint64_t *entries;                /* the same as the index has them, in order */
    struct sl_sha256 sha;
    struct sl_item_index_build build;
    int64_t first_s, last_s; /* of the run whose objects are being read */
    struct objects run, given;
    struct sl_item_index_seal seal;
    size_t n_read; /* objects that were given and are read */
    int64_t began_s;
    bool is_over;
};

/* ---- objects ---- */

static void forget(struct object *object)
{
    free(object->key);
    free(object->etag);
}

static char *copy_of(struct sl_span text)
{
    char *copy = strndup(text.ptr ? text.ptr : "", text.len);
    if (!copy)
        sl_die("out of memory: an archive's object");
    return copy;
}

static struct sl_object_entry entry_of(const struct object *object)
{
    return (struct sl_object_entry){.key = sl_span_str(object->key),
                                    .bytes = object->bytes,
                                    .etag = sl_span_str(object->etag),
                                    .modified_s = object->modified_s};
}

static void give(struct sl_recall *r, const struct object *object)
{
    SL_PUSH(r->given.list, r->given.n, r->given.room, "an archive's objects") = *object;
    r->report.read++;
}

/* ---- runs ---- */

static bool is_outside(const struct sl_recall *r, const struct sl_item_index_run *run)
{
    return run->last_s && ((r->options.since_s && run->last_s < r->options.since_s) ||
                           (r->options.until_s && run->first_s > r->options.until_s));
}

static void give_hits(struct sl_recall *r, const struct sl_shelf_run *known)
{
    size_t hit = 0;
    for (size_t i = 0; i < r->run.n; i++) {
        bool is_hit = hit < known->n && known->hits[hit] - known->base == i && !is_outside(r, &known->run);
        while (hit < known->n && known->hits[hit] - known->base <= i)
            hit++;
        if (is_hit)
            give(r, &r->run.list[i]);
        else
            forget(&r->run.list[i]);
    }
}

static void give_all(struct sl_recall *r)
{
    struct sl_item_index_run run = {.objects = r->run.n};
    memcpy(run.seal, r->seal.digest, sizeof(run.seal));
    for (size_t i = 0; i < r->run.n; i++) {
        struct object *object = &r->run.list[i];
        object->is_new = true;
        object->number = i;
        object->ends_run = i + 1 == r->run.n;
        object->run = run;
        give(r, object);
    }
}

static void end_run(struct sl_recall *r)
{
    struct sl_shelf_run known;
    if (r->run.n && r->shelf && sl_shelf_find(r->shelf, r->seal.digest, &known) &&
        known.run.objects == r->run.n)
        give_hits(r, &known);
    else
        give_all(r);
    r->run.n = 0;
    memset(r->seal.digest, 0, sizeof(r->seal.digest));
}

static void take_entry(struct sl_recall *r, const struct sl_object_entry *entry)
{
    if (!sl_source_is_archived(entry->key))
        return;
    if (r->run.n && sl_item_index_parts(sl_span_str(r->run.list[r->run.n - 1].key), entry->key))
        end_run(r);
    r->report.objects++;
    sl_item_index_seal_add(&r->seal, entry->key, entry->bytes, entry->etag);
    SL_PUSH(r->run.list, r->run.n, r->run.room, "an archive's objects") =
        (struct object){.key = copy_of(entry->key),
                        .etag = copy_of(entry->etag),
                        .bytes = entry->bytes,
                        .modified_s = entry->modified_s};
}

/* ---- the source's list: what it is to read ---- */

static void write_page(struct sl_recall *r, size_t from, struct sl_object_page *page, struct sl_arena *arena)
{
    page->n = r->given.n - from;
    page->entries = sl_arena_alloc(arena, (page->n + 1) * sizeof(*page->entries));
    for (size_t i = 0; i < page->n; i++)
        page->entries[i] = entry_of(&r->given.list[from + i]);
}

/* One page of the archive's listing becomes one of what is to be read of it, which may be nothing. */
static void list(void *arg, struct sl_object_port *port, const struct sl_object_list *list,
                 struct sl_object_page *page, const struct sl_call *call)
{
    struct sl_recall *r = arg;
    size_t from = r->given.n;
    port->list(port, list, page, call);
    if (page->result.status != SL_OK)
        return;
    for (size_t i = 0; i < page->n; i++)
        take_entry(r, &page->entries[i]);
    if (!page->next.ptr)
        end_run(r);
    write_page(r, from, page, call->arena);
}

/* ---- the new index ---- */

static void end_indexed_run(struct sl_recall *r, const struct sl_item_index_run *of)
{
    struct sl_clock *clock = r->options.sinks->clock;
    struct sl_item_index_run run = *of;
    run.first_s = r->first_s;
    run.last_s = r->last_s;
    r->first_s = r->last_s = 0;
    if (run.last_s > clock->wall_ns(clock) / 1000000000 - STILL_WRITTEN_S ||
        run.objects > SL_ITEM_INDEX_OBJECTS) {
        sl_item_index_drop_run(&r->build);
        return;
    }
    sl_item_index_end_run(&r->build, &run);
    if (sl_item_index_is_full(&r->build, SL_ITEM_INDEX_OBJECTS / 2))
        sl_shelf_write(r->shelf, &r->build);
}

/* The objects before this one have been read; `number` counts from the first that was given. */
static void advance(struct sl_recall *r, size_t number)
{
    struct objects *given = &r->given;
    for (; r->n_read < number; r->n_read++, given->gone++) {
        struct object *object = &given->list[given->gone];
        if (object->ends_run && r->writes)
            end_indexed_run(r, &object->run);
        forget(object);
    }
    if (given->gone * 2 < given->n)
        return;
    given->n -= given->gone;
    if (given->n)
        memmove(given->list, given->list + given->gone, given->n * sizeof(*given->list));
    given->gone = 0;
}

static void add_to_index(struct sl_recall *r, const struct object *object, const struct sl_record *record,
                         const unsigned char digest[SL_SHA256_BYTES])
{
    int64_t second = sl_record_created_ns(record) / 1000000000;
    if (second && (!r->first_s || second < r->first_s))
        r->first_s = second;
    if (second > r->last_s)
        r->last_s = second;
    sl_item_index_add(&r->build, sl_item_index_key(digest), object->number);
}

/* ---- records ---- */

void sl_recall_digest(struct sl_span key, unsigned char out[SL_SHA256_BYTES])
{
    struct sl_sha256 sha;
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, &key, 1, out);
    sl_sha256_clean_up(&sha);
}

static void match(struct sl_recall *r, struct sl_recall_piece *out, struct sl_arena *arena)
{
    const struct object *object = &r->given.list[r->given.gone];
    size_t n = out->piece.batch.n;
    out->item = sl_arena_alloc(arena, (n + 1) * sizeof(*out->item));
    out->object = entry_of(object);
    out->is_late = object->modified_s >= r->began_s;
    for (size_t i = 0; i < n; i++) {
        const struct sl_record *record = sl_batch_record(&out->piece.batch, i);
        unsigned char digest[SL_SHA256_BYTES];
        sl_arena_reset(r->scratch);
        struct sl_span key = sl_record_item_key(record, r->scratch);
        sl_sha256_parts(&r->sha, &key, 1, digest);
        uint32_t at = sl_map_find(&r->items, sl_span((const char *)digest, sizeof(digest)));
        out->item[i] = at == SL_MAP_NONE ? SL_RECALL_NONE : at;
        if (object->is_new && r->writes)
            add_to_index(r, object, record, digest);
    }
}

static void end(struct sl_recall *r)
{
    if (r->is_over)
        return;
    r->is_over = true;
    advance(r, r->n_read + r->given.n - r->given.gone);
    if (r->writes && r->report.objects >= LEAST_OBJECTS) {
        sl_shelf_write(r->shelf, &r->build);
        sl_shelf_tidy(r->shelf);
    }
}

enum sl_status sl_recall_pull(struct sl_recall *r, size_t max_bytes, const struct sl_call *call,
                              struct sl_recall_piece *out, struct sl_error *error)
{
    *out = (struct sl_recall_piece){.item = NULL};
    enum sl_status status = sl_source_pull(r->source, max_bytes, call, &out->piece, error);
    if (status != SL_OK)
        return status;
    r->report.read_bytes += out->piece.stored_bytes;
    if (out->piece.batch.n) {
        advance(r, out->piece.file);
        match(r, out, call->arena);
    }
    if (out->piece.is_last && r->report.objects == 0)
        return sl_store_has_no_archive(sl_store_name(r->store), error);
    if (out->piece.is_last && out->piece.batch.n == 0)
        end(r);
    /* What this piece borrows is there until the next pull. */
    out->piece.is_last = r->is_over;
    return SL_OK;
}

struct sl_recall_report sl_recall_report(const struct sl_recall *r)
{
    struct sl_recall_report report = r->report;
    if (r->shelf) {
        const struct sl_shelf_counts *n = sl_shelf_counts(r->shelf);
        report.index_reads = n->read;
        report.index_bytes = n->read_bytes;
        report.index_written = n->written;
        if (n->trouble.status != SL_OK)
            report.trouble = n->trouble;
    }
    return report;
}

/* ---- opening ---- */

static void take_items(struct sl_recall *r)
{
    const struct sl_recall_options *o = &r->options;
    sl_map_init(&r->items, r->arena, o->n + 1);
    r->entries = sl_arena_alloc(r->arena, (o->n + 1) * sizeof(*r->entries));
    for (size_t i = 0; i < o->n; i++) {
        (void)sl_map_index(&r->items, sl_span((const char *)o->items[i], SL_SHA256_BYTES));
        r->entries[i] = sl_item_index_key(o->items[i]);
    }
    if (o->n)
        qsort(r->entries, o->n, sizeof(*r->entries), sl_item_index_order);
}

/* A folder is opened once more to be written to, if it can be. */
static void open_index(struct sl_recall *r)
{
    struct sl_error why = SL_NO_ERROR;
    const char *name = sl_store_name(r->store);
    if (r->options.reads_all)
        return;
    bool is_url = strstr(name, "://") || strncmp(name, "file:", 5) == 0;
    const char *url = is_url ? name : sl_arena_printf(r->arena, "file:%s", name);
    if (!r->options.writes_no_index &&
        sl_target_objects(r->options.sinks, sl_span_str(url), &r->writes, &why) != SL_OK) {
        (void)sl_fail(&r->report.trouble, why.status, why.code, "no index can be written: %s", why.text);
        r->writes = NULL;
    }
    const struct sl_shelf_options options = {.reads = sl_store_port(r->store),
                                             .writes = r->writes,
                                             .clock = r->options.sinks->clock,
                                             .items = r->entries,
                                             .n = r->options.n};
    r->shelf = sl_shelf_open(&options);
}

enum sl_status sl_recall_open(const struct sl_recall_options *options, struct sl_recall **out,
                              struct sl_error *error)
{
    struct sl_recall *r = calloc(1, sizeof(*r));
    if (!r)
        sl_die("out of memory: a recall");
    r->options = *options;
    r->began_s = options->sinks->clock->wall_ns(options->sinks->clock) / 1000000000;
    r->report.trouble = (struct sl_error)SL_NO_ERROR;
    r->arena = sl_arena_new(64 * 1024);
    r->scratch = sl_arena_new(64 * 1024);
    sl_sha256_init(&r->sha);
    r->seal.sha = &r->sha;
    take_items(r);
    *out = NULL;
    enum sl_status status = sl_store_open(options->sinks, options->place, &r->store, error);
    if (status == SL_OK) {
        const struct sl_source_options of_source = {.sinks = options->sinks,
                                                    .ttl_attribute = options->ttl_attribute};
        const struct sl_source_archive what = {.place = options->place, .list = list, .arg = r};
        const struct sl_call call = {.arena = r->arena, .deadline_ms = INT64_MAX};
        status = sl_source_open_archive(&of_source, &what, &call, &r->source, error);
    }
    if (status != SL_OK) {
        sl_recall_close(r);
        return status;
    }
    open_index(r);
    *out = r;
    return SL_OK;
}

static void forget_all(struct objects *objects)
{
    for (size_t i = objects->gone; i < objects->n; i++)
        forget(&objects->list[i]);
    free(objects->list);
}

void sl_recall_close(struct sl_recall *r)
{
    if (!r)
        return;
    sl_source_close(r->source);
    sl_shelf_close(r->shelf);
    sl_store_close(r->store);
    if (r->writes)
        r->writes->close(r->writes);
    sl_item_index_clean_up(&r->build);
    forget_all(&r->run);
    forget_all(&r->given);
    sl_sha256_clean_up(&r->sha);
    sl_arena_destroy(r->arena);
    sl_arena_destroy(r->scratch);
    free(r);
}
