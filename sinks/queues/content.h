/* What a service takes as the text of a message. What it does not take is refused here, with the field's
 * name: as part of a request it would be altered on its way, or break the request of its neighbours. */
#ifndef SL_SINKS_QUEUES_CONTENT_H
#define SL_SINKS_QUEUES_CONTENT_H

#include "sinks/port.h"

enum sl_content {
    SL_CONTENT_BYTES, /* any */
    SL_CONTENT_UTF8,  /* any text without a NUL */
    SL_CONTENT_XML,   /* the characters of XML 1.0: no control characters but tab, LF and CR */
    SL_CONTENT_JSON,  /* any text: it is escaped */
};

/* Why the text is not taken, as a clause ("is not UTF-8"); NULL when it is taken. */
const char *sl_content_problem(enum sl_content rule, struct sl_span text);

/* The attributes that say which trace a message belongs to. Where messages have none, they go where readers
 * look for them: into an event's detail, a webhook's headers. */
#define SL_CONTENT_TRACEPARENT "traceparent"
#define SL_CONTENT_TRACESTATE  "tracestate"

/* The value of the message's attribute of that name; absent when it has none. */
struct sl_span sl_content_attribute(const struct sl_message *message, const char *name);

/* Of the name of a message attribute, likewise (SQS developer guide, "Message attribute components"). */
const char *sl_content_name_problem(struct sl_span name);

#endif
