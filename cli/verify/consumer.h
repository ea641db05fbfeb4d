/* How far the stream's consumers are: the wall time before which every change has been handled.
 *
 * It comes from checkpoint files of `sluice tail`, or from the user's word (--max-lag). With several of them
 * the earliest counts. */
#ifndef SL_CLI_VERIFY_CONSUMER_H
#define SL_CLI_VERIFY_CONSUMER_H

#include "base/clock.h"
#include "base/error.h"
#include "live/source/consumer.h"

struct sl_consumers {
    struct sl_clock *clock;
    const char *const *files; /* checkpoint files of tail */
    size_t n_files;
    int64_t max_lag_s;     /* -1: not given */
    struct sl_span stream; /* the table's; absent: not known. One of the files has to be of this stream */
    int64_t read_ms;       /* when the files were last read, and what they said */
    int64_t through_ms;
};

/* SL_REJECT: a file cannot be read, or is no checkpoint that says how far its consumer is. */
enum sl_status sl_consumers_check(struct sl_consumers *c, struct sl_error *error) SL_MUST_USE;

/* In ms since 1970; 0: not known. A file that cannot be read any more counts as not known. */
int64_t sl_consumers_through(struct sl_consumers *c);

#endif
