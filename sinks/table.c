/* The table port's rules, and its answers to a refusal. */
#include "sinks/table.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "sinks/name.h"
#include "sinks/result.h"

bool sl_table_is_name(struct sl_span name, size_t least)
{
    return name.len >= least && sl_name_is_valid(name, "_-.", 255);
}

bool sl_table_has_running(const struct sl_table_op *op)
{
    for (size_t i = 0; i < op->n_sets; i++)
        if (sl_table_is_running(&op->sets[i]))
            return true;
    return false;
}

enum sl_status sl_table_key_text(struct sl_span key, struct sl_buffer *out, struct sl_error *error)
{
    return sl_item_read(key, error) == SL_OK ? sl_item_key_text(key, out, error) : SL_REJECT;
}

enum sl_status sl_table_check_bytes(struct sl_span item, struct sl_error *error)
{
    if (item.len <= SL_ITEM_BYTES) /* its text is longer than it is */
        return SL_OK;
    size_t bytes = sl_item_bytes(item);
    if (bytes <= SL_ITEM_BYTES)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "ValidationException", "the item has %zu bytes; an item may have %d",
                   bytes, SL_ITEM_BYTES);
}

enum sl_status sl_table_check_verb(const struct sl_table_op *op, struct sl_error *error)
{
    if (op->group && sl_table_is_read(op))
        return sl_fail(error, SL_REJECT, "ValidationException", "a read cannot be part of a transaction");
    if (op->group && sl_table_has_running(op))
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "a running value (the greater or the lesser) cannot be part of a transaction");
    return SL_OK;
}

enum sl_status sl_table_check_name(struct sl_span name, struct sl_error *error)
{
    return sl_table_is_name(name, 1) ? SL_OK
                                     : sl_fail(error, SL_REJECT, "ValidationException",
                                               "\"%.*s\" is not a table name", SL_ARG(name));
}

enum sl_status sl_table_check_op(const struct sl_table_op *op, struct sl_buffer *key, struct sl_error *error)
{
    sl_buffer_reset(key);
    if ((op->table.ptr && sl_table_check_name(op->table, error) != SL_OK) ||
        sl_table_key_text(op->key, key, error) != SL_OK || sl_table_check_verb(op, error) != SL_OK)
        return SL_REJECT;
    if (op->verb != SL_TABLE_PUT)
        return SL_OK;
    if (sl_item_read(op->item, error) != SL_OK || sl_item_has_key(op->item, op->key, error) != SL_OK ||
        sl_item_check(op->item, error) != SL_OK)
        return SL_REJECT;
    return sl_table_check_bytes(op->item, error);
}

enum sl_status sl_table_check_scan(const struct sl_table_scan *scan, struct sl_error *error)
{
    if (scan->of > SL_TABLE_SEGMENTS_MAX || (scan->of ? scan->segment >= scan->of : scan->segment > 0))
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "there is no segment %u of %u; a table has at most %d segments, from 0", scan->segment,
                       scan->of, SL_TABLE_SEGMENTS_MAX);
    for (size_t i = 0; i < scan->n_names; i++)
        if (!scan->names[i].len || !sl_utf8_is_valid(scan->names[i]))
            return sl_fail(error, SL_REJECT, "ValidationException",
                           "the name of an attribute that is wanted is empty, or is not UTF-8");
    return SL_OK;
}

static bool is_wanted(const struct sl_table_scan *scan, struct sl_span name)
{
    for (size_t i = 0; i < scan->n_names; i++)
        if (sl_json_text_is(name, scan->names[i]))
            return true;
    return false;
}

struct sl_span sl_table_project(const struct sl_table_scan *scan, struct sl_span item, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    struct sl_buffer out;
    if (!scan->n_names)
        return item;
    sl_buffer_init_in(&out, arena, SIZE_MAX);
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (!is_wanted(scan, name))
            continue;
        sl_buffer_add_str(&out, out.len ? ",\"" : "{\"");
        sl_buffer_add_span(&out, name);
        sl_buffer_add_str(&out, "\":");
        sl_buffer_add_span(&out, value);
    }
    sl_buffer_add_str(&out, out.len ? "}" : "{}");
    return sl_buffer_span(&out);
}

static bool has_key_twice(const struct sl_table_group *group)
{
    for (size_t i = 0; i < group->n; i++)
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(group->keys[i], group->keys[k]))
                return true;
    return false;
}

static bool is_any_refused(const struct sl_table_group *group)
{
    for (size_t i = 0; i < group->n; i++)
        if (group->results[i].status != SL_OK)
            return true;
    return false;
}

static enum sl_status check_whole(const struct sl_table_group *group, struct sl_error *error)
{
    if (group->n > SL_TABLE_GROUP_MAX)
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "%s: the transaction has %zu operations; a transaction may have %d", group->target,
                       group->n, SL_TABLE_GROUP_MAX);
    if (has_key_twice(group))
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "%s: the transaction has two operations on one item", group->target);
    return SL_OK;
}

bool sl_table_group_check(const struct sl_table_group *group)
{
    struct sl_error error = SL_NO_ERROR;
    bool is_refused = is_any_refused(group);
    if (!is_refused && check_whole(group, &error) == SL_OK)
        return true;
    for (size_t i = 0; i < group->n; i++) {
        struct sl_result *result = &group->results[i];
        if (!is_refused)
            sl_result_refuse(result, group->arena, &error);
        else if (result->status == SL_OK)
            sl_table_cancel(result, group->arena, group->target, SL_REJECT);
        result->not_sent = true;
    }
    return false;
}

void sl_table_cancel(struct sl_result *result, struct sl_arena *arena, const char *target,
                     enum sl_status status)
{
    sl_result_fail(result, arena, status, "TransactionCanceled",
                   "%s: another operation of the transaction was refused", target);
}

void sl_table_condition_failed(struct sl_result *result, struct sl_arena *arena, const struct sl_table_op *op,
                               struct sl_span item)
{
    *result = (struct sl_result){
        .status = SL_REJECT,
        .condition_failed = true,
        .code = op->group ? "ConditionalCheckFailed" : "ConditionalCheckFailedException",
        .text = "the condition does not hold",
    };
    if (op->want_item && item.ptr)
        result->item = sl_span(sl_arena_copy(arena, item), item.len);
}
