/* Whether two JSON texts say the same: members in any order, numbers by value with all their digits. */
#ifndef SL_CLI_TEST_SAME_H
#define SL_CLI_TEST_SAME_H

#include "base/span.h"

/* Of checked texts in which no name is there twice. */
bool sl_json_says_same(struct sl_span a, struct sl_span b);

#endif
