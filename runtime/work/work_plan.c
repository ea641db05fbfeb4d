/* {"sluice":{"plan":{"run":NAME,"given":{...}}}}: checks the source and writes the list of pieces, which a
 * Distributed Map reads as JSON. `given` is what the execution was started with. */
#include "base/array.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/time.h"
#include "runtime/work/archives.h"
#include "runtime/work/fields.h"
#include "runtime/work/job.h"
#include "runtime/work/list.h"
#include "runtime/work/plan_verify.h"
#include "runtime/work/totals.h"
#include "runtime/work/verify_piece.h"

/* In a turn's answer: a route's five counts with their names, and the place with what else is there. */
#define ROUTE_BYTES 150
#define PLACE_BYTES ((size_t)1800)

struct plan {
    struct sl_work *work;
    struct sl_work_job job;
    struct sl_work_piece first; /* what all pieces share */
    uint64_t pieces;
    struct sl_work_list list;
};

/* ---- the list ---- */

static struct sl_work_piece piece_of(const struct plan *plan, uint64_t i)
{
    const struct sl_work_config *config = &plan->work->config;
    const struct sl_source_facts *facts = sl_source_facts(plan->job.source);
    struct sl_work_piece piece = plan->first;
    piece.piece = i;
    piece.time_ms = (uint64_t)facts->time_ms;
    piece.arn = facts->table_arn;
    piece.write_units = config->write_units / sl_work_list_workers(config, plan->pieces);
    if (config->is_scan) {
        piece.segment = i;
        piece.of = plan->pieces;
        piece.read_units = config->read_units / sl_work_list_workers(config, plan->pieces);
        return piece;
    }
    const struct sl_source_file file = sl_source_file(plan->job.source, i);
    piece.file = file.key;
    piece.md5 = file.md5;
    piece.items = file.items;
    return piece;
}

static enum sl_status make_list(struct plan *plan, struct sl_error *error)
{
    const struct sl_work_config *config = &plan->work->config;
    plan->pieces = config->is_scan ? config->segments : sl_source_facts(plan->job.source)->n_files;
    if (plan->pieces > SL_WORK_PIECES_MAX)
        return sl_fail(error, SL_REJECT, "TooManyPieces",
                       "the export has %zu files; a plan has %d pieces at most", (size_t)plan->pieces,
                       SL_WORK_PIECES_MAX);
    for (uint64_t i = 0; i < plan->pieces; i++) {
        struct sl_work_piece piece = piece_of(plan, i);
        sl_work_piece_write(&piece, sl_work_list_next(&plan->list));
    }
    return SL_OK;
}

/* ---- the answer ---- */

static void answer_plan(const struct plan *plan, struct sl_work_item *item)
{
    const struct sl_source_facts *facts = sl_source_facts(plan->job.source);
    struct sl_buffer *out = &item->answer->body;
    sl_work_list_answer(&plan->list, item);
    if (plan->work->config.is_scan)
        sl_json_add_raw(out, "items", SL_LIT("null")); /* DescribeTable's count is hours old */
    else
        sl_json_add_integer(out, "items", (int64_t)facts->items);
    sl_json_add_integer(out, "bytes", (int64_t)facts->bytes);
    sl_json_add_integer(out, "time", facts->time_ms);
    sl_json_add_raw(out, "what", SL_LIT("{\"do\":\"backfill\"}"));
    sl_buffer_add_char(out, '}');
}

/* ---- the item ---- */

/* Said here, and not by the first piece at the end of its first turn. */
static enum sl_status check_routes(const struct plan *plan, struct sl_error *error)
{
    const struct sl_backfill_report *report = sl_backfill_report(plan->job.backfill);
    size_t n = 0, bytes = PLACE_BYTES;
    for (size_t i = 0; i < report->n_routes; i++)
        if (!report->routes[i].left_out) {
            bytes += strlen(report->routes[i].name) + ROUTE_BYTES;
            n++;
        }
    return bytes <= SL_WORK_NEXT_BYTES
               ? SL_OK
               : sl_fail(
                     error, SL_REJECT, "TooManyRoutes",
                     "%zu routes take part, and their counts do not fit into what a turn hands to the next "
                     "one (%zu bytes): start the execution with \"routes\": \"a,b\", some at a time",
                     n, SL_WORK_NEXT_BYTES);
}

