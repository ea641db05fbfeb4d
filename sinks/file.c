#include "sinks/file.h"

#include "sinks/result.h"
#include "sinks/url.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* S3's limit, kept here too so that what works locally works there (S3 User Guide, "Naming objects"). */
#define KEY_BYTES 1024
#define PARTIAL   ".partial"

struct file_port {
    struct sl_object_port port;
    int root;    /* the folder */
    int partial; /* folder/.partial */
    unsigned serial;
    char *path; /* for messages */
};

enum sl_status sl_file_make_folder(const char *path, struct sl_error *error)
{
    char *work = strdup(path);
    if (!work)
        sl_die("out of memory");
    enum sl_status status = SL_OK;
    for (char *p = work + 1; status == SL_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(work, 0777) != 0 && errno != EEXIST)
            status = sl_fail(error, SL_FATAL, sl_errno_code(errno), "cannot make the folder %s: %s", work,
                             strerror(errno));
        *p = kept;
        if (kept == '\0')
            break;
    }
    free(work);
    return status;
}

/* A key that could leave the folder, or that a file system cannot hold, is refused before anything is
 * written. */
static const char *key_problem(struct sl_span key)
{
    if (key.len == 0 || key.len > KEY_BYTES)
        return key.len ? "is longer than 1024 bytes" : "is empty";
    size_t start = 0;
    for (size_t i = 0; i <= key.len; i++) {
        if (i < key.len && ((unsigned char)key.ptr[i] < 0x20 || key.ptr[i] == 0x7F))
            return "holds a control byte";
        if (i < key.len && key.ptr[i] != '/')
            continue;
        struct sl_span segment = sl_span(key.ptr + start, i - start);
        if (segment.len == 0 || sl_span_is(segment, ".") || sl_span_is(segment, "..") ||
            sl_span_is(segment, PARTIAL))
            return "has a segment that is empty, \".\", \"..\" or \".partial\"";
        start = i + 1;
    }
    return NULL;
}

int sl_write_all(int fd, struct sl_span bytes)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = write(fd, bytes.ptr + done, bytes.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        done += (size_t)n;
    }
    return 0;
}

/* The folders of `key` below the root, each synced into the one above it when it is new. Returns the last
 * one's descriptor, -1 and errno. */
static int open_folder(struct file_port *file, char *key, char **name)
{
    int at = dup(file->root);
    char *segment = key;
    for (char *slash; at >= 0 && (slash = strchr(segment, '/')); segment = slash + 1) {
        *slash = '\0';
        bool is_new = mkdirat(at, segment, 0777) == 0;
        int next = is_new && fsync(at) != 0
                       ? -1
                       : openat(at, segment, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int err = errno;
        close(at);
        errno = err;
        at = next;
        *slash = '/';
    }
    *name = segment;
    return at;
}

static int put_aside(struct file_port *file, struct sl_span body, char *name, size_t room)
{
    snprintf(name, room, "%ld-%u", (long)getpid(), file->serial++);
    int fd = openat(file->partial, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    /* Held while it is being written: sweep() takes what nobody holds for what a killed writer left. */
    flock(fd, LOCK_EX);
    int err = sl_write_all(fd, body);
    if (!err && fsync(fd) != 0)
        err = errno;
    if (close(fd) != 0 && !err)
        err = errno;
    return err;
}

static int put(struct file_port *file, const struct sl_object *object, char *key)
{
    char *name = NULL;
    int folder = open_folder(file, key, &name);
    if (folder < 0)
        return errno;
    int err = 0;
    char aside[64];
    if (!object->content_named || faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        err = put_aside(file, object->body, aside, sizeof(aside));
        if (!err && renameat(file->partial, aside, folder, name) != 0)
            err = errno;
        if (err)
            unlinkat(file->partial, aside, 0);
        if (!err && fsync(folder) != 0)
            err = errno;
    }
    close(folder);
    return err;
}

static void file_apply(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                       struct sl_result *results, const struct sl_call *call)
{
    struct file_port *file = (struct file_port *)port;
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){0};
        const char *problem = key_problem(objects[i].key);
        if (problem) {
            sl_result_fail(&results[i], call->arena, SL_REJECT, "InvalidKey", "object key %.*s %s",
                           (int)(objects[i].key.len < 200 ? objects[i].key.len : 200), objects[i].key.ptr,
                           problem);
            continue;
        }
        int err = put(file, &objects[i], sl_arena_copy(call->arena, objects[i].key));
        if (err)
            sl_result_fail(&results[i], call->arena, sl_errno_status(err), sl_errno_code(err),
                           "cannot write %s/%.*s: %s", file->path, SL_ARG(objects[i].key), strerror(err));
    }
}

/* Removes what killed writers left; a live writer holds the lock of its file. */
static void sweep(struct file_port *file)
{
    DIR *dir = fdopendir(dup(file->partial));
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        int fd = openat(file->partial, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(file->partial, entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

static void file_close(struct sl_object_port *port)
{
    struct file_port *file = (struct file_port *)port;
    if (!file)
        return;
    if (file->partial >= 0)
        close(file->partial);
    if (file->root >= 0)
        close(file->root);
    free(file->path);
    free(file);
}

static enum sl_status open_root(struct file_port *file, struct sl_error *error)
{
    if (sl_file_make_folder(file->path, error) != SL_OK)
        return SL_FATAL;
    file->root = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->root >= 0 && mkdirat(file->root, PARTIAL, 0777) != 0 && errno != EEXIST)
        return sl_fail(error, SL_FATAL, sl_errno_code(errno), "cannot write into the folder %s: %s",
                       file->path, strerror(errno));
    if (file->root >= 0)
        file->partial = openat(file->root, PARTIAL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file->partial < 0 || faccessat(file->partial, ".", W_OK, 0) != 0)
        return sl_fail(error, SL_FATAL, sl_errno_code(errno), "cannot write into the folder %s: %s",
                       file->path, strerror(errno));
    sweep(file);
    return SL_OK;
}

static enum sl_status parse(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                            struct sl_error *error)
{
    enum sl_status status = sl_url_parse(text, arena, url, error);
    if (status == SL_OK)
        status = sl_url_done(url, "none", error);
    if (status == SL_OK && (url->rest.len == 0 || url->has_slashes))
        status =
            sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: write it as file:folder", SL_ARG(text));
    return status;
}

enum sl_status sl_file_check(struct sl_span text, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(text, arena, &url, error);
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_file_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_object_port **out,
                            struct sl_error *error)
{
    (void)sinks;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(url_text, arena, &url, error);
    struct file_port *file = calloc(1, sizeof(*file));
    if (!file)
        sl_die("out of memory");
    *file = (struct file_port){
        .port = {.size = sizeof(file->port),
                 .max_body_bytes = SIZE_MAX,
                 .apply = file_apply,
                 .close = file_close},
        .root = -1,
        .partial = -1,
        .path = strndup(url.rest.ptr ? url.rest.ptr : "", url.rest.len),
    };
    if (status == SL_OK)
        status = open_root(file, error);
    sl_arena_destroy(arena);
    if (status != SL_OK) {
        file_close(&file->port);
        return status;
    }
    *out = &file->port;
    return SL_OK;
}
