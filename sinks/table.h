/* The table port's rules that are checked before anything is sent, and its answers to a refusal: one place
 * for DynamoDB and for SQLite. */
#ifndef SL_SINKS_TABLE_H
#define SL_SINKS_TABLE_H

#include "sinks/item.h"

/* Letters, digits, '_', '-' and '.', `least` to 255 of them ("Naming rules and data types": DynamoDB's least
 * is 3). */
bool sl_table_is_name(struct sl_span name, size_t least);

/* Whether the set keeps the greater or the lesser of two values. */
static inline bool sl_table_is_running(const struct sl_set *set)
{
    return set->verb == SL_SET_MAX || set->verb == SL_SET_MIN;
}

static inline bool sl_table_is_read(const struct sl_table_op *op)
{
    return op->verb == SL_TABLE_GET || op->verb == SL_TABLE_PEEK;
}

/* Whether the test compares with a value. */
static inline bool sl_table_test_has_value(const struct sl_test *test)
{
    return test->verb != SL_ABSENT && test->verb != SL_PRESENT;
}

bool sl_table_has_running(const struct sl_table_op *op);

/* Appends the key's text: equal keys have equal texts. SL_REJECT when `key` is not a key (sl_item_key_text).
 */
enum sl_status sl_table_key_text(struct sl_span key, struct sl_buffer *out,
                                 struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when the item is larger than an item may be. */
enum sl_status sl_table_check_bytes(struct sl_span item, struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when the operation is in a group that cannot hold it: a read, or a running value. */
enum sl_status sl_table_check_verb(const struct sl_table_op *op, struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when it is no name of a table that need not be DynamoDB's. */
enum sl_status sl_table_check_name(struct sl_span name, struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when the operation cannot be: its table's name, key, verb, and (PUT) item. `key`, emptied first,
 * gets the key's text. For sinks that do themselves what the service checks. */
enum sl_status sl_table_check_op(const struct sl_table_op *op, struct sl_buffer *key,
                                 struct sl_error *error) SL_MUST_USE;

/* SL_REJECT when the scan asks for what no table has: a segment that is not one, a name that is not UTF-8 or
 * is empty. Whether `after` is a key is the sink's to check. */
enum sl_status sl_table_check_scan(const struct sl_table_scan *scan, struct sl_error *error) SL_MUST_USE;

/* The item with the attributes that the scan wants, made in `arena`; the item itself when it wants all. */
struct sl_span sl_table_project(const struct sl_table_scan *scan, struct sl_span item,
                                struct sl_arena *arena);

/* ---- groups ---- */

/* The operations of one group. A result that is not SL_OK is one that a check refused. */
struct sl_table_group {
    const struct sl_span *keys; /* their texts, each with its table's name in front */
    struct sl_result *results;
    size_t n;
    const char *target;     /* for messages */
    struct sl_arena *arena; /* of the results' texts */
};

/* Whether the group can be carried out: none of it is refused, no key is in it twice, and it has at most
 * SL_TABLE_GROUP_MAX operations. If not, every result says so, and `not_sent`. */
bool sl_table_group_check(const struct sl_table_group *group);

/* The result of an operation whose group was refused because of another: code "TransactionCanceled". */
void sl_table_cancel(struct sl_result *result, struct sl_arena *arena, const char *target,
                     enum sl_status status);

/* The result of an operation whose condition did not hold. `item` is the item as it is, absent when there is
 * none; it is copied if the operation wants it. */
void sl_table_condition_failed(struct sl_result *result, struct sl_arena *arena, const struct sl_table_op *op,
                               struct sl_span item);

#endif
