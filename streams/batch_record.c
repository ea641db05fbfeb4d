/* One record: its members into a draft, the draft into the batch. */
#include "base/base64.h"
#include "streams/decode.h"

#include <stdio.h>

/* ---- objects whose members we know ---- */

static bool name_is(struct sl_text name, struct sl_span known)
{
    return name.escaped ? sl_json_text_is(name.inner, known) : sl_span_eq(name.inner, known);
}

/* Members nearly always come in the order of the list, so the search begins where the last one ended. */
static size_t find_member(const struct sl_member *members, size_t n, size_t from, struct sl_text name)
{
    for (size_t k = 0; k < n; k++) {
        size_t i = from + k < n ? from + k : from + k - n;
        if (name_is(name, members[i].name))
            return i;
    }
    return n;
}

static const char *member_value(struct sl_decoder *d, const char *p, const struct sl_member *member, void *to)
{
    if (!member || (p < d->scan.end && *p == 'n'))
        return sl_json_value(&d->scan, p);
    return member->read(d, p, to);
}

const char *sl_decode_object(struct sl_decoder *d, const char *p, const struct sl_member *members, size_t n,
                             void *to)
{
    struct sl_json_scan *s = &d->scan;
    size_t next = 0;
    if (p < s->end && *p != '{')
        return sl_decode_fault(s, p, SL_FAULT_RECORD, "an object is expected");
    p = sl_json_byte(s, p, '{', "");
    if (!p)
        return NULL;
    p = sl_json_space(p, s->end);
    if (p < s->end && *p == '}')
        return p + 1;
    for (;;) {
        struct sl_text name;
        const char *close = sl_json_string(s, p, &name.escaped);
        if (!close)
            return NULL;
        name.inner = sl_span(p + 1, (size_t)(close - p - 2));
        p = sl_json_byte(s, sl_json_space(close, s->end), ':', "':' is expected");
        if (!p)
            return NULL;
        size_t found = find_member(members, n, next, name);
        p = member_value(d, sl_json_space(p, s->end), found < n ? &members[found] : NULL, to);
        if (!p)
            return NULL;
        next = found < n ? found + 1 : next;
        p = sl_json_space(p, s->end);
        if (p == s->end || *p != ',')
            return sl_json_byte(s, p, '}', "',' or '}' is expected");
        p = sl_json_space(p + 1, s->end);
    }
}

const char *sl_decode_text(struct sl_decoder *d, const char *p, struct sl_text *text)
{
    if (p < d->scan.end && *p != '"')
        return sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "a string is expected");
    const char *next = sl_json_string(&d->scan, p, &text->escaped);
    if (next)
        text->inner = sl_span(p + 1, (size_t)(next - p - 2));
    return next;
}

/* ---- readers ---- */

#define READ_TEXT(name, field)                                                                               \
    static const char *name(struct sl_decoder *d, const char *p, void *to)                                   \
    {                                                                                                        \
        return sl_decode_text(d, p, &((struct sl_draft *)to)->field);                                        \
    }

READ_TEXT(read_event_id, event_id)
READ_TEXT(read_event_name, event_name)
READ_TEXT(read_event_source, event_source)
READ_TEXT(read_region, region)
READ_TEXT(read_arn, arn)
READ_TEXT(read_table_name, table_name)
READ_TEXT(read_sequence, sequence)
READ_TEXT(read_view, view)
READ_TEXT(read_precision, precision)
READ_TEXT(read_identity_type, identity_type)
READ_TEXT(read_identity_principal, identity_principal)
READ_TEXT(read_data, data)
READ_TEXT(read_outer_sequence, outer_sequence)

static const char *read_image(struct sl_decoder *d, const char *p, struct sl_span *image)
{
    const char *next = sl_decode_attributes(&d->scan, p, 0);
    if (next)
        *image = sl_span(p, (size_t)(next - p));
    return next;
}

static const char *read_keys(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, &((struct sl_draft *)to)->image[SL_KEYS]);
}

static const char *read_new_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, &((struct sl_draft *)to)->image[SL_NEW_IMAGE]);
}

static const char *read_old_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, &((struct sl_draft *)to)->image[SL_OLD_IMAGE]);
}

static const char *read_number(struct sl_decoder *d, const char *p, struct sl_span *number)
{
    const char *next = sl_json_number(&d->scan, p);
    if (next)
        *number = sl_span(p, (size_t)(next - p));
    return next;
}

/* A number, as AWS writes it, or a string: the AWS CLI writes a date, some documentation quotes the number.
 */
