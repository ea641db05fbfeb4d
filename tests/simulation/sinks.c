/* Where the handlers write: a bucket, queues and tables in memory. Each call may meet a planned fault. */
#include "tests/simulation/sim.h"

#include "base/span.h"

#include <stdlib.h>

/* ---- faults ---- */

static enum sim_fault draw_fault(struct sim *s, enum sim_port port)
{
    if (!s->plan.one_in[port] || s->clock.ms > SIM_FAULTY_MS || sim_draw(s, s->plan.one_in[port]))
        return SIM_WELL;
    enum sim_fault fault = (enum sim_fault)(1 + sim_draw(s, SIM_FAULTS - 1));
    return s->plan.faults & 1u << fault ? fault : SIM_WELL;
}

/* Lets time pass, but not beyond the deadline. False: the deadline came first. */
static bool pass_time(struct sim *s, int64_t ms, int64_t deadline_ms)
{
    int64_t left = deadline_ms - s->clock.ms;
    bool fits = ms < left;
    s->clock.clock.sleep_ms(&s->clock.clock, fits ? ms : left);
    return fits;
}

enum sim_fault sim_meets(struct sim *s, enum sim_port port, int64_t deadline_ms)
{
    if (s->has_crashed)
        return SIM_CRASH_BEFORE;
    sim_drain_beside(s);
    if (s->clock.ms < s->plan.outage_to_ms[port] && s->clock.ms >= s->plan.outage_from_ms[port])
        return SIM_THROTTLE;
    if (!pass_time(s, 1 + (int64_t)sim_draw(s, 5), deadline_ms))
        return SIM_THROTTLE;
    enum sim_fault fault = draw_fault(s, port);
    if (fault == SIM_SLOW)
        return pass_time(s, (int64_t)sim_draw(s, 2000), deadline_ms) ? SIM_WELL : SIM_THROTTLE;
    if (fault == SIM_HANG || fault == SIM_HANG_DONE)
        pass_time(s, INT64_MAX / 2, deadline_ms);
    s->has_crashed = fault == SIM_CRASH_BEFORE || fault == SIM_CRASH_AFTER;
    return fault;
}

bool sim_fault_is_done(enum sim_fault fault)
{
    return fault == SIM_WELL || fault == SIM_LOST || fault == SIM_HANG_DONE || fault == SIM_CRASH_AFTER;
}

/* The answer to one operation of a call. True: the operation is done. */
static bool meet(struct sim *s, enum sim_port port, enum sim_fault fault, struct sl_result *result)
{
    *result = (struct sl_result){.status = SL_OK};
    if (s->plan.broken == (int)port) {
        *result = (struct sl_result){.status = SL_FATAL, .code = "AccessDenied", .text = "not allowed"};
        return false;
    }
    if (fault == SIM_PARTIAL)
        fault = sim_draw(s, 2) ? SIM_WELL : SIM_THROTTLE;
    if (fault != SIM_WELL)
        *result = (struct sl_result){.status = SL_RETRY, .code = "Throttled", .text = "slow down"};
    return sim_fault_is_done(fault);
}

static bool has_part(struct sl_span text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* ---- object store ---- */

struct store {
    struct sl_object_port port;
    struct sim *s;
    enum sim_port which;
};

static void note_lines(struct sim *s, struct sl_span body)
{
    struct sim_change *change;
    for (size_t at = 0; (change = sim_next_change(s, body, &at));)
        change->archived++;
}

static void keep_object(struct sim *s, const struct sl_object *object)
{
    for (size_t i = 0; i < s->n_objects; i++) {
        if (!sl_span_eq(s->objects[i].key, object->key))
            continue;
        if (!sl_span_eq(s->objects[i].body, object->body))
            sim_violation(s, "object %.*s was written again with other content", SL_ARG(object->key));
        return;
    }
    if (s->n_objects == SIM_OBJECTS) {
        sim_violation(s, "more than %d objects", SIM_OBJECTS);
        return;
    }
    struct sim_object *kept = &s->objects[s->n_objects++];
    kept->key = sl_span(sl_arena_copy(s->arena, object->key), object->key.len);
    kept->body = sl_span(sl_arena_copy(s->arena, object->body), object->body.len);
    note_lines(s, kept->body);
}

static void store_close(struct sl_object_port *port)
{
    free(port);
}

/* ---- queues ---- */

struct queue {
    struct sl_queue_port port;
    struct sim *s;
    enum sim_port which;
};

static void note_message(struct sim *s, enum sim_port port, struct sl_span body)
{
    const char *space = memchr(body.ptr, ' ', body.len);
    struct sim_change *change = sim_change_of(s, sl_span_from(body, (size_t)(space - body.ptr) + 1));
    if (!change) {
        sim_violation(s, "a message belongs to no record: %.*s", SL_ARG(body));
        return;
    }
    unsigned *sent = &change->sent[port == SIM_PORT_ECHO];
    if (!*sent && !(s->aside & 1u << (port == SIM_PORT_ECHO ? SIM_ECHO : SIM_NOTIFY)))
        sim_check_applied(s, change, port == SIM_PORT_ECHO ? SIM_ECHO : SIM_NOTIFY);
    if ((*sent)++ && !s->plan.is_uncertain)
        sim_violation(s, "the message of %s was sent twice", change->id);
}

static void note_parked(struct sim *s, struct sl_span body)
{
    size_t at = 0;
    struct sim_change *change = sim_next_change(s, body, &at);
    enum sim_route route = sim_route_in(body);
    if (!change || route == SIM_ROUTES)
        sim_violation(s, "a parked message belongs to no known record and route");
    else if (!(change->poison & 1u << route))
        sim_violation(s, "%s was parked by route %u, but can succeed there", change->id, route);
    else if (change->parked[route]++ && !s->plan.is_uncertain)
        sim_violation(s, "%s was parked twice by route %u", change->id, route);
    /* A missing total is found before the table is called. */
    if (s->plan.broken >= 0 && (int)route == s->plan.broken && route != SIM_TOTALS)
        sim_violation(s, "%s was parked by a route whose environment is broken", change ? change->id : "");
}

static void store_apply(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct store *store = (struct store *)port;
    struct sim *s = store->s;
    enum sim_fault fault = sim_meets(s, store->which, call->deadline_ms);
    for (size_t i = 0; i < n; i++) {
        bool done = meet(s, store->which, fault, &results[i]);
        if (!done)
            continue;
        if (store->which == SIM_PORT_BOX)
            note_parked(s, objects[i].body);
        else if (has_part(objects[i].body, "\"pa\":"))
            results[i] =
                (struct sl_result){.status = SL_REJECT, .code = "InvalidObject", .text = "refused for good"};
        else
            keep_object(s, &objects[i]);
    }
}

/* In one order, no message overtakes one that was refused. */
static bool is_after_a_failure(const struct sl_message *messages, struct sl_result *results, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (results[k].status != SL_RETRY || !messages[i].order.len ||
            !sl_span_eq(messages[k].order, messages[i].order))
            continue;
        results[i] = results[k];
        return true;
    }
    return false;
}

