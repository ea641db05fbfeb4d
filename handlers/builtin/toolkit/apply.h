/* One call of a port for a slice, under the slice's deadline.
 *
 * Each returns the operations' results, zeroed before the call, in the slice's arena. Without operations the
 * port is not called. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_APPLY_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_APPLY_H

#include "handlers/handler.h"

struct sl_result *sl_apply_objects(const struct sl_slice *slice, struct sl_object_port *port,
                                   const struct sl_object *objects, size_t n);

struct sl_result *sl_apply_table(const struct sl_slice *slice, struct sl_table_port *port,
                                 const struct sl_table_op *ops, size_t n);

struct sl_result *sl_apply_messages(const struct sl_slice *slice, struct sl_queue_port *port,
                                    const struct sl_message *messages, size_t n);

#endif
