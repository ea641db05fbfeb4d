/* Rows of ledgers and of totals, added up by group. What they look like is what docs/HANDLERS.md promises. */
#include "base/decimal.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/span.h"
#include "streams/value.h"
#include "work/verify/totals.h"
#include "work/verify/totals_private.h"

#include <inttypes.h>

#define KEY_BYTES ((size_t)64 * 1024)

/* ---- names and keys ---- */

static bool is_one_of(struct sl_span name, const struct totals_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        if (sl_span_eq(names->list[i], name))
            return true;
    return false;
}

bool sl_totals_is_judged(const struct totals *t, struct sl_span name)
{
    return is_one_of(name, &t->counted) && !is_one_of(name, &t->spoiled);
}

/* Bytes that are left out at the end of the text of one of the key's attributes. */
struct cut {
    size_t attribute, bytes;
};

/* The key's one text, of a map that has its attributes among others. Absent: it is no such key. */
static struct sl_span key_text(struct totals_rows *r, struct sl_value map, struct cut cut)
{
    struct sl_buffer json;
    sl_buffer_init_in(&json, r->arena, KEY_BYTES);
    for (size_t i = 0; i < r->t->n_keys; i++) {
        struct sl_value value = sl_value_member(map, r->t->keys[i]);
        if (value.type == SL_NONE)
            return sl_span(NULL, 0);
        if (i == cut.attribute)
            value.raw.len -= cut.bytes;
        sl_buffer_add_str(&json, i ? ",\"" : "{\"");
        sl_json_add_escaped(&json, r->t->keys[i]);
        sl_buffer_add_str(&json, "\":");
        sl_buffer_add_span(&json, sl_value_json(value, r->arena));
    }
    sl_buffer_add_char(&json, '}');
    sl_buffer_reset(r->key);
    sl_value_canonical((struct sl_value){.type = SL_M, .raw = sl_buffer_span(&json)}, r->key);
    return sl_buffer_span(r->key);
}

static struct sl_span plain_key(struct totals_rows *r, struct sl_value map)
{
    return key_text(r, map, (struct cut){0, 0});
}

/* Bytes of "#12" at the end of the text; 0: there is none. */
static size_t shard_suffix(struct sl_value key)
{
    size_t n = 0;
    while (key.type == SL_S && n < key.raw.len && n < 5 && key.raw.ptr[key.raw.len - 1 - n] >= '0' &&
           key.raw.ptr[key.raw.len - 1 - n] <= '9')
        n++;
    return n > 0 && n < key.raw.len && key.raw.ptr[key.raw.len - 1 - n] == '#' ? n + 1 : 0;
}

/* Bytes of "#NUMBER#DIGEST" at the end of the text; 0: there is none. */
static size_t member_suffix(struct sl_value key)
{
    size_t n = 0, marks = 0;
    while (key.type == SL_S && n < key.raw.len && marks < 2)
        marks += key.raw.ptr[key.raw.len - 1 - n++] == '#';
    return marks == 2 ? n : 0;
}

static struct sl_span plain(struct totals_rows *r, struct sl_span name)
{
    return memchr(name.ptr, '\\', name.len) ? sl_json_unescape(name, r->arena) : name;
}

/* ---- adding up ---- */

/* What a row of a ledger adds. */
struct part {
    struct sl_span number;
    bool subtract;
    uint64_t digest; /* of the row */
};

/* To an attribute, or to rows that are counted like one. */
static void add_part(struct totals_rows *r, struct sl_span key, struct sl_span name, const struct part *part)
{
    struct group_sum *sum = sl_groups_find(r->groups, key, name, true);
    if (!sum)
        return;
    bool first = r->scan == TOTALS_FIRST;
    (void)sl_decimal_add(first ? sum->first : sum->second, part->number, part->subtract);
    *(first ? &sum->rows_first : &sum->rows_second) += part->digest;
}

static void add_term(struct totals_rows *r, struct sl_span key, struct sl_span name, const struct part *part)
{
    if (sl_totals_is_judged(r->t, name))
        add_part(r, key, name, part);
}

