/* The shapes that a payload can have. */
#include "streams/decode/batch.h"

#include "base/array.h"
#include "streams/decode/batch_private.h"

/* ---- failures ---- */

/* The path to the fault, within the record, whose text is JSON: otherwise the fault would be another one. */
static void fault_path(const struct sl_decoder *d, char *out, size_t room)
{
    const char *end = sl_json_value_end(d->record, d->scan.end);
    sl_json_path_of(sl_span(d->record, (size_t)(end - d->record)), d->scan.at, out, room);
}

static enum sl_status fail(struct sl_decoder *d, struct sl_error *error)
{
    size_t at = (size_t)(d->scan.at - d->batch->payload.ptr);
    char path[240] = "";
    switch (d->scan.kind) {
    case SL_FAULT_RECORD:
        fault_path(d, path, sizeof(path));
        return sl_fail_at(error, SL_REJECT, "InvalidRecord", at, "record %zu: %s%s%s",
                          d->lines_before + d->batch->n, path, path[0] ? ": " : "", d->scan.why);
    case SL_FAULT_EVENT:
        return sl_fail_at(error, SL_REJECT, "NotAStreamEvent", at, "%s", d->scan.why);
    default:
        return sl_fail_at(error, SL_REJECT, "InvalidJson", at, "%s", d->scan.why);
    }
}

static const char *record(struct sl_decoder *d, const char *p)
{
    const char *next;
    d->record = p;
    if (p < d->scan.end && *p != '{' && sl_decode_is_first(d))
        next = sl_decode_fault(&d->scan, p, SL_FAULT_EVENT, "its first record is not an object");
    else
        next = sl_decode_record(d, p);
    if (!next && d->scan.kind == SL_FAULT_RECORD)
        sl_decode_prefer_json(&d->scan, p);
    return next;
}

/* ---- an array of records ---- */

static const char *records(struct sl_decoder *d, const char *p)
{
    struct sl_json_scan *s = &d->scan;
    p = sl_json_space(p + 1, s->end);
    if (p < s->end && *p == ']')
        return p + 1;
    for (;;) {
        p = record(d, p);
        if (!p)
            return NULL;
        p = sl_json_space(p, s->end);
        if (p == s->end || *p != ',')
            return sl_json_byte(s, p, ']', "',' or ']' is expected");
        p = sl_json_space(p + 1, s->end);
    }
}

/* ---- the event ---- */

struct event {
    struct sl_string shard_id, arn;
    bool has_records;
};

static const char *read_records(struct sl_decoder *d, const char *p, void *to)
{
    struct event *event = to;
    if (p == d->scan.end || *p != '[' || event->has_records) {
        const char *next = sl_json_value(&d->scan, p);
        return next ? sl_decode_fault(&d->scan, p, SL_FAULT_EVENT,
                                      "\"Records\" is not an array, or is there twice")
                    : NULL;
    }
    event->has_records = true;
    return records(d, p);
}

static const char *read_raw(struct sl_decoder *d, const char *p, struct sl_span *raw)
{
    const char *next = sl_json_value(&d->scan, p);
    if (next)
        *raw = sl_span(p, (size_t)(next - p));
    return next;
}

static const char *read_window(struct sl_decoder *d, const char *p, void *to)
{
    (void)to;
    return read_raw(d, p, &d->batch->window);
}

static const char *read_state(struct sl_decoder *d, const char *p, void *to)
{
    (void)to;
    return read_raw(d, p, &d->batch->state);
}

static const char *read_flag(struct sl_decoder *d, const char *p, bool *flag)
{
    *flag = p < d->scan.end && *p == 't';
    return sl_json_value(&d->scan, p);
}

static const char *read_is_final(struct sl_decoder *d, const char *p, void *to)
{
    (void)to;
    return read_flag(d, p, &d->batch->is_final);
}

static const char *read_is_early(struct sl_decoder *d, const char *p, void *to)
{
    (void)to;
    return read_flag(d, p, &d->batch->is_terminated_early);
}

/* A member of this name that is not a string belongs to another kind of event. */
static const char *read_text(struct sl_decoder *d, const char *p, struct sl_string *text)
{
    return p < d->scan.end && *p == '"' ? sl_decode_text(d, p, text) : sl_json_value(&d->scan, p);
}

static const char *read_shard_id(struct sl_decoder *d, const char *p, void *to)
{
    return read_text(d, p, &((struct event *)to)->shard_id);
}

static const char *read_arn(struct sl_decoder *d, const char *p, void *to)
{
    return read_text(d, p, &((struct event *)to)->arn);
}

static const struct sl_member event_members[] = {
    SL_MEMBER("Records", read_records),
    SL_MEMBER("window", read_window),
    SL_MEMBER("state", read_state),
    SL_MEMBER("shardId", read_shard_id),
    SL_MEMBER("eventSourceARN", read_arn),
    SL_MEMBER("isFinalInvokeForWindow", read_is_final),
    SL_MEMBER("isWindowTerminatedEarly", read_is_early),
};

