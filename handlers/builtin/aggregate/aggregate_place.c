/* Rows that terms go into: of counters, of values that are counted once, and of members. */
#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_tally_private.h"

#include "base/array.h"

/* A longer value is kept as its digest. */
#define VALUE_BYTES 512
#define DIGEST      "sha256"

/* A sort key has 1,024 bytes at most. */
#define SORT_KEY_BYTES 1024

uint32_t aggregate_place_at(struct aggregate_tally *t, struct sl_span key)
{
    uint32_t known = t->counters.n, i = sl_map_index(&t->counters, key);
    t->places = sl_array_fit_in(t->arena, t->places, i + 1, &t->room_places, sizeof(*t->places));
    if (i == known)
        t->places[i] = (struct aggregate_place){.kind = AGGREGATE_SUMS};
    return i;
}

/* ---- values ---- */

static struct sl_span digest_value(const struct aggregate_tally *t, struct sl_span digest)
{
    struct sl_span parts[] = {SL_LIT("{\"M\":{\"" DIGEST "\":{\"S\":\""), digest, SL_LIT("\"}}}")};
    return t->a->host->join(t->arena, parts, 3);
}

struct sl_span aggregate_value_short(const struct aggregate_tally *t, struct sl_span value)
{
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    if (value.len <= VALUE_BYTES)
        return value;
    sl_text_digest(t->a->host, value, digest);
    return digest_value(t, sl_span_str(digest));
}

struct sl_span aggregate_value_read(const struct aggregate_tally *t, struct sl_value value)
{
    struct sl_value digest = t->a->host->value_member(value, SL_LIT(DIGEST));
    if (sl_render_is_key(value))
        return sl_text_canonical(t->a->host, value, t->arena);
    return digest.type == SL_S ? digest_value(t, digest.raw) : (struct sl_span){NULL, 0};
}

/* The group's key ends where its braces do, and the value begins with the first brace that a quote follows:
 * no two groups, attributes and values make the same text. */
uint32_t aggregate_place_value(struct aggregate_tally *t, uint32_t group, uint32_t attribute,
                               struct sl_span value)
{
    struct sl_span parts[] = {t->counters.entries[group].text, t->attributes.entries[attribute].text, value};
    struct sl_span text = t->a->host->join(t->arena, parts, 3);
    uint32_t known = t->counters.n;
    uint32_t i = aggregate_place_at(t, aggregate_own_key(t->a, "distinct", text, t->arena));
    if (i == known)
        t->places[i] = (struct aggregate_place){
            .kind = AGGREGATE_VALUE, .group = group, .attribute = attribute, .shown = value};
    return t->places[i].kind == AGGREGATE_VALUE ? i : AGGREGATE_NONE;
}

struct sl_span aggregate_value_row(const struct aggregate_tally *t, uint32_t place, struct sl_span count)
{
    const struct aggregate_place *is = &t->places[place];
    struct sl_span parts[] = {sl_text_open_object(t->counters.entries[place].text),
                              SL_LIT(",\"" AGGREGATE_VALUE_GROUP "\":{\"M\":"),
                              t->counters.entries[is->group].text,
                              SL_LIT("},\"" AGGREGATE_VALUE_ATTRIBUTE "\":{\"S\":\""),
                              t->attributes.entries[is->attribute].text,
                              SL_LIT("\"},\"" AGGREGATE_VALUE_VALUE "\":"),
                              is->shown,
                              SL_LIT(",\"" AGGREGATE_VALUE_COUNT "\":{\"N\":\""),
                              count,
                              SL_LIT("\"}"),
                              aggregate_own_member(t->a, t->arena),
                              SL_LIT("}")};
    return t->a->host->join(t->arena, parts, SL_COUNT(parts));
}

/* ---- members ---- */

/* {"S":"-#p130123#DIGEST"}: the group's sort key, the number, and the item's digest. */
static enum sl_status sort_value(const struct aggregate_tally *t, const struct sl_record *r,
                                 struct sl_value group, struct sl_span number, struct sl_span *out,
                                 struct sl_error *error)
{
    const struct aggregate *a = t->a;
    char sorted[AGGREGATE_SORT_BYTES], digest[SL_TEXT_DIGEST_BYTES + 1];
    struct sl_span name = a->key_names[1 - a->shard_key];
    if (group.type != SL_S)
        return a->host->fail(
            error, SL_REJECT, "MemberKey",
            "members: the group's %.*s is not a string, and a number can only be appended to "
            "a string",
            SL_ARG(name));
    struct sl_span text = a->host->value_text(group, t->arena);
    struct sl_span parts[] = {{text.ptr, text.len},
                              SL_LIT("#"),
                              {sorted, aggregate_number_sort(number, sorted)},
                              SL_LIT("#"),
                              {digest, SL_TEXT_DIGEST_BYTES}};
    sl_text_digest(a->host, a->host->record_item_key(r, t->arena), digest);
    struct sl_span whole = a->host->join(t->arena, parts, 5);
    if (whole.len > SORT_KEY_BYTES)
        return a->host->fail(
            error, SL_REJECT, "MemberKey",
            "members: the group's %.*s leaves no room for a number in a sort key of %d bytes", SL_ARG(name),
            SORT_KEY_BYTES);
    *out = sl_text_string_value(a->host, whole, t->arena);
    return SL_OK;
}

static struct sl_span member_row(const struct aggregate_tally *t, const struct sl_record *r,
                                 struct sl_span key, struct sl_span number)
{
    struct sl_value keys = t->a->host->record_image(r, SL_KEYS);
    struct sl_span parts[] = {sl_text_open_object(key),
                              SL_LIT(",\"" AGGREGATE_MEMBER_BY "\":"),
                              number,
                              SL_LIT(",\"" AGGREGATE_MEMBER_ITEM "\":"),
                              t->a->host->value_json(keys, t->arena),
                              aggregate_own_member(t->a, t->arena),
                              SL_LIT("}")};
    return t->a->host->join(t->arena, parts, SL_COUNT(parts));
}

uint32_t aggregate_place_member_key(struct aggregate_tally *t, struct sl_span key, struct sl_span number)
{
    uint32_t known = t->counters.n, i = aggregate_place_at(t, key);
    if (i == known)
        t->places[i] = (struct aggregate_place){.kind = AGGREGATE_MEMBER, .shown = number};
    return i;
}

enum sl_status aggregate_place_member(struct aggregate_tally *t, const struct sl_record *r, uint32_t group,
                                      struct sl_span number, uint32_t *out, struct sl_error *error)
{
    const struct aggregate *a = t->a;
    struct sl_value of = {.type = SL_M, .raw = t->counters.entries[group].text};
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES];
    size_t sort = 1 - a->shard_key;
    values[a->shard_key] =
        a->host->value_json(a->host->value_member(of, a->key_names[a->shard_key]), t->arena);
    enum sl_status status =
        sort_value(t, r, a->host->value_member(of, a->key_names[sort]), number, &values[sort], error);
    if (status != SL_OK)
        return status;
    struct sl_span key = sl_text_key(a->host, t->arena, a->key_names, values, 2);
    struct sl_span shown = a->host->value_json((struct sl_value){.type = SL_N, .raw = number}, t->arena);
    *out = aggregate_place_member_key(t, key, shown);
    struct aggregate_place *place = &t->places[*out];
    if (place->kind != AGGREGATE_MEMBER)
        return a->host->fail(error, SL_REJECT, "MemberKey", "members: a counter's row has the member's key");
    if (!place->item.ptr)
        place->item = member_row(t, r, key, shown);
    return SL_OK;
}
