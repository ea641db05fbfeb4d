/* The database: its failures, and its tables as they are used. */
#include "sinks/sqlite/sqlite_private.h"

#include <stdlib.h>

void sl_sqlite_begin(struct sl_sqlite *p, const struct sl_call *call)
{
    int64_t left = call->deadline_ms - p->clock->now_ms(p->clock);
    sqlite3_busy_timeout(p->db, left > SL_SQLITE_BUSY_MS ? SL_SQLITE_BUSY_MS : left > 0 ? (int)left : 0);
    p->failure = (struct sl_error)SL_NO_ERROR;
    for (struct sl_sqlite_table *table = p->tables; table; table = table->next)
        if (table->is_absent) {
            sl_sqlite_forget_tables(p, true);
            break;
        }
}

/* ---- failures of the database: of the whole call, never of one record ---- */

static enum sl_status sqlite_status(int code)
{
    switch (code & 0xFF) {
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CORRUPT:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
    case SQLITE_NOTADB:
    case SQLITE_TOOBIG:
        return SL_FATAL;
    default:
        return SL_RETRY;
    }
}

bool sl_sqlite_failed(struct sl_sqlite *p, enum sl_status status)
{
    int code = sqlite3_extended_errcode(p->db) & 0xFF;
    const char *name = code == SQLITE_FULL ? "NoSpace" : code == SQLITE_BUSY ? "Busy" : "DatabaseError";
    if (p->failure.status == SL_OK)
        (void)sl_fail(&p->failure, status, name, "%s: %s", p->path, sqlite3_errmsg(p->db));
    return false;
}

bool sl_sqlite_done_or_failed(struct sl_sqlite *p, bool is_done)
{
    return is_done || sl_sqlite_failed(p, sqlite_status(sqlite3_errcode(p->db)));
}

bool sl_sqlite_run(struct sl_sqlite *p, const char *sql)
{
    return sl_sqlite_done_or_failed(p, sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

bool sl_sqlite_bind(struct sl_sqlite *p, sqlite3_stmt *statement, int i, struct sl_span text)
{
    int code = sqlite3_bind_text64(statement, i, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
    return sl_sqlite_done_or_failed(p, code == SQLITE_OK);
}

/* ---- tables ---- */

static bool prepare(struct sl_sqlite *p, sqlite3_stmt **out, const char *format, const char *name)
{
    char *sql = sqlite3_mprintf(format, name);
    int code = sqlite3_prepare_v3(p->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK;
}

static void table_destroy(struct sl_sqlite_table *table)
{
    sqlite3_finalize(table->get);
    sqlite3_finalize(table->put);
    sqlite3_finalize(table->remove);
    sqlite3_finalize(table->scan);
    free(table->name);
    free(table);
}

/* Asks the file: SQLite's own memory of its tables is as old as the last statement that read one. */
static bool look_for(struct sl_sqlite *p, const char *name, bool *is_there)
{
    sqlite3_stmt *ask = NULL;
    if (prepare(p, &ask, "SELECT 1 FROM sqlite_master WHERE type <> 'index' AND name = '%q' COLLATE NOCASE",
                name))
        *is_there = sqlite3_step(ask) == SQLITE_ROW;
    return sl_sqlite_done_or_failed(p, sqlite3_finalize(ask) == SQLITE_OK && ask);
}

/* A table without rows; there is nothing to write with. */
static bool prepare_absent(struct sl_sqlite *p, struct sl_sqlite_table *table)
{
    table->is_absent = true;
    return sl_sqlite_done_or_failed(
        p, prepare(p, &table->get, "SELECT '%w' AS item WHERE 0 AND ?1", table->name) &&
               prepare(p, &table->scan, "SELECT '%w', '' WHERE 0 AND ?1", table->name));
}

static bool create_and_prepare(struct sl_sqlite *p, struct sl_sqlite_table *table)
{
    char *sql = sqlite3_mprintf(
        "CREATE TABLE IF NOT EXISTS \"%w\" (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID",
        table->name);
    bool is_made = p->only_reads || sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_free(sql);
    if (is_made && prepare(p, &table->get, "SELECT item FROM \"%w\" WHERE key = ?1", table->name) &&
        prepare(p, &table->put, "INSERT OR REPLACE INTO \"%w\" VALUES (?1, ?2)", table->name) &&
        prepare(p, &table->remove, "DELETE FROM \"%w\" WHERE key = ?1", table->name) &&
        prepare(p, &table->scan, "SELECT key, item FROM \"%w\" WHERE key > ?1 ORDER BY key", table->name))
        return true;
    /* An error in the SQL: something else has this name, or other columns. It stays so. */
    int code = sqlite3_errcode(p->db);
    if ((code & 0xFF) != SQLITE_ERROR)
        return sl_sqlite_failed(p, sqlite_status(code));
    (void)sl_fail(&p->failure, SL_FATAL, "DatabaseError",
                  "%s: %s is not a table that Sluice made: %s; name another one", p->path, table->name,
                  sqlite3_errmsg(p->db));
    return false;
}

struct sl_sqlite_table *sl_sqlite_table(struct sl_sqlite *p, struct sl_span name)
{
    struct sl_sqlite_table **end = &p->tables;
    for (; *end; end = &(*end)->next)
        if (sl_span_is(name, (*end)->name))
            return *end;
    struct sl_sqlite_table *table = calloc(1, sizeof(*table));
    if (!table || !(table->name = strndup(name.ptr, name.len)))
        sl_die("out of memory");
    bool is_there = true;
    if ((!p->only_reads || look_for(p, table->name, &is_there)) &&
        (is_there ? create_and_prepare(p, table) : prepare_absent(p, table))) {
        *end = table;
        return table;
    }
    table_destroy(table);
    return NULL;
}

void sl_sqlite_forget_tables(struct sl_sqlite *p, bool also_kept)
{
    for (struct sl_sqlite_table **at = &p->tables, *table; (table = *at);) {
        if (table->is_kept && !also_kept) {
            at = &table->next;
            continue;
        }
        *at = table->next;
        table_destroy(table);
    }
}

void sl_sqlite_keep_tables(struct sl_sqlite *p)
{
    for (struct sl_sqlite_table *table = p->tables; table; table = table->next)
        table->is_kept = true;
}

bool sl_sqlite_take_item(struct sl_sqlite *p, const struct sl_sqlite_row *row, struct sl_arena *arena,
                         struct sl_span *out)
{
    struct sl_error why = SL_NO_ERROR;
    const char *text = (const char *)sqlite3_column_text(row->statement, row->column);
    if (!text && sqlite3_errcode(p->db) == SQLITE_NOMEM)
        sl_die("out of memory: a row");
    *out = sl_span(text ? text : "", (size_t)sqlite3_column_bytes(row->statement, row->column));
    *out = sl_span(sl_arena_copy(arena, *out), out->len);
    if (sl_item_read(*out, &why) == SL_OK)
        return true;
    (void)sl_fail(&p->failure, SL_FATAL, "DatabaseError", "%s: a row of table %s: %s", p->path,
                  row->table->name, why.text);
    return false;
}
