/* {"sluice":{"backfill":{...}}}: a piece of a plan, from where the turn before it ended, until the deadline.
 * The answer is {"done":true,"piece":7,"items":n,"storedBytes":n,"routes":{...}}, with counts from the
 * piece's beginning on; while it is not done, "next" is the item of the next turn. */
#include "base/json_walk.h"
#include "base/json_write.h"
#include "runtime/work/job.h"
#include "runtime/work/item.h"

/* Counts of a thousand routes. */
#define STATE_BYTES ((size_t)256 * 1024)

struct turn {
    struct sl_work_item *item;
    struct sl_work_piece piece;
    struct sl_work_job job;
    bool is_done, has_moved;
    struct sl_error trouble; /* the last step's that is worth another try */
};

/* Waits, at most until the deadline: a turn that ended early because of its budget would give the next one a
 * fresh budget too soon. False when the deadline has come. */
static bool wait(struct turn *t, int64_t ms)
{
    struct sl_clock *clock = t->item->work->options.clock;
    int64_t left = t->item->call.deadline_ms - clock->now_ms(clock);
    if (ms > 0 && left > 0)
        clock->sleep_ms(clock, ms < left ? ms : left);
    return ms < left;
}

static enum sl_status run_turn(struct turn *t, struct sl_error *error)
{
    struct sl_backfill_step step = {0};
    while (!step.is_done && wait(t, step.wait_ms)) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = sl_backfill_step(t->job.backfill, t->item->call.deadline_ms, &step, &why);
        if (status == SL_REJECT || status == SL_FATAL) {
            *error = why;
            return status;
        }
        if (status == SL_RETRY)
            t->trouble = why;
        t->has_moved = t->has_moved || step.has_moved;
    }
    t->is_done = step.is_done;
    return SL_OK;
}

/* A turn that wrote nothing because of the outside world is a function error: the state machine waits before
 * it tries again, which a next turn does not. */
static enum sl_status judge_turn(const struct turn *t, struct sl_error *error)
{
    if (t->is_done || t->has_moved)
        return SL_OK;
    /* A next turn would come to the same: a file is read anew up to its place. */
    if (t->trouble.status == SL_OK)
        return sl_fail(error, SL_RETRY, "NothingDone",
                       "the turn ended before anything was written; give the function more time");
    *error = t->trouble;
    return error->status;
}

static enum sl_status add_next(struct turn *t, struct sl_span state, struct sl_buffer *out,
                               struct sl_error *error)
{
    struct sl_buffer next;
    sl_buffer_init_in(&next, t->item->call.arena, SL_WORK_NEXT_BYTES);
    t->piece.state = state;
    sl_work_piece_write(&t->piece, &next);
    if (next.failed)
        return sl_fail(
            error, SL_REJECT, "PlaceTooLong",
            "the place to go on from, with the routes' counts, needs more than %zu bytes: name fewer "
            "routes, or use `sluice backfill`",
            SL_WORK_NEXT_BYTES);
    sl_json_add_raw(out, "next", sl_buffer_span(&next));
    return SL_OK;
}

static enum sl_status answer_turn(struct turn *t, struct sl_error *error)
{
    struct sl_buffer state, *out = &t->item->answer->body;
    sl_buffer_init_in(&state, t->item->call.arena, STATE_BYTES);
    sl_backfill_write_state(t->job.backfill, &state);
    if (state.failed)
        return sl_fail(error, SL_REJECT, "PlaceTooLong",
                       "the routes' counts need more than %zu bytes: name fewer routes", STATE_BYTES);
    struct sl_span text = sl_buffer_span(&state);
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "done", t->is_done ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_integer(out, "piece", (int64_t)t->piece.piece);
    sl_json_add_raw(out, "items", sl_json_walk_member(text, SL_LIT("records")));
    sl_json_add_raw(out, "storedBytes", sl_json_walk_member(text, SL_LIT("storedBytes")));
    sl_json_add_raw(out, "routes", sl_json_walk_member(text, SL_LIT("routes")));
    enum sl_status status = t->is_done ? SL_OK : add_next(t, text, out, error);
    sl_buffer_add_char(out, '}');
    return status;
}

enum sl_status sl_work_backfill(struct sl_work_item *item, struct sl_error *error)
{
    struct turn t = {.item = item, .trouble = SL_NO_ERROR};
    struct sl_work *work = item->work;
    enum sl_status status = sl_work_piece_read(item->what, &work->config, item->call.arena, &t.piece, error);
    if (status != SL_OK)
        return status;
    status = sl_work_job_open(item, &t.piece, false, &t.job, error);
    if (status == SL_OK && t.piece.state.ptr)
        status = sl_backfill_read_state(t.job.backfill, t.piece.state, error);
    if (status == SL_OK)
        status = run_turn(&t, error);
    if (status == SL_OK)
        status = judge_turn(&t, error);
    if (status == SL_OK)
        status = answer_turn(&t, error);
    if (status == SL_OK)
        sl_log(work->options.log, SL_INFO, "piece %u: %s", (unsigned)t.piece.piece,
               t.is_done ? "done" : "goes on in the next turn");
    sl_work_job_close(&t.job);
    return status;
}
