/* PutItem, DeleteItem and UpdateItem, one operation a request. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "sinks/result.h"
#include "base/json_walk.h"

struct single {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op *op;
    bool *dropped; /* running values that need no change; NULL when the operation has none */
    bool is_settled;
};

static bool wants_item(const struct single *s)
{
    return s->op->op->want_item || s->dropped;
}

static void write_body(struct single *s)
{
    struct sl_dynamodb_body *body = &s->work.body;
    body->n = 0;
    sl_dynamodb_add(body, SL_LIT("{"));
    sl_dynamodb_add_op(body, s->op, s->dropped, wants_item(s));
    sl_dynamodb_add(body, sl_dynamodb_asks_units(s->work.apply));
    sl_dynamodb_add(body, SL_LIT("}"));
}

/* ---- running values: the greater, the lesser ---- */

static enum sl_status holds(struct sl_span item, enum sl_test_verb verb, const struct sl_set *set,
                            bool *result)
{
    const struct sl_test test = {.verb = verb, .name = set->name, .value = set->value};
    const struct sl_table_op op = {.verb = SL_TABLE_CHECK, .tests = &test, .n_tests = 1};
    return sl_item_test(&op, item, result, NULL);
}

enum standing { NEEDS_NO_CHANGE, NEEDS_CHANGE, HAS_NO_ORDER };

/* Whether the item's value needs to change. */
static enum standing compare(struct sl_span item, const struct sl_set *set)
{
    bool less = false, equal = false, greater = false, absent = false;
    if (holds(item, SL_ABSENT, set, &absent) != SL_OK || holds(item, SL_LT, set, &less) != SL_OK ||
        holds(item, SL_EQ, set, &equal) != SL_OK || holds(item, SL_GT, set, &greater) != SL_OK)
        return HAS_NO_ORDER;
    if (absent || (set->verb == SL_SET_MAX ? less : greater))
        return NEEDS_CHANGE;
    return equal || less || greater ? NEEDS_NO_CHANGE : HAS_NO_ORDER;
}

static bool anything_left(const struct single *s)
{
    const struct sl_table_op *op = s->op->op;
    for (size_t i = 0; i < op->n_sets; i++)
        if (!s->dropped[i])
            return true;
    return op->n_tests > 0;
}

/* A condition failed: of a running value, or a test. The old item, which came with the refusal, shows which.
 * Values that need no change are left out, and the rest is sent again. */
static enum sl_job_next drop_unneeded(struct sl_job *job, struct single *s, struct sl_span item)
{
    const struct sl_table_op *op = s->op->op;
    bool any = false;
    for (size_t i = 0; i < op->n_sets; i++) {
        if (!sl_table_is_running(&op->sets[i]) || s->dropped[i])
            continue;
        enum standing standing = compare(item, &op->sets[i]);
        if (standing == HAS_NO_ORDER) {
            sl_result_fail(s->op->result, job->call->arena, SL_REJECT, "ValidationException",
                           "%s: UpdateItem: the item's %.*s cannot be compared with the new value",
                           job->client->name, SL_ARG(op->sets[i].name));
            s->is_settled = true;
            return SL_JOB_DONE;
        }
        if (standing == NEEDS_NO_CHANGE)
            s->dropped[i] = any = true;
    }
    if (!anything_left(s))
        return SL_JOB_DONE;
    write_body(s);
    sl_dynamodb_set_body(job, &s->work);
    job->code = "ConditionalCheckFailedException";
    job->text =
        sl_arena_printf(job->call->arena, "%s: UpdateItem: the item was changed by others in every attempt",
                        job->client->name);
    return any ? SL_JOB_AT_ONCE : SL_JOB_AGAIN;
}

static enum sl_job_next condition_failed(struct sl_job *job, struct single *s)
{
    struct sl_span body = sl_buffer_span(&job->answer->body);
    const struct sl_table_op *op = s->op->op;
    /* Without a condition none can fail, and the item is the one that was asked about. */
    if ((!op->n_tests && !s->dropped) || !sl_answer_is_json(body) ||
        !sl_dynamodb_is_item_of(s->work.apply, s->op, body))
        return SL_JOB_BROKEN;
    struct sl_span old = sl_answer_container(body, "Item", '{');
    sl_dynamodb_count_refused(&s->work, op, old);
    if (!op->n_tests && !old.ptr)
        return SL_JOB_BROKEN; /* a running value is refused for what the item has */
    bool tests_hold = false;
    enum sl_job_next next = SL_JOB_DONE;
    if (s->dropped && old.ptr && sl_item_test(op, old, &tests_hold, NULL) == SL_OK && tests_hold) {
        next = drop_unneeded(job, s, old);
    } else {
        sl_table_condition_failed(s->op->result, job->call->arena, op, old);
        s->is_settled = true;
    }
    return next;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    return strcmp(refusal->code, "ConditionalCheckFailedException") == 0 ? condition_failed(job, job->context)
                                                                         : SL_JOB_JUDGE;
}

static void finish(struct sl_dynamodb_work *work, struct sl_job *job)
{
    struct single *s = (struct single *)work;
    if (s->is_settled)
        s->op->is_over = true;
    else
        sl_dynamodb_finish_op(s->op, job);
}

static enum sl_job_next answered(struct sl_job *job)
{
    enum sl_job_next next = sl_answer_is_object(job);
    if (next == SL_JOB_DONE)
        sl_dynamodb_count(job, false);
    return next;
}

static const struct sl_job_kind single_kind = {answered, refused};

void sl_dynamodb_single(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op)
{
    const char *operation = op->op->verb == SL_TABLE_PUT      ? "PutItem"
                            : op->op->verb == SL_TABLE_DELETE ? "DeleteItem"
                                                              : "UpdateItem";
    struct single *s = sl_arena_zalloc(apply->scratch, sizeof(*s));
    s->work = (struct sl_dynamodb_work){.apply = apply, .finish = finish, .body = {.arena = apply->scratch}};
    s->op = op;
    if (sl_table_has_running(op->op))
        s->dropped = sl_arena_zalloc(apply->scratch, op->op->n_sets * sizeof(bool));
    write_body(s);
    struct sl_job *job = sl_dynamodb_job(apply, &s->work, &single_kind, operation);
    sl_dynamodb_add_place(job, op);
    sl_dynamodb_set_body(job, &s->work);
    if (wants_item(s))
        job->answer_bytes = SL_DYNAMODB_ANSWER_BYTES + SL_DYNAMODB_ITEM_BYTES;
}
