/* What must be true, from the history alone: the list of changes, and plain sums. */
#include "tests/simulation/sim.h"

#include "base/decimal.h"
#include "base/span.h"
#include "streams/record.h"

#include <stdarg.h>
#include <stdio.h>

void sim_violation(struct sim *s, const char *format, ...)
{
    if (s->violation[0])
        return;
    int n = snprintf(s->violation, sizeof(s->violation), "at %lld ms: ", (long long)s->clock.ms);
    va_list args;
    va_start(args, format);
    vsnprintf(s->violation + n, sizeof(s->violation) - (size_t)n, format, args);
    va_end(args);
}

static bool takes(const struct sim *s, enum sim_route route)
{
    return s->routes & 1u << route;
}

bool sim_gives_up(const struct sim *s)
{
    return s->plan.refuses_view || (s->plan.broken >= 0 && !(s->aside & 1u << s->plan.broken));
}

/* ---- order per item ---- */

static bool has_been_applied(const struct sim_change *c, enum sim_route route)
{
    return route == SIM_PROBE ? c->applied : c->sent[route == SIM_ECHO];
}

/* `change` is applied for the first time. Every earlier change of its item has been applied, or can never be.
 * One that can never be applied, and that cannot be parked, holds the later ones back until it is given up.
 */
void sim_check_applied(struct sim *s, const struct sim_change *change, enum sim_route route)
{
    bool may_pass = s->parks || (route == SIM_PROBE && s->plan.probe_mode == 1);
    for (const struct sim_change *c = s->changes; c < change; c++) {
        if (c->item != change->item || c->is_discarded || has_been_applied(c, route))
            continue;
        if (!(c->poison & 1u << route) || !may_pass)
            sim_violation(s, "route %u: %s was applied before %s of the same item", route, change->id, c->id);
    }
}

/* ---- below a checkpoint, everything is durable ---- */

/* The digits from `at` on, without leading zeros, are not below the change's sequence number. */
static bool is_order_reached(struct sl_span order, size_t at, size_t n, const char *id)
{
    struct sl_span held = sl_span_from(order, at);
    if (held.len < n)
        return false;
    held.len = n;
    while (held.len && held.ptr[0] == '0')
        held = sl_span_from(held, 1);
    size_t wanted = strlen(id);
    return held.len != wanted ? held.len > wanted : memcmp(held.ptr, id, wanted) >= 0;
}

/* The item's row (or its guard's, or its row in the ledger) is as new as the change: then it contains the
 * change, or a later one. */
static bool is_in_table(const struct sim *s, const struct sim_change *c, enum sim_route route)
{
    char part[64];
    bool is_inline = route == SIM_REPLICA && !s->guards_aside;
    snprintf(part, sizeof(part), is_inline ? "%s\"" : "%s", s->items[c->item].key);
    const struct sim_row *row = route == SIM_REPLICA
                                    ? sim_find_row(&s->replica, s->guards_aside ? "guards" : "", part, NULL)
                                    : sim_find_row(&s->totals, "", part, NULL);
    while (route == SIM_TOTALS && row && !memmem(row->key.ptr, row->key.len, "sluice:ledger:", 14))
        row = sim_find_row(&s->totals, "", part, row);
    if (!row)
        return false;
    struct sl_span order = sim_attribute(row->item, is_inline ? "sluice_order" : "order").raw;
    return route == SIM_REPLICA ? is_order_reached(order, 7, 40, c->id) /* epoch, order, time */
                                : is_order_reached(order, 0, order.len, c->id);
}

bool sim_is_durable(const struct sim *s, const struct sim_change *c, enum sim_route route)
{
    switch (route) {
    case SIM_ARCHIVE:
        return c->archived;
    case SIM_PROBE:
        return c->applied;
    case SIM_NOTIFY:
    case SIM_ECHO:
        return has_been_applied(c, route);
    case SIM_WINDOW: /* counted at the end */
    case SIM_VIEW:
        return true;
    default:
        return is_in_table(s, c, route);
    }
}

