/* The check of totals by one machine: scans in rounds, in as many passes as the groups need. */
#include "data/verify/totals_judge.h"

#include "base/span.h"
#include "data/source/segment.h"

#define SEGMENTS   4 /* scanned together */
#define PAGE_MS    60000
#define LINE_BYTES ((size_t)64 * 1024)

/* More than 2^20 passes are no totals. */
#define PASSES_MAX ((uint64_t)1 << 20)

struct check {
    const struct sl_totals_options *o;
    struct sl_totals_counts *counts;
    struct sl_totals_target *t;
    struct sl_totals_sums sums;
    struct sl_arena *arena; /* of a page */
    struct sl_buffer line, key;
    struct sl_totals_rows rows;
    uint64_t rows_first, rows_second; /* digests of all rows of the ledgers, added up */
    bool is_stopped;
};

/* ---- scans ---- */

/* The next page of each segment that has one. Returns how many had. */
static size_t scan_pages(struct check *c, size_t table, struct sl_segment *segments, enum sl_status *status,
                         struct sl_error *error)
{
    struct sl_clock *clock = c->o->sinks->clock;
    struct sl_table_scan scans[SEGMENTS];
    struct sl_table_page pages[SEGMENTS];
    struct sl_segment *of[SEGMENTS];
    const struct sl_span own = c->rows.scan == SL_TOTALS_TOTAL ? sl_span(NULL, 0) : c->t->tables[table];
    size_t n = 0;
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        if (segments[i].is_done)
            continue;
        scans[n] = (struct sl_table_scan){.table = own,
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
        sl_totals_take_page(&c->rows, table, &pages[i]);
        *status = sl_segment_move(of[i], &pages[i], NULL, error);
    }
    c->is_stopped = c->o->is_stopped(c->o->arg);
    return n;
}

static enum sl_status scan_table(struct check *c, size_t table, struct sl_error *error)
{
    struct sl_segment segments[SEGMENTS] = {{.number = 0}};
    enum sl_status status = SL_OK;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        segments[i].number = i;
    while (status == SL_OK && !c->is_stopped && scan_pages(c, table, segments, &status, error) > 0) {
    }
    for (uint32_t i = 0; i < SEGMENTS; i++)
        sl_segment_clean_up(&segments[i]);
    return status;
}

static void begin_scan(struct check *c, enum sl_totals_scan scan)
{
    c->rows =
        (struct sl_totals_rows){.t = c->t, .sums = &c->sums, .arena = c->arena, .key = &c->key, .scan = scan};
}

static enum sl_status scan_ledgers(struct check *c, enum sl_totals_scan scan, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    begin_scan(c, scan);
    for (size_t i = 0; i < c->t->n_tables && status == SL_OK && !c->is_stopped; i++)
        status = scan_table(c, i, error);
    *(scan == SL_TOTALS_FIRST ? &c->rows_first : &c->rows_second) = c->rows.digest;
    return status;
}

/* ---- passes ---- */

static enum sl_status round_of(struct check *c, bool is_first, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (is_first) {
        status = scan_ledgers(c, SL_TOTALS_FIRST, error);
    } else {
        sl_totals_sums_begin_round(&c->sums);
        c->rows_first = c->rows_second;
    }
    begin_scan(c, SL_TOTALS_TOTAL);
    if (status == SL_OK && !c->sums.is_full)
        status = scan_table(c, 0, error);
    if (status == SL_OK && !c->sums.is_full)
        status = scan_ledgers(c, SL_TOTALS_SECOND, error);
    return status;
}

/* One pass. `*is_full`: it was too much, and nothing was judged. */
static enum sl_status pass(struct check *c, uint64_t part, uint64_t of, bool *is_full, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    size_t left = 1;
    struct sl_totals_judge judge = {.t = c->t,
                                    .sums = &c->sums,
                                    .counts = c->counts,
                                    .arena = c->arena,
                                    .line = &c->line,
                                    .found = c->o->found,
                                    .arg = c->o->arg};
    sl_totals_sums_init(&c->sums, c->o->groups ? c->o->groups : SL_TOTALS_GROUPS, part, of);
    if (part == 0) /* as the others may have a few more */
        c->sums.room = c->sums.most * 3 / 4;
    for (int round = 0; round < SL_TOTALS_ROUNDS && left > 0 && status == SL_OK && !c->is_stopped; round++) {
        status = round_of(c, round == 0, error);
        if (status != SL_OK || c->sums.is_full || c->is_stopped)
            break;
        judge.has_moved = c->rows_first != c->rows_second;
        left = sl_totals_judge_round(&judge);
    }
    *is_full = c->sums.is_full;
    if (status == SL_OK && !*is_full && !c->is_stopped)
        sl_totals_judge_rest(&judge);
    sl_totals_sums_clean_up(&c->sums);
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
    struct sl_totals_target *list;
    struct check c = {.o = o, .counts = counts, .arena = sl_arena_new((size_t)1024 * 1024)};
    size_t n = sl_totals_find(o->pipeline, o->is_chosen, lasting, &list);
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
