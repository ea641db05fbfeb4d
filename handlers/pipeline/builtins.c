/* The list of built-in handlers. */
#include "handlers/pipeline/builtins.h"

#include "base/array.h"

#include <string.h>

extern const struct sl_handler sl_archive_handler, sl_replicate_handler, sl_aggregate_handler,
    sl_view_handler, sl_notify_handler;

const struct sl_handler *const sl_builtins[] = {
    &sl_archive_handler, &sl_replicate_handler, &sl_aggregate_handler,
    &sl_view_handler,    &sl_notify_handler,    NULL,
};

static const struct sl_builtin facts[] = {
    {&sl_archive_handler, SL_MAKES_OBJECTS, archive_uses, NULL, NULL},
    {&sl_replicate_handler, SL_MAKES_ROWS, replicate_uses, NULL, NULL},
    {&sl_aggregate_handler, SL_MAKES_TOTALS, aggregate_uses, aggregate_read_totals, NULL},
    {&sl_view_handler, SL_MAKES_VIEW, NULL, NULL, view_fills},
    {&sl_notify_handler, SL_MAKES_MESSAGES, notify_uses, NULL, NULL},
    {NULL, SL_MAKES_UNKNOWN, NULL, NULL, NULL},
};
_Static_assert(SL_COUNT(facts) == SL_COUNT(sl_builtins), "each built-in handler tells of itself");

const struct sl_builtin *sl_builtin_named(const char *name)
{
    const struct sl_builtin *one = facts;
    while (one->handler && strcmp(one->handler->name, name) != 0)
        one++;
    return one;
}
