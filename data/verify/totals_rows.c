/* Rows of ledgers and of totals, added up by group. */
#include "data/verify/totals_rows.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/span.h"
#include "handlers/pipeline/route.h"
#include "streams/value.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- sums by group, in a table that is hashed by row and attribute ---- */

#define ARENA_BYTES ((size_t)256 * 1024)

void sl_totals_sums_init(struct sl_totals_sums *sums, size_t most, uint64_t part, uint64_t of)
{
    *sums = (struct sl_totals_sums){.arena = sl_arena_new(ARENA_BYTES),
                                    .most = most,
                                    .room = most,
                                    .part = part,
                                    .of = of,
                                    .n_slots = 4 * most};
    sums->slots = calloc(sums->n_slots, sizeof(*sums->slots));
    sums->list = calloc(most, sizeof(*sums->list));
    if (!sums->slots || !sums->list)
        sl_die("out of memory: sums by group");
}

void sl_totals_sums_clean_up(struct sl_totals_sums *sums)
{
    sl_arena_destroy(sums->arena);
    free(sums->slots);
    free(sums->list);
    *sums = (struct sl_totals_sums){.n = 0};
}

static struct sl_totals_sum *add(struct sl_totals_sums *sums, struct sl_totals_key key, struct sl_span name)
{
    struct sl_totals_sum *sum = &sums->list[sums->n++];
    *sum = (struct sl_totals_sum){.key = sl_span(sl_arena_copy(sums->arena, key.text), key.text.len),
                                  .name = sl_span(sl_arena_copy(sums->arena, name), name.len),
                                  .home = key.home,
                                  .is_settled = sums->is_closed,
                                  .total = sl_decimal_new(sums->arena),
                                  .first = sl_decimal_new(sums->arena),
                                  .second = sl_decimal_new(sums->arena)};
    return sum;
}

struct sl_totals_sum *sl_totals_sums_find(struct sl_totals_sums *sums, struct sl_totals_key key,
                                          struct sl_span name, bool makes)
{
    if (key.home % sums->of != sums->part)
        return NULL;
    uint64_t hash = sl_hash(key.text) * 31 + sl_hash(name);
    size_t slot = (hash ^ hash >> 32) % sums->n_slots;
    for (; sums->slots[slot]; slot = (slot + 1) % sums->n_slots) {
        struct sl_totals_sum *sum = &sums->list[sums->slots[slot] - 1];
        if (sl_span_eq(sum->key, key.text) && sl_span_eq(sum->name, name))
            return sum;
    }
    if (!makes)
        return NULL;
    if (sums->n == sums->room) {
        sums->is_full = true;
        return NULL;
    }
    sums->slots[slot] = (uint32_t)sums->n + 1;
    return add(sums, key, name);
}

void sl_totals_sums_begin_round(struct sl_totals_sums *sums)
{
    for (size_t i = 0; i < sums->n; i++) {
        struct sl_totals_sum *s = &sums->list[i];
        s->total = sl_decimal_new(sums->arena);
        s->first = s->second;
        s->second = sl_decimal_new(sums->arena);
        s->rows_first = s->rows_second;
        s->rows_second = 0;
        s->mark = sl_span(NULL, 0);
    }
}

/* ---- which routes share totals, and where their ledgers are ---- */

static void add_names(struct sl_totals_names *names, const struct sl_span *more, size_t n,
                      struct sl_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < names->n && !sl_span_eq(names->list[k], more[i]))
            k++;
        if (k == names->n)
            SL_PUSH_IN(arena, names->list, names->n, names->room) = more[i];
    }
}

static size_t table_of(struct sl_totals_target *t, struct sl_span table)
{
    size_t i = 0;
    while (i < t->n_tables && !sl_span_eq(t->tables[i], table))
        i++;
    if (i == t->n_tables)
        t->tables[t->n_tables++] = table;
    return i;
}

