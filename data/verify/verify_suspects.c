/* Suspects: kept while they wait for their next look, looked at in groups, and reported when the rule says
 * what they are. */
#include "base/array.h"
#include "base/hash.h"
#include "base/span.h"
#include "handlers/pipeline/host.h"
#include "streams/record.h"
#include "streams/value.h"
#include "data/verify/verify_private.h"

#include <stdlib.h>

size_t sl_verify_room(const struct sl_verify *v)
{
    size_t room = (SL_VERIFY_SUSPECTS - v->n_suspects) / (SL_VERIFY_PAGES * (v->n_routes ? v->n_routes : 1));
    return room < LEAST_ITEMS && v->n_suspects > 0 ? 0 : room;
}

static char *copy_of(const struct sl_verify *v, struct sl_span text)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        sl_die("out of memory: %zu suspects", v->n_suspects);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

void sl_verify_suspect(struct sl_verify *v, size_t route, struct sl_span key, bool is_forward)
{
    SL_PUSH(v->suspects, v->n_suspects, v->room_suspects, "suspects") = (struct suspect){
        .route = (uint32_t)route, .is_forward = is_forward, .hash = sl_hash(key), .key = copy_of(v, key)};
}

void sl_verify_suspect_row(struct sl_verify *v, size_t route, struct sl_span key, struct sl_span row,
                           size_t table)
{
    sl_verify_suspect(v, route, key, false);
    v->suspects[v->n_suspects - 1].row = copy_of(v, row);
    v->suspects[v->n_suspects - 1].table = (uint32_t)table;
}

void sl_verify_forget(struct sl_verify *v, size_t suspect)
{
    struct suspect *s = &v->suspects[suspect];
    free(s->key);
    free(s->row);
    *s = v->suspects[--v->n_suspects];
}

bool sl_verify_is_row(const struct sl_expected *row, struct sl_span key)
{
    struct sl_value a = {.type = SL_M, .raw = row->key}, b = {.type = SL_M, .raw = key};
    return row->key.ptr && key.ptr && sl_value_equal(a, b);
}

/* ---- one look at a group of one route's suspects ---- */

struct group {
    struct sl_verify *v;
    struct verified *r;
    size_t at[LOOK_ITEMS], n; /* their places among the suspects */
    int64_t began_ms, ended_ms, through_ms;
    struct sl_items_entry entries[LOOK_ITEMS];
    struct sl_table_op ops[LOOK_ITEMS]; /* on the source */
    const struct sl_result *before, *after;
    const struct sl_error *refused[LOOK_ITEMS]; /* NULL, or why the source's item makes no record */
    struct sl_batch batch;
    struct sl_expect expect;
    const struct sl_result *rows; /* then their side rows */
};

/* What was set aside is handled, and not applied. */
static int64_t through_of(const struct sl_verify *v, const struct group *g, const struct verified *r)
{
    int64_t settled_ms = v->o.settled_ms ? v->o.settled_ms(v->o.arg, r->report.name) : INT64_MAX;
    return settled_ms < g->through_ms || (settled_ms == 1 && !g->through_ms) ? settled_ms : g->through_ms;
}

/* The wait is for the consumer: it begins with the first look, whatever was done before that. */
static bool is_overdue(const struct sl_verify *v, const struct suspect *s, int64_t now_ms)
{
    return s->looks.n > 0 && now_ms - s->looks.since_ms > v->o.wait_ms;
}

static void choose(struct sl_verify *v, struct group *g)
{
    int64_t now_ms = g->began_ms;
    for (size_t i = 0; i < v->n_suspects && g->n < LOOK_ITEMS; i++) {
        const struct suspect *s = &v->suspects[i];
        bool is_late = is_overdue(v, s, now_ms) && now_ms >= s->looks.next_ms;
        if (!is_late && !sl_looks_is_due(&s->looks, now_ms, through_of(v, g, &v->routes[s->route])))
            continue;
        if (g->n > 0 && &v->routes[s->route] != g->r)
            continue;
        g->r = &v->routes[s->route];
        g->at[g->n++] = i;
    }
}

