/* What a verification will read, and what that costs, before it begins. */
#ifndef SL_CLI_VERIFY_COST_H
#define SL_CLI_VERIFY_COST_H

#include "data/verify/verify.h"

/* US dollars for a million read request units on demand in us-east-1, as AWS's page of prices had it in 2026.
 */
#define SL_COST_MILLION_READS 0.125

struct sl_cost_question {
    const char *verb;                   /* of the command, which lines begin with */
    const struct sl_table_facts *facts; /* of the source */
    const struct sl_verify_options *options;
    const struct sl_verify *work;
    int64_t read_units; /* a second; 0: no limit */
};

/* Prints it on standard error. The targets are described for it; one that cannot be is left out, and said. */
void sl_cost_print(const struct sl_cost_question *q, struct sl_arena *arena);

#endif
