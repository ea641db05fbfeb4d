/* The log: one line an event, on one descriptor, each line in one write. Short lines that belong together may
 * share one.
 *
 * As JSON (Lambda's structured form: timestamp, level, message, requestId, then what the caller adds) or as
 * text. Callers never pass payloads, item values or secrets. The level is tested before the arguments
 * are evaluated. What must not be shown of a text (base/clean.h) becomes an escape. Metrics are lines in
 * CloudWatch's embedded metric format (base/emf.h), whatever the log's form. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/emf.h"

enum sl_log_format { SL_LOG_TEXT, SL_LOG_JSON };

struct sl_log {
    enum sl_level level;
    enum sl_log_format format;
    int fd;                 /* -1: nothing is written */
    struct sl_clock *clock; /* for timestamps */
    char request_id[128];   /* of the invocation, empty outside one */
    bool no_metrics;        /* nobody collects them: none are written */
    const char *route;      /* whose handler is running, NULL outside one; borrowed */
    bool is_in_port;        /* and a port that it called is at work */
    struct sl_buffer line;  /* reused */
    struct sl_buffer text;  /* likewise: a member's text, made clean */
};

/* A line longer than this is cut: CloudWatch took 256 KB an event until 2025. */
#define SL_LOG_LINE_BYTES (240 * 1024)

void sl_log_init(struct sl_log *log, int fd, enum sl_level level, enum sl_log_format format,
                 struct sl_clock *clock);
void sl_log_clean_up(struct sl_log *log);

/* TRACE, DEBUG, INFO, WARN, ERROR, FATAL in either case, as AWS_LAMBDA_LOG_LEVEL has them; else `otherwise`.
 * */
enum sl_level sl_log_level(const char *name, enum sl_level otherwise);

#define sl_log(log, lvl, ...)                                                                                \
    do {                                                                                                     \
        if ((lvl) >= (log)->level)                                                                           \
            sl_log_write((log), (lvl), __VA_ARGS__);                                                         \
    } while (0)

void sl_log_write(struct sl_log *log, enum sl_level level, const char *format, ...) SL_PRINTF(3, 4);

/* A line with members of its own in the JSON form (`members`: each with a comma before it, made with
 * base/json_write.h); the text form has the message alone, which then says the same. */
void sl_log_facts(struct sl_log *log, enum sl_level level, struct sl_span message, struct sl_span members);

/* Where documents are added, to be written together by sl_log_metrics_end; NULL: nobody collects them.
 * Nothing else is logged in between. */
struct sl_buffer *sl_log_metrics_begin(struct sl_log *log);
void sl_log_metrics_end(struct sl_log *log);

/* The level that a document has to carry, or else Lambda would drop it; NULL: none. */
const char *sl_log_metrics_level(const struct sl_log *log);

/* One metric as one document, with the log's route. */
void sl_log_metric(struct sl_log *log, const char *function, const char *name, double value,
                   const char *unit);

#endif
