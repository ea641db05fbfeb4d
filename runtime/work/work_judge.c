/* What the sum of a plan's pieces means, and the question whether it shall be repaired. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "runtime/work/archives.h"
#include "runtime/work/fields.h"
#include "runtime/work/plan_verify.h"
#include "runtime/work/totals.h"
#include "runtime/work/verify.h"

#include <stdlib.h>

#define TEXT_BYTES ((size_t)64 * 1024)

uint64_t sl_work_counted(const json_t *counts, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(counts, name));
}

/* The execution's name in a plan's "what". */
static enum sl_status read_run(struct sl_span what, const char *where, struct sl_arena *arena,
                               struct sl_span *run, struct sl_error *error)
{
    *run = sl_json_text(what, "run", arena);
    return run->ptr && sl_work_is_run(*run)
               ? SL_OK
               : sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "%s.run is no execution's name", where);
}

static uint64_t unproven(const json_t *counts)
{
    return sl_work_counted(counts, "pending") + sl_work_counted(counts, "unsettled") +
           sl_work_counted(counts, "not_comparable");
}

/* What is equal is proven only if nothing waits that may change it. */
static enum sl_status find_letters(struct sl_work_item *item, struct sl_span routes, json_t *counts,
                                   struct sl_error *error)
{
    struct sl_pipeline *pipeline = item->work->options.pipeline;
    struct sl_outstanding *outstanding = NULL;
    struct sl_outstanding_route left;
    bool *is_chosen = NULL;
    enum sl_status status = sl_route_choose(pipeline, routes, item->call.arena, &is_chosen, error);
    if (status == SL_OK)
        status = sl_outstanding_open(pipeline, is_chosen, &outstanding, error);
    if (status == SL_OK && !sl_outstanding_settle(outstanding, NULL, &left))
        json_object_set_new(counts, "letters_of", json_string(left.route));
    sl_outstanding_close(outstanding);
    return status;
}

static const char *outcome_of_repair(const json_t *counts)
{
    const json_t *done = json_object_get(counts, "repaired");
    uint64_t wrong = sl_work_counted(done, sl_repaired_name(SL_REPAIRED_MOVED)) +
                     sl_work_counted(done, sl_repaired_name(SL_REPAIRED_LEFT)) +
                     sl_work_counted(done, sl_repaired_name(SL_REPAIRED_FAILED));
    return wrong ? "left" : unproven(counts) ? "unproven" : "repaired";
}

/* Beside the findings: a repair begins with it. */
static enum sl_status keep_sum(struct sl_work_item *item, struct sl_span run, const json_t *counts,
                               struct sl_error *error)
{
    char *text = json_dumps(counts, JSON_COMPACT);
    struct sl_span key = sl_work_sum_key(run, item->call.arena);
    enum sl_status status = text ? sl_work_put(item->work, key, sl_span_str(text), &item->call, error)
                                 : sl_fail(error, SL_REJECT, "BadResults", "the counts are no JSON");
    free(text);
    return status;
}

static enum sl_status judge_verification(struct sl_work_item *item, struct sl_span what, json_t *counts,
                                         struct sl_error *error)
{
    struct sl_arena *arena = item->call.arena;
    struct sl_span run, routes = sl_json_text(what, "routes", arena);
    bool repairs = sl_span_is(sl_json_walk_member(what, SL_LIT("repair")), "true");
    if (read_run(what, "sluice.sum.what", arena, &run, error) != SL_OK)
        return error->status;
    if (find_letters(item, routes, counts, error) != SL_OK)
        return error->status;
    bool is_open = unproven(counts) || json_object_get(counts, "letters_of");
    const char *outcome = sl_work_counted(counts, "different") ? repairs ? "ask" : "different"
                          : is_open                            ? "unproven"
                                                               : "equal";
    json_object_set_new(counts, "outcome", json_string(outcome));
    return keep_sum(item, run, counts, error);
}

/* Of a verification in several steps. */
static enum sl_status judge_step(struct sl_work_item *item, struct sl_span what, bool of_archives,
                                 json_t *counts, struct sl_error *error)
{
    struct sl_span run;
    if (read_run(what, "sluice.sum.what", item->call.arena, &run, error) != SL_OK ||
        (of_archives ? sl_work_judge_archives : sl_work_judge_totals)(item, run, what, counts, error) !=
            SL_OK)
        return error->status;
    return json_object_get(counts, "next") ? SL_OK : keep_sum(item, run, counts, error);
}

enum sl_status sl_work_judge(struct sl_work_item *item, struct sl_span what, json_t *counts,
                             struct sl_error *error)
{
    struct sl_span kind = sl_json_walk_member(what, SL_LIT("do"));
    json_object_set_new(counts, "what", json_loadb(what.ptr, what.len, 0, NULL));
    if (sl_span_is(kind, "\"verify\""))
        return judge_verification(item, what, counts, error);
    if (sl_span_is(kind, "\"totals\""))
        return judge_step(item, what, false, counts, error);
    if (sl_span_is(kind, "\"archives\""))
        return judge_step(item, what, true, counts, error);
    json_object_set_new(counts, "outcome",
                        json_string(sl_span_is(kind, "\"repair\"") ? outcome_of_repair(counts) : "seeded"));
    return SL_OK;
}

/* ---- {"sluice":{"ask":{"token":...,"sum":{...}}}} ---- */

/* Writes what a person needs to answer: whoever may send the token decides, and no item does. */
enum sl_status sl_work_ask(struct sl_work_item *item, struct sl_error *error)
{
    struct sl_span token = {0}, sum = {0};
    struct sl_arena *arena = item->call.arena;
    const struct sl_work_field fields[] = {
        {"token", SL_WORK_TEXT, true, &token},
        {"sum", SL_WORK_OBJECT, true, &sum},
    };
    if (sl_work_fields_read(item->what, "sluice.ask", fields, 2, arena, error) != SL_OK)
        return error->status;
    struct sl_span run, what = sl_json_walk_member(sum, SL_LIT("what"));
    if (read_run(what, "sluice.ask.sum.what", arena, &run, error) != SL_OK)
        return error->status;
    struct sl_buffer text;
    sl_buffer_init_in(&text, arena, TEXT_BYTES + sum.len);
    sl_buffer_add_char(&text, '{');
    sl_json_add_member(
        &text, "approve",
        sl_span_str(sl_arena_printf(arena,
                                    "aws stepfunctions send-task-success --task-token '%.*s' --task-output "
                                    "'{\"do\":\"repair\",\"of\":\"%.*s\"}'",
                                    SL_ARG(token), SL_ARG(run))));
    sl_json_add_member(&text, "refuse",
                       sl_span_str(sl_arena_printf(arena,
                                                   "aws stepfunctions send-task-failure --task-token '%.*s' "
                                                   "--error Sluice.Refused",
                                                   SL_ARG(token))));
    sl_json_add_raw(&text, "sum", sum);
    sl_buffer_add_str(&text, "}\n");
    struct sl_span key =
        sl_span_str(sl_arena_printf(arena, SL_WORK_FINDINGS "%.*s/approval.json", SL_ARG(run)));
    sl_log(item->work->options.log, SL_WARN,
           "verify: %.*s: rows differ; %.*s/%.*s has the commands that approve their repair or refuse it",
           SL_ARG(run), SL_ARG(item->work->config.place), SL_ARG(key));
    sl_buffer_add_str(&item->answer->body, "{}");
    return sl_work_put(item->work, key, sl_buffer_span(&text), &item->call, error);
}
