/* `--report`: a picture of a replay as one HTML file that needs nothing else.
 *
 * Time runs down, a line per invocation; across run the shard's records. A bar covers the records that an
 * invocation was given, in the colour of what was decided, so that batches, halves, retries and what was
 * given up are seen at once. Pointing at a bar tells the rest. */
#ifndef SL_REPLAY_REPORT_H
#define SL_REPLAY_REPORT_H

#include "replay/summary.h"

struct sl_report;

struct sl_report *sl_report_new(void);
void sl_report_destroy(struct sl_report *report); /* NULL is fine */

/* Notes an invocation; nothing is borrowed. */
void sl_report_add(struct sl_report *report, const struct sl_esm_invocation *inv,
                   const struct sl_esm_result *result, const struct sl_esm_decision *decision);

/* Whether the file can be written, asked before the work; else errno says why not. */
bool sl_report_can_write(const char *path);

/* Writes the file aside and renames it. */
enum sl_status sl_report_write(const struct sl_report *report, const char *path,
                               const struct sl_summary *summary, struct sl_error *error) SL_MUST_USE;

#endif
