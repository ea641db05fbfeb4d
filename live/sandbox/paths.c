/* Finds and creates paths. */
#include "live/sandbox/paths.h"

#include "base/span.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define FOLDERS_MAX 64 /* the loader's */

#define REMOVALS         20
#define REMOVAL_PAUSE_US 10000

const char *sl_paths_own_folder(struct sl_arena *arena)
{
    char path[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    while (n > 1 && path[n - 1] != '/')
        n--;
    return n > 1 ? sl_arena_copy(arena, sl_span(path, (size_t)n - 1)) : ".";
}

/* What leads there without "..": of a name that does not exist yet, its folder is looked up. */
static const char *resolved(struct sl_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *whole = realpath(path, NULL), *folder = NULL;
    const char *result = NULL;
    if (!whole && strcmp(name, "..") != 0 && slash)
        folder =
            realpath(slash == path ? "/" : sl_arena_copy(arena, sl_span(path, (size_t)(slash - path))), NULL);
    if (whole)
        result = sl_arena_copy(arena, sl_span_str(whole));
    else if (folder)
        result = sl_arena_printf(arena, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    free(whole);
    free(folder);
    return result;
}

/* A path without ".." stays as it is written: symbolic links may change under a function that runs. */
const char *sl_paths_absolute(struct sl_arena *arena, const char *path)
{
    char cwd[PATH_BYTES];
    const char *whole = path, *clean;
    if (path[0] != '/' && getcwd(cwd, sizeof(cwd)))
        whole = sl_arena_printf(arena, "%s/%s", cwd, path);
    if (!strstr(whole, "/..") || !(clean = resolved(arena, whole)))
        return whole;
    return clean;
}

/* The next of the folders that ':' separates; NULL at the end. */
static const char *next_folder(struct sl_span *rest, struct sl_arena *arena)
{
    while (rest->len) {
        const char *colon = memchr(rest->ptr, ':', rest->len);
        struct sl_span one = sl_span(rest->ptr, colon ? (size_t)(colon - rest->ptr) : rest->len);
        *rest = sl_span_from(*rest, one.len + (colon ? 1 : 0));
        if (one.len)
            return sl_arena_copy(arena, one);
    }
    return NULL;
}

const char *sl_paths_handlers(struct sl_arena *arena, const char *given, const char *config,
                              const char *outer)
{
    if (!given) {
        const char *slash = strrchr(config, '/');
        const char *beside = sl_paths_absolute(
            arena, sl_arena_printf(arena, "%.*shandlers", slash ? (int)(slash + 1 - config) : 0, config));
        return outer && outer[0] ? sl_arena_printf(arena, "%s:%s", beside, outer) : beside;
    }
    const char *all = "";
    struct sl_span rest = sl_span_str(given);
    for (const char *folder; (folder = next_folder(&rest, arena));)
        all = sl_arena_printf(arena, "%s%s%s", all, all[0] ? ":" : "", sl_paths_absolute(arena, folder));
    return all;
}

static void add_folder(const char **list, const char *folder)
{
    size_t n = 0;
    while (list[n] && strcmp(list[n], folder) != 0)
        n++;
    if (n < FOLDERS_MAX)
        list[n] = folder;
}

const char *const *sl_paths_folders(struct sl_arena *arena, const char *given, const char *config)
{
    const char **list = sl_arena_zalloc(arena, (FOLDERS_MAX + 1) * sizeof(*list));
    add_folder(list, sl_arena_printf(arena, "%s/handlers", sl_paths_own_folder(arena)));
    add_folder(list, "/opt/sluice/handlers");
    struct sl_span rest = sl_span_str(sl_paths_handlers(arena, given, config, getenv("SLUICE_HANDLER_PATH")));
    for (const char *folder; (folder = next_folder(&rest, arena));)
        add_folder(list, folder);
    return list;
}

char *sl_paths_make_temp(const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/sluice-replay-XXXXXX", folder && folder[0] ? folder : "/tmp");
    return mkdtemp(path) ? strdup(path) : NULL;
}

/* What another process has just removed is gone as well: the walk goes on. */
static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *at)
{
    (void)facts;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

/* A process that a plugin has started may still write there: under another name it does not find the folder,
 * unless it works in it. */
void sl_paths_remove_temp(const char *path)
{
    char gone[PATH_BYTES];
    if (snprintf(gone, sizeof(gone), "%s-gone", path) < PATH_BYTES && rename(path, gone) == 0)
        path = gone;
    for (int i = 0; i < REMOVALS && access(path, F_OK) == 0; i++) {
        if (i)
            usleep(REMOVAL_PAUSE_US);
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
}
