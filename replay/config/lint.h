/* What is wrong in a filter pattern although AWS accepts it. */
#ifndef SL_REPLAY_CONFIG_LINT_H
#define SL_REPLAY_CONFIG_LINT_H

#include "base/types.h"

/* Called once for each finding. `loses`: records can get lost because of it. */
typedef void (*sl_lint_fn)(void *arg, bool loses, const char *text);

/* Finds what can never match, what matches everything, and what asks something else than it seems to:
 * `numeric` on an N, `exists` beside a type or below a list, `equals-ignore-case` of an emoji. Each finding
 * begins with `where`. */
void sl_lint_pattern(struct sl_span json, const char *where, sl_lint_fn found, void *arg);

/* The same for a filter of the mapping, unless AWS refuses it: then that is the finding. It also names
 * operators that Lambda does not publish, which loses nothing. */
void sl_lint_filter(struct sl_span json, const char *where, sl_lint_fn found, void *arg);

#endif
