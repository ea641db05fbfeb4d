/* Writes a file without a name, and maps it. */
#include "live/source/spool.h"

#include "base/buffer.h"
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct sl_spool {
    int fd, err;
    const char *folder;
    struct sl_buffer block; /* not written yet */
    uint64_t written;
    void *map;
    size_t map_bytes;
};

/* /tmp is memory on many machines, and so comes last. */
static int open_unnamed(const char **folder)
{
    const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int fd = -1;
    for (size_t i = 0; i < 3 && fd < 0; i++) {
        *folder = folders[i];
        if (!folders[i] || !folders[i][0])
            continue;
        fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            break;
        /* Not every file system can make one without a name. */
        char path[4096];
        int n = snprintf(path, sizeof(path), "%s/sluice-XXXXXX", folders[i]);
        fd = n < (int)sizeof(path) ? mkostemp(path, O_CLOEXEC) : -1;
        if (fd >= 0)
            unlink(path);
        if (i == 0)
            break; /* the user's choice holds */
    }
    return fd;
}

static void clean_up(void *arg)
{
    struct sl_spool *spool = arg;
    if (spool->map)
        munmap(spool->map, spool->map_bytes);
    if (spool->fd >= 0)
        close(spool->fd);
    sl_buffer_clean_up(&spool->block);
}

struct sl_spool *sl_spool_new(struct sl_arena *arena)
{
    struct sl_spool *spool = sl_arena_zalloc(arena, sizeof(*spool));
    spool->fd = -1;
    spool->folder = "";
    sl_buffer_init(&spool->block, SL_SPOOL_BYTES);
    sl_arena_defer(arena, clean_up, spool);
    return spool;
}

static void write_out(struct sl_spool *spool, struct sl_span bytes)
{
    if (spool->fd < 0 && !spool->err) {
        spool->fd = open_unnamed(&spool->folder);
        spool->err = spool->fd < 0 ? errno : 0;
    }
    if (!spool->err)
        spool->err = sl_disk_write(spool->fd, bytes);
    spool->written += bytes.len;
}

static void flush(struct sl_spool *spool)
{
    write_out(spool, sl_buffer_span(&spool->block));
    sl_buffer_reset(&spool->block);
}

void sl_spool_add(struct sl_spool *spool, struct sl_span bytes)
{
    if (spool->block.len + bytes.len > SL_SPOOL_BYTES)
        flush(spool);
    if (bytes.len > SL_SPOOL_BYTES)
        write_out(spool, bytes);
    else
        sl_buffer_add_span(&spool->block, bytes);
}

uint64_t sl_spool_bytes(const struct sl_spool *spool)
{
    return spool->written + spool->block.len;
}

static enum sl_status cannot_keep(const struct sl_spool *spool, struct sl_error *error)
{
    return sl_fail(
        error, SL_FATAL, sl_disk_code(spool->err),
        "the temporary file of %llu bytes cannot be kept: %s; name a folder with more room with TMPDIR",
        (unsigned long long)spool->written, strerror(spool->err));
}

enum sl_status sl_spool_file(struct sl_spool *spool, int *out, struct sl_error *error)
{
    flush(spool);
    *out = spool->fd;
    return spool->err ? cannot_keep(spool, error) : SL_OK;
}

enum sl_status sl_spool_done(struct sl_spool *spool, struct sl_span *out, struct sl_error *error)
{
    *out = sl_span(spool->block.len ? spool->block.ptr : "", spool->block.len);
    if (spool->fd < 0 && !spool->err)
        return SL_OK;
    flush(spool);
    if (spool->err || spool->written == 0)
        return spool->err ? cannot_keep(spool, error) : SL_OK;
    void *map = mmap(NULL, (size_t)spool->written, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (map == MAP_FAILED) {
        spool->err = errno;
        return cannot_keep(spool, error);
    }
    spool->map = map;
    spool->map_bytes = (size_t)spool->written;
    *out = sl_span(map, spool->map_bytes);
    return SL_OK;
}

void sl_spool_release(const struct sl_spool *spool)
{
    if (spool->map)
        (void)madvise(spool->map, spool->map_bytes, MADV_DONTNEED);
}
