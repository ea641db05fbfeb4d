#include "tests/support/fake_dynamodb.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/item.h"
#include "sinks/target.h"
#include "tests/support/fake_dynamodb_expression.h"
#include "tests/support/honest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITES = 25, READS = 100, ACTIONS = 100, REQUEST_BYTES = 16 * 1024 * 1024, SPARED = 12 };

struct fake_dynamodb {
    struct sl_vars vars;
    struct sl_sinks sinks;
    struct sl_table_port *table;
    struct sl_call call;
    struct sl_buffer out;
    const char *fault;
    const char *refusal; /* a ValidationException's text; NULL: the request is good */
    uint64_t random;
    unsigned one_in;
    size_t since; /* requests since one was refused for now: the next attempts pass */
    size_t troubled;
    struct sl_span asked;
};

static const struct table {
    const char *name, *type, *sort;
} tables[] = {{"main", "S", "SK"}, {"side", "S", NULL}, {"numbers", "N", NULL}};

struct fake_dynamodb *fake_dynamodb_open(const char *folder)
{
    struct fake_dynamodb *f = calloc(1, sizeof(*f));
    struct sl_error error = SL_NO_ERROR;
    char url[500];
    snprintf(url, sizeof(url), "sqlite:%s/fake.db?table=main", folder);
    sl_sinks_init(&f->sinks, sl_clock_system(), NULL, &f->vars);
    f->call = (struct sl_call){sl_arena_new(64 * 1024), INT64_MAX};
    sl_buffer_init(&f->out, 1 << 28);
    f->random = 7;
    if (sl_target_table(&f->sinks, sl_span_str(url), &f->table, &error) != SL_OK)
        sl_die("%s", error.text);
    return f;
}

void fake_dynamodb_close(struct fake_dynamodb *f)
{
    f->table->close(f->table);
    sl_sinks_clean_up(&f->sinks);
    sl_arena_destroy(f->call.arena);
    sl_buffer_clean_up(&f->out);
    free(f);
}

void fake_dynamodb_trouble(struct fake_dynamodb *f, unsigned one_in)
{
    f->one_in = one_in;
}

size_t fake_dynamodb_troubled(const struct fake_dynamodb *f)
{
    return f->troubled;
}

const char *fake_dynamodb_fault(const struct fake_dynamodb *f)
{
    return f->fault;
}

static bool has_trouble(struct fake_dynamodb *f)
{
    bool has = f->one_in && sl_random_step(&f->random) % f->one_in == 0;
    f->troubled += has;
    return has;
}

/* ---- requests ---- */

static struct sl_span member(struct sl_span object, const char *name)
{
    return sl_json_walk_member(object, sl_span_str(name));
}

static struct sl_span text(struct fake_dynamodb *f, struct sl_span object, const char *name)
{
    struct sl_span value = member(object, name);
    return value.ptr ? sl_json_unescape(sl_span(value.ptr + 1, value.len - 2), f->call.arena) : value;
}

static const struct table *table_of(struct fake_dynamodb *f, struct sl_span name)
{
    for (size_t i = 0; i < 3; i++)
        if (sl_span_is(name, tables[i].name))
            return &tables[i];
    f->refusal = "no such table";
    return &tables[0];
}

/* The key that an item has by the table's schema; a key has nothing else. */
static struct sl_span key_of(struct fake_dynamodb *f, const struct table *table, struct sl_span item,
                             bool is_key)
{
    struct sl_span pk = sl_item_attribute(item, SL_LIT("PK")),
                   sk = table->sort ? sl_item_attribute(item, SL_LIT("SK")) : sl_span("", 0);
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    size_t n = 0;
    while (sl_json_walk_next(&walk, &name, &value))
        n++;
    bool is_typed = member(pk, table->type).ptr && (!table->sort || member(sk, "S").ptr);
    if (!is_typed || (is_key && n != (table->sort ? 2 : 1)))
        f->refusal = "The provided key element does not match the schema";
    return sl_span_str(
        table->sort ? sl_arena_printf(f->call.arena, "{\"PK\":%.*s,\"SK\":%.*s}", SL_ARG(pk), SL_ARG(sk))
                    : sl_arena_printf(f->call.arena, "{\"PK\":%.*s}", SL_ARG(pk)));
}

