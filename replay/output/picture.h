/* `--report`: a picture of a replay, as one HTML file that needs no other file.
 *
 * Each invocation is a line, in the order of time from top to bottom; the shard's records run from left to
 * right. A bar covers the records of an invocation; its colour is the decision. Batches, halves, retries and
 * discards are visible at once. A bar's tooltip has the details. */
#ifndef SL_REPLAY_OUTPUT_PICTURE_H
#define SL_REPLAY_OUTPUT_PICTURE_H

#include "replay/output/summary.h"

struct sl_picture;

struct sl_picture *sl_picture_new(void);
void sl_picture_destroy(struct sl_picture *report); /* NULL is fine */

/* Adds an invocation; borrows nothing. */
void sl_picture_add(struct sl_picture *report, const struct sl_esm_invocation *inv,
                    const struct sl_esm_result *result, const struct sl_esm_decision *decision);

/* Whether the file can be written; else errno says why. Asked before the replay begins. */
bool sl_picture_can_write(const char *path);

/* Writes another file, and renames it to `path`. */
enum sl_status sl_picture_write(const struct sl_picture *report, const char *path,
                                const struct sl_summary *summary, struct sl_error *error) SL_MUST_USE;

#endif
