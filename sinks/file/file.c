/* Objects as files below a folder. */
#include "sinks/file.h"

#include "base/arena.h"
#include "base/disk.h"
#include "base/sha256.h"
#include "base/url.h"
#include "sinks/object.h"
#include "sinks/port.h"
#include "sinks/result.h"
#include "sinks/rewrite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of files that are being written; no object's name. */
#define PARTIAL ".partial"

struct sl_file {
    struct sl_object_port port;
    int root;    /* the folder */
    int partial; /* folder/.partial */
    char *path;  /* for messages */
};

/* ---- keys ---- */

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

/* Whether the key can be a file's; if not, the result says why. */
static bool file_key_is_good(const struct sl_file *file, struct sl_span key, struct sl_result *result,
                             struct sl_arena *arena)
{
    const char *problem = sl_object_key_problem(key);
    if (!problem && has_partial(key))
        problem = "has a segment \"" PARTIAL "\"";
    if (!problem)
        return true;
    sl_result_fail(result, arena, SL_REJECT, "InvalidKey", "%s: the object key %s", file->path, problem);
    result->not_sent = true;
    return false;
}

/* A key holds an item's values: texts name it by its digest. */
static const char *file_digest(struct sl_span key, char out[SL_SHA256_HEX])
{
    struct sl_sha256 sha;
    unsigned char digest[SL_SHA256_BYTES];
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, &key, 1, digest);
    sl_sha256_hex(digest, out);
    sl_sha256_clean_up(&sha);
    return out;
}

/* The file's inode, size and time of change as a text: another one after each write. */
static struct sl_span file_etag(const struct stat *info, struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(
        arena, "%llx-%llx-%llx.%09lx", (unsigned long long)info->st_ino, (unsigned long long)info->st_size,
        (unsigned long long)info->st_mtim.tv_sec, (unsigned long)info->st_mtim.tv_nsec));
}

/* ---- reading ---- */

/* Objects are read in ranges: what open() finds stays the same object while it is read. */

/* The folder in which the object is, and the object's name in it: no segment of the path is followed when it
 * is a link. Nothing is created. Returns a descriptor, or -1 and errno; `key` is changed meanwhile. */
static int file_folder(const struct sl_file *file, char *key, char **name)
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
    int at = file_folder(file, key, &name);
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
                   "%s: the object whose key has the SHA-256 %.12s... %s", path, file_digest(key, digest),
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
    piece->etag = file_etag(&info, call->arena);
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
                       file_digest(read->key, digest), strerror(err));
    }
}

static void file_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                      struct sl_object_piece *pieces, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    for (size_t i = 0; i < n; i++) {
        struct sl_result *result = &pieces[i].result;
        pieces[i] = (struct sl_object_piece){.result = {.status = SL_OK}};
        if (!file_key_is_good(file, reads[i].key, result, call->arena))
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

/* ---- objects are written aside, synced, and renamed (sl_disk_replace) ---- */

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

static void file_put(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                     struct sl_result *results, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        char digest[SL_SHA256_HEX];
        if (!file_key_is_good(file, objects[i].key, &results[i], call->arena))
            continue;
        int err = put(file, &objects[i], sl_arena_copy(call->arena, objects[i].key));
        if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "%s: cannot write the object whose key has the SHA-256 %.12s...: %s", file->path,
                           file_digest(objects[i].key, digest), strerror(err));
    }
}

/* Objects are listed in the bytewise order of their keys, a page at a time: memory holds a page, not a
 * folder. A walk looks into every folder that can hold a key of the page. */

#define PAGE_KEYS 1000 /* as S3's */

struct found {
    struct sl_span key; /* from malloc: of a large folder many are found and go again */
    struct stat info;
};

/* The keys that were found: the least ones. When it is full, the greater half of it goes. */
struct walk {
    struct sl_span prefix, after;
    struct found *found;
    size_t n, room, limit;
    bool is_cut; /* keys were left out: all of them are greater than the first `limit` */
    char key[SL_OBJECT_KEY_BYTES + 2]; /* of the folder or file that is looked at */
};

static int compare_found(const void *x, const void *y)
{
    return sl_span_compare(((const struct found *)x)->key, ((const struct found *)y)->key);
}

static void forget(struct walk *w, size_t keep)
{
    while (w->n > keep)
        free((char *)(uintptr_t)w->found[--w->n].key.ptr);
}

