/* A handler that does nothing, to be called: as a plugin and, from the same lines, built in. */
#ifdef BENCH_PLUGIN
#include <sluice/handler.h>
#define EMPTY SL_EXPORT const struct sl_handler SL_HANDLER
#else
#include "bench/support/empty_handler.h"
#define EMPTY const struct sl_handler bench_empty_handler
#endif

static enum sl_status empty_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    (void)self;
    (void)slice;
    (void)error;
    return SL_OK;
}

EMPTY = {.abi = SL_HANDLER_ABI, .name = "built_in", .handle = empty_handle};
