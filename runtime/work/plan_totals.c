/* A verification of totals, step by step: the ledgers are scanned, then in rounds the totals and the ledgers
 * again, and what that proves is judged (data/verify/totals.h). Each step is a plan, its pieces, and their
 * sum, which says what is planned next. */
#include "runtime/work/totals.h"

#include "base/json_write.h"
#include "base/span.h"
#include "data/verify/totals_part.h"
#include "handlers/pipeline/route.h"
#include "runtime/work/list.h"
#include "runtime/work/plan_verify.h"
#include "runtime/work/totals_piece.h"

#include <inttypes.h>
#include <stdlib.h>

/* Sums that one judgement takes. */
#define PART_SUMS 50000

enum sl_status sl_work_totals_find(const struct sl_work_item *item, struct sl_span routes, struct sl_span *of,
                                   struct sl_totals_target **out, size_t *n, struct sl_error *error)
{
    struct sl_pipeline *pipeline = item->work->options.pipeline;
    bool *is_chosen = NULL;
    size_t chosen = 0;
    if (sl_route_choose(pipeline, routes, item->call.arena, &is_chosen, error) != SL_OK)
        return error->status;
    *n = sl_totals_find(pipeline, is_chosen, item->call.arena, out);
    for (size_t i = 0; i < *n; i++) {
        struct sl_totals_target *t = &(*out)[i];
        t->is_chosen = t->is_chosen && t->port->scan;
        chosen += t->is_chosen;
    }
    if (!chosen)
        return sl_fail(error, SL_REJECT, "NothingToVerify",
                       "none of the routes keeps totals with a ledger in a table that can be read");
    return sl_work_steps_are_of(item, sl_totals_digest(*out, *n), of, "OtherTotals", "totals", error);
}

/* ---- the plan ---- */

struct plan {
    struct sl_work_item *item;
    struct sl_work_totals_state state;
    struct sl_work_totals_piece piece;
    struct sl_work_list list;
};

static size_t tables_of(const struct plan *plan, const struct sl_totals_target *t)
{
    return plan->state.step == SL_WORK_LEDGERS ? t->n_tables : 1;
}

static void add_scans(struct plan *plan, const struct sl_totals_target *t)
{
    for (size_t i = 0; i < tables_of(plan, t); i++)
        for (uint64_t segment = 0; segment < plan->piece.of; segment++) {
            plan->piece.piece = plan->list.pieces;
            plan->piece.table = i;
            plan->piece.segment = segment;
            sl_work_totals_piece_write(&plan->piece, sl_work_list_next(&plan->list));
        }
}

static void add_judgements(struct plan *plan)
{
    for (uint64_t i = 0; i < plan->state.parts; i++) {
        plan->piece.piece = plan->list.pieces;
        plan->piece.from = SL_PART_SHARES * i / plan->state.parts;
        plan->piece.to = SL_PART_SHARES * (i + 1) / plan->state.parts;
        sl_work_totals_piece_write(&plan->piece, sl_work_list_next(&plan->list));
    }
}

static uint64_t count_pieces(const struct plan *plan, const struct sl_totals_target *targets, size_t n)
{
    uint64_t pieces = 0;
    for (size_t i = 0; i < n; i++)
        if (targets[i].is_chosen)
            pieces += plan->state.step == SL_WORK_JUDGE ? plan->state.parts
                                                        : tables_of(plan, &targets[i]) * plan->piece.of;
    return pieces;
}

static enum sl_status add_pieces(struct plan *plan, const struct sl_totals_target *targets, size_t n,
                                 struct sl_error *error)
{
    const struct sl_work_config *config = &plan->item->work->config;
    uint64_t pieces = count_pieces(plan, targets, n);
    if (pieces > SL_WORK_PIECES_MAX)
        return sl_fail(error, SL_REJECT, "TooManyPieces",
                       "the tables' segments are %" PRIu64
                       " pieces; a plan has %d at most: name fewer \"routes\", or use fewer segments",
                       pieces, SL_WORK_PIECES_MAX);
    plan->piece.read_units = config->read_units / sl_work_list_workers(config, pieces);
    for (size_t i = 0; i < n; i++) {
        plan->piece.target = i;
        if (targets[i].is_chosen && plan->state.step == SL_WORK_JUDGE)
            add_judgements(plan);
        else if (targets[i].is_chosen)
            add_scans(plan, &targets[i]);
    }
    return SL_OK;
}

