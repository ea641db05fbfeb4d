/* Sums of totals as objects. */
#include "data/verify/totals_part.h"

#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- writing ---- */

static bool add_numbers(struct sl_buffer *out, const char *name, const struct sl_decimal *d,
                        struct sl_arena *arena)
{
    struct sl_span *numbers;
    size_t n;
    if (!sl_decimal_numbers(d, arena, &numbers, &n))
        return false;
    sl_json_add_raw(out, name, SL_LIT("["));
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? "," : "");
        sl_json_add_string(out, numbers[i]);
    }
    sl_buffer_add_char(out, ']');
    return true;
}

static void begin_line(struct sl_buffer *out, const struct sl_totals_sum *sum)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_raw(out, "key", sum->key);
    sl_json_add_member(out, "name", sum->name);
}

static enum sl_status beyond(const struct sl_totals_sum *sum, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "BeyondNumbers",
                   "what rows say of the attribute %.*s adds up to more than any number of DynamoDB: "
                   "`sluice verify` from one machine says of which row",
                   SL_ARG(sum->name));
}

static enum sl_status write_line(const struct sl_totals_sum *sum, enum sl_totals_scan scan,
                                 struct sl_arena *arena, struct sl_buffer *out, struct sl_error *error)
{
    const struct sl_decimal *d = scan == SL_TOTALS_TOTAL ? sum->total : sum->first;
    begin_line(out, sum);
    if (!add_numbers(out, "numbers", d, arena))
        return beyond(sum, error);
    if (scan != SL_TOTALS_TOTAL)
        sl_part_add_hex(out, "rows", sum->rows_first);
    if (sum->mark.ptr)
        sl_json_add_raw(out, "mark", sum->mark);
    sl_buffer_add_str(out, "}\n");
    return SL_OK;
}

static size_t share_of(const struct sl_totals_sum *sum)
{
    return (sum->home ^ sum->home >> 32) % SL_PART_SHARES;
}

/* The sums' places in the list, in the order of their shares. */
static const uint32_t *in_order(struct sl_totals_sums *sums)
{
    uint32_t *order = sl_arena_alloc(sums->arena, (sums->n + 1) * sizeof(*order));
    size_t starts[SL_PART_SHARES + 1] = {0};
    for (size_t i = 0; i < sums->n; i++)
        starts[share_of(&sums->list[i]) + 1]++;
    for (size_t i = 1; i <= SL_PART_SHARES; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < sums->n; i++)
        order[starts[share_of(&sums->list[i])]++] = (uint32_t)i;
    return order;
}

enum sl_status sl_totals_part_write(struct sl_totals_sums *sums, enum sl_totals_scan scan,
                                    const struct sl_part_head *head, struct sl_buffer *out,
                                    struct sl_error *error)
{
    struct sl_part_head own = *head;
    const uint32_t *order = in_order(sums);
    enum sl_status status = SL_OK;
    size_t share = 0;
    sl_part_begin(out);
    for (size_t i = 0; i < sums->n && status == SL_OK; i++) {
        const struct sl_totals_sum *sum = &sums->list[order[i]];
        for (; share < share_of(sum); share++)
            own.ends[share] = sl_part_bytes(out);
        status = write_line(sum, scan, sums->arena, out, error);
    }
    for (; share < SL_PART_SHARES; share++)
        own.ends[share] = sl_part_bytes(out);
    return status == SL_OK ? sl_part_end(&own, sums->arena, out, error) : status;
}

enum sl_status sl_totals_rest_write(struct sl_totals_sums *sums, struct sl_buffer *out,
                                    struct sl_error *error)
{
    for (size_t i = 0; i < sums->n; i++) {
        const struct sl_totals_sum *sum = &sums->list[i];
        if (sum->is_settled)
            continue;
        begin_line(out, sum);
        bool good = !sum->n_same || add_numbers(out, "still", sum->still, sums->arena);
        if (sum->n_same)
            sl_json_add_integer(out, "same", sum->n_same);
        good = good && (!sum->has_interval || (add_numbers(out, "low", sum->low, sums->arena) &&
                                               add_numbers(out, "high", sum->high, sums->arena)));
        if (!good)
            return beyond(sum, error);
        sl_buffer_add_str(out, "}\n");
    }
    return out->failed
               ? sl_fail(error, SL_FATAL, "PartTooLong", "the groups that moved need more than one object")
               : SL_OK;
}

/* ---- reading ---- */

