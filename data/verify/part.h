/* Objects that many machines write and others read: the head says where each share of what is in it ends.
 *
 * The head is JSON, filled up with blanks to SL_PART_HEAD_BYTES:
 *
 *   {"before":"NAME","digest":"1f","ends":[120,250,...]}
 *
 * "before" names the object that this one continues, "digest" is the writer's, and "ends" says at which byte
 * after the head each of SL_PART_SHARES shares ends: a reader of some shares needs only their bytes. */
#ifndef SL_DATA_VERIFY_PART_H
#define SL_DATA_VERIFY_PART_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#define SL_PART_SHARES     256
#define SL_PART_HEAD_BYTES ((size_t)4096)

struct sl_part_head {
    struct sl_span before; /* absent: it is the first one */
    uint64_t digest;
    uint64_t ends[SL_PART_SHARES];
};

/* Blanks, which the head is written over once the shares are behind them. */
void sl_part_begin(struct sl_buffer *out);

/* SL_FATAL, code "PartTooLong": what was added since did not fit into the buffer. */
enum sl_status sl_part_end(const struct sl_part_head *head, struct sl_arena *arena, struct sl_buffer *out,
                           struct sl_error *error) SL_MUST_USE;

/* Bytes behind the head. */
uint64_t sl_part_bytes(const struct sl_buffer *out);

/* The text's first SL_PART_HEAD_BYTES. On failure: SL_REJECT, code "BadPart". */
enum sl_status sl_part_head_read(struct sl_span text, struct sl_arena *arena, struct sl_part_head *out,
                                 struct sl_error *error) SL_MUST_USE;

/* How many workers share so much, of which one takes `each`: 1 to SL_PART_SHARES. */
uint64_t sl_part_workers(uint64_t n, uint64_t each);

/* A number of the head and of lines behind it: hexadecimal, as a JSON text. */
void sl_part_add_hex(struct sl_buffer *out, const char *name, uint64_t n);
bool sl_part_read_hex(struct sl_span json, uint64_t *out);

/* A whole number of at most 15 digits. */
bool sl_part_read_count(struct sl_span json, uint64_t *out);

#endif
