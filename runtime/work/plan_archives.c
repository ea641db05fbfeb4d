/* A verification of archives, step by step: their objects are read, then those that came meanwhile, and what
 * was read is walked, item by item (data/verify/archive/walk.h). Each step is a plan, its pieces, and their
 * sum, which says what is planned next: another round of the step when one plan could not list all names. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/source/listing.h"
#include "handlers/pipeline/route.h"
#include "runtime/work/archives.h"
#include "runtime/work/archives_piece.h"
#include "runtime/work/list.h"
#include "runtime/work/plan_verify.h"

#include <inttypes.h>

/* Of a piece, as they are stored: a gigabyte or so of records. */
#define PIECE_BYTES ((uint64_t)128 * 1024 * 1024)

/* Changes that one walk sorts: 120 MB in TMPDIR, twice. */
#define WALK_CHANGES 1000000

#define KEY_BYTES ((size_t)8192)

enum sl_status sl_work_archives_find(const struct sl_work_item *item, struct sl_span routes,
                                     struct sl_span *of, struct sl_archive_target **out, size_t *n,
                                     struct sl_error *error)
{
    struct sl_pipeline *pipeline = item->work->options.pipeline;
    bool *is_chosen = NULL;
    if (sl_route_choose(pipeline, routes, item->call.arena, &is_chosen, error) != SL_OK)
        return error->status;
    *n = sl_archives_find(pipeline, is_chosen, item->call.arena, out);
    if (*n == 0)
        return sl_fail(error, SL_REJECT, "NothingToVerify", "none of the routes archives");
    return sl_work_steps_are_of(item, sl_archives_digest(*out, *n), of, "OtherArchives", "archives", error);
}

/* ---- the plan ---- */

struct plan {
    struct sl_work_item *item;
    struct sl_work_archives_state state;
    struct sl_work_archives_piece piece;
    struct sl_archive_target *targets;
    size_t n;
    struct sl_work_list list;

    /* Of the piece that is being filled. */
    struct sl_buffer last; /* a name */
    uint64_t objects, bytes;
    bool has_objects; /* the target, as far as it was listed */
    bool is_cut;      /* its other names are the next round's */
    int64_t until_ms;
};

static void add_piece(struct plan *plan)
{
    plan->piece.piece = plan->list.pieces;
    sl_work_archives_piece_write(&plan->piece, sl_work_list_next(&plan->list));
}

/* Each other target needs a piece at least. */
static bool is_over(const struct plan *plan, bool is_full)
{
    struct sl_clock *clock = plan->item->work->options.clock;
    return clock->now_ms(clock) > plan->until_ms ||
           (is_full && plan->list.pieces + 1 + plan->n > SL_WORK_PIECES_MAX);
}

static enum sl_status each_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct plan *plan = arg;
    bool is_full = plan->objects == plan->state.piece_objects || plan->bytes >= PIECE_BYTES;
    if (!sl_changes_are_in(entry->key))
        return SL_OK;
    plan->is_cut = plan->objects && is_over(plan, is_full);
    if (plan->is_cut)
        return sl_fail(error, SL_RETRY, SL_LISTING_ENOUGH, "a next round lists the others");
    if (is_full) {
        plan->piece.to = sl_buffer_span(&plan->last);
        add_piece(plan);
        plan->piece.after =
            sl_span(sl_arena_copy(plan->item->call.arena, plan->piece.to), plan->piece.to.len);
        plan->objects = plan->bytes = 0;
    }
    sl_buffer_reset(&plan->last);
    sl_buffer_add_span(&plan->last, entry->key);
    plan->objects++;
    plan->has_objects = true;
    plan->bytes += entry->bytes;
    return SL_OK;
}

