/* Inside the aggregate handler: what `sluice verify` asks for, see handlers/expect.h. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_EXPECT_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_EXPECT_H

#include "handlers/builtin/aggregate/aggregate_private.h"

/* struct sl_handler's. The rows are the ledger's. */
enum sl_status aggregate_expect(void *self, struct sl_expect *e, struct sl_error *error) SL_MUST_USE;
enum sl_status aggregate_judge(void *self, struct sl_judge *j, struct sl_error *error) SL_MUST_USE;
enum sl_status aggregate_trace(void *self, struct sl_trace *t, struct sl_error *error) SL_MUST_USE;

#endif
