/* Reads folders and buckets through the object port. */
#include "data/source/store.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "sinks/file.h"

#include <stdlib.h>

/* Ranges of an object that are read at the same time: one connection of S3 is slower than what comes after
 * it. */
#define RANGES (SL_READER_MOST_BYTES / SL_READER_BYTES)

struct sl_store {
    char *name;
    struct sl_object_port *port;
};

/* ---- objects ---- */

struct object_reader {
    struct sl_reader reader;
    struct sl_object_port *port;
    struct sl_arena *arena; /* of one call of `next` */
    char *key, *etag;
    size_t key_len;
    uint64_t at;
    bool is_begun;
    struct sl_buffer block;
};

static enum sl_status failed(const struct sl_result *result, struct sl_error *error)
{
    if (strcmp(result->code, "NoSuchKey") == 0)
        return sl_fail(error, SL_REJECT, result->code, "is not there");
    return sl_fail(error, result->status, result->code, "%s", result->text);
}

/* The first answer says how long the object is, and which one it is. */
static void begin(struct object_reader *o, const struct sl_object_piece *first)
{
    o->reader.bytes = first->object_bytes;
    o->etag = strndup(first->etag.ptr ? first->etag.ptr : "", first->etag.len);
    if (!o->etag)
        sl_die("out of memory: an object's etag");
    o->is_begun = true;
}

static size_t plan_ranges(const struct object_reader *o, struct sl_object_read reads[RANGES])
{
    size_t n = 0;
    uint64_t at = o->at;
    do {
        reads[n++] = (struct sl_object_read){.key = sl_span(o->key, o->key_len),
                                             .from = at,
                                             .max_bytes = SL_READER_BYTES,
                                             .etag = sl_span_str(o->etag && o->etag[0] ? o->etag : NULL)};
        at += SL_READER_BYTES;
    } while (o->is_begun && n < RANGES && at < o->reader.bytes);
    return n;
}

static enum sl_status next_ranges(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                                  struct sl_error *error)
{
    struct object_reader *o = (struct object_reader *)r;
    struct sl_object_read reads[RANGES];
    struct sl_object_piece pieces[RANGES];
    const struct sl_call own = {.arena = o->arena, .deadline_ms = call->deadline_ms};
    sl_arena_reset(o->arena);
    sl_buffer_reset(&o->block);
    *out = sl_span("", 0);
    if (o->is_begun && o->at >= r->bytes)
        return SL_OK;
    size_t n = plan_ranges(o, reads);
    o->port->read(o->port, reads, n, pieces, &own);
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].result.status != SL_OK)
            return failed(&pieces[i].result, error);
        if (!o->is_begun)
            begin(o, &pieces[i]);
        uint64_t left = r->bytes - reads[i].from;
        if (pieces[i].bytes.len != (left < SL_READER_BYTES ? left : SL_READER_BYTES))
            return sl_fail(
                error, SL_RETRY, "ShortRead",
                "the answer for the bytes from %llu on has %zu bytes, not those that were asked for",
                (unsigned long long)reads[i].from, pieces[i].bytes.len);
        sl_buffer_add_span(&o->block, pieces[i].bytes);
    }
    o->at += o->block.len;
    *out = sl_buffer_span(&o->block);
    return SL_OK;
}

static void close_object(struct sl_reader *r)
{
    struct object_reader *o = (struct object_reader *)r;
    sl_arena_destroy(o->arena);
    sl_buffer_clean_up(&o->block);
    free(o->key);
    free(o->etag);
    free(o);
}

static struct sl_reader *read_object(struct sl_object_port *port, struct sl_span key)
{
    struct object_reader *o = calloc(1, sizeof(*o));
    if (!o || !(o->key = strndup(key.ptr, key.len)))
        sl_die("out of memory: an object's reader");
    o->reader = (struct sl_reader){.next = next_ranges, .close = close_object};
    o->port = port;
    o->key_len = key.len;
    o->arena = sl_arena_new(64 * 1024);
    sl_buffer_init(&o->block, RANGES * SL_READER_BYTES);
    return &o->reader;
}

/* ---- the place ---- */

/* "s3://bucket/prefix/?region=x" without the slash before the options. */
static char *without_slash(const char *place)
{
    size_t len = strlen(place), path = strcspn(place, "?"), end = path;
    char *name = malloc(len + 1);
    if (!name)
        sl_die("out of memory: the name of a place");
    while (end > 1 && place[end - 1] == '/' && place[end - 2] != '/')
        end--;
    memcpy(name, place, end);
    memcpy(name + end, place + path, len - path + 1);
    return name;
}

static enum sl_status open_bucket(struct sl_store *store, struct sl_sinks *sinks, struct sl_error *error)
{
    enum sl_status status = sl_target_objects(sinks, sl_span_str(store->name), &store->port, error);
    if (status != SL_OK)
        return status;
    if (store->port->read && store->port->list)
        return SL_OK;
    return sl_fail(error, SL_FATAL, "InvalidTarget", "%s: this kind of target cannot be read", store->name);
}

