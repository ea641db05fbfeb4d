/* Writes the page to its file. */
#include "cli/output/report/picture_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
/* All rows and losses with their longest texts. */
#define PAGE_BYTES (256u * 1024 * 1024)

/* A device, a pipe or a link is written directly: a rename would replace it. */
static bool is_file(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) != 0 || S_ISREG(facts.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static void aside_name(const char *path, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s%s", path, is_file(path) ? ".part" : "");
}

bool sl_picture_can_write(const char *path)
{
    char aside[PATH_BYTES];
    if (is_folder(path)) {
        errno = EISDIR;
        return false;
    }
    if (!is_file(path))
        return access(path, W_OK) == 0;
    aside_name(path, aside);
    /* Nothing stays while the replay runs: whoever ends it leaves no file behind. */
    FILE *file = fopen(aside, "we");
    if (file)
        fclose(file);
    return file && unlink(aside) == 0;
}

static bool write_file(const char *path, struct sl_span text)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(text.ptr, 1, text.len, file) == text.len;
    if (file)
        ok = fclose(file) == 0 && ok;
    return ok;
}

enum sl_status sl_picture_write(const struct sl_picture *picture, const char *path,
                                const struct sl_picture_run *run, const struct sl_run_summary *summary,
                                struct sl_error *error)
{
    struct sl_buffer b;
    char aside[PATH_BYTES];
    sl_buffer_init(&b, PAGE_BYTES);
    sl_page_write(&b, picture, run, summary);
    aside_name(path, aside);
    errno = EFBIG;
    bool ok = !b.failed && write_file(aside, sl_buffer_span(&b));
    ok = ok && (strcmp(aside, path) == 0 || rename(aside, path) == 0);
    if (!ok)
        sl_fail(error, SL_REJECT, "CannotWrite", "--report %s: cannot be written: %s", path, strerror(errno));
    if (!ok && strcmp(aside, path) != 0)
        unlink(aside);
    sl_buffer_clean_up(&b);
    return ok ? SL_OK : SL_REJECT;
}