static struct sl_span read_item(struct fake_dynamodb *f, const struct sl_table_op *op)
{
    const struct sl_table_op get = {.verb = SL_TABLE_GET, .table = op->table, .key = op->key};
    struct sl_result result;
    f->table->apply(f->table, &get, 1, &result, &f->call);
    if (result.status != SL_OK)
        f->refusal = result.text;
    return result.item;
}

/* One action, from the members that PutItem, DeleteItem, UpdateItem, Put, Delete, Update and ConditionCheck
 * share. */
struct action {
    struct sl_table_op op;
    bool holds;          /* its condition */
    struct sl_span item; /* as it was */
};

static void read_action(struct fake_dynamodb *f, enum sl_table_verb verb, struct sl_span asked,
                        struct action *out)
{
    struct sl_span item = member(asked, "Item"), key = member(asked, "Key");
    struct sl_span name = text(f, asked, "TableName");
    const struct table *table = table_of(f, name);
    *out = (struct action){.op = {.verb = verb, .table = name, .item = item}, .holds = true};
    if ((verb == SL_TABLE_PUT) != (item.ptr != NULL) || (item.ptr != NULL) == (key.ptr != NULL)) {
        f->fault = "an action has the item and the key that its verb does not have";
        return;
    }
    out->op.key = key_of(f, table, item.ptr ? item : key, !item.ptr);
    if (f->refusal)
        return;
    out->item = read_item(f, &out->op);
    struct fake_expressions e = {.arena = f->call.arena,
                                 .names = member(asked, "ExpressionAttributeNames"),
                                 .values = member(asked, "ExpressionAttributeValues"),
                                 .condition = text(f, asked, "ConditionExpression"),
                                 .update = text(f, asked, "UpdateExpression"),
                                 .item = out->item};
    fake_expressions_read(&e, &out->holds);
    out->op.sets = e.sets;
    out->op.n_sets = e.n_sets;
    f->fault = f->fault ? f->fault : e.fault;
    f->refusal = f->refusal ? f->refusal : e.refusal;
    out->op.want_item = sl_span_is(text(f, asked, "ReturnValuesOnConditionCheckFailure"), "ALL_OLD");
}

/* ---- answers ---- */

static void refuse(struct fake_dynamodb *f, struct scripted_reply *reply, const char *code, const char *why)
{
    sl_buffer_reset(&f->out);
    sl_buffer_printf(&f->out, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":", code);
    sl_json_add_string(&f->out, sl_span_str(why));
    sl_buffer_add_str(&f->out, "}");
    reply->status = strcmp(code, "InternalServerError") == 0 ? 500 : 400;
}

static bool wants_units(struct fake_dynamodb *f)
{
    return sl_span_is(text(f, f->asked, "ReturnConsumedCapacity"), "TOTAL");
}

/* As a list of two for what may name several tables. */
static void add_units(struct fake_dynamodb *f, const char *before, double units, bool is_list)
{
    if (!wants_units(f))
        return;
    if (is_list)
        sl_buffer_printf(&f->out,
                         "%s\"ConsumedCapacity\":[{\"TableName\":\"main\",\"CapacityUnits\":%.1f},"
                         "{\"TableName\":\"side\",\"CapacityUnits\":%.1f}]",
                         before, units / 2, units / 2);
    else
        sl_buffer_printf(&f->out, "%s\"ConsumedCapacity\":{\"TableName\":\"main\",\"CapacityUnits\":%.1f}",
                         before, units);
}

