/* Objects as files: opens the folder. */
#include "sinks/file.h"

#include "base/disk.h"
#include "base/url.h"
#include "sinks/file/file_private.h"
#include "sinks/result.h"
#include "sinks/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- keys ---- */

/* Objects do not go into the folder of files that are being written. */
static bool has_partial(struct sl_span key)
{
    for (size_t begin = 0, i = 0; i <= key.len; i++)
        if (i == key.len || key.ptr[i] == '/') {
            if (sl_span_is(sl_span(key.ptr + begin, i - begin), SL_FILE_PARTIAL))
                return true;
            begin = i + 1;
        }
    return false;
}

bool sl_file_key_is_good(const struct sl_file *file, struct sl_span key, struct sl_result *result,
                         struct sl_arena *arena)
{
    const char *problem = sl_object_key_problem(key);
    if (!problem && has_partial(key))
        problem = "has a segment \"" SL_FILE_PARTIAL "\"";
    if (!problem)
        return true;
    sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key %s", file->path, problem);
    result->not_sent = true;
    return false;
}

const char *sl_file_digest(struct sl_span key, char out[SL_SHA256_HEX])
{
    struct sl_sha256 sha;
    unsigned char digest[SL_SHA256_BYTES];
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, &key, 1, digest);
    sl_sha256_hex(digest, out);
    sl_sha256_clean_up(&sha);
    return out;
}

struct sl_span sl_file_etag(const struct stat *info, struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(
        arena, "%llx-%llx-%llx.%09lx", (unsigned long long)info->st_ino, (unsigned long long)info->st_size,
        (unsigned long long)info->st_mtim.tv_sec, (unsigned long)info->st_mtim.tv_nsec));
}

/* ---- opening ---- */

static void file_close(struct sl_object_port *port)
{
    struct sl_file *file = (struct sl_file *)port;
    if (!file)
        return;
    if (file->partial >= 0)
        close(file->partial);
    if (file->root >= 0)
        close(file->root);
    free(file->path);
    free(file);
}

static enum sl_status open_root(struct sl_file *file, struct sl_error *error)
{
    if (sl_disk_make_folder(file->path, error) != SL_OK)
        return SL_FATAL;
    file->root = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->root >= 0 && mkdirat(file->root, SL_FILE_PARTIAL, 0777) != 0 && errno != EEXIST)
        return sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot write to the folder %s: %s", file->path,
                       strerror(errno));
    if (file->root >= 0)
        file->partial = openat(file->root, SL_FILE_PARTIAL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

static struct sl_file *file_new(struct sl_span path)
{
    struct sl_file *file = calloc(1, sizeof(*file));
    if (!file)
        sl_die("out of memory");
    *file = (struct sl_file){
        .port = {.size = sizeof(file->port),
                 .max_body_bytes = SIZE_MAX,
                 .apply = sl_file_put,
                 .close = file_close,
                 .read = sl_file_read,
                 .list = sl_file_list,
                 .remove = sl_file_remove},
        .root = -1,
        .partial = -1,
        .path = strndup(path.ptr ? path.ptr : "", path.len),
    };
    return file;
}

enum sl_status sl_file_open(struct sl_sinks *sinks, struct sl_span url_text, struct sl_object_port **out,
                            struct sl_error *error)
{
    (void)sinks;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(url_text, arena, &url, error);
    struct sl_file *file = file_new(url.rest);
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

static void refuse_all(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                       struct sl_result *results, const struct sl_call *call)
{
    (void)objects;
    for (size_t i = 0; i < n; i++) {
        sl_result_fail(&results[i], call->arena, SL_FATAL, "AccessDenied", "%s: was opened for reading alone",
                       ((struct sl_file *)port)->path);
        results[i].not_sent = true;
    }
}

enum sl_status sl_file_open_to_read(const char *path, struct sl_object_port **out, struct sl_error *error)
{
    struct sl_file *file = file_new(sl_span_str(path));
    file->port.apply = refuse_all;
    file->root = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->root < 0) {
        int err = errno;
        file_close(&file->port);
        return sl_fail(error, SL_REJECT, sl_disk_code(err), "%s: cannot be opened as a folder: %s", path,
                       strerror(err));
    }
    *out = &file->port;
    return SL_OK;
}
