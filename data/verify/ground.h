/* What a verification reads: the source, opened and described, and what all tables consume together. */
#ifndef SL_DATA_VERIFY_GROUND_H
#define SL_DATA_VERIFY_GROUND_H

#include "data/verify/verify.h"

struct sl_verify_ground {
    struct sl_table_port *source;
    struct sl_table_facts facts;
    struct sl_table_units units;  /* of the source and, once they are counted, of the routes' tables */
    struct sl_pipeline *pipeline; /* whose tables are counted; NULL: none are */
};

/* Opens the table `url` to read, which errors call `what` ("--table orders"), and sets `source`, `keys` and
 * `arn` of `options`. SL_REJECT: what was given does not name a table that can be read. Texts are in the
 * call's arena. */
enum sl_status sl_verify_ground_open(struct sl_verify_ground *ground, struct sl_sinks *sinks,
                                     struct sl_span url, const char *what, struct sl_verify_options *options,
                                     const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

/* From now on the routes' tables count their units, too. */
void sl_verify_ground_count(struct sl_verify_ground *ground, struct sl_pipeline *pipeline);

void sl_verify_ground_close(struct sl_verify_ground *ground); /* zeroed memory is fine */

#endif