static void queue_apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct queue *queue = (struct queue *)port;
    struct sim *s = queue->s;
    enum sim_fault fault = sim_meets(s, queue->which, call->deadline_ms);
    for (size_t i = 0; i < n; i++) {
        bool done = !is_after_a_failure(messages, results, i) && meet(s, queue->which, fault, &results[i]);
        if (!done)
            continue;
        if (messages[i].body.len > queue->port.max_message_bytes)
            sim_violation(s, "a message of %zu bytes is larger than its queue takes", messages[i].body.len);
        else if (queue->which == SIM_PORT_DLQ)
            note_parked(s, messages[i].body);
        else if (queue->which == SIM_PORT_ASIDE)
            sim_keep_letter(s, messages[i].body);
        else if (messages[i].body.ptr[0] == 'P')
            results[i] =
                (struct sl_result){.status = SL_REJECT, .code = "InvalidMessage", .text = "refused for good"};
        else
            note_message(s, queue->which, messages[i].body);
    }
}

static void queue_close(struct sl_queue_port *port)
{
    free(port);
}

/* ---- tables ---- */

struct table {
    struct sl_table_port port;
    struct sim *s;
    enum sim_port which;
};

static void table_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct table *table = (struct table *)port;
    const struct sim_table_call c = {table->which, ops, n, results, call};
    sim_table_apply(table->s, &c);
}

static void table_close(struct sl_table_port *port)
{
    free(port);
}

/* ---- opening ---- */

static enum sl_port_kind kind_of(struct sl_span url)
{
    if (sl_span_is(url, "sim:archive") || sl_span_is(url, "sim:box"))
        return SL_PORT_OBJECTS;
    return sl_span_starts(url, SL_LIT("sqs:")) || sl_span_is(url, "sim:queue") ||
                   sl_span_is(url, "sim:echo") || sl_span_is(url, "sim:dlq")
               ? SL_PORT_QUEUE
               : SL_PORT_TABLE;
}

static void *must(void *p)
{
    if (!p)
        sl_die("out of memory");
    return p;
}

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct store *store = must(calloc(1, sizeof(*store)));
    (void)sinks, (void)error;
    *store = (struct store){
        {.size = sizeof(store->port), .max_body_bytes = 1 << 20, .apply = store_apply, .close = store_close},
        sim_now,
        sl_span_is(url, "sim:box") ? SIM_PORT_BOX : SIM_PORT_ARCHIVE};
    *out = &store->port;
    return SL_OK;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    struct queue *queue = must(calloc(1, sizeof(*queue)));
    (void)sinks, (void)error;
    size_t most = sl_span_is(url, "sim:dlq") && sim_now->dlq_bytes ? sim_now->dlq_bytes : 1 << 18;
    *queue = (struct queue){{sizeof(queue->port), most, queue_apply, queue_close},
                            sim_now,
                            sl_span_starts(url, SL_LIT("sqs:")) ? SIM_PORT_ASIDE
                            : sl_span_is(url, "sim:dlq")        ? SIM_PORT_DLQ
                            : sl_span_is(url, "sim:echo")       ? SIM_PORT_ECHO
                                                                : SIM_PORT_QUEUE};
    *out = &queue->port;
    return SL_OK;
}

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    struct table *table = must(calloc(1, sizeof(*table)));
    (void)sinks, (void)error;
    *table = (struct table){{.size = sizeof(table->port),
                             .max_item_bytes = 400 * 1024,
                             .can = SL_TABLE_ALL,
                             .apply = table_apply,
                             .close = table_close},
                            sim_now,
                            sl_span_is(url, "sim:replica") ? SIM_PORT_REPLICA
                            : sl_span_is(url, "sim:view")  ? SIM_PORT_VIEW
                                                           : SIM_PORT_TOTALS};
    *out = &table->port;
    return SL_OK;
}

const struct sl_openers sim_openers = {
    .kind = kind_of, .objects = open_objects, .table = open_table, .queue = open_queue};
