/* {"sluice":{"piece":{"do":"archives",...}}}: one turn over a range of an archive's objects, or the walk of a
 * share of the items. The answer of a turn is {"done":true,"piece":7,"objects":n,...,"last":NAME}, or while
 * it is not done has "next", the item of the next turn; of a walk {"done":true,"piece":3,"gaps":n,...}. */
#include "base/array.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/source/listing.h"
#include "data/verify/archive/part.h"
#include "runtime/work/archives.h"
#include "runtime/work/archives_piece.h"
#include "runtime/work/lines.h"
#include "runtime/work/verify_piece.h"
#include "runtime/work/walk_archives.h"

/* A turn that has so many changes, or so many names, ends: 50 MB with the object that it writes. */
#define TURN_CHANGES ((size_t)200000)
#define TURN_NAMES   ((size_t)8 * 1024 * 1024)

#define LINE_BYTES  ((size_t)64 * 1024)
#define ARENA_BYTES ((size_t)1024 * 1024)
#define KEY_BYTES   ((size_t)8192)

struct turn {
    struct sl_work_item *item;
    struct sl_work_archives_piece piece;
    struct sl_archive_target *target;
    struct sl_work_steps steps;
    struct sl_work_lines lines;
    struct sl_buffer line;
    struct sl_chain_counts counts;
    int64_t until_ms;

    /* Of a reading. */
    struct sl_changes changes;
    struct sl_changes_part part;
    struct sl_buffer last; /* the last name that was read */
    size_t n_read;
    bool is_done;

    /* Of one that reads again: the names that the first reading had, those of its last turn first. What was
     * compared is taken off the end. */
    struct sl_span *known;
    size_t n_known, room_known;
};

static void on_found(void *arg, struct sl_span line)
{
    sl_work_lines_add(arg, line);
}

/* Of all rounds' pieces. */
static unsigned number_of(const struct turn *t)
{
    return (unsigned)(t->piece.first + t->piece.piece);
}

/* ---- what was read before ---- */

static enum sl_status take_names(void *arg, const struct sl_work_part *part, struct sl_error *error)
{
    struct turn *t = arg;
    struct sl_arena *arena = t->item->call.arena;
    (void)error;
    if (part->bytes.len)
        SL_PUSH_IN(arena, t->known, t->n_known, t->room_known) =
            sl_span(sl_arena_copy(arena, part->bytes), part->bytes.len);
    return SL_OK;
}

static enum sl_status find_known(struct turn *t, struct sl_error *error)
{
    struct sl_arena *arena = t->item->call.arena;
    if (t->piece.step == SL_WORK_READ)
        return SL_OK;
    const char *own =
        sl_arena_printf(arena, "%.*s%06u-",
                        SL_ARG(sl_work_archives_parts(SL_WORK_READ, t->piece.target, arena)), number_of(t));
    const struct sl_work_wanted names = {
        .from = SL_PART_SHARES, .until = SL_PART_SHARES, .rest = SL_CHANGES_NAMES_BYTES};
    return sl_work_steps_each(&t->steps, sl_work_archives_index(SL_WORK_READ, t->piece.round, arena),
                              sl_span_str(own), &names, take_names, t, error);
}

/* Names come in order, and so do those that are known. */
static bool is_known(struct turn *t, struct sl_span key)
{
    while (t->n_known) {
        struct sl_span *names = &t->known[t->n_known - 1], rest = *names;
        int order = sl_span_compare(sl_span_cut(&rest, '\n'), key);
        if (order >= 0)
            return order == 0;
        *names = rest;
        t->n_known -= rest.len == 0;
    }
    return false;
}

/* ---- a reading ---- */

static enum sl_status take_change(void *arg, const struct sl_sorter_entry *change, struct sl_error *error)
{
    (void)error;
    sl_changes_part_add(arg, change);
    return SL_OK;
}

static enum sl_status stop(struct turn *t, struct sl_error *error)
{
    t->is_done = false;
    return sl_fail(error, SL_RETRY, SL_LISTING_ENOUGH, "the turn ends");
}

static bool is_full(const struct turn *t)
{
    struct sl_clock *clock = t->item->work->options.clock;
    return t->part.n >= TURN_CHANGES || t->part.names.len >= TURN_NAMES ||
           clock->now_ms(clock) >= t->until_ms;
}

static enum sl_status each_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct turn *t = arg;
    if (t->piece.to.ptr && sl_span_compare(entry->key, t->piece.to) > 0)
        return sl_fail(error, SL_RETRY, SL_LISTING_ENOUGH, "the range ends");
    if (!sl_changes_are_in(entry->key) || is_known(t, entry->key))
        return SL_OK;
    if (t->n_read && is_full(t))
        return stop(t, error);
    uint64_t flags = sl_changes_part_object(&t->part, entry->key);
    flags |= t->piece.step == SL_WORK_AGAIN ? SL_CHANGE_LATE : 0;
    enum sl_status status = sl_changes_read(&t->changes, entry->key, flags, error);
    if (status != SL_OK)
        return status;
    sl_buffer_reset(&t->last);
    sl_buffer_add_span(&t->last, entry->key);
    t->n_read++;
    return SL_OK;
}

