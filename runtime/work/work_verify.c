/* {"sluice":{"piece":{"do":"verify",...}}} and "repair": one turn over a piece, from where the turn before it
 * ended, until the deadline. The answer is {"done":true,"piece":7,"items":n,"rows":n,"equal":n,...,
 * "routes":{...}}, of a repair with "repaired":{...}, counted from the piece's beginning; while it is not
 * done, "next" is the item of the next turn.
 *
 * What is found is written as objects of JSON lines: they are the pieces of a repair. */
#include "base/json_write.h"
#include "data/repair/audit.h"
#include "data/repair/findings.h"
#include "data/repair/sum.h"
#include "data/source/budget.h"
#include "data/verify/summary.h"
#include "runtime/work/item.h"
#include "runtime/work/lines.h"
#include "runtime/work/results.h"
#include "runtime/work/verify.h"

#define LINE_BYTES  ((size_t)1024 * 1024)
#define PLACE_BYTES ((size_t)64 * 1024 * 1024) /* 50,000 suspects with keys of 1 KB */

#define ROW_MS   30000
#define RETRIES  20 /* steps in a row that could not read */
#define RETRY_MS 1000

struct turn {
    struct sl_work_verification v; /* first: its callbacks get it */
    struct sl_work_item *item;
    struct sl_verify *verify;
    struct sl_object_port *place;
    int64_t until_ms; /* no step is begun after it */
    struct sl_budget reads, writes;
    struct sl_table_units paid;
    struct sl_work_lines lines; /* of findings, or of repairs */
    unsigned n_saved;
    struct sl_finding_repairs repairs;
    struct sl_arena *row;    /* of one finding */
    struct sl_error trouble; /* the last step's that is worth another try */
    bool has_moved;
};

static const struct sl_work_verify_piece *piece_of(const struct turn *t)
{
    return &t->v.piece;
}

static int64_t now_ms(const struct turn *t)
{
    struct sl_clock *clock = t->item->work->options.clock;
    return clock->now_ms(clock);
}

/* ---- objects ---- */

static struct sl_span place_key(const struct turn *t, uint64_t turn)
{
    return sl_span_str(sl_arena_printf(t->item->call.arena, SL_WORK_FINDINGS "%.*s/places/%s-%06u-%04u.json",
                                       SL_ARG(piece_of(t)->run), piece_of(t)->is_repair ? "repair" : "verify",
                                       (unsigned)piece_of(t)->piece, (unsigned)turn));
}

/* ---- what is found ---- */

/* The row as it is, before it is written. */
static bool keep(void *arg, const struct sl_finding *finding, struct sl_span after)
{
    struct turn *t = arg;
    struct sl_buffer line;
    sl_buffer_init_in(&line, t->row, SL_WORK_LINES_BYTES);
    sl_audit_saved(finding, after, &line);
    return !line.failed &&
           sl_work_put(t->item->work, sl_work_lines_name(&t->lines, SL_WORK_REPAIRS "saved/", t->n_saved++),
                       sl_buffer_span(&line), &t->item->call, &t->lines.failure) == SL_OK;
}

static void repair(struct turn *t, const struct sl_finding *finding)
{
    struct sl_repair_outcome outcome;
    struct sl_buffer line;
    struct sl_clock *clock = t->item->work->options.clock;
    sl_repair_finding(&t->repairs, finding, now_ms(t) + ROW_MS, t->row, &outcome);
    sl_buffer_init_in(&line, t->row, LINE_BYTES);
    sl_audit_line(finding, &outcome, clock->wall_ns(clock) / 1000000, false, &line);
    sl_work_lines_add(&t->lines, sl_buffer_span(&line));
    sl_arena_reset(t->row);
}

/* What is added to a total holds whatever it is now (data/repair/sum.h): nothing is looked at again. */
static void repair_sum(struct turn *t, struct sl_span text)
{
    struct sl_audit_sum sum;
    struct sl_repair_outcome outcome;
    struct sl_span added;
    struct sl_buffer line;
    struct sl_clock *clock = t->item->work->options.clock;
    if (sl_audit_sum_read(text, t->row, &sum)) {
        sl_repair_audit_sum(&t->repairs.rows, t->repairs.pipeline, &sum, now_ms(t) + ROW_MS, t->row, &added,
                            &outcome);
        sl_buffer_init_in(&line, t->row, LINE_BYTES);
        sl_audit_sum_line(&sum, added, &outcome, clock->wall_ns(clock) / 1000000, false, &line);
        sl_work_lines_add(&t->lines, sl_buffer_span(&line));
    }
    sl_arena_reset(t->row);
}

