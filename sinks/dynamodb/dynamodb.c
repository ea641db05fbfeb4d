/* dynamodb://table: opens the target, checks operations before anything is sent, and runs an apply. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "base/arn.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "sinks/result.h"
#include "sinks/services.h"

#include <stdlib.h>

#define NAME_LEAST 3 /* bytes of a table's name ("Naming rules and data types") */

/* ---- what is refused before anything is sent ---- */

/* The pieces of a request are sent as they are: each must be one JSON object, or it could close the request
 * and begin another. */
static enum sl_status check_item(const struct sl_table_op *op, struct sl_error *error)
{
    if (op->verb != SL_TABLE_PUT)
        return SL_OK;
    if (sl_item_read(op->item, error) != SL_OK)
        return SL_REJECT;
    /* An item's JSON is longer than the item: only what is long needs to be measured. */
    return op->item.len <= SL_ITEM_BYTES ? SL_OK : sl_table_check_bytes(op->item, error);
}

static enum sl_status check_value(struct sl_span json, struct sl_error *error)
{
    if (sl_json_check_loose(json, NULL) == SL_OK && sl_json_walk(json).is_object)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "ValidationException",
                   "a value of the operation's update or condition is not a JSON object");
}

static enum sl_status check_name(struct sl_span name, struct sl_error *error)
{
    if (sl_utf8_is_valid(name))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "ValidationException", "an attribute's name is not UTF-8");
}

static enum sl_status check_expressions(const struct sl_table_op *op, struct sl_error *error)
{
    for (size_t i = 0; i < op->n_sets; i++)
        if (check_name(op->sets[i].name, error) != SL_OK ||
            (op->sets[i].verb != SL_UNSET && check_value(op->sets[i].value, error) != SL_OK))
            return SL_REJECT;
    for (size_t i = 0; i < op->n_tests; i++)
        if (check_name(op->tests[i].name, error) != SL_OK ||
            (sl_table_test_has_value(&op->tests[i]) && check_value(op->tests[i].value, error) != SL_OK))
            return SL_REJECT;
    return SL_OK;
}

enum sl_status sl_dynamodb_check_table(struct sl_span table, struct sl_error *error)
{
    if (sl_table_is_name(table, NAME_LEAST))
        return SL_OK;
    return sl_fail(error, SL_FATAL, "InvalidTarget", "\"%.*s\" is not a table name", SL_ARG(table));
}

static enum sl_status check_op(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *op,
                               struct sl_error *error)
{
    if (op->op->table.ptr && sl_dynamodb_check_table(op->table, error) != SL_OK)
        return SL_FATAL;
    if (sl_dynamodb_key_text(apply->scratch, op->table, op->op->key, &op->key_text, error) != SL_OK ||
        sl_table_check_verb(op->op, error) != SL_OK || check_expressions(op->op, error) != SL_OK)
        return SL_REJECT;
    return check_item(op->op, error);
}

static void check_all(struct sl_dynamodb_apply *apply)
{
    for (size_t i = 0; i < apply->n; i++) {
        struct sl_dynamodb_op *op = &apply->ops[i];
        struct sl_error error = SL_NO_ERROR;
        op->is_over = check_op(apply, op, &error) != SL_OK;
        if (!op->is_over)
            continue;
        sl_error_context(&error, "%s", apply->table->client.name);
        sl_result_refuse(op->result, apply->call->arena, &error);
    }
}

/* ---- groups ---- */