static enum sl_status make_plan(struct plan *plan, struct sl_work_item *item, struct sl_span run,
                                struct sl_error *error)
{
    enum sl_status status = sl_work_job_open(item, &plan->first, true, &plan->job, error);
    if (status != SL_OK)
        return status;
    sl_work_list_init(&plan->list);
    status = check_routes(plan, error);
    if (status == SL_OK)
        status = make_list(plan, error);
    if (status == SL_OK)
        status = sl_work_list_write(&plan->list, item, sl_arena_copy(item->call.arena, run), error);
    if (status == SL_OK)
        answer_plan(plan, item);
    sl_work_list_clean_up(&plan->list);
    sl_work_job_close(&plan->job);
    return status;
}

/* What the execution was started with. */
static enum sl_status read_given(struct sl_span given, struct sl_arena *arena, struct sl_work_piece *out,
                                 struct sl_error *error)
{
    struct sl_span since = {0}, what;
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, false, &what},
        {"consumer_since", SL_WORK_TEXT, false, &since},
        {"unsafe_order", SL_WORK_BOOL, false, &out->any_order},
        {"routes", SL_WORK_TEXT, false, &out->routes},
    };
    int64_t ns = 0, step_ns;
    if (given.ptr &&
        sl_work_fields_read(given, SL_WORK_INPUT, fields, SL_COUNT(fields), arena, error) != SL_OK)
        return error->status;
    if (since.ptr && !sl_time_parse(since, &ns, &step_ns))
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                       SL_WORK_INPUT ": consumer_since is no time: write 2026-11-20T10:00:00Z");
    out->since_ms = (uint64_t)(ns / 1000000);
    return SL_OK;
}

static enum sl_status plan_backfill(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                    struct sl_error *error)
{
    struct plan plan = {.work = item->work};
    enum sl_status status = read_given(given, item->call.arena, &plan.first, error);
    return status == SL_OK ? make_plan(&plan, item, run, error) : status;
}

enum sl_status sl_work_plan(struct sl_work_item *item, struct sl_error *error)
{
    struct sl_span run = {0}, given = {0};
    const struct sl_work_field fields[] = {
        {"run", SL_WORK_TEXT, true, &run},
        {"given", SL_WORK_OBJECT, false, &given},
    };
    enum sl_status status =
        sl_work_fields_read(item->what, "sluice.plan", fields, 2, item->call.arena, error);
    if (status == SL_OK && !sl_work_is_run(run))
        status = sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                         "sluice.plan.run: use letters, digits, '-' and '_', at most %d", SL_WORK_RUN_BYTES);
    if (status != SL_OK)
        return status;
    struct sl_span what = given.ptr ? sl_json_walk_member(given, SL_LIT("do")) : given;
    if (!what.ptr || sl_span_is(what, "\"backfill\""))
        return plan_backfill(item, run, given, error);
    if (sl_span_is(what, "\"verify\""))
        return sl_work_plan_verify(item, run, given, error);
    if (sl_span_is(what, "\"repair\""))
        return sl_work_plan_repair(item, run, given, error);
    if (sl_span_is(what, "\"totals\""))
        return sl_work_plan_totals(item, run, given, error);
    if (sl_span_is(what, "\"archives\""))
        return sl_work_plan_archives(item, run, given, error);
    return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                   SL_WORK_INPUT
                   ": \"do\" is %.*s; use \"backfill\", \"verify\", \"totals\", \"archives\" or \"repair\"",
                   (int)(what.len < 64 ? what.len : 64), what.ptr);
}
