/* The check of totals: scans in rounds, and what they prove. */
#include "work/verify/totals.h"

#include "base/cycle.h"
#include "base/decimal.h"
#include "base/json_write.h"
#include "base/span.h"
#include "work/verify/totals_private.h"

#define SEGMENTS   4 /* scanned together */
#define PAGE_MS    60000
#define LINE_BYTES ((size_t)64 * 1024)

/* More than 2^20 passes of 50,000 groups are no totals. */
#define PASSES_MAX ((uint64_t)1 << 20)

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

/* Calls take_... for each row of a table. */
static enum sl_status scan_table(struct check *c, struct sl_span table, const struct totals_ledger *ledger,
                                 struct sl_error *error)
{
    struct sl_clock *clock = c->o->sinks->clock;
    struct sl_arena *places = sl_arena_new(16 * 1024); /* a key for each page: small beside the page */
    struct sl_table_scan scans[SEGMENTS];
    struct sl_table_page pages[SEGMENTS];
    struct sl_cycle cycles[SEGMENTS] = {{.seen = NULL}};
    size_t n = SEGMENTS;
    enum sl_status status = SL_OK;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        scans[i] =
            (struct sl_table_scan){.table = table, .segment = i, .of = SEGMENTS, .is_consistent = true};
    while (n > 0 && status == SL_OK && !c->is_stopped) {
        sl_arena_reset(c->arena);
        const struct sl_call call = {.arena = c->arena, .deadline_ms = clock->now_ms(clock) + PAGE_MS};
        c->t->port->scan(c->t->port, scans, n, pages, &call);
        size_t kept = 0;
        for (size_t i = 0; i < n && status == SL_OK; i++) {
            const struct sl_result *result = &pages[i].result;
            if (result->status != SL_OK)
                status = sl_fail(error, result->status == SL_RETRY ? SL_RETRY : SL_FATAL, result->code, "%s",
                                 result->text);
            for (size_t k = 0; k < pages[i].n && status == SL_OK; k++) {
                struct sl_value row = {.type = SL_M, .raw = pages[i].items[k]};
                if (ledger)
                    sl_totals_ledger_row(&c->rows, ledger, row);
                else
                    sl_totals_row(&c->rows, row);
            }
            if (!pages[i].next.ptr)
                continue;
            uint32_t segment = scans[i].segment;
            scans[kept] = scans[i];
            scans[kept++].after = sl_span(sl_arena_copy(places, pages[i].next), pages[i].next.len);
            if (sl_cycle_closes(&cycles[segment], pages[i].next))
                status =
                    sl_fail(error, SL_FATAL, "EndlessScan",
                            "the pages of segment %u of a scan lead round to a key that was read already: "
                            "nothing that answers so is DynamoDB. See what is behind the endpoint",
                            segment);
        }
        n = kept;
        c->is_stopped = c->o->is_stopped(c->o->arg);
    }
    for (uint32_t i = 0; i < SEGMENTS; i++)
        sl_cycle_clean_up(&cycles[i]);
    sl_arena_destroy(places);
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
    sl_groups_init(&c->groups, part, of);
    for (int round = 0; round < SL_TOTALS_ROUNDS && left > 0 && status == SL_OK && !c->is_stopped; round++) {
        status = round_of(c, error);
        if (status != SL_OK || c->groups.is_full || c->is_stopped)
            break;
        left = judge_round(c);
    }
    *is_full = c->groups.is_full;
    if (status == SL_OK && !*is_full && !c->is_stopped)
        report_restless(c);
    sl_groups_clean_up(&c->groups);
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
    size_t n = sl_totals_find(o, lasting, &list);
    enum sl_status status = SL_OK;
    sl_buffer_init(&c.line, LINE_BYTES);
    sl_buffer_init(&c.key, LINE_BYTES);
    for (size_t i = 0; i < n && status == SL_OK && !c.is_stopped; i++) {
        c.t = &list[i];
        if (!c.t->is_chosen || !c.t->port->scan)
            continue;
        counts->targets++;
        for (size_t k = 0; k < c.t->counted.n; k++)
            counts->not_judged += !sl_totals_is_judged(c.t, c.t->counted.list[k]);
        status = check_totals(&c, error);
    }
    sl_buffer_clean_up(&c.line);
    sl_buffer_clean_up(&c.key);
    sl_arena_destroy(c.arena);
    sl_arena_destroy(lasting);
    return status;
}
