/* Ports that say when they are at work, and for how long. */
#include "handlers/pipeline/ports.h"

static int64_t begin(const struct sl_port_meter *meter)
{
    meter->log->is_in_port = true;
    return meter->clock->now_ns(meter->clock);
}

static void end(struct sl_port_meter *meter, int64_t began_ns)
{
    meter->log->is_in_port = false;
    meter->ns += (uint64_t)(meter->clock->now_ns(meter->clock) - began_ns);
}

/* ---- objects ---- */

struct marked_objects {
    struct sl_object_port port; /* first: the handler's pointer is this one's */
    struct sl_object_port *inner;
    struct sl_port_meter *meter;
};

static void apply_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    const struct marked_objects *marked = (const struct marked_objects *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->apply(marked->inner, objects, n, results, call);
    end(marked->meter, began_ns);
}

static void close_objects(struct sl_object_port *port)
{
    const struct marked_objects *marked = (const struct marked_objects *)port;
    marked->inner->close(marked->inner);
}

static void read_objects(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                         struct sl_object_piece *pieces, const struct sl_call *call)
{
    const struct marked_objects *marked = (const struct marked_objects *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->read(marked->inner, reads, n, pieces, call);
    end(marked->meter, began_ns);
}

static void list_objects(struct sl_object_port *port, const struct sl_object_list *list,
                         struct sl_object_page *page, const struct sl_call *call)
{
    const struct marked_objects *marked = (const struct marked_objects *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->list(marked->inner, list, page, call);
    end(marked->meter, began_ns);
}

static void remove_objects(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    const struct marked_objects *marked = (const struct marked_objects *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->remove(marked->inner, removals, n, results, call);
    end(marked->meter, began_ns);
}

_Static_assert(sizeof(struct sl_object_port) == 7 * sizeof(void *),
               "a new function of the port is to be marked here");

struct sl_object_port *sl_ports_mark_objects(struct sl_object_port *port, struct sl_port_meter *meter,
                                             struct sl_arena *arena)
{
    struct marked_objects *marked = sl_arena_alloc(arena, sizeof(*marked));
    *marked = (struct marked_objects){{.size = sizeof(*port),
                                       .max_body_bytes = port->max_body_bytes,
                                       .apply = apply_objects,
                                       .close = close_objects,
                                       .read = port->read ? read_objects : NULL,
                                       .list = port->list ? list_objects : NULL,
                                       .remove = port->remove ? remove_objects : NULL},
                                      port,
                                      meter};
    return &marked->port;
}

/* ---- table ---- */

struct marked_table {
    struct sl_table_port port; /* first: the handler's pointer is this one's */
    struct sl_table_port *inner;
    struct sl_port_meter *meter;
};

static void apply_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    const struct marked_table *marked = (const struct marked_table *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->units = port->units;
    marked->inner->apply(marked->inner, ops, n, results, call);
    end(marked->meter, began_ns);
}

static void close_table(struct sl_table_port *port)
{
    const struct marked_table *marked = (const struct marked_table *)port;
    marked->inner->close(marked->inner);
}

static void scan_table(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                       struct sl_table_page *pages, const struct sl_call *call)
{
    const struct marked_table *marked = (const struct marked_table *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->units = port->units;
    marked->inner->scan(marked->inner, scans, n, pages, call);
    end(marked->meter, began_ns);
}

static void describe_table(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                           const struct sl_call *call)
{
    const struct marked_table *marked = (const struct marked_table *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->describe(marked->inner, table, facts, call);
    end(marked->meter, began_ns);
}

_Static_assert(sizeof(struct sl_table_port) == 8 * sizeof(void *),
               "a new function of the port is to be marked here");

struct sl_table_port *sl_ports_mark_table(struct sl_table_port *port, struct sl_port_meter *meter,
                                          struct sl_arena *arena)
{
    struct marked_table *marked = sl_arena_alloc(arena, sizeof(*marked));
    *marked = (struct marked_table){{.size = sizeof(*port),
                                     .max_item_bytes = port->max_item_bytes,
                                     .apply = apply_table,
                                     .close = close_table,
                                     .scan = port->scan ? scan_table : NULL,
                                     .describe = port->describe ? describe_table : NULL,
                                     .can = port->can},
                                    port,
                                    meter};
    return &marked->port;
}

/* ---- queue ---- */

struct marked_queue {
    struct sl_queue_port port; /* first: the handler's pointer is this one's */
    struct sl_queue_port *inner;
    struct sl_port_meter *meter;
};

static void apply_queue(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    const struct marked_queue *marked = (const struct marked_queue *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->apply(marked->inner, messages, n, results, call);
    end(marked->meter, began_ns);
}

static void close_queue(struct sl_queue_port *port)
{
    const struct marked_queue *marked = (const struct marked_queue *)port;
    marked->inner->close(marked->inner);
}

_Static_assert(sizeof(struct sl_queue_port) == 4 * sizeof(void *),
               "a new function of the port is to be marked here");

struct sl_queue_port *sl_ports_mark_queue(struct sl_queue_port *port, struct sl_port_meter *meter,
                                          struct sl_arena *arena)
{
    struct marked_queue *marked = sl_arena_alloc(arena, sizeof(*marked));
    *marked = (struct marked_queue){
        {sizeof(*port), port->max_message_bytes, apply_queue, close_queue}, port, meter};
    return &marked->port;
}
