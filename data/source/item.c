/* Writes records around items, decodes them, and then puts each item's constant into its record. */
#include "data/source/item.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "streams/names.h"
#include "streams/record.h"

#include <stdio.h>

/* Below the 16 digits of an incremental export's microseconds, and those are below the 21 digits and more of
 * a stream's sequence numbers: what is newer is greater. */
#define ITEM_DIGITS  15
#define ITEM_NUMBERS UINT64_C(999999999999999)
/* Changes of an incremental export are told apart by so many digits after the microseconds. */
#define CHANGE_DIGITS  4
#define CHANGE_NUMBERS 10000

struct convert {
    const struct sl_item_options *options;
    struct sl_arena *arena;
    struct sl_buffer text;
    struct sl_span arn, region;
};

static struct sl_span region_of(struct sl_span arn)
{
    for (int i = 0; i < 3; i++) {
        const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
        if (!colon)
            return SL_LIT("us-east-1");
        arn = sl_span_from(arn, (size_t)(colon + 1 - arn.ptr));
    }
    const char *colon = memchr(arn.ptr, ':', arn.len);
    return colon ? sl_span(arn.ptr, (size_t)(colon - arn.ptr)) : SL_LIT("us-east-1");
}

static bool is_key_type(enum sl_type type)
{
    return type == SL_S || type == SL_N || type == SL_B;
}

/* The key attributes of an item, in the order of their names in the options. False: one is missing. */
static bool add_keys(struct convert *c, const struct sl_record *r)
{
    const struct sl_source_keys *keys = &c->options->keys;
    struct sl_value found[2] = {{.type = SL_NONE}, {.type = SL_NONE}}, value;
    struct sl_span name;
    struct sl_iter iter = sl_value_iter(sl_record_image(r, SL_NEW_IMAGE));
    for (size_t left = keys->n; left && sl_value_next(&iter, &name, &value);)
        for (size_t i = 0; i < keys->n; i++)
            if (found[i].type == SL_NONE && is_key_type(value.type) &&
                sl_json_text_is(name, keys->names[i])) {
                found[i] = value;
                left--;
            }
    sl_buffer_add_str(&c->text, "\"Keys\":{");
    for (size_t i = 0; i < keys->n; i++) {
        if (found[i].type == SL_NONE)
            return false;
        if (i)
            sl_buffer_add_char(&c->text, ',');
        sl_json_add_string(&c->text, keys->names[i]);
        char *at = sl_buffer_reserve(&c->text, found[i].raw.len + SL_VALUE_JSON_BYTES + 1);
        *at = ':';
        c->text.len += (size_t)(sl_value_put(at + 1, found[i]) - at);
    }
    sl_buffer_add_char(&c->text, '}');
    return keys->n > 0;
}

static void add_image(struct convert *c, const struct sl_record *r, enum sl_image image, const char *name)
{
    struct sl_value value = sl_record_image(r, image);
    if (value.type == SL_NONE)
        return;
    sl_buffer_add_str(&c->text, name);
    sl_buffer_add_span(&c->text, value.raw);
}

static void add_time(struct convert *c, const struct sl_record *r)
{
    int64_t ns = sl_record_created_ns(r);
    if (ns)
        sl_buffer_printf(&c->text, "\"ApproximateCreationDateTime\":%lld,", (long long)(ns / 1000000000));
}

/* The record with zeros for its number: the number is made from the key, which is read when this was
 * decoded. */
static bool add_record(struct convert *c, const struct sl_record *r)
{
    struct sl_buffer *text = &c->text;
    struct sl_span order = sl_record_order(r, c->arena);
    struct sl_value keys = sl_record_image(r, SL_KEYS);
    char number[64];
    snprintf(number, sizeof(number), "%.*s%0*d", SL_ARG(order), order.ptr ? CHANGE_DIGITS : ITEM_DIGITS, 0);
    sl_buffer_printf(
        text,
        "{\"eventID\":\"%s\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\",\"eventSource\":\"aws:"
        "dynamodb\",\"awsRegion\":\"%.*s\",\"dynamodb\":{",
        number, sl_event_name(sl_record_event(r)), SL_ARG(c->region));
    add_time(c, r);
    if (keys.type == SL_NONE && !add_keys(c, r))
        return false;
    add_image(c, r, SL_KEYS, "\"Keys\":");
    add_image(c, r, SL_NEW_IMAGE, ",\"NewImage\":");
    add_image(c, r, SL_OLD_IMAGE, ",\"OldImage\":");
    sl_buffer_printf(text, ",\"SequenceNumber\":\"%s\",\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}", number);
    sl_buffer_add_str(text, ",\"eventSourceARN\":");
    sl_json_add_string(text, c->arn);
    sl_buffer_add_str(text, "}\n");
    return true;
}

