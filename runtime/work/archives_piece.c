/* Pieces of a verification of archives: their JSON. */
#include "runtime/work/archives_piece.h"

#include "base/array.h"
#include "base/json_write.h"
#include "base/span.h"
#include "runtime/work/fields.h"
#include "runtime/work/plan_verify.h"
#include "runtime/work/verify_piece.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *const names[] = {
    [SL_WORK_READ] = "read", [SL_WORK_AGAIN] = "again", [SL_WORK_WALK] = "walk"};

const char *sl_work_archives_step_name(enum sl_work_archives_step step)
{
    return names[step];
}

struct sl_work_steps sl_work_archives_steps(struct sl_work_item *item, struct sl_span run)
{
    return (struct sl_work_steps){.item = item, .folder = "archives", .run = run};
}

const char *sl_work_archives_round(uint64_t round, struct sl_arena *arena)
{
    return round ? sl_arena_printf(arena, "-%" PRIu64, round) : "";
}

static struct sl_span of_round(const char *name, uint64_t round, struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(arena, "%s%s.json", name, sl_work_archives_round(round, arena)));
}

struct sl_span sl_work_archives_index(enum sl_work_archives_step step, uint64_t round, struct sl_arena *arena)
{
    return of_round(names[step], round, arena);
}

struct sl_span sl_work_archives_pieces(uint64_t round, struct sl_arena *arena)
{
    return of_round("pieces", round, arena);
}

struct sl_span sl_work_archives_parts(enum sl_work_archives_step step, uint64_t target,
                                      struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(arena, "%s-t%" PRIu64 "-", names[step], target));
}

/* ---- counts ---- */

void sl_work_archives_put_counts(const struct sl_chain_counts *c, json_t *out)
{
    struct sl_chain_counts copy = *c;
    for (size_t i = 0; i < SL_CHAIN_COUNTS; i++)
        json_object_set_new(out, sl_chain_count_names[i],
                            json_integer((json_int_t)*sl_chain_count(&copy, i)));
}

void sl_work_archives_sum_counts(struct sl_chain_counts *sum, const json_t *of)
{
    for (size_t i = 0; i < SL_CHAIN_COUNTS; i++)
        *sl_chain_count(sum, i) += sl_work_counted(of, sl_chain_count_names[i]);
}

/* ---- reading ---- */

/* The fields, and behind them those of the counts. */
static enum sl_status read_fields(struct sl_span text, const char *what, const struct sl_work_field *fields,
                                  size_t n, struct sl_chain_counts *counted, struct sl_arena *arena,
                                  struct sl_error *error)
{
    struct sl_work_field all[32];
    assert(n + SL_CHAIN_COUNTS <= SL_COUNT(all));
    memcpy(all, fields, n * sizeof(*fields));
    for (size_t i = 0; i < SL_CHAIN_COUNTS; i++)
        all[n + i] =
            (struct sl_work_field){sl_chain_count_names[i], SL_WORK_COUNT, false, sl_chain_count(counted, i)};
    return sl_work_fields_read(text, what, all, n + SL_CHAIN_COUNTS, arena, error);
}

static bool is_sound(const struct sl_work_archives_piece *p)
{
    return sl_work_is_run(p->run) &&
           (p->step != SL_WORK_WALK || (p->from < p->until && p->until <= SL_PART_SHARES)) &&
           (!p->before.ptr || sl_work_is_plain(p->before));
}

enum sl_status sl_work_archives_piece_read(struct sl_span text, struct sl_arena *arena,
                                           struct sl_work_archives_piece *out, struct sl_error *error)
{
    struct sl_span what = {0}, step = {0};
    int number = 0;
    *out = (struct sl_work_archives_piece){.piece = 0};
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &what},
        {"step", SL_WORK_TEXT, true, &step},
        {"piece", SL_WORK_COUNT, true, &out->piece},
        {"round", SL_WORK_COUNT, false, &out->round},
        {"first", SL_WORK_COUNT, false, &out->first},
        {"run", SL_WORK_TEXT, true, &out->run},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"archives", SL_WORK_TEXT, false, &out->archives},
        {"target", SL_WORK_COUNT, true, &out->target},
        {"after", SL_WORK_TEXT, false, &out->after},
        {"to", SL_WORK_TEXT, false, &out->to},
        {"from", SL_WORK_COUNT, false, &out->from},
        {"until", SL_WORK_COUNT, false, &out->until},
        {"turn", SL_WORK_COUNT, false, &out->turn},
        {"before", SL_WORK_TEXT, false, &out->before},
    };
    enum sl_status status =
        read_fields(text, "sluice.piece", fields, SL_COUNT(fields), &out->counted, arena, error);
    if (status == SL_OK)
        status = sl_work_step_read(step, "sluice.piece", names, &number, error);
    out->step = (enum sl_work_archives_step)number;
    return status == SL_OK && !is_sound(out)
               ? sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                         "sluice.piece: its \"run\", its shares or \"before\" are none of a plan's")
               : status;
}

