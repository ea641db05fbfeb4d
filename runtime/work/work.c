/* Work items: told from stream events, and handed to the code of their kind. */
#include "base/array.h"
#include "runtime/work/item.h"

#include "base/json.h"
#include "base/json_walk.h"

#include <stdio.h>

/* Time kept to answer in, and for a request that is on its way: a twentieth of what is left, within these. */
#define RESERVE_LEAST_MS 300
#define RESERVE_MOST_MS  5000

/* Kept of a turn: a tenth of it, within these. */
#define KEEP_LEAST_MS 500
#define KEEP_MOST_MS  10000

int64_t sl_work_until_ms(const struct sl_work_item *item)
{
    struct sl_clock *clock = item->work->options.clock;
    int64_t keep_ms = (item->call.deadline_ms - clock->now_ms(clock)) / 10;
    keep_ms = keep_ms < KEEP_LEAST_MS ? KEEP_LEAST_MS : keep_ms;
    return item->call.deadline_ms - (keep_ms > KEEP_MOST_MS ? KEEP_MOST_MS : keep_ms);
}

bool sl_work_wait(const struct sl_work_item *item, int64_t ms, int64_t until_ms)
{
    struct sl_clock *clock = item->work->options.clock;
    int64_t left_ms = until_ms - clock->now_ms(clock);
    if (ms > 0 && left_ms > 0)
        clock->sleep_ms(clock, ms < left_ms ? ms : left_ms);
    return ms < left_ms;
}

/* A piece of a plan says itself what is done with it. */
static enum sl_status do_piece(struct sl_work_item *item, struct sl_error *error)
{
    struct sl_span what = sl_json_walk_member(item->what, SL_LIT("do"));
    if (!what.ptr || sl_span_is(what, "\"backfill\""))
        return sl_work_backfill(item, error);
    if (sl_span_is(what, "\"verify\"") || sl_span_is(what, "\"repair\""))
        return sl_work_verify(item, error);
    if (sl_span_is(what, "\"totals\""))
        return sl_work_verify_totals(item, error);
    if (sl_span_is(what, "\"archives\""))
        return sl_work_verify_archives(item, error);
    return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                   "sluice.piece.do: use \"backfill\", \"verify\", \"totals\", \"archives\" or \"repair\"");
}

static const struct kind {
    const char *name;
    enum sl_status (*run)(struct sl_work_item *item, struct sl_error *error);
} kinds[] = {
    {"plan", sl_work_plan},         {"piece", do_piece},
    {"backfill", sl_work_backfill}, /* a piece, as executions send it that 0.9 has begun */
    {"sum", sl_work_sum},           {"ask", sl_work_ask},
};

#define KINDS SL_COUNT(kinds)

/* ---- opening ---- */

enum sl_status sl_work_open(const struct sl_work_options *options, struct sl_work **out,
                            struct sl_error *error)
{
    bool is_on;
    *out = NULL;
    enum sl_status status = sl_work_is_on(options->vars, &is_on, error);
    if (status != SL_OK || !is_on)
        return status;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_work *work = sl_arena_zalloc(arena, sizeof(*work));
    work->options = *options;
    work->arena = arena;
    status = sl_work_config_read(options->vars, arena, &work->config, error);
    if (status == SL_OK)
        *out = work;
    else
        sl_work_close(work);
    return status;
}

void sl_work_close(struct sl_work *work)
{
    if (!work)
        return;
    if (work->place)
        work->place->close(work->place);
    sl_arena_destroy(work->arena);
}

enum sl_status sl_work_place(struct sl_work *work, struct sl_object_port **out, struct sl_error *error)
{
    if (!work->place &&
        sl_target_objects(work->options.sinks, work->config.place, &work->place, error) != SL_OK) {
        sl_error_context(error, "SLUICE_WORK_PLACE");
        return SL_FATAL;
    }
    *out = work->place;
    return work->place->read
               ? SL_OK
               : sl_fail(error, SL_FATAL, "BadWorkSettings",
                         "SLUICE_WORK_PLACE is %.*s, which cannot be read from", SL_ARG(work->config.place));
}

