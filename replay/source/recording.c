/* Makes the shards of a simulated stream from inputs, with every record as Lambda would deliver it.
 *
 * The inputs are read twice, piece by piece: once for what a record without it gets from the others, then for
 * the records. Their texts go to a spool. */
#include "replay/source/recording.h"

#include "base/hash.h"
#include "replay/source/lambda_batch.h"
#include "streams/record.h"

#include <stdlib.h>
#include <time.h>

/* Text that is decoded at a time for filters: a batch's offsets have 32 bits. */
#define DECODE_BYTES ((size_t)1024 * 1024 * 1024)

struct build {
    const struct sl_recording_options *options;
    struct sl_arena *arena; /* the recording's */
    struct sl_lambda_form form;
    struct sl_recording *out;
    struct sl_esm_record *records; /* until the spools are done, spans have offsets for pointers */
    unsigned *shard_of;            /* per record */
    size_t n_announced;            /* records that the first reading found */
    unsigned n_shards;
};

/* What is done with each piece. */
typedef enum sl_status (*piece_fn)(struct build *b, const struct sl_source_piece *piece,
                                   struct sl_error *error);

static enum sl_status read_all(struct build *b, piece_fn each, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    struct sl_source_piece piece = {.is_last = false};
    struct sl_source *source = NULL;
    enum sl_status status = sl_inputs_open(b->options->inputs, b->options->ttl_attribute, &source, error);
    while (status == SL_OK && !piece.is_last) {
        sl_arena_reset(arena);
        status = sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, error);
        if (status == SL_OK)
            status = each(b, &piece, error);
    }
    sl_source_close(source);
    sl_arena_destroy(arena);
    return status;
}

/* ---- the first reading: what records that lack it get ---- */

static enum sl_status survey(struct build *b, const struct sl_source_piece *piece, struct sl_error *error)
{
    b->n_announced += piece->batch.n;
    if (b->n_announced > SL_RECORDING_RECORDS)
        return sl_fail(error, SL_REJECT, "TooLarge",
                       "%s: the inputs have more than %zu records; replay them in several runs",
                       b->options->inputs->names[piece->file], SL_RECORDING_RECORDS);
    for (size_t i = 0; i < piece->batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&piece->batch, i);
        struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN);
        int64_t created_s = sl_record_created_ns(r) / 1000000000;
        b->form.created_s = created_s > b->form.created_s ? created_s : b->form.created_s;
        if (arn.ptr && !b->out->stream_arn)
            b->out->stream_arn = sl_arena_copy(b->arena, arn);
    }
    return SL_OK;
}

static void set_form(struct build *b)
{
    const struct sl_recording_options *options = b->options;
    b->form.stream_arn = b->out->stream_arn ? b->out->stream_arn : options->default_arn;
    b->form.is_arn_certain = b->out->stream_arn;
    b->form.keys = options->keys;
    if (!b->form.created_s)
        b->form.created_s = options->start_epoch_s ? options->start_epoch_s : (int64_t)time(NULL);
}

/* ---- the second reading: the records ---- */

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

/* A span in a spool before it is mapped: its offset for a pointer, plus one, since NULL is absent. */
static struct sl_span spooled(struct sl_spool *spool, struct sl_span text)
{
    struct sl_span at = {(const char *)(uintptr_t)(sl_spool_bytes(spool) + 1), text.len};
    sl_spool_add(spool, text);
    return at;
}

static struct sl_span mapped(struct sl_span at, struct sl_span spool)
{
    return at.ptr ? sl_span(spool.ptr + (uintptr_t)at.ptr - 1, at.len) : at;
}

static void add_record(struct build *b, size_t file, const struct sl_lambda_batch *batch, size_t i)
{
    struct sl_recording *out = b->out;
    const struct sl_record *r = sl_batch_record(&batch->batch, i);
    struct sl_esm_record *record = &b->records[out->n];
    struct sl_span key = {NULL, 0};
    if (b->options->needs_item_keys || b->options->shards > 1)
        key = sl_record_item_key(r, batch->batch.arena);
    *record = (struct sl_esm_record){.text = spooled(b->out->texts, sl_lambda_batch_text(batch, i)),
                                     .id = spooled(b->out->others, sl_record_text(r, SL_FIELD_IDENTIFIER)),
                                     .created_ms = sl_record_created_ns(r) / 1000000};
    sl_spool_add(b->out->texts, SL_LIT("\n"));
    if (key.ptr && b->options->needs_item_keys)
        record->item_key = spooled(b->out->others, key);
    b->shard_of[out->n] = b->options->is_shard_per_file ? (unsigned)file
                          : b->n_shards > 1             ? hash_of(key) % b->n_shards
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
        b->options->inputs->names[file], b->options->inputs->names[0]);
}