/* Ranges of the names that are greater than `after`; the last one has no end, as the archive grows. */
static enum sl_status add_ranges(struct plan *plan, const struct sl_archive_target *t, struct sl_span after,
                                 struct sl_error *error)
{
    plan->objects = plan->bytes = 0;
    plan->has_objects = after.ptr != NULL;
    plan->piece.after = after;
    enum sl_status status = sl_listing_each(t->port, plan->item->work->options.clock, sl_span(NULL, 0), after,
                                            each_object, plan, error);
    sl_error_context(error, "%s", t->route);
    plan->piece.to = plan->is_cut ? sl_buffer_span(&plan->last) : sl_span(NULL, 0);
    if (status == SL_OK)
        add_piece(plan);
    if (status == SL_OK && !plan->has_objects) {
        sl_log(plan->item->work->options.log, SL_WARN,
               "archives: %s: there are no objects in %.*s, so nothing is proven", t->route, SL_ARG(t->url));
        plan->state.not_judged++;
    }
    return status;
}

static enum sl_status plan_read(struct plan *plan, struct sl_error *error)
{
    struct sl_work_archives_state *state = &plan->state;
    struct sl_span after = state->after;
    enum sl_status status = SL_OK;
    for (size_t i = state->target; i < plan->n && status == SL_OK && !plan->is_cut; i++) {
        const struct sl_archive_target *t = &plan->targets[i];
        plan->piece.target = state->target = i;
        if (sl_archive_is_verified(t)) {
            status = add_ranges(plan, t, after, error);
            after = sl_span(NULL, 0);
            continue;
        }
        sl_log(plan->item->work->options.log, SL_WARN, "archives: %s: the archive proves nothing: %s",
               t->route, t->why_not ? t->why_not : "it is not there, or it cannot be listed and read");
        plan->state.not_judged++;
    }
    if (status == SL_OK && !plan->list.pieces)
        return sl_fail(error, SL_REJECT, "NothingToVerify",
                       "none of the archives can be verified: the log says of each why");
    state->after = plan->is_cut ? sl_buffer_span(&plan->last) : sl_span(NULL, 0);
    state->pieces += plan->list.pieces;
    return status;
}

static enum sl_status plan_again(struct plan *plan, struct sl_error *error)
{
    const struct sl_work_steps steps = sl_work_archives_steps(plan->item, plan->piece.run);
    struct sl_span text, value;
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    enum sl_status status = sl_work_steps_get(
        &steps, sl_work_archives_pieces(plan->state.round, plan->item->call.arena), &text, error);
    if (status == SL_OK)
        status = sl_json_check(text, error);
    struct sl_json_walk walk = sl_json_walk(text);
    while (status == SL_OK && sl_json_walk_next(&walk, NULL, &value)) {
        struct sl_work_archives_piece piece;
        sl_arena_reset(arena);
        status = sl_work_archives_piece_read(value, arena, &piece, error);
        piece.step = SL_WORK_AGAIN;
        if (status == SL_OK)
            sl_work_archives_piece_write(&piece, sl_work_list_next(&plan->list));
    }
    sl_arena_destroy(arena);
    return status;
}

static void plan_walk(struct plan *plan)
{
    uint64_t parts = sl_part_workers(plan->state.counted.records, WALK_CHANGES);
    for (size_t i = 0; i < plan->n; i++)
        for (uint64_t part = 0; part < parts && sl_archive_is_verified(&plan->targets[i]); part++) {
            plan->piece.target = i;
            plan->piece.from = SL_PART_SHARES * part / parts;
            plan->piece.until = SL_PART_SHARES * (part + 1) / parts;
            add_piece(plan);
        }
}

static enum sl_status add_pieces(struct plan *plan, struct sl_error *error)
{
    if (plan->state.step == SL_WORK_READ)
        return plan_read(plan, error);
    if (plan->state.step == SL_WORK_AGAIN)
        return plan_again(plan, error);
    plan_walk(plan);
    return SL_OK;
}

static void answer(struct plan *plan, struct sl_span run)
{
    struct sl_buffer *out = &plan->item->answer->body;
    sl_work_list_answer_now(&plan->list, plan->item);
    sl_json_add_raw(out, "what", SL_LIT(""));
    sl_work_archives_state_write(&plan->state, run, out);
    sl_buffer_add_char(out, '}');
}

