/* What the files of the recording share. */
#ifndef SL_LIVE_SOURCE_RECORDING_PRIVATE_H
#define SL_LIVE_SOURCE_RECORDING_PRIVATE_H

#include "live/source/recording.h"

/* ---- recording_pages.c: a shard's records page by page, each shard's in a row ---- */

struct sl_pages *sl_pages_new(const struct sl_recording *recording,
                              const struct sl_recording_options *options, const size_t *n_in_shard,
                              struct sl_arena *arena);

#endif
