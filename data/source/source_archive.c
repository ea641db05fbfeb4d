/* Our own archive: its objects in the bytewise order of their keys. */
#include "base/array.h"
#include "base/json.h"
#include "base/json_write.h"
#include "streams/record.h"
#include "data/source/source_private.h"
#include "data/source/store.h"

#include <stdio.h>
#include <stdlib.h>

/* Archives have many small objects: so many are read at the same time, if they are not large. */
#define AHEAD       8
#define AHEAD_BYTES SL_READER_BYTES

struct object {
    char *key;
    uint64_t bytes;
    char *content; /* read ahead; NULL: not read */
    size_t len;
};

struct archive {
    struct sl_source source;
    struct sl_source_archive what;
    struct sl_store *store;
    struct sl_arena *scratch; /* of one call of the port */
    struct object *page;
    size_t n, at;   /* at: the object that is being read, or the next one */
    char *after;    /* the last object that was read to its end; NULL: none */
    char *next;     /* where the next page begins; NULL: at the beginning */
    bool is_listed; /* the page is the last one */
    bool is_open;
    struct sl_text text;
    char *name;               /* of the open object */
    size_t number;            /* of the objects before */
    struct sl_text_from skip; /* of `skip_key`, the first that is opened */
    struct sl_span skip_key;
};

static char *copy_of(struct sl_span text)
{
    char *copy = strndup(text.ptr, text.len);
    if (!copy)
        sl_die("out of memory: an archive's key");
    return copy;
}

static bool is_late(const struct archive *a, const struct sl_call *call)
{
    struct sl_clock *clock = a->source.options.sinks->clock;
    return clock->now_ms(clock) >= call->deadline_ms;
}

/* ---- listing ---- */

static void forget_page(struct archive *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->page[i].key);
        free(a->page[i].content);
    }
    free(a->page);
    a->page = NULL;
    a->n = a->at = 0;
}

bool sl_source_is_archived(struct sl_span key)
{
    static const char *const endings[] = {".jsonl", ".jsonl.gz"};
    for (size_t i = 0; i < SL_COUNT(endings); i++)
        if (key.len > strlen(endings[i]) && sl_span_ends(key, sl_span_str(endings[i])))
            return true;
    return false;
}

static void take_page(struct archive *a, const struct sl_object_page *page)
{
    forget_page(a);
    a->page = calloc(page->n + 1, sizeof(*a->page));
    if (!a->page)
        sl_die("out of memory: a page of an archive");
    for (size_t i = 0; i < page->n; i++)
        if (sl_source_is_archived(page->entries[i].key))
            a->page[a->n++] =
                (struct object){.key = copy_of(page->entries[i].key), .bytes = page->entries[i].bytes};
    free(a->next);
    a->next = page->next.ptr ? copy_of(page->next) : NULL;
    a->is_listed = !a->next;
}

static enum sl_status list(struct archive *a, const struct sl_call *call, struct sl_error *error)
{
    struct sl_object_page page;
    const struct sl_object_list list = {.after = sl_span_str(a->next)};
    const struct sl_call own = {.arena = a->scratch, .deadline_ms = call->deadline_ms};
    struct sl_object_port *port = sl_store_port(a->store);
    sl_arena_reset(a->scratch);
    if (a->what.list)
        a->what.list(a->what.arg, port, &list, &page, &own);
    else
        port->list(port, &list, &page, &own);
    if (page.result.status == SL_RETRY && is_late(a, call))
        return SL_OK;
    if (page.result.status != SL_OK)
        return sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
    take_page(a, &page);
    return SL_OK;
}

/* ---- reading ahead ---- */

/* Reads the next small objects together. One that cannot be read so is read again when its turn comes, and
 * then its error counts. */
