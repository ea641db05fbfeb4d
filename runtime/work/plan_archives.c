/* A verification of archives, step by step: their objects are read, then those that came meanwhile, and what
 * was read is walked, item by item (data/verify/archive/walk.h). Each step is a plan, its pieces, and their
 * sum, which says what is planned next. */
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
    uint64_t all_objects; /* of the target */
    int64_t until_ms;
};

static void add_piece(struct plan *plan)
{
    plan->piece.piece = plan->list.pieces;
    sl_work_archives_piece_write(&plan->piece, sl_work_list_next(&plan->list));
}

static enum sl_status each_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct plan *plan = arg;
    struct sl_clock *clock = plan->item->work->options.clock;
    if (clock->now_ms(clock) > plan->until_ms)
        return sl_fail(error, SL_REJECT, "TooManyObjects",
                       "%" PRIu64 " objects were listed, and the time is up: name fewer \"routes\"",
                       plan->all_objects);
    if (!sl_changes_are_in(entry->key))
        return SL_OK;
    if (plan->objects == plan->state.piece_objects || plan->bytes >= PIECE_BYTES) {
        plan->piece.to = sl_buffer_span(&plan->last);
        add_piece(plan);
        plan->piece.after =
            sl_span(sl_arena_copy(plan->item->call.arena, plan->piece.to), plan->piece.to.len);
        plan->objects = plan->bytes = 0;
    }
    sl_buffer_reset(&plan->last);
    sl_buffer_add_span(&plan->last, entry->key);
    plan->objects++;
    plan->all_objects++;
    plan->bytes += entry->bytes;
    return SL_OK;
}

/* Ranges of names; the last one has no end, as the archive grows. */
static enum sl_status add_ranges(struct plan *plan, const struct sl_archive_target *t, struct sl_error *error)
{
    plan->objects = plan->bytes = plan->all_objects = 0;
    plan->piece.after = sl_span(NULL, 0);
    enum sl_status status = sl_listing_each(t->port, plan->item->work->options.clock, sl_span(NULL, 0),
                                            sl_span(NULL, 0), each_object, plan, error);
    sl_error_context(error, "%s", t->route);
    plan->piece.to = sl_span(NULL, 0);
    if (status == SL_OK)
        add_piece(plan);
    if (status == SL_OK && plan->all_objects == 0) {
        sl_log(plan->item->work->options.log, SL_WARN,
               "archives: %s: there are no objects in %.*s, so nothing is proven", t->route, SL_ARG(t->url));
        plan->state.not_judged++;
    }
    return status;
}

static enum sl_status plan_read(struct plan *plan, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < plan->n && status == SL_OK; i++) {
        const struct sl_archive_target *t = &plan->targets[i];
        plan->piece.target = i;
        if (sl_archive_is_verified(t)) {
            status = add_ranges(plan, t, error);
            continue;
        }
        sl_log(plan->item->work->options.log, SL_WARN, "archives: %s: the archive proves nothing: %s",
               t->route, t->why_not ? t->why_not : "it is not there, or it cannot be listed and read");
        plan->state.not_judged++;
    }
    if (status == SL_OK && !plan->list.pieces)
        return sl_fail(error, SL_REJECT, "NothingToVerify",
                       "none of the archives can be verified: the log says of each why");
    return status;
}

static enum sl_status plan_again(struct plan *plan, struct sl_error *error)
{
    const struct sl_work_steps steps = sl_work_archives_steps(plan->item, plan->piece.run);
    struct sl_span text, value;
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    enum sl_status status = sl_work_steps_get(&steps, SL_WORK_ARCHIVES_PIECES, &text, error);
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
    enum sl_status status = SL_OK;
    if (plan->state.step == SL_WORK_READ)
        status = plan_read(plan, error);
    else if (plan->state.step == SL_WORK_AGAIN)
        status = plan_again(plan, error);
    else
        plan_walk(plan);
    if (status == SL_OK && plan->list.pieces > SL_WORK_PIECES_MAX)
        return sl_fail(error, SL_REJECT, "TooManyPieces",
                       "the archives' objects are %" PRIu64
                       " pieces; a plan has %d at most: name fewer \"routes\", or more \"piece_objects\"",
                       plan->list.pieces, SL_WORK_PIECES_MAX);
    return status;
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
    plan.piece = (struct sl_work_archives_piece){
        .step = state->step, .run = run, .routes = state->routes, .archives = state->archives};
    sl_work_list_init(&plan.list);
    sl_buffer_init(&plan.last, KEY_BYTES);
    status = add_pieces(&plan, error);
    const char *name =
        sl_arena_printf(item->call.arena, "%.*s.%s", SL_ARG(run), sl_work_archives_step_name(state->step));
    if (status == SL_OK)
        status = sl_work_list_write(&plan.list, item, name, error);
    if (status == SL_OK && state->step == SL_WORK_READ) /* (the role may not read plans) */
        status = sl_work_steps_put(&steps, SL_WORK_ARCHIVES_PIECES, sl_buffer_span(&plan.list.body), error);
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

enum sl_status sl_work_judge_archives(struct sl_work_item *item, struct sl_span run, struct sl_span what,
                                      json_t *counts, struct sl_error *error)
{
    struct sl_work_archives_state state;
    const struct sl_work_steps steps = sl_work_archives_steps(item, run);
    enum sl_status status =
        sl_work_archives_state_read(what, "sluice.sum.what", item->call.arena, &state, error);
    if (status == SL_OK && state.step != SL_WORK_WALK)
        status =
            sl_work_steps_keep(&steps, sl_work_archives_index(state.step, item->call.arena), counts, error);
    if (status != SL_OK)
        return status;
    sl_work_archives_sum_counts(&state.counted, counts);
    if (state.step == SL_WORK_WALK) {
        end(&state, counts);
        return SL_OK;
    }
    struct sl_buffer text;
    sl_buffer_init_in(&text, item->call.arena, 2 * SL_WORK_NEXT_BYTES);
    state.step++;
    sl_work_archives_state_write(&state, run, &text);
    return sl_work_steps_again(sl_buffer_span(&text), counts, error);
}