static void count_not_judged(struct plan *plan, const struct sl_totals_target *targets, size_t n)
{
    plan->state.not_judged = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; targets[i].is_chosen && k < targets[i].counted.n; k++)
            plan->state.not_judged += !sl_totals_is_judged(&targets[i], targets[i].counted.list[k]);
}

static void answer(struct plan *plan, struct sl_span run)
{
    struct sl_buffer *out = &plan->item->answer->body;
    sl_work_list_answer_now(&plan->list, plan->item);
    sl_json_add_raw(out, "what", SL_LIT(""));
    sl_work_totals_state_write(&plan->state, run, out);
    sl_buffer_add_char(out, '}');
}

enum sl_status sl_work_plan_totals(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error)
{
    struct plan plan = {.item = item};
    struct sl_totals_target *targets;
    size_t n = 0;
    enum sl_status status =
        sl_work_totals_state_read(given, SL_WORK_INPUT, item->call.arena, &plan.state, error);
    if (status == SL_OK)
        status = sl_work_totals_find(item, plan.state.routes, &plan.state.totals, &targets, &n, error);
    if (status != SL_OK)
        return status;
    plan.piece = (struct sl_work_totals_piece){.step = plan.state.step,
                                               .run = run,
                                               .routes = plan.state.routes,
                                               .totals = plan.state.totals,
                                               .round = plan.state.round,
                                               .rounds = plan.state.rounds,
                                               .of = item->work->config.segments};
    count_not_judged(&plan, targets, n);
    sl_work_list_init(&plan.list);
    status = add_pieces(&plan, targets, n, error);
    const char *name = sl_arena_printf(item->call.arena, "%.*s.%" PRIu64 "-%s", SL_ARG(run), plan.state.round,
                                       sl_work_totals_step_name(plan.state.step));
    if (status == SL_OK)
        status = sl_work_list_write(&plan.list, item, name, error);
    if (status == SL_OK)
        answer(&plan, run);
    sl_work_list_clean_up(&plan.list);
    return status;
}

/* ---- what comes next ---- */

static enum sl_status go_on(struct sl_work_item *item, const struct sl_work_totals_state *state,
                            struct sl_span run, json_t *counts, struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init_in(&text, item->call.arena, 2 * SL_WORK_NEXT_BYTES);
    sl_work_totals_state_write(state, run, &text);
    return sl_work_steps_again(sl_buffer_span(&text), counts, error);
}

static void end(const struct sl_work_totals_state *state, json_t *counts)
{
    uint64_t unsettled = sl_work_counted(counts, "unsettled");
    json_object_set_new(counts, "rows", json_integer((json_int_t)state->rows));
    json_object_set_new(counts, "equal", json_integer((json_int_t)state->equal));
    json_object_set_new(counts, "different", json_integer((json_int_t)state->different));
    json_object_set_new(counts, "not_judged", json_integer((json_int_t)state->not_judged));
    json_object_set_new(counts, "outcome",
                        json_string(state->different ? state->repairs ? "ask" : "different"
                                    : unsettled      ? "unproven"
                                                     : "equal"));
}

static void step_on(struct sl_work_totals_state *state)
{
    if (state->step == SL_WORK_TOTALS) {
        state->step = SL_WORK_LEDGERS;
    } else if (state->step == SL_WORK_LEDGERS && state->round > 0) {
        state->step = SL_WORK_JUDGE;
    } else {
        state->step = SL_WORK_TOTALS;
        state->round++;
    }
}

enum sl_status sl_work_judge_totals(struct sl_work_item *item, struct sl_span run, struct sl_span what,
                                    json_t *counts, struct sl_error *error)
{
    struct sl_work_totals_state state;
    enum sl_status status =
        sl_work_totals_state_read(what, "sluice.sum.what", item->call.arena, &state, error);
    const struct sl_work_steps steps = sl_work_totals_steps(item, run);
    if (status == SL_OK && state.step != SL_WORK_JUDGE)
        status = sl_work_steps_keep(&steps, sl_work_totals_index(state.round, state.step, item->call.arena),
                                    counts, error);
    if (status != SL_OK)
        return status;
    state.rows += sl_work_counted(counts, "rows");
    state.equal += sl_work_counted(counts, "equal");
    state.different += sl_work_counted(counts, "different");
    if (state.step == SL_WORK_JUDGE && (!sl_work_counted(counts, "left") || state.round == state.rounds)) {
        end(&state, counts);
        return SL_OK;
    }
    if (!state.parts)
        state.parts = sl_part_workers(sl_work_counted(counts, "sums"), PART_SUMS);
    step_on(&state);
    return go_on(item, &state, run, counts, error);
}
