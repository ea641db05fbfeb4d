/* Notices records that no shard would hold in this order. */
#include "live/source/sequence.h"

void sl_sequence_init(struct sl_sequence *o, size_t shards, struct sl_arena *arena)
{
    *o = (struct sl_sequence){.arena = arena, .shards = shards};
    o->last = sl_arena_zalloc(arena, (shards + 1) * sizeof(*o->last));
    o->first = sl_arena_zalloc(arena, (shards + 1) * sizeof(*o->first));
}

bool sl_sequence_is_after(struct sl_span id, struct sl_span other)
{
    return sl_span_compare_digits(sl_span_without_zeros(id), sl_span_without_zeros(other)) > 0;
}

void sl_sequence_add(struct sl_sequence *o, size_t shard, const struct sl_sequence_record *r)
{
    struct sl_sequence_record *last = &o->last[shard], *first = &o->first[shard];
    if (r->id.ptr && last->id.ptr && !sl_sequence_is_after(r->id, last->id) && o->n_late++ == 0)
        o->late = sl_arena_printf(
            o->arena, "record %zu of %s (SequenceNumber %.*s) does not come after record %zu of %s (%.*s)",
            r->index, r->input, SL_ARG(r->id), last->index, last->input, SL_ARG(last->id));
    if (r->id.ptr)
        *last = *r;
    if (r->stream_arn.ptr && !first->stream_arn.ptr)
        *first = *r;
    if (r->stream_arn.ptr && !o->streams && !sl_span_eq(r->stream_arn, first->stream_arn))
        o->streams = sl_arena_printf(
            o->arena,
            "one shard has records of two streams: %.*s (record %zu of %s) and %.*s (record %zu of %s). A "
            "mapping "
            "reads one stream: replay each by itself, or give each a shard with --shard-per-file",
            SL_ARG(first->stream_arn), first->index, first->input, SL_ARG(r->stream_arn), r->index, r->input);
}

static void keep(struct sl_sequence *o, struct sl_span *text, bool *is_kept)
{
    if (text->ptr && !*is_kept)
        *text = sl_span(sl_arena_copy(o->arena, *text), text->len);
    *is_kept = text->ptr != NULL;
}

void sl_sequence_keep(struct sl_sequence *o)
{
    for (size_t i = 0; i < o->shards; i++) {
        keep(o, &o->last[i].id, &o->last[i].is_kept);
        keep(o, &o->first[i].stream_arn, &o->first[i].is_kept);
        /* The other text of each is not looked at. */
        o->last[i].stream_arn = o->first[i].id = sl_span(NULL, 0);
    }
}

const char *sl_sequence_late(const struct sl_sequence *o)
{
    if (!o->n_late)
        return NULL;
    return sl_arena_printf(
        o->arena,
        "%zu record%s out of order. %s. A stream's shard never has this: give the inputs in "
        "the stream's order, and each shard's with --shard-per-file",
        o->n_late, o->n_late == 1 ? " is" : "s are", o->late);
}

const char *sl_sequence_streams(const struct sl_sequence *o)
{
    return o->streams;
}
