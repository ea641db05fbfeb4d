/* The lease table in DynamoDB: it is created when it is not there, and looked at before it is used. */
#ifndef SL_LIVE_LEASE_LEASE_TABLE_H
#define SL_LIVE_LEASE_LEASE_TABLE_H

#include "sinks/target.h"

#define SL_LEASE_TABLE_WAIT_MS 120000 /* for a new table to become active: AWS needs some 10 s */

/* Makes the table of a target dynamodb://… ready: partition key leaseKey (S), paid by request. `*is_created`:
 * it was not there. Other targets need nothing. SL_REJECT: a table of that name is there, but is no lease
 * table of KCL 1.x (with `may_be_newer`, of any KCL). */
enum sl_status sl_lease_table_prepare(struct sl_sinks *sinks, struct sl_span target, bool may_be_newer,
                                      bool *is_created, struct sl_error *error) SL_MUST_USE;

#endif
