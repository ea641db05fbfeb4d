/* One call of a port for a slice: results made, deadline set, operations applied. */
#include "handlers/builtin/toolkit/apply.h"

#include "base/arena.h"
#include "base/array.h"

static struct sl_call call_of(const struct sl_slice *slice)
{
    return (struct sl_call){.arena = slice->arena, .deadline_ms = slice->deadline_ms};
}

struct sl_result *sl_apply_objects(const struct sl_slice *slice, struct sl_object_port *port,
                                   const struct sl_object *objects, size_t n)
{
    struct sl_result *results = sl_arena_zalloc(slice->arena, n * sizeof(*results));
    struct sl_call call = call_of(slice);
    if (n > 0)
        port->apply(port, objects, n, results, &call);
    return results;
}

struct sl_result *sl_apply_table(const struct sl_slice *slice, struct sl_table_port *port,
                                 const struct sl_table_op *ops, size_t n)
{
    struct sl_result *results = sl_arena_zalloc(slice->arena, n * sizeof(*results));
    struct sl_call call = call_of(slice);
    if (n > 0)
        port->apply(port, ops, n, results, &call);
    return results;
}

struct sl_result *sl_apply_messages(const struct sl_slice *slice, struct sl_queue_port *port,
                                    const struct sl_message *messages, size_t n)
{
    struct sl_result *results = sl_arena_zalloc(slice->arena, n * sizeof(*results));
    struct sl_call call = call_of(slice);
    if (n > 0)
        port->apply(port, messages, n, results, &call);
    return results;
}
