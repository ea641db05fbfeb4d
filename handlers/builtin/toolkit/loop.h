/* Is the target the table that the records come from? A handler that writes into the table that it reads
 * never ends. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_LOOP_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_LOOP_H

#include "handlers/builtin/toolkit/source_table.h"

struct sl_loop {
    struct sl_source_table target; /* borrowed from its URL; what that does not name is the function's own. A
                                file's table is named, too */
    bool is_local;                 /* a file, which has no stream */
};

/* Of a table target: dynamodb://name?region=, dynamodb://arn:aws:dynamodb:...:table/name,
 * sqlite:file?table=name. */
void sl_loop_init(struct sl_loop *loop, struct sl_span url);

/* Looks at the first record of the slice. What either side does not say counts as equal: a second table of
 * the same name is named by its ARN, or by a role of its account. DynamoDB Local's records say neither Region
 * nor account. */
bool sl_loop_closes(const struct sl_loop *loop, const struct sl_host *host, const struct sl_slice *slice);

/* Refuses the loop: SL_FATAL, code "TargetIsSource". `advice` ends the sentence "name another table". */
enum sl_status sl_loop_refuse(const struct sl_loop *loop, const struct sl_host *host, const char *advice,
                              struct sl_error *error) SL_MUST_USE;

#endif
