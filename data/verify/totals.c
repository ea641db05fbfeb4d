/* The check of totals: scans in rounds, and what they prove. */
#include "data/verify/totals.h"

#include "base/array.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/source/segment.h"
#include "handlers/pipeline/route.h"
#include "streams/value.h"

#include <inttypes.h>
#include <stdlib.h>

#define SEGMENTS   4 /* scanned together */
#define PAGE_MS    60000
#define LINE_BYTES ((size_t)64 * 1024)

/* More than 2^20 passes of 50,000 groups are no totals. */
#define PASSES_MAX ((uint64_t)1 << 20)

#define TOTALS_LEDGERS 100 /* SL_CONFIG_ROUTES_MAX */

/* The ledger of one route. */
struct totals_ledger {
    const char *route;
    struct sl_span prefix; /* of its rows' keys: "sluice:ledger:NAME:" */
    struct sl_span deltas; /* likewise of rows that are to be folded into the totals: "sluice:delta:NAME:" */
    struct sl_span values; /* and of rows of values that are counted once: "sluice:distinct:NAME:" */
    struct sl_span table;  /* absent: the totals' own */
    struct sl_span key;    /* the partition key's name */
};

/* Attributes of totals, each once. */
struct totals_names {
    struct sl_span *list;
    size_t n, room;
};

/* Totals that several routes may share. */
struct totals {
    const char *url;
    struct sl_table_port *port;
    bool is_chosen;
    struct sl_span keys[2]; /* of their rows, in the order of the first route's configuration */
    size_t n_keys;
    bool has_shards;
    struct totals_ledger ledgers[TOTALS_LEDGERS];
    size_t n_ledgers;
    struct totals_names counted; /* attributes that have a ledger */
    /* Attributes that a route without a ledger adds to, or one that keeps what expired. */
    struct totals_names spoiled;
};

enum totals_scan { TOTALS_FIRST, TOTALS_TOTAL, TOTALS_SECOND };

struct groups;

/* What rows are added up into, and where; of one page. */
struct totals_rows {
    const struct totals *t;
    struct groups *groups;
    struct sl_arena *arena;
    struct sl_buffer *key;
    enum totals_scan scan;
    uint64_t digest; /* of the rows of the ledgers, added up */
};

/* Beside the attributes of a row: whether the rows of values of an attribute, and of the members of a group,
 * are those that the ledgers name. A row counts as a number that is made of its key; so D is 0 when they are,
 * and not 0 when they are not, but for one in two thousand million. */
#define TOTALS_VALUES  "sluice_values:"
#define TOTALS_MEMBERS "sluice_members"

/* One attribute of one row of the totals. */
struct group_sum {
    struct sl_span key;                        /* canonical text of the row's key */
    struct sl_span name;                       /* of the attribute */
    struct sl_decimal *total, *first, *second; /* of the totals; of the ledgers, in both scans */
    struct sl_span mark;                       /* SL_TOTALS_MARK's value, JSON; absent: there is none */
    uint64_t rows_first, rows_second;          /* digests of the ledgers' rows that count into it, added up */
    unsigned n_same;          /* rounds in a row in which its rows stood still, with the same D */
    struct sl_decimal *still; /* that D */
    bool is_settled;
    bool has_interval; /* D was seen between these */
    struct sl_decimal *low, *high;
};

struct groups {
    struct sl_arena *arena;
    struct group_sum *list;
    size_t n, room;
    uint32_t *slots;
    size_t n_slots;
    uint64_t part, of; /* the pass: groups whose hash % of == part */
    bool is_full;      /* there are more than SL_TOTALS_GROUPS */
};

/* ---- sums by group, in a table that is hashed by row and attribute ---- */

#define ARENA_BYTES ((size_t)256 * 1024)
#define SLOTS       ((size_t)4 * SL_TOTALS_GROUPS)

