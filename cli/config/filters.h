/* The FilterCriteria of a mapping: patterns, checked as AWS checks them when a mapping is created. */
#ifndef SL_CLI_CONFIG_FILTERS_H
#define SL_CLI_CONFIG_FILTERS_H

#include "base/arena.h"
#include "base/error.h"
#include "streams/when/when.h"

/* AWS's documentation: five filters for a mapping, ten when the quota was raised; the API's Pattern has at
 * most 4,096 characters. */
#define SL_FILTERS_BY_DEFAULT 5
#define SL_FILTERS_AT_MOST    10
#define SL_FILTERS_CHARACTERS 4096

/* In Unicode characters. */
bool sl_filters_is_too_long(struct sl_span pattern);

/* Of a Kinesis stream's mapping: leaves of the pattern what is below "data", the pattern for the change.
 * SL_REJECT when it is not about "data" alone. */
enum sl_status sl_filters_data(struct sl_span *pattern, struct sl_error *error) SL_MUST_USE;

/* Compiles `n` patterns into `arena`. Of a Kinesis stream's mapping, the patterns are those for the decoded
 * data: AWS filters such records on "data" alone. SL_REJECT with AWS's code and words where it has some. */
enum sl_status sl_filters_compile(const char *const *patterns, size_t n, bool is_kinesis,
                                  struct sl_arena *arena, const struct sl_when *const **out,
                                  struct sl_error *error) SL_MUST_USE;

/* Tells what in patterns that compile can match no record, although AWS takes it: `found` as sl_pattern_judge
 * calls it. */
void sl_filters_judge(const char *const *patterns, size_t n, bool is_kinesis, sl_when_found_fn found,
                      void *arg);

#endif
