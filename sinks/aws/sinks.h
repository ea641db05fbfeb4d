/* The sinks that live in AWS: what sinks/target.c calls for their schemes.
 *
 * Opening a target reads its URL and refuses it, by name, when something in it cannot be right. Nothing is
 * sent, no file is read, and neither TLS nor credentials are touched before the first request: a cold start
 * pays for what it uses. */
#ifndef SL_SINKS_AWS_SINKS_H
#define SL_SINKS_AWS_SINKS_H

#include "sinks/target.h"

/* Each gives a port that the caller closes, or SL_FATAL and a line that names what is wrong. */
enum sl_status sl_s3_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                          struct sl_error *error) SL_MUST_USE;
enum sl_status sl_dynamodb_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error) SL_MUST_USE;
enum sl_status sl_sqs_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error) SL_MUST_USE;
enum sl_status sl_sns_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error) SL_MUST_USE;
enum sl_status sl_events_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                              struct sl_error *error) SL_MUST_USE;
enum sl_status sl_kinesis_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;
enum sl_status sl_firehose_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                struct sl_error *error) SL_MUST_USE;

/* What the AWS sinks share (sinks->aws): connections, credentials, learned skew and regions. Every port must
 * be closed before. NULL is fine. */
void sl_aws_destroy(struct sl_aws *aws);

#endif