static void finish_event(struct sl_decoder *d, const struct event *event)
{
    struct sl_batch *batch = d->batch;
    batch->shape = d->data ? SL_SHAPE_KINESIS : SL_SHAPE_EVENT;
    batch->shard_id = sl_decode_resolved(d, event->shard_id);
    batch->source_arn = sl_decode_resolved(d, event->arn);
    batch->is_window = batch->window.ptr && *batch->window.ptr == '{';
}

/* ---- one record per line ---- */

static bool is_passed_over(const struct sl_decoder *d, const char *p)
{
    size_t n = strlen(SL_ERASED_LINE);
    return !d->keeps_erased && (size_t)(d->scan.end - p) > n && memcmp(p, SL_ERASED_LINE, n) == 0;
}

/* Any whitespace parts two records, so a record may also be spread over several lines. */
static const char *lines(struct sl_decoder *d, const char *p)
{
    d->batch->shape = SL_SHAPE_LINES;
    while (p && p < d->scan.end) {
        p = is_passed_over(d, p) ? sl_json_value(&d->scan, p) : record(d, p);
        if (p)
            p = sl_json_space(p, d->scan.end);
    }
    return p;
}

/* ---- the payload ---- */

static const char *not_an_event(struct sl_decoder *d, const char *p)
{
    const char *next = sl_json_value(&d->scan, p);
    return next ? sl_decode_fault(&d->scan, p, SL_FAULT_EVENT, "it is not an object with \"Records\"") : NULL;
}

/* An object that holds no "Records" is one record of a file of lines, or not for us. */
static const char *object(struct sl_decoder *d, const char *p)
{
    struct event event = {.has_records = false};
    const char *next = sl_decode_object(d, p, event_members, SL_COUNT(event_members), &event);
    if (!next)
        return NULL;
    if (event.has_records) {
        finish_event(d, &event);
        return next;
    }
    struct sl_batch *batch = d->batch;
    batch->window = batch->state = sl_span(NULL, 0);
    batch->is_final = batch->is_terminated_early = false;
    return d->any_shape ? lines(d, p) : not_an_event(d, p);
}

static const char *payload(struct sl_decoder *d, const char *p)
{
    if (d->lines_before)
        return lines(d, p);
    if (p == d->scan.end)
        return sl_json_unexpected(&d->scan, p, "");
    if (*p == '{') {
        p = object(d, p);
    } else if (*p == '[') {
        d->batch->shape = SL_SHAPE_ARRAY;
        p = records(d, p);
    } else {
        p = not_an_event(d, p);
    }
    if (!p)
        return NULL;
    p = sl_json_space(p, d->scan.end);
    return p == d->scan.end ? p : sl_json_fault(&d->scan, p, "more text after the event");
}

static struct sl_shared *shared_new(struct sl_arena *arena, const struct sl_decode_options *options)
{
    struct sl_shared *shared = sl_arena_zalloc(arena, sizeof(*shared));
    shared->arena = arena;
    if (options->ttl_attribute.ptr) {
        const char *copy = sl_arena_copy(arena, options->ttl_attribute);
        shared->ttl_attribute = sl_span(copy, options->ttl_attribute.len);
    }
    return shared;
}

enum sl_status sl_batch_decode(struct sl_span text, struct sl_arena *arena,
                               const struct sl_decode_options *options, struct sl_batch *out,
                               struct sl_error *error)
{
    *out = (struct sl_batch){.payload = text, .arena = arena};
    if (text.len > UINT32_MAX)
        return sl_fail(error, SL_REJECT, "TooLarge", "the payload has 4 GiB or more; split it");
    struct sl_forms forms;
    struct sl_image_entry entries[SL_NOTED];
    uint8_t hashes[SL_NOTED];
    struct sl_decoder d = {
        .scan = {.end = sl_span_end(text)},
        .base = text.ptr,
        .batch = out,
        .shared = shared_new(arena, options),
        .any_shape = options->any_shape,
        .keeps_erased = options->keeps_erased,
        .lines_before = options->lines_before,
        .forms = &forms,
        .notes = {.entries = entries, .hashes = hashes, .room = options->notes_attributes ? SL_NOTED : 0},
    };
    sl_forms_init(&forms);
    const char *p = text.ptr;
    if (d.lines_before == 0 && text.len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    p = sl_json_space(p, d.scan.end);
    if (!payload(&d, p)) {
        if (d.scan.kind == SL_FAULT_EVENT)
            sl_decode_prefer_json(&d.scan, p);
        return fail(&d, error);
    }
    if (out->n && !out->source_arn.ptr)
        out->source_arn = sl_record_text(sl_batch_record(out, 0), SL_FIELD_SOURCE_ARN);
    return SL_OK;
}

bool sl_batch_is_looked_into(const struct sl_batch *batch)
{
    return batch->n && 2 * batch->chunks[0]->shared->n_read_again >= batch->n;
}

const struct sl_record *sl_batch_record(const struct sl_batch *batch, size_t i)
{
    return &batch->chunks[i / SL_CHUNK_RECORDS]->records[i % SL_CHUNK_RECORDS];
}
