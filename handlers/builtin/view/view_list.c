/* The row that says which rows an item has: their keys, a digest of each, and the order of the change that
 * they are of. */
#include "handlers/builtin/view/view_private.h"

#include "base/base64.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BEFORE_KEY    SL_LIT("{\"M\":{\"key\":{\"M\":")
#define BEFORE_DIGEST SL_LIT("},\"digest\":{\"B\":\"")
#define AFTER_DIGEST  SL_LIT("\"}}}")
#define DIGEST_TEXT   24 /* base64 of 16 bytes */

struct sl_span view_list_key(const struct view *v, const struct sl_record *r, struct sl_arena *arena)
{
    return sl_text_own_key(v->host, arena, "view", v->name, v->host->record_item_key(r, arena), v->list_keys,
                           v->n_list_keys);
}

struct sl_span view_list_rows_value(const struct view *v, const struct view_rows *rows,
                                    struct sl_arena *arena)
{
    size_t bytes = sizeof("{\"L\":[]}");
    for (size_t i = 0; i < rows->n; i++)
        bytes += rows->list[i].key.len + DIGEST_TEXT + 64;
    char *text = v->host->alloc(arena, bytes), *at = sl_text_put(text, SL_LIT("{\"L\":["));
    for (size_t i = 0; i < rows->n; i++) {
        const struct view_row *row = &rows->list[i];
        if (i > 0)
            *at++ = ',';
        at = sl_text_put(at, BEFORE_KEY);
        at = sl_text_put(at, row->key);
        at = sl_text_put(at, BEFORE_DIGEST);
        at += sl_base64_encode_to((struct sl_span){(const char *)row->digest, VIEW_DIGEST_BYTES}, at);
        at = sl_text_put(at, AFTER_DIGEST);
    }
    at = sl_text_put(at, SL_LIT("]}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

static struct sl_value number(int64_t n, char digits[24])
{
    snprintf(digits, 24, "%" PRId64, n);
    return (struct sl_value){.type = SL_N, .raw = sl_span_str(digits)};
}

struct sl_span view_list_item(const struct view *v, const struct view_list_text *t, struct sl_arena *arena)
{
    struct sl_span list = view_list_rows_value(v, t->rows, arena);
    char digits[24];
    struct sl_text_object o = sl_text_object_begin(
        v->host, arena,
        t->key.len + t->of.len + t->order.len + list.len + v->expires_attribute.len + 2 * sizeof(digits) +
            sizeof(VIEW_OF VIEW_ORDER VIEW_LIST_ROWS VIEW_LIST_REPAIRS) + 6 * SL_TEXT_MEMBER_BYTES);
    sl_text_object_members(&o, t->key);
    sl_text_object_text(&o, SL_LIT(VIEW_OF), t->of);
    sl_text_object_text(&o, SL_LIT(VIEW_ORDER), t->order);
    sl_text_object_text(&o, SL_LIT(VIEW_LIST_ROWS), list);
    if (t->repairs > 0)
        sl_text_object_value(&o, v->host, SL_LIT(VIEW_LIST_REPAIRS), number(t->repairs, digits));
    if (t->rows->n == 0)
        sl_text_object_value(&o, v->host, v->expires_attribute,
                             number(v->host->wall_ns(v->route) / 1000000000 + v->tombstone_s, digits));
    return sl_text_object_end(&o);
}

/* ---- reading ---- */

static bool read_row(const struct view *v, struct sl_value element, struct sl_arena *arena,
                     struct view_row *row)
{
    struct sl_span names[SL_TEXT_KEY_ATTRIBUTES];
    struct sl_value digest = v->host->value_member(element, SL_LIT("digest"));
    for (size_t i = 0; i < v->n_keys; i++)
        names[i] = v->keys[i].name;
    *row = (struct view_row){.at = 0};
    struct sl_span bytes =
        digest.type == SL_B ? v->host->value_bytes(digest, arena) : (struct sl_span){NULL, 0};
    if (bytes.len != VIEW_DIGEST_BYTES)
        return false;
    memcpy(row->digest, bytes.ptr, VIEW_DIGEST_BYTES);
    row->key = view_key_of_row(v, v->host->value_member(element, SL_LIT("key")), names, v->n_keys, arena);
    return row->key.ptr != NULL;
}

/* Rows of another key, as the view had it before, are rows too: they go when the item changes. */
static bool read_rows(const struct view *v, struct sl_value rows, struct sl_arena *arena,
                      struct view_rows *out)
{
    struct sl_value element;
    if (rows.type != SL_L)
        return false;
    out->list = v->host->alloc(arena, (view_elements(v, rows) + 1) * sizeof(*out->list));
    for (struct sl_iter iter = v->host->value_iter(rows); v->host->value_next(&iter, NULL, &element);)
        if (!read_row(v, element, arena, &out->list[out->n++]))
            return false;
    view_rows_sort(out);
    return true;
}

enum sl_status view_list_read(const struct view *v, struct sl_span item, struct sl_arena *arena,
                              struct view_list *out, struct sl_error *error)
{
    *out = (struct view_list){.exists = item.ptr != NULL};
    if (!item.ptr)
        return SL_OK;
    struct sl_value row = {.type = SL_M, .raw = item};
    struct sl_value order = v->host->value_member(row, SL_LIT(VIEW_ORDER));
    if (order.type == SL_S && sl_order_is_known(order.raw) &&
        read_rows(v, v->host->value_member(row, SL_LIT(VIEW_LIST_ROWS)), arena, &out->rows)) {
        struct sl_value repairs = v->host->value_member(row, SL_LIT(VIEW_LIST_REPAIRS));
        out->order = order.raw;
        if (!v->host->value_int64(repairs, &out->repairs))
            out->repairs = 0;
        return SL_OK;
    }
    return v->host->fail(error, SL_FATAL, "ListRow",
                         "a list of an item's rows was not written by this view, or by a later release: give "
                         "the lists their own table with \"list\": {\"table\": ...}, or another name");
}
