/* A share of an archive's items, walked. */
#include "runtime/work/walk_archives.h"

#include "base/array.h"
#include "base/span.h"
#include "data/verify/archive/part.h"
#include "data/verify/archive/walk.h"
#include "runtime/work/archives_piece.h"

#define ARENA_BYTES ((size_t)64 * 1024)
#define NAME_BYTES  ((size_t)1100)
#define GAPS        32

struct part {
    struct sl_span name;
    uint64_t names_at; /* of its objects, behind the head */
};

struct walker {
    const struct sl_work_walk *o;
    struct sl_work_item *item;
    struct sl_sorter *sorter;
    struct sl_arena *arena; /* of some gaps */
    struct part *parts;
    size_t n, room;
    struct sl_chain_hole gaps[GAPS]; /* that are not told yet */
    size_t n_gaps;
    struct sl_error *failure; /* they could not be */
};

static enum sl_status take_part(void *arg, const struct sl_work_part *part, struct sl_error *error)
{
    struct walker *w = arg;
    struct sl_arena *kept = w->item->call.arena;
    enum sl_status status = sl_changes_part_take(part->bytes, w->n, w->sorter, error);
    SL_PUSH_IN(kept, w->parts, w->n, w->room) =
        (struct part){.name = sl_span(sl_arena_copy(kept, part->name), part->name.len),
                      .names_at = part->head->ends[SL_PART_SHARES - 1]};
    return status;
}

static enum sl_status take_parts(struct walker *w, struct sl_error *error)
{
    struct sl_arena *arena = w->item->call.arena;
    const struct sl_work_wanted wanted = {.from = w->o->from, .until = w->o->until};
    enum sl_status status = SL_OK;
    for (enum sl_work_archives_step step = SL_WORK_READ; step < SL_WORK_WALK; step++)
        for (uint64_t round = 0; round <= w->o->last_round && status == SL_OK; round++)
            status = sl_work_steps_each(w->o->steps, sl_work_archives_index(step, round, arena),
                                        sl_work_archives_parts(step, w->o->target, arena), &wanted, take_part,
                                        w, error);
    return status;
}

/* Gaps are told some at a time: the names of their objects are read together. */
static void tell_gaps(struct walker *w)
{
    struct sl_work_range names[2 * GAPS];
    for (size_t i = 0; i < 2 * w->n_gaps; i++) {
        const struct sl_chain_hole *gap = &w->gaps[i / 2];
        const struct sl_sorter_entry *change = i % 2 ? &gap->after : &gap->before;
        const struct part *part = &w->parts[sl_changes_part_number(change)];
        names[i] = (struct sl_work_range){
            .name = part->name, .from = part->names_at + sl_changes_part_name_at(change), .most = NAME_BYTES};
    }
    sl_arena_reset(w->arena);
    if (sl_work_steps_ranges(w->o->steps, names, 2 * w->n_gaps, w->arena, w->failure) != SL_OK)
        return;
    for (size_t i = 0; i < w->n_gaps; i++) {
        struct sl_span *before = &names[2 * i].bytes, *after = &names[2 * i + 1].bytes;
        w->gaps[i].before_object = before->len ? sl_span_cut(before, '\n') : sl_span(NULL, 0);
        w->gaps[i].after_object = after->len ? sl_span_cut(after, '\n') : sl_span(NULL, 0);
        sl_chain_gap_line(w->o->line, w->o->route, &w->gaps[i]);
        w->o->found(w->o->arg, sl_buffer_span(w->o->line));
    }
    w->n_gaps = 0;
}

static void on_gap(void *arg, const struct sl_sorter_entry *before, const struct sl_sorter_entry *after,
                   const char *why)
{
    struct walker *w = arg;
    if (w->failure->status != SL_OK)
        return;
    w->gaps[w->n_gaps++] = (struct sl_chain_hole){.before = *before, .after = *after, .why = why};
    if (w->n_gaps == GAPS)
        tell_gaps(w);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

enum sl_status sl_work_walk_archive(const struct sl_work_walk *o, struct sl_error *error)
{
    struct walker w = {.o = o, .item = o->steps->item, .arena = sl_arena_new(ARENA_BYTES), .failure = error};
    const char *temp = sl_vars_or(w.item->work->options.vars, "TMPDIR", "/tmp");
    char *folder = NULL;
    enum sl_status status = sl_chain_open(temp, &folder, &w.sorter, error);
    const struct sl_chain_walk walk = {
        .sorter = w.sorter, .counts = o->counts, .is_stopped = never, .gap = on_gap, .arg = &w};
    if (status == SL_OK)
        status = take_parts(&w, error);
    if (status == SL_OK)
        status = sl_chain_walk(&walk, error);
    if (status == SL_OK && w.n_gaps)
        tell_gaps(&w);
    status = status == SL_OK ? error->status : status;
    sl_chain_close(folder, w.sorter);
    sl_arena_destroy(w.arena);
    return status;
}