static void groups_init(struct groups *g, uint64_t part, uint64_t of)
{
    *g = (struct groups){.arena = sl_arena_new(ARENA_BYTES), .part = part, .of = of, .n_slots = SLOTS};
    g->slots = calloc(g->n_slots, sizeof(*g->slots));
    g->list = calloc(SL_TOTALS_GROUPS, sizeof(*g->list));
    /* The first pass leaves room, as the others may have a few more. */
    g->room = part == 0 ? (size_t)SL_TOTALS_GROUPS * 3 / 4 : SL_TOTALS_GROUPS;
    if (!g->slots || !g->list)
        sl_die("out of memory: sums by group");
}

static void groups_clean_up(struct groups *g)
{
    sl_arena_destroy(g->arena);
    free(g->slots);
    free(g->list);
    *g = (struct groups){.n = 0};
}

static struct group_sum *add(struct groups *g, struct sl_span key, struct sl_span name)
{
    struct group_sum *sum = &g->list[g->n++];
    *sum = (struct group_sum){.key = sl_span(sl_arena_copy(g->arena, key), key.len),
                              .name = sl_span(sl_arena_copy(g->arena, name), name.len),
                              .total = sl_decimal_new(g->arena),
                              .first = sl_decimal_new(g->arena),
                              .second = sl_decimal_new(g->arena)};
    return sum;
}

/* The group; NULL: it is of another pass, or, if `makes` is false, not there. */
static struct group_sum *groups_find(struct groups *g, struct sl_span key, struct sl_span name, bool makes)
{
    uint64_t hash = sl_hash(key);
    if (hash % g->of != g->part)
        return NULL;
    hash = hash * 31 + sl_hash(name);
    size_t slot = (hash ^ hash >> 32) % g->n_slots;
    for (; g->slots[slot]; slot = (slot + 1) % g->n_slots) {
        struct group_sum *sum = &g->list[g->slots[slot] - 1];
        if (sl_span_eq(sum->key, key) && sl_span_eq(sum->name, name))
            return sum;
    }
    if (!makes)
        return NULL;
    if (g->n == g->room) {
        g->is_full = true;
        return NULL;
    }
    g->slots[slot] = (uint32_t)g->n + 1;
    return add(g, key, name);
}

/* ---- which routes share totals, and where their ledgers are ---- */

static void add_names(struct totals_names *names, const struct sl_span *more, size_t n,
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

static void add_ledger(struct totals *t, const struct sl_route *route, const struct sl_totals_facts *facts,
                       struct sl_arena *arena)
{
    struct totals_ledger *l = &t->ledgers[t->n_ledgers];
    *l = (struct totals_ledger){.route = route->config->name, .table = facts->ledger_table};
    l->prefix = sl_span_str(sl_arena_printf(arena, "sluice:ledger:%.*s:", SL_ARG(facts->ledger)));
    l->deltas = sl_span_str(sl_arena_printf(arena, "sluice:delta:%.*s:", SL_ARG(facts->ledger)));
    l->values = sl_span_str(sl_arena_printf(arena, "sluice:distinct:%.*s:", SL_ARG(facts->ledger)));
    l->key = facts->ledger_table.ptr ? facts->ledger_keys[0] : t->keys[0];
    t->n_ledgers += t->n_ledgers + 1 < TOTALS_LEDGERS;
}

static struct totals *totals_of(struct totals *list, size_t *n, const struct sl_route *route)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to");
    for (size_t i = 0; i < *n; i++)
        if (sl_span_is(to->text, list[i].url))
            return &list[i];
    list[*n].url = to->text.ptr; /* followed by a NUL */
    list[*n].port = to->table;
    return &list[(*n)++];
}

static void add_route(struct totals *t, const struct sl_route *route, bool is_chosen, struct sl_arena *arena)
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

/* Finds the totals of the pipeline. Everything is in `arena`. Returns how many there are. */
static size_t totals_find(const struct sl_totals_options *o, struct sl_arena *arena, struct totals **out)
{
    const struct sl_pipeline *p = o->pipeline;
    size_t n = 0;
    *out = sl_arena_zalloc(arena, (p->n + 1) * sizeof(**out));
    for (size_t i = 0; i < p->n; i++)
        if (sl_route_makes(&p->routes[i]) == SL_MAKES_TOTALS)
            add_route(totals_of(*out, &n, &p->routes[i]), &p->routes[i], !o->is_chosen || o->is_chosen[i],
                      arena);
    return n;
}

