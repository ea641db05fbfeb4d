/* The ledger of the totals before the first change: empty, another table's, or that of an earlier epoch. */
#include "tests/simulation/sim.h"

#include "base/span.h"

#include <stdio.h>

/* As JSON writes them. None is the beginning of another. */
const char *const sim_groups[SIM_GROUPS] = {"g0|\\n0|", "g1|\\u0000|", "g2|\\\"\\\\|"};

static struct sl_span key_of(struct sim *s, const char *text)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 12);
    sl_buffer_add_str(&b, "{\"PK\":{\"S\":\"");
    sl_buffer_add_str(&b, text);
    sl_buffer_add_str(&b, "\"}}");
    return sim_json(s, &b);
}

/* A row with that key, and with these members after it, in which ' stands for ". */
static void add_row(struct sim *s, const char *key, const char *members)
{
    struct sim_row *row = &s->totals.rows[s->totals.n++];
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 12);
    sl_buffer_printf(&b, "{\"PK\":{\"S\":\"%s\"},%s}", key, members);
    *row = (struct sim_row){.table = sl_span("", 0), .key = key_of(s, key), .item = sim_json(s, &b)};
}

/* The first change of an item is above every row of an earlier epoch. */
static bool has_changes(const struct sim *s, size_t item)
{
    for (size_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].item == item)
            return true;
    return false;
}

/* The row of an item, with the highest order there is. */
static void add_older(struct sim *s, size_t i, int64_t counted[SIM_GROUPS][2])
{
    unsigned group = (unsigned)sim_draw(s, SIM_GROUPS);
    int64_t units = (int64_t)sim_draw(s, 1000);
    const char *key = sl_arena_printf(s->arena,
                                      "sluice:ledger:totals:{\\\"M\\\":{\\\"PK\\\":{\\\"S\\\":\\\"%s%s\\\"},"
                                      "\\\"SK\\\":{\\\"N\\\":\\\"7\\\"}}}",
                                      s->items[i].has_nul ? "\\\\u0000" : "", s->items[i].key);
    add_row(s, key,
            sl_arena_printf(s->arena,
                            "'order':{'S':'9999999999999999999999999999999999999999'},'sums':{'L':[{'M':{"
                            "'key':{'M':{'PK':{'S':'G#%s'}}},"
                            "'add':{'M':{'orders':{'N':'1'},'revenue':{'N':'%lld'}}}}}]}",
                            sim_groups[group], (long long)units));
    counted[group][0]++;
    counted[group][1] += units;
    s->group_items[group] += !has_changes(s, i);
    s->group_cents[group] += has_changes(s, i) ? 0 : 100 * units;
}

static void add_totals(struct sim *s, unsigned group, const int64_t counted[2])
{
    add_row(s, sl_arena_printf(s->arena, "G#%s", sim_groups[group]),
            sl_arena_printf(s->arena, "'orders':{'N':'%lld'},'revenue':{'N':'%lld'}", (long long)counted[0],
                            (long long)counted[1]));
}

/* What an earlier process counted of items that do not change any more, and did not fold. */
static void add_deltas(struct sim *s)
{
    for (size_t n = 1 + sim_draw(s, 4); n > 0; n--) {
        unsigned group = (unsigned)sim_draw(s, SIM_GROUPS), slot = (unsigned)(16 * n + sim_draw(s, 16)) % 64;
        int64_t units = (int64_t)sim_draw(s, 1000);
        add_row(s, sl_arena_printf(s->arena, "sluice:delta:totals:%u", slot),
                sl_arena_printf(s->arena,
                                "'sluice_delta':{'S':'%u'},'sluice_sums':{'L':[{'M':{'key':{'M':{'PK':{'S':"
                                "'G#%s'}}},'add':{'M':{'orders':{'N':'1'},'revenue':{'N':'%lld'}}}}}]}",
                                slot, sim_groups[group], (long long)units));
        s->group_items[group]++;
        s->group_cents[group] += 100 * units;
    }
}

void sim_write_ledger(struct sim *s)
{
    int64_t counted[SIM_GROUPS][2] = {{0, 0}};
    if (s->ledger == SIM_LEDGER_FOREIGN)
        add_row(s, "sluice:source:totals",
                "'sluice_source':{'M':{'table':{'S':'others'},'epoch':{'N':'0'},'shards':{'N':'0'}}}");
    if (s->has_delta)
        add_deltas(s);
    if (s->ledger != SIM_LEDGER_OLDER)
        return;
    for (size_t i = 0; i < s->n_items; i++)
        if (!s->items[i].lacks_total && sim_draw(s, 4))
            add_older(s, i, counted);
    for (unsigned group = 0; group < SIM_GROUPS; group++)
        add_totals(s, group, counted[group]);
}

void sim_check_ledger(struct sim *s)
{
    if (s->ledger == SIM_LEDGER_FOREIGN && sim_find_row(&s->totals, "", "", s->totals.rows))
        sim_violation(s, "another table's ledger was written");
}
