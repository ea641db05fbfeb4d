/* Sums of some of the rows as an object: what many machines scan, and others judge.
 *
 * The object has a head of SL_TOTALS_HEAD_BYTES, filled up with blanks, and lines:
 *
 *   {"before":"NAME","digest":"1f","ends":[120,250,...]}
 *   {"key":{"M":{...}},"name":"n","numbers":["12"],"rows":"9c","mark":{"N":"1"}}
 *
 * "before" names the object of the same rows' scan that this one continues. The lines are in the order of
 * SL_TOTALS_SHARES shares, by their homes, and "ends" says at which byte after the head each share ends: so
 * a reader of some shares needs only their bytes. */
#ifndef SL_DATA_VERIFY_TOTALS_PART_H
#define SL_DATA_VERIFY_TOTALS_PART_H

#include "data/verify/totals_rows.h"

#define SL_TOTALS_SHARES     256
#define SL_TOTALS_HEAD_BYTES ((size_t)4096)

struct sl_totals_head {
    struct sl_span before; /* absent: it is the first one */
    uint64_t digest;       /* of the ledgers' rows, added up */
    uint64_t ends[SL_TOTALS_SHARES];
};

/* The sums of one scan, `scan`. SL_FATAL, code "BeyondNumbers": a sum has a digit where no number has one. */
enum sl_status sl_totals_part_write(struct sl_totals_sums *sums, enum sl_totals_scan scan,
                                    const struct sl_totals_head *head, struct sl_buffer *out,
                                    struct sl_error *error) SL_MUST_USE;

/* On failure: SL_REJECT, code "BadPart". */
enum sl_status sl_totals_head_read(struct sl_span text, struct sl_arena *arena, struct sl_totals_head *out,
                                   struct sl_error *error) SL_MUST_USE;

/* Adds lines to the sums, as what `rows->scan` has seen. */
enum sl_status sl_totals_part_take(struct sl_totals_rows *rows, struct sl_span lines,
                                   struct sl_error *error) SL_MUST_USE;

/* What is not settled after a round, for the next one, as lines; and those read, into empty sums. */
enum sl_status sl_totals_rest_write(struct sl_totals_sums *sums, struct sl_buffer *out,
                                    struct sl_error *error) SL_MUST_USE;
enum sl_status sl_totals_rest_take(struct sl_totals_rows *rows, struct sl_span lines,
                                   struct sl_error *error) SL_MUST_USE;

#endif