/* A number for rows of one kind, `n` times: so sums are equal when the rows are. */
static struct sl_span row_number(struct totals_rows *r, uint64_t hash, int64_t n)
{
    uint64_t number = (hash ^ hash >> 32) & 0x7FFFFFFF;
    bool fits = n > -((int64_t)1 << 31) && n < (int64_t)1 << 31;
    return sl_span_str(sl_arena_printf(r->arena, "%" PRId64, (int64_t)(number + 1) * (fits ? n : 1)));
}

static struct sl_span values_name(struct totals_rows *r, struct sl_span attribute)
{
    return sl_span_str(sl_arena_printf(r->arena, TOTALS_VALUES "%.*s", SL_ARG(attribute)));
}

/* The value of a group's attribute, whatever row says it. */
static uint64_t value_hash(struct totals_rows *r, struct sl_span group, struct sl_span attribute,
                           struct sl_value value)
{
    uint64_t hash = sl_hash(group) * 31 + sl_hash(attribute);
    struct sl_buffer text;
    sl_buffer_init_in(&text, r->arena, KEY_BYTES);
    sl_value_canonical(value, &text);
    return hash * 0x9E3779B97F4A7C15u + sl_hash(sl_buffer_span(&text));
}

/* ---- ledgers ---- */

static void take_sums(struct totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_span group = plain_key(r, sl_value_member(element, SL_LIT("key"))), name;
    struct sl_value add = sl_value_member(element, SL_LIT("add")), number;
    for (struct sl_iter i = sl_value_iter(add); group.ptr && sl_value_next(&i, &name, &number);) {
        part.number = number.raw;
        if (number.type == SL_N)
            add_term(r, group, plain(r, name), &part);
    }
}

static int64_t integer(struct sl_value n, int64_t otherwise)
{
    int64_t out;
    return sl_value_int64(n, &out) ? out : otherwise;
}

/* The attribute does not change by it, but its count may: it stood still only if this row did. */
static void take_distinct(struct totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_span group = plain_key(r, sl_value_member(element, SL_LIT("key"))), raw_name;
    struct sl_value distinct = sl_value_member(element, SL_LIT("distinct")), value;
    int64_t n = integer(sl_value_member(element, SL_LIT("n")), 1);
    for (struct sl_iter i = sl_value_iter(distinct); group.ptr && sl_value_next(&i, &raw_name, &value);) {
        struct sl_span name = plain(r, raw_name);
        part.number = SL_LIT("0");
        add_term(r, group, name, &part);
        part.number = row_number(r, value_hash(r, group, name, value), n);
        add_part(r, group, values_name(r, name), &part);
    }
}

static void take_member(struct totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_value map = sl_value_member(element, SL_LIT("key"));
    struct sl_span row = plain_key(r, map);
    size_t cut = r->t->n_keys == 2 ? member_suffix(sl_value_member(map, r->t->keys[1])) : 0;
    if (!row.ptr || sl_value_member(element, SL_LIT("member")).type != SL_N)
        return;
    part.number = row_number(r, sl_hash(row), 1);
    add_part(r, key_text(r, map, (struct cut){1, cut}), SL_LIT(TOTALS_MEMBERS), &part);
}

/* What a row counts: its digest is of its key and of what changes with it. */
static void take_terms(struct totals_rows *r, struct sl_value terms, const struct part *part)
{
    struct sl_value element;
    for (struct sl_iter iter = sl_value_iter(terms); sl_value_next(&iter, NULL, &element);) {
        take_sums(r, element, *part);
        take_distinct(r, element, *part);
        take_member(r, element, *part);
    }
}

static uint64_t digest_of(struct totals_rows *r, struct sl_span key, struct sl_span changes)
{
    uint64_t digest = sl_hash(key) * 0x9E3779B97F4A7C15u + sl_hash(changes);
    digest ^= digest >> 29;
    r->digest += digest;
    return digest;
}

/* The value's row: one more of its group's attribute, and as many items as it says. */
static void take_value_row(struct totals_rows *r, struct sl_span key, struct sl_value row)
{
    struct sl_value attribute = sl_value_member(row, SL_LIT("attribute")),
                    count = sl_value_member(row, SL_LIT("n"));
    struct sl_span group = plain_key(r, sl_value_member(row, SL_LIT("group")));
    int64_t n = integer(count, 0);
    if (!group.ptr || attribute.type != SL_S || count.type != SL_N)
        return;
    struct sl_span name = plain(r, attribute.raw);
    struct part part = {.number = n > 0 ? SL_LIT("1") : SL_LIT("0"), .digest = digest_of(r, key, count.raw)};
    add_term(r, group, name, &part);
    part.subtract = true;
    part.number = row_number(r, value_hash(r, group, name, sl_value_member(row, SL_LIT("value"))), n);
    add_part(r, group, values_name(r, name), &part);
}

