/* Is the target the table that the records come from? Writing into the table that is read would never end. */
#ifndef SL_HANDLERS_LOOP_H
#define SL_HANDLERS_LOOP_H

#include "handlers/handler.h"

struct sl_loop {
    struct sl_span table;  /* the target's, borrowed from its URL */
    struct sl_span region; /* absent: the URL names none, so that it is the function's own */
    bool is_local;         /* a file, which has no stream */
};

/* Of a table target: dynamodb://name?region=, sqlite:file?table=name. */
void sl_loop_init(struct sl_loop *loop, struct sl_span url);

bool sl_loop_closes(const struct sl_loop *loop, const struct sl_host *host, const struct sl_record *r);

#endif