static enum sl_status bad(const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "BadPart", "an object of sums of totals: %s", what);
}

/* A line's members; absent ones are absent. */
struct line {
    struct sl_span key, name, numbers, rows, mark, still, same, low, high;
};

static bool read_line(struct sl_span text, struct sl_arena *arena, struct line *out)
{
    struct sl_span name, value;
    struct {
        struct sl_span name;
        struct sl_span *to;
    } members[] = {{SL_LIT("key"), &out->key},   {SL_LIT("numbers"), &out->numbers},
                   {SL_LIT("rows"), &out->rows}, {SL_LIT("mark"), &out->mark},
                   {SL_LIT("same"), &out->same}, {SL_LIT("still"), &out->still},
                   {SL_LIT("low"), &out->low},   {SL_LIT("high"), &out->high}};
    struct sl_error ignored = SL_NO_ERROR;
    *out = (struct line){.key = {0}};
    if (sl_json_check_loose(text, &ignored) != SL_OK)
        return false;
    struct sl_json_walk walk = sl_json_walk(text);
    while (sl_json_walk_next(&walk, &name, &value))
        for (size_t i = 0; i < SL_COUNT(members); i++)
            if (sl_span_eq(members[i].name, name))
                *members[i].to = value;
    out->name = sl_json_text(text, "name", arena);
    return out->name.ptr && sl_span_starts(out->key, SL_LIT("{\"M\":{")) &&
           sl_span_ends(out->key, SL_LIT("}}"));
}

static bool take_numbers(struct sl_decimal *sum, struct sl_span list)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span text;
    while (sl_json_walk_next(&walk, NULL, &text))
        if (text.len < 3 || !sl_decimal_add(sum, sl_span(text.ptr + 1, text.len - 2), false))
            return false;
    return list.ptr != NULL;
}

static bool take_line(struct sl_totals_rows *r, const struct line *l)
{
    bool is_total = r->scan == SL_TOTALS_TOTAL, is_first = r->scan == SL_TOTALS_FIRST;
    struct sl_totals_sum *sum = sl_totals_sum_of(r, l->key, l->name, true), *own;
    uint64_t rows = 0;
    if (l->mark.ptr && (own = sl_totals_sum_of(r, l->key, l->name, false)))
        own->mark = sl_span(sl_arena_copy(r->sums->arena, l->mark), l->mark.len);
    if (!is_total && !sl_part_read_hex(l->rows, &rows))
        return false;
    if (!sum)
        return true;
    *(is_first ? &sum->rows_first : &sum->rows_second) += rows;
    return take_numbers(is_total ? sum->total : is_first ? sum->first : sum->second, l->numbers);
}

static bool take_rest(struct sl_totals_rows *r, const struct line *l)
{
    struct sl_totals_sum *sum = sl_totals_sum_of(r, l->key, l->name, false);
    struct {
        struct sl_span text;
        struct sl_decimal **to;
    } numbers[] = {{l->still, &sum->still}, {l->low, &sum->low}, {l->high, &sum->high}};
    uint64_t same = 0;
    if (l->same.ptr && (!sl_part_read_count(l->same, &same) || same > SL_TOTALS_ROUNDS || !l->still.ptr))
        return false;
    sum->n_same = (unsigned)same;
    sum->has_interval = l->low.ptr && l->high.ptr;
    for (size_t i = 0; i < SL_COUNT(numbers); i++) {
        *numbers[i].to = sl_decimal_new(r->sums->arena);
        if (numbers[i].text.ptr && !take_numbers(*numbers[i].to, numbers[i].text))
            return false;
    }
    return true;
}

static enum sl_status take_lines(struct sl_totals_rows *r, struct sl_span lines,
                                 bool (*take)(struct sl_totals_rows *, const struct line *),
                                 struct sl_error *error)
{
    struct line line;
    while (lines.len) {
        sl_arena_reset(r->arena);
        if (!read_line(sl_span_cut(&lines, '\n'), r->arena, &line) || !take(r, &line))
            return bad("a line is not of one", error);
    }
    return SL_OK;
}

enum sl_status sl_totals_part_take(struct sl_totals_rows *r, struct sl_span lines, struct sl_error *error)
{
    return take_lines(r, lines, take_line, error);
}

enum sl_status sl_totals_rest_take(struct sl_totals_rows *r, struct sl_span lines, struct sl_error *error)
{
    return take_lines(r, lines, take_rest, error);
}
