/* The ledger: rows that say what has been counted, written and read as JSON. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

#include <inttypes.h>
#include <stdio.h>

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

struct sl_span aggregate_own_key(const struct aggregate *a, const char *kind, struct sl_span text,
                                 struct sl_arena *arena)
{
    return sl_text_own_key(a->host, arena, kind, a->name, text, a->ledger_keys, a->n_ledger_keys);
}

struct sl_span aggregate_own_member(const struct aggregate *a, struct sl_arena *arena)
{
    struct sl_span parts[] = {SL_LIT(",\"" AGGREGATE_OWN "\":{\"S\":\""), a->name, SL_LIT("\"}")};
    return a->marks_own ? a->host->join(arena, parts, 3) : SL_LIT("");
}

/* A key's text is JSON, and an event's id has no control bytes. */
struct sl_span aggregate_ledger_key(const struct aggregate *a, const struct sl_record *r,
                                    struct sl_arena *arena)
{
    struct sl_span unit = a->per_event ? event_identity(a, r, arena) : a->host->record_item_key(r, arena);
    return aggregate_own_key(a, a->per_event ? "event" : "ledger", unit, arena);
}

/* ---- writing ---- */

#define BEFORE_KEY      SL_LIT("{\"M\":{\"key\":{\"M\":")
#define BEFORE_TERMS    SL_LIT("},\"add\":{\"M\":{")
#define AFTER_TERMS     SL_LIT("}}}}")
#define BEFORE_DISTINCT SL_LIT("},\"distinct\":{\"M\":{\"")
#define BEFORE_COUNT    SL_LIT("}},\"n\":{\"N\":\"")
#define BEFORE_MEMBER   SL_LIT("},\"member\":")

#define ELEMENT_BYTES 96 /* of an element, besides its texts */

static const struct aggregate_place *place_of(const struct aggregate_tally *t,
                                              const struct aggregate_term *term)
{
    return &t->places[term->counter];
}

/* The key that names the element: a value is named by its group. */
static struct sl_span element_key(const struct aggregate_tally *t, const struct aggregate_term *term)
{
    const struct aggregate_place *place = place_of(t, term);
    return t->counters.entries[place->kind == AGGREGATE_VALUE ? place->group : term->counter].text;
}