static const char *read_created(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_draft *draft = to;
    struct sl_text text;
    if (p < d->scan.end && *p != '"')
        return read_number(d, p, &draft->created);
    p = sl_decode_text(d, p, &text);
    if (p)
        draft->created = text.inner;
    return p;
}

static const char *read_stated(struct sl_decoder *d, const char *p, void *to)
{
    return read_number(d, p, &((struct sl_draft *)to)->stated);
}

static const char *read_record_format(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_record_format = true;
    return sl_json_value(&d->scan, p);
}

/* ---- nested objects ---- */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The Streams API's own spelling has capitals, Lambda's has not. */
static const struct sl_member identity_members[] = {
    {SL_LIT("type"), read_identity_type},
    {SL_LIT("principalId"), read_identity_principal},
    {SL_LIT("Type"), read_identity_type},
    {SL_LIT("PrincipalId"), read_identity_principal},
};

static const char *read_identity(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_identity = true;
    return sl_decode_object(d, p, identity_members, COUNT(identity_members), to);
}

/* In the order in which AWS writes them. */
static const struct sl_member change_members[] = {
    {SL_LIT("ApproximateCreationDateTime"), read_created},
    {SL_LIT("Keys"), read_keys},
    {SL_LIT("NewImage"), read_new_image},
    {SL_LIT("OldImage"), read_old_image},
    {SL_LIT("SequenceNumber"), read_sequence},
    {SL_LIT("SizeBytes"), read_stated},
    {SL_LIT("StreamViewType"), read_view},
    {SL_LIT("ApproximateCreationDateTimePrecision"), read_precision},
};

static const char *read_change(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_change = true;
    return sl_decode_object(d, p, change_members, COUNT(change_members), to);
}

static const struct sl_member kinesis_members[] = {
    {SL_LIT("sequenceNumber"), read_outer_sequence},
    {SL_LIT("data"), read_data},
};

static const char *read_kinesis(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_kinesis = true;
    return sl_decode_object(d, p, kinesis_members, COUNT(kinesis_members), to);
}

/* ---- table exports ---- */

static const char *read_written_number(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_text text;
    p = sl_decode_text(d, p, &text);
    if (p)
        ((struct sl_draft *)to)->written = text.inner;
    return p;
}

static const struct sl_member written_members[] = {{SL_LIT("N"), read_written_number}};

static const char *read_written(struct sl_decoder *d, const char *p, void *to)
{
    return sl_decode_object(d, p, written_members, COUNT(written_members), to);
}

static const struct sl_member metadata_members[] = {{SL_LIT("WriteTimestampMicros"), read_written}};

static const char *read_metadata(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_metadata = true;
    return sl_decode_object(d, p, metadata_members, COUNT(metadata_members), to);
}

static const char *read_item(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_item = true;
    return read_new_image(d, p, to);
}

static const struct sl_member record_members[] = {
    {SL_LIT("eventID"), read_event_id},
    {SL_LIT("eventName"), read_event_name},
    {SL_LIT("eventSource"), read_event_source},
    {SL_LIT("awsRegion"), read_region},
    {SL_LIT("dynamodb"), read_change},
    {SL_LIT("eventSourceARN"), read_arn},
    {SL_LIT("userIdentity"), read_identity},
    {SL_LIT("kinesis"), read_kinesis},
    {SL_LIT("recordFormat"), read_record_format},
    {SL_LIT("tableName"), read_table_name},
};

/* Lines of a table export or of an archive, beside records. */
static const struct sl_member line_members[] = {
    {SL_LIT("eventID"), read_event_id},
    {SL_LIT("eventName"), read_event_name},
    {SL_LIT("eventSource"), read_event_source},
    {SL_LIT("awsRegion"), read_region},
    {SL_LIT("dynamodb"), read_change},
    {SL_LIT("eventSourceARN"), read_arn},
    {SL_LIT("userIdentity"), read_identity},
    {SL_LIT("kinesis"), read_kinesis},
    {SL_LIT("recordFormat"), read_record_format},
    {SL_LIT("tableName"), read_table_name},
    {SL_LIT("Item"), read_item},
    {SL_LIT("Metadata"), read_metadata},
    {SL_LIT("Keys"), read_keys},
    {SL_LIT("NewImage"), read_new_image},
    {SL_LIT("OldImage"), read_old_image},
};

