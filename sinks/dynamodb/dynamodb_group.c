/* TransactWriteItems, and the reasons of its refusal. */
#include "base/array.h"
#include "sinks/dynamodb/dynamodb_private.h"

#include "aws/answer.h"
#include "aws/shown.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "sinks/result.h"

struct group {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op *ops;
    size_t n;
    bool is_settled; /* the reasons were read, one for each operation */
};

/* Why the transaction was refused; the greatest of its reasons counts. */
enum cause { NO_CAUSE, CAUSE_CONFLICT, CAUSE_THROTTLED, CAUSE_REJECTED, CAUSE_UNKNOWN };

/* API reference, TransactWriteItems, "Errors". A ValidationError is the item's when its text says so. */
static enum cause cause_of(struct sl_span reason)
{
    struct sl_span code = sl_answer_text(reason, "Code");
    static const struct {
        const char *code;
        enum cause cause;
    } known[] = {
        {"None", NO_CAUSE},
        {"TransactionConflict", CAUSE_CONFLICT},
        {"ThrottlingError", CAUSE_THROTTLED},
        {"ProvisionedThroughputExceeded", CAUSE_THROTTLED},
        {"ConditionalCheckFailed", CAUSE_REJECTED},
        {"ItemCollectionSizeLimitExceeded", CAUSE_REJECTED},
    };
    for (size_t i = 0; i < SL_COUNT(known); i++)
        if (sl_span_is(code, known[i].code))
            return known[i].cause;
    struct sl_code is = sl_codes_find(sl_service_dynamodb.id, code, sl_answer_text(reason, "Message"), 400);
    return is.kind == SL_CODE_FINAL && is.status == SL_REJECT ? CAUSE_REJECTED : CAUSE_UNKNOWN;
}

/* What the reason says, as a code and a text that may be shown. */
static const char *text_of(struct sl_job *job, struct sl_span reason, const char **code)
{
    struct group *g = job->context;
    struct sl_arena *arena = g->work.apply->call->arena;
    struct sl_span said = sl_json_unescape(sl_answer_text(reason, "Message"), g->work.apply->scratch);
    struct sl_shown shown;
    sl_shown_part(job, sl_answer_text(reason, "Code"), said, &shown);
    *code = sl_arena_copy(arena, sl_span_str(shown.code));
    return sl_arena_printf(arena, "%s: TransactWriteItems: %s%s%s", job->client->name, shown.code,
                           shown.text[0] ? ": " : "", shown.text);
}

static void reject(struct sl_job *job, struct sl_dynamodb_op *op, struct sl_span reason)
{
    struct sl_result *result = op->result;
    *result = (struct sl_result){.status = SL_REJECT};
    result->text = text_of(job, reason, &result->code);
}

static void settle(struct sl_job *job, struct sl_dynamodb_op *op, struct sl_span reason)
{
    struct group *g = job->context;
    struct sl_arena *arena = g->work.apply->call->arena;
    struct sl_span code = sl_answer_text(reason, "Code");
    op->is_over = true;
    if (cause_of(reason) != CAUSE_REJECTED)
        sl_table_cancel(op->result, arena, job->client->name, SL_REJECT);
    else if (sl_span_is(code, "ConditionalCheckFailed"))
        sl_table_condition_failed(op->result, arena, op->op, sl_answer_container(reason, "Item", '{'));
    else
        reject(job, op, reason);
}

/* Whether the reason is one that this operation can have: only a condition can fail, and the item that comes
 * with it is the one that was asked about. */
static bool is_reason(struct sl_dynamodb_apply *apply, const struct sl_dynamodb_op *op, struct sl_span reason)
{
    struct sl_span code = sl_answer_text(reason, "Code");
    if (!sl_span_is(code, "ConditionalCheckFailed"))
        return code.len > 0;
    return op->op->n_tests > 0 && sl_dynamodb_is_item_of(apply, op, reason);
}

/* The greatest of the reasons. False: they are not one for each operation, in its place. */
static bool find_worst(struct group *g, struct sl_span reasons, enum cause *worst)
{
    struct sl_json_walk walk = sl_json_walk(reasons);
    struct sl_span reason;
    size_t n = 0;
    *worst = NO_CAUSE;
    for (; sl_json_walk_next(&walk, NULL, &reason); n++) {
        if (n >= g->n || !is_reason(g->work.apply, &g->ops[n], reason))
            return false;
        enum cause cause = cause_of(reason);
        *worst = cause > *worst ? cause : *worst;
    }
    return n == g->n && *worst != NO_CAUSE;
}

static enum sl_job_next pass_for_now(struct sl_job *job, enum cause worst)
{
    bool is_conflict = worst == CAUSE_CONFLICT;
    job->code = is_conflict ? "TransactionConflict" : "ThrottlingError";
    job->text =
        sl_arena_printf(job->call->arena, "%s: TransactWriteItems: %s in every attempt", job->client->name,
                        is_conflict ? "another write of one of its items was in progress" : "throttled");
    return is_conflict ? SL_JOB_AGAIN : SL_JOB_THROTTLED;
}

