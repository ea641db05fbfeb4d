/* Which table a target is, for comparing: "dynamodb://orders?region=x" and
 * "dynamodb:arn:aws:dynamodb:x:...:table/orders" may be one. */
#ifndef SL_CLI_CHECK_CHECK_PLACE_H
#define SL_CLI_CHECK_CHECK_PLACE_H

#include "base/arena.h"
#include "base/vars.h"

/* Parts are absent where nobody knows them. */
struct sl_check_place {
    struct sl_span store; /* "dynamodb"; of a file or an index: all before the table's name */
    struct sl_span region, account, table;
};

/* Of a table target. A Region that it does not name is the function's own. */
struct sl_check_place sl_check_place_of(struct sl_span url, const struct sl_vars *vars,
                                        struct sl_arena *arena);

/* Another table of the same store. */
struct sl_check_place sl_check_place_beside(struct sl_check_place place, struct sl_span table);

/* Of a stream's ARN; its table is absent if it is not one of DynamoDB. */
struct sl_check_place sl_check_place_of_stream(const char *arn);

/* A part that one of the two does not say counts as equal, except the table. */
bool sl_check_place_is(const struct sl_check_place *a, const struct sl_check_place *b);

#endif
