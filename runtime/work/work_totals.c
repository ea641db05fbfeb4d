/* {"sluice":{"piece":{"do":"totals",...}}}: one turn over a segment, whose rows are added up, or the
 * judgement of a share of the groups. The answer of a scan is {"done":true,"piece":7,"rows":n,"sums":n,
 * "last":"NAME"}, or while it is not done has "next", the item of the next turn; of a judgement
 * {"done":true,"piece":3,"equal":n,"different":n,"unsettled":n,"left":n}. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/source/budget.h"
#include "data/source/segment.h"
#include "data/verify/totals_judge.h"
#include "data/verify/totals_part.h"
#include "runtime/work/lines.h"
#include "runtime/work/totals.h"
#include "runtime/work/totals_piece.h"
#include "runtime/work/verify_piece.h"

#include <inttypes.h>
#include <stdlib.h>

/* A turn that has so many sums ends: 100 MB. What one page adds to them fits, too: 1 MB of rows. */
#define TURN_SUMS ((size_t)50000)
#define MOST_SUMS ((size_t)SL_TOTALS_GROUPS)

#define LINE_BYTES ((size_t)64 * 1024)
#define PAGE_BYTES ((size_t)1024 * 1024)

#define PAGE_MS  60000
#define RETRIES  20 /* pages in a row that could not be read */
#define RETRY_MS 1000

struct turn {
    struct sl_work_item *item;
    struct sl_work_totals_piece piece;
    struct sl_totals_target *t;
    struct sl_totals_sums sums;
    struct sl_totals_rows rows;
    struct sl_arena *page;
    struct sl_buffer key;
    int64_t until_ms;
};

static struct sl_work_steps steps_of(const struct turn *t)
{
    return sl_work_totals_steps(t->item, t->piece.run);
}

static struct sl_clock *clock_of(const struct turn *t)
{
    return t->item->work->options.clock;
}

static void begin(struct turn *t, enum sl_totals_scan scan)
{
    t->rows =
        (struct sl_totals_rows){.t = t->t, .sums = &t->sums, .scan = scan, .arena = t->page, .key = &t->key};
}

/* ---- a scan ---- */

static enum sl_status read_page(struct turn *t, struct sl_segment *segment, struct sl_budget *budget,
                                struct sl_error *error)
{
    int64_t now_ms = clock_of(t)->now_ms(clock_of(t)), left_ms = t->item->call.deadline_ms - now_ms;
    const struct sl_call call = {.arena = t->page,
                                 .deadline_ms = now_ms + (left_ms < PAGE_MS ? left_ms : PAGE_MS)};
    const struct sl_table_scan scan = {
        .table = t->rows.scan == SL_TOTALS_TOTAL ? sl_span(NULL, 0) : t->t->tables[t->piece.table],
        .segment = segment->number,
        .of = (uint32_t)t->piece.of,
        .after = sl_span_str(segment->after),
        .is_consistent = true};
    struct sl_table_page page;
    sl_arena_reset(t->page);
    t->t->port->scan(t->t->port, &scan, 1, &page, &call);
    sl_budget_use(budget, page.units);
    if (page.result.status != SL_OK)
        return sl_fail(error, page.result.status == SL_RETRY ? SL_RETRY : SL_FATAL, page.result.code, "%s",
                       page.result.text);
    sl_totals_take_page(&t->rows, t->piece.table, &page);
    t->piece.rows += page.n;
    return t->sums.is_full
               ? sl_fail(error, SL_FATAL, "TooManyGroups",
                         "%s: the rows of one page count into more than %zu totals", t->t->url, MOST_SUMS)
               : sl_segment_move(segment, &page, NULL, error);
}

/* Waits for the budget. False: the turn ends first. */
static bool pay(const struct turn *t, struct sl_budget *budget)
{
    return sl_work_wait(t->item, sl_budget_wait_ms(budget, clock_of(t)->now_ms(clock_of(t))), t->until_ms);
}

static enum sl_status read_pages(struct turn *t, struct sl_segment *segment, struct sl_error *error)
{
    struct sl_budget budget;
    unsigned failures = 0, pages = 0;
    sl_budget_init(&budget, t->piece.read_units, clock_of(t)->now_ms(clock_of(t)));
    while (failures < RETRIES && !segment->is_done && t->sums.n < TURN_SUMS && pay(t, &budget)) {
        sl_error_clear(error);
        enum sl_status status = read_page(t, segment, &budget, error);
        if (status == SL_REJECT || status == SL_FATAL)
            return status;
        failures = status == SL_RETRY ? failures + 1 : 0;
        pages += status == SL_OK;
        if (status == SL_RETRY)
            clock_of(t)->sleep_ms(clock_of(t), RETRY_MS);
    }
    if (pages)
        sl_error_clear(error);
    else if (error->status == SL_OK)
        (void)sl_fail(error, SL_RETRY, "NothingDone", "the turn ended before anything was read");
    return error->status;
}

