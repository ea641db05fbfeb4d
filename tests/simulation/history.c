/* Writes what happened to the items: a list of changes, as stream records in shards. */
#include "tests/simulation/sim.h"

#include "base/span.h"
#include "streams/names.h"
#include "tests/support/test.h"

#include <stdio.h>

#define EPOCH_MS 1790000000000

static bool carries(enum sl_view view, enum sl_image image)
{
    return view == SL_VIEW_NEW_AND_OLD_IMAGES ||
           view == (image == SL_NEW_IMAGE ? SL_VIEW_NEW_IMAGE : SL_VIEW_OLD_IMAGE);
}

/* ---- items ---- */

/* Names of rows that the totals keep for themselves. */
static const char *const hostile[] = {"sluice:delta:totals:5", "sluice:source:totals",
                                      "sluice:distinct:totals:G#g0|", "sluice:ledger:totals:item-0"};
#define HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

static void make_items(struct sim *s, size_t roots)
{
    s->n_items = 2 + sim_draw(s, SIM_ITEMS - 1);
    for (size_t i = 0; i < s->n_items; i++) {
        struct sim_item *item = &s->items[i];
        bool is_poison = s->plan.poison_one_in && sim_draw(s, 10) == 0;
        snprintf(item->key, sizeof(item->key), "%s-%zu", is_poison ? "POISON" : "item", i);
        item->has_nul = !is_poison && sim_draw(s, 4) == 0;
        item->lacks_total = s->plan.poison_one_in && sim_draw(s, 10) == 0;
        item->hostile = item->lacks_total && sim_draw(s, 2) ? hostile[sim_draw(s, HOSTILE)] : NULL;
        item->root = (unsigned)sim_draw(s, roots);
    }
}

struct sl_span sim_json(struct sim *s, struct sl_buffer *b)
{
    size_t n = b->len;
    char *text = sl_arena_copy(s->arena, sl_buffer_span(b));
    json_quote(text);
    sl_buffer_clean_up(b);
    return sl_span(text, n);
}

/* The key's members. The number is spelled in many ways; keys and images of one record need not agree. */
static void add_key(struct sim *s, const struct sim_item *item, struct sl_buffer *b)
{
    static const char *const sevens[] = {"7", "7.0", "70e-1", "0.7E1", "+7"};
    sl_buffer_printf(b, "'PK':{'S':'%s%s'},'SK':{'N':'%s'}", item->has_nul ? "\\u0000" : "", item->key,
                     sevens[sim_draw(s, 5)]);
}

static void change_image(struct sim *s, struct sim_item *item)
{
    bool odd = s->plan.poison_one_in && sim_draw(s, s->plan.poison_one_in) == 0;
    struct sl_buffer b;
    item->group = (unsigned)sim_draw(s, SIM_GROUPS);
    item->cents = (int64_t)sim_draw(s, 100000) - 20000;
    item->version++;
    sl_buffer_init(&b, 1 << 16);
    sl_buffer_add_char(&b, '{');
    add_key(s, item, &b);
    sl_buffer_printf(&b, ",'group':{'S':'%s'},'version':{'N':'%u'}", sim_groups[item->group], item->version);
    if (item->has_nul)
        sl_buffer_add_str(&b, ",'n\\u0000':{'M':{'\\u0000n':{'S':'\\u0000'}}}");
    if (item->hostile)
        sl_buffer_printf(&b, ",'h':{'S':'%s'}", item->hostile);
    if (!item->lacks_total || item->hostile) {
        long long cents = item->cents < 0 ? -item->cents : item->cents;
        sl_buffer_printf(&b, ",'total':{'N':'%s%lld.%02lld'}", item->cents < 0 ? "-" : "", cents / 100,
                         cents % 100);
    }
    if (odd)
        sl_buffer_add_str(&b, sim_draw(s, 2) ? ",'pa':{'BOOL':true}" : ",'pr':{'BOOL':true}");
    sl_buffer_add_char(&b, '}');
    item->image = sim_json(s, &b);
}

/* ---- changes ---- */

static void write_text(struct sim *s, struct sim_change *c, struct sl_span before, struct sl_span after)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 16);
    sl_buffer_printf(&b,
                     "{'eventID':'e-%s','eventName':'%s','eventVersion':'1.1','eventSource':'aws:dynamodb',"
                     "'awsRegion':'us-east-1','dynamodb':{'ApproximateCreationDateTime':%lld,'Keys':{",
                     c->id, sl_event_name(c->event), (long long)(c->created_ms / 1000));
    add_key(s, &s->items[c->item], &b);
    sl_buffer_add_char(&b, '}');
    if (after.ptr && carries(s->view, SL_NEW_IMAGE))
        sl_buffer_printf(&b, ",'NewImage':%.*s", SL_ARG(after));
    if (before.ptr && carries(s->view, SL_OLD_IMAGE))
        sl_buffer_printf(&b, ",'OldImage':%.*s", SL_ARG(before));
    sl_buffer_printf(
        &b,
        ",'SequenceNumber':'%s','SizeBytes':64,'StreamViewType':'%s'},%s"
        "'eventSourceARN':'arn:aws:dynamodb:us-east-1:1:table/orders/stream/%s-01-01T00:00:00.000'}",
        c->id, sl_view_name(s->view),
        c->is_expiry ? "'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}," : "",
        s->n_changes > s->enabled_again ? "2027" : "2026");
    c->text = sim_json(s, &b);
}

