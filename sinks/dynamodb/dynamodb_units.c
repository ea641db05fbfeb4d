/* Capacity units: what requests consumed, for whoever holds to a budget. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "base/json_walk.h"

#include <stdlib.h>

/* A write unit is 1 KB, begun ("Capacity unit consumption for write operations"). */
#define UNIT_BYTES 1024

double sl_dynamodb_units(struct sl_span consumed)
{
    struct sl_json_walk walk = sl_json_walk(consumed);
    struct sl_span entry, units = sl_json_walk_member(consumed, SL_LIT("CapacityUnits"));
    double sum = 0;
    char text[32];
    while (!walk.is_object && sl_json_walk_next(&walk, NULL, &entry))
        sum += *entry.ptr == '{' ? sl_dynamodb_units(entry) : 0;
    if (!units.len || units.len >= sizeof(text) || *units.ptr < '0' || *units.ptr > '9')
        return sum;
    memcpy(text, units.ptr, units.len);
    text[units.len] = '\0';
    return strtod(text, NULL);
}

void sl_dynamodb_count(const struct sl_job *job, bool is_read)
{
    const struct sl_dynamodb_work *work = job->context;
    struct sl_table_units *units = work->apply->table->port.units;
    if (!units)
        return;
    double more = sl_dynamodb_units(
        sl_json_walk_member(sl_buffer_span(&job->answer->body), SL_LIT("ConsumedCapacity")));
    *(is_read ? &units->read : &units->write) += more;
}

void sl_dynamodb_count_refused(const struct sl_dynamodb_work *work, const struct sl_table_op *op,
                               struct sl_span old)
{
    struct sl_table_units *units = work->apply->table->port.units;
    if (!units)
        return;
    size_t put = op->verb == SL_TABLE_PUT ? sl_item_bytes(op->item) : 1,
           had = old.ptr ? sl_item_bytes(old) : 1;
    units->write += (double)(((put > had ? put : had) + UNIT_BYTES - 1) / UNIT_BYTES);
}

struct sl_span sl_dynamodb_asks_units(const struct sl_dynamodb_apply *apply)
{
    return apply->table->port.units ? SL_LIT(",\"ReturnConsumedCapacity\":\"TOTAL\"") : SL_LIT("");
}
