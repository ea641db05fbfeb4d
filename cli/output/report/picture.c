/* Collects what the report shows: invocations, and the records that were given up or parked. */
#include "base/array.h"
#include "base/map.h"
#include "cli/output/report/answer.h"
#include "cli/output/report/picture_private.h"

#include "base/span.h"
#include "esm/esm_choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES (64u * 1024 * 1024) /* an answer of 6 MB, however it is escaped */

struct sl_picture *sl_picture_new(const struct sl_esm_settings *settings)
{
    struct sl_picture *p = calloc(1, sizeof(*p));
    if (!p)
        sl_die("out of memory: the report");
    p->settings = settings;
    sl_map_init(&p->texts, sl_arena_new(64 * 1024), 256);
    (void)sl_map_keep(&p->texts, SL_LIT(""));
    return p;
}

void sl_picture_destroy(struct sl_picture *p)
{
    if (!p)
        return;
    sl_arena_destroy(p->texts.arena);
    free(p->rows);
    free(p->losses);
    free(p);
}

/* ---- records that were given up or parked ---- */

static struct sl_picture_loss *add_loss(struct sl_picture *p)
{
    if (p->n_losses == SL_PICTURE_MOST_LOSSES)
        return NULL;
    return &SL_PUSH(p->losses, p->n_losses, p->losses_room, "losses of the report");
}

void sl_picture_add_discard(struct sl_picture *p, const struct sl_esm_discard *discard)
{
    p->given_up += discard->n;
    for (size_t i = 0; i < discard->n; i++) {
        struct sl_picture_loss *loss = add_loss(p);
        if (!loss)
            return;
        *loss = (struct sl_picture_loss){.shard = discard->shard,
                                         .record = discard->records[i],
                                         .row = SL_PICTURE_NO_ROW,
                                         .condition = discard->condition,
                                         .beside = discard->n - 1,
                                         .times = discard->invoke_count};
        snprintf(loss->request_id, sizeof(loss->request_id), "%s", discard->request_id);
    }
}

static const struct sl_esm_record *record_named(const struct sl_esm_invocation *inv, const char *id)
{
    for (size_t i = 0; i < inv->n; i++)
        if (sl_span_eq(inv->records[i]->id, sl_span_str(id)))
            return inv->records[i];
    return NULL;
}

/* The record may have been delivered, and parked, before. */
static struct sl_picture_loss *parked_before(struct sl_picture *p, const struct sl_esm_record *record,
                                             uint32_t route)
{
    for (size_t i = 0; i < p->n_losses; i++)
        if (p->losses[i].is_parked && p->losses[i].record == record && p->losses[i].route == route)
            return &p->losses[i];
    return NULL;
}

static uint32_t reason_of(struct sl_picture *p, const struct sl_note *note)
{
    struct sl_buffer text;
    sl_buffer_init(&text, ANSWER_BYTES);
    sl_buffer_printf(&text, "%s: %s", note->code, note->text);
    uint32_t number = sl_map_keep(&p->texts, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return number;
}

static void add_parked(struct sl_picture *p, const struct sl_esm_invocation *inv, const struct sl_note *note,
                       size_t row)
{
    const struct sl_esm_record *record = record_named(inv, note->id);
    uint32_t route = sl_map_keep(&p->texts, sl_span_str(note->route));
    if (!record)
        return;
    struct sl_picture_loss *loss = parked_before(p, record, route);
    if (loss) {
        loss->times++;
        return;
    }
    p->parked++;
    loss = add_loss(p);
    if (loss)
        *loss = (struct sl_picture_loss){.is_parked = true,
                                         .shard = inv->shard,
                                         .record = record,
                                         .row = row,
                                         .times = 1,
                                         .route = route,
                                         .reason = reason_of(p, note)};
}

/* What was given up since the last invocation was given up by this one, or by none. */
static void settle(struct sl_picture *p, const struct sl_esm_invocation *inv, const struct sl_note *failure,
                   size_t row, uint32_t answer)
{
    for (; p->settled < p->n_losses; p->settled++) {
        struct sl_picture_loss *loss = &p->losses[p->settled];
        if (strcmp(loss->request_id, inv->request_id) != 0)
            continue;
        loss->row = row;
        loss->route = failure ? sl_map_keep(&p->texts, sl_span_str(failure->route)) : 0;
        loss->reason = failure ? reason_of(p, failure) : answer;
        if (failure && !sl_span_is(loss->record->id, failure->id))
            loss->culprit = sl_map_keep(&p->texts, sl_span_str(failure->id));
    }
}

/* ---- invocations ---- */

static unsigned kind_of(const struct sl_esm_result *result, const struct sl_esm_decision *decision)
{
    return result->outcome == SL_ESM_THROTTLED ? (unsigned)SL_PICTURE_THROTTLED : (unsigned)decision->verb;
}

static uint32_t say_answer(struct sl_picture *p, const struct sl_esm_result *result)
{
    struct sl_buffer text;
    sl_buffer_init(&text, ANSWER_BYTES);
    sl_answer_say(result, p->settings->report_failures, &text);
    uint32_t number = sl_map_keep(&p->texts, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return number;
}

static size_t cut_of(const struct sl_esm_invocation *inv, const struct sl_esm_decision *decision)
{
    return decision->verb == SL_ESM_CHECKPOINT ? decision->failed
           : decision->verb == SL_ESM_BISECT   ? sl_esm_cut(inv->n)
                                               : 0;
}

static size_t add_row(struct sl_picture *p, const struct sl_esm_invocation *inv,
                      const struct sl_esm_result *result, const struct sl_esm_decision *decision)
{
    if (p->n == SL_PICTURE_MOST_ROWS) {
        p->left_out++;
        return SL_PICTURE_NO_ROW;
    }
    p->rows = sl_array_fit(p->rows, p->n + 1, &p->room, sizeof(*p->rows), "rows of the report");
    struct sl_picture_row *row = &p->rows[p->n];
    *row = (struct sl_picture_row){.shard = inv->shard,
                                   .n = inv->n,
                                   .cut = cut_of(inv, decision),
                                   .time_ms = inv->time_ms,
                                   .attempt = inv->attempt,
                                   .lane = inv->lane,
                                   .kind = kind_of(result, decision),
                                   .is_final = inv->is_final,
                                   .answer = say_answer(p, result)};
    if (inv->n) {
        row->first = (size_t)(inv->records[0] - inv->shard->records);
        row->last = (size_t)(inv->records[inv->n - 1] - inv->shard->records);
    }
    return p->n++;
}

void sl_picture_add(struct sl_picture *p, const struct sl_esm_invocation *inv,
                    const struct sl_esm_result *result, const struct sl_esm_decision *decision,
                    const struct sl_notes *notes)
{
    size_t row = add_row(p, inv, result, decision);
    const struct sl_note *failure = NULL;
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->list[i].request_id, inv->request_id) == 0 && !notes->list[i].is_parked)
            failure = &notes->list[i];
    settle(p, inv, failure, row, row == SL_PICTURE_NO_ROW ? say_answer(p, result) : p->rows[row].answer);
    if (failure && row != SL_PICTURE_NO_ROW) {
        p->rows[row].reason = reason_of(p, failure);
        p->rows[row].route = sl_map_keep(&p->texts, sl_span_str(failure->route));
    }
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->list[i].request_id, inv->request_id) == 0 && notes->list[i].is_parked)
            add_parked(p, inv, &notes->list[i], row);
    p->settled = p->n_losses;
}
