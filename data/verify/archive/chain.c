/* The chain of an archive's changes: collected, sorted by item and order, and walked. */
#include "data/verify/archive/chain.h"

#include "base/buffer.h"
#include "base/disk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/sorter.h"
#include "data/source/listing.h"
#include "data/source/source.h"
#include "data/source/whole.h"
#include "handlers/pipeline/host.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1024 * 1024)
#define LINE_BYTES  ((size_t)64 * 1024)
#define KEY_BYTES   1100

/* What is sorted of a change: its item is the entry's key; its number with zeros before it, and then its
 * event, are the order; `before` and `after` are what it found and left. */
#define NUMBER_BYTES 40
#define EVENT_BYTES  (SL_SORTER_ORDER_BYTES - NUMBER_BYTES)
#define DIGEST_BYTES 16 /* of an object's name */

enum {
    EVENT = 3,       /* enum sl_event */
    IS_TIMED = 4,    /* the number is a time, and others may have the same */
    OBJECT_SHIFT = 3 /* above: where its object's name is in the file of names */
};

#define SORT_AT_ONCE 10000

struct chain {
    const struct sl_chain_options *o;
    struct sl_chain_counts *counts;
    struct sl_arena *arena; /* of an object */
    struct sl_buffer line;
    char *folder; /* of its own */
    FILE *names;
    struct sl_sorter *sorter;
};

/* ---- lines ---- */

static void begin_line(struct chain *c, const char *kind)
{
    struct sl_buffer *b = &c->line;
    sl_buffer_reset(b);
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "result", SL_LIT("different"));
    sl_json_add_member(b, "kind", sl_span_str(kind));
    sl_json_add_member(b, "route", sl_span_str(c->o->route));
    sl_json_add_member(b, "handler", SL_LIT("archive"));
}

static void end_line(struct chain *c)
{
    sl_buffer_add_str(&c->line, "}\n");
    c->o->found(c->o->arg, sl_buffer_span(&c->line));
}

/* Reports an object: `kind` is "damaged" or "unreadable". */
static void report_object(struct chain *c, struct sl_span key, const char *kind, const char *why)
{
    c->counts->damaged += strcmp(kind, "damaged") == 0;
    begin_line(c, kind);
    sl_json_add_member(&c->line, "object", key);
    sl_json_add_member(&c->line, "why", sl_span_str(why));
    end_line(c);
}

/* One object of an archive: read whole, compared with its name, its changes digested. */

static enum sl_status read_records(struct chain *c, const struct sl_object_entry *entry,
                                   struct sl_batch *batch, struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true, .keeps_erased = true};
    struct sl_whole whole;
    enum sl_status status = sl_whole_read(c->o->port, c->o->clock, entry->key, c->arena, &whole, error);
    *batch = (struct sl_batch){.n = 0};
    return status == SL_OK && whole.text.len ? sl_batch_decode(whole.text, c->arena, &options, batch, error)
                                             : status;
}

/* ---- names: FIRST-COUNT-DIGEST.jsonl.gz, as docs/HANDLERS.md has it ---- */

static void digest_text(struct sl_span text, char out[2 * DIGEST_BYTES + 1])
{
    unsigned char bytes[32];
    sl_host_table.sha256(text, bytes);
    for (size_t i = 0; i < 2 * (size_t)DIGEST_BYTES; i++)
        out[i] = "0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
    out[2 * DIGEST_BYTES] = '\0';
}

/* The format's number, then of each record where it comes from (if that is another place than before), its
 * identifier and its event id, each closed with a newline. */
static void content_digest(struct chain *c, const struct sl_batch *batch, char out[2 * DIGEST_BYTES + 1])
{
    struct sl_buffer text;
    struct sl_span last = {NULL, 0};
    sl_buffer_init_in(&text, c->arena, SL_WHOLE_BYTES);
    sl_buffer_add_char(&text, '0');
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN);
        struct sl_span id = sl_record_text(r, SL_FIELD_IDENTIFIER),
                       event = sl_record_text(r, SL_FIELD_EVENT_ID);
        if (i == 0 || !sl_span_eq(arn, last)) {
            sl_buffer_add_span(&text, arn);
            sl_buffer_add_char(&text, '\n');
        }
        last = arn;
        sl_buffer_add_span(&text, id);
        sl_buffer_add_char(&text, '\n');
        sl_buffer_add_span(&text, event.len || id.len ? event : sl_record_text(r, SL_FIELD_RAW));
        sl_buffer_add_char(&text, '\n');
    }
    digest_text(sl_buffer_span(&text), out);
}

