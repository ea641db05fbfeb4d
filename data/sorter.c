/* An external sort: sorted runs on disk, merged SL_SORTER_FAN at a time. */
#include "data/sorter.h"

#include "base/array.h"
#include "base/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_BUFFER_BYTES ((size_t)256 * 1024)
#define PATH_BYTES        4096

/* A run that is read: the entry that comes next, and its body is what follows in the file. */
struct reader {
    FILE *file;
    bool has;
    struct sl_sorter_entry next;
    unsigned run;
};

struct sl_sorter {
    const char *folder;
    /* The chunk that is filled: entries, each followed by its body. */
    char *chunk;
    size_t used, room;
    char **entries; /* in `chunk` */
    size_t n, n_room;
    /* Runs are numbered as they are written; those from `first` to before `end` exist. */
    unsigned first, end;
    /* The merge that is going on. */
    struct reader readers[SL_SORTER_FAN];
    size_t n_readers;
    FILE *out; /* where it goes; NULL: to the caller, it is the last one */
    char *body;
    size_t body_room;
    bool is_merging;
};

static enum sl_status disk_failed(const struct sl_sorter *s, const char *what, struct sl_error *error)
{
    int err = errno ? errno : EIO;
    return sl_fail(error, SL_FATAL, sl_disk_code(err), "%s: cannot %s a temporary file: %s", s->folder, what,
                   strerror(err));
}

static FILE *open_run(const struct sl_sorter *s, unsigned run, const char *mode)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/run-%u", s->folder, run);
    FILE *file = fopen(path, mode);
    if (file)
        setvbuf(file, NULL, _IOFBF, FILE_BUFFER_BYTES);
    return file;
}

static void remove_run(const struct sl_sorter *s, unsigned run)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/run-%u", s->folder, run);
    unlink(path);
}

/* ---- order ---- */

