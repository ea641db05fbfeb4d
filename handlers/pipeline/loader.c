/* Finds a handler by its name; checks a plugin's file and struct before anything of it is called. */
#include "handlers/pipeline/loader.h"

#include "base/nearest.h"
#include "base/span.h"
#include "handlers/pipeline/loader_private.h"
#include "handlers/pipeline/options.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The struct of ABI 1.0: a smaller one has lost a part of itself. */
#define SMALLEST_HANDLER (offsetof(struct sl_handler, accepts) + sizeof(void *))
#define LARGEST_HANDLER  4096

/* ---- the file ---- */

/* The system's reason is in errno. */
static enum sl_status not_loadable(const char *path, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "HandlerNotLoadable", "%s: %s", path, strerror(errno));
}

static enum sl_status check_folder(const char *folder, struct sl_error *error)
{
    struct stat facts;
    bool climbs = strstr(folder, "/../") || sl_span_ends(sl_span_str(folder), SL_LIT("/.."));
    if (folder[0] != '/' || climbs)
        return sl_fail(error, SL_FATAL, "HandlerPath",
                       "the handler path's folder \"%s\" is not absolute; write it from / and without ..",
                       folder);
    if (stat(folder, &facts) == 0 && (facts.st_mode & S_IWOTH))
        return sl_fail(
            error, SL_FATAL, "HandlerWritable",
            "%s: others may write to this folder, so no handler is loaded from it; run chmod o-w on it",
            folder);
    return SL_OK;
}

/* Where the file really is; it must be in the folder. */
static enum sl_status resolve(const char *folder, const char *file, char real[PATH_MAX],
                              struct sl_error *error)
{
    char real_folder[PATH_MAX];
    if (!realpath(folder, real_folder) || !realpath(file, real))
        return not_loadable(file, error);
    size_t n = strlen(real_folder);
    if (strncmp(real, real_folder, n) != 0 || (real[n] != '/' && n > 1))
        return sl_fail(
            error, SL_FATAL, "HandlerOutsidePath",
            "%s: is a link that leads out of its folder, to %s; copy the file itself into the folder", file,
            real);
    return SL_OK;
}

static enum sl_status inspect_open(const char *path, int fd, struct sl_loader_facts *facts,
                                   struct sl_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return not_loadable(path, error);
    if (!S_ISREG(st.st_mode))
        return sl_fail(error, SL_FATAL, "HandlerNotElf", "%s: is not a regular file", path);
    if (st.st_mode & S_IWOTH)
        return sl_fail(error, SL_FATAL, "HandlerWritable",
                       "%s: others may write to this file; run chmod o-w on it", path);
    if (st.st_size == 0)
        return sl_fail(error, SL_FATAL, "HandlerNotElf", "%s: is empty", path);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return not_loadable(path, error);
    enum sl_status status = sl_loader_inspect(path, sl_span(bytes, (size_t)st.st_size), facts, error);
    munmap(bytes, (size_t)st.st_size);
    return status;
}

static enum sl_status inspect(const char *path, struct sl_loader_facts *facts, struct sl_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return not_loadable(path, error);
    enum sl_status status = inspect_open(path, fd, facts, error);
    close(fd);
    return status;
}

/* ---- the struct ---- */

static enum sl_status check_abi(const char *path, const struct sl_abi *abi, struct sl_error *error)
{
    if (abi->major != SL_ABI_MAJOR)
        return sl_fail(
            error, SL_FATAL, "HandlerMajor",
            "%s: was built for ABI %u.%u, but this host has %u.%u; build it against this host's handler.h",
            path, abi->major, abi->minor, SL_ABI_MAJOR, SL_ABI_MINOR);
    if (abi->minor > SL_ABI_MINOR)
        return sl_fail(error, SL_FATAL, "HandlerMinor",
                       "%s: was built for ABI %u.%u, newer than this host's %u.%u; update the host", path,
                       abi->major, abi->minor, SL_ABI_MAJOR, SL_ABI_MINOR);
    if (abi->size < SMALLEST_HANDLER || abi->size > LARGEST_HANDLER)
        return sl_fail(error, SL_FATAL, "HandlerSize",
                       "%s: its struct sl_handler has %u bytes, not %zu to %d; begin it with SL_HANDLER_ABI",
                       path, abi->size, SMALLEST_HANDLER, LARGEST_HANDLER);
    return SL_OK;
}

