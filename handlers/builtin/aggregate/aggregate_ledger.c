/* The ledger: rows that say what has been counted, written and read as JSON. */
#include "handlers/builtin/aggregate/aggregate_private.h"

#include <inttypes.h>
#include <stdio.h>

/* The text may become a sort key, which has 1,024 bytes at most. */
#define UNIT_BYTES 700

/* ---- keys and orders ---- */

/* A text that is escaped has a percent sign, so one that has a percent sign is escaped too: two events never
 * share a mark. */
static struct sl_span event_identity(const struct aggregate *a, const struct sl_record *r,
                                     struct sl_arena *arena)
{
    struct sl_span id = a->host->record_text(r, SL_FIELD_EVENT_ID);
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.ptr[i] < 0x20 || id.ptr[i] == '%')
            return a->host->escape(arena, id, SL_ESCAPE_PATH);
    if (id.len > 0)
        return id;
    struct sl_span parts[] = {a->host->record_text(r, SL_FIELD_SOURCE_ARN), SL_LIT(" "),
                              a->host->record_text(r, SL_FIELD_IDENTIFIER)};
    return a->host->join(arena, parts, 3);
}

/* {"S":"sluice:ledger:NAME:UNIT"}. A key's text is JSON, and an event's id has no control bytes: nothing but
 * quotes and backslashes is to be escaped. */
