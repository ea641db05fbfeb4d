/* Inside the notify handler: what its files share. docs/HANDLERS.md says what it promises. */
#ifndef SL_HANDLERS_BUILTIN_NOTIFY_NOTIFY_PRIVATE_H
#define SL_HANDLERS_BUILTIN_NOTIFY_NOTIFY_PRIVATE_H

#include "handlers/builtin/toolkit/render.h"

enum notify_body { NOTIFY_RECORD, NOTIFY_JSON };

struct notify_attribute {
    struct sl_span name;
    struct sl_render_template value;
};

struct notify {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_queue_port *queue;
    const struct sl_template *message; /* NULL: the record itself, as `body` says */
    const struct sl_template *subject, *group, *dedupe;
    enum notify_body body;
    enum sl_escape escape; /* of values in the message */
    enum sl_missing missing;
    bool is_shared; /* the destination knows repeats by an id alone, and other routes may write to it */
    struct notify_attribute *attributes;
    size_t n_attributes;
};

/* ---- notify_message.c ---- */

/* The record's message, in `arena`. SL_REJECT, code "MissingAttribute", when a template names what the record
 * lacks. */
enum sl_status notify_message(const struct notify *p, const struct sl_record *r, struct sl_arena *arena,
                              struct sl_message *out, struct sl_error *error) SL_MUST_USE;

#endif
