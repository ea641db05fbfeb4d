/* A pipeline's routes from the inside, for the rooms that run records through them (dispatch) or describe
 * them
 * (`sluice check`). pipeline.h is for all others. */
#ifndef SL_HANDLERS_PIPELINE_ROUTE_H
#define SL_HANDLERS_PIPELINE_ROUTE_H

#include "base/arena.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/config.h"
#include "handlers/pipeline/loader.h"
#include "handlers/pipeline/pipeline.h"
#include "handlers/pipeline/ports.h"

/* Where rejected records are parked. Routes that name the same URL share one. */
struct sl_failure_target {
    struct sl_span url;
    struct sl_span name;    /* of it what may be shown */
    enum sl_port_kind kind; /* SL_PORT_QUEUE or SL_PORT_OBJECTS */
    struct sl_queue_port *queue;
    struct sl_object_port *objects;
};

/* What a route did with the records that it saw lately, across batches and redeliveries, each record once. So
 * a configuration that is broken is told from records that are (handlers/dispatch/dispatch_rate.c). */
#define SL_RATE_CODES 16 /* told apart; the rest are counted together */

/* Records, by enum sl_event. */
struct sl_by_event {
    size_t n[SL_REMOVE + 1];
};

struct sl_rate {
    struct sl_by_event applied;
    struct sl_rate_code {
        char code[SL_ERROR_CODE_BYTES]; /* "": the slot is free */
        struct sl_by_event rejected;
    } codes[SL_RATE_CODES];
    char first[64]; /* identifier of the first record that it last refused to park */
};

/* Once-only effects that were done although their records will be delivered again: a record had two of them
 * and the second failed, or a request half succeeded. What is remembered is not done again. It lasts as long
 * as the sandbox: a new one remembers nothing. */
#define SL_MEMORY_EFFECTS 512
#define SL_MEMORY_BYTES   16

struct sl_memory {
    unsigned char effects[SL_MEMORY_EFFECTS][SL_MEMORY_BYTES]; /* a ring */
    size_t n;                                                  /* ever added */
};

/* More than a batch has records. */
#define SL_ASIDE_SEEN 16384

/* A route that lets go of its records while its target is down: they wait in a queue, in letters, and the
 * other routes go on (handlers/dispatch/dispatch_aside.c). */
struct sl_aside {
    struct sl_queue_port *queue; /* NULL: the route is never set aside */
    struct sl_span name;         /* of it what may be shown */
    const char *why_not; /* the handler does not take records in any order, so letters of the route are
                            refused; NULL: it does */
    int64_t remembers_s; /* for how long the handler knows a record again; 0: for ever */
    int64_t epoch;       /* of the route's option; 0: it has none */
    bool has_epoch;

    /* The breaker, of this process. */
    bool is_open;    /* a letter was written, and the target has not proven itself since */
    size_t passed;   /* records that were applied since: the target gets more and more */
    int64_t good_ms; /* how long the last good call took */
    bool has_warned; /* of a source whose records cannot be set aside */

    /* What was set aside of batches that then failed for another route, so that it is not set aside again: a
     * table of digests with open addressing, SL_ASIDE_SEEN places, in the pipeline's arena. */
    unsigned char (*seen)[SL_MEMORY_BYTES]; /* NULL until there is something */
    size_t n_seen;
};

/* Letters, and parked copies, may wait in a queue for this time; so long a handler has to remember. */
#define SL_ASIDE_LEAST_S (15 * 86400)

struct sl_route {
    struct sl_pipeline *pipeline;
    const struct sl_config_route *config;
    struct sl_loaded loaded;
    void *self;
    bool is_open; /* its handler's open() succeeded, so close() must be called */
    struct sl_option_set options;
    struct sl_when *when; /* NULL: every record */
    unsigned events;      /* bits 1 << SL_INSERT...: what `when` may let through */
    size_t max_records;   /* of a slice; 0: no limit */
    size_t max_bytes;
    struct sl_failure_target **targets; /* in the order in which they are tried */
    size_t n_targets;                   /* 0: "report" */
    struct sl_aside aside;
    struct sl_rate rate;
    unsigned views_accepted; /* bits 1 << enum sl_view that accepts() has accepted */
    bool is_left_out;        /* no record is given to it: sl_route_leave_out */
    bool is_out;             /* SLUICE_OUTAGE names it: its target is taken to be down */
    struct sl_route_stats stats;
    int64_t began_ns, ended_ns; /* of the first and the last call since they were set to 0; steady time */
};

struct sl_pipeline {
    struct sl_pipeline_options options;
    struct sl_openers openers;
    struct sl_arena *arena; /* the process's */
    struct sl_config config;
    struct sl_route *routes;
    size_t n;
    struct sl_failure_target *targets;
    size_t n_targets;
    struct sl_queue_port *spans; /* where trace spans go; NULL: nowhere */
    struct sl_memory memory;
    struct sl_memory
        rejected; /* records that their routes rejected, of an event that failed for another reason */
    struct sl_port_meter meter; /* of the ports that handlers call */
    bool is_replay;             /* SLUICE_REPLAY: how old a record is now says nothing */
};

/* The route's number; p->n when none has the name. */
static inline size_t sl_route_named(const struct sl_pipeline *p, struct sl_span name)
{
    size_t i = 0;
    while (i < p->n && !sl_span_is(name, p->routes[i].config->name))
        i++;
    return i;
}

/* "a,b": marks these routes in `*chosen`, by number; a list in `arena` when it is NULL. No text leaves it as
 * it is. SL_REJECT, code "NoRoute": there is no such route. */
enum sl_status sl_route_choose(const struct sl_pipeline *p, struct sl_span names, struct sl_arena *arena,
                               bool **chosen, struct sl_error *error) SL_MUST_USE;

/* NULL when none has the name. */
static inline struct sl_route *sl_route_find(struct sl_pipeline *p, struct sl_span name)
{
    size_t i = sl_route_named(p, name);
    return i < p->n ? &p->routes[i] : NULL;
}

/* What the route leaves in its target. */
static inline enum sl_makes sl_route_makes(const struct sl_route *route)
{
    return sl_builtin_named(route->config->handler)->makes;
}

/* Of one that makes totals: what they are. */
static inline void sl_route_read_totals(const struct sl_route *route, struct sl_arena *arena,
                                        struct sl_totals_facts *out)
{
    sl_builtin_named(route->config->handler)->read_totals(route->self, arena, out);
}

static inline bool sl_route_is_once_only(const struct sl_route *route)
{
    return route->loaded.handler.flags & SL_ONCE_ONLY;
}

/* Asks the handler once for each view type; `error` says why not. */
enum sl_status sl_route_accepts(struct sl_route *route, enum sl_view view,
                                struct sl_error *error) SL_MUST_USE;

/* May the route be given items that exist, without their changes? SL_OK: `out` says more of it. SL_REJECT:
 * its handler's end state, or its `when`, is not a function of the item alone; `error` says why. */
enum sl_status sl_route_per_item(struct sl_route *route, struct sl_per_item *out,
                                 struct sl_error *error) SL_MUST_USE;

/* A handler that calls exit() says so in the log, and the exit status is not 0. For one pipeline of a
 * process; NULL: not from now on. */
void sl_route_watch_exit(struct sl_log *log);

/* Around a call of the handler: its lines in the log carry its route. */
void sl_route_enter(struct sl_route *route);
void sl_route_leave(struct sl_route *route);

/* The variables that the handler which is being called may name in its templates; NULL: no handler is. */
const struct sl_vars *sl_route_vars(void);

#endif
