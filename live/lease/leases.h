/* The keeper of `sluice tail --leases`: places and ownership of shards in a table, shared with other machines
 * (book.h has the protocol). It has a thread of its own, so that renewals do not wait for a batch. */
#ifndef SL_LIVE_LEASE_LEASES_H
#define SL_LIVE_LEASE_LEASES_H

#include "base/vars.h"
#include "live/tail/keeper.h"

#define SL_LEASES_SECONDS       10 /* KCL's failoverTimeMillis */
#define SL_LEASES_SECONDS_LEAST 2
#define SL_LEASES_SECONDS_MOST  3600

struct sl_leases_options {
    const char *target; /* dynamodb://table?region=, or sqlite:file?table= for processes of one machine */
    const struct sl_vars *vars;    /* region, credentials, endpoints */
    const char *region, *endpoint; /* used unless the target names its own; NULL: the environment's */
    const char
        *worker;     /* NULL: host name and process id. A random suffix is added: no two runs have one name */
    int64_t seconds; /* the failover time; 0: SL_LEASES_SECONDS */
    bool is_quiet;   /* what was done is not said: that the table was created */
};

/* Borrows the options' texts until `close`. Sends nothing. SL_REJECT: an option is wrong. `close` of the
 * keeper frees it, also after a failure. */
enum sl_status sl_leases_new(const struct sl_leases_options *options, struct sl_keeper *out,
                             struct sl_error *error) SL_MUST_USE;

#endif
