/* The ledger: rows that say what has been counted, as JSON. */
#include "handlers/aggregate.h"

#include <inttypes.h>
#include <stdio.h>

/* A sort key has 1,024 bytes at most, and the text may have to stand in one. */
#define UNIT_BYTES 700

/* ---- keys and orders ---- */

static struct sl_span event_identity(const struct aggregate *a, const struct sl_record *r,
                                     struct sl_arena *arena)
{
    struct sl_span id = a->host->record_text(r, SL_FIELD_EVENT_ID);
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.ptr[i] < 0x20)
            return a->host->escape(arena, id, SL_ESCAPE_PATH);
    if (id.len > 0)
        return id;
    struct sl_span parts[] = {a->host->record_text(r, SL_FIELD_SOURCE_ARN), SL_TEXT(" "),
                              a->host->record_text(r, SL_FIELD_IDENTIFIER)};
    return a->host->join(arena, parts, 3);
}

/* {"S":"sluice:ledger:NAME:UNIT"}. A key's text is JSON, and an event's id has no control bytes: nothing but
 * quotes and backslashes is to be escaped. */
static struct sl_span unit_value(const struct aggregate *a, struct sl_span unit, struct sl_arena *arena)
{
    struct sl_span kind = a->per_event ? SL_TEXT("event:") : SL_TEXT("ledger:");
    char *text = a->host->alloc(arena, a->name.len + 2 * unit.len + 40);
    char *at = sl_text_put(text, SL_TEXT("{\"S\":\"sluice:"));
    at = sl_text_put(at, kind);
    at = sl_text_put(at, a->name);
    *at++ = ':';
    for (size_t i = 0; i < unit.len; i++) {
        if (unit.ptr[i] == '"' || unit.ptr[i] == '\\')
            *at++ = '\\';
        *at++ = unit.ptr[i];
    }
    at = sl_text_put(at, SL_TEXT("\"}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

struct sl_span aggregate_ledger_key(const struct aggregate *a, const struct sl_record *r,
                                    struct sl_arena *arena)
{
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    struct sl_span unit = a->per_event ? event_identity(a, r, arena) : a->host->record_item_key(r, arena);
    if (unit.len > UNIT_BYTES) {
        sl_text_digest(a->host, unit, digest);
        unit = (struct sl_span){digest, SL_TEXT_DIGEST_BYTES};
    }
    struct sl_span value = unit_value(a, unit, arena);
    struct sl_span key[9];
    size_t n = 0;
    for (size_t i = 0; i < a->n_ledger_keys; i++) {
        key[n++] = i ? SL_TEXT(",\"") : SL_TEXT("{\"");
        key[n++] = a->ledger_keys[i];
        key[n++] = SL_TEXT("\":");
        key[n++] = value;
    }
    key[n++] = SL_TEXT("}");
    return a->host->join(arena, key, n);
}

enum sl_status aggregate_order(const struct aggregate *a, const struct sl_record *r, struct sl_arena *arena,
                               struct sl_span *out, struct sl_error *error)
{
    /* An item of a table export has no order: it is older than any change. */
    struct sl_span order = a->host->record_order(r, arena);
    if (order.len > AGGREGATE_ORDER_DIGITS)
        return a->host->fail(error, SL_REJECT, "BadOrder",
                             "the record's sequence number has %zu digits, not %d at most", order.len,
                             AGGREGATE_ORDER_DIGITS);
    char *value = a->host->alloc(arena, AGGREGATE_ORDER_DIGITS + 8),
         *text = sl_text_put(value, SL_TEXT("{\"S\":\""));
    memset(text, '0', AGGREGATE_ORDER_DIGITS - order.len);
    sl_text_put(text + AGGREGATE_ORDER_DIGITS - order.len, order);
    sl_text_put(text + AGGREGATE_ORDER_DIGITS, SL_TEXT("\"}"));
    *out = (struct sl_span){text, AGGREGATE_ORDER_DIGITS};
    return SL_OK;
}

/* ---- writing ---- */

#define BEFORE_KEY   SL_TEXT("{\"M\":{\"key\":{\"M\":")
#define BEFORE_TERMS SL_TEXT("},\"add\":{\"M\":{")
#define AFTER_TERMS  SL_TEXT("}}}}")

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
    at = sl_text_put(at, SL_TEXT("\""));
    at = sl_text_put(at, t->attributes.entries[term->attribute].text);
    at = sl_text_put(at, SL_TEXT("\":{\"N\":\""));
    at = sl_text_put(at, term->number);
    return sl_text_put(at, SL_TEXT("\"}"));
}

struct sl_span aggregate_ledger_text(const struct aggregate_tally *t, struct aggregate_part part)
{
    if (part.n == 0)
        return SL_TEXT("{\"L\":[]}");
    char *text = t->a->host->alloc(t->arena, text_bytes(t, part)), *at = text;
    at = sl_text_put(at, SL_TEXT("{\"L\":["));
    for (uint32_t i = 0; i < part.n; i++) {
        const struct aggregate_term *term = &t->terms.list[part.first + i];
        if (term->begins) {
            at = i ? sl_text_put(at, SL_TEXT("}}}},")) : at;
            at = sl_text_put(at, BEFORE_KEY);
            at = sl_text_put(at, t->counters.entries[term->counter].text);
            at = sl_text_put(at, BEFORE_TERMS);
        } else {
            *at++ = ',';
        }
        at = put_term(t, term, at);
    }
    at = sl_text_put(at, AFTER_TERMS);
    at = sl_text_put(at, SL_TEXT("]}"));
    return (struct sl_span){text, (size_t)(at - text)};
}

struct sl_span aggregate_ledger_row(const struct aggregate_tally *t, struct sl_span key, struct sl_span order,
                                    struct sl_span text, bool is_over)
{
    const struct aggregate *a = t->a;
    struct sl_span parts[16];
    size_t n = 0;
    char expires[24];
    parts[n++] = (struct sl_span){key.ptr, key.len - 1};
    if (!a->per_event) {
        parts[n++] = SL_TEXT(",\"order\":{\"S\":\"");
        parts[n++] = order;
        parts[n++] = SL_TEXT("\"},\"sums\":");
        parts[n++] = text;
    }
    if (is_over && a->forget_s > 0) {
        int64_t at_s = a->host->wall_ns(a->route) / 1000000000 + a->forget_s;
        snprintf(expires, sizeof(expires), "%" PRId64, at_s);
        parts[n++] = SL_TEXT(",\"");
        parts[n++] = a->expires_attribute;
        parts[n++] = SL_TEXT("\":{\"N\":\"");
        parts[n++] = sl_text_of(expires);
        parts[n++] = SL_TEXT("\"}");
    }
    if (a->marks_own) {
        parts[n++] = SL_TEXT(",\"" AGGREGATE_OWN "\":{\"S\":\"");
        parts[n++] = a->name;
        parts[n++] = SL_TEXT("\"}");
    }
    parts[n++] = SL_TEXT("}");
    return a->host->join(t->arena, parts, n);
}

/* ---- reading ---- */

static struct sl_value member(const struct aggregate *a, struct sl_value map, const char *wanted)
{
    struct sl_span name;
    struct sl_value value;
    for (struct sl_iter iter = a->host->value_iter(map); a->host->value_next(&iter, &name, &value);)
        if (sl_text_eq(name, sl_text_of(wanted)))
            return value;
    return (struct sl_value){0};
}

/* The row's key in the one form in which counter_key writes it, whatever order the service chose. */
static bool canonical_key(const struct aggregate_tally *t, struct sl_value key, struct sl_span *out)
{
    const struct aggregate *a = t->a;
    struct sl_span parts[9];
    size_t n = 0;
    for (size_t i = 0; i < a->n_key_names; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", SL_TEXT_ARG(a->key_names[i]));
        struct sl_value value = member(a, key, name);
        if (value.type != SL_S && value.type != SL_N && value.type != SL_B)
            return false;
        parts[n++] = i ? SL_TEXT(",\"") : SL_TEXT("{\"");
        parts[n++] = a->key_names[i];
        parts[n++] = SL_TEXT("\":");
        parts[n++] = sl_text_canonical(a->host, value, t->arena);
    }
    parts[n++] = SL_TEXT("}");
    *out = a->host->join(t->arena, parts, n);
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
    struct sl_value order = member(a, row, "order"), sums = member(a, row, "sums");
    bool good = order.type == SL_S && sums.type == SL_L;
    for (struct sl_iter iter = a->host->value_iter(sums); good && a->host->value_next(&iter, NULL, &element);)
        good = read_counter(t, element);
    if (!good)
        return a->host->fail(
            error, SL_FATAL, "LedgerRow",
            "a row of the ledger is not one that aggregate wrote: give the ledger a table of its "
            "own with \"ledger\": {\"table\": ...}");
    out->exists = true;
    out->order = order.raw;
    out->terms.n = t->terms.n - out->terms.first;
    return SL_OK;
}
