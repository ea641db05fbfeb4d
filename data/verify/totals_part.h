/* Sums of some of the rows as an object: what many machines scan, and others judge.
 *
 * Behind the head (data/verify/part.h), whose "digest" is the ledgers' rows, added up, it has lines, in the
 * order of their shares, which their homes decide:
 *
 *   {"key":{"M":{...}},"name":"n","numbers":["12"],"rows":"9c","mark":{"N":"1"}} */
#ifndef SL_DATA_VERIFY_TOTALS_PART_H
#define SL_DATA_VERIFY_TOTALS_PART_H

#include "data/verify/part.h"
#include "data/verify/totals_rows.h"

/* The sums of one scan, `scan`. SL_FATAL, code "BeyondNumbers": a sum has a digit where no number has one. */
enum sl_status sl_totals_part_write(struct sl_totals_sums *sums, enum sl_totals_scan scan,
                                    const struct sl_part_head *head, struct sl_buffer *out,
                                    struct sl_error *error) SL_MUST_USE;

/* Adds lines to the sums, as what `rows->scan` has seen. On failure: SL_REJECT, code "BadPart". */
enum sl_status sl_totals_part_take(struct sl_totals_rows *rows, struct sl_span lines,
                                   struct sl_error *error) SL_MUST_USE;

/* What is not settled after a round, for the next one, as lines; and those read, into empty sums. */
enum sl_status sl_totals_rest_write(struct sl_totals_sums *sums, struct sl_buffer *out,
                                    struct sl_error *error) SL_MUST_USE;
enum sl_status sl_totals_rest_take(struct sl_totals_rows *rows, struct sl_span lines,
                                   struct sl_error *error) SL_MUST_USE;

#endif
