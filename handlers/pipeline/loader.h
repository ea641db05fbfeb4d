/* From a handler's name to its functions: a built-in handler, or a plugin NAME.so on the handler path.
 *
 * A plugin is refused before anything of it is called, with one message per kind of refusal. The checks up to
 * the ABI's numbers read the file's bytes, because the dynamic linker would already run its constructors. The
 * file must be a regular one. Neither it nor its folder may be writable by others, and a link must not lead
 * out of the folder. Plugins are loaded RTLD_NOW | RTLD_LOCAL. */
#ifndef SL_HANDLERS_PIPELINE_LOADER_H
#define SL_HANDLERS_PIPELINE_LOADER_H

#include "base/arena.h"
#include "handlers/handler.h"

#define SL_LOADER_FOLDERS 64

struct sl_loader {
    const struct sl_handler *const *builtins; /* NULL-terminated */
    const char *const *path; /* absolute folders, NULL-terminated, SL_LOADER_FOLDERS at most; NULL: none */
};

struct sl_loaded {
    struct sl_handler handler; /* as much as the plugin's struct has, the rest zero */
    void *library;             /* NULL: built in */
};

/* On failure: SL_FATAL, and as code "UnknownHandler" (not found), "HandlerPath", "HandlerOutsidePath",
 * "HandlerWritable", "HandlerNotElf", "HandlerWrongMachine", "HandlerCutOff", "HandlerNoSymbol",
 * "HandlerMajor", "HandlerMinor", "HandlerSize", "HandlerIncomplete", "HandlerOptions" or
 * "HandlerNotLoadable". */
enum sl_status sl_loader_load(const struct sl_loader *loader, const char *name, struct sl_arena *arena,
                              struct sl_loaded *out, struct sl_error *error) SL_MUST_USE;

void sl_loader_unload(struct sl_loaded *loaded);

#endif