static void on_found(void *arg, const struct sl_finding *finding, struct sl_span line)
{
    struct turn *t = arg;
    if (!piece_of(t)->is_repair)
        sl_work_lines_add(&t->lines, line);
    else if (finding->result == SL_FINDING_DIFFERENT)
        repair(t, finding);
}

/* ---- the turn ---- */

/* The findings of a repair: in its first turn they become items that are looked at once more. No piece
 * removes more rows than it has findings of such rows: so all of them together hold to what the plan allowed.
 */
static enum sl_status take_findings(struct turn *t, struct sl_error *error)
{
    struct sl_span text;
    enum sl_finding_line what = SL_FINDING_NONE;
    enum sl_status status = sl_work_read_object(t->place, piece_of(t)->findings, SL_WORK_LINES_BYTES * 2,
                                                &t->item->call, &text, error);
    while (status == SL_OK && text.len) {
        const struct sl_span line = sl_span_cut(&text, '\n');
        t->repairs.rows.max_removals += sl_finding_line_is_removal(line);
        if (piece_of(t)->turn == 0)
            status = sl_repair_take_line(t->verify, t->item->work->options.pipeline, line,
                                         t->item->call.arena, &what, error);
        if (status == SL_OK && what == SL_FINDING_OTHER && sl_finding_line_is_of_totals(line))
            repair_sum(t, line);
    }
    sl_error_context(error, "%.*s", SL_ARG(piece_of(t)->findings));
    return status;
}

static enum sl_status open_turn(struct turn *t, struct sl_error *error)
{
    struct sl_span place = {0};
    enum sl_status status = sl_work_place(t->item->work, &t->place, error);
    if (status == SL_OK && piece_of(t)->turn)
        status = sl_work_read_object(t->place, place_key(t, piece_of(t)->turn), PLACE_BYTES, &t->item->call,
                                     &place, error);
    if (status == SL_OK)
        status = sl_verify_open(&t->v.options, place, &t->verify, error);
    if (status != SL_OK || !piece_of(t)->is_repair)
        return status;
    sl_finding_repairs_init(&t->repairs);
    t->repairs.pipeline = t->item->work->options.pipeline;
    t->repairs.rows.may_remove = piece_of(t)->may_delete;
    t->repairs.keep = piece_of(t)->saves ? keep : NULL;
    t->repairs.arg = t;
    memcpy(t->repairs.rows.outcomes, piece_of(t)->outcomes, sizeof(t->repairs.rows.outcomes));
    return take_findings(t, error);
}

/* Pays for what the last step used. False: the deadline comes first. */
static bool pay(struct turn *t)
{
    const struct sl_table_units *used = &t->v.ground.units;
    sl_budget_use(&t->reads, used->read - t->paid.read);
    sl_budget_use(&t->writes, used->write - t->paid.write);
    t->paid = *used;
    int64_t now = now_ms(t);
    int64_t read_ms = sl_budget_wait_ms(&t->reads, now), write_ms = sl_budget_wait_ms(&t->writes, now);
    return sl_work_wait(t->item, read_ms > write_ms ? read_ms : write_ms, t->until_ms);
}

static enum sl_status run_turn(struct turn *t, struct sl_error *error)
{
    struct sl_clock *clock = t->item->work->options.clock;
    unsigned failures = 0;
    t->until_ms = sl_work_until_ms(t->item);
    sl_budget_init(&t->reads, piece_of(t)->read_units, now_ms(t));
    sl_budget_init(&t->writes, piece_of(t)->write_units, now_ms(t));
    while (failures < RETRIES && t->lines.failure.status == SL_OK && !sl_verify_progress(t->verify).is_done &&
           pay(t)) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = sl_verify_step(t->verify, t->until_ms, &why);
        if (status == SL_REJECT || status == SL_FATAL) {
            *error = why;
            return status;
        }
        failures = status == SL_RETRY ? failures + 1 : 0;
        t->has_moved = t->has_moved || status == SL_OK;
        if (status == SL_RETRY) {
            t->trouble = why;
            clock->sleep_ms(clock, RETRY_MS);
        }
    }
    if (sl_work_lines_end(&t->lines, error) == SL_OK && !t->has_moved && t->trouble.status != SL_OK)
        *error = t->trouble;
    return error->status;
}

