/* A table in SQLite, with DynamoDB's conditions and transactions: `sqlite:file.db?table=name`.
 *
 * Each table has two columns: `key`, one text per primary key, and `item`, the item's JSON as it was put. One
 * apply is one SQLite transaction, synced before its results are SL_OK; only a refused group is rolled back.
 * Several processes may share the file. */
#ifndef SL_SINKS_SQLITE_H
#define SL_SINKS_SQLITE_H

#include "sinks/target.h"

enum sl_status sl_sqlite_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                              struct sl_error *error) SL_MUST_USE;
/* The table as it is, for reading alone: nothing is created or changed. A further table that is not there is
 * read as an empty one. SL_REJECT, code "NoTable": the file or the target's own table is not there. */
enum sl_status sl_sqlite_open_to_read(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                      struct sl_error *error) SL_MUST_USE;
/* The text of the target alone; nothing is opened or created. */
enum sl_status sl_sqlite_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;

#endif