static void add_ledger(struct sl_totals_target *t, const struct sl_route *route,
                       const struct sl_totals_facts *facts, struct sl_arena *arena)
{
    struct sl_totals_ledger *l = &t->ledgers[t->n_ledgers];
    *l = (struct sl_totals_ledger){.route = route->config->name, .table = table_of(t, facts->ledger_table)};
    l->prefix = sl_span_str(sl_arena_printf(arena, "sluice:ledger:%.*s:", SL_ARG(facts->ledger)));
    l->deltas = sl_span_str(sl_arena_printf(arena, "sluice:delta:%.*s:", SL_ARG(facts->ledger)));
    l->values = sl_span_str(sl_arena_printf(arena, "sluice:distinct:%.*s:", SL_ARG(facts->ledger)));
    l->key = facts->ledger_table.ptr ? facts->ledger_keys[0] : t->keys[0];
    t->n_ledgers += t->n_ledgers + 1 < SL_TOTALS_LEDGERS;
}

static struct sl_totals_target *totals_of(struct sl_totals_target *list, size_t *n,
                                          const struct sl_route *route)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to");
    for (size_t i = 0; i < *n; i++)
        if (sl_span_is(to->text, list[i].url))
            return &list[i];
    list[*n].url = to->text.ptr; /* followed by a NUL */
    list[*n].port = to->table;
    return &list[(*n)++];
}

static void add_route(struct sl_totals_target *t, const struct sl_route *route, bool is_chosen,
                      struct sl_arena *arena)
{
    struct sl_totals_facts facts;
    sl_route_read_totals(route, arena, &facts);
    t->has_shards = t->has_shards || facts.shards > 0;
    add_names(facts.is_exact ? &t->counted : &t->spoiled, facts.sums, facts.n_sums, arena);
    add_names(&t->spoiled, facts.running, facts.n_running, arena);
    for (size_t i = 0; i < facts.n_keys && t->n_keys < 2; i++)
        if (t->n_keys == 0 || !sl_span_eq(t->keys[0], facts.keys[i]))
            t->keys[t->n_keys++] = facts.keys[i];
    if (facts.is_exact)
        add_ledger(t, route, &facts, arena);
    t->is_chosen = t->is_chosen || (is_chosen && facts.is_exact);
}

size_t sl_totals_find(struct sl_pipeline *pipeline, const bool *is_chosen, struct sl_arena *arena,
                      struct sl_totals_target **out)
{
    size_t n = 0;
    *out = sl_arena_zalloc(arena, (pipeline->n + 1) * sizeof(**out));
    for (size_t i = 0; i < pipeline->n; i++)
        if (sl_route_makes(&pipeline->routes[i]) == SL_MAKES_TOTALS)
            add_route(totals_of(*out, &n, &pipeline->routes[i]), &pipeline->routes[i],
                      !is_chosen || is_chosen[i], arena);
    return n;
}

static uint64_t mix_names(uint64_t digest, const struct sl_totals_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        digest = sl_hash_mix(digest, names->list[i]);
    return sl_hash_mix(digest, SL_LIT("."));
}

uint64_t sl_totals_digest(const struct sl_totals_target *targets, size_t n)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sl_totals_target *t = &targets[i];
        digest = sl_hash_mix(digest, sl_span_str(t->url));
        digest = sl_hash_mix(digest, t->is_chosen ? SL_LIT("chosen") : SL_LIT("-"));
        digest = sl_hash_mix(digest, t->has_shards ? SL_LIT("shards") : SL_LIT("-"));
        for (size_t k = 0; k < t->n_keys; k++)
            digest = sl_hash_mix(digest, t->keys[k]);
        for (size_t k = 0; k < t->n_ledgers; k++) {
            digest = sl_hash_mix(digest, t->ledgers[k].prefix);
            digest = sl_hash_mix(digest, t->tables[t->ledgers[k].table]);
        }
        digest = mix_names(mix_names(digest, &t->counted), &t->spoiled);
    }
    return digest;
}

#define KEY_BYTES ((size_t)64 * 1024)

/* ---- names and keys ---- */

static bool is_one_of(struct sl_span name, const struct sl_totals_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        if (sl_span_eq(names->list[i], name))
            return true;
    return false;
}

bool sl_totals_is_judged(const struct sl_totals_target *t, struct sl_span name)
{
    return is_one_of(name, &t->counted) && !is_one_of(name, &t->spoiled);
}

