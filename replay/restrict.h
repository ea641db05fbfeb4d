/* A configuration for one purpose: some of its routes, and nothing parked. */
#ifndef SL_REPLAY_RESTRICT_H
#define SL_REPLAY_RESTRICT_H

#include "base/arena.h"
#include "base/error.h"

/* Writes a copy of the configuration at `path`, with the route `route` alone (NULL: all), in which every
 * on_failure is "report": what fails again is said, and not parked a second time. `*out` is a path that this
 * process and its children can read as long as `*fd` is open. */
enum sl_status sl_restrict_config(const char *path, const char *route, struct sl_arena *arena,
                                  const char **out, int *fd, struct sl_error *error) SL_MUST_USE;

#endif
