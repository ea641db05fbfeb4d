/* A budget as a bucket of units that fills with time. */
#include "data/source/budget.h"

/* So many seconds' worth is kept. */
#define KEPT_S 1.0

void sl_budget_init(struct sl_budget *b, double units_per_s, int64_t now_ms)
{
    *b = (struct sl_budget){.units_per_s = units_per_s, .at_ms = now_ms};
}

int64_t sl_budget_wait_ms(struct sl_budget *b, int64_t now_ms)
{
    double rate = b->units_per_s;
    if (rate <= 0)
        return 0;
    b->left += rate * (double)(now_ms - b->at_ms) / 1000;
    b->left = b->left > rate * KEPT_S ? rate * KEPT_S : b->left;
    b->at_ms = now_ms;
    return b->left >= 0 ? 0 : (int64_t)(-b->left / rate * 1000) + 1;
}

void sl_budget_use(struct sl_budget *b, double units)
{
    b->left -= units;
}
