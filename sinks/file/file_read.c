/* Objects are read in ranges: what open() finds stays the same object while it is read. */
#include "base/arena.h"
#include "base/disk.h"
#include "sinks/file/file_private.h"
#include "sinks/result.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int sl_file_folder(const struct sl_file *file, char *key, char **name)
{
    int at = dup(file->root);
    char *segment = key;
    for (char *slash; at >= 0 && (slash = strchr(segment, '/')); segment = slash + 1) {
        *slash = '\0';
        int next = openat(at, segment, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = errno;
        close(at);
        errno = err;
        at = next;
        *slash = '/';
    }
    *name = segment;
    return at;
}

static int open_object(const struct sl_file *file, char *key)
{
    char *name;
    int at = sl_file_folder(file, key, &name);
    if (at < 0)
        return -1;
    /* Without O_NONBLOCK a pipe of that name would wait for its writer. */
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = errno;
    close(at);
    errno = err;
    return fd;
}

/* Returns 0 or an errno. A file that became shorter while it is read is an I/O error. */
static int read_range(int fd, uint64_t from, char *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, out + done, n - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        done += (size_t)got;
    }
    return 0;
}

static void refuse(struct sl_object_piece *piece, const struct sl_call *call, const char *code,
                   const char *format, const char *path, struct sl_span key)
{
    char digest[SL_SHA256_HEX];
    *piece = (struct sl_object_piece){.bytes = {NULL, 0}};
    sl_result_fail(&piece->result, call->arena, SL_REJECT, code,
                   "%s: the object whose key has the SHA-256 %.12s... %s", path, sl_file_digest(key, digest),
                   format);
}

static int read_open(int fd, const struct sl_object_read *read, struct sl_object_piece *piece,
                     const struct sl_call *call)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return errno;
    if (!S_ISREG(info.st_mode))
        return ENOENT;
    uint64_t size = (uint64_t)info.st_size, left = read->from < size ? size - read->from : 0;
    size_t n = left < read->max_bytes ? (size_t)left : read->max_bytes;
    char *bytes = sl_arena_alloc(call->arena, n + 1);
    piece->etag = sl_file_etag(&info, call->arena);
    piece->object_bytes = size;
    piece->bytes = sl_span(bytes, n);
    if (read->etag.ptr && !sl_span_eq(read->etag, piece->etag))
        return ESTALE;
    return read_range(fd, read->from, bytes, n);
}

static void read_one(struct sl_file *file, const struct sl_object_read *read, struct sl_object_piece *piece,
                     const struct sl_call *call)
{
    int fd = open_object(file, sl_arena_copy(call->arena, read->key));
    int err = fd < 0 ? errno : read_open(fd, read, piece, call);
    char digest[SL_SHA256_HEX];
    if (fd >= 0)
        close(fd);
    if (err == ENOENT || err == ENOTDIR || err == ELOOP || err == EISDIR || err == ENXIO)
        refuse(piece, call, "NoSuchKey", "does not exist", file->path, read->key);
    else if (err == ESTALE)
        refuse(piece, call, "PreconditionFailed", "was replaced meanwhile", file->path, read->key);
    else if (err) {
        *piece = (struct sl_object_piece){.bytes = {NULL, 0}};
        sl_result_fail(&piece->result, call->arena, sl_disk_status(err), sl_disk_code(err),
                       "%s: cannot read the object whose key has the SHA-256 %.12s...: %s", file->path,
                       sl_file_digest(read->key, digest), strerror(err));
    }
}

void sl_file_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                  struct sl_object_piece *pieces, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    for (size_t i = 0; i < n; i++) {
        struct sl_result *result = &pieces[i].result;
        pieces[i] = (struct sl_object_piece){.result = {.status = SL_OK}};
        if (!sl_file_key_is_good(file, reads[i].key, result, call->arena))
            continue;
        if (reads[i].max_bytes > 0 && reads[i].from + (reads[i].max_bytes - 1) >= reads[i].from) {
            read_one(file, &reads[i], &pieces[i], call);
            continue;
        }
        sl_result_fail(result, call->arena, SL_REJECT, "InvalidArgument",
                       "%s: the range that was asked for is not one", file->path);
        result->not_sent = true;
    }
}
