#include "sinks/aws/dynamodb.h"

#include "base/json.h"
#include "sinks/result.h"

struct group {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op *ops;
    size_t n;
    bool is_settled; /* the reasons were read one by one */
};

/* What the whole refusal comes down to. */
enum cause { NO_CAUSE, CAUSE_CONFLICT, CAUSE_THROTTLED, CAUSE_REJECTED };

static struct sl_span text_member(struct sl_span json, struct sl_span name)
{
    struct sl_span value = sl_answer_member(json, name);
    return value.len >= 2 && *value.ptr == '"' ? sl_span(value.ptr + 1, value.len - 2) : sl_span(NULL, 0);
}

static enum cause cause_of(struct sl_span code)
{
    if (!code.len || sl_span_is(code, "None"))
        return NO_CAUSE;
    if (sl_span_is(code, "TransactionConflict"))
        return CAUSE_CONFLICT;
    if (sl_span_is(code, "ThrottlingError") || sl_span_is(code, "ProvisionedThroughputExceeded"))
        return CAUSE_THROTTLED;
    return CAUSE_REJECTED;
}

static void cancel(struct group *g, struct sl_dynamodb_op *op)
{
    sl_result_fail(op->result, g->work.apply->call->arena, SL_REJECT, "TransactionCanceled",
                   "%s: another operation of the transaction was refused", g->work.apply->table->client.name);
}

static void settle(struct group *g, struct sl_dynamodb_op *op, struct sl_span reason)
{
    struct sl_dynamodb_apply *apply = g->work.apply;
    struct sl_arena *arena = apply->call->arena;
    struct sl_span code = text_member(reason, SL_LIT("Code"));
    if (sl_span_is(code, "ConditionalCheckFailed")) {
        sl_dynamodb_condition_failed(apply, op, sl_answer_member(reason, SL_LIT("Item")));
    } else if (cause_of(code) == CAUSE_REJECTED) {
        char message[SL_ANSWER_MESSAGE_BYTES];
        struct sl_span said = text_member(reason, SL_LIT("Message"));
        said.len = said.len < sizeof(message) ? said.len : sizeof(message) - 1;
        if (said.len)
            memcpy(message, said.ptr, said.len);
        message[said.len] = '\0';
        sl_answer_mask(message, g->work.body.parts, g->work.body.n);
        sl_result_fail(op->result, arena, SL_REJECT, sl_arena_copy(arena, code),
                       "%s: TransactWriteItems: %.*s: %s", apply->table->client.name, SL_ARG(code), message);
    } else {
        cancel(g, op);
    }
    op->is_over = true;
}

/* The worst of the reasons; how many there are. */
static enum cause worst_of(struct sl_span reasons, size_t *n)
{
    enum cause worst = NO_CAUSE;
    struct sl_answer_walk walk = sl_answer_walk(reasons);
    struct sl_span reason;
    for (*n = 0; sl_answer_step(&walk, NULL, &reason); (*n)++) {
        enum cause cause = cause_of(text_member(reason, SL_LIT("Code")));
        worst = cause > worst ? cause : worst;
    }
    return worst;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_answer_error *error)
{
    struct group *g = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    if (strcmp(error->code, "TransactionCanceledException") != 0 || sl_json_check(body, NULL) != SL_OK)
        return SL_JOB_JUDGE;
    struct sl_span reasons = sl_answer_member(body, SL_LIT("CancellationReasons")), reason;
    size_t n = 0;
    enum cause worst = worst_of(reasons, &n);
    if (n != g->n || worst == NO_CAUSE)
        return SL_JOB_JUDGE;
    if (worst != CAUSE_REJECTED) {
        job->code = worst == CAUSE_CONFLICT ? "TransactionConflict" : "ThrottlingError";
        job->text = sl_arena_printf(
            job->call->arena, "%s: TransactWriteItems: %s, again and again", job->client->name,
            worst == CAUSE_CONFLICT ? "another write of one of its items was under way" : "throttled");
        return worst == CAUSE_CONFLICT ? SL_JOB_AGAIN : SL_JOB_THROTTLED;
    }
    struct sl_answer_walk walk = sl_answer_walk(reasons);
    for (size_t i = 0; i < g->n && sl_answer_step(&walk, NULL, &reason); i++)
        settle(g, &g->ops[i], reason);
    g->is_settled = true;
    return SL_JOB_DONE;
}

static void finish(struct sl_dynamodb_work *work, struct sl_job *job)
{
    struct group *g = (struct group *)work;
    for (size_t i = 0; i < g->n && !g->is_settled; i++) {
        sl_job_result(job, g->ops[i].result);
        g->ops[i].is_over = true;
    }
}

static const struct sl_job_kind group_kind = {NULL, refused};

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

/* The token makes a second attempt of a transaction that was carried out a success, for 10 minutes. */
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
    sl_dynamodb_add(body, SL_LIT("]}"));
    sl_dynamodb_set_body(sl_dynamodb_job(apply, &g->work, &group_kind, "TransactWriteItems"), &g->work);
}
