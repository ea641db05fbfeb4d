/* Times as people write them. */
#include "cli/moment.h"

#include "base/span.h"
#include "base/time.h"
#include "cli/flags.h"

#include <stdio.h>

enum sl_status sl_moment_read(const char *flag, const char *text, struct sl_clock *clock, int64_t *ms,
                              struct sl_error *error)
{
    int64_t ns, step, number, unit_s;
    char whole[32];
    if (!text)
        return SL_OK;
    snprintf(whole, sizeof(whole), "%.20sT00:00:00Z", text);
    if (sl_time_parse(sl_span_str(text), &ns, &step) || sl_time_parse(sl_span_str(whole), &ns, &step))
        *ms = ns / 1000000;
    else if (sl_flags_span(text, &number, &unit_s) && number >= 0 && number <= INT32_MAX)
        *ms = clock->wall_ns(clock) / 1000000 - number * unit_s * 1000;
    else
        return sl_fail(error, SL_REJECT, "Usage",
                       "--%s: expected a time like 2026-11-20T10:00:00Z or 2026-11-20, or how long ago, like "
                       "7d, not \"%s\"",
                       flag, text);
    return SL_OK;
}
