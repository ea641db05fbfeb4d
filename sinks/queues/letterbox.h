/* The queue that a drain gets letters from, as far as the drain asks for something itself: messages are
 * delivered, removed and given back by the event source mapping. */
#ifndef SL_SINKS_QUEUES_LETTERBOX_H
#define SL_SINKS_QUEUES_LETTERBOX_H

#include "sinks/target.h"

struct sl_letterbox;

/* `queue`: its ARN. SL_FATAL: it is not one. Sends nothing. */
enum sl_status sl_letterbox_open(struct sl_sinks *sinks, struct sl_span queue, struct sl_letterbox **out,
                                 struct sl_error *error) SL_MUST_USE;
void sl_letterbox_close(struct sl_letterbox *box); /* NULL is fine */

/* Is it this queue's? */
bool sl_letterbox_is_of(const struct sl_letterbox *box, struct sl_span queue);

/* Nobody gets the message for `seconds` seconds. */
void sl_letterbox_hide(struct sl_letterbox *box, struct sl_span receipt, int64_t seconds,
                       const struct sl_call *call);

/* Does each mapping of the function from this queue have ReportBatchItemFailures? Without it, any answer
 * deletes the whole batch. SL_REJECT, "NoItemFailures": one has not; the error says what to do. Others:
 * Lambda could not be asked (lambda:ListEventSourceMappings). */
enum sl_status sl_letterbox_check_mapping(struct sl_letterbox *box, const char *function,
                                          const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

#endif
