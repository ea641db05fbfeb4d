/* Pieces of a verification of totals: their JSON. */
#include "runtime/work/totals_piece.h"

#include "base/array.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "data/verify/totals_part.h"
#include "runtime/work/fields.h"
#include "runtime/work/item.h"
#include "runtime/work/verify_piece.h"

#include <inttypes.h>

static const char *const names[] = {
    [SL_WORK_LEDGERS] = "ledgers", [SL_WORK_TOTALS] = "totals", [SL_WORK_JUDGE] = "judge"};

const char *sl_work_totals_step_name(enum sl_work_totals_step step)
{
    return names[step];
}

struct sl_work_steps sl_work_totals_steps(struct sl_work_item *item, struct sl_span run)
{
    return (struct sl_work_steps){.item = item, .folder = "totals", .run = run};
}

struct sl_span sl_work_totals_index(uint64_t round, enum sl_work_totals_step step, struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(arena, "%" PRIu64 "-%s.json", round, names[step]));
}

/* ---- reading ---- */

/* Numbers that nothing reads beyond. */
static bool is_sound(const struct sl_work_totals_piece *p)
{
    bool is_scan = p->step != SL_WORK_JUDGE;
    return sl_work_is_run(p->run) && p->round <= SL_TOTALS_ROUNDS && p->rounds <= SL_TOTALS_ROUNDS &&
           (p->round > 0 || p->step == SL_WORK_LEDGERS) &&
           (is_scan ? p->of > 0 && p->of <= SL_WORK_PIECES_MAX && p->segment < p->of
                    : p->from < p->to && p->to <= SL_PART_SHARES) &&
           (!p->before.ptr || sl_work_is_plain(p->before));
}

enum sl_status sl_work_totals_piece_read(struct sl_span text, const struct sl_work_config *config,
                                         struct sl_arena *arena, struct sl_work_totals_piece *out,
                                         struct sl_error *error)
{
    struct sl_span what = {0}, step = {0};
    int number = 0;
    *out = (struct sl_work_totals_piece){.rounds = SL_TOTALS_ROUNDS};
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &what},
        {"step", SL_WORK_TEXT, true, &step},
        {"piece", SL_WORK_COUNT, true, &out->piece},
        {"run", SL_WORK_TEXT, true, &out->run},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"totals", SL_WORK_TEXT, false, &out->totals},
        {"round", SL_WORK_COUNT, true, &out->round},
        {"rounds", SL_WORK_COUNT, false, &out->rounds},
        {"target", SL_WORK_COUNT, true, &out->target},
        {"table", SL_WORK_COUNT, false, &out->table},
        {"segment", SL_WORK_COUNT, false, &out->segment},
        {"of", SL_WORK_COUNT, false, &out->of},
        {"from", SL_WORK_COUNT, false, &out->from},
        {"to", SL_WORK_COUNT, false, &out->to},
        {"read_units", SL_WORK_NUMBER, false, &out->read_units},
        {"turn", SL_WORK_COUNT, false, &out->turn},
        {"after", SL_WORK_OBJECT, false, &out->after},
        {"before", SL_WORK_TEXT, false, &out->before},
        {"rows", SL_WORK_COUNT, false, &out->rows},
        {"sums", SL_WORK_COUNT, false, &out->sums},
    };
    enum sl_status status = sl_work_fields_read(text, "sluice.piece", fields, SL_COUNT(fields), arena, error);
    if (status == SL_OK)
        status = sl_work_step_read(step, "sluice.piece", names, &number, error);
    out->step = (enum sl_work_totals_step)number;
    out->read_units = sl_work_share(out->read_units, config->read_units, config->concurrency);
    return status == SL_OK && !is_sound(out)
               ? sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                         "sluice.piece: its \"run\", \"round\", segment or shares are none of a plan's")
               : status;
}

