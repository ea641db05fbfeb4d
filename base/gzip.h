/* gzip of whole buffers and piece by piece, and CRC-32.
 *
 * One call makes one member with nothing of its own in the header (no time, no name, system "unknown"), so
 * the same parts at the same level give the same bytes from the same build. Another build may hold another
 * encoder (libdeflate where it is found, else zlib), so names and digests are made from the input, never from
 * the output. Out of memory ends the process (see sl_die). */
#ifndef SL_BASE_GZIP_H
#define SL_BASE_GZIP_H

#include "base/buffer.h"

/* Appends the parts, one after the other, as one member. `level` is 1 (fast) to 9 (small). When that would
 * pass the buffer's maximum, `out` has failed and its length is as before. */
void sl_gzip_add(struct sl_buffer *out, const struct sl_span *parts, size_t n, int level);

/* Whether the bytes begin as gzip does. Nothing else that is read here can: JSON text has no byte 0x1F. */
bool sl_gzip_is(struct sl_span bytes);

/* Appends what the members of `bytes` hold, one after the other; zero bytes after the last one are padding.
 * The buffer's maximum is the cap on what a small input may swell to. On failure: SL_REJECT, the byte in
 * `bytes`, the code "InvalidGzip", "TruncatedGzip" or "TooLarge"; the length of `out` is as before. */
enum sl_status sl_gzip_expand(struct sl_span bytes, struct sl_buffer *out,
                              struct sl_error *error) SL_MUST_USE;

/* The same piece by piece, in a fixed amount of memory (some 50 KB). */
struct sl_inflater;

struct sl_inflater *sl_inflater_new(void);
void sl_inflater_destroy(struct sl_inflater *x); /* NULL is fine */
void sl_inflater_reset(struct sl_inflater *x);   /* for another text */

/* Takes bytes from the front of `in`, and appends what they hold to `out`, until all of `in` is taken and
 * nothing waits, or `room` bytes were appended, or `out` is full. On failure: SL_REJECT, the byte among all
 * that were taken, the code "InvalidGzip"; what was appended before it stays. */
enum sl_status sl_inflater_add(struct sl_inflater *x, struct sl_span *in, size_t room, struct sl_buffer *out,
                               struct sl_error *error) SL_MUST_USE;

/* After all input: SL_REJECT, "TruncatedGzip", when it ends inside a member. */
enum sl_status sl_inflater_end(const struct sl_inflater *x, struct sl_error *error) SL_MUST_USE;

/* CRC-32 as gzip, zip, DynamoDB's x-amz-crc32 and S3's checksums have it; `crc` is 0, or the result
 * for the bytes before. */
uint32_t sl_crc32(uint32_t crc, struct sl_span bytes);

#endif
