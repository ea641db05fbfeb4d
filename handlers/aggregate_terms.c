/* What an item contributes: terms, from the counters' templates. */
#include "handlers/aggregate.h"

/* More groups than that in one slice are found by their keys. */
#define KNOWN_SOURCES 4096

void aggregate_term_add(struct aggregate_terms *terms, const struct aggregate_term *term)
{
    if (terms->n == terms->room) {
        uint32_t room = terms->room ? 2 * terms->room : 64;
        struct aggregate_term *grown = terms->host->alloc(terms->arena, room * sizeof(*grown));
        if (terms->n > 0)
            memcpy(grown, terms->list, terms->n * sizeof(*grown));
        terms->list = grown;
        terms->room = room;
    }
    terms->list[terms->n++] = *term;
}

void aggregate_tally_init(struct aggregate_tally *t, const struct aggregate *a, struct sl_arena *arena,
                          size_t records)
{
    *t = (struct aggregate_tally){.a = a, .arena = arena, .terms = {.host = a->host, .arena = arena}};
    t->scratch = a->host->decimal_new(arena);
    sl_keymap_init(&t->counters, a->host, arena, records / 8);
    sl_keymap_init(&t->attributes, a->host, arena, 8);
    sl_keymap_init(&t->sources, a->host, arena, 64);
    t->counter_of = a->host->alloc(arena, KNOWN_SOURCES * sizeof(*t->counter_of));
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_amounts; k++)
            a->counters[i].amounts[k].attribute =
                sl_keymap_index(&t->attributes, a->counters[i].amounts[k].name);
    sl_keymap_init(&t->extreme_of, a->host, arena, 8);
    t->terms.room = (uint32_t)(records * 4);
    t->terms.list = a->host->alloc(arena, t->terms.room * sizeof(*t->terms.list));
}

/* ---- one counter ---- */

/* The row's key as JSON; the names stand in their order, so that equal keys are equal texts. */
static enum sl_status key_json(struct aggregate_tally *t, const struct aggregate_counter *c,
                               const struct sl_record *r, enum sl_image image, struct sl_span *out,
                               struct sl_error *error)
{
    const struct aggregate *a = t->a;
    struct sl_span parts[9];
    size_t n = 0;
    for (size_t i = 0; i < a->n_key_names; i++) {
        parts[n++] = i ? SL_TEXT(",\"") : SL_TEXT("{\"");
        parts[n++] = a->key_names[i];
        parts[n++] = SL_TEXT("\":");
        enum sl_status status =
            sl_text_key_value(a->host, &c->keys[i], r, image, a->missing, t->arena, &parts[n++], error);
        if (status != SL_OK)
            return status;
    }
    parts[n++] = SL_TEXT("}");
    *out = a->host->join(t->arena, parts, n);
    return SL_OK;
}

/* What a key is made of, as it stands in the record: with it a row that was met before is found without
 * writing its key. False when that does not fit. */
static bool key_source(struct aggregate_tally *t, const struct aggregate_counter *c,
                       const struct sl_record *r, enum sl_image image, char *out, size_t room, size_t *len,
                       enum sl_status *status, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    char *at = out, *end = out + room;
    for (size_t i = 0; i < a->n_key_names; i++) {
        struct sl_value value = sl_text_place_value(a->host, &c->keys[i], r, image);
        bool is_typed = value.type == SL_S || value.type == SL_N || value.type == SL_B;
        if (!is_typed) {
            *status = sl_text_render(a->host, &c->keys[i], r, image, a->missing, t->arena, &value.raw, error);
            if (*status != SL_OK)
                return false;
        }
        if (value.raw.len + 2 > (size_t)(end - at))
            return false;
        *at++ = (char)('0' + (is_typed ? (int)value.type : 0));
        at = sl_text_put(at, value.raw);
        *at++ = '\n';
    }
    *len = (size_t)(at - out);
    return true;
}

static enum sl_status counter_find(struct aggregate_tally *t, const struct aggregate_counter *c,
                                   const struct sl_record *r, enum sl_image image, uint32_t *out,
                                   struct sl_error *error)
{
    char source[256];
    struct sl_span text = {source, 0}, key;
    enum sl_status status = SL_OK;
    bool fits = key_source(t, c, r, image, source, sizeof(source), &text.len, &status, error);
    if (status != SL_OK)
        return status;
    uint32_t known = fits ? sl_keymap_find(&t->sources, text) : SL_KEYMAP_NONE;
    if (known != SL_KEYMAP_NONE) {
        *out = t->counter_of[known];
        return SL_OK;
    }
    status = key_json(t, c, r, image, &key, error);
    if (status != SL_OK)
        return status;
    *out = sl_keymap_index(&t->counters, key);
    if (fits && t->sources.n < KNOWN_SOURCES)
        t->counter_of[sl_keymap_index(&t->sources, t->a->host->join(t->arena, &text, 1))] = *out;
    return SL_OK;
}