static enum sl_status check_handler(const char *what, const struct sl_handler *handler,
                                    struct sl_error *error)
{
    const char *missing = !handler->name ? "name" : !handler->handle ? "handle" : NULL;
    if (missing)
        return sl_fail(error, SL_FATAL, "HandlerIncomplete", "%s: its struct sl_handler has no `%s`", what,
                       missing);
    struct sl_error why = SL_NO_ERROR;
    if (sl_options_check_rows(handler->options, &why) != SL_OK)
        return sl_fail(error, SL_FATAL, "HandlerOptions", "%s: %s", what, why.text);
    return SL_OK;
}

static enum sl_status take_struct(const char *path, const struct sl_handler *theirs, struct sl_handler *out,
                                  struct sl_error *error)
{
    enum sl_status status = check_abi(path, &theirs->abi, error);
    if (status != SL_OK)
        return status;
    memset(out, 0, sizeof(*out));
    memcpy(out, theirs, theirs->abi.size < sizeof(*out) ? theirs->abi.size : sizeof(*out));
    return check_handler(path, out, error);
}

static enum sl_status load_file(const char *folder, const char *file, struct sl_arena *arena,
                                struct sl_loaded *out, struct sl_error *error)
{
    char *real = sl_arena_alloc(arena, PATH_MAX);
    struct sl_loader_facts facts;
    enum sl_status status = check_folder(folder, error);
    if (status == SL_OK)
        status = resolve(folder, file, real, error);
    if (status == SL_OK)
        status = inspect(real, &facts, error);
    if (status == SL_OK && facts.has_abi)
        status = check_abi(file, &facts.abi, error);
    if (status != SL_OK)
        return status;
    out->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!out->library)
        return sl_fail(error, SL_FATAL, "HandlerNotLoadable", "%s: %s", file, dlerror());
    const struct sl_handler *theirs = dlsym(out->library, SL_HANDLER_SYMBOL);
    status = theirs ? take_struct(file, theirs, &out->handler, error)
                    : sl_fail(error, SL_FATAL, "HandlerNoSymbol", "%s: does not export the symbol %s", file,
                              SL_HANDLER_SYMBOL);
    if (status != SL_OK)
        sl_loader_unload(out);
    return status;
}

static enum sl_status not_found(const struct sl_loader *loader, const char *name, struct sl_error *error)
{
    struct sl_nearest near = sl_nearest_begin(sl_span_str(name));
    char folders[300] = "", known[200] = "";
    for (size_t i = 0; loader->builtins[i]; i++) {
        sl_nearest_consider(&near, loader->builtins[i]->name);
        sl_nearest_list(known, sizeof(known), loader->builtins[i]->name);
    }
    for (const char *const *folder = loader->path; folder && *folder; folder++)
        sl_nearest_list(folders, sizeof(folders), *folder);
    return sl_fail(error, SL_FATAL, "UnknownHandler",
                   "\"%s\" is not a built-in handler%s%s%s, and %s.so is not on the handler path (%s)%s%s%s",
                   name, known[0] ? " (" : "", known, known[0] ? ")" : "", name,
                   folders[0] ? folders : "empty",
                   near.best ? "; did you mean \"" : "; where messages or items go is the route's \"to\"",
                   near.best ? near.best : "", near.best ? "\"?" : "");
}

enum sl_status sl_loader_load(const struct sl_loader *loader, const char *name, struct sl_arena *arena,
                              struct sl_loaded *out, struct sl_error *error)
{
    *out = (struct sl_loaded){0};
    for (size_t i = 0; loader->builtins[i]; i++) {
        if (strcmp(loader->builtins[i]->name, name) != 0)
            continue;
        out->handler = *loader->builtins[i];
        return check_handler(name, &out->handler, error);
    }
    for (const char *const *folder = loader->path; folder && *folder; folder++) {
        struct stat facts;
        const char *file = sl_arena_printf(arena, "%s/%s.so", *folder, name);
        if (lstat(file, &facts) == 0)
            return load_file(*folder, file, arena, out, error);
    }
    return not_found(loader, name, error);
}

void sl_loader_unload(struct sl_loaded *loaded)
{
    if (loaded && loaded->library)
        dlclose(loaded->library);
    if (loaded)
        *loaded = (struct sl_loaded){0};
}
