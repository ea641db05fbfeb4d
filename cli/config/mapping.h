/* An event source mapping as AWS describes it, and what in it would lose data. */
#ifndef SL_CLI_CONFIG_MAPPING_H
#define SL_CLI_CONFIG_MAPPING_H

#include "base/arena.h"
#include "base/error.h"
#include "cli/config/lint.h"

#define SL_MAPPING_BATCH_SIZE 100 /* of a stream's mapping that does not say it */

/* Read from what `aws lambda get-event-source-mapping` prints; from what `list-event-source-mappings` prints,
 * if one of the list is of a stream; or from an AWS::Lambda::EventSourceMapping, or its properties. */
struct sl_mapping {
    int64_t max_retries, max_age_s, parallelization, tumbling_s, batch_size, batching_s;
    bool bisect, reports_failures, has_destination, is_disabled;
    const char *source_arn; /* "" when it is missing */
    const char **strangers; /* a line for each member that is near to a known one */
    size_t n_strangers;
    const char *starting_position; /* "" when it is missing */
    const char **filters;          /* patterns, as text */
    size_t n_filters;
};

enum sl_status sl_mapping_read(struct sl_span json, struct sl_arena *arena, struct sl_mapping *out,
                               struct sl_error *error) SL_MUST_USE;

/* What the configuration says. */
struct sl_mapping_facts {
    bool config_reports_failures;
    bool all_routes_park; /* no route has on_failure "report" */
};

/* Finds what in the mapping would lose data, given the configuration. */
void sl_mapping_check(const struct sl_mapping *mapping, const struct sl_mapping_facts *facts,
                      sl_lint_fn found, void *arg);

#endif
