/* The paths of what belongs to this executable, and of the sandboxes' files. */
#ifndef SL_LIVE_SANDBOX_PATHS_H
#define SL_LIVE_SANDBOX_PATHS_H

#include "base/arena.h"

/* The folder of this executable. */
const char *sl_paths_own_folder(struct sl_arena *arena);

/* The absolute path, from the working directory. The file need not exist. */
const char *sl_paths_absolute(struct sl_arena *arena, const char *path);

/* The value of SLUICE_HANDLER_PATH: the folders in `given`, separated by ':', each made absolute. When
 * `given` is NULL: handlers/ beside the configuration, as in Lambda, and then `outer`, the variable's present
 * value. */
const char *sl_paths_handlers(struct sl_arena *arena, const char *given, const char *config,
                              const char *outer);

/* Where a verb that opens the handlers in its own process looks for plugins: the folders that the function of
 * `replay` would look into, in its order. NULL-terminated, without duplicates. */
const char *const *sl_paths_folders(struct sl_arena *arena, const char *given, const char *config);

/* Creates an empty folder below `folder` (NULL: /tmp). NULL on failure. The caller frees the text. */
char *sl_paths_make_temp(const char *folder);
/* Removes it with everything in it. */
void sl_paths_remove_temp(const char *path);

#endif
