/* DynamoDB's expressions, as far as Sluice writes them: a condition is evaluated on an item, an update
 * becomes sets. A reading of its own, by the service's grammar ("Condition and filter expressions", "Update
 * expressions"). */
#ifndef SL_TESTS_SUPPORT_FAKE_DYNAMODB_EXPRESSION_H
#define SL_TESTS_SUPPORT_FAKE_DYNAMODB_EXPRESSION_H

#include "base/arena.h"
#include "sinks/port.h"

#define FAKE_SETS 120

struct fake_expressions {
    struct sl_arena *arena;
    struct sl_span names, values;     /* JSON, absent when the request has none */
    struct sl_span condition, update; /* absent when the request has none */
    struct sl_span item;              /* as it is; absent: there is none */

    struct sl_set *sets;
    size_t n_sets;
    const char *fault;   /* what the service refuses as wrongly written */
    const char *refusal; /* what it refuses because of the values */
};

/* Fills in the second half, and whether the condition holds. */
void fake_expressions_read(struct fake_expressions *e, bool *holds);

#endif
