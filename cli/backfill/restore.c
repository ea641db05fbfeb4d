/* Folds an archive for `sluice backfill --until`: its folder, its progress, what it prints. */
#include "cli/backfill/restore.h"

#include "base/disk.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/span.h"
#include "base/time.h"
#include "handlers/pipeline/route.h"
#include "data/restore/restore.h"
#include "data/restore/seal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS  60000
#define RETRY_MS 2000
#define STUCK_MS (15 * 60 * 1000)
#define SAY_MS   10000
#define BEGUN    "begun"
#define SEAL     "seal"

/* What the seal of a fold says: its objects, its text, the number of its items. */
#define SEAL_TEXT "%s\n%s\n%" PRIu64 "\n"

struct fold {
    struct sl_restore_job *job;
    struct sl_source *archive, *base;
    struct sl_restore *restore;
    char objects[SL_SEAL_BYTES]; /* as they are listed now */
    int64_t said_ms, moved_ms;
};

/* ---- the folder ---- */

/* The configuration's text belongs to the job: its targets do. */
static uint64_t config_digest(const char *path)
{
    char text[65536];
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(text, 1, sizeof(text), file) : 0;
    if (file)
        fclose(file);
    return sl_hash(sl_span(text, n));
}

/* All but the mark: whatever is folded again, it goes on into the same tables. */
static void remove_files(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[4096 + 256];
    while (dir && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, BEGUN) != 0)
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

/* "./archive" is another one in another folder. */
static const char *whole_path(struct sl_restore_job *job, const char *place)
{
    char path[PATH_MAX];
    const char *local = place && strncmp(place, "file:", 5) == 0 ? place + 5 : place;
    if (!place || strstr(place, "://") || !realpath(local, path))
        return place ? place : "";
    return sl_arena_copy(job->arena, sl_span_str(path));
}

/* The folder holds the table's values, and its name can be known before: it has to be of this user alone. */
static enum sl_status make_private(const char *folder, struct sl_error *error)
{
    struct stat info;
    if (mkdir(folder, 0700) == 0)
        return SL_OK;
    if (errno != EEXIST || lstat(folder, &info) != 0)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot create the folder %s: %s", folder,
                       strerror(errno));
    if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "NotPrivate",
        "%s: is there, and is no folder of this user alone (mode 0700), so others may have changed "
        "what is in it: remove it, or name another folder (--temp)",
        folder);
}

static enum sl_status open_folder(struct sl_restore_job *job, struct sl_error *error)
{
    const char *name =
        sl_arena_printf(job->arena, "%s\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%d\n%" PRIx64,
                        whole_path(job, job->archive), whole_path(job, job->export), job->temp, job->until_ms,
                        job->since_ms, job->any_gap, config_digest(job->config));
    if (strlen(job->temp) > 3500)
        return sl_fail(error, SL_REJECT, "Usage", "--temp: the path is longer than 3,500 bytes");
    job->folder =
        sl_arena_printf(job->arena, "%s/sluice-restore-%016" PRIx64, job->temp, sl_hash(sl_span_str(name)));
    job->result = sl_arena_printf(job->arena, "%s/" SL_RESTORE_RESULT, job->folder);
    enum sl_status status = sl_disk_make_folder(job->temp, error);
    return status == SL_OK ? make_private(job->folder, error) : status;
}

/* ---- the target ---- */

/* Before the backfill is open, nobody has left a route out. */
static bool takes_part(struct sl_route *route)
{
    struct sl_per_item facts;
    struct sl_error why = SL_NO_ERROR;
    return !route->is_left_out && sl_route_per_item(route, &facts, &why) != SL_OK &&
           strcmp(why.code, "NoGuard") == 0;
}

struct target {
    const struct sl_option_value *table;
    const char *route;
};

/* The tables that the routes that take part write to. Returns how many. */
static size_t find_targets(const struct sl_restore_job *job, const struct sl_pipeline *pipeline,
                           struct target **out)
{
    struct sl_buffer found;
    sl_buffer_init_in(&found, job->arena, SIZE_MAX);
    for (size_t i = 0; i < pipeline->n; i++) {
        struct sl_route *route = &pipeline->routes[i];
        bool is_in = takes_part(route);
        for (size_t k = 0; k < route->options.n && is_in; k++) {
            const struct target target = {&route->options.values[k], route->config->name};
            if (target.table->table)
                sl_buffer_add(&found, &target, sizeof(target));
        }
    }
    *out = (struct target *)(void *)found.ptr;
    return found.len / sizeof(struct target);
}