static enum sl_status add_next(struct turn *t, struct sl_buffer *out, struct sl_error *error)
{
    struct sl_buffer next, text;
    struct sl_work_verify_piece piece = *piece_of(t);
    piece.turn++;
    memcpy(piece.outcomes, t->repairs.rows.outcomes, sizeof(piece.outcomes));
    sl_buffer_init_in(&next, t->item->call.arena, SL_WORK_NEXT_BYTES);
    sl_work_verify_piece_write(&piece, &next);
    if (next.failed)
        return sl_fail(error, SL_REJECT, "PlaceTooLong",
                       "the item of the next turn needs more than %zu bytes: name fewer routes",
                       SL_WORK_NEXT_BYTES);
    sl_json_add_raw(out, "next", sl_buffer_span(&next));
    sl_buffer_init(&text, PLACE_BYTES);
    sl_verify_place(t->verify, &text);
    enum sl_status status =
        text.failed
            ? sl_fail(error, SL_REJECT, "PlaceTooLong",
                      "the items that are to be looked at again need more than %zu bytes", PLACE_BYTES)
            : sl_work_put(t->item->work, place_key(t, piece.turn), sl_buffer_span(&text), &t->item->call,
                          error);
    sl_buffer_clean_up(&text);
    return status;
}

static enum sl_status answer_turn(struct turn *t, struct sl_error *error)
{
    struct sl_verify_route sum = {.name = ""};
    struct sl_verify_progress progress = sl_verify_progress(t->verify);
    struct sl_buffer *out = &t->item->answer->body;
    sl_verify_sum(t->verify, &sum);
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "done", progress.is_done ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_integer(out, "piece", (int64_t)piece_of(t)->piece);
    sl_json_add_integer(out, "items", (int64_t)progress.items);
    sl_json_add_integer(out, "rows", (int64_t)progress.rows);
    sl_verify_add_counts(out, &sum);
    if (piece_of(t)->is_repair)
        sl_work_add_outcomes(out, "repaired", t->repairs.rows.outcomes);
    sl_verify_add_routes(out, t->verify);
    enum sl_status status = progress.is_done ? SL_OK : add_next(t, out, error);
    sl_buffer_add_char(out, '}');
    return status;
}

enum sl_status sl_work_verify(struct sl_work_item *item, struct sl_error *error)
{
    struct turn t = {.item = item, .trouble = SL_NO_ERROR};
    struct sl_work *work = item->work;
    enum sl_status status =
        sl_work_verify_piece_read(item->what, &work->config, item->call.arena, &t.v.piece, error);
    if (status != SL_OK)
        return status;
    t.row = sl_arena_new(64 * 1024);
    sl_work_lines_init(&t.lines, item, t.v.piece.is_repair ? SL_WORK_REPAIRS : SL_WORK_FINDINGS,
                       t.v.piece.run, t.v.piece.piece, t.v.piece.turn);
    t.v.options.found = on_found;
    status = sl_work_verification_open(&t.v, item, error);
    if (status == SL_OK)
        status = open_turn(&t, error);
    if (status == SL_OK)
        status = run_turn(&t, error);
    if (status == SL_OK)
        status = answer_turn(&t, error);
    if (status == SL_OK)
        sl_log(work->options.log, SL_INFO, "%s: piece %u: %s", t.v.piece.is_repair ? "repair" : "verify",
               (unsigned)t.v.piece.piece,
               sl_verify_progress(t.verify).is_done ? "done" : "goes on in the next turn");
    sl_verify_close(t.verify);
    sl_work_verification_close(&t.v);
    sl_finding_repairs_clean_up(&t.repairs);
    sl_work_lines_clean_up(&t.lines);
    sl_arena_destroy(t.row);
    return status;
}
