/* Objects are removed: the file at the key, if it still is the one that was read. */
#include "base/arena.h"
#include "base/disk.h"
#include "sinks/file/file_private.h"
#include "sinks/result.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_gone(int err)
{
    return err == ENOENT || err == ENOTDIR || err == ELOOP;
}

/* Returns 0 or an errno; ESTALE: another object is there. The folder is synced, so that a crash does not
 * bring the object back. */
static int remove_from(int folder, const char *name, const struct sl_object_removal *removal,
                       struct sl_arena *arena)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (!S_ISREG(info.st_mode))
        return ENOENT;
    if (removal->etag.ptr && !sl_span_eq(removal->etag, sl_file_etag(&info, arena)))
        return ESTALE;
    return unlinkat(folder, name, 0) != 0 || fsync(folder) != 0 ? errno : 0;
}

static int remove_one(const struct sl_file *file, const struct sl_object_removal *removal,
                      struct sl_arena *arena)
{
    char *name;
    int folder = sl_file_folder(file, sl_arena_copy(arena, removal->key), &name);
    int err = folder < 0 ? errno : remove_from(folder, name, removal, arena);
    if (folder >= 0)
        close(folder);
    return is_gone(err) ? 0 : err;
}

void sl_file_remove(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                    struct sl_result *results, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    char digest[SL_SHA256_HEX];
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        if (!sl_file_key_is_good(file, removals[i].key, &results[i], call->arena))
            continue;
        int err = remove_one(file, &removals[i], call->arena);
        if (err == ESTALE)
            sl_result_fail(&results[i], call->arena, SL_REJECT, "PreconditionFailed",
                           "%s: the object whose key has the SHA-256 %.12s... was replaced meanwhile",
                           file->path, sl_file_digest(removals[i].key, digest));
        else if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "%s: cannot remove the object whose key has the SHA-256 %.12s...: %s", file->path,
                           sl_file_digest(removals[i].key, digest), strerror(err));
    }
}
