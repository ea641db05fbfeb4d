/* The chain of an archive's changes: collected in files by item, sorted, and walked. */
#include "data/verify/archive/chain.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "base/json_write.h"
#include "base/span.h"
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
#define LIST_MS     60000
#define KEY_BYTES   1100

#define ORDER_BYTES  40
#define DIGEST_BYTES 16

/* One change, in the files that are sorted. */
struct change {
    unsigned char item[DIGEST_BYTES];
    char order[ORDER_BYTES]; /* digits with zeros before them */
    unsigned char event_id[DIGEST_BYTES];
    unsigned char old[DIGEST_BYTES], new[DIGEST_BYTES];
    uint64_t object; /* where its object's name is in the file of names */
    uint8_t event;
    bool has_old, has_new;
    bool is_timed; /* the order is a time, and others may have the same */
};

struct chain {
    const struct sl_chain_options *o;
    struct sl_chain_counts *counts;
    struct sl_arena *arena; /* of an object */
    struct sl_buffer line;
    FILE *names, *parts[SL_CHAIN_PARTS];
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

/* A change goes to the file of its part of the items. */
static enum sl_status add_change(struct chain *c, const struct change *change, struct sl_error *error)
{
    FILE *part = c->parts[change->item[0] % SL_CHAIN_PARTS];
    if (fwrite(change, sizeof(*change), 1, part) == 1)
        return SL_OK;
    return sl_fail(error, SL_FATAL, "CannotWrite", "%s: a temporary file cannot be written: %s", c->o->temp,
                   strerror(errno));
}

/* One object of an archive: read whole, compared with its name, its changes digested. */

#define READ_BYTES ((size_t)8 * 1024 * 1024)
#define READ_MS    60000

/* ---- reading ---- */

static enum sl_status read_whole(struct chain *c, const struct sl_object_entry *entry, struct sl_buffer *out,
                                 struct sl_error *error)
{
    struct sl_clock *clock = c->o->clock;
    struct sl_span etag = {NULL, 0};
    for (uint64_t from = 0; from < entry->bytes || from == 0;) {
        const struct sl_call call = {.arena = c->arena, .deadline_ms = clock->now_ms(clock) + READ_MS};
        const struct sl_object_read read = {
            .key = entry->key, .from = from, .max_bytes = READ_BYTES, .etag = etag};
        struct sl_object_piece piece = {.bytes = {NULL, 0}};
        c->o->port->read(c->o->port, &read, 1, &piece, &call);
        if (piece.result.status != SL_OK)
            return sl_fail(error, piece.result.status, piece.result.code, "%s", piece.result.text);
        sl_buffer_add_span(out, piece.bytes);
        etag = piece.etag.len ? piece.etag : etag;
        from += piece.bytes.len;
        if (piece.bytes.len < READ_BYTES)
            break;
    }
    return out->failed ? sl_fail(error, SL_REJECT, "TooLarge", "it is larger than an archive's objects are")
                       : SL_OK;
}

static enum sl_status read_records(struct chain *c, const struct sl_object_entry *entry,
                                   struct sl_batch *batch, struct sl_error *error)
{
    struct sl_buffer raw, text;
    const struct sl_decode_options options = {.any_shape = true};
    sl_buffer_init_in(&raw, c->arena, SL_CHAIN_OBJECT_BYTES);
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
    enum sl_status status = read_whole(c, entry, &raw, error);
    if (status != SL_OK)
        return status;
    struct sl_span lines = sl_buffer_span(&raw);
    if (sl_gzip_is(lines)) {
        status = sl_gzip_expand(lines, &text, error);
        lines = sl_buffer_span(&text);
    }
    *batch = (struct sl_batch){.n = 0};
    return status == SL_OK && lines.len ? sl_batch_decode(lines, c->arena, &options, batch, error) : status;
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
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
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

static void digest_of(struct sl_value value, unsigned char out[DIGEST_BYTES])
{
    unsigned char bytes[32];
    sl_host_table.value_sha256(value, bytes);
    memcpy(out, bytes, DIGEST_BYTES);
}

/* An archive may hold several tables' changes: the items of two of them are two, whatever their keys. A table
 * has a new stream when its stream was off for a while. */
static void item_digest(struct chain *c, const struct sl_record *r, unsigned char out[DIGEST_BYTES])
{
    static const char stream[] = "/stream/";
    unsigned char bytes[32];
    struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN), table = sl_record_text(r, SL_FIELD_TABLE);
    const char *label = arn.len ? memmem(arn.ptr, arn.len, stream, strlen(stream)) : NULL;
    arn.len = label ? (size_t)(label - arn.ptr) : arn.len;
    sl_host_table.value_sha256(sl_record_image(r, SL_KEYS), bytes);
    struct sl_buffer text;
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
    sl_buffer_add_span(&text, arn);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, table);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, sl_span((const char *)bytes, sizeof(bytes)));
    sl_host_table.sha256(sl_buffer_span(&text), bytes);
    memcpy(out, bytes, DIGEST_BYTES);
}

