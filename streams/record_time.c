/* The times that records state: JSON numbers in three units, quoted numbers, and the dates that the AWS CLI
 * writes. */
#include "base/time.h"
#include "streams/record_layout.h"

static bool read_number(struct sl_span text, enum sl_time_unit unit, int64_t *ns, int64_t *step_ns)
{
    struct sl_number number;
    bool exact;
    int shift = 9 - 3 * (int)unit;
    if (sl_number_parse(text, &number) || number.is_negative || !sl_number_int64(&number, shift, ns, &exact))
        return false;
    /* Digits after the point make the step smaller. */
    int decimals = number.n > number.exponent ? number.n - number.exponent : 0;
    *step_ns = 1;
    for (int i = decimals; i < shift; i++)
        *step_ns *= 10;
    return true;
}

bool sl_record_read_time(struct sl_span text, enum sl_time_unit unit, int64_t *ns, int64_t *step_ns)
{
    if (text.len > 4 && text.ptr[4] == '-')
        return sl_time_parse(text, ns, step_ns) && *ns >= 0;
    return read_number(text, unit, ns, step_ns);
}
