/* {"sluice":{"plan":{"run":NAME,"given":{...}}}}: checks the source and writes the list of pieces, which a
 * Distributed Map reads as JSON. `given` is what the execution was started with. */
#include "base/json_write.h"
#include "base/time.h"
#include "runtime/work/fields.h"
#include "runtime/work/job.h"
#include "runtime/work/item.h"

#include <ctype.h>

/* A piece is some 300 bytes; with a list of routes and a table's ARN at most a few times that. */
#define PLAN_BYTES ((size_t)128 * 1024 * 1024)

/* An execution's name has at most so many characters, of those that CloudWatch takes too. */
#define RUN_BYTES 80

/* In a turn's answer: a route's five counts with their names, and the place with what else is there. */
#define ROUTE_BYTES 150
#define PLACE_BYTES ((size_t)1800)

struct plan {
    struct sl_work *work;
    struct sl_work_job job;
    struct sl_span run;
    struct sl_work_piece first; /* what all pieces share */
    uint64_t pieces;
    uint32_t workers;
    struct sl_buffer body; /* the list */
    struct sl_span key;    /* its whole key, with the place's prefix */
};

static bool is_run_name(struct sl_span run)
{
    for (size_t i = 0; i < run.len; i++)
        if (!isalnum((unsigned char)run.ptr[i]) && run.ptr[i] != '-' && run.ptr[i] != '_')
            return false;
    return run.len <= RUN_BYTES; /* (no text that is read is empty) */
}

/* ---- the list ---- */

static struct sl_work_piece piece_of(const struct plan *plan, uint64_t i)
{
    const struct sl_work_config *config = &plan->work->config;
    const struct sl_source_facts *facts = sl_source_facts(plan->job.source);
    struct sl_work_piece piece = plan->first;
    piece.piece = i;
    piece.time_ms = (uint64_t)facts->time_ms;
    piece.arn = facts->table_arn;
    piece.write_units = config->write_units / plan->workers;
    if (config->is_scan) {
        piece.segment = i;
        piece.of = plan->pieces;
        piece.read_units = config->read_units / plan->workers;
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
    plan->workers = plan->pieces < config->concurrency ? (uint32_t)plan->pieces : config->concurrency;
    plan->workers = plan->workers ? plan->workers : 1;
    sl_buffer_add_char(&plan->body, '[');
    for (uint64_t i = 0; i < plan->pieces; i++) {
        struct sl_work_piece piece = piece_of(plan, i);
        sl_buffer_add_str(&plan->body, i ? ",\n" : "\n");
        sl_work_piece_write(&piece, &plan->body);
    }
    sl_buffer_add_str(&plan->body, "\n]\n");
    return plan->body.failed
               ? sl_fail(error, SL_REJECT, "TooManyPieces", "the plan is longer than %zu bytes", PLAN_BYTES)
               : SL_OK;
}

static enum sl_status write_list(struct plan *plan, const struct sl_call *call, struct sl_error *error)
{
    struct sl_object_port *port;
    if (sl_work_place(plan->work, &port, error) != SL_OK)
        return error->status;
    const struct sl_span prefix = plan->work->config.prefix;
    plan->key =
        sl_span_str(sl_arena_printf(call->arena, "%.*splans/%.*s.json", SL_ARG(prefix), SL_ARG(plan->run)));
    const struct sl_object object = {
        .key = sl_span_from(plan->key, prefix.len),
        .body = sl_buffer_span(&plan->body),
        .content_type = "application/json",
    };
    struct sl_result result = {.status = SL_RETRY, .code = "NotWritten", .text = "the plan was not written"};
    port->apply(port, &object, 1, &result, call);
    return result.status == SL_OK ? SL_OK
                                  : sl_fail(error, result.status, result.code, "the plan %.*s: %s",
                                            SL_ARG(object.key), result.text);
}

/* ---- the answer ---- */

static void answer_plan(const struct plan *plan, struct sl_buffer *out)
{
    const struct sl_source_facts *facts = sl_source_facts(plan->job.source);
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "key", plan->key);
    sl_json_add_integer(out, "pieces", (int64_t)plan->pieces);
    sl_json_add_integer(out, "concurrency", plan->workers);
    if (plan->work->config.is_scan)
        sl_json_add_raw(out, "items", SL_LIT("null")); /* DescribeTable's count is hours old */
    else
        sl_json_add_integer(out, "items", (int64_t)facts->items);
    sl_json_add_integer(out, "bytes", (int64_t)facts->bytes);
    sl_json_add_integer(out, "time", facts->time_ms);
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

static enum sl_status make_plan(struct plan *plan, const struct sl_work_item *item, struct sl_error *error)
{
    enum sl_status status = sl_work_job_open(item, &plan->first, true, &plan->job, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init(&plan->body, PLAN_BYTES);
    status = check_routes(plan, error);
    if (status == SL_OK)
        status = make_list(plan, error);
    if (status == SL_OK)
        status = write_list(plan, &item->call, error);
    if (status == SL_OK)
        answer_plan(plan, &item->answer->body);
    sl_buffer_clean_up(&plan->body);
    sl_work_job_close(&plan->job);
    return status;
}

/* What the execution was started with. */
static enum sl_status read_given(struct sl_span given, struct sl_arena *arena, struct sl_work_piece *out,
                                 struct sl_error *error)
{
    struct sl_span since = {0};
    const struct sl_work_field fields[] = {
        {"consumer_since", SL_WORK_TEXT, false, &since},
        {"unsafe_order", SL_WORK_BOOL, false, &out->any_order},
        {"routes", SL_WORK_TEXT, false, &out->routes},
    };
    int64_t ns = 0, step_ns;
    if (given.ptr && sl_work_fields_read(given, "the execution's input", fields, 3, arena, error) != SL_OK)
        return error->status;
    if (since.ptr && !sl_time_parse(since, &ns, &step_ns))
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                       "the execution's input: consumer_since is no time: write 2026-11-20T10:00:00Z");
    out->since_ms = (uint64_t)(ns / 1000000);
    return SL_OK;
}

enum sl_status sl_work_plan(struct sl_work_item *item, struct sl_error *error)
{
    struct plan plan = {.work = item->work};
    struct sl_span given = {0};
    const struct sl_work_field fields[] = {
        {"run", SL_WORK_TEXT, true, &plan.run},
        {"given", SL_WORK_OBJECT, false, &given},
    };
    enum sl_status status =
        sl_work_fields_read(item->what, "sluice.plan", fields, 2, item->call.arena, error);
    if (status == SL_OK)
        status = read_given(given, item->call.arena, &plan.first, error);
    if (status == SL_OK && !is_run_name(plan.run))
        status = sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                         "sluice.plan.run: use letters, digits, '-' and '_', at most %d", RUN_BYTES);
    return status == SL_OK ? make_plan(&plan, item, error) : status;
}
