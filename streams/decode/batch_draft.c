/* The members of a record, read into a draft. */
#include "base/array.h"
#include "base/scan.h"
#include "streams/decode/batch_private.h"

/* ---- texts ---- */

#define READ_TEXT(name, field)                                                                               \
    static const char *name(struct sl_decoder *d, const char *p, void *to)                                   \
    {                                                                                                        \
        return sl_decode_text(d, p, &((struct sl_draft *)to)->field);                                        \
    }

#define READ_REPEATED(name, field)                                                                           \
    static const char *name(struct sl_decoder *d, const char *p, void *to)                                   \
    {                                                                                                        \
        return sl_decode_repeated(d, p, &d->last.field, &((struct sl_draft *)to)->field);                    \
    }

READ_TEXT(read_data, data)
READ_TEXT(read_outer_sequence, outer_sequence)
READ_REPEATED(read_event_source, event_source)
READ_REPEATED(read_region, region)
READ_REPEATED(read_arn, arn)
READ_REPEATED(read_table_name, table_name)

static const char *read_event_version(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_string text;
    (void)to;
    if (p < d->scan.end && *p != '"')
        return sl_json_value(&d->scan, p);
    return sl_decode_repeated(d, p, &d->last.event_version, &text);
}

static const char *read_event_id(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_string text;
    ((struct sl_draft *)to)->event_id = p + 1;
    return sl_decode_text(d, p, &text);
}

/* An eventName of ours is noted as what it means. Another name is kept: it may tell what the record is
 * instead. */
static const char *read_event_name(struct sl_decoder *d, const char *p, void *to)
{
    static const struct sl_span names[] = {SL_LIT("INSERT"), SL_LIT("MODIFY"), SL_LIT("REMOVE")};
    struct sl_draft *draft = to;
    draft->event = 0;
    for (unsigned i = 0; d->scan.end - p >= 8 && i < SL_COUNT(names); i++)
        if (p[0] == '"' && memcmp(p + 1, names[i].ptr, 6) == 0 && p[7] == '"') {
            draft->event = SL_INSERT + i;
            return p + 8;
        }
    p = sl_decode_text(d, p, &draft->event_name);
    for (unsigned i = 0; p && i < SL_COUNT(names); i++)
        if (sl_decode_text_is(draft->event_name, names[i]))
            draft->event = SL_INSERT + i;
    return p;
}

static const char *read_view(struct sl_decoder *d, const char *p, void *to)
{
    static const struct sl_span names[] = {SL_LIT("KEYS_ONLY"), SL_LIT("NEW_IMAGE"), SL_LIT("OLD_IMAGE"),
                                           SL_LIT("NEW_AND_OLD_IMAGES")};
    struct sl_string text;
    const char *next = sl_decode_text(d, p, &text);
    for (unsigned i = 0; next && i < SL_COUNT(names); i++)
        if (sl_decode_text_is(text, names[i])) {
            ((struct sl_draft *)to)->view = SL_VIEW_KEYS_ONLY + i;
            return next;
        }
    return next
               ? sl_decode_fault(&d->scan, p, SL_FAULT_RECORD,
                                 "not a StreamViewType (KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES)")
               : NULL;
}

/* Decimal digits in quotes, of any length. */
static const char *read_digits(struct sl_decoder *d, const char *p, const char *why)
{
    struct sl_string text;
    const char *next = d->scan.end - p > 2 && *p == '"' ? sl_scan_digits(p + 1, d->scan.end) : NULL;
    if (next && *next == '"' && next > p + 1)
        return next + 1;
    next = sl_decode_text(d, p, &text);
    if (!next)
        return NULL;
    for (size_t i = 0; i < text.inner.len; i++)
        if (text.inner.ptr[i] < '0' || text.inner.ptr[i] > '9')
            text.inner.len = 0;
    return text.inner.len ? next : sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, why);
}

static const char *read_sequence(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->sequence = p + 1;
    return read_digits(d, p, "SequenceNumber is not a decimal number");
}

/* ---- numbers ---- */

/* Ten digits, the form of all times of our days; a time in any unit. */
static bool is_plain_seconds(const char *p, const char *next)
{
    return next - p == 10 && *p >= '1' && *p <= '8' && !memchr(p, '.', 10) && !memchr(p, 'e', 10) &&
           !memchr(p, 'E', 10);
}

