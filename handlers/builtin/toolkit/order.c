/* The order of an item's changes: padded, compared, and as an attribute value. */
#include "handlers/builtin/toolkit/order.h"

#include "base/span.h"
#include "handlers/builtin/toolkit/text.h"

#include <inttypes.h>
#include <stdio.h>

char *sl_order_put(char *at, struct sl_span digits)
{
    size_t zeros = digits.len < SL_ORDER_DIGITS ? SL_ORDER_DIGITS - digits.len : 0;
    memset(at, '0', zeros);
    return sl_text_put(at + zeros, digits);
}

#define EPOCH_DIGITS 6

char *sl_order_put_epoch(char *at, int64_t epoch, struct sl_span digits)
{
    if (epoch == 0)
        return sl_order_put(at, digits);
    *at++ = ':';
    for (int i = EPOCH_DIGITS; i > 0; epoch /= 10)
        at[--i] = (char)('0' + epoch % 10);
    at[EPOCH_DIGITS] = ':';
    return sl_order_put(at + EPOCH_DIGITS + 1, digits);
}

bool sl_order_is_known(struct sl_span text)
{
    if (text.len == SL_ORDER_BYTES && text.ptr[0] == ':' && text.ptr[EPOCH_DIGITS + 1] == ':') {
        struct sl_span epoch = {text.ptr + 1, EPOCH_DIGITS};
        text = (struct sl_span){text.ptr + EPOCH_DIGITS + 2, SL_ORDER_DIGITS};
        return sl_span_is_digits(epoch) && sl_span_is_digits(text);
    }
    return text.len == SL_ORDER_DIGITS && sl_span_is_digits(text);
}

bool sl_order_is_same_epoch(struct sl_span a, struct sl_span b)
{
    size_t before = a.len - SL_ORDER_DIGITS;
    return a.len == b.len && memcmp(a.ptr, b.ptr, before) == 0;
}

enum sl_status sl_order_check(const struct sl_host *host, struct sl_span digits, struct sl_error *error)
{
    if (digits.len <= SL_ORDER_DIGITS)
        return SL_OK;
    return host->fail(error, SL_REJECT, "BadOrder", "the record's sequence number has %zu digits, %d at most",
                      digits.len, SL_ORDER_DIGITS);
}

/* The numbers that data/source gives to items have 15 digits at most, and are their events' ids too. */
#define ITEM_DIGITS 15

bool sl_order_is_of_item(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena)
{
    if (host->record_event(r) != SL_INSERT)
        return false;
    struct sl_span order = host->record_order(r, arena);
    return order.len <= ITEM_DIGITS && sl_span_eq(host->record_text(r, SL_FIELD_EVENT_ID),
                                                  host->record_text(r, SL_FIELD_SEQUENCE_NUMBER));
}

struct sl_span sl_order_digits(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_span none = {NULL, 0};
    return sl_order_is_of_item(host, r, arena) ? none : host->record_order(r, arena);
}

#define NS_PER_US 1000

/* Sequence numbers have 21 digits or more; those of DynamoDB Local count from 1. */
bool sl_order_is_time(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena)
{
    char time[32];
    int n = snprintf(time, sizeof(time), "%" PRId64, host->record_created_ns(r) / NS_PER_US);
    return sl_span_eq(sl_order_digits(host, r, arena), (struct sl_span){time, (size_t)n});
}

struct sl_order sl_order_of(const struct sl_host *host, struct sl_arena *arena, struct sl_span text)
{
    struct sl_value value = {.type = SL_S, .raw = text};
    return (struct sl_order){text, host->value_json(value, arena)};
}

int sl_order_compare(struct sl_span a, struct sl_span b)
{
    return sl_span_compare(a, b);
}

enum sl_status sl_order_make(const struct sl_host *host, int64_t epoch, struct sl_span digits,
                             struct sl_arena *arena, struct sl_order *out, struct sl_error *error)
{
    enum sl_status status = sl_order_check(host, digits, error);
    if (status != SL_OK)
        return status;
    char *text = host->alloc(arena, SL_ORDER_BYTES);
    size_t n = (size_t)(sl_order_put_epoch(text, epoch, digits) - text);
    *out = sl_order_of(host, arena, (struct sl_span){text, n});
    return SL_OK;
}