static enum sl_status no_keys(const struct convert *c, size_t i, struct sl_error *error)
{
    const struct sl_source_keys *keys = &c->options->keys;
    unsigned long long number = c->options->first + i;
    if (keys->n == 0)
        return sl_fail(error, SL_REJECT, "NoKeys",
                       "%s: record %llu is an item without keys: name the key attributes with --keys PK,SK",
                       c->options->name, number);
    return sl_fail(
        error, SL_REJECT, "NoKeys",
        "%s: record %llu lacks a key attribute (%.*s%s%.*s) of type S, N or B: name the table's key "
        "attributes with --keys PK,SK",
        c->options->name, number, SL_ARG(keys->names[0]), keys->n > 1 ? ", " : "",
        SL_ARG(keys->n > 1 ? keys->names[1] : sl_span(NULL, 0)));
}

/* Digits over zeros: the text is ours and not yet anybody's. */
static void put_number(struct sl_span zeros, uint64_t number)
{
    char *at = (char *)(uintptr_t)sl_span_end(zeros);
    for (; number; number /= 10)
        *--at = (char)('0' + number % 10);
}

/* An item's number is the same wherever the item comes from, because its key's canonical text is. */
static void number_records(struct convert *c, const struct sl_batch *batch, const bool *is_ours)
{
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        struct sl_span sequence = sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER);
        if (!is_ours[i])
            continue;
        uint64_t hash = sl_hash(sl_record_item_key(r, c->arena));
        bool is_item = sequence.len == ITEM_DIGITS;
        uint64_t number = is_item ? 1 + hash % ITEM_NUMBERS : hash % CHANGE_NUMBERS;
        put_number(sequence, number);
        put_number(sl_record_text(r, SL_FIELD_EVENT_ID), number);
    }
}

static enum sl_status decode_again(struct convert *c, struct sl_batch *batch, struct sl_error *error)
{
    const struct sl_decode_options options = {.ttl_attribute = c->options->ttl_attribute,
                                              .any_shape = true,
                                              .lines_before = 1}; /* never taken for an event */
    struct sl_error why = SL_NO_ERROR;
    if (sl_batch_decode(sl_buffer_span(&c->text), c->arena, &options, batch, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, why.code, "%s: its items make no records: %s", c->options->name,
                       why.text);
    batch->source_arn = sl_record_text(sl_batch_record(batch, 0), SL_FIELD_SOURCE_ARN);
    return SL_OK;
}

static bool has_only_records(const struct sl_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++)
        if (!sl_record_text(sl_batch_record(batch, i), SL_FIELD_IDENTIFIER).ptr)
            return false;
    return true;
}

enum sl_status sl_item_convert(const struct sl_item_options *options, struct sl_batch *batch,
                               struct sl_error *error)
{
    if (has_only_records(batch))
        return SL_OK;
    struct convert c = {.options = options, .arena = batch->arena};
    c.arn = options->arn.ptr ? options->arn : sl_span_str(SL_REPLAYED_ARN);
    c.region = region_of(c.arn);
    bool *is_ours = sl_arena_zalloc(c.arena, batch->n);
    sl_buffer_init_in(&c.text, c.arena, UINT32_MAX);
    sl_buffer_reserve(&c.text, batch->payload.len + batch->n * 384);
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        is_ours[i] = !sl_record_text(r, SL_FIELD_IDENTIFIER).ptr;
        if (!is_ours[i]) {
            sl_buffer_add_span(&c.text, sl_record_text(r, SL_FIELD_RAW));
            sl_buffer_add_char(&c.text, '\n');
        } else if (!add_record(&c, r)) {
            return no_keys(&c, i, error);
        }
    }
    if (c.text.failed)
        return sl_fail(error, SL_REJECT, "TooLarge", "%s: one piece makes 4 GiB of records or more",
                       options->name);
    if (decode_again(&c, batch, error) != SL_OK)
        return SL_REJECT;
    number_records(&c, batch, is_ours);
    return SL_OK;
}
