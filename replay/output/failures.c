/* Writes the failure records of a simulated mapping. */
#include "replay/output/failures.h"

#include "base/disk.h"

#include <errno.h>
#include <string.h>

#define LINE_BYTES                                                                                           \
    (256u * 1024 * 1024) /* an event of 6 MB as a string, each byte escaped to six at worst                  \
                          */

enum sl_status sl_failures_open(struct sl_failures *f, const char *target,
                                const struct sl_esm_settings *settings, struct sl_error *error)
{
    *f = (struct sl_failures){.settings = settings, .target = target};
    sl_buffer_init(&f->line, LINE_BYTES);
    sl_buffer_init(&f->payload, LINE_BYTES);
    if (!target || sl_span_ends(sl_span_str(target), SL_LIT("/")))
        return SL_OK;
    f->file = fopen(target, "we");
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
        ok = fwrite(f->line.ptr, 1, f->line.len, f->file) == f->line.len;
    }
    f->has_failed |= !ok;
}

void sl_failures_close(struct sl_failures *f)
{
    if (f->file && (fclose(f->file) != 0 || f->has_failed))
        fprintf(stderr, "sluice: --on-failure %s is incomplete: %s\n", f->target, strerror(errno));
    f->file = NULL;
    sl_buffer_clean_up(&f->line);
    sl_buffer_clean_up(&f->payload);
}
