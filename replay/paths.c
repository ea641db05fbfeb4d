#include "replay/paths.h"

#include <unistd.h>

#define PATH_BYTES 4096

const char *sl_own_folder(struct sl_arena *arena)
{
    char path[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    while (n > 1 && path[n - 1] != '/')
        n--;
    return n > 1 ? sl_arena_copy(arena, sl_span(path, (size_t)n - 1)) : ".";
}

const char *sl_absolute_path(struct sl_arena *arena, const char *path)
{
    char cwd[PATH_BYTES];
    if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        return path;
    return sl_arena_printf(arena, "%s/%s", cwd, path);
}