static void answer_single(struct fake_dynamodb *f, enum sl_table_verb verb, struct scripted_reply *reply)
{
    struct action a;
    struct sl_result result;
    read_action(f, verb, f->asked, &a);
    if (f->refusal)
        return;
    if (!a.holds) {
        refuse(f, reply, "ConditionalCheckFailedException", "The conditional request failed");
        if (a.op.want_item && a.item.ptr) {
            f->out.len--;
            sl_buffer_add_str(&f->out, ",\"Item\":");
            sl_buffer_add_span(&f->out, a.item);
            sl_buffer_add_str(&f->out, "}");
        }
        return;
    }
    f->table->apply(f->table, &a.op, 1, &result, &f->call);
    f->refusal = result.status == SL_OK ? NULL : result.text;
    sl_buffer_add_str(&f->out, "{");
    add_units(f, "", 1, false);
    sl_buffer_add_str(&f->out, "}");
}

static void add_reason(struct fake_dynamodb *f, const struct action *a, const struct sl_result *result)
{
    bool is_cause = result && strcmp(result->code, "TransactionCanceled") != 0;
    if (!a->holds && a->op.want_item && a->item.ptr)
        sl_buffer_printf(&f->out,
                         "{\"Code\":\"ConditionalCheckFailed\",\"Message\":\"The conditional request "
                         "failed\",\"Item\":%.*s}",
                         SL_ARG(a->item));
    else
        sl_buffer_printf(&f->out, "{\"Code\":\"%s\"}",
                         !a->holds  ? "ConditionalCheckFailed"
                         : is_cause ? "ValidationError"
                                    : "None");
}

static void answer_transaction(struct fake_dynamodb *f, struct scripted_reply *reply)
{
    static const char *const names[] = {"Put", "Delete", "Update", "ConditionCheck"};
    static const enum sl_table_verb verbs[] = {SL_TABLE_PUT, SL_TABLE_DELETE, SL_TABLE_UPDATE,
                                               SL_TABLE_CHECK};
    struct action list[ACTIONS + 1];
    struct sl_table_op writes[ACTIONS + 1];
    struct sl_result results[ACTIONS + 1] = {{0}};
    struct sl_json_walk walk = sl_json_walk(member(f->asked, "TransactItems"));
    struct sl_span entry, kind = {NULL, 0}, inner = {NULL, 0};
    size_t n = 0;
    bool good = true;
    for (; n <= ACTIONS && sl_json_walk_next(&walk, NULL, &entry); n++) {
        struct sl_json_walk one = sl_json_walk(entry);
        size_t k = 0;
        f->fault = sl_json_walk_next(&one, &kind, &inner) ? f->fault : "an entry of a transaction is empty";
        while (k < 3 && !sl_span_is(kind, names[k]))
            k++;
        read_action(f, verbs[k], inner, &list[n]);
        writes[n] = list[n].op;
        writes[n].group = 1;
        good = good && list[n].holds;
    }
    if (n < 1 || n > ACTIONS || member(f->asked, "ClientRequestToken").len != 38)
        f->fault = "a transaction has none or too many actions, or no token";
    if (f->refusal || f->fault)
        return;
    if (good)
        f->table->apply(f->table, writes, n, results, &f->call);
    for (size_t i = 0; i < n; i++)
        good = good && results[i].status == SL_OK;
    if (good) {
        sl_buffer_add_str(&f->out, "{");
        add_units(f, "", 2 * (double)n, true);
        sl_buffer_add_str(&f->out, "}");
        return;
    }
    refuse(f, reply, "TransactionCanceledException", "Transaction cancelled");
    f->out.len--;
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(&f->out, i ? "," : ",\"CancellationReasons\":[");
        add_reason(f, &list[i], results[i].status == SL_OK ? NULL : &results[i]);
    }
    sl_buffer_add_str(&f->out, "]}");
}

/* ---- batches ---- */

/* The operations of a batch, and which of them are left out. */
struct batch {
    struct sl_table_op ops[READS + 1];
    struct sl_span raw[READS + 1]; /* as they were asked for */
    bool left[READS + 1];
    size_t n;
};

