/* Failure records that only name a place in a stream: their records are read from there. */
#ifndef SL_CLI_REDRIVE_POINTER_H
#define SL_CLI_REDRIVE_POINTER_H

#include "base/vars.h"
#include "live/source/dead_letters.h"

struct sl_pointer;

struct sl_pointer_options {
    const struct sl_vars *vars;
    const char *region;       /* NULL: the ARN's */
    const char *endpoint;     /* NULL: the environment's, or AWS's */
    const volatile int *stop; /* not 0: reads no more */
};

struct sl_pointer *sl_pointer_new(const struct sl_pointer_options *options); /* borrows them */
void sl_pointer_destroy(struct sl_pointer *pointer);                         /* NULL is fine */

/* The letter's records as {"Records":[...]}, in `arena`. SL_REJECT: not all of them are in the stream any
 * more
 * ("TrimmedDataAccessException" and others), or more than the letter says ("MoreRecords": the mapping's
 * FilterCriteria left some out, and nobody can tell which). SL_RETRY, SL_FATAL: the stream could not be read.
 */
enum sl_status sl_pointer_fetch(struct sl_pointer *pointer, const struct sl_dead_letter *letter,
                                struct sl_arena *arena, struct sl_span *event,
                                struct sl_error *error) SL_MUST_USE;

#endif