/* A number, as AWS writes it, or a string: the AWS CLI writes a date, some documentation quotes the number.
 * */
static const char *read_created(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_draft *draft = to;
    struct sl_string text;
    bool is_quoted = p < d->scan.end && *p == '"';
    const char *next = is_quoted ? sl_decode_text(d, p, &text) : sl_json_number(&d->scan, p);
    if (!next)
        return NULL;
    draft->created = is_quoted ? text.inner : sl_span(p, (size_t)(next - p));
    draft->is_plain_seconds = !is_quoted && is_plain_seconds(p, next);
    return next;
}

static bool whole_number(struct sl_span text, uint32_t *value)
{
    struct sl_number number;
    int64_t any;
    bool exact;
    if (sl_number_parse(text, &number) || !sl_number_int64(&number, 0, &any, &exact) || !exact || any < 0)
        return false;
    *value = any > UINT32_MAX ? UINT32_MAX : (uint32_t)any;
    return true;
}

static const char *read_stated(struct sl_decoder *d, const char *p, void *to)
{
    uint32_t *stated = &((struct sl_draft *)to)->stated, few = 0;
    const char *next = sl_json_number(&d->scan, p);
    if (!next)
        return NULL;
    size_t n = (size_t)(next - p), i = 0;
    for (; i < n && n < 10 && p[i] >= '0' && p[i] <= '9'; i++)
        few = few * 10 + (uint32_t)(p[i] - '0');
    *stated = few;
    if (i == n || whole_number(sl_span(p, n), stated))
        return next;
    return sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "SizeBytes is not a whole number");
}

static const char *read_precision(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_draft *draft = to;
    struct sl_string text;
    const char *next = sl_decode_text(d, p, &text);
    if (!next)
        return NULL;
    bool is_micro = sl_decode_text_is(text, SL_LIT("MICROSECOND"));
    if (!is_micro && !sl_decode_text_is(text, SL_LIT("MILLISECOND")))
        return sl_decode_fault(&d->scan, p, SL_FAULT_RECORD, "not a precision (MILLISECOND, MICROSECOND)");
    draft->precision = is_micro ? SL_MICROSECONDS : SL_MILLISECONDS;
    draft->has_precision = true;
    return next;
}

/* ---- images ---- */

/* `index` may be NULL. */
static const char *read_map(struct sl_decoder *d, const char *p, unsigned form, struct sl_span *map,
                            const struct sl_image_index **index)
{
    d->notes.base = d->base;
    d->notes.n = 0;
    const char *next = sl_decode_attributes(d, p, 0, &d->forms->list[form]);
    if (!next)
        return NULL;
    *map = sl_span(p, (size_t)(next - p));
    if (index && d->notes.room)
        *index = map->len >= SL_INDEXED_BYTES && d->notes.n <= d->notes.room
                     ? sl_image_index_new(d->shared->arena, &d->notes)
                     : NULL;
    return next;
}

static const char *read_image(struct sl_decoder *d, const char *p, struct sl_draft *draft,
                              enum sl_image image)
{
    return read_map(d, p, image == SL_KEYS ? SL_FORM_KEYS : SL_FORM_IMAGE, &draft->image[image],
                    &draft->index[image]);
}

static const char *read_keys(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, to, SL_KEYS);
}

static const char *read_new_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, to, SL_NEW_IMAGE);
}

static const char *read_old_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_image(d, p, to, SL_OLD_IMAGE);
}

/* In the order in which AWS writes them. */
static const struct sl_member change_members[] = {
    SL_MEMBER("ApproximateCreationDateTime", read_created),
    SL_MEMBER("Keys", read_keys),
    SL_MEMBER("NewImage", read_new_image),
    SL_MEMBER("OldImage", read_old_image),
    SL_MEMBER("SequenceNumber", read_sequence),
    SL_MEMBER("SizeBytes", read_stated),
    SL_MEMBER("StreamViewType", read_view),
    SL_MEMBER("ApproximateCreationDateTimePrecision", read_precision),
};

static const char *read_change(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_change = true;
    return sl_decode_object(d, p, change_members, SL_COUNT(change_members), to);
}

/* ---- who did it ---- */

static const char *read_identity_type(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_string text;
    p = sl_decode_text(d, p, &text);
    ((struct sl_draft *)to)->is_service = p && sl_decode_text_is(text, SL_LIT("Service"));
    return p;
}

