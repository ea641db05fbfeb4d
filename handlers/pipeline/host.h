/* The host table: what a handler may call, and a slice as the host sees it. */
#ifndef SL_HANDLERS_PIPELINE_HOST_H
#define SL_HANDLERS_PIPELINE_HOST_H

#include "base/arena.h"
#include "handlers/handler.h"

/* The one table, the same for every pipeline. */
extern const struct sl_host sl_host_table;

struct sl_mark {
    bool is_set;
    enum sl_status status;
    const struct sl_error *why; /* in the slice's arena, NULL when the handler gave none */
    enum sl_effect note;        /* set apart from the rest: by host->note */
};

/* A slice with what the handler says of it. `marks` has one entry per record, in the same order. */
struct sl_slice_call {
    struct sl_slice slice; /* first: the handler's pointer points here */
    struct sl_mark *marks;
    bool is_misused;   /* a mark had a wrong index or status: nothing that this call said can be trusted */
    bool has_closed;   /* the handler closed descriptors of the process: nothing more can be done in it */
    size_t misused_at; /* the first such mark */
    enum sl_status misused_status;
};

#endif