/* Whether the mark is there, and of these tables. */
static bool is_marked(const char *path, struct sl_span text)
{
    char have[4096];
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(have, 1, sizeof(have), file) : 0;
    if (file)
        fclose(file);
    return file && text.len <= sizeof(have) && sl_span_eq(sl_span(have, n), text);
}

static enum sl_status check_empty(const struct sl_restore_job *job, const struct target *target,
                                  struct sl_error *error)
{
    struct sl_table_port *table = target->table->table;
    const struct sl_call call = {.arena = job->arena,
                                 .deadline_ms = job->clock->now_ms(job->clock) + STEP_MS};
    struct sl_table_page page = {.n = 0};
    struct sl_table_scan scan = {.limit = 1, .is_consistent = true};
    if (!table->scan)
        return sl_fail(error, SL_REJECT, "NotEmpty",
                       "the table of the route %s cannot be scanned, so it is not known to be empty",
                       target->route);
    do {
        table->scan(table, &scan, 1, &page, &call);
        if (page.result.status != SL_OK)
            return sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        scan.after = page.next;
    } while (page.n == 0 && page.next.ptr);
    if (page.n == 0)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "NotEmpty",
                   "the table of the route %s is not empty: restore into a new table, then compare or switch",
                   target->route);
}

/* The mark says what the tables were when they were found empty. */
static enum sl_status check_tables(const struct sl_restore_job *job, const struct sl_pipeline *pipeline,
                                   bool marks, struct sl_error *error)
{
    struct target *targets;
    const char *mark = sl_arena_printf(job->arena, "%s/" BEGUN, job->folder);
    size_t n = find_targets(job, pipeline, &targets);
    struct sl_buffer text;
    sl_buffer_init_in(&text, job->arena, 4096);
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(&text, "%.*s\n", SL_ARG(targets[i].table->text));
    if (is_marked(mark, sl_buffer_span(&text)))
        return SL_OK;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < n && status == SL_OK; i++)
        status = check_empty(job, &targets[i], error);
    int err = status == SL_OK && marks ? sl_disk_replace_path(mark, sl_buffer_span(&text)) : 0;
    return err ? sl_fail(error, SL_FATAL, sl_disk_code(err), "cannot write %s: %s", mark, strerror(err))
               : status;
}

/* ---- folding ---- */

static enum sl_status open_sources(struct fold *f, struct sl_error *error)
{
    struct sl_restore_job *job = f->job;
    const struct sl_call call = {.arena = job->arena,
                                 .deadline_ms = job->clock->now_ms(job->clock) + 10 * STEP_MS};
    enum sl_status status = SL_OK;
    if (job->export) {
        const struct sl_source_export what = {.place = job->export, .verify_first = job->verify_first};
        status = sl_source_open_export(job->options, &what, &call, &f->base, error);
    }
    if (status == SL_OK)
        status = sl_source_open_archive(job->options, &(struct sl_source_archive){.place = job->archive},
                                        &call, &f->archive, error);
    if (status != SL_OK)
        return status;
    const struct sl_restore_options options = {.archive = f->archive,
                                               .base = f->base,
                                               .folder = job->folder,
                                               .until_ms = job->until_ms,
                                               .since_ms = job->since_ms,
                                               .any_gap = job->any_gap};
    return sl_restore_open(&options, &f->restore, error);
}

static void say_progress(struct fold *f)
{
    int64_t now = f->job->clock->now_ms(f->job->clock);
    const struct sl_restore_report *r = sl_restore_report(f->restore);
    if (f->job->is_quiet || now - f->said_ms < SAY_MS)
        return;
    f->said_ms = now;
    fprintf(stderr,
            "sluice backfill: restore: %" PRIu64 " items of the base, %" PRIu64 " changes, %" PRIu64
            " items folded\n",
            r->base_items, r->changes, r->items);
}

