#include "base/clock.h"
#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch_run.h"
#include "streams/record.h"
#include "streams/template.h"

/* A message's members change only by being added to; a reader looks at the number. */
#define FORMAT 1

/* What is parked between two looks at the results: grows while all goes well, so that a destination that
 * fails makes few copies come twice. Ten are one SQS request. */
#define FIRST_STEP 10
#define LAST_STEP  160

/* An event's record, and its envelope. What does not fit is no message: a cut one would be worse. */
#define MESSAGE_BYTES (8 * 1024 * 1024)

struct parcel {
    const struct sl_parked *parked;
    size_t target; /* of its route's: where it is tried */
    struct sl_span body;
    bool is_durable;
    const struct sl_why *why; /* why it cannot be parked; NULL as long as it may */
};

/* ---- the message ---- */

/* One line: whitespace between tokens goes, every other byte stays. */
static void add_compact(struct sl_buffer *out, struct sl_span json)
{
    bool in_string = false;
    for (size_t i = 0, from = 0; i <= json.len; i++) {
        bool at_end = i == json.len;
        char c = at_end ? ' ' : json.ptr[i];
        if (in_string && c == '\\' && !at_end) {
            i++;
            continue;
        }
        if (c == '"')
            in_string = !in_string;
        if (at_end || (!in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t'))) {
            sl_buffer_add(out, json.ptr + from, i - from);
            from = i + 1;
        }
    }
}

void sl_park_message(struct sl_dispatch *d, const struct sl_parked *parked, struct sl_buffer *out)
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
    sl_json_add_member(out, "requestId", sl_span_str(d->invocation->request_id));
    sl_json_add_member(out, "functionArn", sl_span_str(d->invocation->function_arn));
    sl_json_add_member(out, "streamArn", source.ptr ? source : d->batch->source_arn);
    sl_json_add_raw(out, "record", SL_LIT(""));
    add_compact(out, sl_record_text(record, SL_FIELD_RAW));
    sl_buffer_add_char(out, '}');
}

static struct sl_span message_of(struct sl_dispatch *d, const struct sl_parked *parked)
{
    struct sl_buffer buffer;
    sl_buffer_init(&buffer, MESSAGE_BYTES);
    sl_park_message(d, parked, &buffer);
    struct sl_span body = {0};
    if (!buffer.failed)
        body = sl_span(sl_arena_copy(d->arena, sl_buffer_span(&buffer)), buffer.len);
    sl_buffer_clean_up(&buffer);
    return body;
}

/* The same record of the same route has the same key, so that parking it again leaves one object:
 * route/2026/11/20/sequence-event.json by the change's own date. */
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

/* To the first target that can take it, from where it stands. */
static void choose_target(struct sl_dispatch *d, struct parcel *parcel, const char *code, const char *text)
{
    const struct sl_route *route = parcel->parked->route;
    for (; parcel->target < route->n_targets; parcel->target++) {
        size_t most = most_bytes(target_of(parcel));
        if (parcel->body.ptr && (!most || parcel->body.len <= most))
            return;
        code = "TooLarge";
        text = sl_arena_printf(d->arena, "the message of %zu bytes is larger than %.*s takes (%zu)",
                               parcel->body.len, SL_ARG(target_of(parcel)->url), most);
    }
    parcel->why = sl_why_new(d, SL_REJECT, code ? code : "Unspecified",
                             sl_arena_printf(d->arena, "cannot be parked: %s; rejected before: %s",
                                             text ? text : "", parcel->parked->why->text));
}

static void take_result(struct sl_dispatch *d, struct parcel *parcel, const struct sl_result *result)
{
    const char *code = result->code ? result->code : "Unspecified", *text = result->text ? result->text : "";
    parcel->is_durable = result->status == SL_OK;
    if (result->status == SL_REJECT) {
        parcel->target++;
        choose_target(d, parcel, code, text);
    } else if (result->status == SL_FATAL) {
        parcel->why = sl_why_new(d, SL_FATAL, code, sl_arena_printf(d->arena, "cannot be parked: %s", text));
    }
}

