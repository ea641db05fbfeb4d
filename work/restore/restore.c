/* A restore, step by step: the base and the archive go to the sorter, and come out as each item's newest
 * state. */
#include "work/restore/restore_private.h"

#include "base/disk.h"
#include "base/error.h"
#include "base/time.h"
#include "streams/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE_BYTES      ((size_t)1024 * 1024)
#define TEXT_BYTES       (2 * SL_SOURCE_RECORD_BYTES)
#define ENTRIES          20000 /* of a step */
#define OUT_BUFFER_BYTES ((size_t)1024 * 1024)
#define ASIDE            SL_RESTORE_RESULT ".new"
#define PATH_BYTES       4096

/* ---- opening ---- */

static const char *time_text(int64_t ms, char out[SL_TIME_BYTES])
{
    sl_time_text(ms * 1000000, out);
    return out;
}

static enum sl_status check_times(struct sl_restore *r, struct sl_error *error)
{
    char base[SL_TIME_BYTES], until[SL_TIME_BYTES];
    int64_t until_ms = r->options.until_ms;
    if (until_ms <= 0 || until_ms % 1000)
        return sl_fail(error, SL_REJECT, "InvalidTime",
                       "a restore ends at a whole second: changes are known to the second");
    if (!r->options.base)
        return SL_OK;
    r->base_ms = sl_source_facts(r->options.base)->time_ms;
    if (!r->base_ms)
        return sl_fail(error, SL_REJECT, "NoTime", "%s: does not say at which time it shows the table",
                       sl_source_facts(r->options.base)->name);
    if (r->base_ms > until_ms)
        return sl_fail(error, SL_REJECT, "BaseTooNew",
                       "%s: shows the table as it was at %s, which is after %s: take an older export",
                       sl_source_facts(r->options.base)->name, time_text(r->base_ms, base),
                       time_text(until_ms, until));
    return SL_OK;
}

static enum sl_status open_result(struct sl_restore *r, struct sl_error *error)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/" ASIDE, r->options.folder);
    r->out = fopen(path, "wb");
    if (!r->out)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot create %s: %s", path, strerror(errno));
    setvbuf(r->out, NULL, _IOFBF, OUT_BUFFER_BYTES);
    return SL_OK;
}

enum sl_status sl_restore_open(const struct sl_restore_options *options, struct sl_restore **out,
                               struct sl_error *error)
{
    struct sl_restore *r = calloc(1, sizeof(*r));
    if (!r)
        sl_die("out of memory: a restore");
    r->options = *options;
    r->phase = options->base ? SL_RESTORE_BASE : SL_RESTORE_ARCHIVE;
    r->arena = sl_arena_new(256 * 1024);
    sl_sha256_init(&r->sha);
    sl_buffer_init(&r->text, TEXT_BYTES);
    *out = NULL;
    enum sl_status status = check_times(r, error);
    if (status == SL_OK)
        status = open_result(r, error);
    if (status != SL_OK) {
        sl_restore_close(r);
        return status;
    }
    r->sorter = sl_sorter_open(r->options.folder, options->chunk_bytes);
    *out = r;
    return SL_OK;
}

void sl_restore_close(struct sl_restore *r)
{
    if (!r)
        return;
    if (r->out)
        fclose(r->out);
    sl_sorter_close(r->sorter);
    sl_buffer_clean_up(&r->text);
    sl_sha256_clean_up(&r->sha);
    sl_arena_destroy(r->arena);
    free(r);
}

const struct sl_restore_report *sl_restore_report(const struct sl_restore *r)
{
    return &r->report;
}

/* ---- reading ---- */

/* After the last change of the archive: it has to begin at the base, or before it. */
static enum sl_status check_beginning(const struct sl_restore *r, struct sl_error *error)
{
    char base[SL_TIME_BYTES], since[SL_TIME_BYTES];
    int64_t since_ms = r->options.since_ms ? r->options.since_ms : r->report.first_ms;
    if (!r->base_ms || r->options.any_gap || (since_ms && since_ms <= r->base_ms))
        return SL_OK;
    if (!since_ms)
        return sl_fail(
            error, SL_REJECT, "ArchiveTooNew",
            "%s: holds no change, so it is not known that it begins before the base, %s; if it does, "
            "say since when it holds every change (--consumer-since)",
            sl_source_facts(r->options.archive)->name, time_text(r->base_ms, base));
    return sl_fail(
        error, SL_REJECT, "ArchiveTooNew",
        "%s: begins at %s, and the base shows the table as it was at %s: changes between them may be "
        "missing. Take a newer export; or, if the archive holds every change since an earlier time, "
        "say so (--consumer-since)",
        sl_source_facts(r->options.archive)->name, time_text(since_ms, since), time_text(r->base_ms, base));
}

static enum sl_status read_piece(struct sl_restore *r, int64_t deadline_ms, struct sl_error *error)
{
    bool is_base = r->phase == SL_RESTORE_BASE;
    struct sl_source_piece piece;
    sl_arena_reset(r->arena);
    const struct sl_call call = {.arena = r->arena, .deadline_ms = deadline_ms};
    size_t bytes = r->options.piece_bytes ? r->options.piece_bytes : PIECE_BYTES;
    enum sl_status status =
        sl_source_pull(is_base ? r->options.base : r->options.archive, bytes, &call, &piece, error);
    if (status != SL_OK)
        return status;
    for (size_t i = 0; i < piece.batch.n && status == SL_OK; i++)
        status = sl_restore_take(r, sl_batch_record(&piece.batch, i), is_base, error);
    if (status != SL_OK || !piece.is_last)
        return status;
    r->phase = is_base ? SL_RESTORE_ARCHIVE : SL_RESTORE_MERGE;
    return is_base ? SL_OK : check_beginning(r, error);
}

/* ---- the result ---- */

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return result;
}

/* Whole or not at all. */
static enum sl_status end(struct sl_restore *r, struct sl_error *error)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    FILE *out = r->out;
    r->out = NULL;
    snprintf(from, sizeof(from), "%s/" ASIDE, r->options.folder);
    snprintf(to, sizeof(to), "%s/" SL_RESTORE_RESULT, r->options.folder);
    bool is_good = fflush(out) == 0 && fsync(fileno(out)) == 0;
    is_good = fclose(out) == 0 && is_good && rename(from, to) == 0 && sync_folder(r->options.folder) == 0;
    if (!is_good)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot write %s: %s", to, strerror(errno));
    r->phase = SL_RESTORE_DONE;
    return SL_OK;
}

enum sl_status sl_restore_step(struct sl_restore *r, int64_t deadline_ms, bool *is_done,
                               struct sl_error *error)
{
    bool is_over = false;
    enum sl_status status = SL_OK;
    switch (r->phase) {
    case SL_RESTORE_BASE:
    case SL_RESTORE_ARCHIVE:
        status = read_piece(r, deadline_ms, error);
        break;
    case SL_RESTORE_MERGE:
        status = sl_sorter_merge(r->sorter, ENTRIES, &is_over, error);
        r->phase = is_over ? SL_RESTORE_FOLD : SL_RESTORE_MERGE;
        break;
    case SL_RESTORE_FOLD:
        status = sl_restore_fold(r, ENTRIES, &is_over, error);
        if (status == SL_OK && is_over)
            status = end(r, error);
        break;
    case SL_RESTORE_DONE:
        break;
    }
    *is_done = r->phase == SL_RESTORE_DONE;
    return status;
}