static enum sl_status not_a_number(const struct aggregate *a, const struct aggregate_amount *amount,
                                   struct sl_error *error)
{
    return a->host->fail(error, SL_REJECT, "NotANumber", "the amount for %.*s is no number of DynamoDB's",
                         SL_TEXT_ARG(amount->name));
}

/* Digits with at most one point among them, and no more than any number has. */
static bool is_plain_number(struct sl_span text)
{
    size_t sign = text.len > 0 && text.ptr[0] == '-', digits = 0, points = 0;
    for (size_t i = sign; i < text.len && points < 2; i++) {
        digits += text.ptr[i] >= '0' && text.ptr[i] <= '9';
        points += text.ptr[i] == '.';
    }
    return digits > 0 && digits <= 30 && points < 2 && sign + digits + points == text.len;
}

static bool is_number(struct aggregate_tally *t, struct sl_span text)
{
    return is_plain_number(text) || t->a->host->decimal_add(t->scratch, text, false);
}

static enum sl_status amount_number(struct aggregate_tally *t, const struct aggregate_amount *amount,
                                    const struct sl_record *r, enum sl_image image, struct sl_span *out,
                                    struct sl_error *error)
{
    const struct aggregate *a = t->a;
    *out = amount->constant;
    if (out->ptr)
        return SL_OK;
    struct sl_value value = sl_text_place_value(a->host, &amount->value, r, image);
    if (value.type == SL_N) {
        *out = value.raw;
        return is_number(t, *out) ? SL_OK : not_a_number(a, amount, error);
    }
    if (value.type != SL_NONE)
        return not_a_number(a, amount, error);
    enum sl_status status =
        sl_text_render(a->host, &amount->value, r, image, a->missing, t->arena, out, error);
    if (status == SL_OK && out->len == 0 && a->missing == SL_MISSING_EMPTY)
        *out = SL_TEXT("0");
    return status != SL_OK || is_number(t, *out) ? status : not_a_number(a, amount, error);
}

static bool matches(struct aggregate_tally *t, const struct aggregate_counter *c, const struct sl_record *r,
                    enum sl_image image)
{
    const struct sl_host *host = t->a->host;
    if (!c->when)
        return true;
    struct sl_value v = host->record_image(r, image == SL_OLD_IMAGE ? SL_OLD_IMAGE : SL_NEW_IMAGE);
    if (v.type == SL_NONE && image == SL_ANY_IMAGE)
        v = host->record_image(r, SL_OLD_IMAGE);
    return v.type != SL_NONE && host->pattern_match(c->when, v.raw, t->arena);
}

static enum sl_status counter_terms(struct aggregate_tally *t, const struct aggregate_counter *c,
                                    const struct sl_record *r, enum sl_image image, struct sl_error *error)
{
    uint32_t counter = 0;
    enum sl_status status = counter_find(t, c, r, image, &counter, error);
    bool begins = true;
    for (size_t i = 0; i < c->n_amounts && status == SL_OK; i++) {
        struct aggregate_term term = {.counter = counter, .begins = begins};
        bool is_sum = c->amounts[i].verb == SL_ADD;
        if (!is_sum && image == SL_OLD_IMAGE)
            continue;
        term.attribute = c->amounts[i].attribute;
        status = amount_number(t, &c->amounts[i], r, image, &term.number, error);
        if (status != SL_OK || !is_sum)
            continue;
        aggregate_term_add(&t->terms, &term);
        begins = false;
    }
    return status;
}

/* With "missing": "skip" an item that lacks what a counter names does not contribute to that counter. */
static bool is_skipped(const struct aggregate *a, enum sl_status status, const struct sl_error *error)
{
    return status == SL_REJECT && a->missing == SL_MISSING_SKIP &&
           strcmp(error->code, "MissingAttribute") == 0;
}

