/* One counter, and one image of one record: the counter row that it belongs to, and the amounts. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

/* A longer source is not looked up. */
#define SOURCE_BYTES 256

struct aggregate_look aggregate_look_at(struct aggregate_tally *t, const struct sl_record *r,
                                        enum sl_image image)
{
    const struct aggregate *a = t->a;
    return (struct aggregate_look){
        t, {.host = a->host, .arena = t->arena, .record = r, .image = image, .missing = a->missing}};
}

bool aggregate_matches(const struct aggregate_look *look, const struct aggregate_counter *c)
{
    const struct sl_render *in = &look->in;
    if (!c->when && !c->where)
        return true;
    struct sl_value v =
        in->host->record_image(in->record, in->image == SL_OLD_IMAGE ? SL_OLD_IMAGE : SL_NEW_IMAGE);
    if (v.type == SL_NONE && in->image == SL_ANY_IMAGE)
        v = in->host->record_image(in->record, SL_OLD_IMAGE);
    return v.type != SL_NONE && (!c->when || in->host->pattern_match(c->when, v.raw, in->arena)) &&
           (!c->where || in->host->where_match(c->where, v, in->arena));
}

/* ---- the row ---- */

/* The row's key as JSON. The names are in their order as text, so that equal keys are equal texts. */
static enum sl_status key_json(const struct aggregate_look *look, const struct aggregate_counter *c,
                               struct sl_span *out, struct sl_error *error)
{
    const struct aggregate *a = look->t->a;
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    for (size_t i = 0; i < a->n_key_names; i++) {
        enum sl_status status = sl_render_key(&look->in, &c->keys[i], &values[i], error);
        if (status != SL_OK)
            return status;
    }
    *out = sl_text_key(a->host, look->t->arena, a->key_names, values, a->n_key_names);
    return SL_OK;
}

/* What a key is made of, as the record has it. By its source a row that was met before is found, and its key
 * need not be written again. */
struct source {
    char bytes[SOURCE_BYTES];
    size_t len;
    bool is_cut; /* it does not fit */
};

/* The length goes before the text: a text may hold any byte, so no byte can end it. */
static void source_add(struct source *s, char type, struct sl_span text)
{
    s->is_cut = s->is_cut || text.len + 3 > sizeof(s->bytes) - s->len;
    if (s->is_cut)
        return;
    s->bytes[s->len++] = type;
    s->bytes[s->len++] = (char)(text.len & 0xFF);
    s->bytes[s->len++] = (char)(text.len >> 8);
    sl_text_put(s->bytes + s->len, text);
    s->len += text.len;
}

static enum sl_status source_make(const struct aggregate_look *look, const struct aggregate_counter *c,
                                  struct source *s, struct sl_error *error)
{
    s->len = 0;
    s->is_cut = false;
    for (size_t i = 0; i < look->t->a->n_key_names && !s->is_cut; i++) {
        struct sl_value value = sl_render_value(&look->in, &c->keys[i]);
        bool is_typed = sl_render_is_key(value);
        enum sl_status status =
            is_typed ? SL_OK : sl_render_text(&look->in, c->keys[i].compiled, &value.raw, error);
        if (status != SL_OK)
            return status;
        source_add(s, (char)('0' + (is_typed ? (int)value.type : 0)), value.raw);
    }
    return SL_OK;
}

/* May it be the key of a row of ours: of the ledger, of a value, of delta? In those every key attribute is
 * "sluice:...". An item must not name one, or it would change what was counted for others. */
static bool is_own_key(const struct aggregate_tally *t, struct sl_span key)
{
    const struct sl_host *host = t->a->host;
    struct sl_value of = {.type = SL_M, .raw = key};
    for (size_t i = 0; i < t->a->n_key_names; i++) {
        struct sl_value value = host->value_member(of, t->a->key_names[i]);
        struct sl_span text = value.type == SL_S ? host->value_text(value, t->arena) : SL_LIT("");
        if (text.len < sizeof("sluice:") - 1 || memcmp(text.ptr, "sluice:", sizeof("sluice:") - 1) != 0)
            return false;
    }
    return true;
}

enum sl_status aggregate_counter_find(const struct aggregate_look *look, const struct aggregate_counter *c,
                                      uint32_t *out, struct sl_error *error)
{
    struct aggregate_tally *t = look->t;
    struct source source;
    struct sl_span key;
    enum sl_status status = source_make(look, c, &source, error);
    if (status != SL_OK)
        return status;
    struct sl_span text = {source.bytes, source.len};
    uint32_t known = source.is_cut ? SL_MAP_NONE : sl_map_find(&t->sources, text);
    if (known != SL_MAP_NONE) {
        *out = t->counter_of[known];
        return SL_OK;
    }
    status = key_json(look, c, &key, error);
    if (status != SL_OK)
        return status;
    if (t->a->has_ledger && is_own_key(t, key))
        return t->a->host->fail(
            error, SL_REJECT, "ReservedKey",
            "the counter's key begins with \"sluice:\", as those of the rows that the route "
            "keeps beside its totals; put something before the place: \"CUSTOMER#{customer}\"");
    *out = aggregate_place_at(t, key);
    if (t->places[*out].kind != AGGREGATE_SUMS)
        return t->a->host->fail(error, SL_REJECT, "ReservedKey",
                                "the counter's row has the key of a row that the route keeps beside it");
    if (!source.is_cut && t->sources.n < AGGREGATE_KNOWN_SOURCES)
        t->counter_of[sl_map_index(&t->sources, t->a->host->join(t->arena, &text, 1))] = *out;
    return SL_OK;
}

/* ---- the amounts ---- */

static enum sl_status not_a_number(const struct aggregate *a, const struct aggregate_amount *amount,
                                   struct sl_error *error)
{
    return a->host->fail(error, SL_REJECT, "NotANumber", "the amount for %.*s is not a DynamoDB number",
                         SL_ARG(amount->name));
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

enum sl_status aggregate_value_of(const struct aggregate_look *look, const struct aggregate_distinct *of,
                                  struct sl_span *out, struct sl_error *error)
{
    enum sl_status status = sl_render_key(&look->in, &of->value, out, error);
    if (status == SL_OK)
        *out = aggregate_value_short(look->t, *out);
    return status;
}

enum sl_status aggregate_amount_of(const struct aggregate_look *look, const struct aggregate_amount *amount,
                                   struct sl_span *out, struct sl_error *error)
{
    const struct aggregate *a = look->t->a;
    *out = amount->constant;
    if (out->ptr)
        return SL_OK;
    struct sl_value value = sl_render_value(&look->in, &amount->value);
    if (value.type == SL_N) {
        *out = value.raw;
        return is_number(look->t, *out) ? SL_OK : not_a_number(a, amount, error);
    }
    if (value.type != SL_NONE)
        return not_a_number(a, amount, error);
    enum sl_status status = sl_render_text(&look->in, amount->value.compiled, out, error);
    if (status == SL_OK && out->len == 0 && a->missing == SL_MISSING_EMPTY)
        *out = SL_LIT("0");
    return status != SL_OK || is_number(look->t, *out) ? status : not_a_number(a, amount, error);
}
