/* Work on pieces in a thread of its own: one piece is worked on while the next one is made. */
#ifndef SL_LIVE_SOURCE_BEHIND_H
#define SL_LIVE_SOURCE_BEHIND_H

#include "data/source/source.h"

/* Pieces to make: two are under way, and need together what one needs elsewhere. */
#define SL_BEHIND_PIECE_BYTES (SL_SOURCE_PIECE_BYTES / 2)

struct sl_behind;

/* False: no more pieces are wanted. */
typedef bool (*sl_behind_fn)(void *self, const struct sl_source_piece *piece);

struct sl_behind *sl_behind_new(sl_behind_fn work, void *self);

/* Waits until the piece before it is done, and begins with this one, whose arena is the thread's until
 * sl_behind_wait or the next call. A document that is much larger than a piece is waited for: memory has room
 * for one. False: no more pieces are wanted; this one was not begun. */
bool sl_behind_give(struct sl_behind *b, const struct sl_source_piece *piece);

/* Waits until every piece is done. False: no more are wanted. What the thread wrote can be seen. */
bool sl_behind_wait(struct sl_behind *b);

void sl_behind_destroy(struct sl_behind *b);

#endif
