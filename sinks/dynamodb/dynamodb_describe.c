/* DescribeTable: what is known of a table. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_write.h"
#include "sinks/result.h"

#include <stdlib.h>

struct describe {
    struct sl_span name;
    struct sl_table_facts *facts;
};

/* ---- members: each is false when it is something else ---- */

static struct sl_span text_of(struct sl_span object, const char *name, struct sl_arena *arena)
{
    struct sl_span text = sl_answer_text(object, name);
    struct sl_span plain = text.ptr ? sl_json_unescape(text, arena) : text;
    return plain.ptr ? sl_span(sl_arena_copy(arena, plain), plain.len) : plain;
}

static bool read_count(struct sl_span object, const char *name, uint64_t *out)
{
    struct sl_span text = sl_json_walk_member(object, sl_span_str(name));
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return text.len > 0 && text.len < 19;
}

/* The type that AttributeDefinitions gives the attribute; '\0' when none. */
static char type_of(struct sl_span definitions, struct sl_span name, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(definitions);
    struct sl_span entry;
    while (sl_json_walk_next(&walk, NULL, &entry)) {
        struct sl_span type = sl_answer_text(entry, "AttributeType");
        if (sl_span_eq(text_of(entry, "AttributeName", arena), name) && type.len == 1 &&
            strchr("SNB", *type.ptr))
            return *type.ptr;
    }
    return '\0';
}

/* The partition key, then the sort key if there is one. */
static bool read_keys(struct sl_span table, struct sl_table_facts *facts, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(sl_answer_container(table, "KeySchema", '['));
    struct sl_span entry, definitions = sl_answer_container(table, "AttributeDefinitions", '[');
    facts->n_keys = 0;
    while (sl_json_walk_next(&walk, NULL, &entry)) {
        if (facts->n_keys == 2 ||
            !sl_span_is(sl_answer_text(entry, "KeyType"), facts->n_keys ? "RANGE" : "HASH"))
            return false;
        struct sl_table_key *key = &facts->keys[facts->n_keys++];
        key->name = text_of(entry, "AttributeName", arena);
        key->type = key->name.len ? type_of(definitions, key->name, arena) : '\0';
        if (!key->type)
            return false;
    }
    return facts->n_keys > 0;
}

static bool read_billing(struct sl_span table, struct sl_table_facts *facts)
{
    struct sl_span summary = sl_json_walk_member(table, SL_LIT("BillingModeSummary"));
    struct sl_span mode = sl_answer_text(summary, "BillingMode");
    struct sl_span provisioned = sl_answer_container(table, "ProvisionedThroughput", '{');
    uint64_t read = 0, write = 0;
    facts->is_on_demand = sl_span_is(mode, "PAY_PER_REQUEST");
    if (summary.ptr && !facts->is_on_demand && !sl_span_is(mode, "PROVISIONED"))
        return false;
    if (!facts->is_on_demand && (!read_count(provisioned, "ReadCapacityUnits", &read) ||
                                 !read_count(provisioned, "WriteCapacityUnits", &write)))
        return false;
    facts->read_units = (double)read;
    facts->write_units = (double)write;
    return true;
}

static bool read_table(const struct describe *d, struct sl_span table, struct sl_arena *arena)
{
    struct sl_table_facts *facts = d->facts;
    struct sl_span stream = sl_json_walk_member(table, SL_LIT("LatestStreamArn"));
    facts->arn = text_of(table, "TableArn", arena);
    facts->stream_arn = text_of(table, "LatestStreamArn", arena);
    return sl_dynamodb_is_table(sl_answer_text(table, "TableName"), d->name) &&
           sl_span_starts(facts->arn, SL_LIT("arn:")) &&
           (!stream.ptr || sl_span_starts(facts->stream_arn, SL_LIT("arn:"))) &&
           read_keys(table, facts, arena) && read_count(table, "ItemCount", &facts->items) &&
           read_count(table, "TableSizeBytes", &facts->bytes) && read_billing(table, facts);
}

static enum sl_job_next answered(struct sl_job *job)
{
    const struct describe *d = job->context;
    struct sl_span answer, table = {NULL, 0};
    if (sl_answer_object(job, &answer))
        table = sl_answer_container(answer, "Table", '{');
    return table.ptr && read_table(d, table, job->call->arena) ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static const struct sl_job_kind describe_kind = {answered, NULL};

void sl_dynamodb_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                          const struct sl_call *call)
{
    struct sl_dynamodb *own = (struct sl_dynamodb *)port;
    struct sl_arena *scratch = own->client.aws->scratch;
    struct sl_error error = SL_NO_ERROR;
    struct describe d = {.name = table.ptr ? table : own->name, .facts = facts};
    *facts = (struct sl_table_facts){.result = {.status = SL_OK}};
    if (table.ptr && sl_dynamodb_check_table(table, &error) != SL_OK) {
        sl_error_context(&error, "%s: DescribeTable", own->client.name);
        sl_result_refuse(&facts->result, call->arena, &error);
        return;
    }
    struct sl_buffer body;
    sl_buffer_init_in(&body, scratch, SL_DYNAMODB_ANSWER_BYTES);
    sl_buffer_add_str(&body, "{\"TableName\":");
    sl_json_add_string(&body, d.name);
    sl_buffer_add_char(&body, '}');
    struct sl_span text = sl_buffer_span(&body);
    struct sl_job job = {.kind = &describe_kind,
                         .context = &d,
                         .operation = "DescribeTable",
                         .parts = &text,
                         .n_parts = 1,
                         .of_no_record = true};
    sl_job_run(&own->client, &job, 1, call);
    struct sl_result result;
    sl_result_job(&result, &job);
    if (result.status != SL_OK)
        *facts = (struct sl_table_facts){.bytes = 0};
    facts->result = result;
    sl_arena_reset(scratch);
}
