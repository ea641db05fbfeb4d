/* The host table: what a handler may call, and the slice as the host sees it. */
#ifndef SL_HANDLERS_HOST_H
#define SL_HANDLERS_HOST_H

#include "base/arena.h"
#include "handlers/handler.h"

/* The one table; filled for every pipeline the same. */
extern const struct sl_host sl_host_table;

struct sl_mark {
    bool is_set;
    enum sl_status status;
    const struct sl_error *why; /* in the slice's arena, NULL when the handler gave none */
};

/* What stands around the slice that a handler gets. `marks` has one entry per record, in the same order. */
struct sl_slice_call {
    struct sl_slice slice; /* first: the handler's pointer is this one's */
    struct sl_mark *marks;
    bool is_misused;   /* a mark was out of the slice or no status: nothing this call said can be trusted */
    size_t misused_at; /* the first such mark */
    enum sl_status misused_status;
};

/* host_diff.c */
struct sl_diff sl_host_record_diff(const struct sl_record *r, struct sl_arena *arena);
bool sl_host_diff_next(struct sl_diff *diff, struct sl_span *name, struct sl_value *before,
                       struct sl_value *after);

/* host_value.c */
struct sl_span sl_host_value_json(struct sl_value v, struct sl_arena *arena);
struct sl_span sl_host_value_plain(struct sl_value v, struct sl_arena *arena);
struct sl_span sl_host_json_unquote(struct sl_arena *arena, struct sl_span inner);
int sl_host_number_compare(struct sl_span a, struct sl_span b);

#endif
