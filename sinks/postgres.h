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

/* The statements that make a table of the target (`table` absent: its own) for items with this key, each on a
 * line of its own; with tombstones, also the index that finds those that have expired, and a view without
 * them. NULL: the URL is not of PostgreSQL, or is wrong. In `arena`. */
const char *sl_postgres_statements(struct sl_sinks *sinks, struct sl_span url, struct sl_span table,
                                   const struct sl_table_key *keys, size_t n, bool has_tombstones,
                                   struct sl_arena *arena);

#endif
