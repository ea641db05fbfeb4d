/* Objects as files: written aside, synced, renamed (sl_disk_replace). */
#include "sinks/file.h"

#include "aws/sha256.h"
#include "base/disk.h"
#include "base/url.h"
#include "sinks/object.h"
#include "sinks/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTIAL ".partial"

struct file_port {
    struct sl_object_port port;
    int root;    /* the folder */
    int partial; /* folder/.partial: files that are being written */
    char *path;  /* for messages */
};

/* Objects do not go into the folder of files that are being written. */
static bool has_partial(struct sl_span key)
{
    for (size_t begin = 0, i = 0; i <= key.len; i++)
        if (i == key.len || key.ptr[i] == '/') {
            if (sl_span_is(sl_span(key.ptr + begin, i - begin), PARTIAL))
                return true;
            begin = i + 1;
        }
    return false;
}

static const char *key_problem(struct sl_span key)
{
    const char *problem = sl_object_key_problem(key);
    return !problem && has_partial(key) ? "has a segment \"" PARTIAL "\"" : problem;
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

static int put(struct file_port *file, const struct sl_object *object, char *key)
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

/* A key holds an item's values: texts name it by its digest. */
static const char *digest_of(struct sl_span key, char out[SL_SHA256_HEX])
{
    struct sl_sha256 sha;
    unsigned char digest[SL_SHA256_BYTES];
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, &key, 1, digest);
    sl_sha256_hex(digest, out);
    sl_sha256_clean_up(&sha);
    return out;
}

static void file_apply(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                       struct sl_result *results, const struct sl_call *call)
{
    struct file_port *file = (struct file_port *)port;
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        char digest[SL_SHA256_HEX];
        const char *problem = key_problem(objects[i].key);
        if (problem) {
            sl_result_fail(&results[i], call->arena, SL_REJECT, "InvalidKey", "%s: the object key %s",
                           file->path, problem);
            continue;
        }
        int err = put(file, &objects[i], sl_arena_copy(call->arena, objects[i].key));
        if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "%s: cannot write the object whose key has the SHA-256 %.12s...: %s", file->path,
                           digest_of(objects[i].key, digest), strerror(err));
    }
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
    if (sl_disk_make_folder(file->path, error) != SL_OK)
        return SL_FATAL;
    file->root = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->root >= 0 && mkdirat(file->root, PARTIAL, 0777) != 0 && errno != EEXIST)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot write to the folder %s: %s", file->path,
                       strerror(errno));
    if (file->root >= 0)
        file->partial = openat(file->root, PARTIAL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file->partial < 0 || faccessat(file->partial, ".", W_OK, 0) != 0)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot write to the folder %s: %s", file->path,
                       strerror(errno));
    sl_disk_sweep(file->partial, "");
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