/* The part of the name after its first '-': "COUNT-DIGEST.jsonl"; NULL: another program wrote it. */
static const char *count_in_name(struct chain *c, struct sl_span key)
{
    const char *text = sl_arena_copy(c->arena, key), *slash = strrchr(text, '/');
    const char *dash = strchr(slash ? slash + 1 : text, '-');
    return dash ? dash + 1 : NULL;
}

static void compare_name(struct chain *c, const struct sl_object_entry *entry, const struct sl_batch *batch)
{
    char digest[2 * DIGEST_BYTES + 1], *end = NULL;
    const char *at = count_in_name(c, entry->key);
    unsigned long long n = at ? strtoull(at, &end, 10) : 0;
    if (!at || *end != '-' || strlen(end) < 1 + 2 * DIGEST_BYTES) {
        report_object(c, entry->key, "damaged", "its name is not one that archive gives");
        return;
    }
    content_digest(c, batch, digest);
    if (n != batch->n)
        report_object(c, entry->key, "damaged",
                      sl_arena_printf(c->arena, "its name says %llu records, and it has %zu", n, batch->n));
    else if (memcmp(end + 1, digest, 2 * DIGEST_BYTES) != 0)
        report_object(c, entry->key, "damaged", "it has other records than its name says");
}

/* ---- changes ---- */

static uint64_t state_of(struct sl_value image)
{
    unsigned char bytes[32];
    uint64_t state;
    sl_host_table.value_sha256(image, bytes);
    memcpy(&state, bytes, sizeof(state));
    return state;
}

/* An archive may hold several tables' changes: the items of two of them are two, whatever their keys. A table
 * has a new stream when its stream was off for a while. */
static void item_digest(struct chain *c, const struct sl_record *r, unsigned char out[SL_SORTER_KEY_BYTES])
{
    static const char stream[] = "/stream/";
    unsigned char bytes[SL_SORTER_KEY_BYTES];
    struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN), table = sl_record_text(r, SL_FIELD_TABLE);
    const char *label = arn.len ? memmem(arn.ptr, arn.len, stream, strlen(stream)) : NULL;
    arn.len = label ? (size_t)(label - arn.ptr) : arn.len;
    sl_host_table.value_sha256(sl_record_image(r, SL_KEYS), bytes);
    struct sl_buffer text;
    sl_buffer_init_in(&text, c->arena, SL_WHOLE_BYTES);
    sl_buffer_add_span(&text, arn);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, table);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, sl_span((const char *)bytes, sizeof(bytes)));
    sl_host_table.sha256(sl_buffer_span(&text), out);
}

/* False: it lacks what the proof needs. */
static bool make_change(struct chain *c, const struct sl_record *r, long object, struct sl_sorter_entry *out)
{
    unsigned char bytes[32];
    struct sl_span order = sl_record_order(r, c->arena), id = sl_record_text(r, SL_FIELD_EVENT_ID);
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE), new = sl_record_image(r, SL_NEW_IMAGE);
    enum sl_event event = sl_record_event(r);
    bool is_whole = (event == SL_INSERT || old.type) && (event == SL_REMOVE || new.type);
    if (!is_whole || order.len == 0 || order.len > NUMBER_BYTES)
        return false;
    *out = (struct sl_sorter_entry){.order_bytes = SL_SORTER_ORDER_BYTES};
    out->flags = (uint64_t)object << OBJECT_SHIFT | (uint64_t)event |
                 (sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr ? 0 : IS_TIMED);
    memset(out->order, '0', NUMBER_BYTES - order.len);
    memcpy(out->order + NUMBER_BYTES - order.len, order.ptr, order.len);
    sl_host_table.sha256(id.len ? id : order, bytes);
    memcpy(out->order + NUMBER_BYTES, bytes, EVENT_BYTES);
    item_digest(c, r, out->key);
    out->before = old.type ? state_of(old) : 0;
    out->after = new.type ? state_of(new) : 0;
    return true;
}

static enum sl_status temp_failed(const struct chain *c, const char *what, struct sl_error *error)
{
    int err = errno;
    return sl_fail(error, SL_FATAL, sl_disk_code(err), "%s: a temporary file cannot be %s: %s", c->o->temp,
                   what, strerror(err));
}

