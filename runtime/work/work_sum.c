/* {"sluice":{"sum":{"results":KEY,"pieces":N,"items":N,"what":{...}}}}: adds up what the pieces of a plan
 * answered.
 *
 * Every piece of the plan has to be there. One that is there twice counts once: a redriven Map Run may list a
 * child again. */
#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "runtime/work/fields.h"
#include "runtime/work/results.h"
#include "runtime/work/plan_verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <jansson.h>

struct sum {
    uint64_t pieces, seen;
    uint8_t *is_seen;
    json_t *counts; /* the pieces' counts, added up */
};

/* Adds the numbers of `more` to those of the same names in `total`, objects member by member. */
static void add_counts(json_t *total, const json_t *more)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)more, name, value)
    {
        json_t *old = json_object_get(total, name);
        if (json_is_object(value)) {
            if (!old)
                json_object_set_new(total, name, old = json_object());
            add_counts(old, value);
        } else if (json_is_integer(value)) {
            json_object_set_new(total, name,
                                json_integer(json_integer_value(old) + json_integer_value(value)));
        }
    }
}

/* The name of what a piece wrote last, into a list. */
static void add_last(json_t *counts, json_t *last)
{
    if (!json_is_string(last))
        return;
    if (!json_object_get(counts, "last"))
        json_object_set_new(counts, "last", json_array());
    json_array_append(json_object_get(counts, "last"), last);
}

static enum sl_status add_piece(void *context, struct sl_span output, struct sl_error *error)
{
    struct sum *sum = context;
    json_t *answer = json_loadb(output.ptr, output.len, 0, NULL);
    json_t *piece = json_object_get(answer, "piece");
    uint64_t i = (uint64_t)json_integer_value(piece);
    enum sl_status status = SL_OK;
    if (!json_is_true(json_object_get(answer, "done")) || !json_is_integer(piece) || i >= sum->pieces) {
        status = sl_fail(error, SL_REJECT, "BadResults",
                         "a result is not the answer to a piece of this plan, or the piece is not done");
    } else if (!(sum->is_seen[i / 8] & (1u << (i % 8)))) {
        sum->is_seen[i / 8] |= (uint8_t)(1u << (i % 8));
        sum->seen++;
        json_object_del(answer, "piece");
        add_last(sum->counts, json_object_get(answer, "last"));
        add_counts(sum->counts, answer);
    }
    json_decref(answer);
    return status;
}

/* The first pieces that are not there, for the message. */
static enum sl_status say_missing(const struct sum *sum, struct sl_error *error)
{
    char list[128] = "";
    size_t used = 0;
    uint64_t left = sum->pieces - sum->seen;
    for (uint64_t i = 0; left && used < 100; i++)
        if (!(sum->is_seen[i / 8] & (1u << (i % 8)))) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%" PRIu64, used ? ", " : "", i);
            left--;
        }
    return sl_fail(error, SL_REJECT, "PiecesMissing",
                   "the results hold %" PRIu64 " of the plan's %" PRIu64 " pieces; missing: %s%s", sum->seen,
                   sum->pieces, list, left ? " ..." : "");
}

static enum sl_status answer_sum(const struct sum *sum, struct sl_answer *answer, struct sl_error *error)
{
    json_object_set_new(sum->counts, "pieces", json_integer((json_int_t)sum->seen));
    char *text = json_dumps(sum->counts, JSON_COMPACT);
    if (!text)
        return sl_fail(error, SL_REJECT, "BadResults", "the counts are no JSON");
    sl_buffer_add_str(&answer->body, text);
    free(text);
    return SL_OK;
}

static enum sl_status check_sum(const struct sum *sum, uint64_t items, struct sl_error *error)
{
    if (sum->seen < sum->pieces)
        return say_missing(sum, error);
    uint64_t counted = (uint64_t)json_integer_value(json_object_get(sum->counts, "items"));
    if (items != UINT64_MAX && counted != items)
        return sl_fail(error, SL_REJECT, "ItemsMissing",
                       "the pieces read %" PRIu64 " items together; the export's manifest announces %" PRIu64,
                       counted, items);
    return SL_OK;
}

enum sl_status sl_work_sum(struct sl_work_item *item, struct sl_error *error)
{
    struct sl_span key = {0}, what = {0};
    uint64_t pieces = 0, items = UINT64_MAX;
    const struct sl_work_field fields[] = {
        {"results", SL_WORK_TEXT, true, &key},
        {"pieces", SL_WORK_COUNT, true, &pieces},
        {"items", SL_WORK_COUNT, false, &items},
        {"what", SL_WORK_OBJECT, false, &what},
    };
    enum sl_status status =
        sl_work_fields_read(item->what, "sluice.sum", fields, SL_COUNT(fields), item->call.arena, error);
    if (status != SL_OK)
        return status;
    struct sl_span below = sl_work_key_below(&item->work->config, key);
    if (!below.ptr || pieces > SL_WORK_PIECES_MAX)
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "sluice.sum.%s",
                       below.ptr ? "pieces: no plan has so many" : "results lies outside SLUICE_WORK_PLACE");
    struct sum sum = {.pieces = pieces, .is_seen = sl_arena_zalloc(item->call.arena, pieces / 8 + 1)};
    struct sl_work_results results = {.config = &item->work->config, .each = add_piece, .context = &sum};
    status = sl_work_place(item->work, &results.port, error);
    sum.counts = json_object();
    if (status == SL_OK)
        status = sl_work_results_read(&results, below, &item->call, error);
    if (status == SL_OK)
        status = check_sum(&sum, items, error);
    if (status == SL_OK && what.ptr) /* (executions that 0.9 has begun do not say it) */
        status = sl_work_judge(item, what, sum.counts, error);
    if (status == SL_OK)
        status = answer_sum(&sum, item->answer, error);
    json_decref(sum.counts);
    return status;
}
