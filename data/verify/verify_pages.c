/* Pages: the source's items with what should be there of them, and the targets' rows with the items that they
 * were made of. What is not right at first sight becomes a suspect. */
#include "base/json.h"
#include "base/span.h"
#include "streams/record.h"
#include "streams/when/when.h"
#include "data/verify/verify_private.h"

#include <stdlib.h>

/* ---- segments ---- */

/* Opens segments until as many are being read as may be; returns how many are. */
static size_t open_segments(struct sl_verify *v)
{
    size_t n = 0;
    for (size_t i = 0; i < SL_VERIFY_PAGES; i++) {
        struct segment *s = &v->active[i];
        if (!s->is_open && v->begun < v->o.n)
            *s = (struct segment){.is_open = true, .at.number = (v->o.first + v->begun++) % v->o.segments};
        n += s->is_open;
    }
    return n;
}

/* Moves the segment to the end of its page. */
static enum sl_status move_on(struct sl_verify *v, struct segment *s, const struct sl_table_page *page,
                              struct sl_error *error)
{
    enum sl_status status = sl_segment_move(&s->at, page, NULL, error);
    s->is_open = !s->at.is_done;
    v->ended += s->at.is_done;
    return status;
}

/* The pages of one round. */
struct round {
    struct segment *segments[SL_VERIFY_PAGES];
    struct sl_table_page pages[SL_VERIFY_PAGES];
    size_t n_pages;
    struct sl_span *items; /* of all pages */
    size_t n;
};

static enum sl_status scan(struct sl_verify *v, const struct scanned *table, int64_t deadline_ms,
                           struct round *r, struct sl_error *error)
{
    struct sl_table_scan scans[SL_VERIFY_PAGES];
    struct sl_call call = sl_verify_call(v, deadline_ms);
    for (size_t i = 0; i < SL_VERIFY_PAGES; i++) {
        struct segment *s = &v->active[i];
        if (!s->is_open)
            continue;
        scans[r->n_pages] = (struct sl_table_scan){.table = table->table,
                                                   .segment = s->at.number,
                                                   .of = v->o.segments,
                                                   .after = sl_span_str(s->at.after),
                                                   .limit = sl_verify_room(v)};
        r->segments[r->n_pages++] = s;
    }
    table->port->scan(table->port, scans, r->n_pages, r->pages, &call);
    for (size_t i = 0; i < r->n_pages; i++) {
        const struct sl_result *result = &r->pages[i].result;
        if (result->status != SL_OK)
            return sl_fail(error, result->status, result->code, "%s", result->text);
        r->n += r->pages[i].n;
    }
    r->items = sl_arena_alloc(v->arena, (r->n + 1) * sizeof(*r->items));
    size_t n = 0;
    for (size_t i = 0; i < r->n_pages; i++)
        for (size_t k = 0; k < r->pages[i].n; k++)
            r->items[n++] = r->pages[i].items[k];
    return SL_OK;
}

/* ---- items that make no record ---- */

/* Tells of it, for one route or (NULL) for all that are compared. */
static void refuse(struct sl_verify *v, struct verified *of, const struct sl_items_entry *entry,
                   struct sl_error *why)
{
    sl_error_seal(why);
    for (size_t i = 0; i < v->n_routes; i++) {
        struct sl_finding f = {
            .result = SL_FINDING_NOT_COMPARABLE, .code = why->code, .why = why->text, .is_forward = !of};
        if (v->routes[i].report.reason || (of && of != &v->routes[i]))
            continue;
        if (entry->key.ptr && sl_json_check(entry->key, NULL) == SL_OK)
            f.source_key = entry->key;
        sl_verify_report(v, &v->routes[i], &f);
    }
}

/* What a table holds may be no text that a stream could carry (docs/RECORDS.md: half a surrogate pair). Such
 * items are left out, and told. */
