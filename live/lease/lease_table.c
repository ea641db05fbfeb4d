/* DescribeTable and CreateTable for the lease table: what the table port has no use for. */
#include "live/lease/lease_table.h"

#include "aws/answer.h"
#include "aws/aws.h"
#include "base/json.h"
#include "base/json_write.h"

#include <string.h>

#define REQUEST_BYTES 4096
#define CALL_MS       20000
#define WAIT_MS       500

/* KCL 3 finds the leases of a worker by it (DynamoDBLeaseRefresher). */
static const char index_of_newer[] = "LeaseOwnerToLeaseKeyIndex";

enum found { IS_ABSENT, IS_ACTIVE, IS_IN_BETWEEN, IS_ANOTHER, IS_NEWER };

struct asking {
    struct sl_client client;
    struct sl_clock *clock;
    struct sl_span name;
    enum found found;
    bool may_be_newer;
};

/* ---- what DescribeTable says ---- */

static bool has_newer_index(struct sl_span table)
{
    struct sl_json_walk walk = sl_json_walk(sl_answer_container(table, "GlobalSecondaryIndexes", '['));
    struct sl_span one;
    while (sl_json_walk_next(&walk, NULL, &one))
        if (sl_span_is(sl_answer_text(one, "IndexName"), index_of_newer))
            return true;
    return false;
}

/* One key, leaseKey, a text. */
static bool has_lease_key(struct sl_span table)
{
    struct sl_json_walk walk = sl_json_walk(sl_answer_container(table, "KeySchema", '['));
    struct sl_span one, definition;
    size_t n = 0;
    bool is_text = false;
    while (sl_json_walk_next(&walk, NULL, &one))
        n += sl_span_is(sl_answer_text(one, "AttributeName"), "leaseKey") ? 1 : 2;
    walk = sl_json_walk(sl_answer_container(table, "AttributeDefinitions", '['));
    while (sl_json_walk_next(&walk, NULL, &definition))
        is_text |= sl_span_is(sl_answer_text(definition, "AttributeName"), "leaseKey") &&
                   sl_span_is(sl_answer_text(definition, "AttributeType"), "S");
    return n == 1 && is_text;
}

static enum sl_job_next described(struct sl_job *job)
{
    struct asking *a = job->context;
    struct sl_span answer, table = {NULL, 0};
    if (sl_answer_object(job, &answer))
        table = sl_answer_container(answer, "Table", '{');
    struct sl_span status = sl_answer_text(table, "TableStatus");
    if (!status.len || !sl_span_eq(sl_answer_text(table, "TableName"), a->name))
        return SL_JOB_BROKEN;
    if (!has_lease_key(table))
        a->found = IS_ANOTHER;
    else if (has_newer_index(table))
        a->found = IS_NEWER;
    else
        a->found = sl_span_is(status, "ACTIVE") || sl_span_is(status, "UPDATING") ? IS_ACTIVE : IS_IN_BETWEEN;
    return SL_JOB_DONE;
}

static enum sl_job_next not_described(struct sl_job *job, const struct sl_refusal *refusal)
{
    if (strcmp(refusal->code, "ResourceNotFoundException") != 0)
        return SL_JOB_JUDGE;
    ((struct asking *)job->context)->found = IS_ABSENT;
    return SL_JOB_DONE;
}

/* Another worker creates it at the same time. */
static enum sl_job_next not_created(struct sl_job *job, const struct sl_refusal *refusal)
{
    (void)job;
    return strcmp(refusal->code, "ResourceInUseException") == 0 ? SL_JOB_DONE : SL_JOB_JUDGE;
}

/* ---- requests ---- */

