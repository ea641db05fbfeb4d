/* Targets that are checked and not opened: local ones would create files. */
#include "cli/dry.h"

static void nothing_objects(struct sl_object_port *port)
{
    (void)port;
}
static void nothing_table(struct sl_table_port *port)
{
    (void)port;
}
static void nothing_queue(struct sl_queue_port *port)
{
    (void)port;
}

static struct sl_object_port dry_objects = {
    .size = sizeof(dry_objects), .max_body_bytes = SIZE_MAX, .close = nothing_objects};
/* By what they can do: handlers refuse a table that lacks what they need. */
static struct sl_table_port dry_tables[SL_TABLE_ALL + 1];
static struct sl_queue_port dry_queue = {
    .size = sizeof(dry_queue), .max_message_bytes = 256 * 1024, .close = nothing_queue};

/* Opening an AWS target sends nothing, and makes its own checks. Opening a local one would create files. */
static enum sl_status look_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct sl_object_port *port = NULL;
    enum sl_status status =
        sl_target_is_local(url) ? sl_target_check(url, error) : sl_target_objects(sinks, url, &port, error);
    if (port)
        port->close(port);
    *out = &dry_objects;
    return status;
}

static enum sl_status look_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    struct sl_table_port *port = NULL;
    enum sl_status status =
        sl_target_is_local(url) ? sl_target_check(url, error) : sl_target_table(sinks, url, &port, error);
    struct sl_table_port *dry = &dry_tables[port ? port->can & SL_TABLE_ALL : SL_TABLE_ALL];
    *dry = (struct sl_table_port){.size = sizeof(*dry),
                                  .max_item_bytes = 400 * 1024,
                                  .close = nothing_table,
                                  .can = (uint32_t)(dry - dry_tables)};
    if (port)
        port->close(port);
    *out = dry;
    return status;
}

typedef enum sl_status (*open_fn)(struct sl_sinks *, struct sl_span, struct sl_queue_port **,
                                  struct sl_error *);

static enum sl_status look(struct sl_sinks *sinks, struct sl_span url, open_fn open,
                           struct sl_queue_port **out, struct sl_error *error)
{
    struct sl_queue_port *port = NULL;
    bool was_dry = sinks->is_dry;
    sinks->is_dry = true;
    enum sl_status status =
        sl_target_is_local(url) ? sl_target_check(url, error) : open(sinks, url, &port, error);
    sinks->is_dry = was_dry;
    if (port)
        port->close(port);
    *out = &dry_queue;
    return status;
}

static enum sl_status look_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    return look(sinks, url, sl_target_queue, out, error);
}

static enum sl_status look_spans(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    return look(sinks, url, sl_target_spans, out, error);
}

const struct sl_openers sl_dry_openers = {sl_target_kind, look_objects, look_table, look_queue, look_spans};
