/* The sinks beyond this machine: what sinks/target.c calls for their schemes.
 *
 * Opening a target reads its URL, and refuses it when something in it is wrong. Before the first request
 * nothing is sent, no file is read, and neither TLS nor credentials are touched: a cold start pays only for
 * what it uses. */
#ifndef SL_SINKS_SERVICES_H
#define SL_SINKS_SERVICES_H

#include "sinks/target.h"

/* Each returns a port that the caller closes, or SL_FATAL and a line that says what is wrong. */
enum sl_status sl_s3_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                          struct sl_error *error) SL_MUST_USE;
enum sl_status sl_dynamodb_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error) SL_MUST_USE;
enum sl_status sl_opensearch_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                  struct sl_error *error) SL_MUST_USE;
enum sl_status sl_sqs_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error) SL_MUST_USE;
enum sl_status sl_sns_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                           struct sl_error *error) SL_MUST_USE;
enum sl_status sl_events_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                              struct sl_error *error) SL_MUST_USE;
enum sl_status sl_kinesis_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;
/* https: and, to this machine, http: */
enum sl_status sl_webhook_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;
/* Of trace spans alone: xray: */
enum sl_status sl_xray_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                            struct sl_error *error) SL_MUST_USE;
enum sl_status sl_firehose_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                struct sl_error *error) SL_MUST_USE;

#endif