static struct sl_span unit_value(const struct aggregate *a, struct sl_span unit, struct sl_arena *arena)
{
    struct sl_span kind = a->per_event ? SL_LIT("event:") : SL_LIT("ledger:");
    char *text = a->host->alloc(arena, a->name.len + 2 * unit.len + 40);
    char *at = sl_text_put(text, SL_LIT("{\"S\":\"sluice:"));
    at = sl_text_put(at, kind);
    at = sl_text_put(at, a->name);
    *at++ = ':';
    for (size_t i = 0; i < unit.len; i++) {
        if (unit.ptr[i] == '"' || unit.ptr[i] == '\\')
            *at++ = '\\';
        *at++ = unit.ptr[i];
    }
    at = sl_text_put(at, SL_LIT("\"}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

struct sl_span aggregate_ledger_key(const struct aggregate *a, const struct sl_record *r,
                                    struct sl_arena *arena)
{
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    struct sl_span unit = a->per_event ? event_identity(a, r, arena) : a->host->record_item_key(r, arena);
    if (unit.len > UNIT_BYTES) {
        sl_text_digest(a->host, unit, digest);
        unit = sl_span_str(digest);
    }
    struct sl_span value = unit_value(a, unit, arena), values[SL_TEXT_KEY_ATTRIBUTES] = {value, value};
    return sl_text_key(a->host, arena, a->ledger_keys, values, a->n_ledger_keys);
}

/* ---- writing ---- */

#define BEFORE_KEY   SL_LIT("{\"M\":{\"key\":{\"M\":")
#define BEFORE_TERMS SL_LIT("},\"add\":{\"M\":{")
#define AFTER_TERMS  SL_LIT("}}}}")

static size_t text_bytes(const struct aggregate_tally *t, struct aggregate_part part)
{
    size_t bytes = sizeof("{\"L\":[]}");
    for (uint32_t i = part.first; i < part.first + part.n; i++) {
        const struct aggregate_term *term = &t->terms.list[i];
        bytes +=
            t->attributes.entries[term->attribute].text.len + term->number.len + sizeof(",\"\":{\"N\":\"\"}");
        if (term->begins)
            bytes += t->counters.entries[term->counter].text.len + BEFORE_KEY.len + BEFORE_TERMS.len +
                     AFTER_TERMS.len + 1;
    }
    return bytes;
}

static char *put_term(const struct aggregate_tally *t, const struct aggregate_term *term, char *at)
{
    at = sl_text_put(at, SL_LIT("\""));
    at = sl_text_put(at, t->attributes.entries[term->attribute].text);
    at = sl_text_put(at, SL_LIT("\":{\"N\":\""));
    at = sl_text_put(at, term->number);
    return sl_text_put(at, SL_LIT("\"}"));
}

struct sl_span aggregate_ledger_text(const struct aggregate_tally *t, struct aggregate_part part)
{
    if (part.n == 0)
        return SL_LIT("{\"L\":[]}");
    char *text = t->a->host->alloc(t->arena, text_bytes(t, part)), *at = text;
    at = sl_text_put(at, SL_LIT("{\"L\":["));
    for (uint32_t i = 0; i < part.n; i++) {
        const struct aggregate_term *term = &t->terms.list[part.first + i];
        if (term->begins) {
            at = i ? sl_text_put(at, SL_LIT("}}}},")) : at;
            at = sl_text_put(at, BEFORE_KEY);
            at = sl_text_put(at, t->counters.entries[term->counter].text);
            at = sl_text_put(at, BEFORE_TERMS);
        } else {
            *at++ = ',';
        }
        at = put_term(t, term, at);
    }
    at = sl_text_put(at, AFTER_TERMS);
    at = sl_text_put(at, SL_LIT("]}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

struct sl_span aggregate_ledger_row(const struct aggregate_tally *t, const struct aggregate_entry *entry)
{
    const struct aggregate *a = t->a;
    struct sl_span parts[16];
    size_t n = 0;
    char expires[24], at[48];
    parts[n++] = sl_text_open_object(entry->key);
    if (entry->order.text.ptr) {
        parts[n++] = SL_LIT(",\"" AGGREGATE_ROW_ORDER "\":");
        parts[n++] = entry->order.value;
        parts[n++] = SL_LIT(",\"" AGGREGATE_ROW_SUMS "\":");
        parts[n++] = entry->sums;
    }
    if (entry->at_ms > 0 && a->has_at) {
        snprintf(at, sizeof(at), ",\"" AGGREGATE_ROW_AT "\":{\"N\":\"%" PRId64 "\"}", entry->at_ms);
        parts[n++] = sl_span_str(at);
    }
    if (entry->is_over && a->forget_s > 0) {
        int64_t at_s = a->host->wall_ns(a->route) / 1000000000 + a->forget_s;
        snprintf(expires, sizeof(expires), "%" PRId64, at_s);
        parts[n++] = SL_LIT(",\"");
        parts[n++] = a->expires_attribute;
        parts[n++] = SL_LIT("\":{\"N\":\"");
        parts[n++] = sl_span_str(expires);
        parts[n++] = SL_LIT("\"}");
    }
    if (a->marks_own) {
        parts[n++] = SL_LIT(",\"" AGGREGATE_OWN "\":{\"S\":\"");
        parts[n++] = a->name;
        parts[n++] = SL_LIT("\"}");
    }
    parts[n++] = SL_LIT("}");
    return a->host->join(t->arena, parts, n);
}

/* ---- reading ---- */

static struct sl_value member(const struct aggregate *a, struct sl_value map, const char *name)
{
    return a->host->value_member(map, sl_span_str(name));
}

/* The row's key in the one form in which counter rows are named, whatever order the service chose. */
static bool canonical_key(const struct aggregate_tally *t, struct sl_value key, struct sl_span *out)
{
    const struct aggregate *a = t->a;
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < a->n_key_names; i++) {
        struct sl_value value = a->host->value_member(key, a->key_names[i]);
        if (!sl_render_is_key(value))
            return false;
        values[i] = sl_text_canonical(a->host, value, t->arena);
    }
    *out = sl_text_key(a->host, t->arena, a->key_names, values, a->n_key_names);
    return true;
}

static bool read_counter(struct aggregate_tally *t, struct sl_value element)
{
    const struct aggregate *a = t->a;
    struct sl_value add = member(a, element, "add"), number;
    struct sl_span key, name;
    if (add.type != SL_M || !canonical_key(t, member(a, element, "key"), &key))
        return false;
    struct aggregate_term term = {.counter = sl_keymap_index(&t->counters, key), .begins = true};
    for (struct sl_iter iter = a->host->value_iter(add); a->host->value_next(&iter, &name, &number);) {
        if (number.type != SL_N)
            return false;
        term.attribute = sl_keymap_index(&t->attributes, a->host->json_unquote(t->arena, name));
        term.number = number.raw;
        aggregate_term_add(&t->terms, &term);
        term.begins = false;
    }
    return true;
}

enum sl_status aggregate_ledger_read(struct aggregate_tally *t, struct sl_span item,
                                     struct aggregate_row *out, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    *out = (struct aggregate_row){.terms = {.first = t->terms.n}};
    if (!item.ptr)
        return SL_OK;
    struct sl_value row = {.type = SL_M, .raw = item}, element;
    struct sl_value order = member(a, row, AGGREGATE_ROW_ORDER), sums = member(a, row, AGGREGATE_ROW_SUMS);
    bool good = order.type == SL_S && sums.type == SL_L && sl_order_is_known(order.raw);
    for (struct sl_iter iter = a->host->value_iter(sums); good && a->host->value_next(&iter, NULL, &element);)
        good = read_counter(t, element);
    if (!good)
        return a->host->fail(
            error, SL_FATAL, "LedgerRow",
            "a row of the ledger was not written by aggregate, or by a later release of it: give the ledger "
            "its own table with \"ledger\": {\"table\": ...}, or return to the later release");
    struct sl_value at = member(a, row, AGGREGATE_ROW_AT);
    if (!a->has_at || !a->host->value_int64(at, &out->at_ms))
        out->at_ms = 0;
    out->exists = true;
    out->order = order.raw;
    out->terms.n = t->terms.n - out->terms.first;
    return SL_OK;
}
