/* A text that grows on disk and is then read as if it were in memory: the kernel may drop its pages, so it
 * costs no memory that something else needs. */
#ifndef SL_REPLAY_SOURCE_SPOOL_H
#define SL_REPLAY_SOURCE_SPOOL_H

#include "base/arena.h"
#include "base/span.h"

struct sl_spool;

/* A file without a name in $TMPDIR, else /var/tmp, else /tmp; it is gone when the arena is reset or
 * destroyed, and when the process ends, however it ends. SL_FATAL: there is no room or no right to make it.
 */
enum sl_status sl_spool_open(struct sl_arena *arena, struct sl_spool **out,
                             struct sl_error *error) SL_MUST_USE;

/* Appends. What fails is noted, and told by sl_spool_done. */
void sl_spool_add(struct sl_spool *spool, struct sl_span bytes);

/* How many bytes were added. */
uint64_t sl_spool_bytes(const struct sl_spool *spool);

/* All of it, as an open file that lives as long as the arena; nothing can be added any more. */
enum sl_status sl_spool_file(struct sl_spool *spool, int *out, struct sl_error *error) SL_MUST_USE;

/* All of it, mapped for reading as long as the arena; nothing can be added any more. */
enum sl_status sl_spool_done(struct sl_spool *spool, struct sl_span *out, struct sl_error *error) SL_MUST_USE;

#endif