void sim_check_done(struct sim *s, const struct sl_esm_record *const *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct sim_change *c = records[i]->tag;
        for (unsigned route = 0; route < SIM_ROUTES; route++)
            if (takes(s, (enum sim_route)route) && !c->parked[route] && !c->aside[route] &&
                !sim_is_durable(s, c, (enum sim_route)route))
                sim_violation(s, "route %u: %s is below the checkpoint, but neither durable nor parked",
                              route, c->id);
    }
}

static bool may_be_discarded(const struct sim *s, const struct sim_change *c)
{
    return sim_gives_up(s) || (!s->parks && (c->poison & s->routes));
}

void sim_check_discard(struct sim *s, const struct sl_esm_discard *discard)
{
    for (size_t i = 0; i < discard->n; i++) {
        struct sim_change *c = discard->records[i]->tag;
        c->is_discarded = true;
        if (!may_be_discarded(s, c))
            sim_violation(s, "%s was given up, but can succeed", c->id);
    }
}

/* ---- the end ---- */

/* The item's last change in the history. */
static const struct sim_change *last_of(const struct sim *s, size_t item)
{
    const struct sim_change *last = NULL;
    for (size_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].item == item)
            last = &s->changes[i];
    return last;
}

static bool is_undecided(const struct sim *s, size_t item, enum sim_route route)
{
    for (size_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].item == item && (s->changes[i].is_discarded || s->changes[i].poison & 1u << route))
            return true;
    return false;
}

static void check_replica(struct sim *s)
{
    for (size_t i = 0; i < s->n_items; i++) {
        const struct sim_change *last = last_of(s, i);
        char key[64];
        snprintf(key, sizeof(key), "%s\"", s->items[i].key);
        const struct sim_row *row = sim_find_row(&s->replica, "", key, NULL);
        struct sl_span item = row ? row->item : (struct sl_span){0};
        bool is_there = item.ptr && sim_attribute(item, "version").type != SL_NONE;
        if (!last || last->is_discarded || last->poison & 1u << SIM_REPLICA)
            continue;
        if (is_there != (last->image.ptr != NULL))
            sim_violation(s, "replica: %s is %s", s->items[i].key, is_there ? "still there" : "missing");
        for (size_t k = 0; is_there && k < 3; k++) {
            const char *name = (const char *[]){"version", "group", "total"}[k];
            if (!sl_value_equal(sim_attribute(item, name), sim_attribute(last->image, name)))
                sim_violation(s, "replica: %s of %s is not the source's", name, s->items[i].key);
        }
    }
}

/* A row under the group and the item's key, for each item that is there, and no other. (Without lists a
 * change that was given up may leave a row: that item's rows are not looked at.) */
static void check_view(struct sim *s)
{
    for (size_t i = 0; i < s->n_items; i++) {
        const struct sim_change *last = last_of(s, i);
        bool is_open = !last || last->is_discarded || (!s->has_lists && is_undecided(s, i, SIM_VIEW));
        for (unsigned group = 0; group < SIM_GROUPS && !is_open; group++) {
            char key[96];
            snprintf(key, sizeof(key), "\"%s#%s%s\"", sim_groups[group], s->items[i].has_nul ? "\\u0000" : "",
                     s->items[i].key);
            const struct sim_row *row = sim_find_row(&s->rows, "", key, NULL);
            struct sl_span item = row ? row->item : (struct sl_span){0};
            bool is_there = item.ptr && sim_attribute(item, "sluice_deleted").type == SL_NONE;
            if (is_there != (last->image.ptr && last->group == group))
                sim_violation(s, "view: %s is %s", key, is_there ? "still there" : "missing");
            for (size_t k = 0; is_there && k < 2; k++) {
                const char *name = (const char *[]){"version", "total"}[k];
                if (!sl_value_equal(sim_attribute(item, name), sim_attribute(last->image, name)))
                    sim_violation(s, "view: %s of %s is not the source's", name, key);
            }
        }
    }
}

/* A row that is to be folded into the totals is a part of them. */
static void add_delta(const struct sim_row *row, const char *key, const char *name, struct sl_decimal *d)
{
    struct sl_value sums = sim_attribute(row->item, "sluice_sums"), element;
    for (struct sl_iter iter = sl_value_iter(sums); sl_value_next(&iter, NULL, &element);) {
        struct sl_value group = sl_value_member(element, SL_LIT("key"));
        struct sl_value number = sl_value_member(sl_value_member(element, SL_LIT("add")), sl_span_str(name));
        if (memmem(group.raw.ptr, group.raw.len, key, strlen(key)) && number.type == SL_N)
            sl_decimal_add(d, number.raw, false);
    }
}

