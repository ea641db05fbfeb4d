/* The pipeline: sluice.json is read and checked, its handlers loaded, its targets opened.
 *
 * Opening is all or nothing. Every mistake is refused with its JSON path ("$.routes[1].when.pattern[0]:
 * ..."). */
#ifndef SL_HANDLERS_PIPELINE_PIPELINE_H
#define SL_HANDLERS_PIPELINE_PIPELINE_H

#include "base/log.h"
#include "base/vars.h"
#include "handlers/handler.h"
#include "sinks/target.h"

struct sl_pipeline;
struct sl_call_watch;

/* How targets are opened. Each function is called with the options' `sinks`. */
struct sl_openers {
    enum sl_port_kind (*kind)(struct sl_span url);
    enum sl_status (*objects)(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                              struct sl_error *error);
    enum sl_status (*table)(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                            struct sl_error *error);
    enum sl_status (*queue)(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                            struct sl_error *error);
    enum sl_status (*spans)(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                            struct sl_error *error); /* NULL: there are none, whatever "trace_to" says */
};

/* The code with which the records of a route fail that the variable SLUICE_OUTAGE ("search,replica") names:
 * as if its target refused everything. For rehearsals of an outage. */
#define SL_OUTAGE "Outage"

struct sl_pipeline_options {
    const char *config_path;
    const struct sl_vars *vars; /* for ${NAME} in the configuration */
    struct sl_clock *clock;
    struct sl_log *log;
    struct sl_sinks *sinks;                   /* outlives the pipeline */
    const char *const *handler_path;          /* folders where plugins are looked for, NULL-terminated */
    const char *function_name;                /* for metrics and parked records; "" outside Lambda */
    const struct sl_handler *const *builtins; /* NULL-terminated; NULL: those of builtins.h */
    const struct sl_openers *openers;         /* NULL: those of sinks/target.h */
    struct sl_call_watch *watch; /* handlers/dispatch/watch.h; NULL: none. Outlives the pipeline */
};

enum sl_status sl_pipeline_open(const struct sl_pipeline_options *options, struct sl_pipeline **out,
                                struct sl_error *error) SL_MUST_USE;
void sl_pipeline_close(struct sl_pipeline *p); /* NULL is fine */

/* What the configuration says. The TTL attribute is for the decoder, absent when not set. */
struct sl_span sl_pipeline_ttl_attribute(const struct sl_pipeline *p);
bool sl_pipeline_reports_failures(const struct sl_pipeline *p);

/* For reports: what a route did since the last reset. Each record that the route took is counted once:
 * matched = applied + parked + failed + skipped + set_aside. */
struct sl_route_stats {
    const char *name, *handler, *target; /* target: the URL as configured, "" when none */
    const char
        *waits_in; /* the queue of a route that may be set aside, as it may be shown; NULL: it may not */
    uint64_t matched;
    uint64_t applied;   /* the handler said SL_OK of it */
    uint64_t parked;    /* rejected, and durably parked */
    uint64_t failed;    /* tried without success, or still to be tried when the route stopped */
    uint64_t skipped;   /* not tried: it comes after a failed record of its item, an earlier delivery had done
                           it, or the batch ended before its turn */
    uint64_t set_aside; /* durably, in letters */
    uint64_t probes;    /* calls that were made to see whether the target is there again */
    uint64_t calls;
    uint64_t bytes;     /* of the records that matched, as they were delivered */
    uint64_t handle_ns; /* that the handler's handle() and window() took, without sink_ns */
    uint64_t sink_ns;   /* that its ports, and the failure targets of its records, took */
    uint64_t effects[SL_EFFECT_LEFT_OUT + 1]; /* of those applied: by enum sl_effect */
};
size_t sl_pipeline_routes(const struct sl_pipeline *p);
struct sl_route_stats sl_pipeline_stats(const struct sl_pipeline *p, size_t route);
void sl_pipeline_stats_reset(struct sl_pipeline *p);

#endif
