/* Ports that say when they are at work, and for how long; and tables whose key is compared with what is
 * written, before the first write. */
#include "handlers/pipeline/ports.h"

#include "base/json_walk.h"
#include "base/span.h"

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

#define CHECKED_TABLES 8 /* a target and its side tables; more are not compared */

struct checked_table {
    struct sl_span table; /* absent: the target's own */
    bool is_known;
    uint64_t asked;      /* in this call of `apply` */
    const char *refusal; /* why nothing may be written there; NULL: its key is the one that is written */
};

struct marked_table {
    struct sl_table_port port; /* first: the handler's pointer is this one's */
    struct sl_table_port *inner;
    struct sl_port_meter *meter;
    struct sl_arena *arena; /* the process's */
    struct checked_table checked[CHECKED_TABLES];
    size_t n_checked;
    uint64_t calls; /* of `apply` */
};

/* A table whose sort key is missing takes every write, and each replaces another item's: only its description
 * can tell. So each table is asked for its key once in a process, when the first operation names it. */

bool sl_ports_has_key(const struct sl_table_facts *facts, struct sl_span name)
{
    for (size_t i = 0; i < facts->n_keys; i++)
        if (sl_span_eq(facts->keys[i].name, name))
            return true;
    return false;
}

/* Rows of side tables are named by one text. The types of the target's own key may be the record's. */
static bool has_key(const struct sl_table_facts *facts, const struct sl_table_op *op)
{
    struct sl_json_walk walk = sl_json_walk(op->key);
    struct sl_span name, value;
    size_t n = 0;
    for (; sl_json_walk_next(&walk, &name, &value); n++)
        if (!sl_ports_has_key(facts, name))
            return false;
    return n == facts->n_keys && (!op->table.ptr || facts->keys[0].type == 'S');
}

static const char *key_text(const struct sl_table_facts *facts, struct sl_arena *arena)
{
    const struct sl_table_key *k = facts->keys;
    return facts->n_keys == 2 ? sl_arena_printf(arena, "%.*s (%c) and %.*s (%c)", SL_ARG(k[0].name),
                                                k[0].type, SL_ARG(k[1].name), k[1].type)
                              : sl_arena_printf(arena, "%.*s (%c)", SL_ARG(k[0].name), k[0].type);
}

static const char *names_of(struct sl_span key, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(key), type;
    struct sl_span name, value, inner;
    const char *text = "";
    while (sl_json_walk_next(&walk, &name, &value)) {
        type = sl_json_walk(value);
        inner = SL_LIT("?");
        (void)sl_json_walk_next(&type, &inner, &value);
        text = sl_arena_printf(arena, "%s%s%.*s (%.*s)", text, *text ? " and " : "", SL_ARG(name),
                               SL_ARG(inner));
    }
    return text;
}

/* A service that does not have the table, or is out of reach, says so better when it is written. */
static void compare_key(struct marked_table *marked, struct checked_table *checked,
                        const struct sl_table_op *op, const struct sl_call *call)
{
    struct sl_table_facts facts = {.n_keys = 0};
    const int64_t now_ms = marked->meter->clock->now_ms(marked->meter->clock);
    /* The write itself needs the time more. */
    const struct sl_call first = {call->arena, now_ms + (call->deadline_ms - now_ms) / 4};
    marked->inner->describe(marked->inner, op->table, &facts, &first);
    checked->is_known = facts.result.status == SL_OK || facts.result.status == SL_FATAL;
    if (facts.result.status == SL_FATAL && strcmp(facts.result.code, "ResourceNotFoundException") != 0)
        sl_log(
            marked->meter->log, SL_INFO,
            "the key of a table was not compared with what is written: %s; dynamodb:DescribeTable is needed",
            facts.result.text);
    if (facts.result.status != SL_OK || !facts.arn.ptr || !facts.n_keys || has_key(&facts, op))
        return;
    struct sl_arena *arena = marked->arena;
    checked->refusal =
        sl_arena_printf(arena,
                        "the key that is written is %s, and that of table %.*s is %s: every write would %s; "
                        "make the table anew, or name its key in the configuration",
                        names_of(op->key, arena), SL_ARG(facts.arn), key_text(&facts, arena),
                        facts.n_keys == 1 ? "replace another item's row" : "be refused");
}

static const char *refusal_of(struct marked_table *marked, const struct sl_table_op *op,
                              const struct sl_call *call)
{
    size_t i = 0;
    while (i < marked->n_checked && !(op->table.ptr == marked->checked[i].table.ptr ||
                                      sl_span_eq(op->table, marked->checked[i].table)))
        i++;
    if (i == CHECKED_TABLES)
        return NULL;
    struct checked_table *checked = &marked->checked[i];
    if (i == marked->n_checked) {
        marked->n_checked++;
        *checked = (struct checked_table){.table = op->table};
        if (op->table.ptr)
            checked->table.ptr = sl_arena_copy(marked->arena, op->table);
    }
    if (!checked->is_known && checked->asked != marked->calls)
        compare_key(marked, checked, op, call);
    checked->asked = marked->calls;
    return checked->refusal;
}

static bool refuses(struct marked_table *marked, const struct sl_table_op *ops, size_t n,
                    struct sl_result *results, const struct sl_call *call)
{
    const char *refusal = NULL;
    marked->calls++;
    for (size_t i = 0; i < n && !refusal && marked->inner->describe; i++)
        refusal = refusal_of(marked, &ops[i], call);
    for (size_t i = 0; i < n && refusal; i++)
        results[i] = (struct sl_result){.status = SL_FATAL, .code = "KeySchema", .text = refusal};
    return refusal;
}

static void apply_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct marked_table *marked = (struct marked_table *)port;
    const int64_t began_ns = begin(marked->meter);
    marked->inner->units = port->units;
    if (!refuses(marked, ops, n, results, call))
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
                                    .inner = port,
                                    .meter = meter,
                                    .arena = arena};
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