static enum sl_status add_piece(struct build *b, const struct sl_source_piece *piece, struct sl_error *error)
{
    struct sl_lambda_batch batch;
    struct sl_error why = SL_NO_ERROR;
    const char *name = b->options->inputs->names[piece->file];
    b->form.before = (size_t)piece->from.record;
    if (b->out->n + piece->batch.n > b->n_announced)
        return sl_fail(error, SL_REJECT, "Changed", "%s: has become longer while it was read", name);
    if (sl_lambda_batch_make(&piece->batch, &b->form, b->out->n, piece->batch.arena, &batch, &why) != SL_OK)
        return sl_text_explain(name, piece->batch.payload, &piece->from, &why, error);
    if (check_source(b, &batch, piece->file, error) != SL_OK)
        return SL_REJECT;
    for (size_t i = 0; i < piece->batch.n; i++) {
        const struct sl_record *as_it_came = sl_batch_record(&piece->batch, i);
        const struct sl_record *r = sl_batch_record(&batch.batch, i);
        count(b->out, as_it_came);
        add_record(b, piece->file, &batch, i);
        const struct sl_order_record place = {
            .input = name,
            .index = b->form.before + i,
            .id = sl_record_text(as_it_came, SL_FIELD_IDENTIFIER),
            .stream_arn = batch.is_kinesis ? sl_span(NULL, 0) : sl_record_text(r, SL_FIELD_SOURCE_ARN)};
        sl_order_add(&b->out->order, b->shard_of[b->out->n - 1], &place);
    }
    /* A stream without an ARN has the one that its records got. */
    if (batch.batch.n && !b->out->stream_arn)
        b->out->stream_arn =
            sl_arena_copy(b->arena, sl_record_text(sl_batch_record(&batch.batch, 0), SL_FIELD_SOURCE_ARN));
    sl_order_keep(&b->out->order);
    b->out->is_kinesis |= batch.is_kinesis;
    return SL_OK;
}

/* Decodes the records as they are delivered, so many at a time as a batch takes. */
static enum sl_status decode_records(struct build *b, struct sl_error *error)
{
    const struct sl_decode_options options = {
        .any_shape = true, .ttl_attribute = sl_span_str(b->options->ttl_attribute), .lines_before = 1};
    for (size_t from = 0, to; from < b->out->n; from = to) {
        struct sl_batch batch;
        const char *begin = b->records[from].text.ptr, *end = begin;
        for (to = from; to < b->out->n && (size_t)(end - begin) < DECODE_BYTES; to++)
            end = b->records[to].text.ptr + b->records[to].text.len;
        if (sl_batch_decode(sl_span(begin, (size_t)(end - begin)), b->arena, &options, &batch, error) !=
            SL_OK)
            return SL_REJECT;
        for (size_t i = from; i < to; i++)
            b->records[i].record = sl_batch_record(&batch, i - from);
    }
    return SL_OK;
}

static enum sl_status map_spools(struct build *b, struct sl_error *error)
{
    struct sl_span texts, others;
    enum sl_status status = sl_spool_done(b->out->texts, &texts, error);
    if (status == SL_OK)
        status = sl_spool_done(b->out->others, &others, error);
    for (size_t i = 0; status == SL_OK && i < b->out->n; i++) {
        struct sl_esm_record *r = &b->records[i];
        r->text = mapped(r->text, texts);
        r->id = mapped(r->id, others);
        r->item_key = mapped(r->item_key, others);
    }
    return status == SL_OK && b->options->needs_records ? decode_records(b, error) : status;
}

/* ---- the stream ---- */

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

/* Sorts the records by shard, in their order. */
static struct sl_esm_record *sorted_by_shard(struct build *b, struct sl_esm_shard *shards)
{
    struct sl_recording *out = b->out;
    if (b->n_shards == 1) {
        shards[0].n = out->n;
        return b->records;
    }
    struct sl_esm_record *sorted = sl_arena_alloc(b->arena, (out->n + 1) * sizeof(*sorted));
    size_t *next = sl_arena_zalloc(b->arena, (b->n_shards + 1) * sizeof(*next));
    for (size_t i = 0; i < out->n; i++)
        shards[b->shard_of[i]].n++;
    for (unsigned k = 1; k < b->n_shards; k++)
        next[k] = next[k - 1] + shards[k - 1].n;
    for (size_t i = 0; i < out->n; i++)
        sorted[next[b->shard_of[i]]++] = b->records[i];
    return sorted;
}

static void cut_shards(struct build *b)
{
    struct sl_recording *out = b->out;
    out->shards = sl_arena_zalloc(b->arena, b->n_shards * sizeof(*out->shards));
    out->n_shards = b->n_shards;
    const struct sl_esm_record *at = sorted_by_shard(b, out->shards);
    for (unsigned k = 0; k < b->n_shards; k++) {
        struct sl_esm_shard *shard = &out->shards[k];
        shard->parent = -1;
        shard->records = at;
        shard->id = sl_arena_printf(b->arena, "shardId-%020lld-%08x", (long long)out->start_ms + k,
                                    hash_of(sl_span_str("sluice")) + k);
        at += shard->n;
    }
}

enum sl_status sl_recording_build(const struct sl_recording_options *options, struct sl_arena *arena,
                                  struct sl_recording *out, struct sl_error *error)
{
    struct build b = {.options = options, .arena = arena, .out = out};
    *out = (struct sl_recording){0};
    b.n_shards = options->is_shard_per_file ? (unsigned)options->inputs->n
                 : options->shards > 1      ? (unsigned)options->shards
                                            : 1;
    enum sl_status status = options->inputs->n ? read_all(&b, survey, error) : SL_OK;
    if (status != SL_OK)
        return status;
    set_form(&b);
    b.records = sl_arena_alloc(arena, (b.n_announced + 1) * sizeof(*b.records));
    b.shard_of = sl_arena_alloc(arena, (b.n_announced + 1) * sizeof(*b.shard_of));
    out->texts = sl_spool_new(arena);  /* a record a line */
    out->others = sl_spool_new(arena); /* identifiers and keys */
    sl_order_init(&out->order, b.n_shards, arena);
    status = options->inputs->n ? read_all(&b, add_piece, error) : SL_OK;
    if (status == SL_OK)
        status = map_spools(&b, error);
    if (status != SL_OK)
        return status;
    set_times(&b);
    cut_shards(&b);
    sl_recording_release(out);
    return SL_OK;
}

void sl_recording_release(const struct sl_recording *recording)
{
    sl_spool_release(recording->texts);
    sl_spool_release(recording->others);
}
