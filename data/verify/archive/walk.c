/* The chain of an archive's changes: sorted by item and order, and walked. */
#include "data/verify/archive/walk.h"

#include "base/disk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "streams/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SORT_AT_ONCE 10000

enum sl_status sl_chain_open(const char *temp, char **folder, struct sl_sorter **sorter,
                             struct sl_error *error)
{
    *sorter = NULL;
    if (asprintf(folder, "%s/sluice-verify-XXXXXX", temp) < 0)
        sl_die("out of memory: an archive");
    if (!mkdtemp(*folder)) {
        int err = errno;
        free(*folder);
        *folder = NULL;
        return sl_fail(error, SL_FATAL, sl_disk_code(err), "%s: a temporary folder cannot be made: %s", temp,
                       strerror(err));
    }
    *sorter = sl_sorter_open(*folder, 0);
    return SL_OK;
}

void sl_chain_close(char *folder, struct sl_sorter *sorter)
{
    sl_sorter_close(sorter);
    if (folder)
        rmdir(folder);
    free(folder);
}

const char *sl_chain_gap(enum sl_event first, enum sl_event second, bool is_same)
{
    bool was_there = first != SL_REMOVE, is_insert = second == SL_INSERT;
    if (!was_there && !is_insert)
        return "it changes an item that was removed before: its INSERT is missing";
    if (was_there && is_insert)
        return "it inserts an item that was there: its REMOVE is missing";
    return was_there && !is_same ? "its OldImage is not the NewImage before it: a change is missing" : NULL;
}

static void compare(const struct sl_chain_walk *w, const struct sl_sorter_entry *before,
                    const struct sl_sorter_entry *after)
{
    const char *why =
        sl_chain_gap((enum sl_event)(before->flags & SL_CHANGE_EVENT),
                     (enum sl_event)(after->flags & SL_CHANGE_EVENT), before->after == after->before);
    if (!why || (after->flags & SL_CHANGE_LATE))
        return;
    w->counts->gaps++;
    w->gap(w->arg, before, after, why);
}

static void add_change(struct sl_buffer *line, const char *number, const struct sl_sorter_entry *change,
                       const char *name, struct sl_span object)
{
    sl_json_add_member(line, number, sl_span_without_zeros(sl_span(change->order, SL_CHANGE_NUMBER_BYTES)));
    if (object.ptr)
        sl_json_add_member(line, name, object);
}

void sl_chain_gap_line(struct sl_buffer *line, const char *route, const struct sl_chain_hole *hole)
{
    sl_archive_begin_line(line, "gap", route);
    add_change(line, "sequence_number", &hole->after, "object", hole->after_object);
    add_change(line, "after_sequence_number", &hole->before, "after_object", hole->before_object);
    sl_json_add_member(line, "why", sl_span_str(hole->why));
    sl_buffer_add_str(line, "}\n");
}

/* Two changes of an item with one time: Kinesis carries no sequence numbers, so nothing says which of the two
 * was first, and neither what came before them nor what came after can be compared. */
static bool are_tied(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    return (a->flags & SL_CHANGE_TIMED) && sl_sorter_same_key(a, b) &&
           memcmp(a->order, b->order, SL_CHANGE_NUMBER_BYTES) == 0;
}

static bool are_doubles(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    return sl_sorter_same_key(a, b) && memcmp(a->order, b->order, sizeof(a->order)) == 0;
}

/* The next change, without doubles of the one before it, which came late only if all of them did. */
static enum sl_status read_next(const struct sl_chain_walk *w, struct sl_sorter_entry *last,
                                struct sl_sorter_entry *out, bool *has, struct sl_error *error)
{
    struct sl_span body;
    enum sl_status status = sl_sorter_next(w->sorter, out, &body, has, error);
    while (status == SL_OK && *has && last && are_doubles(last, out)) {
        w->counts->doubles++;
        last->flags &= out->flags | ~(uint64_t)SL_CHANGE_LATE;
        status = sl_sorter_next(w->sorter, out, &body, has, error);
    }
    return status;
}

static enum sl_status walk(const struct sl_chain_walk *w, struct sl_error *error)
{
    struct sl_sorter_entry before = {.flags = 0}, change, next;
    bool has_before = false, has = false, has_next = false, was_tied = false;
    enum sl_status status = read_next(w, NULL, &change, &has, error);
    for (; status == SL_OK && has && !w->is_stopped(w->stop_arg); change = next, has = has_next) {
        status = read_next(w, &change, &next, &has_next, error);
        bool same_item = has_before && sl_sorter_same_key(&before, &change);
        bool is_tied = (has_next && are_tied(&change, &next)) || (has_before && are_tied(&change, &before));
        w->counts->items += !same_item;
        w->counts->unknown_before +=
            !same_item && (change.flags & SL_CHANGE_EVENT) != SL_INSERT && !(change.flags & SL_CHANGE_LATE);
        if (same_item && !is_tied && !was_tied)
            compare(w, &before, &change);
        was_tied = is_tied;
        before = change;
        has_before = true;
    }
    return status;
}

enum sl_status sl_chain_walk(const struct sl_chain_walk *w, struct sl_error *error)
{
    bool is_ready = false;
    enum sl_status status = SL_OK;
    while (status == SL_OK && !is_ready && !w->is_stopped(w->stop_arg))
        status = sl_sorter_merge(w->sorter, SORT_AT_ONCE, &is_ready, error);
    return status == SL_OK && is_ready ? walk(w, error) : status;
}
