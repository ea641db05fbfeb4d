/* A recording as a whole: every record in memory, its text on disk. For lanes, shards of items, --live and
 * reports, which need more than the records that come next. */
#include "replay/source/recording_private.h"

#include "streams/decode/batch.h"

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

enum sl_status sl_recording_load(struct sl_recording *out, const struct sl_recording_options *options,
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
