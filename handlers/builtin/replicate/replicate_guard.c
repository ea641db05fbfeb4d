/* The guards: the order of an item's last change, where it is kept, and the tests against it. */
#include "handlers/builtin/replicate/replicate_expect.h"
#include "handlers/builtin/replicate/replicate_tie.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>

#define EPOCH_DIGITS 6
#define TIME_DIGITS  16

/* The side table's row keeps the guard in this attribute. */
#define ROW_ORDER "order"

/* The side table's key attribute has at most 2,048 bytes; longer items are named by a digest. */
#define ROW_ITEM_BYTES 1024

/* ---- the text ---- */

static char *put_digits(char *at, int n, int64_t number)
{
    for (int i = n; i > 0; number /= 10)
        at[--i] = (char)('0' + number % 10);
    return at + n;
}

bool replicate_guard_is_text(struct sl_span text)
{
    size_t order_at = EPOCH_DIGITS + 1, time_at = REPLICATE_GUARD_BYTES - TIME_DIGITS;
    bool good = text.len == REPLICATE_GUARD_BYTES;
    for (size_t i = 0; good && i < text.len; i++)
        good = i + 1 == order_at || i + 1 == time_at ? text.ptr[i] == ':'
                                                     : text.ptr[i] >= '0' && text.ptr[i] <= '9';
    return good;
}

/* The same change, written once more: only the last part is greater. So it is newer than the guard that is
 * kept, older than every later change, and a follower of this table sees that a replicate wrote it. */
static enum sl_status guard_after(const struct replicate *p, struct replicate_change *change,
                                  struct sl_arena *arena, struct sl_error *error)
{
    struct sl_span kept = change->kept_guard;
    size_t i = REPLICATE_GUARD_BYTES, time_at = REPLICATE_GUARD_BYTES - TIME_DIGITS;
    if (!replicate_guard_is_text(kept))
        return p->host->fail(error, SL_REJECT, "NoGuard", "the row's %.*s is not a replicate's guard",
                             SL_ARG(p->guard_attribute));
    char *text = p->host->alloc(arena, REPLICATE_GUARD_BYTES);
    memcpy(text, kept.ptr, REPLICATE_GUARD_BYTES);
    while (i > time_at && text[i - 1] == '9')
        text[--i] = '0';
    if (i == time_at)
        return p->host->fail(error, SL_REJECT, "NoGuard", "no guard comes after %.*s", SL_ARG(kept));
    text[i - 1]++;
    change->guard = sl_order_of(p->host, arena, (struct sl_span){text, REPLICATE_GUARD_BYTES});
    return SL_OK;
}

enum sl_status replicate_guard_make(const struct replicate *p, struct replicate_change *change,
                                    struct sl_arena *arena, struct sl_error *error)
{
    if (change->kept_guard.ptr)
        return guard_after(p, change, arena, error);
    enum sl_status status = sl_order_check(p->host, change->order, error);
    if (status != SL_OK)
        return status;
    int64_t ms = p->host->record_created_ns(change->record) / 1000000;
    char *text = p->host->alloc(arena, REPLICATE_GUARD_BYTES), *at = text;
    at = put_digits(at, EPOCH_DIGITS, p->records_epoch);
    *at++ = ':';
    at = sl_order_put(at, change->order);
    *at++ = ':';
    at = put_digits(at, TIME_DIGITS, ms > 0 ? ms : 0);
    change->guard = sl_order_of(p->host, arena, (struct sl_span){text, (size_t)(at - text)});
    return SL_OK;
}

/* ---- operations ---- */

void replicate_guard_test(const struct replicate *p, const struct replicate_change *change,
                          struct sl_span name, struct sl_arena *arena, struct sl_table_op *op)
{
    struct sl_test *tests = p->host->alloc(arena, 2 * sizeof(*tests));
    tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = name};
    tests[1] = (struct sl_test){.verb = SL_LT, .name = name, .value = change->guard.value};
    op->tests = tests;
    op->n_tests = 2;
    op->any_test = true;
    op->want_item = true;
}

/* {"PK":{"S":"replica item"}}: one side table serves several replicas. */
struct sl_span replicate_guard_row_key(const struct replicate *p, const struct replicate_side *side,
                                       struct sl_span item, struct sl_arena *arena)
{
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    if (item.len > ROW_ITEM_BYTES) {
        sl_text_digest(p->host, item, digest);
        item = sl_span_str(digest);
    }
    struct sl_span name[] = {p->loop.target.table, SL_LIT(" "), item};
    struct sl_span value = sl_text_string_value(p->host, p->host->join(arena, name, 3), arena);
    return sl_text_key(p->host, arena, &side->key, &value, 1);
}

struct sl_table_op replicate_guard_row(const struct replicate *p, const struct replicate_side *side,
                                       const struct replicate_change *change, struct sl_arena *arena)
{
    struct sl_table_op op = {.verb = SL_TABLE_PUT,
                             .table = side->table,
                             .key = replicate_guard_row_key(p, side, change->item_key, arena)};
    struct sl_span row[8];
    char expires[64];
    size_t n = 0;
    row[n++] = sl_text_open_object(op.key);
    row[n++] = SL_LIT(",\"" ROW_ORDER "\":");
    row[n++] = change->guard.value;
    /* The row lives as long as the item, and as long as a tombstone after it. */
    if (change->image.value.type == SL_NONE) {
        snprintf(expires, sizeof(expires), "\":{\"N\":\"%" PRId64 "\"}",
                 p->host->wall_ns(p->route) / 1000000000 + p->tombstone_s);
        row[n++] = SL_LIT(",\"");
        row[n++] = p->ttl_attribute;
        row[n++] = sl_span_str(expires);
    }
    row[n++] = SL_LIT("}");
    op.item = p->host->join(arena, row, n);
    replicate_guard_test(p, change, SL_LIT(ROW_ORDER), arena, &op);
    return op;
}

/* ---- refusals ---- */

struct sl_span replicate_guard_of_row(const struct replicate *p, struct sl_span row)
{
    struct sl_value image = {.type = row.len ? SL_M : SL_NONE, .raw = row};
    return p->host->value_member(image, SL_LIT(ROW_ORDER)).raw;
}

bool replicate_guard_is_same(struct sl_span a, struct sl_span b)
{
    return a.len == REPLICATE_GUARD_BYTES && b.len == a.len &&
           memcmp(a.ptr, b.ptr, REPLICATE_GUARD_BYTES - TIME_DIGITS) == 0;
}

bool replicate_guard_is_older(const struct replicate_change *change, struct sl_span held)
{
    struct sl_span guard = change->guard.text;
    if (held.len != REPLICATE_GUARD_BYTES)
        return false;
    size_t time_at = REPLICATE_GUARD_BYTES - TIME_DIGITS;
    return memcmp(guard.ptr, held.ptr, time_at) < 0 &&
           memcmp(guard.ptr + time_at, held.ptr + time_at, TIME_DIGITS) > 0;
}
