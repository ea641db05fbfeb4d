/* The table that a record comes from, as far as the record says: account, Region and name. The label of its
 * stream is no part of it: a stream that is enabled again has another label, and is of the same table. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_SOURCE_TABLE_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_SOURCE_TABLE_H

#include "handlers/handler.h"

/* An absent part is not said. Records of Kinesis say no account, items of a table export say nothing. */
struct sl_source_table {
    struct sl_span account, region, table;
};

/* The part of an ARN of this number, from 0 ("arn"), before its last one; absent when `arn` is not an ARN. */
struct sl_span sl_source_table_arn_part(struct sl_span arn, unsigned number);

/* The texts are borrowed from the record. */
struct sl_source_table sl_source_table_of(const struct sl_host *host, const struct sl_record *r);

/* The Region that DynamoDB Local says, with an account, whatever its client's are: both are said no more. */
void sl_source_table_drop_local(struct sl_source_table *s);

/* Can both be the same table? Parts that one of them does not say match. */
bool sl_source_table_fits(const struct sl_source_table *x, const struct sl_source_table *y);

/* Does `known` have every part that `other` has, with the same text? */
bool sl_source_table_covers(const struct sl_source_table *known, const struct sl_source_table *other);

/* The parts of `x`, and those of `y` where `x` has none. */
struct sl_source_table sl_source_table_join(const struct sl_source_table *x, const struct sl_source_table *y);

/* For people, in `arena`: "orders (eu-west-1, account 123456789012)". */
struct sl_span sl_source_table_text(const struct sl_host *host, struct sl_arena *arena,
                                    const struct sl_source_table *s);

#endif
