/* Where things are: beside this executable. */
#ifndef SL_REPLAY_PATHS_H
#define SL_REPLAY_PATHS_H

#include "base/arena.h"

/* The folder of this executable. */
const char *sl_own_folder(struct sl_arena *arena);

/* The path made absolute from the working directory; it need not exist. */
const char *sl_absolute_path(struct sl_arena *arena, const char *path);

/* What SLUICE_HANDLER_PATH becomes: the folders in `given`, separated by ':', each made absolute; without it,
 * handlers/ beside the configuration, as in Lambda, and then `outer`, what the variable says already. */
const char *sl_handler_path(struct sl_arena *arena, const char *given, const char *config, const char *outer);

/* A fresh empty folder below `folder` (NULL: /tmp) and its removal with all that is in it. NULL: it cannot be
 * made. The text is the caller's to free. */
char *sl_temp_folder_make(const char *folder);
void sl_temp_folder_remove(const char *path);

#endif
