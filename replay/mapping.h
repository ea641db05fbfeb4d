/* An event source mapping as AWS describes it, and what is wrong with it. */
#ifndef SL_REPLAY_MAPPING_H
#define SL_REPLAY_MAPPING_H

#include "base/arena.h"
#include "base/error.h"

/* Read from what `aws lambda get-event-source-mapping` prints, or from the properties of an
 * AWS::Lambda::EventSourceMapping. */
struct sl_mapping {
    int64_t batch_size, max_retries, max_age_s, parallelization, tumbling_s;
    bool bisect, reports_failures, has_destination;
    const char *starting_position; /* "" when not said */
    const char *function;
    const char **filters; /* patterns, as text */
    size_t n_filters;
};

enum sl_status sl_mapping_read(struct sl_span json, struct sl_arena *arena, struct sl_mapping *out,
                               struct sl_error *error) SL_MUST_USE;

/* One finding at a time. `loses`: records can get lost by it. */
typedef void (*sl_finding_fn)(void *arg, bool loses, const char *text);

/* What in the mapping would lose data, given what the configuration says. */
struct sl_mapping_facts {
    bool config_reports_failures;
    bool all_routes_park; /* no route has on_failure "report" */
    bool has_windows;     /* some handler keeps a window's state */
};
void sl_mapping_check(const struct sl_mapping *mapping, const struct sl_mapping_facts *facts,
                      sl_finding_fn found, void *arg);

/* What in a pattern can never match, or matches everything: `numeric` on an N, `exists` beside a type tag.
 * `where` begins each finding. */
void sl_pattern_lint(struct sl_span json, const char *where, sl_finding_fn found, void *arg);

#endif
