/* Drafts that are whole become records of the batch. */
#include "streams/decode/batch_private.h"

#include <stdio.h>

/* ---- room ---- */

static struct sl_record_chunk *add_chunk(struct sl_decoder *d)
{
    struct sl_batch *batch = d->batch;
    size_t used = batch->n / SL_CHUNK_RECORDS;
    if ((used & (used - 1)) == 0) { /* at 0, 1, 2, 4, ...: room for twice as many */
        size_t room = used ? 2 * used : 1;
        struct sl_record_chunk **chunks =
            sl_arena_alloc(batch->arena, room * sizeof(struct sl_record_chunk *));
        if (used)
            memcpy(chunks, batch->chunks, used * sizeof(struct sl_record_chunk *));
        batch->chunks = chunks;
    }
    /* No record is shorter than this, so a small payload needs no whole chunk. */
    size_t most = batch->payload.len / sizeof("{\"Item\":{}}") + 1;
    d->room = used || most > SL_CHUNK_RECORDS ? SL_CHUNK_RECORDS : most;
    struct sl_record_chunk *chunk =
        sl_arena_alloc(batch->arena, sizeof(*chunk) + d->room * sizeof(struct sl_record));
    chunk->shared = d->shared;
    chunk->indexes = NULL;
    batch->chunks[used] = chunk;
    return chunk;
}

/* The next record, with nothing in it yet but its place in the chunk. */
static struct sl_record *add_record(struct sl_decoder *d)
{
    size_t slot = d->batch->n % SL_CHUNK_RECORDS;
    struct sl_record_chunk *chunk =
        slot == 0 ? add_chunk(d) : d->batch->chunks[d->batch->n / SL_CHUNK_RECORDS];
    struct sl_record *r = &chunk->records[slot];
    *r = (struct sl_record){.slot = slot & 255};
    d->batch->n++;
    return r;
}

/* ---- origins ---- */

static bool is_origin(const struct sl_decoder *d, const struct sl_origin *o, const struct sl_draft *draft)
{
    return o->base == d->base && sl_span_eq(o->arn, draft->arn.inner) &&
           sl_span_eq(o->region, draft->region.inner) && sl_span_eq(o->table_name, draft->table_name.inner);
}

/* Whether the texts are the very ones of the last record. */
static bool is_last_origin(const struct sl_decoder *d, const struct sl_draft *draft)
{
    const struct sl_origin *last = &d->last_origin;
    return last->base == d->base && last->arn.ptr == draft->arn.inner.ptr &&
           last->region.ptr == draft->region.inner.ptr && last->table_name.ptr == draft->table_name.inner.ptr;
}

static void grow_origins(struct sl_shared *shared)
{
    uint32_t room = shared->room_origins ? 2 * shared->room_origins : 1;
    struct sl_origin *origins = sl_arena_alloc(shared->arena, room * sizeof(*origins));
    if (shared->n_origins)
        memcpy(origins, shared->origins, shared->n_origins * sizeof(*origins));
    shared->origins = origins;
    shared->room_origins = room;
}

static uint32_t new_origin(struct sl_decoder *d, const struct sl_draft *draft)
{
    struct sl_shared *shared = d->shared;
    if (shared->n_origins == shared->room_origins)
        grow_origins(shared);
    shared->origins[shared->n_origins] = (struct sl_origin){
        .base = d->base,
        .end = d->base == d->data ? d->data + d->batch->payload.len : d->scan.end,
        .region = sl_decode_resolved(d, draft->region),
        .arn = sl_decode_resolved(d, draft->arn),
        .table_name = sl_decode_resolved(d, draft->table_name),
    };
    return shared->n_origins++;
}

/* A batch has one origin as a rule. With more, only the last few are compared: lines from many tables may
 * cost some memory, but no time. */
static uint32_t find_origin(struct sl_decoder *d, const struct sl_draft *draft)
{
    const struct sl_shared *shared = d->shared;
    bool escaped = draft->arn.escaped || draft->region.escaped || draft->table_name.escaped;
    for (uint32_t i = shared->n_origins; i > 0 && shared->n_origins - i < 8 && !escaped; i--)
        if (is_origin(d, &shared->origins[i - 1], draft))
            return i - 1;
    return new_origin(d, draft);
}

static uint32_t origin_of(struct sl_decoder *d, const struct sl_draft *draft)
{
    if (!is_last_origin(d, draft)) {
        d->last_origin_at = find_origin(d, draft);
        d->last_origin =
            (struct sl_origin){d->base, NULL, draft->region.inner, draft->arn.inner, draft->table_name.inner};
    }
    return d->last_origin_at;
}

/* ---- what only the whole tells ---- */

