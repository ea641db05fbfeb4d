/* Finds and creates paths. */
#include "replay/sandbox/paths.h"

#include "base/span.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096

const char *sl_paths_own_folder(struct sl_arena *arena)
{
    char path[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    while (n > 1 && path[n - 1] != '/')
        n--;
    return n > 1 ? sl_arena_copy(arena, sl_span(path, (size_t)n - 1)) : ".";
}

const char *sl_paths_absolute(struct sl_arena *arena, const char *path)
{
    char cwd[PATH_BYTES];
    if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        return path;
    return sl_arena_printf(arena, "%s/%s", cwd, path);
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
    for (struct sl_span rest = sl_span_str(given); rest.len;) {
        const char *colon = memchr(rest.ptr, ':', rest.len);
        struct sl_span one = sl_span(rest.ptr, colon ? (size_t)(colon - rest.ptr) : rest.len);
        if (one.len)
            all = sl_arena_printf(arena, "%s%s%s", all, all[0] ? ":" : "",
                                  sl_paths_absolute(arena, sl_arena_copy(arena, one)));
        rest = sl_span_from(rest, one.len + (colon ? 1 : 0));
    }
    return all;
}

char *sl_paths_make_temp(const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/sluice-replay-XXXXXX", folder && folder[0] ? folder : "/tmp");
    return mkdtemp(path) ? strdup(path) : NULL;
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *at)
{
    (void)facts;
    (void)type;
    (void)at;
    return remove(path);
}

void sl_paths_remove_temp(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
