/* Parking: rejected records go to their routes' failure destinations. */
#include "base/clock.h"
#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"
#include "streams/template/template.h"

/* Members are only ever added within one format number; readers check the number. */
#define FORMAT 1

/* Records parked in one step. The step grows while all goes well: when a destination fails, few copies are
 * sent twice. Ten are one SQS request. */
#define FIRST_STEP 10
#define LAST_STEP  160

/* An event's record, and its envelope. A message that does not fit is not sent: a cut one would be worse. */
#define MESSAGE_BYTES (8 * 1024 * 1024)

struct parcel {
    const struct sl_parked *parked;
    size_t target; /* which of its route's targets is tried */
    struct sl_span body;
    const struct sl_why *refused; /* why an earlier target cannot take it; a FATAL one is kept */
    bool is_durable, is_remembered;
    const struct sl_why *why; /* why it cannot be parked; NULL while it still can */
};

/* ---- the message ---- */

/* One line of JSON. */
static void write_message(const struct sl_dispatch *d, const struct sl_parked *parked, struct sl_buffer *out)
{
    const struct sl_record *record = sl_batch_record(d->batch, parked->index);
    struct sl_span source = sl_record_text(record, SL_FIELD_SOURCE_ARN);
    char time[SL_TIME_BYTES];
    sl_time_text(d->clock->wall_ns(d->clock), time);
    sl_buffer_add_char(out, '{');
    sl_json_add_integer(out, "sluiceParked", FORMAT);
    sl_json_add_member(out, "time", sl_span_str(time));
    sl_json_add_member(out, "route", sl_span_str(parked->route->config->name));
    sl_json_add_member(out, "handler", sl_span_str(parked->route->config->handler));
    sl_json_add_member(out, "status", sl_span_str(sl_status_name(parked->why->status)));
    sl_json_add_member(out, "code", sl_span_str(parked->why->code));
    sl_json_add_member(out, "message", sl_span_str(parked->why->text));
    sl_json_add_member(out, "requestId", sl_span_str(d->request_id));
    sl_json_add_member(out, "functionArn", sl_span_str(d->function_arn));
    if (d->trace_id[0])
        sl_json_add_member(out, "traceId", sl_span_str(d->trace_id));
    if (parked->route->aside
            .has_epoch) /* redriven under a later one, the record must not beat what is newer */
        sl_json_add_integer(out, "epoch", parked->route->aside.epoch);
    sl_json_add_member(out, "streamArn", source.ptr ? source : d->batch->source_arn);
    sl_json_add_raw(out, "record", SL_LIT(""));
    sl_json_add_compact(out, sl_record_text(record, SL_FIELD_RAW));
    sl_buffer_add_char(out, '}');
}

static struct sl_span message_of(const struct sl_dispatch *d, const struct sl_parked *parked)
{
    struct sl_buffer buffer;
    sl_buffer_init(&buffer, MESSAGE_BYTES);
    write_message(d, parked, &buffer);
    struct sl_span body = {0};
    if (!buffer.failed)
        body = sl_span(sl_arena_copy(d->arena, sl_buffer_span(&buffer)), buffer.len);
    sl_buffer_clean_up(&buffer);
    return body;
}

/* A record of a route always has the same key, so that parking it again leaves one object:
 * route/2026/11/20/sequence-event.json, by the date of the change. */
static struct sl_span object_key(struct sl_dispatch *d, const struct sl_parked *parked)
{
    const struct sl_record *record = sl_batch_record(d->batch, parked->index);
    char time[SL_TIME_BYTES];
    sl_time_text(sl_record_created_ns(record), time);
    struct sl_buffer buffer;
    sl_buffer_init(&buffer, 4096);
    sl_buffer_printf(&buffer, "%s/%.4s/%.2s/%.2s/", parked->route->config->name, time, time + 5, time + 8);
    sl_escape_text(sl_record_text(record, SL_FIELD_IDENTIFIER), SL_ESCAPE_PATH, &buffer);
    struct sl_span event_id = sl_record_text(record, SL_FIELD_EVENT_ID);
    if (event_id.len) {
        sl_buffer_add_char(&buffer, '-');
        sl_escape_text(event_id, SL_ESCAPE_PATH, &buffer);
    }
    sl_buffer_add_str(&buffer, ".json");
    struct sl_span key = sl_span(sl_arena_copy(d->arena, sl_buffer_span(&buffer)), buffer.len);
    sl_buffer_clean_up(&buffer);
    return key;
}

/* ---- sending ---- */

static struct sl_failure_target *target_of(const struct parcel *parcel)
{
    return parcel->parked->route->targets[parcel->target];
}

static size_t most_bytes(const struct sl_failure_target *target)
{
    return target->queue ? target->queue->max_message_bytes : target->objects->max_body_bytes;
}

static bool is_open(const struct parcel *parcel)
{
    return !parcel->is_durable && !parcel->why;
}