/* A key is the same in any spelling. */
static void note_keys(struct fake_dynamodb *f, const struct batch *b)
{
    struct sl_buffer x, y;
    sl_buffer_init(&x, 1 << 20);
    sl_buffer_init(&y, 1 << 20);
    for (size_t i = 1; i < b->n; i++) {
        sl_buffer_reset(&x);
        if (sl_item_key_text(b->ops[i].key, &x, NULL) != SL_OK)
            f->refusal = "One or more parameter values are not valid";
        for (size_t k = 0; k < i; k++) {
            sl_buffer_reset(&y);
            if (sl_item_key_text(b->ops[k].key, &y, NULL) != SL_OK)
                f->refusal = "One or more parameter values are not valid";
            else if (sl_span_eq(b->ops[i].table, b->ops[k].table) &&
                     sl_span_eq(sl_buffer_span(&x), sl_buffer_span(&y)))
                f->fault = "a request names a key twice";
        }
    }
    sl_buffer_clean_up(&x);
    sl_buffer_clean_up(&y);
}

static void read_entry(struct fake_dynamodb *f, struct batch *b, struct sl_span name, struct sl_span entry,
                       enum sl_table_verb verb)
{
    struct sl_span item = verb == SL_TABLE_PUT ? member(member(entry, "PutRequest"), "Item") : sl_span("", 0);
    struct sl_span key = verb == SL_TABLE_GET ? entry
                         : item.ptr           ? item
                                              : member(member(entry, "DeleteRequest"), "Key");
    bool is_put = verb == SL_TABLE_PUT && item.ptr;
    key = key_of(f, table_of(f, name), key, !is_put);
    b->raw[b->n] = entry;
    b->left[b->n] = b->n && has_trouble(f); /* the first is always taken: the attempts have an end */
    b->ops[b->n++] = (struct sl_table_op){.verb = verb != SL_TABLE_PUT ? verb
                                                  : is_put             ? SL_TABLE_PUT
                                                                       : SL_TABLE_DELETE,
                                          .table = sl_span(sl_arena_copy(f->call.arena, name), name.len),
                                          .key = key,
                                          .item = item};
}

static void read_batch(struct fake_dynamodb *f, struct batch *b, enum sl_table_verb verb, size_t most)
{
    struct sl_json_walk walk = sl_json_walk(member(f->asked, "RequestItems"));
    struct sl_span name, list, entry;
    b->n = 0;
    while (sl_json_walk_next(&walk, &name, &list)) {
        struct sl_json_walk inner = sl_json_walk(verb == SL_TABLE_GET ? member(list, "Keys") : list);
        for (size_t i = 0; i < b->n; i++)
            if (sl_span_eq(b->ops[i].table, name))
                f->fault = "a request names a table twice";
        while (b->n <= most && sl_json_walk_next(&inner, NULL, &entry))
            read_entry(f, b, name, entry, verb);
    }
    if (b->n < 1 || b->n > most)
        f->fault = "a batch has none or too many entries";
    note_keys(f, b);
}

/* What is left out, table by table. */
static void add_left(struct fake_dynamodb *f, const struct batch *b, const char *before, const char *after)
{
    struct sl_span table = {NULL, 0};
    for (size_t i = 0; i < b->n; i++) {
        if (!b->left[i])
            continue;
        if (sl_span_eq(table, b->ops[i].table))
            sl_buffer_add_str(&f->out, ",");
        else
            sl_buffer_printf(&f->out, "%s\"%.*s\":%s", table.ptr ? after : "", SL_ARG(b->ops[i].table),
                             before);
        table = b->ops[i].table;
        sl_buffer_add_span(&f->out, b->raw[i]);
    }
    sl_buffer_add_str(&f->out, table.ptr ? after : "");
    if (table.ptr)
        f->out.len--; /* the comma of `after` */
}

