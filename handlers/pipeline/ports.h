/* Ports that say when they are at work: `log->is_in_port` is true while one of their functions runs. So the
 * process that dies there, and the one that asks why, know that the handler was not running. The meter counts
 * the time. A table's is asked for its key before the first write, and what has another key is refused
 * ("KeySchema"). */
#ifndef SL_HANDLERS_PIPELINE_PORTS_H
#define SL_HANDLERS_PIPELINE_PORTS_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "sinks/port.h"

/* One for all ports of a pipeline: its handlers run one after the other, and a port does not call another. */
struct sl_port_meter {
    struct sl_log *log;
    struct sl_clock *clock;
    uint64_t ns; /* that the ports' functions took */
};

/* Takes ownership of `port`; the result is in `arena`, and is closed with its `close`. Borrows `meter`. */
struct sl_object_port *sl_ports_mark_objects(struct sl_object_port *port, struct sl_port_meter *meter,
                                             struct sl_arena *arena);
struct sl_table_port *sl_ports_mark_table(struct sl_table_port *port, struct sl_port_meter *meter,
                                          struct sl_arena *arena);
struct sl_queue_port *sl_ports_mark_queue(struct sl_queue_port *port, struct sl_port_meter *meter,
                                          struct sl_arena *arena);

/* Is it the name of one of the table's key attributes? */
bool sl_ports_has_key(const struct sl_table_facts *facts, struct sl_span name);

#endif