/* Why the parcel's target cannot take it; NULL: it can. */
static const struct sl_why *refusal(struct sl_dispatch *d, const struct parcel *parcel)
{
    const struct sl_failure_target *target = target_of(parcel);
    const struct sl_why *broken = d->broken ? d->broken[target - d->p->targets] : NULL;
    size_t most = most_bytes(target);
    if (broken || (parcel->body.ptr && (!most || parcel->body.len <= most)))
        return broken;
    const char *text = sl_arena_printf(d->arena, "the message has more than %d bytes", MESSAGE_BYTES);
    if (parcel->body.ptr)
        text = sl_arena_printf(d->arena, "the message has %zu bytes, more than %.*s takes (%zu)",
                               parcel->body.len, SL_ARG(target->name), most);
    return sl_dispatch_why(d, SL_REJECT, "TooLarge", text);
}

/* That a target is broken says more than that another one's limit is too low. */
static void refuse(struct parcel *parcel, const struct sl_why *why)
{
    if (!parcel->refused || parcel->refused->status != SL_FATAL)
        parcel->refused = why;
    parcel->target++;
}

/* Chooses the first target that can take it, from its current one on. */
static void choose_target(struct sl_dispatch *d, struct parcel *parcel)
{
    const struct sl_parked *parked = parcel->parked;
    const struct sl_why *why;
    while (parcel->target < parked->route->n_targets) {
        if (!(why = refusal(d, parcel)))
            return;
        refuse(parcel, why);
    }
    why = parcel->refused;
    parcel->why = sl_dispatch_why(
        d, why->status, why->code,
        sl_arena_printf(d->arena, "cannot be parked: %s; it was rejected: %s", why->text, parked->why->text));
}

/* Nothing more of this batch is sent to the target: the next one of `on_failure` is used, if there is one. */
static void note_broken(struct sl_dispatch *d, const struct parcel *parcel, const struct sl_why *why)
{
    const struct sl_failure_target *target = target_of(parcel);
    size_t i = (size_t)(target - d->p->targets);
    if (!d->broken)
        d->broken = sl_arena_zalloc(d->arena, d->p->n_targets * sizeof(struct sl_why *));
    if (!d->broken[i] && parcel->target + 1 < parcel->parked->route->n_targets)
        sl_log(d->p->options.log, SL_WARN,
               "rejected records cannot be parked in %.*s: %s: %s; the next target of on_failure is used",
               SL_ARG(target->name), why->code, why->text);
    d->broken[i] = why;
}

/* An object's key names its record. So where the target replaces no object (if_none_match=1), one that is
 * there already is a copy of this record, from an earlier delivery. */
static bool is_there(const struct parcel *parcel, const struct sl_result *result)
{
    return target_of(parcel)->objects && result->status == SL_REJECT && result->code &&
           strcmp(result->code, "PreconditionFailed") == 0;
}

static void take_result(struct sl_dispatch *d, struct parcel *parcel, const struct sl_result *result)
{
    const char *code = result->code ? result->code : "Unspecified", *text = result->text ? result->text : "";
    parcel->is_durable = result->status == SL_OK || is_there(parcel, result);
    if (parcel->is_durable)
        return;
    if (result->status == SL_RETRY) {
        d->park_retry =
            sl_dispatch_why(d, SL_RETRY, code, sl_arena_printf(d->arena, "cannot be parked now: %s", text));
        return;
    }
    const struct sl_why *why = sl_dispatch_why(d, result->status, code, text);
    if (why->status == SL_FATAL)
        note_broken(d, parcel, why);
    refuse(parcel, why);
    choose_target(d, parcel);
}

/* What goes to one target in one call. */
struct bulk {
    struct sl_failure_target *target;
    struct parcel **list;
    size_t n;
    struct sl_result *results;
};

static void send_messages(struct sl_dispatch *d, const struct bulk *bulk)
{
    struct sl_queue_port *queue = bulk->target->queue;
    struct sl_message *messages = sl_arena_zalloc(d->arena, bulk->n * sizeof(*messages));
    for (size_t i = 0; i < bulk->n; i++) {
        const struct sl_parked *parked = bulk->list[i]->parked;
        const struct sl_record *record = sl_batch_record(d->batch, parked->index);
        messages[i].body = bulk->list[i]->body;
        messages[i].order = sl_dispatch_key(d, parked->index);
        messages[i].dedupe =
            sl_span_str(sl_arena_printf(d->arena, "%s/%.*s/%.*s", parked->route->config->name,
                                        SL_ARG(sl_record_text(record, SL_FIELD_IDENTIFIER)),
                                        SL_ARG(sl_record_text(record, SL_FIELD_EVENT_ID))));
        messages[i].subject = SL_LIT("sluice parked record");
    }
    queue->apply(queue, messages, bulk->n, bulk->results, &(struct sl_call){d->arena, d->end_ms});
}

