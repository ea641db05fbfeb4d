/* Queues as lines of JSON: `jsonl:file` and `stdout:`.
 *
 * A message that is JSON becomes a line as it is (line breaks between tokens become spaces); any other text
 * becomes a JSON string. jsonl: lines are appended under a lock, so that several processes may share the
 * file, and synced before they count as sent. A line that a killed writer left unfinished is cut off
 * before the next append. */
#ifndef SL_SINKS_LINES_H
#define SL_SINKS_LINES_H

#include "sinks/target.h"

enum sl_status sl_jsonl_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                             struct sl_error *error) SL_MUST_USE;
enum sl_status sl_stdout_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                              struct sl_error *error) SL_MUST_USE;
/* The text of the targets alone; nothing is opened or created. */
enum sl_status sl_jsonl_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_stdout_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;

#endif