static enum sl_status read_objects(struct turn *t, struct sl_error *error)
{
    t->is_done = true;
    enum sl_status status = sl_listing_each(t->target->port, t->item->work->options.clock, sl_span(NULL, 0),
                                            t->piece.after, each_object, t, error);
    if (status == SL_RETRY && t->n_read) { /* what was read is kept; the rest is another turn's */
        sl_error_clear(error);
        t->is_done = false;
        status = SL_OK;
    }
    sl_error_context(error, "%s", t->target->route);
    return status;
}

static enum sl_status put_changes(struct turn *t, struct sl_span *name, struct sl_error *error)
{
    struct sl_arena *arena = t->item->call.arena;
    struct sl_buffer body;
    *name = sl_span_str(sl_arena_printf(
        arena, "%.*s%06u-%04u-%s", SL_ARG(sl_work_archives_parts(t->piece.step, t->piece.target, arena)),
        number_of(t), (unsigned)t->piece.turn, t->item->invocation->request_id));
    sl_buffer_init(&body, SL_WORK_PART_BYTES);
    enum sl_status status = sl_changes_part_write(&t->part, t->piece.before, arena, &body, error);
    if (status == SL_OK)
        status = sl_work_steps_put(&t->steps, *name, sl_buffer_span(&body), error);
    sl_buffer_clean_up(&body);
    return status;
}

static void answer(struct turn *t, struct sl_span name)
{
    struct sl_buffer *out = &t->item->answer->body;
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "done", t->is_done ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_integer(out, "piece", (int64_t)t->piece.piece);
    sl_chain_add_counts(&t->counts, out);
    if (name.ptr)
        sl_json_add_member(out, "last", name);
    if (!t->is_done) {
        t->piece.turn++;
        t->piece.after = t->n_read ? sl_buffer_span(&t->last) : t->piece.after;
        t->piece.before = name;
        t->piece.counted = t->counts;
        sl_json_add_raw(out, "next", SL_LIT(""));
        sl_work_archives_piece_write(&t->piece, out);
    }
    sl_buffer_add_char(out, '}');
}

static enum sl_status read_turn(struct turn *t, struct sl_error *error)
{
    struct sl_span name;
    enum sl_status status = find_known(t, error);
    t->changes = (struct sl_changes){.port = t->target->port,
                                     .clock = t->item->work->options.clock,
                                     .route = t->target->route,
                                     .arena = sl_arena_new(ARENA_BYTES),
                                     .line = &t->line,
                                     .counts = &t->counts,
                                     .found = on_found,
                                     .arg = &t->lines,
                                     .take = take_change,
                                     .take_arg = &t->part};
    sl_changes_part_init(&t->part);
    sl_buffer_init(&t->last, KEY_BYTES);
    if (status == SL_OK)
        status = read_objects(t, error);
    if (status == SL_OK)
        status = put_changes(t, &name, error);
    if (status == SL_OK)
        status = sl_work_lines_end(&t->lines, error);
    if (status == SL_OK)
        answer(t, name);
    sl_buffer_clean_up(&t->last);
    sl_changes_part_clean_up(&t->part);
    sl_arena_destroy(t->changes.arena);
    return status;
}

/* ---- a walk ---- */

static enum sl_status walk_share(struct turn *t, struct sl_error *error)
{
    struct sl_work_walk walk = {.steps = &t->steps,
                                .target = t->piece.target,
                                .last_round = t->piece.round,
                                .route = t->target->route,
                                .from = t->piece.from,
                                .until = t->piece.until,
                                .counts = &t->counts,
                                .line = &t->line,
                                .found = on_found,
                                .arg = &t->lines};
    t->is_done = true;
    enum sl_status status = sl_work_walk_archive(&walk, error);
    if (status == SL_OK)
        status = sl_work_lines_end(&t->lines, error);
    if (status == SL_OK)
        answer(t, sl_span(NULL, 0));
    return status;
}

/* ---- the item ---- */

static enum sl_status do_turn(struct turn *t, struct sl_error *error)
{
    struct sl_archive_target *targets;
    size_t n = 0;
    enum sl_status status =
        sl_work_archives_find(t->item, t->piece.routes, &t->piece.archives, &targets, &n, error);
    if (status != SL_OK)
        return status;
    if (t->piece.target >= n || !sl_archive_is_verified(&targets[t->piece.target]))
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                       "sluice.piece.target: this archive is not verified");
    t->target = &targets[t->piece.target];
    t->steps = sl_work_archives_steps(t->item, t->piece.run);
    return t->piece.step == SL_WORK_WALK ? walk_share(t, error) : read_turn(t, error);
}

enum sl_status sl_work_verify_archives(struct sl_work_item *item, struct sl_error *error)
{
    struct turn t = {.item = item, .until_ms = sl_work_until_ms(item)};
    enum sl_status status = sl_work_archives_piece_read(item->what, item->call.arena, &t.piece, error);
    if (status != SL_OK)
        return status;
    t.counts = t.piece.counted;
    sl_work_lines_init(&t.lines, item, SL_WORK_FINDINGS, t.piece.run, number_of(&t),
                       t.piece.turn * (SL_WORK_WALK + 1) + t.piece.step);
    sl_buffer_init(&t.line, LINE_BYTES);
    status = do_turn(&t, error);
    if (status == SL_OK)
        sl_log(item->work->options.log, SL_INFO, "archives: %s: piece %u: a turn is done",
               sl_work_archives_step_name(t.piece.step), (unsigned)t.piece.piece);
    sl_buffer_clean_up(&t.line);
    sl_work_lines_clean_up(&t.lines);
    return status;
}