static void read_ahead(struct archive *a, const struct sl_call *call)
{
    struct sl_object_read reads[AHEAD];
    struct sl_object_piece pieces[AHEAD];
    struct object *objects[AHEAD];
    const struct sl_call own = {.arena = a->scratch, .deadline_ms = call->deadline_ms};
    struct sl_object_port *port = sl_store_port(a->store);
    size_t n = 0;
    for (size_t i = a->at; i < a->n && n < AHEAD && a->page[i].bytes <= AHEAD_BYTES && !a->page[i].content;
         i++) {
        objects[n] = &a->page[i];
        reads[n++] =
            (struct sl_object_read){.key = sl_span_str(a->page[i].key), .max_bytes = AHEAD_BYTES + 1};
    }
    sl_arena_reset(a->scratch);
    if (n)
        port->read(port, reads, n, pieces, &own);
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].result.status != SL_OK || pieces[i].bytes.len != pieces[i].object_bytes)
            continue;
        objects[i]->len = pieces[i].bytes.len;
        objects[i]->content = malloc(pieces[i].bytes.len + 1);
        if (!objects[i]->content)
            sl_die("out of memory: an archive's object");
        if (pieces[i].bytes.len)
            memcpy(objects[i]->content, pieces[i].bytes.ptr, pieces[i].bytes.len);
    }
    sl_arena_reset(a->scratch);
}

/* ---- reading ---- */

static struct sl_reader *take_content(struct object *object)
{
    struct sl_reader *reader = sl_reader_of_text(sl_span(object->content, object->len), object->content);
    object->content = NULL;
    return reader;
}

static enum sl_status is_gone(const struct archive *a, struct sl_error *error)
{
    return sl_fail(
        error, SL_REJECT, "WrongPlace",
        "%s: the object %.*s, in which the place to go on at lies, is gone; begin anew, without the "
        "checkpoint",
        a->source.facts.name, SL_ARG(a->skip_key));
}

static enum sl_status open_object(struct archive *a, const struct sl_call *call, struct sl_error *error)
{
    struct object *object = &a->page[a->at];
    struct sl_reader *reader;
    bool is_skipped = a->skip.byte && sl_span_eq(sl_span_str(object->key), a->skip_key);
    if (a->skip.byte && !is_skipped)
        return is_gone(a, error);
    if (!object->content)
        read_ahead(a, call);
    if (object->content)
        reader = take_content(object);
    else if (sl_store_read(a->store, sl_span_str(object->key), &reader, error) != SL_OK)
        return SL_REJECT;
    free(a->name);
    if (asprintf(&a->name, "%s/%s", a->source.facts.name, object->key) < 0)
        sl_die("out of memory: an object's name");
    const struct sl_text_options options = {.name = a->name,
                                            .clock = a->source.options.sinks->clock,
                                            .ttl_attribute = a->source.options.ttl_attribute,
                                            .skip = a->skip};
    sl_text_open(&a->text, &options, reader);
    a->skip = (struct sl_text_from){.byte = 0};
    a->is_open = true;
    return SL_OK;
}

static void close_object(struct archive *a)
{
    struct object *object = &a->page[a->at++];
    sl_text_close(&a->text);
    a->is_open = false;
    a->number++;
    free(a->after);
    a->after = object->key;
    object->key = NULL;
}

/* What `format: "record"` wrote are records as they were delivered. */
static enum sl_status check_format(const struct archive *a, const struct sl_batch *batch,
                                   struct sl_error *error)
{
    bool are_records = batch->n == 0 || batch->shape == SL_SHAPE_LINES;
    for (size_t i = 0; i < batch->n && are_records; i++)
        are_records = sl_record_text(sl_batch_record(batch, i), SL_FIELD_IDENTIFIER).ptr != NULL;
    if (are_records)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "NotRecords",
                   "%s: is not in the archive's format \"record\", the only one that holds whole changes",
                   a->name);
}

static enum sl_status pull_object(struct archive *a, size_t max_bytes, const struct sl_call *call,
                                  struct sl_source_piece *out, struct sl_error *error)
{
    uint64_t stored = a->is_open ? a->text.stored_bytes : 0;
    enum sl_status status = a->is_open ? SL_OK : open_object(a, call, error);
    if (status == SL_OK) {
        out->from = a->text.from;
        status = sl_text_pull(&a->text, max_bytes, call, &out->batch, error);
    }
    if (status != SL_OK)
        return status;
    out->stored_bytes += a->text.stored_bytes - stored;
    status = check_format(a, &out->batch, error);
    if (status != SL_OK || !a->text.is_at_end)
        return status;
    if (a->text.stored_bytes != a->page[a->at].bytes)
        return sl_fail(
            error, SL_REJECT, "WrongSize",
            "%s: has %llu bytes, and had %llu when it was listed: it was replaced meanwhile, or was "
            "not read whole; run it again",
            a->name, (unsigned long long)a->text.stored_bytes, (unsigned long long)a->page[a->at].bytes);
    close_object(a);
    return SL_OK;
}