static enum sl_status decode(struct sl_verify *v, struct verified *of, struct sl_items_entry *entries,
                             size_t *n, struct sl_batch *out, struct sl_error *error)
{
    struct sl_error first = SL_NO_ERROR;
    size_t good = 0;
    enum sl_status status = sl_items_decode(entries, *n, &v->o.keys, v->o.arn, v->arena, out, &first);
    if (status == SL_OK)
        return SL_OK;
    for (size_t i = 0; i < *n; i++) {
        struct sl_error why = SL_NO_ERROR;
        struct sl_batch one;
        if (sl_items_decode(&entries[i], 1, &v->o.keys, v->o.arn, v->arena, &one, &why) == SL_OK)
            entries[good++] = entries[i];
        else
            refuse(v, of, &entries[i], &why);
    }
    *n = good;
    return sl_items_decode(entries, good, &v->o.keys, v->o.arn, v->arena, out, error);
}

/* ---- forward ---- */

/* What a route has to look at of a page. */
struct part {
    const struct sl_record **records;
    const struct sl_items_entry **entries;
    size_t n;
};

static bool is_of_route(const struct sl_verify *v, const struct verified *r, const struct sl_record *record,
                        struct sl_span image)
{
    return sl_when_match(r->route->when, record, v->arena) &&
           (!v->o.match || sl_pattern_match(v->o.match, image, v->arena));
}

static struct part part_of(struct sl_verify *v, struct verified *r, const struct sl_batch *batch,
                           const struct sl_items_entry *entries, bool is_forward)
{
    struct part part = {
        .records = sl_arena_alloc(v->arena, (batch->n + 1) * sizeof(const struct sl_record *)),
        .entries = sl_arena_alloc(v->arena, (batch->n + 1) * sizeof(const struct sl_items_entry *))};
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *record = sl_batch_record(batch, i);
        if ((r->route->when || v->o.match) && !is_of_route(v, r, record, entries[i].item)) {
            r->report.left_out += is_forward;
            continue;
        }
        part.records[part.n] = record;
        part.entries[part.n++] = &entries[i];
    }
    return part;
}

static void not_comparable(struct sl_verify *v, struct verified *r, const struct sl_items_entry *entry,
                           const struct sl_expected *row)
{
    struct sl_finding f = {.result = SL_FINDING_NOT_COMPARABLE,
                           .source_key = entry->key,
                           .code = row->code,
                           .why = row->why,
                           .is_forward = true};
    sl_verify_report(v, r, &f);
}

/* Guards on the source's items: the other table writes to this one, too. */
static void look_for_pair(struct verified *r, const struct sl_expected *row,
                          const struct sl_items_entry *entry)
{
    if (!r->is_pair && row->guard.ptr && row->absence.ptr &&
        memmem(entry->item.ptr, entry->item.len, row->guard.ptr, row->guard.len))
        r->is_pair = true;
}

enum state { FINE, SUSPECT, LEFT_OUT, NOT_COMPARABLE };

/* The worst of an item's rows counts for it. */
static enum state *states_of(struct sl_verify *v, struct verified *r, const struct sl_expect *e,
                             const struct part *part, const struct sl_result *results)
{
    const struct sl_compare compare = {v->o.ignored, v->o.n_ignored, v->arena};
    enum state *states = sl_arena_zalloc(v->arena, (part->n + 1) * sizeof(*states));
    for (size_t i = 0; i < e->n_rows; i++) {
        const struct sl_expected *row = &e->rows[i];
        enum state *state = &states[row->record];
        look_for_pair(r, row, part->entries[row->record]);
        if (row->status != SL_OK) {
            if (*state != NOT_COMPARABLE)
                not_comparable(v, r, part->entries[row->record], row);
            *state = NOT_COMPARABLE;
        } else if (!row->key.ptr) {
            *state = LEFT_OUT;
        } else if (*state == FINE &&
                   (results[i].status != SL_OK || !sl_compare_is_right(&compare, row, results[i].item))) {
            *state = SUSPECT;
        }
    }
    return states;
}