enum sl_status sl_work_totals_state_read(struct sl_span text, const char *what, struct sl_arena *arena,
                                         struct sl_work_totals_state *out, struct sl_error *error)
{
    struct sl_span kind = {0}, step = SL_LIT("ledgers"), run;
    int number = 0;
    *out = (struct sl_work_totals_state){.rounds = SL_TOTALS_ROUNDS};
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &kind},
        {"run", SL_WORK_TEXT, false, &run},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"totals", SL_WORK_TEXT, false, &out->totals},
        {"rounds", SL_WORK_COUNT, false, &out->rounds},
        {"repair", SL_WORK_BOOL, false, &out->repairs},
        {"step", SL_WORK_TEXT, false, &step},
        {"round", SL_WORK_COUNT, false, &out->round},
        {"parts", SL_WORK_COUNT, false, &out->parts},
        {"equal", SL_WORK_COUNT, false, &out->equal},
        {"different", SL_WORK_COUNT, false, &out->different},
        {"rows", SL_WORK_COUNT, false, &out->rows},
        {"not_judged", SL_WORK_COUNT, false, &out->not_judged},
    };
    enum sl_status status = sl_work_fields_read(text, what, fields, SL_COUNT(fields), arena, error);
    if (status == SL_OK)
        status = sl_work_step_read(step, what, names, &number, error);
    out->step = (enum sl_work_totals_step)number;
    if (status == SL_OK && (out->rounds < 1 || out->rounds > SL_TOTALS_ROUNDS || out->round > out->rounds ||
                            (out->step == SL_WORK_JUDGE && (!out->parts || out->parts > SL_PART_SHARES))))
        status =
            sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "%s: \"rounds\" is 1 to %d", what, SL_TOTALS_ROUNDS);
    return status;
}

/* ---- writing ---- */

void sl_work_totals_piece_write(const struct sl_work_totals_piece *p, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"do\":\"totals\"");
    sl_json_add_member(out, "step", sl_span_str(names[p->step]));
    sl_json_add_integer(out, "piece", (int64_t)p->piece);
    sl_json_add_member(out, "run", p->run);
    sl_work_add_text(out, "routes", p->routes);
    sl_work_add_text(out, "totals", p->totals);
    sl_json_add_integer(out, "round", (int64_t)p->round);
    sl_json_add_integer(out, "target", (int64_t)p->target);
    if (p->step == SL_WORK_JUDGE) {
        sl_json_add_integer(out, "rounds", (int64_t)p->rounds);
        sl_json_add_integer(out, "from", (int64_t)p->from);
        sl_json_add_integer(out, "to", (int64_t)p->to);
    } else {
        sl_json_add_integer(out, "table", (int64_t)p->table);
        sl_json_add_integer(out, "segment", (int64_t)p->segment);
        sl_json_add_integer(out, "of", (int64_t)p->of);
        sl_work_add_units(out, "read_units", p->read_units);
    }
    if (p->turn) {
        sl_json_add_integer(out, "turn", (int64_t)p->turn);
        sl_json_add_raw(out, "after", p->after);
        sl_json_add_member(out, "before", p->before);
        sl_json_add_integer(out, "rows", (int64_t)p->rows);
        sl_json_add_integer(out, "sums", (int64_t)p->sums);
    }
    sl_buffer_add_char(out, '}');
}

void sl_work_totals_state_write(const struct sl_work_totals_state *s, struct sl_span run,
                                struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"do\":\"totals\"");
    sl_json_add_member(out, "run", run);
    sl_work_add_text(out, "routes", s->routes);
    sl_work_add_text(out, "totals", s->totals);
    sl_json_add_integer(out, "rounds", (int64_t)s->rounds);
    if (s->repairs)
        sl_json_add_raw(out, "repair", SL_LIT("true"));
    sl_json_add_member(out, "step", sl_span_str(names[s->step]));
    sl_json_add_integer(out, "round", (int64_t)s->round);
    sl_json_add_integer(out, "parts", (int64_t)s->parts);
    sl_json_add_integer(out, "equal", (int64_t)s->equal);
    sl_json_add_integer(out, "different", (int64_t)s->different);
    sl_json_add_integer(out, "rows", (int64_t)s->rows);
    sl_json_add_integer(out, "not_judged", (int64_t)s->not_judged);
    sl_buffer_add_char(out, '}');
}