static void send_objects(struct sl_dispatch *d, const struct bulk *bulk)
{
    struct sl_object_port *port = bulk->target->objects;
    struct sl_object *objects = sl_arena_zalloc(d->arena, bulk->n * sizeof(*objects));
    for (size_t i = 0; i < bulk->n; i++)
        objects[i] = (struct sl_object){.key = object_key(d, bulk->list[i]->parked),
                                        .body = bulk->list[i]->body,
                                        .content_type = "application/json"};
    port->apply(port, objects, bulk->n, bulk->results, &(struct sl_call){d->arena, d->end_ms});
}

/* The first open parcel, and all others that go to the same target. */
static struct bulk gather(struct sl_dispatch *d, struct parcel *parcels, size_t n)
{
    struct bulk bulk = {.list = sl_arena_alloc(d->arena, n * sizeof(struct parcel *))};
    for (size_t i = 0; i < n; i++) {
        if (!is_open(&parcels[i]))
            continue;
        bulk.target = bulk.target ? bulk.target : target_of(&parcels[i]);
        if (target_of(&parcels[i]) == bulk.target)
            bulk.list[bulk.n++] = &parcels[i];
    }
    bulk.results = sl_arena_zalloc(d->arena, bulk.n * sizeof(*bulk.results));
    return bulk;
}

/* One call of one target. False: no parcel is open. */
static bool send_some(struct sl_dispatch *d, struct parcel *parcels, size_t n, bool *retry)
{
    struct bulk bulk = gather(d, parcels, n);
    if (!bulk.n)
        return false;
    struct sl_route *route = bulk.list[0]->parked->route;
    struct sl_log *log = d->p->options.log;
    sl_route_enter(route);
    log->is_in_port = true;
    const int64_t began_ns = d->clock->now_ns(d->clock);
    if (bulk.target->queue)
        send_messages(d, &bulk);
    else
        send_objects(d, &bulk);
    const uint64_t share_ns = (uint64_t)(d->clock->now_ns(d->clock) - began_ns) / bulk.n;
    log->is_in_port = false;
    sl_route_leave(route);
    for (size_t i = 0; i < bulk.n; i++) {
        bulk.list[i]->parked->route->stats.sink_ns += share_ns;
        take_result(d, bulk.list[i], &bulk.results[i]);
        *retry |= bulk.results[i].status == SL_RETRY;
    }
    return true;
}

static void out_of_time(struct sl_dispatch *d, struct parcel *parcels, size_t n)
{
    if (!d->park_retry)
        d->park_retry =
            sl_dispatch_why(d, SL_RETRY, "DeadlineReached", "the time ended before this record was parked");
    for (size_t i = 0; i < n; i++)
        if (is_open(&parcels[i]))
            parcels[i].why = d->park_retry;
}

static void send_all(struct sl_dispatch *d, struct parcel *parcels, size_t n)
{
    bool retry = false;
    unsigned tries = 0;
    for (bool any = true; any;) {
        if (sl_dispatch_now(d) >= d->end_ms || (retry && !sl_dispatch_back_off(d, tries++, d->end_ms))) {
            out_of_time(d, parcels, n);
            return;
        }
        retry = false;
        any = send_some(d, parcels, n, &retry);
    }
}

static void say_failure(struct sl_dispatch *d, const struct parcel *parcels, size_t n)
{
    size_t failed = 0;
    const struct parcel *first = NULL;
    for (size_t i = 0; i < n; i++)
        if (!parcels[i].is_durable)
            first = failed++ ? first : &parcels[i];
    sl_route_enter(first->parked->route);
    sl_log(d->p->options.log, SL_ERROR, "%zu of %zu rejected records were not parked; the first: %s: %s",
           failed, n, first->why->code, first->why->text);
    sl_route_leave(first->parked->route);
}

static bool park_step(struct sl_dispatch *d, struct sl_parked *list, size_t n)
{
    struct parcel *parcels = sl_arena_zalloc(d->arena, n * sizeof(*parcels));
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        parcels[i].parked = &list[i];
        parcels[i].is_durable = parcels[i].is_remembered =
            sl_memory_has(&d->p->memory, d, list[i].route, list[i].index);
        if (parcels[i].is_durable)
            continue;
        parcels[i].body = message_of(d, &list[i]);
        choose_target(d, &parcels[i]);
    }
    send_all(d, parcels, n);
    for (size_t i = 0; i < n; i++) {
        list[i].is_durable = parcels[i].is_durable;
        list[i].is_remembered = parcels[i].is_remembered;
        list[i].is_tried = true;
        if (list[i].is_durable) {
            d->n_durable++;
            sl_dispatch_note(d, true, list[i].index, list[i].route, list[i].why);
            continue;
        }
        all = false;
        sl_dispatch_fail(d, list[i].index, list[i].route, parcels[i].why);
    }
    if (!all)
        say_failure(d, parcels, n);
    return all;
}

bool sl_dispatch_park(struct sl_dispatch *d, struct sl_parked *list, size_t n)
{
    size_t step = FIRST_STEP;
    for (size_t i = 0; i < n; i += step, step = step < LAST_STEP ? 2 * step : step)
        if (!park_step(d, list + i, n - i < step ? n - i : step))
            return false;
    return true;
}