static bool holds(struct sl_span text, const char *part)
{
    return text.ptr && memmem(text.ptr, text.len, part, strlen(part));
}

/* The routes whose sink will always refuse the change. */
static unsigned poison_of(struct sim *s, const struct sim_change *c, struct sl_span after)
{
    const struct sim_item *item = &s->items[c->item];
    unsigned poison = 0;
    if (s->plan.poison_one_in && sim_draw(s, s->plan.poison_one_in) == 0)
        poison |= 1u << SIM_PROBE;
    if (holds(c->text, "\"pa\":"))
        poison |= 1u << SIM_ARCHIVE;
    if (holds(after, "\"pr\":"))
        poison |= 1u << SIM_REPLICA;
    if (item->lacks_total)
        poison |= 1u << SIM_TOTALS;
    if (item->key[0] == 'P')
        poison |= 1u << SIM_NOTIFY | 1u << SIM_ECHO;
    return poison;
}

static void make_change(struct sim *s, size_t number, const char *prefix, int64_t now_ms)
{
    struct sim_change *c = &s->changes[s->n_changes++];
    unsigned which = (unsigned)sim_draw(s, s->n_items);
    struct sim_item *item = &s->items[which];
    struct sl_span before = item->exists ? item->image : (struct sl_span){0}, after = {0};
    *c = (struct sim_change){
        .item = which, .created_ms = now_ms, .event = item->exists ? SL_MODIFY : SL_INSERT};
    c->available_ms = now_ms + 1000;
    snprintf(c->id, sizeof(c->id), "%s%0*zu", prefix, prefix[0] ? 6 : 1, number);
    if (item->exists && sim_draw(s, 10) < 3) {
        c->event = SL_REMOVE;
        c->is_expiry = sim_draw(s, 2);
        item->exists = false;
    } else {
        change_image(s, item);
        item->exists = true;
        after = item->image;
    }
    c->image = after;
    c->group = item->group;
    c->cents = item->cents;
    write_text(s, c, before, after);
    c->poison = poison_of(s, c, after);
}

/* ---- shards ---- */

/* A root may be closed at some change. Later changes go to one of its two children, item by item. */
static void place(struct sim *s, const size_t *closed_at)
{
    static const char *const names[] = {"shardId-0",  "shardId-1",  "shardId-2",  "shardId-0a", "shardId-0b",
                                        "shardId-1a", "shardId-1b", "shardId-2a", "shardId-2b"};
    for (size_t i = 0; i < SIM_SHARDS; i++) {
        bool is_root = i < 3;
        s->shards[i] = (struct sl_esm_shard){.id = names[i], .parent = is_root ? -1 : (int)(i - 3) / 2};
        s->records[i] = sl_arena_zalloc(s->arena, s->n_changes * sizeof(struct sl_esm_record));
    }
    for (size_t i = 0; i < s->n_changes; i++) {
        struct sim_change *c = &s->changes[i];
        unsigned root = s->items[c->item].root;
        c->shard = i < closed_at[root] ? root : 3 + 2 * root + c->item % 2;
        struct sl_esm_shard *shard = &s->shards[c->shard];
        s->records[c->shard][shard->n++] =
            (struct sl_esm_record){.text = c->text,
                                   .id = sl_span_str(c->id),
                                   .item_key = sl_span_str(s->items[c->item].key),
                                   .created_ms = c->created_ms,
                                   .available_ms = c->available_ms,
                                   .tag = c};
        shard->records = s->records[c->shard];
    }
    s->n_shards = SIM_SHARDS;
}

void sim_write_history(struct sim *s)
{
    /* Sequence numbers have 1 to 40 digits, and not all of them have the same number of digits. */
    static const char *const prefixes[] = {"", "100000000000000", "9999999999999999999999999999999999"};
    const char *prefix = prefixes[sim_draw(s, 3)];
    size_t roots = 1 + sim_draw(s, 3), n = 4 + sim_draw(s, s->plan.broken >= 0 ? 20 : 56), closed_at[3];
    int64_t now_ms = EPOCH_MS;
    s->enabled_again = sim_draw(s, 60);
    make_items(s, roots);
    for (size_t i = 0; i < n; i++) {
        make_change(s, 90 + i, prefix, now_ms);
        now_ms += (int64_t)sim_draw(s, 4) ? (int64_t)sim_draw(s, 300) : (int64_t)sim_draw(s, 20000);
    }
    for (size_t i = 0; i < 3; i++)
        closed_at[i] = sim_draw(s, 2) ? n : sim_draw(s, n + 1);
    place(s, closed_at);
}

struct sim_change *sim_change_of(struct sim *s, struct sl_span id)
{
    for (size_t i = 0; i < s->n_changes; i++)
        if (sl_span_is(id, s->changes[i].id))
            return &s->changes[i];
    return NULL;
}
