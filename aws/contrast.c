/* Successes, each with its time: see aws/contrast.h. */
#include "aws/contrast.h"

#include <string.h>

static struct sl_contrast_row *find(struct sl_contrast *contrast, const char *operation, uint64_t place)
{
    for (size_t i = 0; i < contrast->n; i++)
        if (contrast->rows[i].place == place && strcmp(contrast->rows[i].operation, operation) == 0)
            return &contrast->rows[i];
    return NULL;
}

/* A new row, or that of the oldest success. */
static struct sl_contrast_row *add(struct sl_contrast *contrast)
{
    if (contrast->n < SL_CONTRAST_ROWS)
        return &contrast->rows[contrast->n++];
    struct sl_contrast_row *oldest = &contrast->rows[0];
    for (size_t i = 1; i < contrast->n; i++)
        if (contrast->rows[i].at_ms < oldest->at_ms)
            oldest = &contrast->rows[i];
    return oldest;
}

void sl_contrast_begin(struct sl_contrast *contrast)
{
    contrast->apply++;
}

void sl_contrast_succeeded(struct sl_contrast *contrast, const char *operation, uint64_t place,
                           int64_t now_ms)
{
    struct sl_contrast_row *row = find(contrast, operation, place);
    if (!row)
        row = add(contrast);
    *row = (struct sl_contrast_row){operation, place, contrast->apply, now_ms, SL_CONTRAST_REFUSALS};
}

bool sl_contrast_vouches(struct sl_contrast *contrast, const char *operation, uint64_t place, size_t n,
                         int64_t now_ms)
{
    struct sl_contrast_row *row = find(contrast, operation, place);
    if (!row)
        return false;
    if (row->apply == contrast->apply)
        return true;
    if (now_ms - row->at_ms > SL_CONTRAST_MS || n > row->left)
        return false;
    row->left -= n;
    return true;
}