static const char *read_identity_principal(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_string text;
    p = sl_decode_text(d, p, &text);
    ((struct sl_draft *)to)->is_dynamodb = p && sl_decode_text_is(text, SL_LIT("dynamodb.amazonaws.com"));
    return p;
}

/* The Streams API's own spelling has capitals, Lambda's has not. */
static const struct sl_member identity_members[] = {
    SL_MEMBER("type", read_identity_type),
    SL_MEMBER("principalId", read_identity_principal),
    SL_MEMBER("Type", read_identity_type),
    SL_MEMBER("PrincipalId", read_identity_principal),
};

static const char *read_identity(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_identity = true;
    return sl_decode_object(d, p, identity_members, SL_COUNT(identity_members), to);
}

/* ---- Kinesis ---- */

static const struct sl_member kinesis_members[] = {
    SL_MEMBER("sequenceNumber", read_outer_sequence),
    SL_MEMBER("data", read_data),
};

static const char *read_kinesis(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_kinesis = true;
    return sl_decode_object(d, p, kinesis_members, SL_COUNT(kinesis_members), to);
}

static const char *read_record_format(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_record_format = true;
    return sl_json_value(&d->scan, p);
}

/* ---- table exports ---- */

static const char *read_written_number(struct sl_decoder *d, const char *p, void *to)
{
    struct sl_string text;
    p = sl_decode_text(d, p, &text);
    if (p)
        ((struct sl_draft *)to)->written = text.inner;
    return p;
}

static const struct sl_member written_members[] = {SL_MEMBER("N", read_written_number)};

static const char *read_written(struct sl_decoder *d, const char *p, void *to)
{
    return sl_decode_object(d, p, written_members, SL_COUNT(written_members), to);
}

static const struct sl_member metadata_members[] = {SL_MEMBER("WriteTimestampMicros", read_written)};

static const char *read_metadata(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_metadata = true;
    return sl_decode_object(d, p, metadata_members, SL_COUNT(metadata_members), to);
}

static const char *read_line_keys(struct sl_decoder *d, const char *p, void *to)
{
    return read_map(d, p, SL_FORM_KEYS, &((struct sl_draft *)to)->line[SL_KEYS], NULL);
}

static const char *read_line_new_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_map(d, p, SL_FORM_IMAGE, &((struct sl_draft *)to)->line[SL_NEW_IMAGE], NULL);
}

static const char *read_line_old_image(struct sl_decoder *d, const char *p, void *to)
{
    return read_map(d, p, SL_FORM_IMAGE, &((struct sl_draft *)to)->line[SL_OLD_IMAGE], NULL);
}

static const char *read_item(struct sl_decoder *d, const char *p, void *to)
{
    ((struct sl_draft *)to)->has_item = true;
    return read_line_new_image(d, p, to);
}

/* ---- a record ---- */

/* In the order in which AWS writes them; those from Item on belong to the lines of table exports. */
static const struct sl_member record_members[] = {
    SL_MEMBER("eventID", read_event_id),
    SL_MEMBER("eventName", read_event_name),
    SL_MEMBER("eventVersion", read_event_version),
    SL_MEMBER("eventSource", read_event_source),
    SL_MEMBER("awsRegion", read_region),
    SL_MEMBER("dynamodb", read_change),
    SL_MEMBER("eventSourceARN", read_arn),
    SL_MEMBER("userIdentity", read_identity),
    SL_MEMBER("kinesis", read_kinesis),
    SL_MEMBER("recordFormat", read_record_format),
    SL_MEMBER("tableName", read_table_name),
    SL_MEMBER("Item", read_item),
    SL_MEMBER("Metadata", read_metadata),
    SL_MEMBER("Keys", read_line_keys),
    SL_MEMBER("NewImage", read_line_new_image),
    SL_MEMBER("OldImage", read_line_old_image),
};

#define CHANGE_MEMBERS 11

const char *sl_decode_draft(struct sl_decoder *d, const char *p, bool any_shape, struct sl_draft *draft)
{
    draft->raw.ptr = p;
    p = sl_decode_object(d, p, record_members, any_shape ? SL_COUNT(record_members) : CHANGE_MEMBERS, draft);
    if (p)
        draft->raw.len = (size_t)(p - draft->raw.ptr);
    return p;
}