static enum sl_status forward_route(struct sl_verify *v, size_t route, const struct sl_batch *batch,
                                    const struct sl_items_entry *entries, int64_t deadline_ms,
                                    struct sl_error *error)
{
    struct verified *r = &v->routes[route];
    struct part part = part_of(v, r, batch, entries, true);
    struct sl_expect e;
    const struct sl_result *results;
    if (part.n == 0)
        return SL_OK;
    enum sl_status status = sl_verify_expect(v, r, part.records, part.n, &e, error);
    if (status == SL_OK)
        status = sl_verify_read_rows(v, e.rows, e.n_rows, SL_TABLE_PEEK, false, deadline_ms, &results, error);
    if (status != SL_OK)
        return status;
    const enum state *states = states_of(v, r, &e, &part, results);
    for (size_t i = 0; i < part.n; i++) {
        r->report.equal += states[i] == FINE;
        r->report.left_out += states[i] == LEFT_OUT;
        if (states[i] == SUSPECT)
            sl_verify_suspect(v, route, part.entries[i]->key, true);
    }
    return SL_OK;
}

static enum sl_status forward(struct sl_verify *v, const struct round *round, int64_t deadline_ms,
                              struct sl_error *error)
{
    struct sl_batch batch;
    struct sl_items_entry *entries = sl_arena_zalloc(v->arena, (round->n + 1) * sizeof(*entries));
    size_t n = round->n;
    for (size_t i = 0; i < n; i++)
        entries[i].item = round->items[i];
    enum sl_status status = decode(v, NULL, entries, &n, &batch, error);
    for (size_t i = 0; i < v->n_routes && status == SL_OK; i++)
        if (!v->routes[i].report.reason)
            status = forward_route(v, i, &batch, entries, deadline_ms, error);
    if (status == SL_OK)
        v->items += round->n;
    return status;
}

/* ---- backward ---- */

/* A row, and the item that it was made of. */
struct traced {
    struct sl_span key, row_key; /* of the item; of the row, where an item can have several */
    struct sl_span item;         /* as the source has it; absent: it has none */
};

/* Rows that stand for no item are left out. */
static struct traced *trace_rows(struct sl_verify *v, struct verified *r, const struct round *round,
                                 size_t *n)
{
    const struct sl_handler *handler = &r->route->loaded.handler;
    struct traced *traced = sl_arena_zalloc(v->arena, (round->n + 1) * sizeof(*traced));
    *n = 0;
    sl_route_enter(r->route);
    for (size_t i = 0; i < round->n; i++) {
        struct sl_error why = SL_NO_ERROR;
        struct sl_trace t = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(t)},
                             .row = round->items[i],
                             .key_names = v->o.keys.names,
                             .n_key_names = v->o.keys.n,
                             .arena = v->arena};
        if (handler->trace(r->route->self, &t, &why) != SL_OK) {
            struct sl_finding f = {.result = SL_FINDING_NOT_COMPARABLE, .code = why.code, .why = why.text};
            sl_error_seal(&why);
            sl_verify_report(v, r, &f);
        } else if (t.key.ptr) {
            traced[(*n)++] = (struct traced){.key = t.key, .row_key = t.row_key};
        }
    }
    sl_route_leave(r->route);
    return traced;
}

/* The traced rows whose items are there, or are not. Of an item that is not there `when` looks at the key
 * alone. */
static enum sl_status choose(struct sl_verify *v, struct verified *r, const struct traced *traced, size_t n,
                             bool is_there, struct part *out, struct sl_error *error)
{
    struct sl_items_entry *entries = sl_arena_zalloc(v->arena, (n + 1) * sizeof(*entries));
    struct sl_batch batch;
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++)
        if ((traced[i].item.ptr != NULL) == is_there && (!is_there || traced[i].row_key.ptr))
            entries[chosen++] = (struct sl_items_entry){.key = traced[i].key,
                                                        .item = is_there ? traced[i].item : traced[i].key,
                                                        .row = traced[i].row_key};
    *out = (struct part){.n = 0};
    enum sl_status status = decode(v, r, entries, &chosen, &batch, error);
    if (status == SL_OK)
        *out = part_of(v, r, &batch, entries, false);
    return status;
}

/* Adds the rows of items that the source lacks and that would be the route's. */
static enum sl_status suspect_absent(struct sl_verify *v, size_t route, const struct traced *traced, size_t n,
                                     struct sl_error *error)
{
    struct part part;
    enum sl_status status = choose(v, &v->routes[route], traced, n, false, &part, error);
    for (size_t i = 0; i < part.n; i++) {
        const struct sl_items_entry *entry = part.entries[i];
        if (entry->row.ptr)
            sl_verify_suspect_row(v, route, entry->key, entry->row, v->table);
        else
            sl_verify_suspect(v, route, entry->key, false);
    }
    return status;
}