static void begin_group(struct sl_dynamodb_apply *apply, struct sl_dynamodb_op *ops, size_t n)
{
    struct sl_span *keys = sl_arena_alloc(apply->scratch, n * sizeof(*keys));
    for (size_t i = 0; i < n; i++)
        keys[i] = ops[i].key_text;
    const struct sl_table_group group = {.keys = keys,
                                         .results = ops[0].result,
                                         .n = n,
                                         .target = apply->table->client.name,
                                         .arena = apply->call->arena};
    if (sl_table_group_check(&group)) {
        sl_dynamodb_group(apply, ops, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ops[i].is_over = true;
}

static void begin_groups(struct sl_dynamodb_apply *apply)
{
    for (size_t i = 0, end; i < apply->n; i = end) {
        end = i + 1;
        if (!apply->ops[i].op->group)
            continue;
        while (end < apply->n && apply->ops[end].op->group == apply->ops[i].op->group)
            end++;
        begin_group(apply, &apply->ops[i], end - i);
    }
}

static void apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct sl_dynamodb *table = (struct sl_dynamodb *)port;
    struct sl_arena *scratch = table->client.aws->scratch;
    struct sl_dynamodb_apply a = {.table = table, .call = call, .scratch = scratch, .n = n};
    if (n == 0)
        return;
    a.ops = sl_arena_zalloc(scratch, n * sizeof(*a.ops));
    a.jobs = sl_arena_zalloc(scratch, n * sizeof(*a.jobs));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        a.ops[i] = (struct sl_dynamodb_op){
            .op = &ops[i], .result = &results[i], .table = ops[i].table.ptr ? ops[i].table : table->name};
    }
    sl_contrast_begin(&table->client.contrast);
    check_all(&a);
    begin_groups(&a);
    sl_dynamodb_run(&a);
    sl_arena_reset(scratch);
}

/* ---- opening ---- */

static void close_port(struct sl_table_port *port)
{
    struct sl_dynamodb *table = (struct sl_dynamodb *)port;
    sl_client_clean_up(&table->client);
    sl_arena_destroy(table->arena);
    free(table);
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME: a table of another account, for example. */
static bool is_table_arn(struct sl_span arn)
{
    struct sl_span table = sl_arn_part(arn, 5);
    return sl_span_starts(table, SL_LIT("table/")) && !sl_arn_part(arn, 6).ptr &&
           sl_table_is_name(sl_span_from(table, strlen("table/")), NAME_LEAST);
}

static enum sl_status open_table(struct sl_dynamodb *table, struct sl_sinks *sinks, struct sl_span url_text,
                                 struct sl_error *error)
{
    struct sl_url url;
    struct sl_span text = sl_span(sl_arena_copy(table->arena, url_text), url_text.len);
    if (sl_url_parse(text, table->arena, &url, error) != SL_OK)
        return SL_FATAL;
    if (!sl_table_is_name(url.rest, NAME_LEAST) && !is_table_arn(url.rest))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: \"%.*s\" is neither a table name (3 to 255 letters, digits, '_', '-', "
                       "'.') nor a table's ARN; write it as dynamodb://TABLE?region=REGION",
                       SL_ARG(url.shown), SL_ARG(url.rest));
    table->name = url.rest;
    const struct sl_client_options options = {
        .service = &sl_service_dynamodb, .url = &url, .region = sl_arn_part(url.rest, 3)};
    if (sl_client_init(&table->client, sl_sinks_aws(sinks), &options, error) != SL_OK)
        return SL_FATAL;
    return sl_url_done(&url, SL_CLIENT_PARAMS, error);
}

enum sl_status sl_dynamodb_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error)
{
    struct sl_dynamodb *table = calloc(1, sizeof(*table));
    if (!table)
        sl_die("out of memory: a table");
    table->arena = sl_arena_new(1024);
    table->port = (struct sl_table_port){.size = sizeof(table->port),
                                         .max_item_bytes = SL_ITEM_BYTES,
                                         .apply = apply,
                                         .close = close_port,
                                         .scan = sl_dynamodb_scan,
                                         .describe = sl_dynamodb_describe,
                                         .can = SL_TABLE_ALL};
    if (open_table(table, sinks, url, error) != SL_OK) {
        close_port(&table->port);
        return SL_FATAL;
    }
    *out = &table->port;
    return SL_OK;
}