static void add_place(const struct archive *a, const struct sl_call *call, struct sl_source_piece *out)
{
    struct sl_buffer place;
    sl_source_place_begin(&place, call, "archive", sl_span_str(a->source.facts.name));
    if (a->after)
        sl_json_add_member(&place, "after", sl_span_str(a->after));
    if (a->is_open && a->text.from.byte) {
        sl_json_add_member(&place, "object", sl_span_str(a->page[a->at].key));
        sl_source_place_add_from(&place, &a->text.from);
    } else if (a->skip.byte) {
        sl_json_add_member(&place, "object", a->skip_key);
        sl_source_place_add_from(&place, &a->skip);
    }
    sl_json_add_integer(&place, "objects", (int64_t)a->number);
    out->place = sl_source_place_end(&place);
}

static bool is_at_end(const struct archive *a)
{
    return a->at == a->n && a->is_listed;
}

/* An object without records and a page without objects are no pieces; the deadline makes one. */
static enum sl_status pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                           struct sl_source_piece *out, struct sl_error *error)
{
    struct archive *a = (struct archive *)source;
    enum sl_status status = SL_OK;
    out->file = a->number;
    while (status == SL_OK && out->batch.n == 0 && !is_at_end(a) && !is_late(a, call)) {
        out->file = a->number;
        status = a->at == a->n ? list(a, call, error) : pull_object(a, max_bytes, call, out, error);
    }
    if (status == SL_OK && is_at_end(a) && a->skip.byte)
        status = is_gone(a, error);
    if (status == SL_OK && is_at_end(a) && a->number == 0 && !a->what.list)
        status = sl_store_has_no_archive(a->source.facts.name, error);
    if (status != SL_OK)
        return status;
    out->is_last = is_at_end(a);
    add_place(a, call, out);
    return SL_OK;
}

static void close_archive(struct sl_source *source)
{
    struct archive *a = (struct archive *)source;
    sl_text_close(&a->text);
    forget_page(a);
    sl_store_close(a->store);
    sl_arena_destroy(a->scratch);
    free(a->after);
    free(a->next);
    free(a->name);
}

static enum sl_status go_on(struct archive *a, struct sl_error *error)
{
    bool is_there;
    uint64_t number = 0;
    enum sl_status status =
        sl_source_place_check(&a->source, "archive", sl_span_str(a->source.facts.name), &is_there, error);
    if (status != SL_OK || !is_there)
        return status;
    struct sl_span after = sl_source_place_text(&a->source, "after");
    a->skip_key = sl_source_place_text(&a->source, "object");
    bool is_whole = sl_source_place_number(&a->source, "objects", &number);
    if (a->skip_key.ptr)
        is_whole = is_whole && sl_source_place_from(&a->source, &a->skip);
    if (!is_whole)
        return sl_source_place_bad(&a->source, error);
    a->number = (size_t)number;
    if (after.len) {
        a->after = copy_of(after);
        a->next = copy_of(after);
    }
    return SL_OK;
}

enum sl_status sl_source_open_archive(const struct sl_source_options *options,
                                      const struct sl_source_archive *what, const struct sl_call *call,
                                      struct sl_source **out, struct sl_error *error)
{
    struct archive *a = sl_source_new(options, sizeof(*a));
    (void)call;
    a->what = *what;
    a->source.pull = pull;
    a->source.close = close_archive;
    a->source.facts.name = what->place;
    a->scratch = sl_arena_new(64 * 1024);
    enum sl_status status = sl_store_open(options->sinks, what->place, &a->store, error);
    if (status == SL_OK) {
        a->source.facts.name = sl_store_name(a->store);
        status = go_on(a, error);
    }
    if (status != SL_OK)
        sl_source_close(&a->source);
    else
        *out = &a->source;
    return status;
}