static unsigned event_of(const struct sl_draft *draft)
{
    bool has_new = draft->image[SL_NEW_IMAGE].ptr, has_old = draft->image[SL_OLD_IMAGE].ptr;
    if (draft->has_item)
        return SL_INSERT;
    if (draft->has_metadata && !draft->event)
        return !has_new ? SL_REMOVE : has_old ? SL_MODIFY : SL_INSERT;
    return draft->event;
}

static enum sl_identity identity_of(const struct sl_draft *draft)
{
    if (!draft->has_identity)
        return SL_IDENTITY_NONE;
    return draft->is_service && draft->is_dynamodb ? SL_IDENTITY_DYNAMODB : SL_IDENTITY_OTHER;
}

/* Seconds on DynamoDB Streams; through Kinesis milliseconds, or what the record says. A number that would
 * mean a time after the year 5000 in seconds is read as milliseconds or microseconds. */
static enum sl_time_unit unit_of(const struct sl_draft *draft)
{
    if (draft->has_metadata)
        return SL_MICROSECONDS;
    if (draft->has_precision)
        return draft->precision;
    if (draft->has_record_format)
        return SL_MILLISECONDS;
    struct sl_number number;
    if (draft->is_plain_seconds || sl_number_parse(draft->created, &number) || number.exponent <= 11)
        return SL_SECONDS;
    return number.exponent <= 14 ? SL_MILLISECONDS : SL_MICROSECONDS;
}

static bool is_time(const struct sl_draft *draft, enum sl_time_unit unit)
{
    int64_t ns, step_ns;
    return !draft->created.ptr || draft->is_plain_seconds ||
           sl_record_read_time(draft->created, unit, &ns, &step_ns);
}

/* What is wrong with the draft; NULL: nothing. */
static const char *fault_of(const struct sl_draft *draft, unsigned event, enum sl_time_unit unit)
{
    if (!event)
        return draft->event_name.inner.ptr ? "eventName is not INSERT, MODIFY or REMOVE"
                                           : "it has no eventName";
    if (!draft->image[SL_KEYS].ptr && !draft->has_item)
        return "it has no Keys";
    if (!is_time(draft, unit))
        return draft->has_metadata ? "WriteTimestampMicros is not a time"
                                   : "ApproximateCreationDateTime is not a time";
    return NULL;
}

static uint32_t place(const struct sl_decoder *d, const char *p)
{
    return p ? (uint32_t)(p - d->base) : 0;
}

static void keep_indexes(struct sl_record *r, const struct sl_draft *draft)
{
    for (enum sl_image i = SL_KEYS; i <= SL_OLD_IMAGE; i++)
        if (draft->index[i])
            sl_record_indexes(r)[i] = draft->index[i];
}

const char *sl_decode_add(struct sl_decoder *d, const struct sl_draft *draft, const char *next)
{
    unsigned event = event_of(draft);
    enum sl_time_unit unit = unit_of(draft);
    const char *why = fault_of(draft, event, unit);
    if (why)
        return sl_decode_fault(&d->scan, draft->raw.ptr, SL_FAULT_RECORD, why);
    struct sl_record *r = add_record(d);
    r->raw = (uint32_t)(draft->raw.ptr - d->base);
    r->raw_len = (uint32_t)draft->raw.len;
    for (int i = 0; i < 3; i++) {
        r->image[i] = place(d, draft->image[i].ptr);
        r->image_len[i] = (uint32_t)draft->image[i].len;
    }
    keep_indexes(r, draft);
    r->event_id = place(d, draft->event_id);
    r->sequence = place(d, draft->identifier ? draft->identifier : draft->sequence);
    r->created = place(d, draft->created.ptr);
    r->stated = draft->stated;
    r->origin = origin_of(d, draft);
    r->event = event & 3;
    r->view = draft->view & 7;
    r->unit = unit & 3;
    r->identity = identity_of(draft) & 3;
    r->is_wrapped = draft->identifier;
    r->is_timed = draft->has_metadata || draft->has_record_format;
    return next;
}

const char *sl_decode_foreign(struct sl_decoder *d, const struct sl_draft *draft)
{
    struct sl_span source = draft->event_source.inner;
    bool is_ours = sl_decode_text_is(draft->event_source, SL_LIT("aws:dynamodb"));
    if (source.ptr && !is_ours)
        snprintf(d->why, sizeof(d->why), "its eventSource is %.*s, not aws:dynamodb",
                 (int)(source.len > 50 ? 50 : source.len), source.ptr);
    else
        snprintf(d->why, sizeof(d->why), "it has no member \"dynamodb\"");
    bool is_change = is_ours || (!source.ptr && draft->event);
    return sl_decode_fault(&d->scan, draft->raw.ptr,
                           sl_decode_is_first(d) && !is_change ? SL_FAULT_EVENT : SL_FAULT_RECORD, d->why);
}
