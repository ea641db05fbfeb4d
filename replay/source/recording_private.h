/* What the files of the recording share. */
#ifndef SL_REPLAY_SOURCE_RECORDING_PRIVATE_H
#define SL_REPLAY_SOURCE_RECORDING_PRIVATE_H

#include "replay/source/recording.h"

/* ---- recording_load.c: all records at once ---- */

enum sl_status sl_recording_load(struct sl_recording *out, const struct sl_recording_options *options,
                                 const size_t *n_in_shard, struct sl_arena *arena,
                                 struct sl_error *error) SL_MUST_USE;

/* ---- recording_pages.c: a shard's records page by page, each shard's in a row ---- */

struct sl_pages *sl_pages_new(const struct sl_recording *recording,
                              const struct sl_recording_options *options, const size_t *n_in_shard,
                              struct sl_arena *arena);

#endif
