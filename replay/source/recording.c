/* Makes the shards of a simulated stream from inputs, with every record as Lambda would deliver it. */
#include "replay/source/recording.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "streams/names.h"
#include "streams/record.h"

#include <stdio.h>
#include <time.h>

#define RECORD_BYTES (16 * 1024 * 1024) /* two images of 400 KB, each byte escaped to six at worst */

struct build {
    const struct sl_recording_options *options;
    struct sl_arena *arena;
    struct sl_buffer text; /* scratch */
    struct sl_recording *out;
    struct sl_esm_record *records;
    unsigned *shard_of; /* per record */
    unsigned n_shards;
};

/* ---- one record's text ---- */

/* The Streams API writes {"PrincipalId":..., "Type":...}; Lambda begins these names in lower case. */
static void add_identity_as_lambda(struct sl_buffer *out, struct sl_span identity)
{
    struct sl_span principal = sl_json_find(identity, "PrincipalId"), type = sl_json_find(identity, "Type");
    if (!principal.ptr || !type.ptr) {
        sl_buffer_add_span(out, identity);
        return;
    }
    sl_buffer_printf(out, "{\"principalId\":%.*s,\"type\":%.*s}", SL_ARG(principal), SL_ARG(type));
}

/* Turns GetRecords' form of a record into Lambda's: {"a":1} becomes {"a":1,"eventSourceARN":"..."}. */
static struct sl_span as_lambda(struct build *b, struct sl_span raw)
{
    struct sl_span identity = sl_json_find(raw, "userIdentity");
    const char *from = raw.ptr, *end = raw.ptr + raw.len - 1;
    sl_buffer_reset(&b->text);
    if (identity.ptr) {
        sl_buffer_add(&b->text, from, (size_t)(identity.ptr - from));
        add_identity_as_lambda(&b->text, identity);
        from = identity.ptr + identity.len;
    }
    sl_buffer_add(&b->text, from, (size_t)(end - from));
    sl_json_add_member(&b->text, "eventSourceARN", sl_span_str(b->options->default_arn));
    sl_buffer_add_char(&b->text, '}');
    return sl_span(sl_arena_copy(b->arena, sl_buffer_span(&b->text)), b->text.len);
}

/* Takes the key attributes out of an item: the item does not say which they are. */
static bool add_keys_of_item(struct build *b, const struct sl_record *r)
{
    struct sl_span rest = sl_span_str(b->options->keys ? b->options->keys : "");
    enum sl_image image = sl_record_image(r, SL_NEW_IMAGE).type ? SL_NEW_IMAGE : SL_OLD_IMAGE;
    struct sl_value item = sl_record_image(r, image);
    sl_buffer_add_str(&b->text, "\"Keys\":{");
    bool is_first = true;
    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        struct sl_span one = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        struct sl_iter iter = sl_value_iter(item);
        struct sl_span name;
        struct sl_value value;
        bool found = false;
        while (!found && sl_value_next(&iter, &name, &value))
            found = sl_span_eq(name, one) && (value.type == SL_S || value.type == SL_N || value.type == SL_B);
        if (!found)
            return false;
        sl_buffer_printf(&b->text, "%s\"%.*s\":{\"%s\":%s%.*s%s}", is_first ? "" : ",", SL_ARG(name),
                         value.type == SL_S   ? "S"
                         : value.type == SL_N ? "N"
                                              : "B",
                         "\"", SL_ARG(value.raw), "\"");
        is_first = false;
        rest = sl_span_from(rest, one.len + (comma ? 1 : 0));
    }
    sl_buffer_add_char(&b->text, '}');
    return !is_first;
}

static void add_image(struct build *b, const struct sl_record *r, enum sl_image image, const char *name)
{
    struct sl_value value = sl_record_image(r, image);
    if (value.type != SL_NONE)
        sl_json_add_raw(&b->text, name, value.raw);
}