enum sl_status sl_work_put(struct sl_work *work, struct sl_span key, struct sl_span body,
                           const struct sl_call *call, struct sl_error *error)
{
    struct sl_object_port *port;
    if (sl_work_place(work, &port, error) != SL_OK)
        return error->status;
    const struct sl_object object = {.key = key, .body = body, .content_type = "application/json"};
    struct sl_result result = {.status = SL_RETRY, .code = "NotWritten", .text = "it was not written"};
    port->apply(port, &object, 1, &result, call);
    return result.status == SL_OK
               ? SL_OK
               : sl_fail(error, result.status, result.code, "%.*s: %s", SL_ARG(key), result.text);
}

/* ---- telling them apart ---- */

bool sl_work_is_item(struct sl_span event)
{
    const char *end = sl_span_end(event);
    const char *p = sl_json_space(event.ptr, end);
    if (p == end || *p != '{')
        return false;
    p = sl_json_space(p + 1, end);
    return sl_span_starts(sl_span(p, (size_t)(end - p)), SL_LIT("\"sluice\""));
}

enum sl_status sl_work_refuse_event(struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "NotAWorkItem",
                   "this function takes work items ({\"sluice\":{...}}) and nothing else, since "
                   "SLUICE_WORK_ITEMS is 1: give stream events to a function without it");
}

/* The one member of an object. */
static bool only_member(struct sl_span json, struct sl_span *name, struct sl_span *value)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span more_name, more;
    return sl_json_walk_next(&walk, name, value) && !sl_json_walk_next(&walk, &more_name, &more);
}

static enum sl_status find_kind(struct sl_span event, const struct kind **out, struct sl_span *what,
                                struct sl_error *error)
{
    struct sl_span name, item;
    struct sl_error why = SL_NO_ERROR;
    if (sl_json_check(event, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "byte %zu of the work item: %s", why.offset,
                       why.text);
    if (!only_member(event, &name, &item) || !only_member(item, &name, what))
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                       "a work item is {\"sluice\":{KIND:{...}}}, with one member at each of the two levels");
    for (size_t i = 0; i < KINDS; i++)
        if (sl_json_text_is(name, sl_span_str(kinds[i].name))) {
            *out = &kinds[i];
            return SL_OK;
        }
    return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                   "\"%.*s\" is no kind of work item: use plan, piece, sum or ask",
                   (int)(name.len < 64 ? name.len : 64), name.ptr);
}

/* ---- doing ---- */

static int64_t deadline_of(struct sl_work *work, const struct sl_invocation *invocation)
{
    int64_t left = invocation->deadline_ms - work->options.clock->now_ms(work->options.clock);
    int64_t reserve = left / 20;
    reserve = reserve < RESERVE_LEAST_MS ? RESERVE_LEAST_MS : reserve;
    return invocation->deadline_ms - (reserve > RESERVE_MOST_MS ? RESERVE_MOST_MS : reserve);
}

/* What may succeed later has one code of its own, by which a state machine knows it. */
static void name_retry(struct sl_error *error)
{
    if (error->status != SL_RETRY)
        return;
    struct sl_error why = *error;
    sl_error_clear(error);
    sl_fail(error, SL_RETRY, "TryAgain", "%s: %s", why.code, why.text);
}

enum sl_status sl_work_do(struct sl_work *work, struct sl_span event, const struct sl_invocation *invocation,
                          struct sl_answer *answer, struct sl_error *error)
{
    if (!work)
        return sl_fail(
            error, SL_REJECT, "WorkItemRefused",
            "this is a work item, and SLUICE_WORK_ITEMS is not 1: only a function without an event "
            "source takes them");
    const struct kind *kind = NULL;
    struct sl_work_item item = {.work = work, .invocation = invocation, .answer = answer};
    enum sl_status status = find_kind(event, &kind, &item.what, error);
    if (status != SL_OK)
        return status;
    item.call = (struct sl_call){.arena = invocation->arena, .deadline_ms = deadline_of(work, invocation)};
    status = kind->run(&item, error);
    name_retry(error);
    if (status == SL_OK && answer->body.failed)
        return sl_fail(error, SL_REJECT, "AnswerTooLong", "the answer to the work item is too long");
    return status;
}