enum sl_status sl_store_open(struct sl_sinks *sinks, const char *place, struct sl_store **out,
                             struct sl_error *error)
{
    struct sl_store *store = calloc(1, sizeof(*store));
    if (!store)
        sl_die("out of memory: a place");
    store->name = without_slash(place);
    bool is_url = strstr(store->name, "://") != NULL;
    bool is_file = strncmp(store->name, "file:", 5) == 0;
    enum sl_status status = is_url
                                ? open_bucket(store, sinks, error)
                                : sl_file_open_to_read(store->name + (is_file ? 5 : 0), &store->port, error);
    if (status != SL_OK)
        sl_store_close(store);
    else
        *out = store;
    return status;
}

void sl_store_close(struct sl_store *store)
{
    if (!store)
        return;
    if (store->port)
        store->port->close(store->port);
    free(store->name);
    free(store);
}

struct sl_object_port *sl_store_port(struct sl_store *store)
{
    return store->port;
}

const char *sl_store_name(const struct sl_store *store)
{
    return store->name;
}

enum sl_status sl_store_has_no_archive(const char *name, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "NoArchive",
                   "%s: holds no object of an archive (*.jsonl, *.jsonl.gz): name the place that the route "
                   "writes to",
                   name);
}

bool sl_store_is_key(struct sl_span key)
{
    size_t begin = 0;
    if (key.len == 0 || memchr(key.ptr, '\0', key.len))
        return false;
    for (size_t i = 0; i <= key.len; i++) {
        if (i < key.len && key.ptr[i] != '/')
            continue;
        struct sl_span segment = sl_span(key.ptr + begin, i - begin);
        if (segment.len == 0 || sl_span_is(segment, ".") || sl_span_is(segment, ".."))
            return false;
        begin = i + 1;
    }
    return true;
}

bool sl_store_is_ours(struct sl_span key)
{
    return sl_span_starts(key, SL_LIT(SL_STORE_OWN)) ||
           memmem(key.ptr, key.len, "/" SL_STORE_OWN, strlen("/" SL_STORE_OWN));
}

/* ---- reading ---- */

enum sl_status sl_store_read(struct sl_store *store, struct sl_span key, struct sl_reader **out,
                             struct sl_error *error)
{
    if (!sl_store_is_key(key))
        return sl_fail(error, SL_REJECT, "InvalidKey", "%s: \"%.*s\" is no name below it", store->name,
                       SL_ARG(key));
    *out = read_object(store->port, key);
    return SL_OK;
}

enum sl_status sl_store_read_all(struct sl_store *store, struct sl_span key, size_t most,
                                 const struct sl_call *call, struct sl_span *out, struct sl_error *error)
{
    struct sl_reader *reader;
    struct sl_buffer text;
    struct sl_span bytes = {0};
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_store_read(store, key, &reader, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init_in(&text, call->arena, most);
    do {
        status = reader->next(reader, call, &bytes, &why);
        if (status == SL_OK)
            sl_buffer_add_span(&text, bytes);
    } while (status == SL_OK && bytes.len && !text.failed);
    sl_reader_close(reader);
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s/%.*s: %s", store->name, SL_ARG(key), why.text);
    if (text.failed)
        return sl_fail(error, SL_REJECT, "TooLarge", "%s/%.*s: has more than %zu bytes", store->name,
                       SL_ARG(key), most);
    *out = sl_span(text.len ? text.ptr : "", text.len);
    return SL_OK;
}

/* ---- measuring ---- */

/* Both are in order, so one walk over the pages finds all. */
enum sl_status sl_store_measure(struct sl_store *store, struct sl_span prefix, struct sl_store_entry *entries,
                                size_t n, const struct sl_call *call, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    const struct sl_call own = {.arena = arena, .deadline_ms = call->deadline_ms};
    struct sl_object_page page;
    char *after = NULL;
    enum sl_status status = SL_OK;
    bool is_last = false;
    size_t i = 0;
    while (status == SL_OK && !is_last && i < n) {
        struct sl_object_list list = {.prefix = prefix, .after = sl_span_str(after)};
        sl_arena_reset(arena);
        store->port->list(store->port, &list, &page, &own);
        if (page.result.status != SL_OK)
            status = sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t k = 0; status == SL_OK && k < page.n; k++) {
            while (i < n && sl_span_compare(entries[i].key, page.entries[k].key) < 0)
                entries[i++].bytes = SL_STORE_ABSENT;
            if (i < n && sl_span_eq(entries[i].key, page.entries[k].key))
                entries[i++].bytes = page.entries[k].bytes;
        }
        free(after);
        is_last = status != SL_OK || !page.next.ptr;
        after = is_last ? NULL : strndup(page.next.ptr, page.next.len);
    }
    for (; i < n; i++)
        entries[i].bytes = SL_STORE_ABSENT;
    free(after);
    sl_arena_destroy(arena);
    return status;
}
