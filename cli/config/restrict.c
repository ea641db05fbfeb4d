/* A copy of the configuration with one route, in which nothing is parked or set aside. */
#include "cli/config/restrict.h"

#include "base/disk.h"
#include "handlers/pipeline/config.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The option is a member of the route, or of its "options". An epoch is never raised here. */
static void set_epoch(json_t *route, int64_t epoch)
{
    json_t *options = json_object_get(route, "options");
    json_t *at = json_object_get(options, "epoch") ? options : route;
    if (epoch >= 0 && json_integer_value(json_object_get(at, "epoch")) > epoch)
        json_object_set_new(at, "epoch", json_integer(epoch));
}

static json_t *only_route(json_t *routes, const char *name, int64_t epoch)
{
    json_t *kept = json_array();
    size_t i;
    json_t *route;
    json_array_foreach(routes, i, route)
    {
        const char *own = json_string_value(json_object_get(route, "name"));
        if (name && !(own && strcmp(own, name) == 0))
            continue;
        json_object_set_new(route, "on_failure", json_string("report"));
        json_object_del(route, "set_aside");
        json_object_del(route, "paused");
        set_epoch(route, epoch);
        json_array_append(kept, route);
    }
    return kept;
}

enum sl_status sl_restrict_write(const json_t *root, struct sl_arena *arena, struct sl_restricted *out,
                                 struct sl_error *error)
{
    char *text = json_dumps(root, JSON_INDENT(2));
    out->fd = memfd_create("sluice.json", MFD_CLOEXEC);
    bool ok = text && out->fd >= 0 && sl_disk_write(out->fd, sl_span_str(text)) == 0;
    free(text);
    out->path = sl_arena_printf(arena, "/proc/%d/fd/%d", (int)getpid(), out->fd);
    return ok ? SL_OK
              : sl_fail(error, SL_FATAL, "NoMemoryFile",
                        "a file in memory for the configuration cannot be created: %s", strerror(errno));
}

enum sl_status sl_restrict_config(const char *path, const char *route, int64_t epoch, struct sl_arena *arena,
                                  struct sl_restricted *out, struct sl_error *error)
{
    json_t *root = sl_config_tree(path, arena, error);
    out->fd = -1;
    if (!root)
        return SL_REJECT;
    json_t *routes = only_route(json_object_get(root, "routes"), route, epoch);
    enum sl_status status = SL_OK;
    if (json_array_size(routes) == 0 && route)
        status = sl_fail(
            error, SL_REJECT, "NoRoute",
            "%s has no route \"%s\", which parked this record; add it again, or name another configuration",
            path, route);
    json_object_set_new(root, "routes", routes);
    json_object_del(root, "on_failure");
    /* What is redriven was rejected before: that much of it is rejected again says nothing of the route. */
    json_object_set_new(root, "max_parked", json_null());
    if (status == SL_OK)
        status = sl_restrict_write(root, arena, out, error);
    json_decref(root);
    return status;
}
