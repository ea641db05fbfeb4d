/* The table that is verified against, held to the tables of the routes. */
#ifndef SL_DATA_VERIFY_SOURCE_H
#define SL_DATA_VERIFY_SOURCE_H

#include "handlers/pipeline/route.h"

/* What is verified against. */
struct sl_verify_source {
    const char *what; /* for errors: "--table orders" */
    struct sl_span url;
    const struct sl_table_facts *facts;
    const bool *is_chosen; /* by route; NULL: every route */
};

/* SL_REJECT, code "TargetIsSource": a chosen route writes into the source, be it its target or a table for
 * guards, tombstones or its ledger. A route of "own_rows": "mark" may. Tables of DynamoDB are told apart by
 * their ARNs, those of SQLite by the file and the
 * name, those of PostgreSQL by the text of server, database and name. */
enum sl_status sl_verify_check_source(const struct sl_verify_source *source, struct sl_pipeline *pipeline,
                                      const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

/* Whether two targets name one table, dynamodb://NAME or sqlite:FILE?table=NAME, whatever their other
 * parameters say. */
bool sl_verify_is_same_table(const char *a, const char *b);

/* SL_REJECT, code "OtherSource": the ledger of a chosen aggregate route says that it counts another table.
 * What cannot be read is passed over: the verification itself tells of it. */
enum sl_status sl_verify_check_ledgers(const struct sl_verify_source *source, struct sl_pipeline *pipeline,
                                       const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

/* Before a route is repaired: may the source be the wrong table, and what is in the route's be lost? So it is
 * when many items were read, and none of the rows that are there is as it should be. */
bool sl_verify_is_doubtful(struct sl_route *route, uint64_t items, uint64_t equal,
                           const struct sl_call *call);

#endif
