/* The names that services take. */
#ifndef SL_SINKS_NAME_H
#define SL_SINKS_NAME_H

#include "base/span.h"

/* Whether the name has 1 to `max` bytes, each of them a letter, a digit or in `more`. */
bool sl_name_is_valid(struct sl_span name, const char *more, size_t max);

#endif