static void answer_writes(struct fake_dynamodb *f)
{
    struct batch *b = sl_arena_alloc(f->call.arena, sizeof(*b));
    struct sl_result results[WRITES];
    struct sl_table_op taken[WRITES];
    size_t n = 0;
    read_batch(f, b, SL_TABLE_PUT, WRITES);
    if (f->fault || f->refusal)
        return;
    for (size_t i = 0; i < b->n; i++)
        if (!b->left[i]) {
            taken[n] = b->ops[i];
            taken[n++].group = 1; /* the service checks all before it writes any */
        }
    f->table->apply(f->table, taken, n, results, &f->call);
    for (size_t i = 0; i < n; i++)
        f->refusal = results[i].status == SL_OK ? f->refusal : results[i].text;
    sl_buffer_add_str(&f->out, "{\"UnprocessedItems\":{");
    add_left(f, b, "[", "],");
    sl_buffer_add_str(&f->out, "}");
    add_units(f, ",", (double)n, true);
    sl_buffer_add_str(&f->out, "}");
}

/* From the last to the first: the service's answers have no order. */
static void add_found(struct fake_dynamodb *f, const struct batch *b, const struct table *table)
{
    bool any = false, is_asked = false;
    for (size_t i = b->n; i > 0; i--) {
        if (!sl_span_is(b->ops[i - 1].table, table->name))
            continue;
        if (!is_asked)
            sl_buffer_printf(&f->out, "%s\"%s\":[", *(f->out.ptr + f->out.len - 1) == '{' ? "" : ",",
                             table->name);
        is_asked = true;
        struct sl_span item = b->left[i - 1] ? sl_span(NULL, 0) : read_item(f, &b->ops[i - 1]);
        if (!item.ptr)
            continue;
        sl_buffer_add_str(&f->out, any ? "," : "");
        sl_buffer_add_span(&f->out, item);
        any = true;
    }
    sl_buffer_add_str(&f->out, is_asked ? "]" : "");
}

static void answer_reads(struct fake_dynamodb *f)
{
    struct batch *b = sl_arena_alloc(f->call.arena, sizeof(*b));
    read_batch(f, b, SL_TABLE_GET, READS);
    if (f->fault || f->refusal)
        return;
    sl_buffer_add_str(&f->out, "{\"Responses\":{");
    for (size_t i = 0; i < 3; i++)
        add_found(f, b, &tables[i]);
    sl_buffer_add_str(&f->out, "},\"UnprocessedKeys\":{");
    add_left(f, b, "{\"Keys\":[", "]},");
    sl_buffer_add_str(&f->out, "}");
    add_units(f, ",", (double)b->n, true);
    sl_buffer_add_str(&f->out, "}");
}

/* ---- scans ---- */

static unsigned number(struct sl_span json)
{
    return json.ptr ? (unsigned)strtoul(json.ptr, NULL, 10) : 0;
}

static void answer_scan(struct fake_dynamodb *f)
{
    struct sl_span name = text(f, f->asked, "TableName"), alias, names[8];
    struct sl_table_page page;
    struct sl_table_scan scan = {.table = name,
                                 .segment = number(member(f->asked, "Segment")),
                                 .of = number(member(f->asked, "TotalSegments")),
                                 .after = member(f->asked, "ExclusiveStartKey"),
                                 .limit = number(member(f->asked, "Limit")),
                                 .names = names};
    struct sl_json_walk walk = sl_json_walk(member(f->asked, "ExpressionAttributeNames"));
    (void)table_of(f, name);
    while (scan.n_names < 8 && sl_json_walk_next(&walk, &alias, &names[scan.n_names]))
        scan.n_names++;
    for (size_t i = 0; i < scan.n_names; i++)
        names[i] = sl_json_unescape(sl_span(names[i].ptr + 1, names[i].len - 2), f->call.arena);
    f->table->scan(f->table, &scan, 1, &page, &f->call);
    f->refusal = page.result.status == SL_OK ? f->refusal : page.result.text;
    sl_buffer_printf(&f->out, "{\"Count\":%zu,\"ScannedCount\":%zu", page.n, page.n);
    for (size_t i = 0; i < page.n; i++) {
        sl_buffer_add_str(&f->out, i ? "," : ",\"Items\":[");
        sl_buffer_add_span(&f->out, page.items[i]);
    }
    sl_buffer_add_str(&f->out, page.n ? "]" : ",\"Items\":[]");
    if (page.next.ptr) {
        sl_buffer_add_str(&f->out, ",\"LastEvaluatedKey\":");
        sl_buffer_add_span(&f->out, page.next);
    }
    add_units(f, ",", 1.5, false);
    sl_buffer_add_str(&f->out, "}");
}

