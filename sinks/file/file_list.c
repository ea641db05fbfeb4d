/* Objects are listed in the bytewise order of their keys, a page at a time: memory holds a page, not a
 * folder. A walk looks into every folder that can hold a key of the page. */
#include "base/arena.h"
#include "base/disk.h"
#include "sinks/file/file_private.h"
#include "sinks/object.h"
#include "sinks/result.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int compare(struct sl_span a, struct sl_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_found(const void *x, const void *y)
{
    return compare(((const struct found *)x)->key, ((const struct found *)y)->key);
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
    return w->is_cut && w->n >= w->limit && compare(key, w->found[w->limit - 1].key) > 0;
}

/* Whether a key that begins with this text can be one of the page. */
static bool can_hold(const struct walk *w, struct sl_span folder)
{
    size_t n = folder.len < w->prefix.len ? folder.len : w->prefix.len;
    if (memcmp(folder.ptr, w->prefix.ptr, n) != 0 || is_beyond(w, folder))
        return false;
    /* All keys of the folder begin with its name: they are all less, or the folder begins `after`, or all
     * are greater. */
    return !w->after.len || sl_span_starts(w->after, folder) || compare(folder, w->after) > 0;
}

static bool is_wanted(const struct walk *w, struct sl_span key)
{
    return sl_span_starts(key, w->prefix) && (!w->after.ptr || compare(key, w->after) > 0) &&
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
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, SL_FILE_PARTIAL) == 0 ||
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
        page->entries[page->n] =
            (struct sl_object_entry){sl_span(sl_arena_copy(arena, found->key), found->key.len),
                                     (uint64_t)found->info.st_size, sl_file_etag(&found->info, arena)};
    }
    if (w->is_cut)
        page->next = page->entries[page->n - 1].key;
}

void sl_file_list(struct sl_object_port *port, const struct sl_object_list *list, struct sl_object_page *page,
                  const struct sl_call *call)
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
