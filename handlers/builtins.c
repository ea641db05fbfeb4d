#include "handlers/builtins.h"

extern const struct sl_handler sl_archive_handler;

const struct sl_handler *const sl_builtins[] = {
    &sl_archive_handler,
    NULL,
};
