/* A table in PostgreSQL, with DynamoDB's conditions and transactions:
 * `postgres://HOST[:PORT]/DATABASE?table=[SCHEMA.]NAME&user=`; docs/POSTGRES.md has the parameters.
 *
 * The table is there before: its primary key's columns are the key's attributes, the column `item` (jsonb)
 * has the whole item as DynamoDB's JSON, and columns that the target declares have single attributes. Nothing
 * is created. Values come back as they were put, numbers in normal form; a text with U+0000 is refused.
 * Opening sends nothing. */
#ifndef SL_SINKS_POSTGRES_H
#define SL_SINKS_POSTGRES_H

#include "sinks/target.h"

enum sl_status sl_postgres_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error) SL_MUST_USE;

#endif
