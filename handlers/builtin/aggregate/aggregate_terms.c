/* Contributions: the terms that an item adds to the totals, and their differences. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

#include "base/array.h"

void aggregate_term_add(struct aggregate_terms *terms, const struct aggregate_term *term)
{
    SL_PUSH_IN(terms->arena, terms->list, terms->n, terms->room) = *term;
}

void aggregate_tally_init(struct aggregate_tally *t, const struct aggregate *a, struct sl_arena *arena,
                          size_t records)
{
    *t = (struct aggregate_tally){.a = a, .arena = arena, .terms = {.arena = arena}};
    t->scratch = a->host->decimal_new(arena);
    sl_map_init(&t->counters, arena, records / 8);
    sl_map_init(&t->attributes, arena, 8);
    sl_map_init(&t->sources, arena, 64);
    t->counter_of = a->host->alloc(arena, AGGREGATE_KNOWN_SOURCES * sizeof(*t->counter_of));
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_amounts; k++)
            a->counters[i].amounts[k].attribute =
                sl_map_index(&t->attributes, a->counters[i].amounts[k].name);
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_distinct; k++)
            a->counters[i].distinct[k].attribute =
                sl_map_index(&t->attributes, a->counters[i].distinct[k].name);
    t->count = sl_map_index(&t->attributes, SL_LIT(AGGREGATE_VALUE_COUNT));
    sl_map_init(&t->extreme_of, arena, 8);
    t->terms.room = (uint32_t)(records * 4);
    t->terms.list = a->host->alloc(arena, t->terms.room * sizeof(*t->terms.list));
}

struct sl_set aggregate_own_mark(const struct aggregate_tally *t)
{
    struct sl_value name = {.type = SL_S, .raw = t->a->name};
    return (struct sl_set){SL_SET, SL_LIT(AGGREGATE_OWN), t->a->host->value_json(name, t->arena)};
}

/* ---- contributions ---- */

static enum sl_status sum_terms(const struct aggregate_look *look, const struct aggregate_counter *c,
                                uint32_t counter, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    bool begins = true;
    for (size_t i = 0; i < c->n_amounts && status == SL_OK; i++) {
        struct aggregate_term term = {.counter = counter, .begins = begins};
        bool is_sum = c->amounts[i].verb == SL_ADD;
        term.attribute = c->amounts[i].attribute;
        status = aggregate_amount_of(look, &c->amounts[i], &term.number, error);
        if (status != SL_OK || !is_sum)
            continue;
        aggregate_term_add(&look->t->terms, &term);
        begins = false;
    }
    return status;
}

static void count_term(struct aggregate_tally *t, uint32_t place)
{
    struct aggregate_term term = {
        .counter = place, .attribute = t->count, .number = SL_LIT("1"), .begins = true};
    aggregate_term_add(&t->terms, &term);
}

static enum sl_status value_terms(const struct aggregate_look *look, const struct aggregate_counter *c,
                                  uint32_t counter, struct sl_error *error)
{
    struct aggregate_tally *t = look->t;
    for (size_t i = 0; i < c->n_distinct; i++) {
        struct sl_span value;
        enum sl_status status = aggregate_value_of(look, &c->distinct[i], &value, error);
        if (status != SL_OK)
            return status;
        uint32_t place = aggregate_place_value(t, counter, c->distinct[i].attribute, value);
        if (place == AGGREGATE_NONE)
            return t->a->host->fail(error, SL_REJECT, "ReservedKey",
                                    "a counter's row has the key of a row that the route keeps beside it");
        count_term(t, place);
    }
    return SL_OK;
}

/* Two counters may put the item under one group with one number: it has one row there. `first` is the first
 * term of the item. */
static enum sl_status member_term(const struct aggregate_look *look, const struct aggregate_counter *c,
                                  uint32_t counter, uint32_t first, struct sl_error *error)
{
    struct aggregate_tally *t = look->t;
    const struct sl_host *host = t->a->host;
    struct sl_span number, normal;
    uint32_t place;
    enum sl_status status = aggregate_amount_of(look, &c->by, &number, error);
    if (status != SL_OK)
        return status;
    struct sl_decimal *d = host->decimal_new(t->arena);
    if (!host->decimal_add(d, number, false) || !host->decimal_text(d, t->arena, &normal))
        return host->fail(error, SL_REJECT, "NotANumber", "members.by is not a DynamoDB number");
    status = aggregate_place_member(t, look->in.record, counter, normal, &place, error);
    for (uint32_t i = first; i < t->terms.n && status == SL_OK; i++)
        if (t->terms.list[i].counter == place)
            return SL_OK;
    if (status == SL_OK)
        count_term(t, place);
    return status;
}

static enum sl_status counter_terms(const struct aggregate_look *look, const struct aggregate_counter *c,
                                    uint32_t first, struct sl_error *error)
{
    uint32_t counter = 0;
    enum sl_status status = aggregate_counter_find(look, c, &counter, error);
    if (status == SL_OK)
        status = sum_terms(look, c, counter, error);
    if (status == SL_OK)
        status = value_terms(look, c, counter, error);
    if (status == SL_OK && c->has_members)
        status = member_term(look, c, counter, first, error);
    return status;
}

/* With "missing": "skip" an item that lacks what a counter names does not contribute to that counter. */
enum sl_status aggregate_contribution(struct aggregate_tally *t, const struct sl_record *r,
                                      enum sl_image image, struct aggregate_part *out, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    struct aggregate_look look = aggregate_look_at(t, r, image);
    *out = (struct aggregate_part){.first = t->terms.n};
    for (size_t i = 0; i < a->n_counters; i++) {
        uint32_t before = t->terms.n;
        struct sl_error why = SL_NO_ERROR;
        if (!aggregate_matches(&look, &a->counters[i]))
            continue;
        enum sl_status status = counter_terms(&look, &a->counters[i], out->first, &why);
        if (status == SL_OK)
            continue;
        t->terms.n = before;
        if (sl_render_is_skipped(a->missing, &why))
            continue;
        t->terms.n = out->first;
        return a->host->fail(error, status, why.code, "counters[%zu]: %s", i, why.text);
    }
    out->n = t->terms.n - out->first;
    return SL_OK;
}

/* ---- differences ---- */

static bool same_term(const struct aggregate_term *x, const struct aggregate_term *y)
{
    return x->counter == y->counter && x->attribute == y->attribute && sl_span_eq(x->number, y->number);
}

/* How often the part has the term. */
static size_t count_same(const struct aggregate_tally *t, struct aggregate_part part,
                         const struct aggregate_term *term)
{
    size_t n = 0;
    for (uint32_t i = 0; i < part.n; i++)
        n += same_term(&t->terms.list[part.first + i], term);
    return n;
}

/* Adds the terms that `part` has more often than `other`. */
static void add_surplus(const struct aggregate_tally *t, struct aggregate_part part,
                        struct aggregate_part other, bool subtract, struct aggregate_terms *out)
{
    for (uint32_t i = 0; i < part.n; i++) {
        struct aggregate_term term = t->terms.list[part.first + i];
        struct aggregate_part upto = {part.first, i + 1};
        if (count_same(t, upto, &term) <= count_same(t, other, &term))
            continue;
        term.subtract = subtract;
        aggregate_term_add(out, &term);
    }
}

void aggregate_difference(const struct aggregate_tally *t, struct aggregate_part from,
                          struct aggregate_part to, struct aggregate_terms *out)
{
    add_surplus(t, from, to, true, out);
    add_surplus(t, to, from, false, out);
}