static bool make_change(struct chain *c, const struct sl_record *r, struct change *out)
{
    unsigned char bytes[32];
    struct sl_span order = sl_record_order(r, c->arena), id = sl_record_text(r, SL_FIELD_EVENT_ID);
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE), new = sl_record_image(r, SL_NEW_IMAGE);
    *out = (struct change){.event = (uint8_t)sl_record_event(r)};
    out->has_old = old.type != SL_NONE;
    out->has_new = new.type != SL_NONE;
    out->is_timed = !sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr;
    bool is_whole = (out->event == SL_INSERT || out->has_old) && (out->event == SL_REMOVE || out->has_new);
    if (!is_whole || order.len == 0 || order.len > ORDER_BYTES)
        return false;
    memset(out->order, '0', ORDER_BYTES - order.len);
    memcpy(out->order + ORDER_BYTES - order.len, order.ptr, order.len);
    item_digest(c, r, out->item);
    if (out->has_old)
        digest_of(old, out->old);
    if (out->has_new)
        digest_of(new, out->new);
    sl_host_table.sha256(id.len ? id : order, bytes);
    memcpy(out->event_id, bytes, DIGEST_BYTES);
    return true;
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
        return sl_fail(error, SL_FATAL, "CannotWrite", "a temporary file cannot be written");
    for (size_t i = 0; i < batch.n && status == SL_OK; i++) {
        struct change change;
        c->counts->records++;
        if (!make_change(c, sl_batch_record(&batch, i), &change)) {
            c->counts->without_images++;
            continue;
        }
        change.object = (uint64_t)at;
        status = add_change(c, &change, error);
    }
    return status;
}

/* ---- temporary files ---- */

/* A file without a name. */
static FILE *open_temp(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

static enum sl_status open_files(struct chain *c, struct sl_error *error)
{
    c->names = open_temp(c->o->temp);
    bool good = c->names != NULL;
    for (size_t i = 0; i < SL_CHAIN_PARTS && good; i++) {
        c->parts[i] = open_temp(c->o->temp);
        good = c->parts[i] != NULL;
    }
    return good ? SL_OK
                : sl_fail(error, SL_FATAL, "CannotWrite", "%s: a temporary file cannot be made: %s",
                          c->o->temp, strerror(errno));
}

static void close_files(struct chain *c)
{
    if (c->names)
        fclose(c->names);
    for (size_t i = 0; i < SL_CHAIN_PARTS; i++)
        if (c->parts[i])
            fclose(c->parts[i]);
}

/* ---- findings ---- */

static struct sl_span digits(const char order[ORDER_BYTES])
{
    size_t i = 0;
    while (i + 1 < ORDER_BYTES && order[i] == '0')
        i++;
    return sl_span(order + i, ORDER_BYTES - i);
}

static void add_object(struct chain *c, const char *name, uint64_t at)
{
    char key[KEY_BYTES];
    if (fseek(c->names, (long)at, SEEK_SET) != 0 || !fgets(key, sizeof(key), c->names))
        return;
    key[strcspn(key, "\n")] = '\0';
    sl_json_add_member(&c->line, name, sl_span_str(key));
}

static void report_gap(struct chain *c, const struct change *before, const struct change *after,
                       const char *why)
{
    c->counts->gaps++;
    begin_line(c, "gap");
    sl_json_add_member(&c->line, "sequence_number", digits(after->order));
    add_object(c, "object", after->object);
    sl_json_add_member(&c->line, "after_sequence_number", digits(before->order));
    add_object(c, "after_object", before->object);
    sl_json_add_member(&c->line, "why", sl_span_str(why));
    end_line(c);
}

/* ---- the walk ---- */

static int by_item_and_order(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = memcmp(x->item, y->item, DIGEST_BYTES);
    order = order ? order : memcmp(x->order, y->order, ORDER_BYTES);
    return order ? order : memcmp(x->event_id, y->event_id, DIGEST_BYTES);
}

static void compare(struct chain *c, const struct change *before, const struct change *after)
{
    bool was_there = before->event != SL_REMOVE, is_insert = after->event == SL_INSERT;
    if (!was_there && !is_insert)
        report_gap(c, before, after, "it changes an item that was removed before: its INSERT is missing");
    else if (was_there && is_insert)
        report_gap(c, before, after, "it inserts an item that was there: its REMOVE is missing");
    else if (was_there && memcmp(before->new, after->old, DIGEST_BYTES) != 0)
        report_gap(c, before, after, "its OldImage is not the NewImage before it: a change is missing");
}

static bool is_tie(const struct change *a, const struct change *b)
{
    return a->is_timed && memcmp(a->item, b->item, DIGEST_BYTES) == 0 &&
           memcmp(a->order, b->order, ORDER_BYTES) == 0;
}

/* Does another change of the item have the time of `list[i]`? Kinesis carries no sequence numbers: nothing
 * says which of the two was first, and so neither what came before them nor what came after can be compared.
 */
static bool is_tied(const struct change *list, size_t n, size_t i, const struct change *before)
{
    for (size_t k = i + 1; k < n && is_tie(&list[i], &list[k]); k++)
        if (memcmp(list[i].event_id, list[k].event_id, DIGEST_BYTES) != 0)
            return true;
    return before && is_tie(&list[i], before);
}

static void walk(struct chain *c, const struct change *list, size_t n)
{
    const struct change *before = NULL;
    bool was_tied = false;
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &list[i];
        bool same_item = before && memcmp(before->item, change->item, DIGEST_BYTES) == 0;
        if (same_item && memcmp(before->order, change->order, ORDER_BYTES) == 0 &&
            memcmp(before->event_id, change->event_id, DIGEST_BYTES) == 0) {
            c->counts->doubles++;
            continue;
        }
        c->counts->items += !same_item;
        c->counts->unknown_before += !same_item && change->event != SL_INSERT;
        bool ties = is_tied(list, n, i, before);
        if (same_item && !ties && !was_tied)
            compare(c, before, change);
        was_tied = ties;
        before = change;
    }
}

