/* Routes are asked where their rows are. */
#include "data/verify/rows.h"

const struct sl_expected *sl_rows_table(struct sl_route *route, struct sl_arena *arena)
{
    struct sl_expect tables = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(tables)}, .arena = arena};
    struct sl_error why = SL_NO_ERROR;
    bool is_told = route->loaded.handler.expect(route->self, &tables, &why) == SL_OK && tables.n_rows > 0;
    const struct sl_expected *rows = is_told ? &tables.rows[0] : NULL;
    /* (A plugin may have a port of its own, which need not be able to.) */
    return rows && rows->port->scan && rows->port->describe ? rows : NULL;
}