/* Rows of ledgers and of totals, added up by group. What they look like is what docs/AGGREGATE.md promises.
 */

#define KEY_BYTES ((size_t)64 * 1024)

/* ---- names and keys ---- */

static bool is_one_of(struct sl_span name, const struct totals_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        if (sl_span_eq(names->list[i], name))
            return true;
    return false;
}

/* Is the attribute the sum of what the ledgers say, and of nothing else? */
static bool totals_is_judged(const struct totals *t, struct sl_span name)
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
    struct group_sum *sum = groups_find(r->groups, key, name, true);
    if (!sum)
        return;
    bool first = r->scan == TOTALS_FIRST;
    (void)sl_decimal_add(first ? sum->first : sum->second, part->number, part->subtract);
    *(first ? &sum->rows_first : &sum->rows_second) += part->digest;
}

static void add_term(struct totals_rows *r, struct sl_span key, struct sl_span name, const struct part *part)
{
    if (totals_is_judged(r->t, name))
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

/* A row of the ledger's table. */
static void totals_ledger_row(struct totals_rows *r, const struct totals_ledger *l, struct sl_value row)
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
    struct group_sum *own = cut ? groups_find(r->groups, whole, name, false) : NULL;
    return cut && !own ? key_text(r, row, (struct cut){0, cut}) : whole;
}

static void take_mark(struct totals_rows *r, struct sl_value row, struct sl_span name, struct sl_value value)
{
    struct sl_span attribute = sl_span_from(name, strlen(SL_TOTALS_MARK));
    if (!totals_is_judged(r->t, attribute))
        return;
    struct group_sum *sum = groups_find(r->groups, plain_key(r, row), attribute, true);
    struct sl_span json = sl_value_json(value, r->arena);
    if (sum)
        sum->mark = sl_span(sl_arena_copy(r->groups->arena, json), json.len);
}

/* A member's row has no attribute of a counter. False: it is not one. */
static bool take_member_row(struct totals_rows *r, struct sl_value row)
{
    size_t cut = r->t->n_keys == 2 ? member_suffix(sl_value_member(row, r->t->keys[1])) : 0;
    if (cut == 0 || sl_value_member(row, SL_LIT("item")).type != SL_M ||
        sl_value_member(row, SL_LIT("by")).type != SL_N)
        return false;
    uint64_t hash = sl_hash(plain_key(r, row));
    struct group_sum *sum =
        groups_find(r->groups, key_text(r, row, (struct cut){1, cut}), SL_LIT(TOTALS_MEMBERS), true);
    if (sum)
        (void)sl_decimal_add(sum->total, row_number(r, hash, 1), false);
    return true;
}

/* A row of the totals' table. */
static void totals_row(struct totals_rows *r, struct sl_value row)
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
        if (value.type != SL_N || !totals_is_judged(r->t, name))
            continue;
        struct group_sum *sum = groups_find(r->groups, group_of_total(r, row, name), name, true);
        if (sum)
            (void)sl_decimal_add(sum->total, value.raw, false);
    }
}

/* ---- the check ---- */

struct check {
    const struct sl_totals_options *o;
    struct sl_totals_counts *counts;
    struct totals *t;
    struct groups groups;
    struct sl_arena *arena; /* of a page */
    struct sl_buffer line, key;
    struct totals_rows rows;
    uint64_t rows_first, rows_second; /* digests of all rows of the ledgers, added up */
    bool is_stopped;
};

/* ---- scans ---- */

/* Adds up each row of a page. */
static void take_page(struct check *c, const struct sl_table_page *page, const struct totals_ledger *ledger)
{
    for (size_t k = 0; k < page->n; k++) {
        struct sl_value row = {.type = SL_M, .raw = page->items[k]};
        if (ledger)
            totals_ledger_row(&c->rows, ledger, row);
        else
            totals_row(&c->rows, row);
    }
}

