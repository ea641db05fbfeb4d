/* A handler whose metrics break every rule of CloudWatch. */
#include <sluice/handler.h>

#include <math.h>
#include <string.h>

struct metrics {
    const struct sl_host *host;
    struct sl_route *route;
};

static enum sl_status metrics_open(const struct sl_host *host, struct sl_route *route, void **self,
                                   struct sl_error *error)
{
    struct metrics *m = host->alloc(host->route_arena(route), sizeof(*m));
    (void)error;
    *m = (struct metrics){host, route};
    *self = m;
    return SL_OK;
}

static enum sl_status metrics_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct metrics *m = self;
    char longest[3000];
    const char *names[] = {"",      " ",        "_aws",     "Function", "Route",
                           "level", "a\nb\"\\", "\x01\x7f", "\xff\xfe", longest};
    const double values[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, 0.1, 3, 1e22, 5e-324};
    const char *units[] = {"Count", "count", "", NULL};
    (void)slice;
    (void)error;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        m->host->metric(m->route, names[i], values[i], "Count");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        m->host->metric(m->route, "Plain", 1, units[i]);
    return SL_OK;
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "metrics",
    .open = metrics_open,
    .handle = metrics_handle,
};