/* An item may make no record, see decode in verify_pages.c: then its place is taken by its key alone. */
static enum sl_status decode_group(struct group *g, struct sl_error *error)
{
    struct sl_verify *v = g->v;
    struct sl_error first = SL_NO_ERROR;
    enum sl_status status =
        sl_items_decode(g->entries, g->n, &v->o.keys, v->o.arn, v->arena, &g->batch, &first);
    if (status == SL_OK)
        return SL_OK;
    for (size_t i = 0; i < g->n; i++) {
        struct sl_error *why = sl_arena_zalloc(v->arena, sizeof(*why));
        struct sl_batch one;
        sl_error_clear(why);
        if (sl_items_decode(&g->entries[i], 1, &v->o.keys, v->o.arn, v->arena, &one, why) == SL_OK)
            continue;
        sl_error_seal(why);
        g->refused[i] = why;
        g->entries[i].item = sl_span(NULL, 0);
    }
    return sl_items_decode(g->entries, g->n, &v->o.keys, v->o.arn, v->arena, &g->batch, error);
}

/* Of an item of which one row is looked at, that one: as it is expected, or, if it is not, as one that should
 * not be there. */
static void narrow(struct group *g)
{
    const struct sl_verify *v = g->v;
    struct sl_expect *e = &g->expect;
    struct sl_expected *rows = sl_arena_alloc(v->arena, (e->n_rows + g->n) * sizeof(*rows));
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct suspect *s = &v->suspects[g->at[i]];
        struct sl_span key = s->row ? sl_span_str(s->row) : sl_span(NULL, 0);
        struct sl_expected beside = {.record = i, .key = key};
        bool is_there = !s->row;
        for (size_t k = 0; k < e->n_rows; k++) {
            const struct sl_expected *row = &e->rows[k];
            bool is_it = row->status != SL_OK || sl_verify_is_row(row, key);
            if (row->record != i)
                continue;
            beside.side_table = row->side_table;
            beside.side_key = row->side_key;
            is_there = is_there || is_it;
            if (!s->row || is_it)
                rows[n++] = *row;
        }
        beside.port = v->tables[s->table].port;
        beside.table = v->tables[s->table].table;
        if (!is_there)
            rows[n++] = beside;
    }
    e->rows = rows;
    e->n_rows = n;
}

static enum sl_status read_group(struct group *g, int64_t deadline_ms, struct sl_error *error)
{
    struct sl_verify *v = g->v;
    const struct sl_record **records = sl_arena_alloc(v->arena, g->n * sizeof(const struct sl_record *));
    for (size_t i = 0; i < g->n; i++) {
        g->entries[i] = (struct sl_items_entry){.key = sl_span_str(v->suspects[g->at[i]].key)};
        g->ops[i] = (struct sl_table_op){.key = g->entries[i].key};
    }
    enum sl_status status =
        sl_verify_read(v, v->o.source, SL_TABLE_GET, g->ops, g->n, deadline_ms, &g->before, error);
    for (size_t i = 0; i < g->n && status == SL_OK; i++)
        g->entries[i].item = g->before[i].item;
    if (status == SL_OK)
        status = decode_group(g, error);
    for (size_t i = 0; i < g->n && status == SL_OK; i++)
        records[i] = sl_batch_record(&g->batch, i);
    if (status == SL_OK)
        status = sl_verify_expect(v, g->r, records, g->n, &g->expect, error);
    if (status == SL_OK)
        narrow(g);
    if (status == SL_OK)
        status = sl_verify_read_rows(v, g->expect.rows, g->expect.n_rows, SL_TABLE_GET, true, deadline_ms,
                                     &g->rows, error);
    if (status == SL_OK)
        status = sl_verify_read(v, v->o.source, SL_TABLE_GET, g->ops, g->n, deadline_ms, &g->after, error);
    g->ended_ms = sl_verify_wall_ms(v);
    return status;
}

/* ---- judging ---- */

/* What came of one suspect. */
struct outcome {
    struct sl_look look;
    struct sl_judge *judges; /* by row of the item */
    const struct sl_expected **rows;
    size_t n;
    const struct sl_expected *refused; /* the item cannot be compared */
};

/* The item cannot be compared, for a reason outside of the handler's expect(). */
static void refuse(struct group *g, struct outcome *o, const char *code, const char *why)
{
    struct sl_expected *refused = sl_arena_zalloc(g->v->arena, sizeof(*refused));
    refused->code = sl_arena_copy(g->v->arena, sl_span_str(code));
    refused->why = sl_arena_copy(g->v->arena, sl_span_str(why));
    o->refused = refused;
}

static enum sl_verdict plain_verdict(const struct sl_judge *j)
{
    if (!j->row.ptr)
        return j->expected->item.ptr && !j->expected->may_be_absent ? SL_VERDICT_MISSING : SL_VERDICT_EQUAL;
    if (!j->expected->item.ptr)
        return SL_VERDICT_LEFT_OVER;
    return j->n_names ? SL_VERDICT_DIFFERENT : SL_VERDICT_EQUAL;
}

