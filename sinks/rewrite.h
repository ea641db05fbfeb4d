/* Rewriting objects that were to stay for ever, for `sluice erase`: an object gets another content under its
 * key, and what a bucket with versions keeps of the old one can be listed, read and removed.
 *
 * The contract is the port's (sinks/port.h): results are all that the functions return, an operation whose
 * result is SL_OK is durable, what is found is in the call's arena. */
#ifndef SL_SINKS_REWRITE_H
#define SL_SINKS_REWRITE_H

#include "sinks/port.h"

struct sl_object_rewrite {
    struct sl_object object;
    struct sl_span etag; /* of the object that is there; another one is left alone: SL_REJECT, code
                            "PreconditionFailed" */
    const char *note;    /* S3: x-amz-meta-sluice-erased; printable ASCII */
};

/* One version of an object, as buckets with versions have them. */
struct sl_object_version {
    struct sl_span key;     /* below the target's prefix */
    struct sl_span version; /* "null" in a bucket without versions */
    uint64_t bytes;
    bool is_latest;
    bool is_marker; /* of a deletion: it has no content */
};

struct sl_version_page {
    struct sl_result result;
    struct sl_object_version *versions; /* by key; what was deleted and what was not may each have an order of
                                           its own */
    size_t n;
    struct sl_span next_key, next_version; /* where the next page begins; absent: this is the last one */
};

struct sl_rewriter {
    void (*replace)(struct sl_object_port *port, const struct sl_object_rewrite *rewrite,
                    struct sl_result *result, const struct sl_call *call);
    /* NULL: the target keeps no versions. */
    void (*list)(struct sl_object_port *port, struct sl_span after_key, struct sl_span after_version,
                 struct sl_version_page *page, const struct sl_call *call);
    void (*read)(struct sl_object_port *port, const struct sl_object_version *version,
                 struct sl_object_piece *piece, const struct sl_call *call); /* whole */
    void (*remove)(struct sl_object_port *port, const struct sl_object_version *versions, size_t n,
                   struct sl_result *results, const struct sl_call *call);
};

/* NULL: the port's objects cannot be rewritten. */
const struct sl_rewriter *sl_rewriter_of(const struct sl_object_port *port);

#endif
