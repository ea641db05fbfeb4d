/* A configuration for one purpose: some of its routes, and nothing is parked. */
#ifndef SL_CLI_CONFIG_RESTRICT_H
#define SL_CLI_CONFIG_RESTRICT_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

struct sl_restricted {
    const char *path; /* readable by this process and its children as long as `fd` is open */
    int fd;           /* the caller closes it; -1: nothing was written */
};

/* Writes the configuration into a file in memory. */
enum sl_status sl_restrict_write(const json_t *config, struct sl_arena *arena, struct sl_restricted *out,
                                 struct sl_error *error) SL_MUST_USE;

/* Writes a copy of the configuration at `path` that has only the route `route` (NULL: all routes). Every
 * on_failure in it is "report": what fails again is reported, and not parked a second time; and however
 * much fails, the route goes on. Nothing is set aside. `epoch`: that of the route when its records came, if
 * it is lower than now; -1: as it is. */
enum sl_status sl_restrict_config(const char *path, const char *route, int64_t epoch, struct sl_arena *arena,
                                  struct sl_restricted *out, struct sl_error *error) SL_MUST_USE;

#endif