/* Presence means nothing where TTL may have come first, here or there. */
static bool is_expiring(const struct sl_verify *v, const struct sl_judge *j, struct sl_span source)
{
    bool is_of_presence = j->verdict == SL_VERDICT_MISSING || j->verdict == SL_VERDICT_LEFT_OVER ||
                          j->verdict == SL_VERDICT_REVIVED;
    return is_of_presence && (sl_verify_is_past(v, source) || sl_verify_is_past(v, j->row));
}

/* A row without a guard, of an item that is not here: in a pair of tables it is the other side's own. */
static bool is_of_other_side(const struct group *g, const struct sl_judge *j)
{
    return g->r->is_pair && j->verdict == SL_VERDICT_LEFT_OVER && !j->is_owned;
}

/* False: the row cannot be judged, for example because it is damaged. */
static bool judge_row(struct group *g, size_t i, size_t row, struct sl_judge *j, struct outcome *o)
{
    struct sl_verify *v = g->v;
    const struct sl_handler *handler = &g->r->route->loaded.handler;
    const struct sl_compare compare = {v->o.ignored, v->o.n_ignored, v->arena};
    struct sl_span *names = NULL;
    struct sl_error why = SL_NO_ERROR;
    *j = (struct sl_judge){.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(*j)},
                           .record = sl_batch_record(&g->batch, i),
                           .expected = &g->expect.rows[row],
                           .row = g->rows[row].item,
                           .side = g->rows[g->expect.n_rows + row].item,
                           .arena = v->arena};
    if (j->row.ptr && j->expected->item.ptr)
        sl_compare_names(&compare, j->expected, j->row, &names, &j->n_names);
    j->names = names;
    j->verdict = plain_verdict(j);
    if (handler->judge && handler->judge(g->r->route->self, j, &why) != SL_OK) {
        sl_error_seal(&why);
        refuse(g, o, why.code, why.text);
        return false;
    }
    if ((size_t)j->verdict > SL_VERDICT_NOT_JUDGED) /* a plugin's */
        j->verdict = SL_VERDICT_DIFFERENT;
    if (is_expiring(v, j, g->before[i].item) || is_of_other_side(g, j))
        j->verdict = SL_VERDICT_NOT_JUDGED;
    return true;
}

static void put_digest(struct sl_span item, unsigned char out[32])
{
    memset(out, 0, 32);
    if (item.ptr)
        sl_host_table.value_sha256((struct sl_value){.type = SL_M, .raw = item}, out);
}

static bool is_same_item(struct sl_span a, struct sl_span b)
{
    struct sl_value x = {.type = a.ptr ? SL_M : SL_NONE, .raw = a};
    struct sl_value y = {.type = b.ptr ? SL_M : SL_NONE, .raw = b};
    return sl_value_equal(x, y);
}

/* The digest of all that was seen. */
static void digest_seen(const struct group *g, size_t i, struct outcome *o)
{
    unsigned char *all = sl_arena_alloc(g->v->arena, 32 * (2 * o->n + 1));
    put_digest(g->before[i].item, all);
    for (size_t k = 0; k < o->n; k++) {
        put_digest(o->judges[k].row, all + 32 * (2 * k + 1));
        put_digest(o->judges[k].side, all + 32 * (2 * k + 2));
    }
    sl_host_table.sha256(sl_span((const char *)all, 32 * (2 * o->n + 1)), o->look.seen);
}

static void judge_item(struct group *g, size_t i, struct outcome *o)
{
    const struct sl_expect *e = &g->expect;
    size_t n = 0;
    for (size_t row = 0; row < e->n_rows; row++)
        n += e->rows[row].record == i;
    *o = (struct outcome){.judges = sl_arena_alloc(g->v->arena, (n + 1) * sizeof(*o->judges)),
                          .look = {.is_right = true,
                                   .is_still = is_same_item(g->before[i].item, g->after[i].item),
                                   .began_ms = g->began_ms,
                                   .ended_ms = g->ended_ms,
                                   .through_ms = through_of(g->v, g, g->r)}};
    const struct sl_result *source = g->before[i].status != SL_OK ? &g->before[i] : &g->after[i];
    if (source->status != SL_OK) {
        refuse(g, o, source->code ? source->code : "BadKey",
               source->text ? source->text : "the source refuses the item's key");
        return;
    }
    if (g->refused[i]) {
        refuse(g, o, g->refused[i]->code, g->refused[i]->text);
        return;
    }
    for (size_t row = 0; row < e->n_rows; row++) {
        if (e->rows[row].record != i || (e->rows[row].status == SL_OK && !e->rows[row].key.ptr))
            continue;
        if (e->rows[row].status != SL_OK || g->rows[row].status != SL_OK) {
            o->refused = &e->rows[row];
            return;
        }
        struct sl_judge *j = &o->judges[o->n++];
        if (!judge_row(g, i, row, j, o))
            return;
        o->look.is_right =
            o->look.is_right && (j->verdict == SL_VERDICT_EQUAL || j->verdict == SL_VERDICT_NOT_JUDGED);
    }
    digest_seen(g, i, o);
}

