/* Brent's algorithm over tokens: one of them is remembered, and replaced after 1, 2, 4, ... others. */
#include "base/cycle.h"

#include "base/arena.h"
#include "base/span.h"

#include <stdlib.h>
#include <string.h>

bool sl_cycle_closes(struct sl_cycle *cycle, struct sl_span token)
{
    if (cycle->seen && sl_span_eq(sl_span(cycle->seen, cycle->len), token))
        return true;
    if (cycle->steps++ < cycle->limit)
        return false;
    char *copy = realloc(cycle->seen, token.len + 1);
    if (!copy)
        sl_die("out of memory: a token of %zu bytes", token.len);
    if (token.len)
        memcpy(copy, token.ptr, token.len);
    cycle->seen = copy;
    cycle->len = token.len;
    cycle->steps = 0;
    cycle->limit = cycle->limit ? cycle->limit * 2 : 1;
    return false;
}

void sl_cycle_clean_up(struct sl_cycle *cycle)
{
    free(cycle->seen);
    *cycle = (struct sl_cycle){.seen = NULL};
}
