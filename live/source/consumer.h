/* Since when a stream's consumer has handled every change: read from Lambda's event source mapping, or from
 * the checkpoint file of `sluice tail`. */
#ifndef SL_LIVE_SOURCE_CONSUMER_H
#define SL_LIVE_SOURCE_CONSUMER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/vars.h"

struct sl_consumer_options {
    const struct sl_vars *vars; /* region, credentials, endpoints */
    struct sl_log *log;
    const char *function;     /* name or ARN: its mappings are listed; NULL: `mapping` names one */
    const char *mapping;      /* UUID */
    const char *region;       /* NULL: the environment's */
    const char *endpoint;     /* NULL: the environment's, or AWS's */
    struct sl_span table_arn; /* the mapping has to read a stream of this table */
};

/* Clocks of the table, of the consumer and of this machine differ by less than that. */
#define SL_CONSUMER_SKEW_MS 1000

struct sl_consumer {
    const char *mapping; /* its UUID; NULL: it is a tail */
    int64_t since_ms;    /* since 1970 */
};

/* A mapping from TRIM_HORIZON begins with the oldest record that the stream has: the stream keeps all of the
 * last 24 hours. AWS does not say when a mapping was made, but when it was last changed or started again; it
 * was made then or before. So nothing is missed since 24 hours before that (an hour less, to be sure), or
 * since the stream was enabled, which its ARN says.
 *
 * SL_REJECT, with what to do: there is no such mapping, or several; it is not enabled, begins at LATEST, has
 * filters, or gives records up while the stream still has them (MaximumRecordAgeInSeconds,
 * MaximumRetryAttempts). SL_RETRY, SL_FATAL: Lambda could not be asked. */
enum sl_status sl_consumer_find(const struct sl_consumer_options *options, struct sl_arena *arena,
                                struct sl_consumer *out, struct sl_error *error) SL_MUST_USE;

/* From the file: since its first listing, or the last gap. `table_arn` absent: any table. SL_REJECT: there is
 * no such file, it is of another table's stream, or of a release that did not say it. */
enum sl_status sl_consumer_read(const char *path, struct sl_span table_arn, struct sl_consumer *out,
                                struct sl_error *error) SL_MUST_USE;

#endif
