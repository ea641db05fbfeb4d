#include "sinks/aws/dynamodb.h"

#include "base/json.h"
#include "sinks/result.h"

struct single {
    struct sl_dynamodb_work work;
    struct sl_dynamodb_op *op;
    bool *dropped; /* running values that stand already; NULL when the operation has none */
    bool is_settled;
};

static bool is_running(const struct sl_set *set)
{
    return set->verb == SL_SET_MAX || set->verb == SL_SET_MIN;
}

static bool has_running(const struct sl_table_op *op)
{
    for (size_t i = 0; i < op->n_sets; i++)
        if (is_running(&op->sets[i]))
            return true;
    return false;
}

static void write_body(struct single *s)
{
    const struct sl_table_op *op = s->op->op;
    struct sl_dynamodb_body *body = &s->work.body;
    body->n = 0;
    sl_dynamodb_add(body, SL_LIT("{"));
    sl_dynamodb_add_op(body, s->op, s->dropped, op->want_item || s->dropped);
    sl_dynamodb_add(body, SL_LIT("}"));
}

/* ---- running values: the greater, the lesser ---- */

static enum sl_status holds(const json_t *item, enum sl_test_verb verb, const struct sl_set *set,
                            bool *result)
{
    const struct sl_test test = {.verb = verb, .name = set->name, .value = set->value};
    const struct sl_table_op op = {.verb = SL_TABLE_CHECK, .tests = &test, .n_tests = 1};
    return sl_item_test(&op, item, result, NULL);
}

enum standing { STANDS, IS_BEHIND, HAS_NO_ORDER };

/* Whether the item has a value that needs no change. */
static enum standing compare(const json_t *item, const struct sl_set *set)
{
    bool less = false, equal = false, greater = false, absent = false;
    if (holds(item, SL_ABSENT, set, &absent) != SL_OK || holds(item, SL_LT, set, &less) != SL_OK ||
        holds(item, SL_EQ, set, &equal) != SL_OK || holds(item, SL_GT, set, &greater) != SL_OK)
        return HAS_NO_ORDER;
    if (absent || (set->verb == SL_SET_MAX ? less : greater))
        return IS_BEHIND;
    return equal || less || greater ? STANDS : HAS_NO_ORDER;
}

static bool anything_left(const struct single *s)
{
    const struct sl_table_op *op = s->op->op;
    for (size_t i = 0; i < op->n_sets; i++)
        if (!s->dropped[i])
            return true;
    return op->n_tests > 0;
}

/* The condition of a running value failed, or a test did: the old item, which came with the refusal, tells
 * which. Values that stand are left out, and the rest is sent again in one piece. */
static enum sl_job_next drop_standing(struct sl_job *job, struct single *s, const json_t *item)
{
    const struct sl_table_op *op = s->op->op;
    bool any = false;
    for (size_t i = 0; i < op->n_sets; i++) {
        if (!is_running(&op->sets[i]) || s->dropped[i])
            continue;
        enum standing standing = compare(item, &op->sets[i]);
        if (standing == HAS_NO_ORDER) {
            sl_result_fail(s->op->result, job->call->arena, SL_REJECT, "ValidationException",
                           "%s: UpdateItem: the item's %.*s cannot be compared with the new value",
                           job->client->name, SL_ARG(op->sets[i].name));
            s->is_settled = true;
            return SL_JOB_DONE;
        }
        if (standing == STANDS)
            s->dropped[i] = any = true;
    }
    if (!anything_left(s))
        return SL_JOB_DONE;
    write_body(s);
    sl_dynamodb_set_body(job, &s->work);
    job->code = "ConditionalCheckFailedException";
    job->text = sl_arena_printf(job->call->arena, "%s: UpdateItem: the item changed again and again",
                                job->client->name);
    return any ? SL_JOB_AT_ONCE : SL_JOB_AGAIN;
}

static enum sl_job_next condition_failed(struct sl_job *job, struct single *s)
{
    struct sl_dynamodb_apply *apply = s->work.apply;
    struct sl_span body = sl_buffer_span(&job->answer->body), old = {NULL, 0};
    if (sl_json_check(body, NULL) == SL_OK)
        old = sl_answer_member(body, SL_LIT("Item"));
    json_t *item = old.ptr ? sl_item_parse(old, NULL) : NULL;
    bool tests_hold = false;
    enum sl_job_next next = SL_JOB_DONE;
    if (s->dropped && item && sl_item_test(s->op->op, item, &tests_hold, NULL) == SL_OK && tests_hold) {
        next = drop_standing(job, s, item);
    } else {
        sl_dynamodb_condition_failed(apply, s->op, old);
        s->is_settled = true;
    }
    json_decref(item);
    return next;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_answer_error *error)
{
    return strcmp(error->code, "ConditionalCheckFailedException") == 0 ? condition_failed(job, job->context)
                                                                       : SL_JOB_JUDGE;
}

static void finish(struct sl_dynamodb_work *work, struct sl_job *job)
{
    struct single *s = (struct single *)work;
    if (!s->is_settled)
        sl_job_result(job, s->op->result);
    s->op->is_over = true;
}

static const struct sl_job_kind single_kind = {NULL, refused};

void sl_dynamodb_single(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op)
{
    const char *operation = op->op->verb == SL_TABLE_PUT      ? "PutItem"
                            : op->op->verb == SL_TABLE_DELETE ? "DeleteItem"
                                                              : "UpdateItem";
    struct single *s = sl_arena_zalloc(apply->scratch, sizeof(*s));
    s->work = (struct sl_dynamodb_work){.apply = apply, .finish = finish, .body = {.arena = apply->scratch}};
    s->op = op;
    if (has_running(op->op))
        s->dropped = sl_arena_zalloc(apply->scratch, op->op->n_sets * sizeof(bool));
    write_body(s);
    sl_dynamodb_set_body(sl_dynamodb_job(apply, &s->work, &single_kind, operation), &s->work);
}