static size_t text_bytes(const struct aggregate_tally *t, struct aggregate_part part)
{
    size_t bytes = sizeof("{\"L\":[]}");
    for (uint32_t i = part.first; i < part.first + part.n; i++) {
        const struct aggregate_term *term = &t->terms.list[i];
        const struct aggregate_place *place = place_of(t, term);
        uint32_t name = place->kind == AGGREGATE_VALUE ? place->attribute : term->attribute;
        bytes += t->attributes.entries[name].text.len + term->number.len + sizeof(",\"\":{\"N\":\"\"}");
        if (term->begins)
            bytes += element_key(t, term).len + place->shown.len + ELEMENT_BYTES;
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

/* One item has a value once; only a row that is to be folded has another count. */
static char *put_value(const struct aggregate_tally *t, const struct aggregate_term *term, char *at)
{
    const struct aggregate_place *place = place_of(t, term);
    at = sl_text_put(at, BEFORE_DISTINCT);
    at = sl_text_put(at, t->attributes.entries[place->attribute].text);
    at = sl_text_put(at, SL_LIT("\":"));
    at = sl_text_put(at, place->shown);
    if (sl_span_is(term->number, "1"))
        return sl_text_put(at, SL_LIT("}}"));
    at = sl_text_put(at, BEFORE_COUNT);
    at = sl_text_put(at, term->number);
    return sl_text_put(at, SL_LIT("\"}"));
}

static char *begin_element(const struct aggregate_tally *t, const struct aggregate_term *term, char *at)
{
    at = sl_text_put(at, BEFORE_KEY);
    at = sl_text_put(at, element_key(t, term));
    switch (place_of(t, term)->kind) {
    case AGGREGATE_VALUE:
        return put_value(t, term, at);
    case AGGREGATE_MEMBER:
        at = sl_text_put(at, BEFORE_MEMBER);
        return sl_text_put(at, place_of(t, term)->shown);
    default:
        at = sl_text_put(at, BEFORE_TERMS);
        return put_term(t, term, at);
    }
}

static char *end_element(const struct aggregate_tally *t, const struct aggregate_term *last, char *at)
{
    return sl_text_put(at, place_of(t, last)->kind == AGGREGATE_SUMS ? AFTER_TERMS : SL_LIT("}}"));
}

struct sl_span aggregate_ledger_text(const struct aggregate_tally *t, struct aggregate_part part)
{
    if (part.n == 0)
        return SL_LIT("{\"L\":[]}");
    const struct aggregate_term *terms = t->terms.list + part.first;
    char *text = t->a->host->alloc(t->arena, text_bytes(t, part)), *at = text;
    at = sl_text_put(at, SL_LIT("{\"L\":["));
    for (uint32_t i = 0; i < part.n; i++) {
        if (i > 0 && terms[i].begins)
            at = end_element(t, &terms[i - 1], at);
        if (i > 0)
            *at++ = ',';
        at = terms[i].begins ? begin_element(t, &terms[i], at) : put_term(t, &terms[i], at);
    }
    at = end_element(t, &terms[part.n - 1], at);
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
    parts[n++] = aggregate_own_member(a, t->arena);
    parts[n++] = SL_LIT("}");
    return a->host->join(t->arena, parts, n);
}

/* ---- reading: terms that are counted with, and never written again ---- */

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

/* "add": {"orders":{"N":"1"}} */
static bool read_sums(struct aggregate_tally *t, struct sl_span key, struct sl_value add)
{
    const struct aggregate *a = t->a;
    struct sl_value number;
    struct sl_span name;
    struct aggregate_term term = {.counter = aggregate_place_at(t, key)};
    for (struct sl_iter iter = a->host->value_iter(add); a->host->value_next(&iter, &name, &number);) {
        if (number.type != SL_N)
            return false;
        term.attribute = sl_map_index(&t->attributes, a->host->json_unquote(t->arena, name));
        term.number = number.raw;
        aggregate_term_add(&t->terms, &term);
    }
    return true;
}

/* "distinct": {"customers":{"S":"ann"}}, and how many items have it, if it is not one. */
static bool read_distinct(struct aggregate_tally *t, struct sl_span key, struct sl_value distinct,
                          struct sl_value count)
{
    const struct aggregate *a = t->a;
    struct sl_value value;
    struct sl_span name;
    uint32_t group = aggregate_place_at(t, key);
    for (struct sl_iter iter = a->host->value_iter(distinct); a->host->value_next(&iter, &name, &value);) {
        struct sl_span text = aggregate_value_read(t, value);
        if (!text.ptr)
            return false;
        uint32_t attribute = sl_map_index(&t->attributes, a->host->json_unquote(t->arena, name));
        struct aggregate_term term = {.counter = aggregate_place_value(t, group, attribute, text),
                                      .attribute = t->count,
                                      .number = count.type == SL_N ? count.raw : SL_LIT("1")};
        if (term.counter == AGGREGATE_NONE)
            return false;
        aggregate_term_add(&t->terms, &term);
    }
    return true;
}

static void read_member(struct aggregate_tally *t, struct sl_span key, struct sl_value number)
{
    struct aggregate_term term = {
        .counter = aggregate_place_member_key(t, key, sl_text_canonical(t->a->host, number, t->arena)),
        .attribute = t->count,
        .number = SL_LIT("1")};
    aggregate_term_add(&t->terms, &term);
}

static bool read_element(struct aggregate_tally *t, struct sl_value element)
{
    const struct aggregate *a = t->a;
    struct sl_value add = member(a, element, "add"), distinct = member(a, element, "distinct"),
                    by = member(a, element, "member");
    struct sl_span key;
    if (!canonical_key(t, member(a, element, "key"), &key))
        return false;
    if (distinct.type == SL_M)
        return read_distinct(t, key, distinct, member(a, element, "n"));
    if (by.type == SL_N)
        read_member(t, key, by);
    return by.type == SL_N || (add.type == SL_M && read_sums(t, key, add));
}

bool aggregate_ledger_terms(struct aggregate_tally *t, struct sl_value sums, struct aggregate_part *out)
{
    struct sl_value element;
    bool good = sums.type == SL_L;
    *out = (struct aggregate_part){.first = t->terms.n};
    for (struct sl_iter iter = t->a->host->value_iter(sums);
         good && t->a->host->value_next(&iter, NULL, &element);)
        good = read_element(t, element);
    out->n = t->terms.n - out->first;
    return good;
}

enum sl_status aggregate_ledger_read(struct aggregate_tally *t, struct sl_span item,
                                     struct aggregate_row *out, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    *out = (struct aggregate_row){.terms = {.first = t->terms.n}};
    if (!item.ptr)
        return SL_OK;
    struct sl_value row = {.type = SL_M, .raw = item};
    struct sl_value order = member(a, row, AGGREGATE_ROW_ORDER), sums = member(a, row, AGGREGATE_ROW_SUMS);
    if (order.type != SL_S || !sl_order_is_known(order.raw) || !aggregate_ledger_terms(t, sums, &out->terms))
        return a->host->fail(
            error, SL_FATAL, "LedgerRow",
            "a row of the ledger was not written by aggregate, or by a later release of it: give the ledger "
            "its own table with \"ledger\": {\"table\": ...}, or return to the later release");
    struct sl_value at = member(a, row, AGGREGATE_ROW_AT);
    if (!a->has_at || !a->host->value_int64(at, &out->at_ms))
        out->at_ms = 0;
    out->exists = true;
    out->order = order.raw;
    return SL_OK;
}
