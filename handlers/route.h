/* A pipeline and its routes as handlers/ knows them; pipeline.h is what others see. */
#ifndef SL_HANDLERS_ROUTE_H
#define SL_HANDLERS_ROUTE_H

#include "base/arena.h"
#include "handlers/config.h"
#include "handlers/loader.h"
#include "handlers/pipeline.h"

/* Where rejected records are parked. Routes that name the same URL share one. */
struct sl_failure_target {
    struct sl_span url;
    enum sl_port_kind kind; /* SL_PORT_QUEUE or SL_PORT_OBJECTS */
    struct sl_queue_port *queue;
    struct sl_object_port *objects;
};

struct sl_route {
    struct sl_pipeline *pipeline;
    const struct sl_config_route *config;
    struct sl_loaded loaded;
    void *self;
    bool is_open; /* its handler's open() succeeded: close() is owed */
    struct sl_option_set options;
    struct sl_when *when; /* NULL: every record */
    unsigned events;      /* bits 1 << SL_INSERT...: what `when` may let through */
    size_t max_records;   /* of a slice; 0: no limit */
    size_t max_bytes;
    struct sl_failure_target **targets; /* in the order in which they are tried */
    size_t n_targets;                   /* 0: "report" */
    bool is_distrusted;      /* once-only: gave up for too many rejections, and applied nothing since */
    unsigned views_accepted; /* bits 1 << enum sl_view that accepts() has said yes to */
    struct sl_route_stats stats;
};

/* Once-only effects that were done although their records come again: where two of them stand on one record
 * and the second fails, or a request half succeeds. What is remembered is not done again. As good as the
 * sandbox: a new one remembers nothing. */
#define SL_MEMORY_EFFECTS 512
#define SL_MEMORY_BYTES   16

struct sl_memory {
    unsigned char effects[SL_MEMORY_EFFECTS][SL_MEMORY_BYTES]; /* a ring */
    size_t n;                                                  /* ever added */
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
    struct sl_memory memory;
};

static inline bool sl_route_is_once_only(const struct sl_route *route)
{
    return route->loaded.handler.flags & SL_ONCE_ONLY;
}

/* Asks the handler once for each view type; `error` says why not. */
enum sl_status sl_route_accepts(struct sl_route *route, enum sl_view view,
                                struct sl_error *error) SL_MUST_USE;

/* A handler may have filled its error by itself, to the last byte. */
static inline void sl_error_seal(struct sl_error *error)
{
    error->code[SL_ERROR_CODE_BYTES - 1] = '\0';
    error->text[SL_ERROR_TEXT_BYTES - 1] = '\0';
}

/* The handler's lines carry its route. */
static inline void sl_route_enter(struct sl_route *route)
{
    route->pipeline->options.log->route = route->config->name;
}

static inline void sl_route_leave(struct sl_route *route)
{
    route->pipeline->options.log->route = NULL;
}

#endif