bool sl_sorter_same_key(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    return memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

static int compare(const struct sl_sorter_entry *a, const struct sl_sorter_entry *b)
{
    int order = memcmp(a->key, b->key, sizeof(a->key));
    if (order == 0 && a->order_bytes != b->order_bytes)
        return a->order_bytes < b->order_bytes ? -1 : 1;
    return order ? order : memcmp(a->order, b->order, a->order_bytes);
}

/* In a chunk, entries are not aligned. */
static struct sl_sorter_entry entry_at(const char *p)
{
    struct sl_sorter_entry entry;
    memcpy(&entry, p, sizeof(entry));
    return entry;
}

static int compare_places(const void *x, const void *y)
{
    struct sl_sorter_entry a = entry_at(*(char *const *)x), b = entry_at(*(char *const *)y);
    return compare(&a, &b);
}

/* ---- chunks ---- */

struct sl_sorter *sl_sorter_open(const char *folder, size_t chunk_bytes)
{
    struct sl_sorter *s = calloc(1, sizeof(*s));
    if (!s)
        sl_die("out of memory: a sorter");
    s->folder = folder;
    s->room = chunk_bytes ? chunk_bytes : SL_SORTER_CHUNK_BYTES;
    s->chunk = malloc(s->room);
    if (!s->chunk)
        sl_die("out of memory: %zu bytes to sort in", s->room);
    return s;
}

static bool write_entry(FILE *file, struct sl_sorter_entry entry, const char *body)
{
    return fwrite(&entry, sizeof(entry), 1, file) == 1 &&
           (!entry.body_bytes || fwrite(body, entry.body_bytes, 1, file) == 1);
}

/* Without the bodies that a later entry of the chunk makes useless. */
static bool write_chunk(const struct sl_sorter *s, FILE *file)
{
    for (size_t i = 0; i < s->n; i++) {
        struct sl_sorter_entry entry = entry_at(s->entries[i]);
        struct sl_sorter_entry next = i + 1 < s->n ? entry_at(s->entries[i + 1]) : entry;
        if (i + 1 < s->n && sl_sorter_same_key(&entry, &next))
            entry.body_bytes = 0;
        if (!write_entry(file, entry, s->entries[i] + sizeof(entry)))
            return false;
    }
    return true;
}

static enum sl_status spill(struct sl_sorter *s, struct sl_error *error)
{
    if (s->n == 0)
        return SL_OK;
    qsort(s->entries, s->n, sizeof(*s->entries), compare_places);
    FILE *file = open_run(s, s->end, "wb");
    if (!file)
        return disk_failed(s, "create", error);
    s->end++;
    bool is_good = write_chunk(s, file);
    if (fclose(file) != 0 || !is_good)
        return disk_failed(s, "write", error);
    s->n = s->used = 0;
    return SL_OK;
}

enum sl_status sl_sorter_add(struct sl_sorter *s, const struct sl_sorter_entry *entry, struct sl_span body,
                             struct sl_error *error)
{
    struct sl_sorter_entry own = *entry;
    size_t bytes = sizeof(own) + body.len;
    if (bytes > s->room)
        return sl_fail(error, SL_REJECT, "TooLarge", "an item has %zu bytes; %zu can be sorted", body.len,
                       s->room - sizeof(own));
    if (bytes > s->room - s->used) {
        enum sl_status status = spill(s, error);
        if (status != SL_OK)
            return status;
    }
    own.body_bytes = (uint32_t)body.len;
    char *p = s->chunk + s->used;
    SL_PUSH(s->entries, s->n, s->n_room, "entries to sort") = p;
    memcpy(p, &own, sizeof(own));
    if (body.len)
        memcpy(p + sizeof(own), body.ptr, body.len);
    s->used += bytes;
    return SL_OK;
}

/* ---- merging ---- */

/* A run ends between two entries: one that ends within an entry was not written whole. */
static bool advance(struct reader *r)
{
    size_t n = fread(&r->next, 1, sizeof(r->next), r->file);
    r->has = n == sizeof(r->next);
    return r->has || (n == 0 && feof(r->file));
}

static enum sl_status begin_merge(struct sl_sorter *s, struct sl_error *error)
{
    unsigned n = s->end - s->first;
    bool is_last = n <= SL_SORTER_FAN;
    s->n_readers = 0;
    s->is_merging = true;
    for (unsigned i = 0; i < n && i < SL_SORTER_FAN; i++) {
        struct reader *r = &s->readers[i];
        *r = (struct reader){.file = open_run(s, s->first + i, "rb"), .run = s->first + i};
        s->n_readers += r->file != NULL;
        if (!r->file || !advance(r))
            return disk_failed(s, "read", error);
    }
    s->out = is_last ? NULL : open_run(s, s->end, "wb");
    if (!is_last && !s->out)
        return disk_failed(s, "create", error);
    s->end += !is_last;
    return SL_OK;
}

static void close_readers(struct sl_sorter *s)
{
    for (size_t i = 0; i < s->n_readers; i++) {
        fclose(s->readers[i].file);
        remove_run(s, s->readers[i].run);
    }
    s->n_readers = 0;
}

static enum sl_status end_merge(struct sl_sorter *s, struct sl_error *error)
{
    s->first += (unsigned)s->n_readers;
    close_readers(s);
    s->is_merging = false;
    FILE *out = s->out;
    s->out = NULL;
    return out && fclose(out) != 0 ? disk_failed(s, "write", error) : SL_OK;
}

static struct reader *least_of(struct sl_sorter *s)
{
    struct reader *least = NULL;
    for (size_t i = 0; i < s->n_readers; i++)
        if (s->readers[i].has && (!least || compare(&s->readers[i].next, &least->next) < 0))
            least = &s->readers[i];
    return least;
}

static enum sl_status read_body(struct sl_sorter *s, struct reader *r, uint32_t n, struct sl_error *error)
{
    s->body = sl_array_fit(s->body, n, &s->body_room, 1, "bytes of an item");
    return n && fread(s->body, n, 1, r->file) != 1 ? disk_failed(s, "read", error) : SL_OK;
}

enum sl_status sl_sorter_next(struct sl_sorter *s, struct sl_sorter_entry *entry, struct sl_span *body,
                              bool *has, struct sl_error *error)
{
    struct reader *r = least_of(s);
    *has = r != NULL;
    *body = sl_span(NULL, 0);
    if (!r)
        return SL_OK;
    *entry = r->next;
    enum sl_status status = read_body(s, r, entry->body_bytes, error);
    if (status == SL_OK && !advance(r))
        status = disk_failed(s, "read", error);
    const struct reader *next = status == SL_OK ? least_of(s) : NULL;
    if (next && sl_sorter_same_key(&next->next, entry))
        entry->body_bytes = 0;
    else if (entry->body_bytes)
        *body = sl_span(s->body, entry->body_bytes);
    return status;
}

/* Some entries of the merge that goes to a run. */
static enum sl_status merge_some(struct sl_sorter *s, size_t entries, struct sl_error *error)
{
    struct sl_sorter_entry entry;
    struct sl_span body;
    bool has = true;
    for (; entries > 0 && has; entries--) {
        enum sl_status status = sl_sorter_next(s, &entry, &body, &has, error);
        if (status != SL_OK)
            return status;
        if (has && !write_entry(s->out, entry, body.ptr))
            return disk_failed(s, "write", error);
    }
    return has ? SL_OK : end_merge(s, error);
}

enum sl_status sl_sorter_merge(struct sl_sorter *s, size_t entries, bool *is_ready, struct sl_error *error)
{
    enum sl_status status = spill(s, error);
    free(s->chunk);
    s->chunk = NULL;
    if (status == SL_OK && !s->is_merging)
        status = begin_merge(s, error);
    *is_ready = status == SL_OK && !s->out;
    return status == SL_OK && s->out ? merge_some(s, entries, error) : status;
}

void sl_sorter_close(struct sl_sorter *s)
{
    if (!s)
        return;
    close_readers(s);
    if (s->out)
        fclose(s->out);
    for (unsigned run = s->first; run < s->end; run++)
        remove_run(s, run);
    free(s->chunk);
    free(s->entries);
    free(s->body);
    free(s);
}
