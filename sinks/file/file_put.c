/* Objects are written aside, synced, and renamed (sl_disk_replace). */
#include "base/arena.h"
#include "base/disk.h"
#include "sinks/file/file_private.h"
#include "sinks/result.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folders of `key` below the root, each synced into the one above it when it is new. Returns the last
 * one's descriptor, -1 and errno. */
static int open_folder(struct sl_file *file, char *key, char **name)
{
    int at = dup(file->root);
    char *segment = key;
    for (char *slash; at >= 0 && (slash = strchr(segment, '/')); segment = slash + 1) {
        *slash = '\0';
        int made = mkdirat(at, segment, 0777), why = errno;
        bool is_lost = made == 0 && fsync(at) != 0;
        int next = is_lost ? -1 : openat(at, segment, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int err =
            next < 0 && made != 0 && errno == ENOENT ? why : errno; /* (NFS refuses what is there, too) */
        close(at);
        errno = err;
        at = next;
        *slash = '/';
    }
    *name = segment;
    return at;
}

static int put(struct sl_file *file, const struct sl_object *object, char *key)
{
    char *name = NULL;
    int folder = open_folder(file, key, &name);
    if (folder < 0)
        return errno;
    int err = 0;
    if (!object->content_named || faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        err = sl_disk_replace(file->partial, folder, name, object->body);
    else if (fsync(folder) != 0) /* whoever wrote it may not have got as far as this */
        err = errno;
    close(folder);
    return err;
}

void sl_file_put(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                 struct sl_result *results, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        char digest[SL_SHA256_HEX];
        if (!sl_file_key_is_good(file, objects[i].key, &results[i], call->arena))
            continue;
        int err = put(file, &objects[i], sl_arena_copy(call->arena, objects[i].key));
        if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "%s: cannot write the object whose key has the SHA-256 %.12s...: %s", file->path,
                           sl_file_digest(objects[i].key, digest), strerror(err));
    }
}