/* A reason that is not in our list is judged as a refusal with its code is. */
static enum sl_job_next judge_unknown(struct sl_job *job, struct sl_span reasons)
{
    struct sl_json_walk walk = sl_json_walk(reasons);
    struct sl_span reason = {NULL, 0};
    do {
        (void)sl_json_walk_next(&walk, NULL, &reason); /* there is one */
    } while (cause_of(reason) != CAUSE_UNKNOWN);
    struct sl_span code = sl_answer_text(reason, "Code");
    struct sl_code is =
        sl_client_judge(job->client, code, sl_answer_text(reason, "Message"), job->answer->status);
    job->text = text_of(job, reason, &job->code);
    if (is.kind == SL_CODE_UNKNOWN)
        return SL_JOB_DOUBT;
    job->status = is.status;
    return is.status == SL_FATAL ? SL_JOB_FATAL : is.status == SL_RETRY ? SL_JOB_AGAIN : SL_JOB_DONE;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct group *g = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body), reason, reasons = {NULL, 0};
    enum cause worst;
    if (strcmp(refusal->code, "TransactionCanceledException") != 0)
        return SL_JOB_JUDGE;
    if (sl_answer_is_json(body))
        reasons = sl_answer_container(body, "CancellationReasons", '[');
    if (!find_worst(g, reasons, &worst))
        return SL_JOB_BROKEN;
    if (worst == CAUSE_UNKNOWN)
        return judge_unknown(job, reasons);
    if (worst != CAUSE_REJECTED)
        return pass_for_now(job, worst);
    struct sl_json_walk walk = sl_json_walk(reasons);
    for (size_t i = 0; i < g->n && sl_json_walk_next(&walk, NULL, &reason); i++)
        settle(job, &g->ops[i], reason);
    g->is_settled = true;
    return SL_JOB_DONE;
}

static void finish(struct sl_dynamodb_work *work, struct sl_job *job)
{
    struct group *g = (struct group *)work;
    for (size_t i = 0; i < g->n && !g->is_settled; i++) {
        sl_result_job(g->ops[i].result, job);
        g->ops[i].is_over = true;
    }
}

static enum sl_job_next answered(struct sl_job *job)
{
    enum sl_job_next next = sl_answer_is_object(job);
    if (next == SL_JOB_DONE)
        sl_dynamodb_count(job, false);
    return next;
}

static const struct sl_job_kind group_kind = {answered, refused};

static const char *action_of(const struct sl_table_op *op)
{
    switch (op->verb) {
    case SL_TABLE_PUT:
        return "{\"Put\":{";
    case SL_TABLE_DELETE:
        return "{\"Delete\":{";
    case SL_TABLE_UPDATE:
        return "{\"Update\":{";
    default:
        return "{\"ConditionCheck\":{";
    }
}

/* The items of a transaction have 4 MB together ("Quotas in Amazon DynamoDB"). */
static size_t answer_bytes(const struct sl_dynamodb_op *ops, size_t n)
{
    const size_t all = (size_t)4 * 1024 * 1024 * SL_DYNAMODB_ESCAPED;
    size_t items = 0;
    for (size_t i = 0; i < n; i++)
        items += ops[i].op->want_item ? SL_DYNAMODB_ITEM_BYTES : 0;
    return SL_DYNAMODB_ANSWER_BYTES + (items < all ? items : all);
}

/* With the token, a second attempt of a transaction that was carried out is a success, for 10 minutes. */
void sl_dynamodb_group(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *ops, size_t n)
{
    char token[37];
    struct group *g = sl_arena_zalloc(apply->scratch, sizeof(*g));
    g->work = (struct sl_dynamodb_work){.apply = apply, .finish = finish, .body = {.arena = apply->scratch}};
    g->ops = ops;
    g->n = n;
    struct sl_dynamodb_body *body = &g->work.body;
    sl_client_uuid(&apply->table->client, token);
    sl_dynamodb_add(body, sl_span_str(sl_arena_printf(
                              apply->scratch, "{\"ClientRequestToken\":\"%s\",\"TransactItems\":[", token)));
    for (size_t i = 0; i < n; i++) {
        if (i)
            sl_dynamodb_add(body, SL_LIT(","));
        sl_dynamodb_add(body, sl_span_str(action_of(ops[i].op)));
        sl_dynamodb_add_op(body, &ops[i], NULL, ops[i].op->want_item);
        sl_dynamodb_add(body, SL_LIT("}}"));
    }
    sl_dynamodb_add(body, SL_LIT("]"));
    sl_dynamodb_add(body, sl_dynamodb_asks_units(apply));
    sl_dynamodb_add(body, SL_LIT("}"));
    struct sl_job *job = sl_dynamodb_job(apply, &g->work, &group_kind, "TransactWriteItems");
    for (size_t i = 0; i < n; i++)
        sl_dynamodb_add_place(job, &ops[i]);
    sl_dynamodb_set_body(job, &g->work);
    job->answer_bytes = answer_bytes(ops, n);
}