/* The sum over the counter's rows, with its sub-counters. */
static void expect_number(struct sim *s, const char *key, const char *name, int64_t hundredths)
{
    char text[48];
    struct sl_decimal *d = sl_decimal_new(s->arena);
    int64_t whole = hundredths < 0 ? -hundredths : hundredths;
    snprintf(text, sizeof(text), "%s%lld.%02lld", hundredths < 0 ? "-" : "", (long long)whole / 100,
             (long long)whole % 100);
    sl_decimal_add(d, sl_span_str(text), true);
    for (const struct sim_row *row = NULL; (row = sim_find_row(&s->totals, "", key, row));) {
        struct sl_value value = sim_attribute(row->item, name);
        if (value.type == SL_N)
            sl_decimal_add(d, value.raw, false);
    }
    for (const struct sim_row *row = NULL;
         (row = sim_find_row(&s->totals, "", "\"sluice:delta:totals:", row));)
        add_delta(row, key, name, d);
    if (!sl_decimal_is_zero(d))
        sim_violation(s, "totals: %s of %s is not %s", name, key, text);
}

/* ---- values and members ---- */

static bool is_of_group(const struct sim *s, size_t i, unsigned group)
{
    const struct sim_item *item = &s->items[i];
    return last_of(s, i) && item->exists && item->group == group && !item->lacks_total;
}

/* So many items of the group have another total than all items before them. */
static int64_t amounts_of(const struct sim *s, unsigned group)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        bool is_new = is_of_group(s, i, group);
        for (size_t k = 0; k < i && is_new; k++)
            is_new = !is_of_group(s, k, group) || s->items[k].cents != s->items[i].cents;
        n += is_new;
    }
    return n;
}

static void expect_rows(struct sim *s, const char *what, const char *part, const char *also, int64_t wanted)
{
    int64_t n = 0;
    for (const struct sim_row *row = NULL; (row = sim_find_row(&s->totals, "", part, row));)
        n += memmem(row->key.ptr, row->key.len, also, strlen(also)) != NULL;
    if (n != wanted)
        sim_violation(s, "totals: %lld %s of %s, and not %lld", (long long)n, what, part, (long long)wanted);
}

/* The sort key is the number and the item's digest: the rows of a group are as many as its items, and each
 * says its item's total. */
static void check_members(struct sim *s, unsigned group, const char *key, int64_t orders)
{
    expect_rows(s, "members", key, "\"-#", orders);
    for (size_t i = 0; i < s->n_items; i++) {
        int64_t cents = s->items[i].cents;
        char part[64], by[64];
        bool found = !is_of_group(s, i, group);
        snprintf(part, sizeof(part), "%s\"", s->items[i].key);
        for (const struct sim_row *row = NULL; (row = sim_find_row(&s->totals, "", key, row));)
            if (memmem(row->key.ptr, row->key.len, "\"-#", 3) &&
                memmem(row->item.ptr, row->item.len, part, strlen(part))) {
                struct sl_value held = sim_attribute(row->item, "by");
                snprintf(by, sizeof(by), "%s%lld.%02lld", cents < 0 ? "-" : "",
                         (long long)(cents < 0 ? -cents : cents) / 100,
                         (long long)(cents < 0 ? -cents : cents) % 100);
                found = sl_value_equal(held, (struct sl_value){.type = SL_N, .raw = sl_span_str(by)});
            }
        if (!found)
            sim_violation(s, "totals: %s is no member of %s with its total", s->items[i].key, key);
    }
}

static void check_groups(struct sim *s, unsigned group, const char *key, int64_t orders)
{
    int64_t amounts = amounts_of(s, group);
    expect_number(s, key, "people", 100 * orders);
    expect_number(s, key, "amounts", 100 * amounts);
    expect_rows(s, "values", "sluice:distinct:totals:", sl_arena_printf(s->arena, "G#g%u|", group),
                orders + amounts);
    check_members(s, group, key, orders);
    for (const struct sim_row *row = NULL;
         !s->sub_counters && (row = sim_find_row(&s->totals, "", key, row));)
        if (sl_span_is(sim_attribute(row->item, "orders").raw, "0"))
            sim_violation(s, "totals: %s is empty, and there", key);
}

