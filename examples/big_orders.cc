// The same interface from C++: counts orders whose total is above a limit.
//
// {"name": "big", "handler": "big_orders", "limit": 500, "on_failure": "report"}
//
// No exception may leave a callback: the host is C.
#include <sluice/handler.h>

#include <cstdio>
#include <new>

namespace {

struct BigOrders {
    const sl_host *host;
    sl_route *route;
    char limit[24];

    sl_status look_at(const sl_record *record, sl_arena *arena, sl_error *error) const
    {
        sl_value value = host->record_attribute(record, SL_NEW_IMAGE, SL_LIT("total"));
        if (value.type == SL_NONE)
            return SL_OK;
        if (value.type != SL_N)
            return host->fail(error, SL_REJECT, "WrongType", "total is not a number");
        // Numbers have 38 digits: they are compared as text, by value.
        if (host->number_compare(host->value_text(value, arena), sl_span_str(limit)) > 0)
            host->metric(route, "BigOrders", 1, "Count");
        return SL_OK;
    }
};

const sl_option options[] = {
    {"limit", SL_OPTION_INTEGER, 0, 1, 1000000000, nullptr, "500", "totals above this are counted"},
    {nullptr, SL_OPTION_END, 0, 0, 0, nullptr, nullptr, nullptr},
};

sl_status open(const sl_host *host, sl_route *route, void **self, sl_error *)
{
    void *memory = host->alloc(host->route_arena(route), sizeof(BigOrders));
    BigOrders *orders = new (memory) BigOrders{host, route, {}};
    std::snprintf(orders->limit, sizeof(orders->limit), "%lld", (long long)host->option_integer(route, "limit"));
    *self = orders;
    return SL_OK;
}

sl_status handle(void *self, sl_slice *slice, sl_error *)
{
    const BigOrders *orders = static_cast<BigOrders *>(self);
    for (size_t i = 0; i < slice->n; i++) {
        sl_error why = SL_NO_ERROR;
        sl_status status = orders->look_at(slice->records[i], slice->arena, &why);
        if (status != SL_OK)
            orders->host->mark(slice, i, status, &why);
    }
    return SL_OK;
}

} // namespace

extern "C" {
extern SL_EXPORT const sl_handler SL_HANDLER;
const sl_handler SL_HANDLER = {
    SL_HANDLER_ABI, "big_orders", "counts orders above a limit", 0, 0, 0, options, open, handle,
    nullptr, nullptr, nullptr, /* window, close, accepts */
    nullptr, nullptr, nullptr, nullptr, nullptr, /* expect, judge, trace, repair, per_item */
};
}
