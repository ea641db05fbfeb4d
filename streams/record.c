/* What a record states: its texts, images, time and sizes, and the verdict on who removed the item. */
#include "streams/record.h"

#include "base/json.h"
#include "streams/record_layout.h"

static const struct sl_span absent = {NULL, 0};

/* ---- texts ---- */

/* The inside of the string that begins at `at`. */
static struct sl_span string_from(const struct sl_record *r, uint32_t at)
{
    const struct sl_origin *o = sl_record_origin(r);
    bool escaped;
    if (!at)
        return absent;
    const char *p = o->base + at, *close = sl_json_string_end(p, o->end, &escaped);
    struct sl_span inner = sl_span(p, (size_t)(close - p));
    return escaped ? sl_json_unescape(inner, sl_record_chunk(r)->shared->arena) : inner;
}

/* "arn:aws:dynamodb:eu-west-1:123456789012:table/NAME/stream/..." */
static struct sl_span table_of_arn(struct sl_span arn)
{
    static const char mark[] = ":table/";
    const char *p = arn.len ? memmem(arn.ptr, arn.len, mark, sizeof(mark) - 1) : NULL;
    if (!p)
        return absent;
    p += sizeof(mark) - 1;
    size_t left = (size_t)(arn.ptr + arn.len - p);
    const char *slash = memchr(p, '/', left);
    return sl_span(p, slash ? (size_t)(slash - p) : left);
}

struct sl_span sl_record_text(const struct sl_record *r, enum sl_field field)
{
    const struct sl_origin *o = sl_record_origin(r);
    switch (field) {
    case SL_FIELD_RAW:
        return sl_span(o->base + r->raw, r->raw_len);
    case SL_FIELD_EVENT_ID:
        return string_from(r, r->event_id);
    case SL_FIELD_IDENTIFIER:
        return string_from(r, r->sequence);
    case SL_FIELD_SEQUENCE_NUMBER:
        return r->is_wrapped ? absent : string_from(r, r->sequence);
    case SL_FIELD_REGION:
        return o->region;
    case SL_FIELD_SOURCE_ARN:
        return o->arn;
    case SL_FIELD_TABLE:
        return o->table_name.len ? o->table_name : table_of_arn(o->arn);
    }
    return absent;
}

enum sl_event sl_record_event(const struct sl_record *r)
{
    return (enum sl_event)r->event;
}

enum sl_view sl_record_view(const struct sl_record *r)
{
    return (enum sl_view)r->view;
}

uint64_t sl_record_stated_bytes(const struct sl_record *r)
{
    return r->stated;
}

uint64_t sl_record_computed_bytes(const struct sl_record *r)
{
    uint64_t sum = 0;
    for (int i = SL_KEYS; i <= SL_OLD_IMAGE; i++)
        sum += sl_value_item_bytes(sl_record_image(r, (enum sl_image)i));
    return sum;
}

struct sl_value sl_record_image(const struct sl_record *r, enum sl_image image)
{
    if (image > SL_OLD_IMAGE || !r->image_len[image])
        return (struct sl_value){.type = SL_NONE};
    return (struct sl_value){SL_M, false, {sl_record_origin(r)->base + r->image[image], r->image_len[image]}};
}

/* ---- time ---- */

/* A number ends at a comma, brace or whitespace; a date, which may hold a space, at its quote. */
static struct sl_span created_text(const struct sl_record *r)
{
    const char *p = sl_record_origin(r)->base + r->created;
    return sl_span(p, strcspn(p, p[-1] == '"' ? "\"" : ",} \t\r\n"));
}

/* A whole number of seconds with as many digits as they have from 2001 to 2286, which is what Streams sends.
 */
static bool is_plain_seconds(const struct sl_record *r, int64_t *ns, int64_t *step_ns)
{
    enum { DIGITS = 10 };
    const char *p = sl_record_origin(r)->base + r->created;
    int64_t seconds = 0;
    if (r->unit != SL_SECONDS || p[-1] == '"')
        return false;
    for (int i = 0; i < DIGITS; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        seconds = 10 * seconds + (p[i] - '0');
    }
    /* (The decoder has refused what 64 bits of nanoseconds do not hold.) */
    if (p[DIGITS] != ',' && p[DIGITS] != '}')
        return false;
    *ns = seconds * 1000000000;
    *step_ns = 1000000000;
    return true;
}

static bool created(const struct sl_record *r, int64_t *ns, int64_t *step_ns)
{
    *ns = 0;
    if (r->created && !is_plain_seconds(r, ns, step_ns))
        (void)sl_record_read_time(created_text(r), (enum sl_time_unit)r->unit, ns, step_ns);
    return r->created;
}

int64_t sl_record_created_ns(const struct sl_record *r)
{
    int64_t ns, step_ns;
    (void)created(r, &ns, &step_ns);
    return ns;
}

struct sl_span sl_record_order(const struct sl_record *r, struct sl_arena *arena)
{
    if (r->sequence && !r->is_wrapped)
        return sl_span_without_zeros(sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER));
    int64_t ns, step_ns;
    if (!r->is_timed || !created(r, &ns, &step_ns))
        return absent;
    return sl_span_str(sl_arena_printf(arena, "%lld", (long long)(ns / 1000)));
}

/* ---- the TTL verdict ---- */

/* DynamoDB leaves items alone whose time lies more than five years back. Five years have 1826 days or 1827;
 * between the two nothing is said. */
#define DAY_NS           (86400 * INT64_C(1000000000))
#define FIVE_YEARS_LEAST (1826 * DAY_NS)
#define FIVE_YEARS_MOST  (1827 * DAY_NS)

/* A removal that does not say who did it, of an item with this time to live. */
static enum sl_ttl infer(const struct sl_record *r, struct sl_value due)
{
    struct sl_number seconds;
    int64_t removed_ns, step_ns, due_ns;
    bool exact;
    if (!created(r, &removed_ns, &step_ns))
        return SL_TTL_UNKNOWN;
    if (!sl_value_number(due, &seconds))
        return SL_TTL_USER;
    if (!sl_number_int64(&seconds, 9, &due_ns, &exact))
        return SL_TTL_USER; /* more than 290 years from 1970 */
    int64_t late_ns;
    if (__builtin_sub_overflow(removed_ns, due_ns, &late_ns))
        return SL_TTL_USER;
    /* The removal happened within the step that its time states, so the item was due when its time was. */
    if (late_ns <= -step_ns)
        return SL_TTL_USER;
    if (late_ns <= FIVE_YEARS_LEAST)
        return SL_TTL_INFERRED;
    return late_ns > FIVE_YEARS_MOST ? SL_TTL_USER : SL_TTL_UNKNOWN;
}

static enum sl_ttl verdict(const struct sl_record *r)
{
    struct sl_span attribute = sl_record_chunk(r)->shared->ttl_attribute;
    if (r->event != SL_REMOVE || r->identity == SL_IDENTITY_OTHER)
        return SL_TTL_USER;
    if (r->identity == SL_IDENTITY_DYNAMODB)
        return SL_TTL_EXPIRED;
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE);
    if (!attribute.ptr || old.type == SL_NONE)
        return SL_TTL_UNKNOWN;
    return infer(r, sl_value_member(old, attribute));
}

enum sl_ttl sl_record_ttl(const struct sl_record *r)
{
    return verdict(r);
}