/* Adds rows that their items, which are there, do not make. (What an item makes was looked at forward.) */
static enum sl_status suspect_unexpected(struct sl_verify *v, size_t route, const struct traced *traced,
                                         size_t n, struct sl_error *error)
{
    struct verified *r = &v->routes[route];
    struct part part;
    struct sl_expect e = {.n_rows = 0};
    enum sl_status status = choose(v, r, traced, n, true, &part, error);
    if (status == SL_OK && part.n > 0)
        status = sl_verify_expect(v, r, part.records, part.n, &e, error);
    if (status != SL_OK)
        return status;
    bool *is_known = sl_arena_zalloc(v->arena, part.n + 1);
    for (size_t k = 0; k < e.n_rows; k++)
        if (e.rows[k].status != SL_OK || sl_verify_is_row(&e.rows[k], part.entries[e.rows[k].record]->row))
            is_known[e.rows[k].record] = true;
    for (size_t i = 0; i < part.n; i++)
        if (!is_known[i])
            sl_verify_suspect_row(v, route, part.entries[i]->key, part.entries[i]->row, v->table);
    return SL_OK;
}

static enum sl_status backward(struct sl_verify *v, const struct round *round, int64_t deadline_ms,
                               struct sl_error *error)
{
    size_t route = v->tables[v->table].route, n, kept = 0;
    struct traced *traced = trace_rows(v, &v->routes[route], round, &n);
    struct sl_table_op *ops = sl_arena_zalloc(v->arena, (n + 1) * sizeof(*ops));
    const struct sl_result *results;
    for (size_t i = 0; i < n; i++)
        ops[i].key = traced[i].key;
    enum sl_status status =
        sl_verify_read(v, v->o.source, SL_TABLE_PEEK, ops, n, deadline_ms, &results, error);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        traced[i].item = results[i].item;
        if (results[i].status == SL_OK)
            traced[kept++] = traced[i];
    }
    if (status == SL_OK)
        status = suspect_absent(v, route, traced, kept, error);
    if (status == SL_OK)
        status = suspect_unexpected(v, route, traced, kept, error);
    if (status == SL_OK)
        v->rows += round->n;
    return status;
}

/* ---- a round ---- */

static enum sl_status compare(struct sl_verify *v, const struct round *round, int64_t deadline_ms,
                              struct sl_error *error)
{
    struct sl_verify_route *counts = sl_arena_alloc(v->arena, (v->n_routes + 1) * sizeof(*counts));
    size_t n_suspects = v->n_suspects;
    for (size_t i = 0; i < v->n_routes; i++)
        counts[i] = v->routes[i].report;
    enum sl_status status = v->tables[v->table].route == NO_ROUTE ? forward(v, round, deadline_ms, error)
                                                                  : backward(v, round, deadline_ms, error);
    if (status == SL_OK)
        return status;
    /* The pages are read again, and what was counted of them would be counted twice. */
    while (v->n_suspects > n_suspects)
        sl_verify_forget(v, v->n_suspects - 1);
    for (size_t i = 0; i < v->n_routes; i++)
        v->routes[i].report = counts[i];
    return status;
}

enum sl_status sl_verify_pages(struct sl_verify *v, int64_t deadline_ms, struct sl_error *error)
{
    struct round round = {.n_pages = 0};
    if (open_segments(v) > 0) {
        enum sl_status status = scan(v, &v->tables[v->table], deadline_ms, &round, error);
        if (status == SL_OK && round.n > 0)
            status = compare(v, &round, deadline_ms, error);
        for (size_t i = 0; i < round.n_pages && status == SL_OK; i++)
            status = move_on(v, round.segments[i], &round.pages[i], error);
        if (status != SL_OK)
            return status;
    }
    if (v->ended == v->o.n) {
        v->table++;
        v->begun = v->ended = 0;
    }
    return SL_OK;
}