static void answer_describe(struct fake_dynamodb *f)
{
    struct sl_span name = text(f, f->asked, "TableName");
    const struct table *table = table_of(f, name);
    struct sl_table_facts facts;
    f->table->describe(f->table, name, &facts, &f->call);
    sl_buffer_printf(&f->out,
                     "{\"Table\":{\"TableName\":\"%s\",\"TableArn\":\"arn:aws:dynamodb:us-east-1:"
                     "123456789012:table/%s\",\"KeySchema\":[{\"AttributeName\":\"PK\",\"KeyType\":\"HASH\"}"
                     "%s],\"AttributeDefinitions\":[{\"AttributeName\":\"PK\",\"AttributeType\":\"%s\"}%s],"
                     "\"ItemCount\":%llu,\"TableSizeBytes\":%llu,\"BillingModeSummary\":{\"BillingMode\":"
                     "\"PAY_PER_REQUEST\"}}}",
                     table->name, table->name,
                     table->sort ? ",{\"AttributeName\":\"SK\",\"KeyType\":\"RANGE\"}" : "", table->type,
                     table->sort ? ",{\"AttributeName\":\"SK\",\"AttributeType\":\"S\"}" : "",
                     (unsigned long long)facts.items, (unsigned long long)facts.bytes);
}

/* ---- any request ---- */

static void carry_out(struct fake_dynamodb *f, const char *operation, struct scripted_reply *reply)
{
    if (strcmp(operation, "PutItem") == 0)
        answer_single(f, SL_TABLE_PUT, reply);
    else if (strcmp(operation, "DeleteItem") == 0)
        answer_single(f, SL_TABLE_DELETE, reply);
    else if (strcmp(operation, "UpdateItem") == 0)
        answer_single(f, SL_TABLE_UPDATE, reply);
    else if (strcmp(operation, "TransactWriteItems") == 0)
        answer_transaction(f, reply);
    else if (strcmp(operation, "BatchWriteItem") == 0)
        answer_writes(f);
    else if (strcmp(operation, "BatchGetItem") == 0)
        answer_reads(f);
    else if (strcmp(operation, "Scan") == 0)
        answer_scan(f);
    else if (strcmp(operation, "DescribeTable") == 0)
        answer_describe(f);
    else
        f->fault = "an operation that is not known";
}

/* Now and then, and not again before the next attempts have passed. */
static bool is_refused_for_now(struct fake_dynamodb *f, struct scripted_reply *reply)
{
    static const char *const codes[] = {"ProvisionedThroughputExceededException", "InternalServerError",
                                        "RequestLimitExceeded", "ThrottlingException"};
    if (f->since++ < SPARED || !has_trouble(f))
        return false;
    f->since = 0;
    refuse(f, reply, codes[sl_random_step(&f->random) % 4], "later");
    return true;
}

void fake_dynamodb_answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct fake_dynamodb *f = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    sl_arena_reset(f->call.arena);
    sl_buffer_reset(&f->out);
    f->asked = request->body;
    f->refusal = NULL;
    *reply = (struct scripted_reply){.status = 200, .with_crc = true};
    if (sl_json_check_loose(f->asked, NULL) != SL_OK)
        f->fault = "a request is not JSON";
    else if (f->asked.len > REQUEST_BYTES)
        f->fault = "a request has more than 16 MB";
    else if (!is_refused_for_now(f, reply))
        carry_out(f, operation, reply);
    if (f->fault)
        refuse(f, reply, "SerializationException", f->fault);
    else if (f->refusal)
        refuse(f, reply, "ValidationException", f->refusal);
    reply->body = sl_buffer_span(&f->out);
}
