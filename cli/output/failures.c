/* Writes the failure records of a simulated mapping. */
#include "cli/output/failures.h"

#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_BYTES                                                                                           \
    (256u * 1024 * 1024) /* an event of 6 MB as a string, each byte escaped to six at worst                  \
                          */

static bool has_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir)) &&
           (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) {
    }
    if (dir)
        closedir(dir);
    return entry != NULL;
}

/* Whether there is something that a new run would write over. Devices and pipes have nothing to lose. */
static bool is_used(const char *target, bool is_folder)
{
    struct stat st;
    if (is_folder)
        return has_entries(target);
    return stat(target, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

enum sl_status sl_failures_open(struct sl_failures *f, const struct sl_failures_target *to,
                                const struct sl_esm_settings *settings, struct sl_error *error)
{
    const char *target = to->path;
    bool is_folder = target && sl_span_ends(sl_span_str(target), SL_LIT("/"));
    *f = (struct sl_failures){.settings = settings, .target = target};
    sl_buffer_init(&f->line, LINE_BYTES);
    sl_buffer_init(&f->payload, LINE_BYTES);
    if (target && to->mode == SL_FAILURES_NEW && is_used(target, is_folder))
        return sl_fail(error, SL_REJECT, "AlreadyThere",
                       "--on-failure %s: has failure records already: name another %s, or write over it with "
                       "--overwrite",
                       target, is_folder ? "folder" : "file");
    if (!target || is_folder)
        return SL_OK;
    f->file = fopen(target, to->mode == SL_FAILURES_APPEND ? "ae" : "we");
    if (!f->file)
        return sl_fail(error, SL_REJECT, "CannotWrite", "--on-failure %s: cannot be written: %s", target,
                       strerror(errno));
    return SL_OK;
}

static bool write_object(struct sl_failures *f, const struct sl_esm_discard *discard)
{
    struct sl_buffer path;
    sl_buffer_init(&path, 4096);
    sl_buffer_add_str(&path, f->target);
    sl_esm_failure_key(f->settings, discard, &path);
    sl_buffer_add_char(&path, '\0');
    FILE *file = sl_disk_make_parent(path.ptr, NULL) == SL_OK ? fopen(path.ptr, "we") : NULL;
    bool ok = file && fwrite(f->line.ptr, 1, f->line.len, file) == f->line.len;
    if (file)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        fprintf(stderr, "sluice: --on-failure: %s cannot be written: %s\n", path.ptr, strerror(errno));
    sl_buffer_clean_up(&path);
    return ok;
}

void sl_failures_add(struct sl_failures *f, const struct sl_esm_discard *discard)
{
    if (!f->target || discard->condition == SL_ESM_TRIMMED)
        return;
    sl_buffer_reset(&f->line);
    sl_buffer_reset(&f->payload);
    bool ok;
    if (!f->file) {
        sl_esm_event_json(discard->records, discard->n, &f->payload);
        sl_esm_failure_json(f->settings, discard, sl_buffer_span(&f->payload), &f->line);
        ok = write_object(f, discard);
    } else {
        sl_esm_failure_json(f->settings, discard, sl_span(NULL, 0), &f->line);
        sl_buffer_add_char(&f->line, '\n');
        /* (At once: it may be all that is left of a change.) */
        ok = fwrite(f->line.ptr, 1, f->line.len, f->file) == f->line.len && fflush(f->file) == 0;
    }
    if (!ok && !f->failure)
        f->failure = errno;
}

bool sl_failures_close(struct sl_failures *f)
{
    if (f->file && fclose(f->file) != 0 && !f->failure)
        f->failure = errno;
    if (f->file && f->failure)
        fprintf(stderr, "sluice: --on-failure %s is incomplete: %s\n", f->target, strerror(f->failure));
    f->file = NULL;
    sl_buffer_clean_up(&f->line);
    sl_buffer_clean_up(&f->payload);
    return !f->failure;
}
