/* A page lives in an arena of its own, and each request has its own time. */
#include "data/source/listing.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

#include <stdlib.h>
#include <string.h>

#define CALL_MS 60000

enum sl_status sl_listing_each(struct sl_object_port *port, struct sl_clock *clock, struct sl_span prefix,
                               struct sl_span after, sl_listing_fn *each, void *arg, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    char *from = after.ptr ? strndup(after.ptr, after.len) : NULL;
    enum sl_status status = SL_OK;
    for (bool more = true; more && status == SL_OK;) {
        struct sl_object_page page = {.n = 0};
        const struct sl_object_list list = {.prefix = prefix, .after = sl_span_str(from)};
        sl_arena_reset(arena);
        const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + CALL_MS};
        port->list(port, &list, &page, &call);
        if (page.result.status != SL_OK)
            status = sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t i = 0; i < page.n && status == SL_OK; i++)
            status = each(arg, &page.entries[i], error);
        free(from);
        more = status == SL_OK && page.next.ptr;
        from = more ? strndup(page.next.ptr, page.next.len) : NULL;
        if (more && !from)
            sl_die("out of memory: an object's key");
    }
    free(from);
    sl_arena_destroy(arena);
    if (status != SL_OK && strcmp(error->code, SL_LISTING_ENOUGH) == 0) {
        sl_error_clear(error);
        status = SL_OK;
    }
    return status;
}