static void send_messages(struct sl_dispatch *d, struct sl_failure_target *target, struct parcel *const *list,
                          size_t n, struct sl_result *results, const struct sl_call *call)
{
    struct sl_message *messages = sl_arena_zalloc(d->arena, n * sizeof(*messages));
    for (size_t i = 0; i < n; i++) {
        const struct sl_parked *parked = list[i]->parked;
        const struct sl_record *record = sl_batch_record(d->batch, parked->index);
        messages[i].body = list[i]->body;
        messages[i].order = sl_dispatch_key(d, parked->index);
        messages[i].dedupe =
            sl_span_str(sl_arena_printf(d->arena, "%s/%.*s/%.*s", parked->route->config->name,
                                        SL_ARG(sl_record_text(record, SL_FIELD_IDENTIFIER)),
                                        SL_ARG(sl_record_text(record, SL_FIELD_EVENT_ID))));
        messages[i].subject = SL_LIT("sluice parked record");
    }
    target->queue->apply(target->queue, messages, n, results, call);
}

static void send_objects(struct sl_dispatch *d, struct sl_failure_target *target, struct parcel *const *list,
                         size_t n, struct sl_result *results, const struct sl_call *call)
{
    struct sl_object *objects = sl_arena_zalloc(d->arena, n * sizeof(*objects));
    for (size_t i = 0; i < n; i++)
        objects[i] = (struct sl_object){
            .key = object_key(d, list[i]->parked), .body = list[i]->body, .content_type = "application/json"};
    target->objects->apply(target->objects, objects, n, results, call);
}

/* One bulk to the target of the first parcel that is open, of all that go there. False: none is open. */
static bool send_some(struct sl_dispatch *d, struct parcel *parcels, size_t n, bool *retry)
{
    struct parcel **list = sl_arena_alloc(d->arena, n * sizeof(struct parcel *));
    struct sl_failure_target *target = NULL;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_open(&parcels[i]))
            continue;
        target = target ? target : target_of(&parcels[i]);
        if (target_of(&parcels[i]) == target)
            list[count++] = &parcels[i];
    }
    if (!count)
        return false;
    struct sl_result *results = sl_arena_zalloc(d->arena, count * sizeof(*results));
    struct sl_call call = {d->arena, d->end_ms};
    sl_route_enter(list[0]->parked->route);
    if (target->queue)
        send_messages(d, target, list, count, results, &call);
    else
        send_objects(d, target, list, count, results, &call);
    sl_route_leave(list[0]->parked->route);
    for (size_t i = 0; i < count; i++) {
        take_result(d, list[i], &results[i]);
        if (results[i].status == SL_RETRY) {
            *retry = true;
            d->park_retry = sl_why_new(d, SL_RETRY, results[i].code ? results[i].code : "Unspecified",
                                       sl_arena_printf(d->arena, "cannot be parked now: %s",
                                                       results[i].text ? results[i].text : ""));
        }
    }
    return true;
}

static void out_of_time(struct sl_dispatch *d, struct parcel *parcels, size_t n)
{
    if (!d->park_retry)
        d->park_retry =
            sl_why_new(d, SL_RETRY, "DeadlineReached", "the time was over before this record was parked");
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
    sl_log(d->p->options.log, SL_ERROR, "%zu of %zu rejected records are not parked; the first: %s: %s",
           failed, n, first->why->code, first->why->text);
    sl_route_leave(first->parked->route);
}

static bool park_step(struct sl_dispatch *d, struct sl_parked *list, size_t n)
{
    struct parcel *parcels = sl_arena_zalloc(d->arena, n * sizeof(*parcels));
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        parcels[i].parked = &list[i];
        parcels[i].is_durable = sl_memory_has(d, list[i].route, list[i].index);
        if (parcels[i].is_durable)
            continue;
        parcels[i].body = message_of(d, &list[i]);
        choose_target(d, &parcels[i], NULL, NULL);
    }
    send_all(d, parcels, n);
    for (size_t i = 0; i < n; i++) {
        struct sl_route_stats *stats = &list[i].route->stats;
        list[i].is_durable = parcels[i].is_durable;
        if (list[i].is_durable) {
            stats->parked++;
            d->n_durable++;
            continue;
        }
        stats->failed++;
        all = false;
        sl_dispatch_fail(d, list[i].index, list[i].route, parcels[i].why);
    }
    if (!all)
        say_failure(d, parcels, n);
    return all;
}

bool sl_park(struct sl_dispatch *d, struct sl_parked *list, size_t n)
{
    size_t step = FIRST_STEP;
    for (size_t i = 0; i < n; i += step, step = step < LAST_STEP ? 2 * step : step)
        if (!park_step(d, list + i, n - i < step ? n - i : step))
            return false;
    return true;
}