/* A source that failed for now is tried again. */
static enum sl_status wait_or_fail(struct fold *f, const struct sl_error *why, struct sl_error *error)
{
    int64_t now = f->job->clock->now_ms(f->job->clock);
    if (now - f->moved_ms > STUCK_MS)
        return sl_fail(error, SL_FATAL, why->code, "nothing was read for %d minutes: %s", STUCK_MS / 60000,
                       why->text);
    fprintf(stderr, "sluice backfill: restore: slows down: %s: %s\n", why->code, why->text);
    for (int ms = 0; ms < RETRY_MS && !*f->job->is_stopped; ms += 100)
        poll(NULL, 0, 100);
    return SL_OK;
}

static enum sl_status run(struct fold *f, struct sl_error *error)
{
    bool is_done = false;
    enum sl_status status = SL_OK;
    f->moved_ms = f->said_ms = f->job->clock->now_ms(f->job->clock);
    while (!is_done && status == SL_OK && !*f->job->is_stopped) {
        struct sl_error why = SL_NO_ERROR;
        int64_t now = f->job->clock->now_ms(f->job->clock);
        status = sl_restore_step(f->restore, now + STEP_MS, &is_done, &why);
        if (status == SL_RETRY)
            status = wait_or_fail(f, &why, error);
        else if (status == SL_OK)
            f->moved_ms = now;
        else
            (void)sl_fail(error, status, why.code, "%s", why.text);
        say_progress(f);
    }
    return is_done || status != SL_OK
               ? status
               : sl_fail(
                     error, SL_RETRY, "Stopped",
                     "stopped; nothing was written to the target, and the archive is read again next time");
}

static const char *time_text(int64_t ms, char out[SL_TIME_BYTES])
{
    sl_time_text(ms * 1000000, out);
    return out;
}

/* What was read, and what cannot be known of it. */
static void say_end(const struct fold *f)
{
    const struct sl_restore_report *r = sl_restore_report(f->restore);
    char first[SL_TIME_BYTES], last[SL_TIME_BYTES];
    fprintf(stderr,
            "sluice backfill: restore: %" PRIu64 " changes, %" PRIu64
            " of them at or after the moment, %" PRIu64 " older than the base, %" PRIu64 " doubles; %" PRIu64
            " items of the base\n",
            r->changes, r->after, r->before, r->doubles, r->base_items);
    fprintf(stderr, "sluice backfill: restore: the table had %" PRIu64 " items; %" PRIu64 " were removed\n",
            r->items, r->removed);
    if (r->changes)
        fprintf(stderr, "sluice backfill: restore: the archive's changes are from %s to %s\n",
                time_text(r->first_ms, first), time_text(r->last_ms, last));
    if (!f->base)
        fprintf(stderr,
                "sluice backfill: restore: without a base (--export) the result holds only items that "
                "changed\n");
    if (!r->after)
        fprintf(stderr,
                "sluice backfill: restore: the archive has no change at or after the moment: what it did "
                "not hold yet is missing\n");
    if (r->without_old_images)
        fprintf(stderr,
                "sluice backfill: restore: %" PRIu64
                " changes have no old image: changes that are missing before "
                "them cannot be noticed\n",
                r->without_old_images);
    if (r->gaps)
        fprintf(stderr,
                "sluice backfill: restore: --unsafe-order: changes are missing in %" PRIu64 " places\n",
                r->gaps);
    if (r->ties)
        fprintf(stderr,
                "sluice backfill: restore: --unsafe-order: of %" PRIu64
                " items one of two changes of the same time was taken\n",
                r->ties);
}

/* ---- a fold that is kept ---- */

static const char *path_of(const struct sl_restore_job *job, const char *name)
{
    return sl_arena_printf(job->arena, "%s/%s", job->folder, name);
}

static bool is_there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* Items were written. */
static bool is_begun(const struct sl_restore_job *job)
{
    return is_there(path_of(job, BEGUN));
}

static enum sl_status list_objects(struct fold *f, struct sl_error *error)
{
    struct sl_restore_job *job = f->job;
    const char *const places[] = {whole_path(job, job->archive), whole_path(job, job->export)};
    return sl_seal_objects(job->options->sinks, places, job->export ? 2 : 1, f->objects, error);
}

