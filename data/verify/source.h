/* The table that is verified against, held to the tables of the routes. */
#ifndef SL_DATA_VERIFY_SOURCE_H
#define SL_DATA_VERIFY_SOURCE_H

#include "handlers/pipeline/pipeline.h"

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

/* Is there any row in the table of the route with this name? True when nobody can tell. */
bool sl_verify_has_rows(struct sl_pipeline *pipeline, const char *name, const struct sl_call *call);

#endif