/* The change that made what the expiry removed. */
static const struct sim_change *image_before(const struct sim *s, const struct sim_change *expiry)
{
    const struct sim_change *last = NULL;
    for (const struct sim_change *c = s->changes; c < expiry; c++)
        if (c->item == expiry->item)
            last = c;
    return last;
}

static void check_totals(struct sim *s)
{
    for (size_t i = 0; i < s->n_items; i++)
        if (!s->items[i].lacks_total && is_undecided(s, i, SIM_TOTALS))
            return; /* a change that was given up is in no sum, and which sum it would be in is not known */
    for (unsigned group = 0; group < SIM_GROUPS; group++) {
        int64_t orders = s->group_items[group], cents = s->group_cents[group];
        for (const struct sim_change *c = s->changes; c < s->changes + s->n_changes; c++) {
            const struct sim_change *last = c->is_expiry && s->keeps_expired ? image_before(s, c) : NULL;
            bool counts = last && last->group == group && !s->items[c->item].lacks_total;
            orders += counts;
            cents += counts ? last->cents : 0;
        }
        for (size_t i = 0; i < s->n_items; i++) {
            const struct sim_item *item = &s->items[i];
            bool counts = last_of(s, i) && item->exists && item->group == group && !item->lacks_total;
            orders += counts;
            cents += counts ? item->cents : 0;
        }
        char key[64];
        snprintf(key, sizeof(key), "\"G#%s", sim_groups[group]);
        expect_number(s, key, "orders", 100 * orders);
        expect_number(s, key, "revenue", cents);
        if (s->has_members)
            check_groups(s, group, key, orders);
    }
}

static void check_windows(struct sim *s)
{
    int64_t counted = 0, wanted = 0;
    for (size_t i = 0; i < s->n_windows; i++)
        counted += s->windows[i].n;
    for (size_t i = 0; i < s->n_changes; i++)
        wanted += !s->changes[i].is_discarded;
    if (counted != wanted)
        sim_violation(s, "the windows counted %lld records of %lld", (long long)counted, (long long)wanted);
}

/* A record that one route gave up is still applied by the other repeatable routes. */
static void check_each(struct sim *s, const struct sim_change *c)
{
    static const enum sim_route repeatable[] = {SIM_ARCHIVE, SIM_PROBE};
    for (size_t i = 0; i < 2; i++)
        if (takes(s, repeatable[i]) && !(c->poison & 1u << repeatable[i]) &&
            !sim_is_durable(s, c, repeatable[i]))
            sim_violation(s, "route %u: %s is lost", repeatable[i], c->id);
    for (unsigned route = 0; route < SIM_ROUTES; route++) {
        /* A poison image that a later one replaced is never written, and so never refused. */
        bool is_lost = s->parks && takes(s, (enum sim_route)route) && (c->poison & 1u << route) &&
                       route != SIM_TOTALS && route != SIM_REPLICA && !c->parked[route];
        if (is_lost)
            sim_violation(s, "route %u: %s can never succeed, but was not parked", route, c->id);
    }
    for (enum sim_route route = SIM_NOTIFY; route <= SIM_ECHO; route++)
        if (takes(s, route) && !has_been_applied(c, route) && !c->is_discarded && !(c->poison & 1u << route))
            sim_violation(s, "the message of %s was never sent", c->id);
}

void sim_check_end(struct sim *s)
{
    sim_check_ledger(s);
    if (sim_gives_up(s))
        return;
    for (size_t i = 0; i < s->n_changes; i++)
        check_each(s, &s->changes[i]);
    if (takes(s, SIM_REPLICA))
        check_replica(s);
    if (takes(s, SIM_VIEW))
        check_view(s);
    if (takes(s, SIM_TOTALS))
        check_totals(s);
    if (takes(s, SIM_WINDOW))
        check_windows(s);
}
