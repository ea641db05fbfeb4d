/* Where things are: beside this executable. */
#ifndef SL_REPLAY_PATHS_H
#define SL_REPLAY_PATHS_H

#include "base/arena.h"

/* The folder of this executable. */
const char *sl_own_folder(struct sl_arena *arena);

/* The path made absolute from the working directory; it need not exist. */
const char *sl_absolute_path(struct sl_arena *arena, const char *path);

#endif
