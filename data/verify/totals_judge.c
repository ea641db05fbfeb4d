/* When a difference of totals is one. */
#include "data/verify/totals_judge.h"

#include "base/json_write.h"

#include "base/span.h"

static struct sl_span text_of(struct sl_totals_judge *j, const struct sl_decimal *d)
{
    struct sl_span text;
    return sl_decimal_text(d, j->arena, &text) ? text : SL_LIT(SL_TOTALS_BEYOND);
}

/* Rows of values or members, and no attribute. */
static bool is_of_rows(const struct sl_totals_sum *s, const char *kind)
{
    return sl_span_starts(s->name, sl_span_str(kind));
}

static struct sl_span kind_of(const struct sl_totals_sum *s)
{
    return is_of_rows(s, SL_TOTALS_VALUES)    ? SL_LIT("values")
           : is_of_rows(s, SL_TOTALS_MEMBERS) ? SL_LIT("members")
                                              : SL_LIT("sum");
}

static void begin_line(struct sl_totals_judge *j, const struct sl_totals_sum *s, const char *result)
{
    struct sl_buffer *b = j->line;
    sl_buffer_reset(b);
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "result", sl_span_str(result));
    sl_json_add_member(b, "kind", kind_of(s));
    sl_json_add_member(b, "handler", SL_LIT("aggregate"));
    sl_json_add_member(b, "target", sl_span_str(j->t->url));
    sl_json_add_raw(b, "routes", SL_LIT("["));
    for (size_t i = 0; i < j->t->n_ledgers; i++) {
        sl_buffer_add_str(b, i ? "," : "");
        sl_json_add_string(b, sl_span_str(j->t->ledgers[i].route));
    }
    sl_buffer_add_char(b, ']');
    /* {"M":{...}}: the key is within */
    sl_json_add_raw(b, "key", sl_span(s->key.ptr + 5, s->key.len - 6));
    if (is_of_rows(s, SL_TOTALS_VALUES))
        sl_json_add_member(b, "attribute", sl_span_from(s->name, strlen(SL_TOTALS_VALUES)));
    else if (!is_of_rows(s, SL_TOTALS_MEMBERS))
        sl_json_add_member(b, "attribute", s->name);
}

static void end_line(struct sl_totals_judge *j)
{
    sl_buffer_add_str(j->line, "}\n");
    j->found(j->arg, sl_buffer_span(j->line));
}

static void settle(struct sl_totals_judge *j, struct sl_totals_sum *s, const struct sl_decimal *d)
{
    s->is_settled = true;
    if (sl_decimal_is_zero(d)) {
        j->counts->equal++;
        return;
    }
    j->counts->different++;
    begin_line(j, s, "different");
    if (sl_span_is(kind_of(s), "sum")) {
        sl_json_add_member(j->line, "total", text_of(j, s->total));
        sl_json_add_member(j->line, "ledger", text_of(j, s->first));
        sl_json_add_member(j->line, "difference", text_of(j, d));
    }
    if (s->mark.ptr)
        sl_json_add_raw(j->line, "mark", s->mark);
    end_line(j);
}

static void widen(struct sl_totals_judge *j, struct sl_totals_sum *s)
{
    struct sl_decimal *ds[] = {sl_decimal_difference(s->total, s->first, j->sums->arena),
                               sl_decimal_difference(s->total, s->second, j->sums->arena)};
    for (size_t i = 0; i < 2; i++) {
        if (!s->has_interval || sl_decimal_compare(ds[i], s->low) < 0)
            s->low = ds[i];
        if (!s->has_interval || sl_decimal_compare(ds[i], s->high) > 0)
            s->high = ds[i];
        s->has_interval = true;
    }
}

/* The group's rows stood still. An item of another group may still have come and gone between the scans, as
 * its row in neither of them shows. If no row of the ledgers changed at all, none has. Else D has to be the
 * same in every round: a D that is wrong does not change, and chance does. */
static void judge_still(struct sl_totals_judge *j, struct sl_totals_sum *s)
{
    struct sl_decimal *d = sl_decimal_difference(s->total, s->first, j->sums->arena);
    bool is_same = s->n_same > 0 && sl_decimal_compare(d, s->still) == 0;
    s->n_same = is_same ? s->n_same + 1 : 1;
    s->still = d;
    /* Once more in any case: a transaction's rows may become visible one shortly after the other. */
    bool is_sure = s->n_same > 1 && !j->has_moved;
    if (sl_decimal_is_zero(d) || is_sure || s->n_same == SL_TOTALS_ROUNDS)
        settle(j, s, d);
    else
        widen(j, s);
}

/* Returns how many groups are not settled. */
size_t sl_totals_judge_round(struct sl_totals_judge *j)
{
    size_t left = 0;
    for (size_t i = 0; i < j->sums->n; i++) {
        struct sl_totals_sum *s = &j->sums->list[i];
        if (s->is_settled)
            continue;
        sl_arena_reset(j->arena);
        if (s->rows_first == s->rows_second && sl_decimal_compare(s->first, s->second) == 0) {
            judge_still(j, s);
        } else {
            s->n_same = 0;
            widen(j, s);
        }
        left += !s->is_settled;
    }
    return left;
}

void sl_totals_judge_rest(struct sl_totals_judge *j)
{
    for (size_t i = 0; i < j->sums->n; i++) {
        const struct sl_totals_sum *s = &j->sums->list[i];
        if (s->is_settled)
            continue;
        j->counts->unsettled++;
        begin_line(j, s, "unsettled");
        if (sl_span_is(kind_of(s), "sum")) {
            sl_json_add_member(j->line, "low", text_of(j, s->low));
            sl_json_add_member(j->line, "high", text_of(j, s->high));
        }
        sl_json_add_member(j->line, "why",
                           SL_LIT("the ledger changed during every scan; stop the consumer and try again"));
        end_line(j);
    }
}
