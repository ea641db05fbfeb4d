/* Which ports can rewrite. */
#include "sinks/rewrite.h"

#include "sinks/file.h"
#include "sinks/s3/s3_private.h"

const struct sl_rewriter *sl_rewriter_of(const struct sl_object_port *port)
{
    static const struct sl_rewriter s3 = {sl_s3_replace, sl_s3_list_versions, sl_s3_read_version,
                                          sl_s3_remove_versions};
    static const struct sl_rewriter file = {.replace = sl_file_replace};
    return port->apply == sl_s3_put ? &s3 : sl_file_is(port) ? &file : NULL;
}
