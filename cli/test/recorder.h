/* Targets that keep what the routes of one configuration do to them, and touch nothing outside.
 *
 * Each target's text is checked as if it were opened. Objects and messages are taken; tables are SQLite's, in
 * a folder of the recorder, so that conditions, transactions and totals are real. What a table then holds of
 * the rows that were touched is what counts, not how often it was written; attributes of Sluice's own
 * (sluice_order and the like) and tables beside the target (ledgers, guards) are not shown. */
#ifndef SL_CLI_TEST_RECORDER_H
#define SL_CLI_TEST_RECORDER_H

#include "handlers/pipeline/pipeline.h"

struct sl_recorder;

/* `folder` is empty, and the caller's to remove. `log` is the pipeline's: it knows whose handler is running.
 * All lives in `arena`. One at a time: the openers have no other way to know it. */
struct sl_recorder *sl_recorder_new(const char *folder, const struct sl_log *log, struct sl_arena *arena);
extern const struct sl_openers sl_recorder_openers;

/* Appends what the route did, one JSON object a line, each with ",\n" after it: messages in their order, then
 * objects and rows in the order of their keys.
 *
 *   {"route":"hook","message":{...}}              with "subject" and "attributes", if it has them
 *   {"route":"archive","object":"key","lines":[...]}
 *   {"route":"totals","row":{...}}                as plain JSON (docs/TEST.md)
 *   {"route":"totals","gone":{"PK":"..."}}        there is no such row, or a mark that it was deleted */
void sl_recorder_add_route(const struct sl_recorder *r, struct sl_span route, struct sl_buffer *out);

#endif