/* Makes the stream record that would have carried this line of an export, or this item. */
static bool synthesize(struct build *b, const struct sl_record *r, size_t index, struct sl_esm_record *out)
{
    struct sl_span order = sl_record_order(r, b->arena);
    /* Below any sequence number of a stream, which has 21 digits: a stream is newer than an export. */
    const char *id = order.ptr ? sl_arena_printf(b->arena, "%.*s%04zu", SL_ARG(order), index % 10000)
                               : sl_arena_printf(b->arena, "%021zu", index + 1);
    sl_buffer_reset(&b->text);
    sl_buffer_printf(
        &b->text,
        "{\"eventID\":\"%s\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\",\"eventSource\":\"aws:"
        "dynamodb\",\"awsRegion\":\"us-east-1\",\"dynamodb\":{",
        id, sl_event_name(sl_record_event(r)));
    if (sl_record_created_ns(r))
        sl_buffer_printf(&b->text, "\"ApproximateCreationDateTime\":%lld,",
                         (long long)(sl_record_created_ns(r) / 1000000000));
    struct sl_value keys = sl_record_image(r, SL_KEYS);
    if (keys.type != SL_NONE)
        sl_buffer_printf(&b->text, "\"Keys\":%.*s", SL_ARG(keys.raw));
    else if (!add_keys_of_item(b, r))
        return false;
    add_image(b, r, SL_NEW_IMAGE, "NewImage");
    add_image(b, r, SL_OLD_IMAGE, "OldImage");
    sl_json_add_member(&b->text, "SequenceNumber", sl_span_str(id));
    sl_buffer_add_str(&b->text, ",\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}");
    sl_json_add_member(&b->text, "eventSourceARN", sl_span_str(b->options->default_arn));
    sl_buffer_add_char(&b->text, '}');
    out->text = sl_span(sl_arena_copy(b->arena, sl_buffer_span(&b->text)), b->text.len);
    out->id = sl_span_str(id);
    return true;
}

static bool take_text(struct build *b, const struct sl_input *input, const struct sl_record *r, size_t index,
                      struct sl_esm_record *out)
{
    out->text = sl_record_text(r, SL_FIELD_RAW);
    out->id = sl_record_text(r, SL_FIELD_IDENTIFIER);
    if (!out->id.ptr)
        return synthesize(b, r, index, out);
    struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN);
    if (!arn.ptr && input->batch.shape != SL_SHAPE_KINESIS)
        out->text = as_lambda(b, out->text);
    else if (arn.ptr && !b->out->stream_arn)
        b->out->stream_arn = sl_arena_copy(b->arena, arn);
    return true;
}

/* ---- all records ---- */

static unsigned hash_of(struct sl_span key)
{
    return (unsigned)(sl_hash(key) >> 24);
}

static enum sl_status add_record(struct build *b, size_t file, size_t i, struct sl_error *error)
{
    const struct sl_input *input = &b->options->inputs[file];
    struct sl_recording *out = b->out;
    const struct sl_record *r = sl_batch_record(&input->batch, i);
    struct sl_esm_record *record = &b->records[out->n];
    *record = (struct sl_esm_record){.record = r, .created_ms = sl_record_created_ns(r) / 1000000};
    if (!take_text(b, input, r, out->n, record))
        return sl_fail(error, SL_REJECT, "NoKeys",
                       "%s: record %zu is an item without keys: name the key attributes with --keys PK,SK",
                       input->name, i);
    if (b->options->needs_item_keys || b->options->shards > 1)
        record->item_key = sl_record_item_key(r, b->arena);
    b->shard_of[out->n] = b->options->is_shard_per_file ? (unsigned)file
                          : b->n_shards > 1             ? hash_of(record->item_key) % b->n_shards
                                                        : 0;
    enum sl_event event = sl_record_event(r);
    out->by_event[event]++;
    if (event == SL_REMOVE)
        out->removed_by[sl_record_ttl(r)]++;
    out->n++;
    return SL_OK;
}