/* Its images are gone; its identifiers are what the object's name says. */
static bool is_erased(const struct sl_record *r)
{
    return sl_span_starts(sl_record_text(r, SL_FIELD_RAW), SL_LIT(SL_ERASED_LINE));
}

/* Reads one object, compares it with its name, and adds its changes. */
static enum sl_status chain_object(struct chain *c, const struct sl_object_entry *entry,
                                   struct sl_error *error)
{
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    c->counts->objects++;
    enum sl_status status = read_records(c, entry, &batch, &why);
    if (status == SL_RETRY || status == SL_FATAL)
        return sl_fail(error, status, why.code, "%s", why.text);
    if (status != SL_OK) {
        c->counts->unreadable++;
        report_object(c, entry->key, "unreadable", why.text);
        return SL_OK;
    }
    compare_name(c, entry, &batch);
    long at = ftell(c->names);
    if (at < 0 || fwrite(entry->key.ptr, 1, entry->key.len, c->names) != entry->key.len ||
        fputc('\n', c->names) == EOF)
        return temp_failed(c, "written", error);
    for (size_t i = 0; i < batch.n && status == SL_OK; i++) {
        struct sl_sorter_entry change;
        c->counts->records++;
        if (is_erased(sl_batch_record(&batch, i)))
            c->counts->erased++;
        else if (make_change(c, sl_batch_record(&batch, i), at, &change))
            status = sl_sorter_add(c->sorter, &change, sl_span(NULL, 0), error);
        else
            c->counts->without_images++;
    }
    return status;
}

/* ---- findings ---- */

static void add_object(struct chain *c, const char *name, const struct sl_sorter_entry *change)
{
    char key[KEY_BYTES];
    if (fseek(c->names, (long)(change->flags >> OBJECT_SHIFT), SEEK_SET) != 0 ||
        !fgets(key, sizeof(key), c->names))
        return;
    key[strcspn(key, "\n")] = '\0';
    sl_json_add_member(&c->line, name, sl_span_str(key));
}

static void add_number(struct chain *c, const char *name, const struct sl_sorter_entry *change)
{
    sl_json_add_member(&c->line, name, sl_span_without_zeros(sl_span(change->order, NUMBER_BYTES)));
}

static void report_gap(struct chain *c, const struct sl_sorter_entry *before,
                       const struct sl_sorter_entry *after, const char *why)
{
    c->counts->gaps++;
    begin_line(c, "gap");
    add_number(c, "sequence_number", after);
    add_object(c, "object", after);
    add_number(c, "after_sequence_number", before);
    add_object(c, "after_object", before);
    sl_json_add_member(&c->line, "why", sl_span_str(why));
    end_line(c);
}

/* ---- the walk ---- */

const char *sl_chain_gap(enum sl_event first, enum sl_event second, bool is_same)
{
    bool was_there = first != SL_REMOVE, is_insert = second == SL_INSERT;
    if (!was_there && !is_insert)
        return "it changes an item that was removed before: its INSERT is missing";
    if (was_there && is_insert)
        return "it inserts an item that was there: its REMOVE is missing";
    return was_there && !is_same ? "its OldImage is not the NewImage before it: a change is missing" : NULL;
}

static void compare(struct chain *c, const struct sl_sorter_entry *before,
                    const struct sl_sorter_entry *after)
{
    const char *why = sl_chain_gap((enum sl_event)(before->flags & EVENT),
                                   (enum sl_event)(after->flags & EVENT), before->after == after->before);
    if (why)
        report_gap(c, before, after, why);
}

/* Two changes of an item with one time: Kinesis carries no sequence numbers, so nothing says which of the two
 * was first, and neither what came before them nor what came after can be compared. */
static bool are_tied(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    return (a->flags & IS_TIMED) && sl_sorter_same_key(a, b) && memcmp(a->order, b->order, NUMBER_BYTES) == 0;
}

static bool are_doubles(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    return sl_sorter_same_key(a, b) && memcmp(a->order, b->order, sizeof(a->order)) == 0;
}

