/* The keeper of one process: a checkpoint file (live/source/places.h), with a lock. Every shard is ours.
 *
 * FILE.lock is locked (flock) as long as the process lives, and holds its pid; the file stays when the
 * process has ended, and means nothing then. The checkpoint is replaced whole, synced, by a thread that
 * writes the newest state as soon as the last write is done. */
#ifndef SL_LIVE_TAIL_KEEPER_FILE_H
#define SL_LIVE_TAIL_KEEPER_FILE_H

#include "live/tail/keeper.h"

/* `path` NULL: nothing is kept; borrowed until `close`. */
struct sl_keeper sl_keeper_file_new(const char *path);

#endif
