/* The archives of a pipeline. */
#ifndef SL_DATA_VERIFY_ARCHIVE_TARGETS_H
#define SL_DATA_VERIFY_ARCHIVE_TARGETS_H

#include "handlers/pipeline/pipeline.h"
#include "sinks/port.h"

struct sl_archive_target {
    const char *route;
    struct sl_span url;
    struct sl_object_port *port;
    const char *why_not; /* it proves nothing; NULL: it does */
    bool is_there;       /* it can be listed and read */
};

static inline bool sl_archive_is_verified(const struct sl_archive_target *t)
{
    return !t->why_not && t->is_there;
}

/* Those of the routes that are chosen (NULL: all), in the order of the configuration. Returns how many there
 * are; in `arena`. */
size_t sl_archives_find(struct sl_pipeline *pipeline, const bool *is_chosen, struct sl_arena *arena,
                        struct sl_archive_target **out);

/* Of what they are: the same for the same archives. */
uint64_t sl_archives_digest(const struct sl_archive_target *targets, size_t n);

#endif