void sl_totals_ledger_row(struct totals_rows *r, const struct totals_ledger *l, struct sl_value row)
{
    struct sl_value key = sl_value_member(row, l->key), order = sl_value_member(row, SL_LIT("order")),
                    sums = sl_value_member(row, SL_LIT("sums")),
                    id = sl_value_member(row, SL_LIT("sluice_delta"));
    struct sl_span text = key.type == SL_S ? sl_value_text(key, r->arena) : SL_LIT("");
    if (sl_span_starts(text, l->prefix) && order.type == SL_S && sums.type == SL_L) {
        const struct part part = {.digest = digest_of(r, text, order.raw)};
        take_terms(r, sums, &part);
    } else if (sl_span_starts(text, l->deltas) && id.type == SL_S) {
        /* The ledger has counted it, and the totals have not. */
        const struct part part = {.subtract = true, .digest = digest_of(r, text, id.raw)};
        take_terms(r, sl_value_member(row, SL_LIT("sluice_sums")), &part);
    } else if (sl_span_starts(text, l->values)) {
        take_value_row(r, text, row);
    }
}

/* ---- totals ---- */

/* A row with a number at its end is a part of a group, unless it is a group itself. */
static struct sl_span group_of_total(struct totals_rows *r, struct sl_value row, struct sl_span name)
{
    size_t cut = r->t->has_shards ? shard_suffix(sl_value_member(row, r->t->keys[0])) : 0;
    struct sl_span whole = plain_key(r, row);
    struct group_sum *own = cut ? sl_groups_find(r->groups, whole, name, false) : NULL;
    return cut && !own ? key_text(r, row, (struct cut){0, cut}) : whole;
}

static void take_mark(struct totals_rows *r, struct sl_value row, struct sl_span name, struct sl_value value)
{
    struct sl_span attribute = sl_span_from(name, strlen(SL_TOTALS_MARK));
    if (!sl_totals_is_judged(r->t, attribute))
        return;
    struct group_sum *sum = sl_groups_find(r->groups, plain_key(r, row), attribute, true);
    struct sl_span json = sl_value_json(value, r->arena);
    if (sum)
        sum->mark = sl_span(sl_arena_copy(r->groups->arena, json), json.len);
}

/* A member's row has no attribute of a counter. False: it is none. */
static bool take_member_row(struct totals_rows *r, struct sl_value row)
{
    size_t cut = r->t->n_keys == 2 ? member_suffix(sl_value_member(row, r->t->keys[1])) : 0;
    if (cut == 0 || sl_value_member(row, SL_LIT("item")).type != SL_M ||
        sl_value_member(row, SL_LIT("by")).type != SL_N)
        return false;
    uint64_t hash = sl_hash(plain_key(r, row));
    struct group_sum *sum =
        sl_groups_find(r->groups, key_text(r, row, (struct cut){1, cut}), SL_LIT(TOTALS_MEMBERS), true);
    if (sum)
        (void)sl_decimal_add(sum->total, row_number(r, hash, 1), false);
    return true;
}

void sl_totals_row(struct totals_rows *r, struct sl_value row)
{
    struct sl_value key = sl_value_member(row, r->t->keys[0]), value;
    struct sl_span raw_name;
    if (key.type == SL_NONE || (key.type == SL_S && sl_span_starts(key.raw, SL_LIT("sluice:"))) ||
        take_member_row(r, row))
        return;
    for (struct sl_iter iter = sl_value_iter(row); sl_value_next(&iter, &raw_name, &value);) {
        struct sl_span name = plain(r, raw_name);
        if (sl_span_starts(name, SL_LIT(SL_TOTALS_MARK)))
            take_mark(r, row, name, value);
        if (value.type != SL_N || !sl_totals_is_judged(r->t, name))
            continue;
        struct group_sum *sum = sl_groups_find(r->groups, group_of_total(r, row, name), name, true);
        if (sum)
            (void)sl_decimal_add(sum->total, value.raw, false);
    }
}
