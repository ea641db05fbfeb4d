/* Targets: a URL opens a port. The scheme picks the sink, so one configuration runs in AWS and on a laptop.
 *
 *   objects  s3://bucket/prefix?region=  file:folder
 *   table    dynamodb://table?region=    sqlite:file.db?table=name    opensearch://host/index
 *   queue    sqs://name  sns:arn  events://bus  kinesis://stream  firehose://stream  https://host/path
 *            jsonl:file  stdout:
 *
 * Relative paths start at the working directory. A wrong target is refused, with the reason, before anything
 * is sent or created. */
#ifndef SL_SINKS_TARGET_H
#define SL_SINKS_TARGET_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vars.h"
#include "sinks/port.h"

struct sl_aws; /* aws/aws.h: connections, credentials, learned regions */

/* Where a secret is needed and nobody may be asked: passes as the key of a signature and as any other secret.
 */
#define SL_SECRET_STAND_IN "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

/* What every sink may use; one for the process. */
struct sl_sinks {
    struct sl_clock *clock;
    struct sl_log *log;
    const struct sl_vars *vars;
    const struct sl_vars
        *named;  /* those that targets name ("secret=NAME"): an open pipeline's, else `vars` */
    bool is_dry; /* targets are only looked at: variables that hold a webhook's secrets may be missing */
    struct sl_aws *aws; /* NULL until the first target of AWS: sl_sinks_aws */
};

void sl_sinks_init(struct sl_sinks *sinks, struct sl_clock *clock, struct sl_log *log,
                   const struct sl_vars *vars);
void sl_sinks_clean_up(struct sl_sinks *sinks);

/* The trace of the invocation that begins: aws/aws.h, sl_aws_trace. */
void sl_sinks_trace(struct sl_sinks *sinks, const char *trace_id);

/* sinks->aws, created if needed. */
struct sl_aws *sl_sinks_aws(struct sl_sinks *sinks);

/* For a configuration: the process's variables, and secrets that are read from AWS (aws/secrets.h), each
 * once.
 */
struct sl_vars sl_sinks_vars(struct sl_sinks *sinks, const struct sl_vars *vars);

/* Between two events: a target has refused our login, and the secrets that were read have changed since, so
 * the targets have to be opened again. Asks once in five minutes. */
bool sl_sinks_secrets_changed(struct sl_sinks *sinks);

/* Blots out what the secrets hold. */
void sl_sinks_hide_secrets(const struct sl_sinks *sinks, char *text);

/* When all targets are open: does what costs time and sends nothing. A function's start has more of a
 * processor than its invocations. */
void sl_sinks_prepare(struct sl_sinks *sinks);

/* On failure: SL_FATAL, and a line that names the target and what is wrong. The caller closes the port with
 * its `close`. */
enum sl_status sl_target_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                 struct sl_error *error) SL_MUST_USE;
enum sl_status sl_target_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                               struct sl_error *error) SL_MUST_USE;
/* The same for a table that is only read: a local one is not created. SL_REJECT, code "NoTable": it is not
 * there. */
enum sl_status sl_target_table_to_read(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                       struct sl_error *error) SL_MUST_USE;
enum sl_status sl_target_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;

/* The same for trace spans: xray:, https:, http:, jsonl: or stdout:. A message is one request of an OTLP
 * exporter, in JSON; as a line it is what OpenTelemetry's file exporter writes. */
enum sl_status sl_target_spans(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;

/* Whether the target is on this machine: opening it creates files. */
bool sl_target_is_local(struct sl_span url);
/* Checks the text of a local target without opening it. Other targets pass: opening them sends nothing, and
 * checks their text. */
enum sl_status sl_target_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;

/* So much of the target as errors, logs, metrics and reports show: of a webhook the scheme, the host and the
 * port, because its path and query may be secrets (of one that names a user, which will be refused, the
 * scheme alone), and likewise of a target whose scheme is not known; of others all. A part of `url`, or
 * static. */
struct sl_span sl_target_shown(struct sl_span url);

/* Which port a URL's scheme belongs to. */
enum sl_port_kind { SL_PORT_NONE, SL_PORT_OBJECTS, SL_PORT_TABLE, SL_PORT_QUEUE };
enum sl_port_kind sl_target_kind(struct sl_span url);

#endif