/* ---- settling ---- */

void sl_verify_report(struct sl_verify *v, struct verified *r, struct sl_finding *f)
{
    f->route = r->report.name;
    f->handler = r->report.handler;
    f->target = r->report.target;
    f->shows_values = v->o.shows_values;
    f->seen_ms = f->seen_ms ? f->seen_ms : sl_verify_wall_ms(v);
    if (f->result == SL_FINDING_NOT_COMPARABLE) {
        r->report.not_comparable++;
        if (r->lines_left == 0)
            return;
        r->lines_left--;
    }
    sl_buffer_reset(&v->line);
    sl_finding_write(f, &v->line);
    v->o.found(v->o.arg, f, sl_buffer_span(&v->line));
}

static void report_rows(struct group *g, size_t i, const struct outcome *o, enum sl_finding_result result)
{
    const struct suspect *s = &g->v->suspects[g->at[i]];
    for (size_t k = 0; k < o->n; k++) {
        const struct sl_judge *j = &o->judges[k];
        if (j->verdict == SL_VERDICT_EQUAL || j->verdict == SL_VERDICT_NOT_JUDGED)
            continue;
        struct sl_finding f = {.result = result,
                               .source_key = g->entries[i].key,
                               .expected = j->expected,
                               .judge = j,
                               .source = g->before[i].item,
                               .is_forward = s->is_forward,
                               .looks = s->looks.n,
                               .seen_ms = g->ended_ms};
        sl_verify_report(g->v, g->r, &f);
        if (result == SL_FINDING_DIFFERENT)
            g->r->report.kinds[j->verdict]++;
    }
}

/* True: the suspect is settled. */
static bool settle(struct group *g, size_t i, struct outcome *o)
{
    struct suspect *s = &g->v->suspects[g->at[i]];
    struct sl_verify_route *report = &g->r->report;
    if (o->refused) {
        struct sl_finding f = {.result = SL_FINDING_NOT_COMPARABLE,
                               .source_key = g->entries[i].key,
                               .code = o->refused->code ? o->refused->code : "NoSuchKey",
                               .why = o->refused->why ? o->refused->why : "the target refuses the row's key",
                               .is_forward = s->is_forward};
        sl_verify_report(g->v, g->r, &f);
        return true;
    }
    enum sl_looks_result result = sl_looks_take(&s->looks, &o->look);
    if (result == SL_LOOKS_AGAIN && !is_overdue(g->v, s, g->ended_ms))
        return false;
    if (result == SL_LOOKS_RIGHT) {
        report->equal += s->is_forward;
    } else if (result == SL_LOOKS_DIFFERENT) {
        report->different++;
        report_rows(g, i, o, SL_FINDING_DIFFERENT);
    } else if (result == SL_LOOKS_UNSETTLED) {
        report->unsettled++;
        report_rows(g, i, o, SL_FINDING_UNSETTLED);
    } else {
        report->pending++;
        report_rows(g, i, o, SL_FINDING_PENDING);
    }
    return true;
}

enum sl_status sl_verify_look(struct sl_verify *v, int64_t deadline_ms, size_t *n, struct sl_error *error)
{
    struct group g = {.v = v,
                      .began_ms = sl_verify_wall_ms(v),
                      .through_ms = v->o.through_ms ? v->o.through_ms(v->o.arg) : 0};
    struct outcome outcomes[LOOK_ITEMS];
    choose(v, &g);
    *n = g.n;
    enum sl_status status = g.n ? read_group(&g, deadline_ms, error) : SL_OK;
    if (status != SL_OK)
        return status;
    for (size_t i = 0; i < g.n; i++)
        judge_item(&g, i, &outcomes[i]);
    for (size_t i = g.n; i > 0; i--) { /* from the last on, as the list is filled up from its end */
        if (!settle(&g, i - 1, &outcomes[i - 1]))
            continue;
        sl_verify_forget(v, g.at[i - 1]);
    }
    return SL_OK;
}