static enum sl_status put_sums(struct turn *t, struct sl_span *name, struct sl_error *error)
{
    const struct sl_part_head head = {.before = t->piece.before, .digest = t->rows.digest};
    const struct sl_work_steps steps = steps_of(t);
    struct sl_buffer body;
    *name = sl_span_str(sl_arena_printf(t->item->call.arena, "%" PRIu64 "-%s-t%" PRIu64 "-%06u-%04u-%s",
                                        t->piece.round, sl_work_totals_step_name(t->piece.step),
                                        t->piece.target, (unsigned)t->piece.piece, (unsigned)t->piece.turn,
                                        t->item->invocation->request_id));
    sl_buffer_init(&body, SL_WORK_PART_BYTES);
    enum sl_status status = sl_totals_part_write(&t->sums, t->rows.scan, &head, &body, error);
    if (status == SL_OK)
        status = sl_work_steps_put(&steps, *name, sl_buffer_span(&body), error);
    sl_buffer_clean_up(&body);
    return status;
}

static void answer_scan(struct turn *t, const struct sl_segment *segment, struct sl_span name)
{
    struct sl_buffer *out = &t->item->answer->body;
    t->piece.sums += t->sums.n;
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "done", segment->is_done ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_integer(out, "piece", (int64_t)t->piece.piece);
    sl_json_add_integer(out, "rows", (int64_t)t->piece.rows);
    sl_json_add_integer(out, "sums", (int64_t)t->piece.sums);
    sl_json_add_member(out, "last", name);
    if (!segment->is_done) {
        t->piece.turn++;
        t->piece.after = sl_span_str(segment->after);
        t->piece.before = name;
        sl_json_add_raw(out, "next", SL_LIT(""));
        sl_work_totals_piece_write(&t->piece, out);
    }
    sl_buffer_add_char(out, '}');
}

static enum sl_status scan(struct turn *t, struct sl_error *error)
{
    struct sl_segment segment = {.number = (uint32_t)t->piece.segment};
    struct sl_span name;
    if (t->piece.step == SL_WORK_LEDGERS && t->piece.table >= t->t->n_tables)
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "sluice.piece.table: no ledger has so many");
    if (t->piece.after.ptr)
        sl_segment_go_on(&segment, t->piece.after);
    begin(t, t->piece.step == SL_WORK_TOTALS ? SL_TOTALS_TOTAL : SL_TOTALS_FIRST);
    t->rows.is_apart = true;
    enum sl_status status = read_pages(t, &segment, error);
    if (status == SL_OK)
        status = put_sums(t, &name, error);
    if (status == SL_OK)
        answer_scan(t, &segment, name);
    sl_segment_clean_up(&segment);
    return status;
}

/* ---- a judgement ---- */

static enum sl_status take_part(void *arg, const struct sl_work_part *part, struct sl_error *error)
{
    struct turn *t = arg;
    t->rows.digest += part->head->digest;
    return sl_totals_part_take(&t->rows, part->bytes, error);
}

/* All that a step's scans of this piece's totals wrote. */
static enum sl_status take_step(struct turn *t, uint64_t round, enum sl_work_totals_step step,
                                enum sl_totals_scan scan, struct sl_error *error)
{
    struct sl_arena *arena = t->item->call.arena;
    const struct sl_work_steps steps = steps_of(t);
    const char *own = sl_arena_printf(arena, "%" PRIu64 "-%s-t%" PRIu64 "-", round,
                                      sl_work_totals_step_name(step), t->piece.target);
    const struct sl_work_wanted wanted = {.from = t->piece.from, .until = t->piece.to};
    begin(t, scan);
    return sl_work_steps_each(&steps, sl_work_totals_index(round, step, arena), sl_span_str(own), &wanted,
                              take_part, t, error);
}

static struct sl_span rest_name(const struct turn *t, uint64_t round)
{
    return sl_span_str(sl_arena_printf(t->item->call.arena, "%" PRIu64 "-rest-t%" PRIu64 "-%06u", round,
                                       t->piece.target, (unsigned)t->piece.piece));
}

/* From the second round on, what was left of the first ones is all that is judged. (The others' sums are
 * still needed: they say which rows of the totals are groups of their own.) */
static enum sl_status take_rest(struct turn *t, struct sl_error *error)
{
    const struct sl_work_steps steps = steps_of(t);
    struct sl_span text;
    if (t->piece.round == 1)
        return SL_OK;
    enum sl_status status = sl_work_steps_get(&steps, rest_name(t, t->piece.round - 1), &text, error);
    begin(t, SL_TOTALS_FIRST);
    if (status == SL_OK)
        status = sl_totals_rest_take(&t->rows, text, error);
    t->sums.is_closed = true;
    return status;
}