static enum sl_status ask(struct asking *a, const char *operation, const struct sl_job_kind *kind,
                          const char *more, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_buffer body;
    sl_buffer_init_in(&body, arena, REQUEST_BYTES);
    sl_buffer_add_char(&body, '{');
    sl_json_add_member(&body, "TableName", a->name);
    sl_buffer_add_str(&body, more);
    sl_buffer_add_char(&body, '}');
    struct sl_span text = sl_buffer_span(&body);
    const struct sl_call call = {.arena = arena, .deadline_ms = a->clock->now_ms(a->clock) + CALL_MS};
    struct sl_job job = {.kind = kind,
                         .context = a,
                         .operation = operation,
                         .parts = &text,
                         .n_parts = 1,
                         .of_no_record = true};
    sl_job_run(&a->client, &job, 1, &call);
    if (job.status != SL_OK)
        sl_fail(error, job.status, job.code ? job.code : "Failed", "%s", job.text ? job.text : operation);
    enum sl_status status = job.status;
    sl_arena_destroy(arena);
    return status;
}

static enum sl_status create(struct asking *a, struct sl_error *error)
{
    static const struct sl_job_kind kind = {sl_answer_is_object, not_created};
    static const char more[] = ",\"BillingMode\":\"PAY_PER_REQUEST\","
                               "\"KeySchema\":[{\"AttributeName\":\"leaseKey\",\"KeyType\":\"HASH\"}],"
                               "\"AttributeDefinitions\":[{\"AttributeName\":\"leaseKey\","
                               "\"AttributeType\":\"S\"}]";
    return ask(a, "CreateTable", &kind, more, error);
}

static enum sl_status judge(const struct asking *a, struct sl_error *error)
{
    if (a->found == IS_ANOTHER)
        return sl_fail(error, SL_REJECT, "NotALease",
                       "the table %.*s is no lease table: its key is not leaseKey (S) alone. Name another "
                       "table; one that does not exist is created",
                       SL_ARG(a->name));
    if (a->found == IS_NEWER && !a->may_be_newer)
        return sl_fail(error, SL_REJECT, "NewerLeases",
                       "the table %.*s has the index %s: it is one of KCL 3, whose protocol is another. Name "
                       "another table; `sluice leases` carries its places over",
                       SL_ARG(a->name), index_of_newer);
    return SL_OK;
}

static enum sl_status wait_for(struct asking *a, bool *is_created, struct sl_error *error)
{
    static const struct sl_job_kind kind = {described, not_described};
    int64_t end_ms = a->clock->now_ms(a->clock) + SL_LEASE_TABLE_WAIT_MS;
    enum sl_status status = ask(a, "DescribeTable", &kind, "", error);
    if (status == SL_OK && a->found == IS_ABSENT) {
        *is_created = true;
        status = create(a, error);
        a->found = IS_IN_BETWEEN;
    }
    while (status == SL_OK && (a->found == IS_IN_BETWEEN || a->found == IS_ABSENT)) {
        if (a->clock->now_ms(a->clock) >= end_ms)
            return sl_fail(error, SL_RETRY, "NotActive", "the table %.*s is not active yet: try again",
                           SL_ARG(a->name));
        a->clock->sleep_ms(a->clock, WAIT_MS);
        status = ask(a, "DescribeTable", &kind, "", error);
    }
    return status == SL_OK ? judge(a, error) : status;
}

enum sl_status sl_lease_table_prepare(struct sl_sinks *sinks, struct sl_span target, bool may_be_newer,
                                      bool *is_created, struct sl_error *error)
{
    struct sl_aws *aws = sl_sinks_aws(sinks);
    struct asking a = {.clock = sinks->clock, .may_be_newer = may_be_newer};
    struct sl_url url;
    *is_created = false;
    if (!sl_span_starts(target, SL_LIT("dynamodb:")))
        return SL_OK;
    enum sl_status status = sl_url_parse(target, aws->lasting, &url, error);
    const struct sl_client_options options = {.service = &sl_service_dynamodb, .url = &url};
    a.name = url.rest;
    if (status == SL_OK)
        status = sl_client_init(&a.client, aws, &options, error);
    if (status == SL_OK)
        status = wait_for(&a, is_created, error);
    sl_client_clean_up(&a.client);
    return status;
}