/* The next page of each segment that has one. Returns how many had. */
static size_t scan_pages(struct check *c, struct sl_span table, const struct totals_ledger *ledger,
                         struct sl_segment *segments, enum sl_status *status, struct sl_error *error)
{
    struct sl_clock *clock = c->o->sinks->clock;
    struct sl_table_scan scans[SEGMENTS];
    struct sl_table_page pages[SEGMENTS];
    struct sl_segment *of[SEGMENTS];
    size_t n = 0;
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        if (segments[i].is_done)
            continue;
        scans[n] = (struct sl_table_scan){.table = table,
                                          .segment = segments[i].number,
                                          .of = SEGMENTS,
                                          .after = sl_span_str(segments[i].after),
                                          .is_consistent = true};
        of[n++] = &segments[i];
    }
    if (!n)
        return 0;
    sl_arena_reset(c->arena);
    const struct sl_call call = {.arena = c->arena, .deadline_ms = clock->now_ms(clock) + PAGE_MS};
    c->t->port->scan(c->t->port, scans, n, pages, &call);
    for (size_t i = 0; i < n && *status == SL_OK; i++) {
        const struct sl_result *result = &pages[i].result;
        if (result->status != SL_OK) {
            *status = sl_fail(error, result->status == SL_RETRY ? SL_RETRY : SL_FATAL, result->code, "%s",
                              result->text);
            break;
        }
        take_page(c, &pages[i], ledger);
        *status = sl_segment_move(of[i], &pages[i], NULL, error);
    }
    c->is_stopped = c->o->is_stopped(c->o->arg);
    return n;
}

static enum sl_status scan_table(struct check *c, struct sl_span table, const struct totals_ledger *ledger,
                                 struct sl_error *error)
{
    struct sl_segment segments[SEGMENTS] = {{.number = 0}};
    enum sl_status status = SL_OK;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        segments[i].number = i;
    while (status == SL_OK && !c->is_stopped && scan_pages(c, table, ledger, segments, &status, error) > 0) {
    }
    for (uint32_t i = 0; i < SEGMENTS; i++)
        sl_segment_clean_up(&segments[i]);
    return status;
}

static void begin_scan(struct check *c, enum totals_scan scan)
{
    c->rows = (struct totals_rows){
        .t = c->t, .groups = &c->groups, .arena = c->arena, .key = &c->key, .scan = scan};
}

static enum sl_status scan_ledgers(struct check *c, enum totals_scan scan, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    begin_scan(c, scan);
    for (size_t i = 0; i < c->t->n_ledgers && status == SL_OK && !c->is_stopped; i++)
        status = scan_table(c, c->t->ledgers[i].table, &c->t->ledgers[i], error);
    *(scan == TOTALS_FIRST ? &c->rows_first : &c->rows_second) = c->rows.digest;
    return status;
}

static void begin_round(struct check *c)
{
    struct groups *g = &c->groups;
    c->rows_first = c->rows_second = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct group_sum *s = &g->list[i];
        s->total = sl_decimal_new(g->arena);
        s->first = sl_decimal_new(g->arena);
        s->second = sl_decimal_new(g->arena);
        s->rows_first = s->rows_second = 0;
        s->mark = sl_span(NULL, 0);
    }
}

/* ---- what a round proves ---- */

static struct sl_span text_of(struct check *c, const struct sl_decimal *d)
{
    struct sl_span text;
    return sl_decimal_text(d, c->arena, &text) ? text : SL_LIT(SL_TOTALS_BEYOND);
}

/* Rows of values or members, and no attribute. */
static bool is_of_rows(const struct group_sum *s, const char *kind)
{
    return sl_span_starts(s->name, sl_span_str(kind));
}

static struct sl_span kind_of(const struct group_sum *s)
{
    return is_of_rows(s, TOTALS_VALUES)    ? SL_LIT("values")
           : is_of_rows(s, TOTALS_MEMBERS) ? SL_LIT("members")
                                           : SL_LIT("sum");
}