static enum sl_status put_rest(struct turn *t, struct sl_error *error)
{
    const struct sl_work_steps steps = steps_of(t);
    struct sl_buffer body;
    sl_buffer_init(&body, SL_WORK_PART_BYTES);
    enum sl_status status = sl_totals_rest_write(&t->sums, &body, error);
    if (status == SL_OK)
        status = sl_work_steps_put(&steps, rest_name(t, t->piece.round), sl_buffer_span(&body), error);
    sl_buffer_clean_up(&body);
    return status;
}

static void on_found(void *arg, struct sl_span line)
{
    sl_work_lines_add(arg, line);
}

static void answer_judgement(struct turn *t, const struct sl_totals_counts *counts, size_t left)
{
    struct sl_buffer *out = &t->item->answer->body;
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "done", SL_LIT("true"));
    sl_json_add_integer(out, "piece", (int64_t)t->piece.piece);
    sl_json_add_integer(out, "equal", (int64_t)counts->equal);
    sl_json_add_integer(out, "different", (int64_t)counts->different);
    sl_json_add_integer(out, "unsettled", (int64_t)counts->unsettled);
    sl_json_add_integer(out, "left", (int64_t)left);
    sl_buffer_add_char(out, '}');
}

/* The sums are there: what they prove is found, counted, and kept for the next round. */
static enum sl_status settle(struct turn *t, bool has_moved, struct sl_error *error)
{
    struct sl_totals_counts counts = {.equal = 0};
    struct sl_work_lines lines;
    struct sl_buffer line;
    sl_work_lines_init(&lines, t->item, SL_WORK_FINDINGS, t->piece.run, t->piece.piece, t->piece.round);
    sl_buffer_init(&line, LINE_BYTES);
    struct sl_totals_judge judge = {.t = t->t,
                                    .sums = &t->sums,
                                    .counts = &counts,
                                    .has_moved = has_moved,
                                    .arena = t->page,
                                    .line = &line,
                                    .found = on_found,
                                    .arg = &lines};
    size_t left = sl_totals_judge_round(&judge);
    enum sl_status status = SL_OK;
    if (t->piece.round == t->piece.rounds)
        sl_totals_judge_rest(&judge);
    else
        status = put_rest(t, error);
    if (status == SL_OK)
        status = sl_work_lines_end(&lines, error);
    if (status == SL_OK)
        answer_judgement(t, &counts, left);
    sl_work_lines_clean_up(&lines);
    sl_buffer_clean_up(&line);
    return status;
}

static enum sl_status judge(struct turn *t, struct sl_error *error)
{
    const uint64_t round = t->piece.round;
    enum sl_status status = take_rest(t, error);
    if (status == SL_OK)
        status = take_step(t, round - 1, SL_WORK_LEDGERS, SL_TOTALS_FIRST, error);
    uint64_t before = t->rows.digest;
    if (status == SL_OK)
        status = take_step(t, round, SL_WORK_TOTALS, SL_TOTALS_TOTAL, error);
    if (status == SL_OK)
        status = take_step(t, round, SL_WORK_LEDGERS, SL_TOTALS_SECOND, error);
    if (status == SL_OK && t->sums.is_full)
        status = sl_fail(error, SL_FATAL, "TooManyGroups",
                         "%s: a share of the groups has more than %zu: verify with `sluice verify`",
                         t->t->url, MOST_SUMS);
    return status == SL_OK ? settle(t, t->rows.digest != before, error) : status;
}

/* ---- the item ---- */

static enum sl_status do_turn(struct turn *t, struct sl_error *error)
{
    struct sl_totals_target *targets;
    size_t n = 0;
    enum sl_status status =
        sl_work_totals_find(t->item, t->piece.routes, &t->piece.totals, &targets, &n, error);
    if (status == SL_OK && (t->piece.target >= n || !targets[t->piece.target].is_chosen))
        status = sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                         "sluice.piece.target: these are no totals that are verified");
    if (status != SL_OK)
        return status;
    t->t = &targets[t->piece.target];
    sl_totals_sums_init(&t->sums, MOST_SUMS, 0, 1);
    return t->piece.step == SL_WORK_JUDGE ? judge(t, error) : scan(t, error);
}

enum sl_status sl_work_verify_totals(struct sl_work_item *item, struct sl_error *error)
{
    struct turn t = {.item = item, .until_ms = sl_work_until_ms(item)};
    enum sl_status status =
        sl_work_totals_piece_read(item->what, &item->work->config, item->call.arena, &t.piece, error);
    if (status != SL_OK)
        return status;
    t.page = sl_arena_new(PAGE_BYTES);
    sl_buffer_init(&t.key, LINE_BYTES);
    status = do_turn(&t, error);
    if (status == SL_OK)
        sl_log(item->work->options.log, SL_INFO, "totals: round %u, %s: piece %u: a turn is done",
               (unsigned)t.piece.round, sl_work_totals_step_name(t.piece.step), (unsigned)t.piece.piece);
    sl_totals_sums_clean_up(&t.sums);
    sl_buffer_clean_up(&t.key);
    sl_arena_destroy(t.page);
    return status;
}
