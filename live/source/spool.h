/* A text that grows on disk and is then read as if it were in memory: the kernel may drop its pages, so it
 * costs no memory that something else needs. */
#ifndef SL_LIVE_SOURCE_SPOOL_H
#define SL_LIVE_SOURCE_SPOOL_H

#include "base/arena.h"
#include "base/span.h"

struct sl_spool;

/* What a spool has in memory at most. */
#define SL_SPOOL_BYTES ((size_t)4 * 1024 * 1024)

/* Its file is one without a name in $TMPDIR, else /var/tmp, else /tmp. It is gone when the arena is reset or
 * destroyed, and when the process ends, however it ends. */
struct sl_spool *sl_spool_new(struct sl_arena *arena);

/* Appends. What fails is noted, and told at the end. */
void sl_spool_add(struct sl_spool *spool, struct sl_span bytes);

/* How many bytes were added. */
uint64_t sl_spool_bytes(const struct sl_spool *spool);

/* The same as an open file. */
enum sl_status sl_spool_file(struct sl_spool *spool, int *out, struct sl_error *error) SL_MUST_USE;

/* All of it, for reading as long as the arena; nothing can be added any more. SL_FATAL: there is no room, or
 * no right to make a file. */
enum sl_status sl_spool_done(struct sl_spool *spool, struct sl_span *out, struct sl_error *error) SL_MUST_USE;

/* Its mapped pages are not needed for now: they no longer count as this process's memory, and come back when
 * they are looked at. */
void sl_spool_release(const struct sl_spool *spool);

#endif
