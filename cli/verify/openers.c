/* Targets of a verification are opened for reading alone. */
#include "cli/verify/openers.h"

#include "base/error.h"
#include "cli/dry.h"
#include "sinks/file.h"

#include <stdlib.h>

static enum sl_status read_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_object_port *port = NULL;
    enum sl_status status = sl_dry_openers.objects(sinks, url, out, error);
    if (!sl_target_is_local(url))
        return sl_target_objects(sinks, url, out, error);
    if (status != SL_OK)
        return status;
    char *path = strndup(url.ptr + strlen("file:"), url.len - strlen("file:"));
    if (!path)
        sl_die("out of memory: a target's path");
    if (sl_file_open_to_read(path, &port, &why) == SL_OK)
        *out = port;
    free(path);
    return SL_OK;
}

static enum sl_status read_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    return sl_dry_openers.queue(sinks, url, out, error);
}

const struct sl_openers sl_verify_openers = {
    .kind = sl_target_kind, .objects = read_objects, .table = sl_target_table_to_read, .queue = read_queue};
