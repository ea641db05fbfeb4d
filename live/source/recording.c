/* Makes the shards of a simulated stream from inputs, with every record as Lambda would deliver it.
 *
 * The inputs are read once when every record is as Lambda delivers it. Else they are read twice: for what a
 * record without it gets from the others, then for the records. */
#include "live/source/recording.h"

#include "base/hash.h"
#include "live/source/behind.h"
#include "live/source/lambda_batch.h"
#include "live/source/recording_private.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <string.h>
#include <time.h>

/* A code of our own: the inputs have to be read twice. */
#define NEEDS_SURVEY "NeedsSurvey"

/* A recording as a whole: every record in memory, its text on disk. For lanes, shards of items, --live and
 * reports, which need more than the records that come next. */

/* Text that is decoded at a time: a batch's offsets have 32 bits. */
#define DECODE_BYTES ((size_t)1024 * 1024 * 1024)

struct load {
    struct sl_recording *out;
    const struct sl_recording_options *options;
    struct sl_arena *arena;
    struct sl_esm_record *records;
    uint32_t *shard_of;
};

/* Decodes the records as they are delivered, so many at a time as a batch takes. */
static enum sl_status decode_records(struct load *l, struct sl_error *error)
{
    const struct sl_decode_options options = {
        .any_shape = true, .ttl_attribute = sl_span_str(l->options->ttl_attribute), .lines_before = 1};
    for (size_t from = 0, to; from < l->out->n; from = to) {
        struct sl_batch batch;
        const char *begin = l->records[from].text.ptr, *end = begin;
        for (to = from; to < l->out->n && (size_t)(end - begin) < DECODE_BYTES; to++)
            end = l->records[to].text.ptr + l->records[to].text.len;
        if (sl_batch_decode(sl_span(begin, (size_t)(end - begin)), l->arena, &options, &batch, error) !=
            SL_OK)
            return SL_REJECT;
        for (size_t i = from; i < to; i++)
            l->records[i].record = sl_batch_record(&batch, i - from);
    }
    return SL_OK;
}

/* When each record can first be read. */
static void set_times(struct load *l)
{
    int64_t at = 0;
    for (size_t i = 0; i < l->out->n; i++) {
        struct sl_esm_record *r = &l->records[i];
        r->created_ms = r->created_ms ? r->created_ms : l->out->start_ms;
        at = l->options->is_live && r->created_ms > at ? r->created_ms : at;
        r->available_ms = l->options->is_live ? at : l->out->start_ms;
    }
}

/* Sorts the records by shard, in their order. */
static struct sl_esm_record *sorted_by_shard(const struct load *l)
{
    const struct sl_recording *out = l->out;
    if (out->n_shards == 1)
        return l->records;
    struct sl_esm_record *sorted = sl_arena_alloc(l->arena, (out->n + 1) * sizeof(*sorted));
    size_t *next = sl_arena_zalloc(l->arena, (out->n_shards + 1) * sizeof(*next));
    for (size_t k = 1; k < out->n_shards; k++)
        next[k] = next[k - 1] + out->shards[k - 1].n;
    for (size_t i = 0; i < out->n; i++)
        sorted[next[l->shard_of[i]]++] = l->records[i];
    return sorted;
}

static enum sl_status recording_load(struct sl_recording *out, const struct sl_recording_options *options,
                                     const size_t *n_in_shard, struct sl_arena *arena, struct sl_error *error)
{
    struct load l = {.out = out, .options = options, .arena = arena};
    l.records = sl_arena_alloc(arena, (out->n + 1) * sizeof(*l.records));
    l.shard_of = sl_arena_alloc(arena, (out->n + 1) * sizeof(*l.shard_of));
    for (size_t i = 0; i < out->n; i++)
        l.shard_of[i] = sl_index_get(out->index, i, &l.records[i]);
    if (options->needs_records && decode_records(&l, error) != SL_OK)
        return SL_REJECT;
    set_times(&l);
    for (size_t k = 0; k < out->n_shards; k++)
        out->shards[k].n = n_in_shard[k];
    const struct sl_esm_record *at = sorted_by_shard(&l);
    for (size_t k = 0; k < out->n_shards; k++) {
        out->shards[k].records = at;
        at += out->shards[k].n;
    }
    return SL_OK;
}

/* ---- the recording ---- */

struct build {
    const struct sl_recording_options *options;
    struct sl_arena *arena; /* the recording's */
    struct sl_lambda_form form;
    struct sl_recording *out;
    struct sl_index *index;
    int64_t oldest_ms, newest_ms;
    size_t n_announced; /* records that the first reading found */
    unsigned n_shards;
    size_t *n_in_shard; /* records */
    uint32_t last_shard;
    bool is_by_page; /* see struct sl_recording */
};