/* Bytes that are left out at the end of the text of one of the key's attributes. */
struct cut {
    size_t attribute, bytes;
};

/* Bytes of "#12" at the end of the text's first `len` bytes; 0: there is none. */
static size_t shard_suffix(struct sl_value key, size_t len)
{
    size_t n = 0;
    while (key.type == SL_S && n < len && n < 5 && key.raw.ptr[len - 1 - n] >= '0' &&
           key.raw.ptr[len - 1 - n] <= '9')
        n++;
    return n > 0 && n < len && key.raw.ptr[len - 1 - n] == '#' ? n + 1 : 0;
}

/* Writes the canonical text of the map's key, without so many bytes at the end of each attribute. False: it
 * is no such key. */
static bool write_key(struct sl_totals_rows *r, struct sl_value map, const size_t *cuts)
{
    struct sl_buffer json;
    sl_buffer_init_in(&json, r->arena, KEY_BYTES);
    for (size_t i = 0; i < r->t->n_keys; i++) {
        struct sl_value value = sl_value_member(map, r->t->keys[i]);
        if (value.type == SL_NONE)
            return false;
        value.raw.len -= cuts[i];
        sl_buffer_add_str(&json, i ? ",\"" : "{\"");
        sl_json_add_escaped(&json, r->t->keys[i]);
        sl_buffer_add_str(&json, "\":");
        sl_buffer_add_span(&json, sl_value_json(value, r->arena));
    }
    sl_buffer_add_char(&json, '}');
    sl_buffer_reset(r->key);
    sl_value_canonical((struct sl_value){.type = SL_M, .raw = sl_buffer_span(&json)}, r->key);
    return true;
}

/* "#12#3" at the end: all of what may have been put there. */
static size_t shard_suffixes(struct sl_value key, size_t cut)
{
    size_t n = 0, more;
    while ((more = shard_suffix(key, key.raw.len - cut - n)) > 0)
        n += more;
    return n;
}

/* The key, of a map that has its attributes among others. */
static struct sl_totals_key key_of(struct sl_totals_rows *r, struct sl_value map, struct cut cut)
{
    struct sl_totals_key key = {.home = 0};
    size_t cuts[2] = {0, 0};
    cuts[cut.attribute] = cut.bytes;
    size_t shard = r->t->has_shards ? shard_suffixes(sl_value_member(map, r->t->keys[0]), cuts[0]) : 0;
    if (!write_key(r, map, (size_t[]){cuts[0] + shard, cuts[1]}))
        return key;
    key.home = sl_hash(sl_buffer_span(r->key));
    if (shard)
        (void)write_key(r, map, cuts);
    key.text = sl_buffer_span(r->key);
    return key;
}

static struct sl_totals_key plain_key(struct sl_totals_rows *r, struct sl_value map)
{
    return key_of(r, map, (struct cut){0, 0});
}

/* Bytes of "#NUMBER#DIGEST" at the end of the text; 0: there is none. */
static size_t member_suffix(struct sl_value key)
{
    size_t n = 0, marks = 0;
    while (key.type == SL_S && n < key.raw.len && marks < 2)
        marks += key.raw.ptr[key.raw.len - 1 - n++] == '#';
    return marks == 2 ? n : 0;
}

static struct sl_span plain(struct sl_totals_rows *r, struct sl_span name)
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
static void add_part(struct sl_totals_rows *r, struct sl_totals_key key, struct sl_span name,
                     const struct part *part)
{
    struct sl_totals_sum *sum = sl_totals_sums_find(r->sums, key, name, true);
    if (!sum)
        return;
    bool first = r->scan == SL_TOTALS_FIRST;
    (void)sl_decimal_add(first ? sum->first : sum->second, part->number, part->subtract);
    *(first ? &sum->rows_first : &sum->rows_second) += part->digest;
}

static void add_term(struct sl_totals_rows *r, struct sl_totals_key key, struct sl_span name,
                     const struct part *part)
{
    if (sl_totals_is_judged(r->t, name))
        add_part(r, key, name, part);
}