/* Sorts what was found and keeps the page. */
static void cut(struct walk *w)
{
    qsort(w->found, w->n, sizeof(*w->found), compare_found);
    w->is_cut = w->is_cut || w->n > w->limit;
    forget(w, w->limit);
}

/* After a cut, what is greater than the page's last key does not count. */
static bool is_beyond(const struct walk *w, struct sl_span key)
{
    return w->is_cut && w->n >= w->limit && sl_span_compare(key, w->found[w->limit - 1].key) > 0;
}

/* Whether a key that begins with this text can be one of the page. */
static bool can_hold(const struct walk *w, struct sl_span folder)
{
    size_t n = folder.len < w->prefix.len ? folder.len : w->prefix.len;
    if (memcmp(folder.ptr, w->prefix.ptr, n) != 0 || is_beyond(w, folder))
        return false;
    /* All keys of the folder begin with its name: they are all less, or the folder begins `after`, or all
     * are greater. */
    return !w->after.len || sl_span_starts(w->after, folder) || sl_span_compare(folder, w->after) > 0;
}

static bool is_wanted(const struct walk *w, struct sl_span key)
{
    return sl_span_starts(key, w->prefix) && (!w->after.ptr || sl_span_compare(key, w->after) > 0) &&
           !is_beyond(w, key) && !sl_object_key_problem(key);
}

static void take(struct walk *w, struct sl_span key, const struct stat *info)
{
    if (!is_wanted(w, key))
        return;
    if (w->n == w->room)
        cut(w);
    if (is_beyond(w, key))
        return;
    char *copy = strndup(key.ptr, key.len);
    if (!copy)
        sl_die("out of memory: a listing");
    w->found[w->n++] = (struct found){sl_span(copy, key.len), *info};
}

static int walk_folder(struct walk *w, int fd, size_t len);

/* One name of a folder. Returns 0 or an errno; what is gone meanwhile was not there. */
static int look_at(struct walk *w, int folder, const char *name, size_t len)
{
    struct stat info;
    size_t n = strlen(name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, PARTIAL) == 0 ||
        len + n > SL_OBJECT_KEY_BYTES)
        return 0;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno;
    memcpy(w->key + len, name, n + 1);
    if (S_ISREG(info.st_mode))
        take(w, sl_span(w->key, len + n), &info);
    if (!S_ISDIR(info.st_mode))
        return 0;
    memcpy(w->key + len + n, "/", 2);
    if (!can_hold(w, sl_span(w->key, len + n + 1)))
        return 0;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    return walk_folder(w, fd, len + n + 1);
}

/* Takes `fd`. A key has 1,024 bytes at most, and so a path has 512 folders at most. */
static int walk_folder(struct walk *w, int fd, size_t len)
{
    DIR *dir = fdopendir(fd);
    int err = dir ? 0 : errno;
    if (!dir)
        close(fd);
    while (!err) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            err = errno;
            break;
        }
        err = look_at(w, dirfd(dir), entry->d_name, len);
    }
    if (dir)
        closedir(dir);
    return err;
}

static void write_page(const struct walk *w, struct sl_object_page *page, struct sl_arena *arena)
{
    page->entries = sl_arena_alloc(arena, (w->n + 1) * sizeof(*page->entries));
    for (; page->n < w->n; page->n++) {
        const struct found *found = &w->found[page->n];
        page->entries[page->n] = (struct sl_object_entry){
            sl_span(sl_arena_copy(arena, found->key), found->key.len), (uint64_t)found->info.st_size,
            file_etag(&found->info, arena), found->info.st_mtime};
    }
    if (w->is_cut)
        page->next = page->entries[page->n - 1].key;
}

