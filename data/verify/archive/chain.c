/* An archive, read by one machine: twice over its names, once over each object. */
#include "data/verify/archive/chain.h"

#include "base/disk.h"
#include "base/span.h"
#include "data/source/listing.h"
#include "data/verify/archive/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1024 * 1024)
#define LINE_BYTES  ((size_t)64 * 1024)
#define KEY_BYTES   1100

struct chain {
    const struct sl_chain_options *o;
    struct sl_changes changes;
    struct sl_arena *arena; /* of the chain */
    struct sl_buffer line;
    char *folder; /* of its own */
    const char *names_path;
    FILE *names; /* of the objects that were read, one a line */
    struct sl_sorter *sorter;

    /* The second time: the names of the first one, in the same order, and the one to come. */
    FILE *known;
    long known_bytes;
    char next_known[KEY_BYTES];
};

static enum sl_status temp_failed(const struct chain *c, const char *what, struct sl_error *error)
{
    int err = errno;
    return sl_fail(error, SL_FATAL, sl_disk_code(err), "%s: a temporary file cannot be %s: %s", c->o->temp,
                   what, strerror(err));
}

/* ---- objects ---- */

static enum sl_status take_change(void *arg, const struct sl_sorter_entry *change, struct sl_error *error)
{
    struct chain *c = arg;
    return sl_sorter_add(c->sorter, change, sl_span(NULL, 0), error);
}

static void read_known(struct chain *c)
{
    if (ftell(c->known) >= c->known_bytes || !fgets(c->next_known, sizeof(c->next_known), c->known))
        c->next_known[0] = '\0';
    c->next_known[strcspn(c->next_known, "\n")] = '\0';
}

static bool is_known(struct chain *c, struct sl_span key)
{
    while (c->next_known[0] && sl_span_compare(sl_span_str(c->next_known), key) < 0)
        read_known(c);
    return sl_span_is(key, c->next_known);
}

static enum sl_status each_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct chain *c = arg;
    if (c->o->is_stopped(c->o->stop_arg))
        return sl_fail(error, SL_RETRY, SL_LISTING_ENOUGH, "stopped");
    if (!sl_changes_are_in(entry->key) || (c->known && is_known(c, entry->key)))
        return SL_OK;
    long at = ftell(c->names);
    if (at < 0 || fwrite(entry->key.ptr, 1, entry->key.len, c->names) != entry->key.len ||
        fputc('\n', c->names) == EOF)
        return temp_failed(c, "written", error);
    return sl_changes_read(&c->changes, entry->key,
                           (uint64_t)at << SL_CHANGE_OBJECT_SHIFT | (uint64_t)(c->known ? SL_CHANGE_LATE : 0),
                           error);
}

static enum sl_status list(struct chain *c, struct sl_error *error)
{
    enum sl_status status =
        sl_listing_each(c->o->port, c->o->clock, sl_span(NULL, 0), sl_span(NULL, 0), each_object, c, error);
    return status == SL_OK && fflush(c->names) != 0 ? temp_failed(c, "written", error) : status;
}

/* Objects come while the archive is read: one where the listing is past, and then one of the same item where
 * it is not yet. So what came meanwhile is read afterwards: of all that was read before, nothing is missing
 * then that was there. */
static enum sl_status list_late(struct chain *c, struct sl_error *error)
{
    c->known_bytes = ftell(c->names);
    c->known = fopen(c->names_path, "rb");
    if (!c->known)
        return temp_failed(c, "read", error);
    read_known(c);
    return list(c, error);
}

/* ---- findings ---- */

static struct sl_span object_of(struct chain *c, const struct sl_sorter_entry *change, char key[KEY_BYTES])
{
    if (fseek(c->names, (long)(change->flags >> SL_CHANGE_OBJECT_SHIFT), SEEK_SET) != 0 ||
        !fgets(key, KEY_BYTES, c->names))
        return sl_span(NULL, 0);
    return sl_span(key, strcspn(key, "\n"));
}

static void on_gap(void *arg, const struct sl_sorter_entry *before, const struct sl_sorter_entry *after,
                   const char *why)
{
    struct chain *c = arg;
    char keys[2][KEY_BYTES];
    const struct sl_chain_hole hole = {.before = *before,
                                       .after = *after,
                                       .before_object = object_of(c, before, keys[0]),
                                       .after_object = object_of(c, after, keys[1]),
                                       .why = why};
    sl_chain_gap_line(&c->line, c->o->route, &hole);
    c->o->found(c->o->arg, sl_buffer_span(&c->line));
}

/* ---- the archive ---- */

static enum sl_status open_files(struct chain *c, struct sl_error *error)
{
    if (sl_chain_open(c->o->temp, &c->folder, &c->sorter, error) != SL_OK)
        return error->status;
    c->names_path = sl_arena_printf(c->arena, "%s/names", c->folder);
    c->names = fopen(c->names_path, "w+b");
    return c->names ? SL_OK : temp_failed(c, "made", error);
}

static void close_files(struct chain *c)
{
    if (c->known)
        fclose(c->known);
    if (c->names)
        fclose(c->names);
    if (c->names_path)
        unlink(c->names_path);
    sl_chain_close(c->folder, c->sorter);
}

static enum sl_status verify(struct chain *c, struct sl_error *error)
{
    const struct sl_chain_options *o = c->o;
    const struct sl_chain_walk walk = {.sorter = c->sorter,
                                       .counts = c->changes.counts,
                                       .is_stopped = o->is_stopped,
                                       .stop_arg = o->stop_arg,
                                       .gap = on_gap,
                                       .arg = c};
    enum sl_status status = list(c, error);
    if (status == SL_OK)
        status = list_late(c, error);
    return status == SL_OK ? sl_chain_walk(&walk, error) : status;
}

enum sl_status sl_chain_verify(const struct sl_chain_options *o, struct sl_chain_counts *counts,
                               struct sl_error *error)
{
    struct chain c = {.o = o, .arena = sl_arena_new(ARENA_BYTES)};
    sl_buffer_init(&c.line, LINE_BYTES);
    c.changes = (struct sl_changes){.port = o->port,
                                    .clock = o->clock,
                                    .route = o->route,
                                    .arena = sl_arena_new(ARENA_BYTES),
                                    .line = &c.line,
                                    .counts = counts,
                                    .found = o->found,
                                    .arg = o->arg,
                                    .take = take_change,
                                    .take_arg = &c};
    enum sl_status status = SL_OK;
    if (!o->port->list || !o->port->read)
        status = sl_fail(error, SL_FATAL, "NoList", "such an archive cannot be read");
    if (status == SL_OK)
        status = open_files(&c, error);
    if (status == SL_OK)
        status = verify(&c, error);
    close_files(&c);
    sl_buffer_clean_up(&c.line);
    sl_arena_destroy(c.changes.arena);
    sl_arena_destroy(c.arena);
    return status;
}