/* A number for rows of one kind, `n` times: so sums are equal when the rows are. */
static struct sl_span row_number(struct sl_totals_rows *r, uint64_t hash, int64_t n)
{
    uint64_t number = (hash ^ hash >> 32) & 0x7FFFFFFF;
    bool fits = n > -((int64_t)1 << 31) && n < (int64_t)1 << 31;
    return sl_span_str(sl_arena_printf(r->arena, "%" PRId64, (int64_t)(number + 1) * (fits ? n : 1)));
}

static struct sl_span values_name(struct sl_totals_rows *r, struct sl_span attribute)
{
    return sl_span_str(sl_arena_printf(r->arena, SL_TOTALS_VALUES "%.*s", SL_ARG(attribute)));
}

/* The value of a group's attribute, whatever row says it. */
static uint64_t value_hash(struct sl_totals_rows *r, struct sl_totals_key group, struct sl_span attribute,
                           struct sl_value value)
{
    uint64_t hash = sl_hash(group.text) * 31 + sl_hash(attribute);
    struct sl_buffer text;
    sl_buffer_init_in(&text, r->arena, KEY_BYTES);
    sl_value_canonical(value, &text);
    return hash * 0x9E3779B97F4A7C15u + sl_hash(sl_buffer_span(&text));
}

/* ---- ledgers ---- */