enum sl_status sl_work_plan_archives(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                     struct sl_error *error)
{
    struct plan plan = {.item = item, .until_ms = sl_work_until_ms(item)};
    struct sl_work_archives_state *state = &plan.state;
    const struct sl_work_steps steps = sl_work_archives_steps(item, run);
    enum sl_status status = sl_work_archives_state_read(given, SL_WORK_INPUT, item->call.arena, state, error);
    if (status == SL_OK)
        status = sl_work_archives_find(item, state->routes, &state->archives, &plan.targets, &plan.n, error);
    if (status != SL_OK)
        return status;
    plan.piece = (struct sl_work_archives_piece){.step = state->step,
                                                 .round = state->round,
                                                 .first = state->step == SL_WORK_READ ? state->pieces : 0,
                                                 .run = run,
                                                 .routes = state->routes,
                                                 .archives = state->archives};
    sl_work_list_init(&plan.list);
    sl_buffer_init(&plan.last, KEY_BYTES);
    status = add_pieces(&plan, error);
    const char *name =
        sl_arena_printf(item->call.arena, "%.*s.%s%s", SL_ARG(run), sl_work_archives_step_name(state->step),
                        sl_work_archives_round(state->round, item->call.arena));
    if (status == SL_OK)
        status = sl_work_list_write(&plan.list, item, name, error);
    if (status == SL_OK && state->step == SL_WORK_READ) /* (the role may not read plans) */
        status = sl_work_steps_put(&steps, sl_work_archives_pieces(state->round, item->call.arena),
                                   sl_buffer_span(&plan.list.body), error);
    if (status == SL_OK)
        answer(&plan, run);
    sl_buffer_clean_up(&plan.last);
    sl_work_list_clean_up(&plan.list);
    return status;
}

/* ---- what comes next ---- */

static void end(const struct sl_work_archives_state *state, json_t *counts)
{
    const struct sl_chain_counts *c = &state->counted;
    bool is_open = state->not_judged || c->unreadable || c->without_images;
    sl_work_archives_put_counts(c, counts);
    json_object_set_new(counts, "not_judged", json_integer((json_int_t)state->not_judged));
    json_object_set_new(counts, "outcome",
                        json_string(c->gaps || c->damaged ? "different"
                                    : is_open             ? "unproven"
                                                          : "equal"));
}

/* To the next round of the step, or to the next step. A walk is of all rounds. */
static void go_on(struct sl_work_archives_state *state)
{
    bool is_more = state->step == SL_WORK_READ ? state->after.ptr != NULL : state->round < state->last_round;
    state->last_round = state->step == SL_WORK_READ ? state->round : state->last_round;
    if (is_more) {
        state->round++;
        return;
    }
    state->step++;
    state->round = state->step == SL_WORK_WALK ? state->last_round : 0;
}

enum sl_status sl_work_judge_archives(struct sl_work_item *item, struct sl_span run, struct sl_span what,
                                      json_t *counts, struct sl_error *error)
{
    struct sl_work_archives_state state;
    const struct sl_work_steps steps = sl_work_archives_steps(item, run);
    enum sl_status status =
        sl_work_archives_state_read(what, "sluice.sum.what", item->call.arena, &state, error);
    if (status == SL_OK && state.step != SL_WORK_WALK)
        status = sl_work_steps_keep(&steps, sl_work_archives_index(state.step, state.round, item->call.arena),
                                    counts, error);
    if (status != SL_OK)
        return status;
    sl_work_archives_sum_counts(&state.counted, counts);
    if (state.step == SL_WORK_WALK) {
        end(&state, counts);
        return SL_OK;
    }
    struct sl_buffer text;
    sl_buffer_init_in(&text, item->call.arena, 2 * SL_WORK_NEXT_BYTES);
    go_on(&state);
    sl_work_archives_state_write(&state, run, &text);
    return sl_work_steps_again(sl_buffer_span(&text), counts, error);
}