static enum sl_status seal(struct fold *f, struct sl_error *error)
{
    struct sl_restore_job *job = f->job;
    char text[SL_SEAL_BYTES];
    enum sl_status status = sl_seal_file(job->result, text, error);
    if (status != SL_OK)
        return status;
    job->items = sl_restore_report(f->restore)->items;
    job->digest = sl_arena_copy(job->arena, sl_span_str(text));
    const char *sealed = sl_arena_printf(job->arena, SEAL_TEXT, f->objects, text, job->items);
    int err = sl_disk_replace_path(path_of(job, SEAL), sl_span_str(sealed));
    return err ? sl_fail(error, SL_FATAL, sl_disk_code(err), "cannot write %s: %s", path_of(job, SEAL),
                         strerror(err))
               : SL_OK;
}

/* NULL: the fold that is there can be used. Once the writing has begun, it goes on with what it began: later
 * objects are of no matter to it. */
static const char *why_not_again(struct fold *f)
{
    struct sl_restore_job *job = f->job;
    char objects[SL_SEAL_BYTES] = "", text[SL_SEAL_BYTES] = "", now[SL_SEAL_BYTES];
    struct sl_error why = SL_NO_ERROR;
    FILE *file = fopen(path_of(job, SEAL), "rb");
    bool is_sealed = file && fscanf(file, "%64s %64s %" SCNu64, objects, text, &job->items) == 3;
    if (file)
        fclose(file);
    if (!is_sealed)
        return "was not made to its end";
    if (sl_seal_file(job->result, now, &why) != SL_OK || strcmp(now, text) != 0)
        return "was changed since";
    if (strcmp(objects, f->objects) != 0 && !is_begun(job))
        return "is of other objects than the archive and the export have now";
    job->digest = sl_arena_copy(job->arena, sl_span_str(text));
    return NULL;
}

static bool has_fold(struct fold *f)
{
    struct sl_restore_job *job = f->job;
    if (!is_there(job->result))
        return false;
    const char *why = why_not_again(f);
    if (why)
        fprintf(stderr, "sluice backfill: restore: %s %s; the archive is folded again\n", job->result, why);
    else
        fprintf(stderr, "sluice backfill: restore: the archive was folded before: %s\n", job->result);
    return !why;
}

/* ---- the job ---- */

static enum sl_status fold_again(struct fold *f, struct sl_error *error)
{
    remove_files(f->job->folder);
    enum sl_status status = open_sources(f, error);
    if (status == SL_OK)
        status = run(f, error);
    if (status == SL_OK)
        status = seal(f, error);
    if (status == SL_OK)
        say_end(f);
    sl_restore_close(f->restore);
    sl_source_close(f->archive);
    sl_source_close(f->base);
    return status;
}

/* All that is made here is for this user alone. */
enum sl_status sl_restore_job_fold(struct sl_restore_job *job, struct sl_error *error)
{
    struct fold f = {.job = job};
    mode_t before = umask(077);
    enum sl_status status = open_folder(job, error);
    if (status != SL_OK)
        job->folder = NULL; /* of somebody else */
    if (status == SL_OK && job->pipeline)
        status = check_tables(job, job->pipeline, false, error);
    if (status == SL_OK)
        status = list_objects(&f, error);
    if (status == SL_OK && !has_fold(&f))
        status = fold_again(&f, error);
    umask(before);
    job->is_empty = status == SL_OK && job->items == 0;
    if (status != SL_OK)
        sl_restore_job_refused(job);
    return status;
}

void sl_restore_job_refused(const struct sl_restore_job *job)
{
    if (!job->folder || is_begun(job))
        return;
    remove_files(job->folder);
    rmdir(job->folder);
}

bool sl_restore_job_is_kept(const struct sl_restore_job *job)
{
    return job->folder && is_there(job->result);
}

enum sl_status sl_restore_job_begin(const struct sl_restore_job *job, const struct sl_pipeline *pipeline,
                                    struct sl_error *error)
{
    return check_tables(job, pipeline, true, error);
}

void sl_restore_job_done(const struct sl_restore_job *job)
{
    remove_files(job->folder);
    unlink(sl_arena_printf(job->arena, "%s/" BEGUN, job->folder));
    rmdir(job->folder);
}