static void take_sums(struct sl_totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_totals_key group = plain_key(r, sl_value_member(element, SL_LIT("key")));
    struct sl_span name;
    struct sl_value add = sl_value_member(element, SL_LIT("add")), number;
    for (struct sl_iter i = sl_value_iter(add); group.text.ptr && sl_value_next(&i, &name, &number);) {
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
static void take_distinct(struct sl_totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_totals_key group = plain_key(r, sl_value_member(element, SL_LIT("key")));
    struct sl_span raw_name;
    struct sl_value distinct = sl_value_member(element, SL_LIT("distinct")), value;
    int64_t n = integer(sl_value_member(element, SL_LIT("n")), 1);
    for (struct sl_iter i = sl_value_iter(distinct);
         group.text.ptr && sl_value_next(&i, &raw_name, &value);) {
        struct sl_span name = plain(r, raw_name);
        part.number = SL_LIT("0");
        add_term(r, group, name, &part);
        part.number = row_number(r, value_hash(r, group, name, value), n);
        add_part(r, group, values_name(r, name), &part);
    }
}

static void take_member(struct sl_totals_rows *r, struct sl_value element, struct part part)
{
    struct sl_value map = sl_value_member(element, SL_LIT("key"));
    struct sl_totals_key row = plain_key(r, map);
    size_t cut = r->t->n_keys == 2 ? member_suffix(sl_value_member(map, r->t->keys[1])) : 0;
    if (!row.text.ptr || sl_value_member(element, SL_LIT("member")).type != SL_N)
        return;
    part.number = row_number(r, sl_hash(row.text), 1);
    add_part(r, key_of(r, map, (struct cut){1, cut}), SL_LIT(SL_TOTALS_MEMBERS), &part);
}

/* What a row counts: its digest is of its key and of what changes with it. */
static void take_terms(struct sl_totals_rows *r, struct sl_value terms, const struct part *part)
{
    struct sl_value element;
    for (struct sl_iter iter = sl_value_iter(terms); sl_value_next(&iter, NULL, &element);) {
        take_sums(r, element, *part);
        take_distinct(r, element, *part);
        take_member(r, element, *part);
    }
}

static uint64_t digest_of(struct sl_totals_rows *r, struct sl_span key, struct sl_span changes)
{
    uint64_t digest = sl_hash(key) * 0x9E3779B97F4A7C15u + sl_hash(changes);
    digest ^= digest >> 29;
    r->digest += digest;
    return digest;
}

/* The value's row: one more of its group's attribute, and as many items as it says. */
static void take_value_row(struct sl_totals_rows *r, struct sl_span key, struct sl_value row)
{
    struct sl_value attribute = sl_value_member(row, SL_LIT("attribute")),
                    count = sl_value_member(row, SL_LIT("n"));
    struct sl_totals_key group = plain_key(r, sl_value_member(row, SL_LIT("group")));
    int64_t n = integer(count, 0);
    if (!group.text.ptr || attribute.type != SL_S || count.type != SL_N)
        return;
    struct sl_span name = plain(r, attribute.raw);
    struct part part = {.number = n > 0 ? SL_LIT("1") : SL_LIT("0"), .digest = digest_of(r, key, count.raw)};
    add_term(r, group, name, &part);
    part.subtract = true;
    part.number = row_number(r, value_hash(r, group, name, sl_value_member(row, SL_LIT("value"))), n);
    add_part(r, group, values_name(r, name), &part);
}

/* A row of the ledger's table. */
static void ledger_row(struct sl_totals_rows *r, const struct sl_totals_ledger *l, struct sl_value row)
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
static struct sl_totals_key group_of_total(struct sl_totals_rows *r, struct sl_value row, struct sl_span name)
{
    struct sl_value key = sl_value_member(row, r->t->keys[0]);
    size_t cut = r->t->has_shards && !r->is_apart ? shard_suffix(key, key.raw.len) : 0;
    struct sl_totals_key whole = plain_key(r, row);
    struct sl_totals_sum *own = cut ? sl_totals_sums_find(r->sums, whole, name, false) : NULL;
    return cut && !own ? key_of(r, row, (struct cut){0, cut}) : whole;
}

static void take_mark(struct sl_totals_rows *r, struct sl_value row, struct sl_span name,
                      struct sl_value value)
{
    struct sl_span attribute = sl_span_from(name, strlen(SL_TOTALS_MARK));
    if (!sl_totals_is_judged(r->t, attribute))
        return;
    struct sl_totals_sum *sum = sl_totals_sums_find(r->sums, plain_key(r, row), attribute, true);
    struct sl_span json = sl_value_json(value, r->arena);
    if (sum)
        sum->mark = sl_span(sl_arena_copy(r->sums->arena, json), json.len);
}

/* A member's row has no attribute of a counter. False: it is not one. */
static bool take_member_row(struct sl_totals_rows *r, struct sl_value row)
{
    size_t cut = r->t->n_keys == 2 ? member_suffix(sl_value_member(row, r->t->keys[1])) : 0;
    if (cut == 0 || sl_value_member(row, SL_LIT("item")).type != SL_M ||
        sl_value_member(row, SL_LIT("by")).type != SL_N)
        return false;
    uint64_t hash = sl_hash(plain_key(r, row).text);
    struct sl_totals_sum *sum =
        sl_totals_sums_find(r->sums, key_of(r, row, (struct cut){1, cut}), SL_LIT(SL_TOTALS_MEMBERS), true);
    if (sum)
        (void)sl_decimal_add(sum->total, row_number(r, hash, 1), false);
    return true;
}

/* A row of the totals' table. */
static void total_row(struct sl_totals_rows *r, struct sl_value row)
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
        struct sl_totals_sum *sum = sl_totals_sums_find(r->sums, group_of_total(r, row, name), name, true);
        if (sum)
            (void)sl_decimal_add(sum->total, value.raw, false);
    }
}

/* ---- pages, and sums of pages ---- */

void sl_totals_take_page(struct sl_totals_rows *r, size_t table, const struct sl_table_page *page)
{
    for (size_t k = 0; k < page->n; k++) {
        const struct sl_value row = {.type = SL_M, .raw = page->items[k]};
        if (r->scan == SL_TOTALS_TOTAL)
            total_row(r, row);
        for (size_t i = 0; i < r->t->n_ledgers && r->scan != SL_TOTALS_TOTAL; i++)
            if (r->t->ledgers[i].table == table)
                ledger_row(r, &r->t->ledgers[i], row);
    }
}

struct sl_totals_sum *sl_totals_sum_of(struct sl_totals_rows *r, struct sl_span key, struct sl_span name,
                                       bool is_part)
{
    const struct sl_value row = {.type = SL_M, .raw = sl_span(key.ptr + 5, key.len - 6)};
    bool may_be_part = is_part && r->scan == SL_TOTALS_TOTAL && !sl_span_is(name, SL_TOTALS_MEMBERS);
    return sl_totals_sums_find(r->sums, may_be_part ? group_of_total(r, row, name) : plain_key(r, row), name,
                               true);
}