static void file_list(struct sl_object_port *port, const struct sl_object_list *list,
                      struct sl_object_page *page, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    struct walk w = {.prefix = sl_span(list->prefix.ptr ? list->prefix.ptr : "", list->prefix.len),
                     .after = list->after,
                     .limit = list->limit && list->limit < PAGE_KEYS ? list->limit : PAGE_KEYS};
    w.room = 2 * w.limit;
    w.found = malloc(w.room * sizeof(*w.found));
    if (!w.found)
        sl_die("out of memory: a listing");
    *page = (struct sl_object_page){.result = {.status = SL_OK}};
    int fd = openat(file->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 ? errno : walk_folder(&w, fd, 0);
    cut(&w);
    if (err)
        sl_result_fail(&page->result, call->arena, sl_disk_status(err), sl_disk_code(err),
                       "%s: cannot list the folder: %s", file->path, strerror(err));
    else
        write_page(&w, page, call->arena);
    forget(&w, 0);
    free(w.found);
}

/* Objects are removed: the file at the key, if it still is the one that was read. */

static bool is_gone(int err)
{
    return err == ENOENT || err == ENOTDIR || err == ELOOP;
}

/* Returns 0 when the file is still the object that was read, else an errno; ESTALE: another object is there.
 * An absent etag: any object. */
static int is_other(int folder, const char *name, struct sl_span etag, struct sl_arena *arena)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (!S_ISREG(info.st_mode))
        return ENOENT;
    return etag.ptr && !sl_span_eq(etag, file_etag(&info, arena)) ? ESTALE : 0;
}

/* Returns 0 or an errno. The folder is synced, so that a crash does not bring the object back. */
static int remove_from(int folder, const char *name, const struct sl_object_removal *removal,
                       struct sl_arena *arena)
{
    int err = is_other(folder, name, removal->etag, arena);
    if (err)
        return err;
    return unlinkat(folder, name, 0) != 0 || fsync(folder) != 0 ? errno : 0;
}

static int remove_one(const struct sl_file *file, const struct sl_object_removal *removal,
                      struct sl_arena *arena)
{
    char *name;
    int folder = file_folder(file, sl_arena_copy(arena, removal->key), &name);
    int err = folder < 0 ? errno : remove_from(folder, name, removal, arena);
    if (folder >= 0)
        close(folder);
    return is_gone(err) ? 0 : err;
}

static void file_remove(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    char digest[SL_SHA256_HEX];
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        if (!file_key_is_good(file, removals[i].key, &results[i], call->arena))
            continue;
        int err = remove_one(file, &removals[i], call->arena);
        if (err == ESTALE)
            sl_result_fail(&results[i], call->arena, SL_REJECT, "PreconditionFailed",
                           "%s: the object whose key has the SHA-256 %.12s... was replaced meanwhile",
                           file->path, file_digest(removals[i].key, digest));
        else if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "%s: cannot remove the object whose key has the SHA-256 %.12s...: %s", file->path,
                           file_digest(removals[i].key, digest), strerror(err));
    }
}

/* ---- rewriting ---- */

bool sl_file_is(const struct sl_object_port *port)
{
    return port->apply == file_put;
}

/* Returns 0 or an errno; ESTALE: another object is there, or none. */
static int replace(const struct sl_file *file, const struct sl_object_rewrite *rewrite,
                   struct sl_arena *arena)
{
    char *name;
    int folder = file_folder(file, sl_arena_copy(arena, rewrite->object.key), &name);
    int err = folder < 0 ? errno : is_other(folder, name, rewrite->etag, arena);
    if (!err)
        err = sl_disk_replace(file->partial, folder, name, rewrite->object.body);
    if (folder >= 0)
        close(folder);
    return is_gone(err) ? ESTALE : err;
}

void sl_file_replace(struct sl_object_port *port, const struct sl_object_rewrite *rewrite,
                     struct sl_result *result, const struct sl_call *call)
{
    struct sl_file *file = (struct sl_file *)port;
    char digest[SL_SHA256_HEX];
    *result = (struct sl_result){.status = SL_OK};
    if (!file_key_is_good(file, rewrite->object.key, result, call->arena))
        return;
    int err = replace(file, rewrite, call->arena);
    if (err)
        sl_result_fail(result, call->arena, err == ESTALE ? SL_REJECT : sl_disk_status(err),
                       err == ESTALE ? "PreconditionFailed" : sl_disk_code(err),
                       "%s: the object whose key has the SHA-256 %.12s... %s%s", file->path,
                       file_digest(rewrite->object.key, digest),
                       err == ESTALE ? "was replaced meanwhile" : "cannot be rewritten: ",
                       err == ESTALE ? "" : strerror(err));
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

static struct sl_file *file_new(struct sl_span path)
{
    struct sl_file *file = calloc(1, sizeof(*file));
    if (!file)
        sl_die("out of memory");
    *file = (struct sl_file){
        .port = {.size = sizeof(file->port),
                 .max_body_bytes = SIZE_MAX,
                 .apply = file_put,
                 .close = file_close,
                 .read = file_read,
                 .list = file_list,
                 .remove = file_remove},
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