/* What is done with each piece. */
typedef enum sl_status (*piece_fn)(struct build *b, const struct sl_source_piece *piece,
                                   struct sl_error *error);

struct reading {
    struct build *b;
    piece_fn each;
    enum sl_status status; /* of the pieces so far */
    struct sl_error *error;
};

/* In its own thread, while the next piece is read and decoded. */
static bool do_piece(void *self, const struct sl_source_piece *piece)
{
    struct reading *r = self;
    r->status = r->each(r->b, piece, r->error);
    return r->status == SL_OK;
}

/* What is wrong with a piece comes before what is wrong with the next one. */
static enum sl_status read_pieces(struct reading *r, struct sl_source *source, struct sl_error *error)
{
    struct sl_arena *arenas[2] = {sl_arena_new(1 << 20), sl_arena_new(1 << 20)};
    struct sl_behind *behind = sl_behind_new(do_piece, r);
    struct sl_source_piece piece = {.is_last = false};
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    bool goes_on = true;
    for (unsigned k = 0; goes_on && status == SL_OK && !piece.is_last; k ^= 1) {
        const struct sl_call call = {.arena = arenas[k], .deadline_ms = INT64_MAX};
        sl_arena_reset(call.arena);
        status = sl_source_pull(source, SL_BEHIND_PIECE_BYTES, &call, &piece, &why);
        goes_on = status == SL_OK && sl_behind_give(behind, &piece);
    }
    (void)sl_behind_wait(behind);
    sl_behind_destroy(behind);
    if (r->status == SL_OK && status != SL_OK)
        r->status = sl_fail_at(error, status, why.code, why.offset, "%s", why.text);
    sl_arena_destroy(arenas[0]);
    sl_arena_destroy(arenas[1]);
    return r->status;
}

