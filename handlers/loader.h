/* From a handler's name to its functions: a built-in one, or a plugin NAME.so on the handler path.
 *
 * A plugin is refused, with one message per kind of refusal, before anything of it is called: the checks up
 * to the ABI's numbers read the file's bytes, since the dynamic linker would already run its constructors.
 * The file must be a regular one, not writable by others, in a folder that is not either, and a link must not
 * lead out of the folder. Plugins are loaded RTLD_NOW | RTLD_LOCAL. */
#ifndef SL_HANDLERS_LOADER_H
#define SL_HANDLERS_LOADER_H

#include "base/arena.h"
#include "handlers/handler.h"

struct sl_loader {
    const struct sl_handler *const *builtins; /* NULL-terminated */
    const char *const *path;                  /* absolute folders, NULL-terminated; NULL: none */
};

struct sl_loaded {
    struct sl_handler handler; /* what is there of the plugin's struct, the rest zero */
    void *library;             /* NULL: built in */
};

/* On failure: SL_FATAL, and as code "UnknownHandler" (not found), "HandlerPath", "HandlerOutsidePath",
 * "HandlerWritable", "HandlerNotElf", "HandlerWrongMachine", "HandlerNoSymbol", "HandlerMajor",
 * "HandlerMinor", "HandlerSize", "HandlerIncomplete", "HandlerOptions" or "HandlerNotLoadable". */
enum sl_status sl_loader_load(const struct sl_loader *loader, const char *name, struct sl_arena *arena,
                              struct sl_loaded *out, struct sl_error *error) SL_MUST_USE;

void sl_loader_unload(struct sl_loaded *loaded);

/* What a plugin's file says of itself, read from its bytes. */
struct sl_plugin_facts {
    bool has_abi; /* false: the file has no section table to look in, ask the dynamic linker */
    struct sl_abi abi;
};

/* `path` is for the messages. Codes as above, from "HandlerNotElf" to "HandlerNoSymbol". */
enum sl_status sl_plugin_inspect(const char *path, struct sl_span bytes, struct sl_plugin_facts *out,
                                 struct sl_error *error) SL_MUST_USE;

#endif
