/* A table in SQLite: what its files share. */
#ifndef SL_SINKS_SQLITE_SQLITE_PRIVATE_H
#define SL_SINKS_SQLITE_SQLITE_PRIVATE_H

#include "base/clock.h"
#include "sinks/table.h"

#include <sqlite3.h>

/* The longest wait for another writer, even when the deadline is later. */
#define SL_SQLITE_BUSY_MS 10000

struct sl_sqlite_table {
    struct sl_sqlite_table *next;
    char *name;
    bool is_absent; /* it is only read, and is not there: looked for again by the next call */
    bool is_kept;   /* a transaction that used it is committed; until then it may go with a rollback */
    sqlite3_stmt *get, *put, *remove, *scan;
};

struct sl_sqlite {
    struct sl_table_port port;
    struct sl_clock *clock;
    sqlite3 *db;
    bool only_reads;                /* nothing is created */
    char *path, *own;               /* the file; the target's own table */
    struct sl_sqlite_table *tables; /* as they are used */
    struct sl_buffer key;           /* where a key's text is made */
    struct sl_arena *scratch;       /* of one unit */
    struct sl_error failure;        /* the first failure of the database in this apply */
};

/* ---- the database ---- */

/* A call begins: no failure yet, and it waits for other writers until its deadline. */
void sl_sqlite_begin(struct sl_sqlite *p, const struct sl_call *call);

/* Notes the failure of the last call, the first one only: what follows it changes SQLite's message. Returns
 * false. */
bool sl_sqlite_failed(struct sl_sqlite *p, enum sl_status status);
/* The same unless `is_done`; returns it. */
bool sl_sqlite_done_or_failed(struct sl_sqlite *p, bool is_done);

bool sl_sqlite_run(struct sl_sqlite *p, const char *sql);
bool sl_sqlite_bind(struct sl_sqlite *p, sqlite3_stmt *statement, int i, struct sl_span text);

/* ---- tables ---- */

/* The table with this name, created if needed (unless `only_reads`); NULL when the database fails. */
struct sl_sqlite_table *sl_sqlite_table(struct sl_sqlite *p, struct sl_span name);

/* What was rolled back may have created a table, and what failed may have been one that is gone: it is
 * created again when it is used again. */
void sl_sqlite_forget_tables(struct sl_sqlite *p, bool also_kept);
void sl_sqlite_keep_tables(struct sl_sqlite *p);

/* Copies the item that the row has in `column` to the arena. What is not an item was not written here: it is
 * a failure, and is not taken for an absent item. */
struct sl_sqlite_row {
    const struct sl_sqlite_table *table;
    sqlite3_stmt *statement;
    int column;
};
bool sl_sqlite_take_item(struct sl_sqlite *p, const struct sl_sqlite_row *row, struct sl_arena *arena,
                         struct sl_span *out);

#endif