enum sl_status sl_work_archives_state_read(struct sl_span text, const char *what, struct sl_arena *arena,
                                           struct sl_work_archives_state *out, struct sl_error *error)
{
    struct sl_span kind = {0}, step = SL_LIT("read"), run;
    int number = 0;
    *out = (struct sl_work_archives_state){.piece_objects = SL_WORK_PIECE_OBJECTS};
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &kind},
        {"run", SL_WORK_TEXT, false, &run},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"archives", SL_WORK_TEXT, false, &out->archives},
        {"piece_objects", SL_WORK_COUNT, false, &out->piece_objects},
        {"step", SL_WORK_TEXT, false, &step},
        {"round", SL_WORK_COUNT, false, &out->round},
        {"last_round", SL_WORK_COUNT, false, &out->last_round},
        {"target", SL_WORK_COUNT, false, &out->target},
        {"after", SL_WORK_TEXT, false, &out->after},
        {"pieces", SL_WORK_COUNT, false, &out->pieces},
        {"not_judged", SL_WORK_COUNT, false, &out->not_judged},
    };
    enum sl_status status = read_fields(text, what, fields, SL_COUNT(fields), &out->counted, arena, error);
    if (status == SL_OK)
        status = sl_work_step_read(step, what, names, &number, error);
    out->step = (enum sl_work_archives_step)number;
    return status == SL_OK && !out->piece_objects
               ? sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "%s: \"piece_objects\" is 1 or more", what)
               : status;
}

/* ---- writing ---- */

void sl_work_archives_piece_write(const struct sl_work_archives_piece *p, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"do\":\"archives\"");
    sl_json_add_member(out, "step", sl_span_str(names[p->step]));
    sl_json_add_integer(out, "piece", (int64_t)p->piece);
    sl_json_add_integer(out, "round", (int64_t)p->round);
    sl_json_add_integer(out, "first", (int64_t)p->first);
    sl_json_add_member(out, "run", p->run);
    sl_work_add_text(out, "routes", p->routes);
    sl_work_add_text(out, "archives", p->archives);
    sl_json_add_integer(out, "target", (int64_t)p->target);
    if (p->step == SL_WORK_WALK) {
        sl_json_add_integer(out, "from", (int64_t)p->from);
        sl_json_add_integer(out, "until", (int64_t)p->until);
    } else {
        sl_work_add_text(out, "after", p->after);
        sl_work_add_text(out, "to", p->to);
    }
    if (p->turn) {
        sl_json_add_integer(out, "turn", (int64_t)p->turn);
        sl_json_add_member(out, "before", p->before);
        sl_chain_add_counts(&p->counted, out);
    }
    sl_buffer_add_char(out, '}');
}

void sl_work_archives_state_write(const struct sl_work_archives_state *s, struct sl_span run,
                                  struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"do\":\"archives\"");
    sl_json_add_member(out, "run", run);
    sl_work_add_text(out, "routes", s->routes);
    sl_work_add_text(out, "archives", s->archives);
    sl_json_add_integer(out, "piece_objects", (int64_t)s->piece_objects);
    sl_json_add_member(out, "step", sl_span_str(names[s->step]));
    sl_json_add_integer(out, "round", (int64_t)s->round);
    sl_json_add_integer(out, "last_round", (int64_t)s->last_round);
    sl_json_add_integer(out, "target", (int64_t)s->target);
    sl_work_add_text(out, "after", s->after);
    sl_json_add_integer(out, "pieces", (int64_t)s->pieces);
    sl_json_add_integer(out, "not_judged", (int64_t)s->not_judged);
    sl_chain_add_counts(&s->counted, out);
    sl_buffer_add_char(out, '}');
}
