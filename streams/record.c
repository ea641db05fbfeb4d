#include "streams/record.h"

#include "base/json.h"
#include "streams/record_layout.h"

#include <stdio.h>

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

/* Up to the quote, comma, brace or whitespace that ends it. */
static struct sl_span created_text(const struct sl_record *r)
{
    const char *p = sl_record_origin(r)->base + r->created;
    return sl_span(p, strcspn(p, "\",} \t\r\n"));
}

static bool created(const struct sl_record *r, int64_t *ns, int64_t *step_ns)
{
    *ns = 0;
    if (r->created)
        (void)sl_time_read(created_text(r), (enum sl_time_unit)r->unit, ns, step_ns);
    return r->created;
}

int64_t sl_record_created_ns(const struct sl_record *r)
{
    int64_t ns, step_ns;
    (void)created(r, &ns, &step_ns);
    return ns;
}

static struct sl_span without_zeros(struct sl_span digits)
{
    while (digits.len > 1 && digits.ptr[0] == '0')
        digits = sl_span_from(digits, 1);
    return digits;
}

struct sl_span sl_record_order(const struct sl_record *r, struct sl_arena *arena)
{
    if (r->sequence && !r->is_wrapped)
        return without_zeros(sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER));
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

/* ---- identity, changes ---- */

static bool is_plain_integer(struct sl_span n)
{
    size_t sign = n.ptr[0] == '-';
    if (n.len - sign > SL_NUMBER_DIGITS || (n.ptr[sign] == '0' && n.len > 1))
        return false;
    for (size_t i = sign; i < n.len; i++)
        if (n.ptr[i] < '0' || n.ptr[i] > '9')
            return false;
    return true;
}

/* Text that the canonical form has as it is: DEL alone is written otherwise. */
static bool is_plain_text(struct sl_span text)
{
    return !memchr(text.ptr, '\\', text.len) && !memchr(text.ptr, 0x7F, text.len);
}

/* What sl_value_canonical writes of a key, for nearly all there are: one or two attributes without escapes,
 * the numbers integers in normal form. False: it is another one. */
static bool add_plain_key(struct sl_value key, struct sl_buffer *out)
{
    static const char tags[] = " SNB";
    struct sl_span names[2], name;
    struct sl_value values[2], value;
    size_t n = 0;
    for (struct sl_iter iter = sl_value_iter(key); sl_value_next(&iter, &name, &value); n++) {
        bool is_plain = n < 2 && value.type <= SL_B && is_plain_text(value.raw) && is_plain_text(name) &&
                        (value.type != SL_N || is_plain_integer(value.raw));
        if (!is_plain)
            return false;
        names[n] = name;
        values[n] = value;
    }
    size_t least = n == 2 ? (names[0].len < names[1].len ? names[0].len : names[1].len) : 0;
    int order = n == 2 ? memcmp(names[0].ptr, names[1].ptr, least) : -1;
    if (n == 0 || order == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t k = order < 0 ? i : n - 1 - i;
        sl_buffer_add_str(out, i ? ",\"" : "{\"M\":{\"");
        sl_buffer_add_span(out, names[k]);
        sl_buffer_add(out, (char[]){'"', ':', '{', '"', tags[values[k].type], '"', ':', '"'}, 8);
        sl_buffer_add_span(out, values[k].raw);
        sl_buffer_add(out, "\"}", 2);
    }
    sl_buffer_add(out, "}}", 2);
    return true;
}

struct sl_span sl_record_item_key(const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_buffer text;
    struct sl_value key = sl_record_image(r, SL_KEYS);
    if (key.type == SL_NONE) /* an export's Item: all of it */
        key = sl_record_image(r, SL_NEW_IMAGE);
    sl_buffer_init_in(&text, arena, SL_CANONICAL_BYTES);
    sl_buffer_reserve(&text, key.raw.len + 16);
    if (!add_plain_key(key, &text)) {
        sl_buffer_reset(&text);
        sl_value_canonical(key, &text);
    }
    return sl_buffer_span(&text);
}

bool sl_record_changed(const struct sl_record *r, struct sl_span name)
{
    bool has_new = r->image_len[SL_NEW_IMAGE], has_old = r->image_len[SL_OLD_IMAGE];
    if (r->event == SL_INSERT ? !has_new : r->event == SL_REMOVE ? !has_old : !has_new || !has_old)
        return false;
    struct sl_value after = {.type = SL_NONE}, before = {.type = SL_NONE};
    if (r->event != SL_REMOVE)
        after = sl_record_scan(r, SL_NEW_IMAGE, name);
    if (r->event != SL_INSERT)
        before = sl_record_scan(r, SL_OLD_IMAGE, name);
    return !sl_value_equal(before, after);
}