static enum sl_status read_all(struct build *b, piece_fn each, struct sl_error *error)
{
    struct reading r = {.b = b, .each = each, .error = error};
    struct sl_source *source = NULL;
    enum sl_status status = sl_inputs_open(b->options->inputs, b->options->ttl_attribute, &source, error);
    if (status == SL_OK)
        status = read_pieces(&r, source, error);
    sl_source_close(source);
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

/* Where the text is in the piece's input, when it can stay there. */
static bool is_in_input(const struct build *b, const struct sl_source_piece *piece, struct sl_span text,
                        uint64_t *at)
{
    struct sl_span all = piece->batch.payload;
    bool is_view = text.ptr >= all.ptr && text.ptr < sl_span_end(all);
    *at = is_view ? piece->from.byte + (uint64_t)(text.ptr - all.ptr) : 0;
    return is_view && b->is_by_page && !b->options->needs_records &&
           sl_index_may_refer(b->index, piece->file);
}

static uint32_t shard_of(const struct build *b, size_t file, struct sl_span key)
{
    return b->options->is_shard_per_file ? (uint32_t)file : b->n_shards > 1 ? hash_of(key) % b->n_shards : 0;
}

static void add_record(struct build *b, const struct sl_source_piece *piece,
                       const struct sl_lambda_batch *batch, size_t i)
{
    const struct sl_record *r = sl_batch_record(&batch->batch, i);
    struct sl_span key = {NULL, 0};
    struct sl_index_record record = {.text = sl_lambda_batch_text(batch, i),
                                     .id = sl_record_text(r, SL_FIELD_IDENTIFIER),
                                     .created_ms = sl_record_created_ns(r) / 1000000,
                                     .input = (uint32_t)piece->file};
    if (b->options->needs_item_keys || b->options->shards > 1)
        key = sl_record_item_key(r, batch->batch.arena);
    if (b->options->needs_item_keys)
        record.item_key = key;
    record.shard = shard_of(b, piece->file, key);
    record.is_in_input = is_in_input(b, piece, record.text, &record.at);
    b->newest_ms = record.created_ms > b->newest_ms ? record.created_ms : b->newest_ms;
    b->oldest_ms = record.created_ms && record.created_ms < b->oldest_ms ? record.created_ms : b->oldest_ms;
    sl_index_add(b->index, &record);
    b->last_shard = record.shard;
    b->n_in_shard[record.shard]++;
    b->out->n++;
}

static void add_place(struct build *b, const struct sl_source_piece *piece,
                      const struct sl_lambda_batch *batch, size_t i)
{
    const struct sl_record *as_it_came = sl_batch_record(&piece->batch, i);
    const struct sl_record *r = sl_batch_record(&batch->batch, i);
    const struct sl_sequence_record place = {
        .input = b->options->inputs->names[piece->file],
        .index = (size_t)piece->from.record + i,
        .id = sl_record_text(as_it_came, SL_FIELD_IDENTIFIER),
        .stream_arn = batch->is_kinesis ? sl_span(NULL, 0) : sl_record_text(r, SL_FIELD_SOURCE_ARN)};
    uint32_t shard = b->n_shards > 1 ? b->last_shard : 0;
    sl_sequence_add(&b->out->order, shard, &place);
}

static void add_records(struct build *b, const struct sl_source_piece *piece,
                        const struct sl_lambda_batch *batch)
{
    for (size_t i = 0; i < piece->batch.n; i++) {
        count(b->out, sl_batch_record(&piece->batch, i));
        add_record(b, piece, batch, i);
        add_place(b, piece, batch, i);
    }
    sl_sequence_keep(&b->out->order);
    b->out->is_kinesis |= batch->is_kinesis;
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
    add_records(b, piece, &batch);
    /* A stream without an ARN has the one that its records got. */
    if (batch.batch.n && !b->out->stream_arn)
        b->out->stream_arn =
            sl_arena_copy(b->arena, sl_record_text(sl_batch_record(&batch.batch, 0), SL_FIELD_SOURCE_ARN));
    return SL_OK;
}

/* ---- one reading, when no record needs anything from the others ---- */

static enum sl_status take_piece(struct build *b, const struct sl_source_piece *piece, struct sl_error *error)
{
    struct sl_lambda_batch batch;
    enum sl_status status = survey(b, piece, error);
    if (status != SL_OK)
        return status;
    if (!sl_lambda_batch_take(&piece->batch, &batch))
        return sl_fail(error, SL_RETRY, NEEDS_SURVEY, "a record is not as Lambda delivers it");
    add_records(b, piece, &batch);
    return SL_OK;
}

static void begin(struct build *b)
{
    *b->out = (struct sl_recording){0};
    b->form = (struct sl_lambda_form){0};
    b->n_announced = 0;
    b->newest_ms = 0;
    b->oldest_ms = INT64_MAX;
    b->index = b->out->index = sl_index_new(b->options->inputs, b->arena);
    b->n_in_shard = sl_arena_zalloc(b->arena, b->n_shards * sizeof(*b->n_in_shard));
    sl_sequence_init(&b->out->order, b->n_shards, b->arena);
}

static enum sl_status read_twice(struct build *b, struct sl_error *error)
{
    begin(b);
    enum sl_status status = read_all(b, survey, error);
    if (status != SL_OK)
        return status;
    set_form(b);
    return read_all(b, add_piece, error);
}

static enum sl_status read_records(struct build *b, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    begin(b);
    if (!b->options->inputs->n)
        return SL_OK;
    enum sl_status status = read_all(b, take_piece, &why);
    if (status == SL_RETRY && strcmp(why.code, NEEDS_SURVEY) == 0)
        return read_twice(b, error);
    return status == SL_OK ? SL_OK : sl_fail_at(error, status, why.code, why.offset, "%s", why.text);
}

/* ---- the stream ---- */

static void set_start(struct build *b)
{
    const struct sl_recording_options *options = b->options;
    int64_t now = b->newest_ms ? b->newest_ms : (int64_t)time(NULL) * 1000;
    b->out->start_ms = options->start_epoch_s             ? options->start_epoch_s * 1000
                       : options->is_live && b->newest_ms ? b->oldest_ms
                                                          : now;
}

static void name_shards(struct build *b)
{
    struct sl_recording *out = b->out;
    out->shards = sl_arena_zalloc(b->arena, b->n_shards * sizeof(*out->shards));
    out->n_shards = b->n_shards;
    for (unsigned k = 0; k < b->n_shards; k++) {
        out->shards[k].parent = -1;
        out->shards[k].id = sl_arena_printf(b->arena, "shardId-%020lld-%08x", (long long)out->start_ms + k,
                                            hash_of(sl_span_str("sluice")) + k);
    }
}

enum sl_status sl_recording_build(const struct sl_recording_options *options, struct sl_arena *arena,
                                  struct sl_recording *out, struct sl_error *error)
{
    struct build b = {.options = options, .arena = arena, .out = out};
    b.n_shards = options->is_shard_per_file ? (unsigned)options->inputs->n
                 : options->shards > 1      ? (unsigned)options->shards
                                            : 1;
    b.is_by_page = !options->needs_all && !options->is_live && !options->needs_item_keys &&
                   (b.n_shards == 1 || options->is_shard_per_file);
    enum sl_status status = read_records(&b, error);
    if (status == SL_OK)
        status = sl_index_done(b.index, error);
    if (status != SL_OK)
        return status;
    set_start(&b);
    name_shards(&b);
    status = b.is_by_page ? SL_OK : recording_load(out, options, b.n_in_shard, arena, error);
    if (b.is_by_page)
        out->pages = sl_pages_new(out, options, b.n_in_shard, arena);
    sl_recording_release(out);
    return status;
}

void sl_recording_release(const struct sl_recording *recording)
{
    if (recording->index)
        sl_index_release(recording->index);
}
