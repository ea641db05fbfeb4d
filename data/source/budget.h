/* A budget of capacity units a second, of reads or of writes: what is used is paid off before more is.
 *
 * A second's worth of unused budget is kept, so that a page or a piece is made at once, and then paid off. */
#ifndef SL_DATA_SOURCE_BUDGET_H
#define SL_DATA_SOURCE_BUDGET_H

#include <stdint.h>

struct sl_budget {
    double units_per_s; /* 0: there is no limit */
    double left;        /* that may be used now; below 0: a debt */
    int64_t at_ms;      /* when that was counted, on a steady clock */
};

/* It begins with nothing kept and no debt. */
void sl_budget_init(struct sl_budget *budget, double units_per_s, int64_t now_ms);

/* How long to wait before more is used; 0: not at all. */
int64_t sl_budget_wait_ms(struct sl_budget *budget, int64_t now_ms);

void sl_budget_use(struct sl_budget *budget, double units);

#endif
