/* Rows that cannot be compared: a code and a text that outlive the error. */
#include "handlers/builtin/toolkit/expected.h"

void sl_expected_refuse(const struct sl_host *host, const struct sl_error *why, struct sl_expected *row,
                        struct sl_arena *arena)
{
    struct sl_span code = sl_span_str(why->code), text = sl_span_str(why->text);
    row->status = SL_REJECT;
    row->code = host->join(arena, &code, 1).ptr;
    row->why = host->join(arena, &text, 1).ptr;
}
