/* The chain of an archive's changes: collected in files by item, sorted, and walked. */
#include "work/verify/archive/chain.h"

#include "base/json_write.h"
#include "base/span.h"
#include "work/verify/archive/chain_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1024 * 1024)
#define LINE_BYTES  ((size_t)64 * 1024)
#define LIST_MS     60000
#define KEY_BYTES   1100

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

enum sl_status chain_add(struct chain *c, const struct change *change, struct sl_error *error)
{
    FILE *part = c->parts[change->item[0] % SL_CHAIN_PARTS];
    if (fwrite(change, sizeof(*change), 1, part) == 1)
        return SL_OK;
    return sl_fail(error, SL_FATAL, "CannotWrite", "%s: a temporary file cannot be written: %s", c->o->temp,
                   strerror(errno));
}

/* ---- findings ---- */

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

void chain_report_object(struct chain *c, struct sl_span key, const char *kind, const char *why)
{
    c->counts->damaged += strcmp(kind, "damaged") == 0;
    begin_line(c, kind);
    sl_json_add_member(&c->line, "object", key);
    sl_json_add_member(&c->line, "why", sl_span_str(why));
    end_line(c);
}

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
