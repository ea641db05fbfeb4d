/* Times on the command line. */
#ifndef SL_CLI_MOMENT_H
#define SL_CLI_MOMENT_H

#include "base/clock.h"
#include "base/error.h"

/* "2026-11-20T10:00:00Z", "2026-11-20", or so long ago: "7d". `text` NULL: SL_OK, and nothing is set. */
enum sl_status sl_moment_read(const char *flag, const char *text, struct sl_clock *clock, int64_t *ms,
                              struct sl_error *error) SL_MUST_USE;

#endif
