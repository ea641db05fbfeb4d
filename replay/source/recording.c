/* Makes the shards of a simulated stream from inputs, with every record as Lambda would deliver it. */
#include "replay/source/recording.h"

#include "base/hash.h"
#include "replay/source/lambda_batch.h"
#include "streams/record.h"
#include "work/source/explain.h"

#include <time.h>

struct build {
    const struct sl_recording_options *options;
    struct sl_arena *arena;
    struct sl_lambda_form form;
    struct sl_recording *out;
    struct sl_esm_record *records;
    unsigned *shard_of; /* per record */
    unsigned n_shards;
};

/* ---- all records ---- */

static unsigned hash_of(struct sl_span key)
{
    return (unsigned)(sl_hash(key) >> 24);
}

/* Counts what came in. A removal's verdict is that of the record as it came. */
static void count(struct sl_recording *out, const struct sl_record *r)
{
    enum sl_event event = sl_record_event(r);
    out->by_event[event]++;
    if (event == SL_REMOVE)
        out->removed_by[sl_record_ttl(r)]++;
}

static void add_record(struct build *b, size_t file, const struct sl_lambda_batch *batch, size_t i)
{
    struct sl_recording *out = b->out;
    const struct sl_record *r = sl_batch_record(&batch->batch, i);
    struct sl_esm_record *record = &b->records[out->n];
    *record = (struct sl_esm_record){.text = sl_lambda_batch_text(batch, i),
                                     .id = sl_record_text(r, SL_FIELD_IDENTIFIER),
                                     .record = r,
                                     .created_ms = sl_record_created_ns(r) / 1000000};
    if (b->options->needs_item_keys || b->options->shards > 1)
        record->item_key = sl_record_item_key(r, b->arena);
    b->shard_of[out->n] = b->options->is_shard_per_file ? (unsigned)file
                          : b->n_shards > 1             ? hash_of(record->item_key) % b->n_shards
                                                        : 0;
    out->n++;
}

/* A mapping has one source: DynamoDB Streams or Kinesis. */
static enum sl_status check_source(const struct build *b, const struct sl_lambda_batch *batch, size_t file,
                                   struct sl_error *error)
{
    if (b->out->n == 0 || batch->batch.n == 0 || batch->is_kinesis == b->out->is_kinesis)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "TwoSources",
        "%s: one stream cannot hold records of both DynamoDB Streams and Kinesis, and %s has the other",
        b->options->inputs[file].name, b->options->inputs[0].name);
}

static enum sl_status add_input(struct build *b, size_t file, struct sl_error *error)
{
    const struct sl_input *input = &b->options->inputs[file];
    struct sl_lambda_batch *batch = sl_arena_zalloc(b->arena, sizeof(*batch));
    struct sl_error why = SL_NO_ERROR;
    if (sl_lambda_batch_make(&input->batch, &b->form, b->out->n, b->arena, batch, &why) != SL_OK)
        return sl_text_explain(input->name, input->text, &(struct sl_text_from){.byte = 0}, &why, error);
    if (check_source(b, batch, file, error) != SL_OK)
        return SL_REJECT;
    for (size_t i = 0; i < input->batch.n; i++) {
        const struct sl_record *as_it_came = sl_batch_record(&input->batch, i);
        count(b->out, as_it_came);
        add_record(b, file, batch, i);
        const struct sl_order_record place = {
            input->name, i, sl_record_text(as_it_came, SL_FIELD_IDENTIFIER),
            batch->is_kinesis ? sl_span(NULL, 0)
                              : sl_record_text(b->records[b->out->n - 1].record, SL_FIELD_SOURCE_ARN)};
        sl_order_add(&b->out->order, b->shard_of[b->out->n - 1], &place);
    }
    b->out->is_kinesis |= batch->is_kinesis;
    return SL_OK;
}

/* What records that lack it get: the ARN of the others, and the time of the newest. */
static void set_form(struct build *b)
{
    const struct sl_recording_options *options = b->options;
    int64_t newest_ns = 0;
    for (size_t i = 0; i < options->n_inputs; i++)
        for (size_t k = 0; k < options->inputs[i].batch.n; k++) {
            const struct sl_record *r = sl_batch_record(&options->inputs[i].batch, k);
            struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN);
            newest_ns = sl_record_created_ns(r) > newest_ns ? sl_record_created_ns(r) : newest_ns;
            if (arn.ptr && !b->out->stream_arn)
                b->out->stream_arn = sl_arena_copy(b->arena, arn);
        }
    b->form = (struct sl_lambda_form){
        .stream_arn = b->out->stream_arn ? b->out->stream_arn : options->default_arn,
        .is_arn_certain = b->out->stream_arn,
        .keys = options->keys,
        .created_s = newest_ns                ? newest_ns / 1000000000
                     : options->start_epoch_s ? options->start_epoch_s
                                              : (int64_t)time(NULL),
    };
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
    sl_order_init(&out->order, b.n_shards, arena);
    set_form(&b);
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < options->n_inputs && status == SL_OK; i++)
        status = add_input(&b, i, error);
    if (status != SL_OK)
        return status;
    /* A stream without an ARN has the one that its records got. */
    if (out->n && !out->stream_arn)
        out->stream_arn = sl_arena_copy(arena, sl_record_text(b.records[0].record, SL_FIELD_SOURCE_ARN));
    set_times(&b);
    cut_shards(&b);
    return SL_OK;
}