enum sl_status aggregate_contribution(struct aggregate_tally *t, const struct sl_record *r,
                                      enum sl_image image, struct aggregate_part *out, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    out->first = t->terms.n;
    for (size_t i = 0; i < a->n_counters; i++) {
        uint32_t before = t->terms.n;
        struct sl_error why = {.offset = SIZE_MAX};
        if (!matches(t, &a->counters[i], r, image))
            continue;
        enum sl_status status = counter_terms(t, &a->counters[i], r, image, &why);
        if (status == SL_OK)
            continue;
        t->terms.n = before;
        if (is_skipped(a, status, &why))
            continue;
        t->terms.n = out->first;
        out->n = 0;
        return a->host->fail(error, status, why.code, "counters[%zu]: %s", i, why.text);
    }
    out->n = t->terms.n - out->first;
    return SL_OK;
}

/* ---- running values ---- */

static void extremes_grow(struct aggregate_tally *t)
{
    uint32_t room = t->room_extremes ? 2 * t->room_extremes : 16;
    struct aggregate_extreme *grown = t->a->host->alloc(t->arena, room * sizeof(*grown));
    if (t->room_extremes > 0)
        memcpy(grown, t->extremes, t->room_extremes * sizeof(*grown));
    t->extremes = grown;
    t->room_extremes = room;
}

static void feed_add(struct aggregate_tally *t, size_t record, uint32_t extreme)
{
    if (t->n_feeds == t->room_feeds) {
        uint32_t room = t->room_feeds ? 2 * t->room_feeds : 64;
        struct aggregate_feed *grown = t->a->host->alloc(t->arena, room * sizeof(*grown));
        if (t->n_feeds > 0)
            memcpy(grown, t->feeds, t->n_feeds * sizeof(*grown));
        t->feeds = grown;
        t->room_feeds = room;
    }
    t->feeds[t->n_feeds++] = (struct aggregate_feed){(uint32_t)record, extreme};
}

static void extreme_take(struct aggregate_tally *t, size_t record, uint32_t counter,
                         const struct aggregate_amount *amount, struct sl_span number)
{
    const struct sl_host *host = t->a->host;
    struct sl_span parts[] = {t->counters.entries[counter].text,
                              amount->verb == SL_SET_MAX ? SL_TEXT(">") : SL_TEXT("<"), amount->name};
    uint32_t known = t->extreme_of.n;
    uint32_t x = sl_keymap_index(&t->extreme_of, host->join(t->arena, parts, 3));
    if (x == t->room_extremes)
        extremes_grow(t);
    if (x == known)
        t->extremes[x] = (struct aggregate_extreme){.counter = counter, .of = amount, .number = number};
    int order = host->number_compare(number, t->extremes[x].number);
    if (amount->verb == SL_SET_MAX ? order > 0 : order < 0)
        t->extremes[x].number = number;
    feed_add(t, record, x);
}

static enum sl_status counter_extremes(struct aggregate_tally *t, const struct aggregate_counter *c,
                                       const struct sl_record *r, size_t record, enum sl_image image,
                                       struct sl_error *error)
{
    struct sl_span number;
    uint32_t counter;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < c->n_amounts && status == SL_OK; i++) {
        if (c->amounts[i].verb == SL_ADD)
            continue;
        status = counter_find(t, c, r, image, &counter, error);
        if (status == SL_OK)
            status = amount_number(t, &c->amounts[i], r, image, &number, error);
        if (status == SL_OK)
            extreme_take(t, record, counter, &c->amounts[i], number);
    }
    return status;
}

enum sl_status aggregate_extremes(struct aggregate_tally *t, const struct sl_record *r, size_t i,
                                  enum sl_image image, struct sl_error *error)
{
    for (size_t c = 0; c < t->a->n_counters; c++) {
        struct sl_error why = {.offset = SIZE_MAX};
        if (!matches(t, &t->a->counters[c], r, image))
            continue;
        enum sl_status status = counter_extremes(t, &t->a->counters[c], r, i, image, &why);
        if (status != SL_OK && !is_skipped(t->a, status, &why))
            return t->a->host->fail(error, status, why.code, "counters[%zu]: %s", c, why.text);
    }
    return SL_OK;
}

/* ---- differences ---- */

static bool same_term(const struct aggregate_term *x, const struct aggregate_term *y)
{
    return x->counter == y->counter && x->attribute == y->attribute && sl_text_eq(x->number, y->number);
}

/* How often the term stands in the part. */
static size_t count_same(const struct aggregate_tally *t, struct aggregate_part part,
                         const struct aggregate_term *term)
{
    size_t n = 0;
    for (uint32_t i = 0; i < part.n; i++)
        n += same_term(&t->terms.list[part.first + i], term);
    return n;
}

/* Adds the terms of `part` that `other` does not have as often. */
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