/* When the mapping begins, and when each record can first be read. */
static void set_times(struct build *b)
{
    struct sl_recording *out = b->out;
    int64_t oldest = INT64_MAX, newest = 0, at = 0;
    for (size_t i = 0; i < out->n; i++) {
        int64_t ms = b->records[i].created_ms;
        newest = ms > newest ? ms : newest;
        oldest = ms && ms < oldest ? ms : oldest;
    }
    int64_t now = newest ? newest : (int64_t)time(NULL) * 1000;
    out->start_ms = b->options->start_epoch_s       ? b->options->start_epoch_s * 1000
                    : b->options->is_live && newest ? oldest
                                                    : now;
    for (size_t i = 0; i < out->n; i++) {
        struct sl_esm_record *r = &b->records[i];
        r->created_ms = r->created_ms ? r->created_ms : out->start_ms;
        at = b->options->is_live && r->created_ms > at ? r->created_ms : at;
        r->available_ms = b->options->is_live ? at : out->start_ms;
    }
}

/* Sorts the records by shard, in their order, and makes the shards. */
static void cut_shards(struct build *b)
{
    struct sl_recording *out = b->out;
    struct sl_esm_record *sorted = sl_arena_alloc(b->arena, (out->n + 1) * sizeof(*sorted));
    size_t at = 0;
    out->shards = sl_arena_zalloc(b->arena, b->n_shards * sizeof(*out->shards));
    out->n_shards = b->n_shards;
    for (unsigned k = 0; k < b->n_shards; k++) {
        struct sl_esm_shard *shard = &out->shards[k];
        shard->parent = -1;
        shard->records = sorted + at;
        shard->id = sl_arena_printf(b->arena, "shardId-%020lld-%08x", (long long)out->start_ms + k,
                                    hash_of(sl_span_str("sluice")) + k);
        for (size_t i = 0; i < out->n; i++)
            if (b->shard_of[i] == k)
                sorted[at + shard->n++] = b->records[i];
        at += shard->n;
    }
}

/* A mapping has one source: DynamoDB Streams or Kinesis. */
static enum sl_status check_shapes(const struct sl_recording_options *options, struct sl_recording *out,
                                   struct sl_error *error)
{
    const struct sl_input *first = NULL;
    for (size_t i = 0; i < options->n_inputs; i++) {
        const struct sl_input *input = &options->inputs[i];
        if (input->batch.n == 0)
            continue;
        bool is_kinesis = input->batch.shape == SL_SHAPE_KINESIS;
        if (first && is_kinesis != out->is_kinesis)
            return sl_fail(error, SL_REJECT, "TwoSources",
                           "%s and %s: one stream cannot hold records of both DynamoDB Streams and Kinesis",
                           first->name, input->name);
        first = input;
        out->is_kinesis = is_kinesis;
    }
    return SL_OK;
}

enum sl_status sl_recording_build(const struct sl_recording_options *options, struct sl_arena *arena,
                                  struct sl_recording *out, struct sl_error *error)
{
    struct build b = {.options = options, .arena = arena, .out = out};
    size_t total = 0;
    for (size_t i = 0; i < options->n_inputs; i++)
        total += options->inputs[i].batch.n;
    *out = (struct sl_recording){0};
    b.n_shards = options->is_shard_per_file ? (unsigned)options->n_inputs
                 : options->shards > 1      ? (unsigned)options->shards
                                            : 1;
    b.records = sl_arena_alloc(arena, (total + 1) * sizeof(*b.records));
    b.shard_of = sl_arena_alloc(arena, (total + 1) * sizeof(*b.shard_of));
    sl_buffer_init(&b.text, RECORD_BYTES);
    enum sl_status status = check_shapes(options, out, error);
    for (size_t i = 0; i < options->n_inputs && status == SL_OK; i++)
        for (size_t k = 0; k < options->inputs[i].batch.n && status == SL_OK; k++)
            status = add_record(&b, i, k, error);
    sl_buffer_clean_up(&b.text);
    if (status != SL_OK)
        return status;
    set_times(&b);
    cut_shards(&b);
    return SL_OK;
}