static void begin_line(struct check *c, const struct group_sum *s, const char *result)
{
    struct sl_buffer *b = &c->line;
    sl_buffer_reset(b);
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "result", sl_span_str(result));
    sl_json_add_member(b, "kind", kind_of(s));
    sl_json_add_member(b, "handler", SL_LIT("aggregate"));
    sl_json_add_member(b, "target", sl_span_str(c->t->url));
    sl_json_add_raw(b, "routes", SL_LIT("["));
    for (size_t i = 0; i < c->t->n_ledgers; i++) {
        sl_buffer_add_str(b, i ? "," : "");
        sl_json_add_string(b, sl_span_str(c->t->ledgers[i].route));
    }
    sl_buffer_add_char(b, ']');
    /* {"M":{...}}: the key is within */
    sl_json_add_raw(b, "key", sl_span(s->key.ptr + 5, s->key.len - 6));
    if (is_of_rows(s, TOTALS_VALUES))
        sl_json_add_member(b, "attribute", sl_span_from(s->name, strlen(TOTALS_VALUES)));
    else if (!is_of_rows(s, TOTALS_MEMBERS))
        sl_json_add_member(b, "attribute", s->name);
}

static void end_line(struct check *c)
{
    sl_buffer_add_str(&c->line, "}\n");
    c->o->found(c->o->arg, sl_buffer_span(&c->line));
}

static void settle(struct check *c, struct group_sum *s, const struct sl_decimal *d)
{
    s->is_settled = true;
    if (sl_decimal_is_zero(d)) {
        c->counts->equal++;
        return;
    }
    c->counts->different++;
    begin_line(c, s, "different");
    if (sl_span_is(kind_of(s), "sum")) {
        sl_json_add_member(&c->line, "total", text_of(c, s->total));
        sl_json_add_member(&c->line, "ledger", text_of(c, s->first));
        sl_json_add_member(&c->line, "difference", text_of(c, d));
    }
    if (s->mark.ptr)
        sl_json_add_raw(&c->line, "mark", s->mark);
    end_line(c);
}

static void widen(struct check *c, struct group_sum *s)
{
    struct sl_decimal *ds[] = {sl_decimal_difference(s->total, s->first, c->groups.arena),
                               sl_decimal_difference(s->total, s->second, c->groups.arena)};
    for (size_t i = 0; i < 2; i++) {
        if (!s->has_interval || sl_decimal_compare(ds[i], s->low) < 0)
            s->low = ds[i];
        if (!s->has_interval || sl_decimal_compare(ds[i], s->high) > 0)
            s->high = ds[i];
        s->has_interval = true;
    }
}

/* The group's rows stood still. An item of another group may still have come and gone between the scans, as
 * its row in neither of them shows. If no row of the ledgers changed at all, none has. Else D has to be the
 * same in every round: a D that is wrong does not change, and chance does. */
static void judge_still(struct check *c, struct group_sum *s)
{
    struct sl_decimal *d = sl_decimal_difference(s->total, s->first, c->groups.arena);
    bool is_same = s->n_same > 0 && sl_decimal_compare(d, s->still) == 0;
    s->n_same = is_same ? s->n_same + 1 : 1;
    s->still = d;
    /* Once more in any case: a transaction's rows may become visible one shortly after the other. */
    bool is_sure = s->n_same > 1 && c->rows_first == c->rows_second;
    if (sl_decimal_is_zero(d) || is_sure || s->n_same == SL_TOTALS_ROUNDS)
        settle(c, s, d);
    else
        widen(c, s);
}

/* Returns how many groups are not settled. */
static size_t judge_round(struct check *c)
{
    size_t left = 0;
    for (size_t i = 0; i < c->groups.n; i++) {
        struct group_sum *s = &c->groups.list[i];
        if (s->is_settled)
            continue;
        sl_arena_reset(c->arena);
        if (s->rows_first == s->rows_second && sl_decimal_compare(s->first, s->second) == 0) {
            judge_still(c, s);
        } else {
            s->n_same = 0;
            widen(c, s);
        }
        left += !s->is_settled;
    }
    return left;
}

