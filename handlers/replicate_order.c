/* The order of changes, and what it tells: which of two is newer, and who made one. */
#include "handlers/replicate.h"

#define TIME_DIGITS 16

static void put_digits(char *at, int n, int64_t number)
{
    for (; n > 0; number /= 10)
        at[--n] = (char)('0' + number % 10);
}

enum sl_status replicate_order(const struct replicate *p, const struct sl_record *r, struct sl_span order,
                               struct sl_arena *arena, struct sl_span *guard, struct sl_error *error)
{
    /* An item of a table export has no order: it is older than any change. */
    if (order.len > REPLICATE_ORDER_DIGITS)
        return p->host->fail(error, SL_REJECT, "BadOrder",
                             "the record's sequence number has %zu digits, not %d at most", order.len,
                             REPLICATE_ORDER_DIGITS);
    int64_t ms = p->host->record_created_ns(r) / 1000000;
    char *value = p->host->alloc(arena, REPLICATE_GUARD_BYTES + 8),
         *text = sl_text_put(value, SL_TEXT("{\"S\":\""));
    put_digits(text, 6, p->epoch);
    text[6] = ':';
    memset(text + 7, '0', REPLICATE_ORDER_DIGITS - order.len);
    sl_text_put(text + 7 + REPLICATE_ORDER_DIGITS - order.len, order);
    text[7 + REPLICATE_ORDER_DIGITS] = ':';
    put_digits(text + 8 + REPLICATE_ORDER_DIGITS, TIME_DIGITS, ms > 0 ? ms : 0);
    sl_text_put(text + REPLICATE_GUARD_BYTES, SL_TEXT("\"}"));
    *guard = (struct sl_span){text, REPLICATE_GUARD_BYTES};
    return SL_OK;
}

struct sl_span replicate_guard_value(struct sl_span guard)
{
    return (struct sl_span){guard.ptr - 6, REPLICATE_GUARD_BYTES + 8};
}

int replicate_order_compare(struct sl_span a, struct sl_span b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.ptr, b.ptr, a.len) : 0;
}

bool replicate_is_refused_newer(const struct replicate *p, struct sl_span guard, struct sl_span item)
{
    struct sl_value image = {.type = SL_M, .raw = item};
    struct sl_span name = p->guard == REPLICATE_INLINE ? p->guard_attribute : SL_TEXT("order");
    struct sl_span held = item.len ? replicate_find(p, image, name).raw : item;
    if (held.len != REPLICATE_GUARD_BYTES)
        return false;
    size_t time_at = REPLICATE_GUARD_BYTES - TIME_DIGITS;
    bool is_older = memcmp(guard.ptr, held.ptr, time_at) < 0;
    return is_older && memcmp(guard.ptr + time_at, held.ptr + time_at, TIME_DIGITS) > 0;
}

/* Spares most items a look at their attributes. */
static bool find_guard(const struct replicate *p, const struct sl_record *r, enum sl_image image)
{
    struct sl_span raw = p->host->record_image(r, image).raw;
    return raw.len > 0 && (memmem(raw.ptr, raw.len, p->guard_attribute.ptr, p->guard_attribute.len) ||
                           (memchr(raw.ptr, '\\', raw.len) && memmem(raw.ptr, raw.len, "\\u", 2)));
}

/* A replicate's write changes the guard; whoever else updates the item leaves it as it is, and whoever puts
 * the item anew leaves it out. */
enum sl_status replicate_is_echo(const struct replicate *p, const struct sl_record *r, bool *is_echo,
                                 bool *may_carry, struct sl_error *error)
{
    const struct sl_host *host = p->host;
    *is_echo = *may_carry = false;
    if (p->guard != REPLICATE_INLINE)
        return SL_OK;
    *may_carry = find_guard(p, r, host->record_event(r) == SL_REMOVE ? SL_OLD_IMAGE : SL_NEW_IMAGE);
    if (*may_carry && replicate_find(p, host->record_image(r, SL_KEYS), p->guard_attribute).type != SL_NONE)
        return host->fail(error, SL_FATAL, "GuardInKey",
                          "guard_attribute: %.*s is of the items' key, where no order can be kept; choose "
                          "another name",
                          SL_TEXT_ARG(p->guard_attribute));
    if (!*may_carry || p->copies_replicated)
        return SL_OK;
    if (host->record_event(r) == SL_REMOVE) {
        /* A tombstone whose time is over; the change that made it was an echo already. */
        *is_echo = host->record_attribute(r, SL_OLD_IMAGE, p->deleted_attribute).type != SL_NONE &&
                   host->record_attribute(r, SL_OLD_IMAGE, p->guard_attribute).type != SL_NONE;
        return SL_OK;
    }
    struct sl_value after = host->record_attribute(r, SL_NEW_IMAGE, p->guard_attribute);
    if (after.type == SL_NONE)
        return SL_OK;
    /* Taken for an echo, such an item would be lost; copied, its attribute would be. */
    if (after.type != SL_S || after.raw.len != REPLICATE_GUARD_BYTES)
        return host->fail(
            error, SL_REJECT, "NoGuard",
            "the item's %.*s is its own, not a replicate's guard; choose another guard_attribute",
            SL_TEXT_ARG(p->guard_attribute));
    if (host->record_event(r) == SL_MODIFY && host->record_image(r, SL_OLD_IMAGE).type == SL_NONE)
        return host->fail(
            error, SL_FATAL, "ViewType",
            "the item carries %.*s, and without OldImage nothing tells whether a replicate made the "
            "change: enable the stream with NEW_AND_OLD_IMAGES, or set \"replicated\": \"copy\"",
            SL_TEXT_ARG(p->guard_attribute));
    struct sl_value before = host->record_attribute(r, SL_OLD_IMAGE, p->guard_attribute);
    *is_echo = before.type == SL_NONE || !host->value_equal(before, after);
    return SL_OK;
}
