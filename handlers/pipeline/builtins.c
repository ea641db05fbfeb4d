/* The list of built-in handlers. */
#include "handlers/pipeline/builtins.h"

extern const struct sl_handler sl_archive_handler, sl_replicate_handler, sl_aggregate_handler,
    sl_notify_handler;

const struct sl_handler *const sl_builtins[] = {
    &sl_archive_handler, &sl_replicate_handler, &sl_aggregate_handler, &sl_notify_handler, NULL,
};