/* The next change, without doubles of the one before it. */
static enum sl_status read_next(struct chain *c, const struct sl_sorter_entry *last,
                                struct sl_sorter_entry *out, bool *has, struct sl_error *error)
{
    struct sl_span body;
    enum sl_status status = sl_sorter_next(c->sorter, out, &body, has, error);
    while (status == SL_OK && *has && last && are_doubles(last, out)) {
        c->counts->doubles++;
        status = sl_sorter_next(c->sorter, out, &body, has, error);
    }
    return status;
}

static enum sl_status walk(struct chain *c, struct sl_error *error)
{
    struct sl_sorter_entry before = {.flags = 0}, change, next;
    bool has_before = false, has = false, has_next = false, was_tied = false;
    enum sl_status status = read_next(c, NULL, &change, &has, error);
    for (; status == SL_OK && has && !c->o->is_stopped(c->o->stop_arg); change = next, has = has_next) {
        status = read_next(c, &change, &next, &has_next, error);
        bool same_item = has_before && sl_sorter_same_key(&before, &change);
        bool is_tied = (has_next && are_tied(&change, &next)) || (has_before && are_tied(&change, &before));
        c->counts->items += !same_item;
        c->counts->unknown_before += !same_item && (change.flags & EVENT) != SL_INSERT;
        if (same_item && !is_tied && !was_tied)
            compare(c, &before, &change);
        was_tied = is_tied;
        before = change;
        has_before = true;
    }
    return status;
}

static enum sl_status sort_and_walk(struct chain *c, struct sl_error *error)
{
    bool is_ready = false;
    enum sl_status status = SL_OK;
    while (status == SL_OK && !is_ready && !c->o->is_stopped(c->o->stop_arg))
        status = sl_sorter_merge(c->sorter, SORT_AT_ONCE, &is_ready, error);
    return status == SL_OK && is_ready ? walk(c, error) : status;
}

/* ---- the archive ---- */

#define STOPPED "Stopped" /* the code of a listing that was ended on purpose */

static enum sl_status each_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct chain *c = arg;
    if (c->o->is_stopped(c->o->stop_arg))
        return sl_fail(error, SL_RETRY, STOPPED, "stopped");
    sl_arena_reset(c->arena);
    return sl_source_is_archived(entry->key) ? chain_object(c, entry, error) : SL_OK;
}

static enum sl_status read_objects(struct chain *c, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_listing_each(c->o->port, c->o->clock, sl_span(NULL, 0), each_object, c, &why);
    if (status == SL_OK || strcmp(why.code, STOPPED) == 0)
        return SL_OK;
    return sl_fail(error, status, why.code, "%s", why.text);
}

static enum sl_status open_files(struct chain *c, struct sl_error *error)
{
    if (asprintf(&c->folder, "%s/sluice-verify-XXXXXX", c->o->temp) < 0)
        sl_die("out of memory: an archive");
    if (!mkdtemp(c->folder)) {
        free(c->folder);
        c->folder = NULL;
        return temp_failed(c, "made", error);
    }
    char *path = sl_arena_printf(c->arena, "%s/names", c->folder);
    c->names = fopen(path, "w+b");
    c->sorter = sl_sorter_open(c->folder, 0);
    return c->names ? SL_OK : temp_failed(c, "made", error);
}

static void close_files(struct chain *c)
{
    sl_sorter_close(c->sorter);
    if (c->names)
        fclose(c->names);
    if (c->folder) {
        unlink(sl_arena_printf(c->arena, "%s/names", c->folder));
        rmdir(c->folder);
    }
    free(c->folder);
}

enum sl_status sl_chain_verify(const struct sl_chain_options *o, struct sl_chain_counts *counts,
                               struct sl_error *error)
{
    struct chain c = {.o = o, .counts = counts, .arena = sl_arena_new(ARENA_BYTES)};
    sl_buffer_init(&c.line, LINE_BYTES);
    enum sl_status status = SL_OK;
    if (!o->port->list || !o->port->read)
        status = sl_fail(error, SL_FATAL, "NoList", "such an archive cannot be read");
    if (status == SL_OK)
        status = open_files(&c, error);
    if (status == SL_OK)
        status = read_objects(&c, error);
    if (status == SL_OK && fflush(c.names) != 0)
        status = temp_failed(&c, "written", error);
    if (status == SL_OK)
        status = sort_and_walk(&c, error);
    close_files(&c);
    sl_buffer_clean_up(&c.line);
    sl_arena_destroy(c.arena);
    return status;
}