static enum sl_status walk_part(struct chain *c, FILE *part, struct sl_error *error)
{
    if (fflush(part) != 0 || fseek(part, 0, SEEK_END) != 0)
        return sl_fail(error, SL_FATAL, "CannotWrite", "%s: a temporary file cannot be written: %s",
                       c->o->temp, strerror(errno));
    size_t bytes = (size_t)ftell(part), n = bytes / sizeof(struct change);
    if (bytes > SL_CHAIN_PART_BYTES)
        return sl_fail(error, SL_FATAL, "TooLarge",
                       "the archive has more than some %zu million records: verify a part of it, by a route "
                       "whose target ends in a prefix",
                       SL_CHAIN_PARTS * (SL_CHAIN_PART_BYTES / sizeof(struct change)) / 1000000);
    struct change *list = malloc(bytes + 1);
    if (!list)
        sl_die("out of memory: %zu changes of an archive", n);
    rewind(part);
    bool good = fread(list, sizeof(*list), n, part) == n;
    if (good) {
        qsort(list, n, sizeof(*list), by_item_and_order);
        walk(c, list, n);
    }
    free(list);
    return good ? SL_OK
                : sl_fail(error, SL_FATAL, "CannotRead", "%s: a temporary file cannot be read", c->o->temp);
}

/* ---- the archive ---- */

static bool is_archived(struct sl_span key)
{
    static const char *const ends[] = {".jsonl", ".jsonl.gz"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(ends[i]);
        if (key.len > n && memcmp(key.ptr + key.len - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

static enum sl_status read_objects(struct chain *c, struct sl_error *error)
{
    struct sl_clock *clock = c->o->clock;
    struct sl_arena *pages = sl_arena_new(ARENA_BYTES);
    struct sl_object_list list = {.prefix = {NULL, 0}};
    enum sl_status status = SL_OK;
    for (bool more = true; more && status == SL_OK;) {
        struct sl_object_page page = {.n = 0};
        const struct sl_call call = {.arena = pages, .deadline_ms = clock->now_ms(clock) + LIST_MS};
        c->o->port->list(c->o->port, &list, &page, &call);
        if (page.result.status != SL_OK)
            status = sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t i = 0; i < page.n && status == SL_OK && !c->o->is_stopped(c->o->stop_arg); i++) {
            sl_arena_reset(c->arena);
            if (is_archived(page.entries[i].key))
                status = chain_object(c, &page.entries[i], error);
        }
        more = page.next.ptr && !c->o->is_stopped(c->o->stop_arg);
        if (more) {
            char *after = strndup(page.next.ptr, page.next.len);
            sl_arena_reset(pages);
            list.after = sl_span(sl_arena_copy(pages, sl_span_str(after)), strlen(after));
            free(after);
        }
    }
    sl_arena_destroy(pages);
    return status;
}

enum sl_status sl_chain_verify(const struct sl_chain_options *o, struct sl_chain_counts *counts,
                               struct sl_error *error)
{
    struct chain *c = calloc(1, sizeof(*c));
    if (!c)
        sl_die("out of memory: an archive");
    *c = (struct chain){.o = o, .counts = counts, .arena = sl_arena_new(ARENA_BYTES)};
    sl_buffer_init(&c->line, LINE_BYTES);
    enum sl_status status = SL_OK;
    if (!o->port->list || !o->port->read)
        status = sl_fail(error, SL_FATAL, "NoList", "such an archive cannot be read");
    if (status == SL_OK)
        status = open_files(c, error);
    if (status == SL_OK)
        status = read_objects(c, error);
    for (size_t i = 0; i < SL_CHAIN_PARTS && status == SL_OK && !o->is_stopped(o->stop_arg); i++)
        status = walk_part(c, c->parts[i], error);
    close_files(c);
    sl_buffer_clean_up(&c->line);
    sl_arena_destroy(c->arena);
    free(c);
    return status;
}