static void report_restless(struct check *c)
{
    for (size_t i = 0; i < c->groups.n; i++) {
        const struct group_sum *s = &c->groups.list[i];
        if (s->is_settled)
            continue;
        c->counts->unsettled++;
        begin_line(c, s, "unsettled");
        if (sl_span_is(kind_of(s), "sum")) {
            sl_json_add_member(&c->line, "low", text_of(c, s->low));
            sl_json_add_member(&c->line, "high", text_of(c, s->high));
        }
        sl_json_add_member(&c->line, "why",
                           SL_LIT("the ledger changed during every scan; stop the consumer and try again"));
        end_line(c);
    }
}

/* ---- passes ---- */

static enum sl_status round_of(struct check *c, struct sl_error *error)
{
    begin_round(c);
    enum sl_status status = scan_ledgers(c, TOTALS_FIRST, error);
    begin_scan(c, TOTALS_TOTAL);
    if (status == SL_OK && !c->groups.is_full)
        status = scan_table(c, sl_span(NULL, 0), NULL, error);
    if (status == SL_OK && !c->groups.is_full)
        status = scan_ledgers(c, TOTALS_SECOND, error);
    return status;
}

/* One pass. `*is_full`: it was too much, and nothing was judged. */
static enum sl_status pass(struct check *c, uint64_t part, uint64_t of, bool *is_full, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    size_t left = 1;
    groups_init(&c->groups, part, of);
    for (int round = 0; round < SL_TOTALS_ROUNDS && left > 0 && status == SL_OK && !c->is_stopped; round++) {
        status = round_of(c, error);
        if (status != SL_OK || c->groups.is_full || c->is_stopped)
            break;
        left = judge_round(c);
    }
    *is_full = c->groups.is_full;
    if (status == SL_OK && !*is_full && !c->is_stopped)
        report_restless(c);
    groups_clean_up(&c->groups);
    return status;
}

static enum sl_status check_totals(struct check *c, struct sl_error *error)
{
    uint64_t of = 1, part = 0;
    enum sl_status status = SL_OK;
    while (part < of && status == SL_OK && !c->is_stopped) {
        bool is_full = false;
        struct sl_totals_counts before = *c->counts;
        status = pass(c, part, of, &is_full, error);
        if (!is_full) {
            part++;
            continue;
        }
        *c->counts = before;
        if (part > 0 || of >= PASSES_MAX)
            return sl_fail(error, SL_FATAL, "TooManyGroups",
                           "%s: the totals have too many rows, or grew too fast to be verified", c->t->url);
        of *= 2;
    }
    return status;
}

enum sl_status sl_totals_verify(const struct sl_totals_options *o, struct sl_totals_counts *counts,
                                struct sl_error *error)
{
    struct sl_arena *lasting = sl_arena_new(64 * 1024);
    struct totals *list;
    struct check c = {.o = o, .counts = counts, .arena = sl_arena_new((size_t)1024 * 1024)};
    size_t n = totals_find(o, lasting, &list);
    enum sl_status status = SL_OK;
    sl_buffer_init(&c.line, LINE_BYTES);
    sl_buffer_init(&c.key, LINE_BYTES);
    for (size_t i = 0; i < n && status == SL_OK && !c.is_stopped; i++) {
        c.t = &list[i];
        if (!c.t->is_chosen || !c.t->port->scan)
            continue;
        counts->targets++;
        for (size_t k = 0; k < c.t->counted.n; k++)
            counts->not_judged += !totals_is_judged(c.t, c.t->counted.list[k]);
        status = check_totals(&c, error);
    }
    sl_buffer_clean_up(&c.line);
    sl_buffer_clean_up(&c.key);
    sl_arena_destroy(c.arena);
    sl_arena_destroy(lasting);
    return status;
}