/* ---- room for records ---- */

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
    /* No record is shorter than forty bytes, so a small payload needs no whole chunk. */
    size_t most = batch->payload.len / 40 + 1;
    d->room = used || most > SL_CHUNK_RECORDS ? SL_CHUNK_RECORDS : most;
    struct sl_record_chunk *chunk =
        sl_arena_alloc(batch->arena, sizeof(*chunk) + d->room * sizeof(struct sl_record));
    chunk->shared = d->shared;
    chunk->indexes = NULL;
    batch->chunks[used] = chunk;
    return chunk;
}

static struct sl_record *add_record(struct sl_decoder *d)
{
    size_t slot = d->batch->n % SL_CHUNK_RECORDS;
    struct sl_record_chunk *chunk =
        slot == 0 ? add_chunk(d) : d->batch->chunks[d->batch->n / SL_CHUNK_RECORDS];
    struct sl_record *r = &chunk->records[slot];
    *r = (struct sl_record){.slot = (unsigned)slot};
    d->batch->n++;
    return r;
}

/* ---- origins ---- */

static struct sl_span resolved(struct sl_decoder *d, struct sl_text text)
{
    return text.escaped ? sl_json_unescape(text.inner, d->batch->arena) : text.inner;
}

static bool is_origin(const struct sl_decoder *d, const struct sl_origin *o, const struct sl_draft *draft)
{
    return o->base == d->base && sl_span_eq(o->arn, draft->arn.inner) &&
           sl_span_eq(o->region, draft->region.inner) && sl_span_eq(o->table_name, draft->table_name.inner);
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

/* A batch has one origin as a rule. With more, the last few are looked at: lines from many tables may cost
 * some memory, but no time. */
static uint32_t origin_of(struct sl_decoder *d, const struct sl_draft *draft)
{
    struct sl_shared *shared = d->shared;
    bool escaped = draft->arn.escaped || draft->region.escaped || draft->table_name.escaped;
    for (uint32_t i = shared->n_origins; i > 0 && shared->n_origins - i < 8 && !escaped; i--)
        if (is_origin(d, &shared->origins[i - 1], draft))
            return i - 1;
    if (shared->n_origins == shared->room_origins)
        grow_origins(shared);
    shared->origins[shared->n_origins] = (struct sl_origin){
        .base = d->base,
        .end = d->base == d->data ? d->data + d->batch->payload.len : d->scan.end,
        .region = resolved(d, draft->region),
        .arn = resolved(d, draft->arn),
        .table_name = resolved(d, draft->table_name),
    };
    return shared->n_origins++;
}

/* ---- the rules ---- */

static const char *refuse(struct sl_decoder *d, const struct sl_draft *draft, const char *why)
{
    return sl_decode_fault(&d->scan, draft->raw.ptr, SL_FAULT_RECORD, why);
}

static bool text_is(struct sl_text text, const char *known)
{
    return name_is(text, sl_span_str(known));
}

static bool event_of(const struct sl_draft *draft, unsigned *event)
{
    bool has_new = draft->image[SL_NEW_IMAGE].ptr, has_old = draft->image[SL_OLD_IMAGE].ptr;
    *event = SL_INSERT;
    if (draft->has_item)
        return true;
    if (draft->has_metadata && !draft->event_name.inner.ptr) {
        *event = !has_new ? SL_REMOVE : has_old ? SL_MODIFY : SL_INSERT;
        return true;
    }
    static const char *const names[] = {"INSERT", "MODIFY", "REMOVE"};
    for (unsigned i = 0; i < 3; i++) {
        *event = SL_INSERT + i;
        if (text_is(draft->event_name, names[i]))
            return true;
    }
    return false;
}

static bool view_of(struct sl_text text, unsigned *view)
{
    static const char *const names[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    *view = SL_VIEW_UNKNOWN;
    if (!text.inner.ptr)
        return true;
    for (unsigned i = 0; i < COUNT(names); i++) {
        if (!text_is(text, names[i]))
            continue;
        *view = SL_VIEW_KEYS_ONLY + i;
        return true;
    }
    return false;
}

static bool is_sequence(struct sl_text text)
{
    for (size_t i = 0; i < text.inner.len; i++)
        if (text.inner.ptr[i] < '0' || text.inner.ptr[i] > '9')
            return false;
    return text.inner.len > 0;
}

static unsigned identity_of(const struct sl_draft *draft)
{
    if (!draft->has_identity)
        return SL_IDENTITY_NONE;
    bool is_service = text_is(draft->identity_type, "Service") &&
                      text_is(draft->identity_principal, "dynamodb.amazonaws.com");
    return is_service ? SL_IDENTITY_DYNAMODB : SL_IDENTITY_OTHER;
}

/* Seconds on DynamoDB Streams; through Kinesis milliseconds, or what the record says. Numbers that as seconds
 * would be beyond the year 5000 are read as what they must be. */
static unsigned unit_of(const struct sl_draft *draft)
{
    if (text_is(draft->precision, "MICROSECOND"))
        return SL_MICROSECONDS;
    if (text_is(draft->precision, "MILLISECOND") || draft->has_record_format)
        return SL_MILLISECONDS;
    struct sl_number number;
    if (sl_number_parse(draft->created, &number) || number.exponent <= 11)
        return SL_SECONDS;
    return number.exponent <= 14 ? SL_MILLISECONDS : SL_MICROSECONDS;
}

static bool stated_of(struct sl_span text, uint32_t *bytes)
{
    struct sl_number number;
    int64_t value;
    bool exact;
    if (!text.ptr)
        return true;
    if (sl_number_parse(text, &number) || !sl_number_int64(&number, 0, &value, &exact) || !exact || value < 0)
        return false;
    *bytes = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    return true;
}

static uint32_t place(const struct sl_decoder *d, struct sl_span text)
{
    return text.ptr ? (uint32_t)(text.ptr - d->base) : 0;
}

/* What is wrong with the draft's texts, NULL when nothing is; the record's bits are filled from them. */
static const char *bits_of(const struct sl_draft *draft, struct sl_record *r)
{
    unsigned event, view;
    int64_t ns, step_ns;
    if (!event_of(draft, &event))
        return draft->event_name.inner.ptr ? "eventName is none of INSERT, MODIFY, REMOVE"
                                           : "it has no eventName";
    if (!draft->image[SL_KEYS].ptr && !draft->has_item)
        return "it has no Keys";
    if (draft->has_item && !draft->image[SL_NEW_IMAGE].ptr)
        return "Item is null";
    if (draft->sequence.inner.ptr && !is_sequence(draft->sequence))
        return "SequenceNumber is not a decimal number";
    if (!view_of(draft->view, &view))
        return "no such StreamViewType";
    if (!stated_of(draft->stated, &r->stated))
        return "SizeBytes is no whole number";
    r->unit = draft->has_metadata ? SL_MICROSECONDS : unit_of(draft);
    struct sl_span created = draft->has_metadata ? draft->written : draft->created;
    if (created.ptr && !sl_time_read(created, r->unit, &ns, &step_ns))
        return draft->has_metadata ? "WriteTimestampMicros is no time"
                                   : "ApproximateCreationDateTime is no time";
    r->event = event & 3;
    r->view = view & 7;
    r->identity = identity_of(draft) & 3;
    r->is_wrapped = draft->identifier.ptr;
    r->is_timed = draft->has_metadata || draft->has_record_format;
    return NULL;
}

static const char *finish(struct sl_decoder *d, const struct sl_draft *draft, const char *next)
{
    struct sl_record bits = {.stated = 0};
    const char *why = bits_of(draft, &bits);
    if (why)
        return refuse(d, draft, why);
    struct sl_record *r = add_record(d);
    bits.slot = r->slot;
    *r = bits;
    r->raw = (uint32_t)(draft->raw.ptr - d->base);
    r->raw_len = (uint32_t)draft->raw.len;
    for (int i = 0; i < 3; i++) {
        r->image[i] = place(d, draft->image[i]);
        r->image_len[i] = (uint32_t)draft->image[i].len;
    }
    r->event_id = place(d, draft->event_id.inner);
    r->sequence = place(d, r->is_wrapped ? draft->identifier : draft->sequence.inner);
    r->created = place(d, draft->has_metadata ? draft->written : draft->created);
    r->origin = origin_of(d, draft);
    return next;
}

/* ---- records that are something else ---- */

/* Not a change at all: the first one says so of the whole payload. */
static const char *foreign(struct sl_decoder *d, const struct sl_draft *draft)
{
    struct sl_span source = draft->event_source.inner;
    bool is_ours = text_is(draft->event_source, "aws:dynamodb");
    unsigned event;
    if (source.ptr && !is_ours)
        snprintf(d->why, sizeof(d->why), "its eventSource is %.*s", (int)(source.len > 50 ? 50 : source.len),
                 source.ptr);
    else
        snprintf(d->why, sizeof(d->why), "it has no member \"dynamodb\"");
    bool is_change = is_ours || (!source.ptr && event_of(draft, &event));
    return sl_decode_fault(&d->scan, draft->raw.ptr,
                           d->batch->n == 0 && !is_change ? SL_FAULT_EVENT : SL_FAULT_RECORD, d->why);
}

/* ---- Kinesis ---- */

/* The bytes of `data` at the end of the batch's decoded data, and behind them the record's identifier with a
 * quote. The payload's size is room enough for all: four letters make three bytes. */
static bool unwrap(struct sl_decoder *d, const struct sl_draft *outer, struct sl_span *data,
                   struct sl_span *identifier)
{
    struct sl_span text = resolved(d, outer->data);
    if (!d->data)
        d->data = sl_arena_alloc(d->batch->arena, d->batch->payload.len);
    char *to = d->data + d->data_len;
    if (!sl_base64_decode(text, (unsigned char *)to))
        return false;
    *data = sl_span(to, sl_base64_decoded_bytes(text));
    char *behind = to + data->len;
    *identifier = sl_span(behind, outer->outer_sequence.inner.len);
    memcpy(behind, outer->outer_sequence.inner.ptr, identifier->len);
    behind[identifier->len] = '"';
    d->data_len += data->len + identifier->len + 1;
    return true;
}

/* The change inside was read with a scan of its own; its fault becomes one of the outer record. */
static const char *inner_fault(struct sl_decoder *d, const struct sl_draft *outer, struct sl_span data,
                               const struct sl_json_scan *inner)
{
    char why[100];
    snprintf(why, sizeof(why), "%s", inner->why);
    enum sl_fault kind = inner->kind != SL_FAULT_JSON ? (enum sl_fault)inner->kind
                         : d->batch->n == 0           ? SL_FAULT_EVENT
                                                      : SL_FAULT_RECORD;
    snprintf(d->why, sizeof(d->why), "its data%s byte %zu: %s",
             inner->kind == SL_FAULT_JSON ? " is no JSON at" : ",", (size_t)(inner->at - data.ptr), why);
    return sl_decode_fault(&d->scan, outer->data.inner.ptr, kind, d->why);
}

/* The change itself, with the decoder turned to its text. */
static const char *read_inner(struct sl_decoder *d, const char *begin, struct sl_draft *draft)
{
    draft->raw.ptr = begin;
    if (begin < d->scan.end && *begin != '{')
        return foreign(d, draft);
    const char *p = sl_decode_object(d, begin, record_members, COUNT(record_members), draft);
    if (!p)
        return NULL;
    if (sl_json_space(p, d->scan.end) != d->scan.end)
        return sl_json_fault(&d->scan, p, "something stands behind the value");
    draft->raw.len = (size_t)(p - begin);
    return draft->has_change ? finish(d, draft, p) : foreign(d, draft);
}

static const char *decode_inner(struct sl_decoder *d, const struct sl_draft *outer, const char *next)
{
    struct sl_span data;
    struct sl_draft draft = {.region = outer->region, .has_record_format = true};
    if (!is_sequence(outer->outer_sequence))
        return refuse(d, outer, "kinesis.sequenceNumber is not a decimal number");
    if (!outer->data.inner.ptr || !unwrap(d, outer, &data, &draft.identifier))
        return refuse(d, outer, "kinesis.data is not base64");
    struct sl_decoder inner = *d;
    inner.scan = (struct sl_json_scan){.end = data.ptr + data.len};
    inner.base = d->data;
    draft.arn = outer->arn;
    const char *begin = sl_json_space(data.ptr, inner.scan.end);
    if (read_inner(&inner, begin, &draft)) {
        d->room = inner.room;
        return next;
    }
    if (inner.scan.kind != SL_FAULT_JSON)
        sl_decode_prefer_json(&inner.scan, begin);
    return inner_fault(d, outer, data, &inner.scan);
}

/* ---- a record ---- */

const char *sl_decode_record(struct sl_decoder *d, const char *p)
{
    struct sl_draft draft = {.raw = {p, 0}};
    const struct sl_member *members = d->any_shape ? line_members : record_members;
    size_t n = d->any_shape ? COUNT(line_members) : COUNT(record_members);
    const char *next = sl_decode_object(d, p, members, n, &draft);
    if (!next)
        return NULL;
    draft.raw.len = (size_t)(next - p);
    if (draft.has_kinesis)
        return decode_inner(d, &draft, next);
    if (!draft.has_change && !draft.has_item && !draft.has_metadata)
        return foreign(d, &draft);
    if (draft.event_source.inner.ptr && !text_is(draft.event_source, "aws:dynamodb"))
        return foreign(d, &draft);
    return finish(d, &draft, next);
}
