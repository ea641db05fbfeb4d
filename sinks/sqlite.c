/* A table in SQLite: items as JSON, one SQLite transaction an apply, a savepoint for each group. */
#include "sinks/sqlite.h"

#include "base/disk.h"
#include "base/url.h"
#include "sinks/result.h"
#include "sinks/table.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* The longest wait for another writer, even when the deadline is later. */
#define BUSY_MS 10000

struct table {
    struct table *next;
    char *name;
    bool is_kept; /* a transaction that used it is committed; until then it may go with a rollback */
    sqlite3_stmt *get, *put, *remove;
};

struct sqlite_port {
    struct sl_table_port port;
    struct sl_clock *clock;
    sqlite3 *db;
    char *path, *own;         /* the file; the target's own table */
    struct table *tables;     /* as they are used */
    struct sl_buffer key;     /* where a key's text is made */
    struct sl_arena *scratch; /* of one unit */
    struct sl_error failure;  /* the first failure of the database in this apply */
};

/* One operation on its way. */
struct step {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span key; /* its text */
    struct table *table;
    struct sl_span item; /* as it is in the table, absent when there is none */
};

/* ---- failures of the database: of the whole apply, never of one record ---- */

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

/* Notes the failure of the last call, the first one only: what follows it changes SQLite's message. */
static bool failed(struct sqlite_port *p, enum sl_status status)
{
    int code = sqlite3_extended_errcode(p->db) & 0xFF;
    const char *name = code == SQLITE_FULL ? "NoSpace" : code == SQLITE_BUSY ? "Busy" : "DatabaseError";
    if (p->failure.status == SL_OK)
        (void)sl_fail(&p->failure, status, name, "%s: %s", p->path, sqlite3_errmsg(p->db));
    return false;
}

static bool done_or_failed(struct sqlite_port *p, bool is_done)
{
    return is_done || failed(p, sqlite_status(sqlite3_errcode(p->db)));
}

static bool run(struct sqlite_port *p, const char *sql)
{
    return done_or_failed(p, sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* ---- tables ---- */

static bool prepare(struct sqlite_port *p, sqlite3_stmt **out, const char *format, const char *name)
{
    char *sql = sqlite3_mprintf(format, name);
    int code = sqlite3_prepare_v3(p->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK;
}

static void table_destroy(struct table *table)
{
    sqlite3_finalize(table->get);
    sqlite3_finalize(table->put);
    sqlite3_finalize(table->remove);
    free(table->name);
    free(table);
}

static bool create_and_prepare(struct sqlite_port *p, struct table *table)
{
    char *sql = sqlite3_mprintf(
        "CREATE TABLE IF NOT EXISTS \"%w\" (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID",
        table->name);
    bool is_made = sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_free(sql);
    if (is_made && prepare(p, &table->get, "SELECT item FROM \"%w\" WHERE key = ?1", table->name) &&
        prepare(p, &table->put, "INSERT OR REPLACE INTO \"%w\" VALUES (?1, ?2)", table->name) &&
        prepare(p, &table->remove, "DELETE FROM \"%w\" WHERE key = ?1", table->name))
        return true;
    /* An error in the SQL: something else has this name, or other columns. It stays so. */
    int code = sqlite3_errcode(p->db);
    if ((code & 0xFF) != SQLITE_ERROR)
        return failed(p, sqlite_status(code));
    (void)sl_fail(&p->failure, SL_FATAL, "DatabaseError",
                  "%s: %s is not a table that Sluice made: %s; name another one", p->path, table->name,
                  sqlite3_errmsg(p->db));
    return false;
}

/* The table with this name, created if needed; NULL when the database fails. */
static struct table *table_open(struct sqlite_port *p, struct sl_span name)
{
    struct table **end = &p->tables;
    for (; *end; end = &(*end)->next)
        if (sl_span_is(name, (*end)->name))
            return *end;
    struct table *table = calloc(1, sizeof(*table));
    if (!table || !(table->name = strndup(name.ptr, name.len)))
        sl_die("out of memory");
    if (create_and_prepare(p, table)) {
        *end = table;
        return table;
    }
    table_destroy(table);
    return NULL;
}

/* What was rolled back may have created a table, and what failed may have been one that is gone: it is
 * created again when it is used again. */
static void forget_tables(struct sqlite_port *p, bool also_kept)
{
    for (struct table **at = &p->tables, *table; (table = *at);) {
        if (table->is_kept && !also_kept) {
            at = &table->next;
            continue;
        }
        *at = table->next;
        table_destroy(table);
    }
}

static void keep_tables(struct sqlite_port *p)
{
    for (struct table *table = p->tables; table; table = table->next)
        table->is_kept = true;
}

/* ---- one operation ---- */

/* What the service checks of a whole item. */
static enum sl_status check_item(const struct sl_table_op *op, struct sl_error *error)
{
    if (sl_item_read(op->item, error) != SL_OK || sl_item_has_key(op->item, op->key, error) != SL_OK ||
        sl_item_check(op->item, error) != SL_OK)
        return SL_REJECT;
    return sl_table_check_bytes(op->item, error);
}

static enum sl_status check_op(struct sqlite_port *p, struct step *step, struct sl_error *error)
{
    const struct sl_table_op *op = step->op;
    if (op->table.ptr && !sl_table_is_name(op->table, 1))
        return sl_fail(error, SL_REJECT, "ValidationException", "\"%.*s\" is not a table name",
                       SL_ARG(op->table));
    sl_buffer_reset(&p->key);
    if (sl_table_key_text(op->key, &p->key, error) != SL_OK || sl_table_check_verb(op, error) != SL_OK)
        return SL_REJECT;
    step->key = sl_span(sl_arena_copy(p->scratch, sl_buffer_span(&p->key)), p->key.len);
    return op->verb == SL_TABLE_PUT ? check_item(op, error) : SL_OK;
}

static bool bind_text(struct sqlite_port *p, sqlite3_stmt *statement, int i, struct sl_span text)
{
    int code = sqlite3_bind_text64(statement, i, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
    return done_or_failed(p, code == SQLITE_OK);
}

/* A row's text that is not an item was not written here. It is not taken for an absent one. */
static bool take_item(struct sqlite_port *p, struct step *step, struct sl_span text)
{
    struct sl_error why = SL_NO_ERROR;
    step->item = sl_span(sl_arena_copy(p->scratch, text), text.len);
    if (sl_item_read(step->item, &why) == SL_OK)
        return true;
    (void)sl_fail(&p->failure, SL_FATAL, "DatabaseError", "%s: a row of table %s: %s", p->path,
                  step->table->name, why.text);
    return false;
}

/* Reads the item as it is; false when the database failed. */
static bool read_item(struct sqlite_port *p, struct step *step)
{
    sqlite3_stmt *get = step->table->get;
    if (!bind_text(p, get, 1, step->key))
        return false;
    int code = sqlite3_step(get);
    bool is_good = done_or_failed(p, code == SQLITE_ROW || code == SQLITE_DONE);
    if (code == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(get, 0);
        is_good = text ? take_item(p, step, sl_span(text, (size_t)sqlite3_column_bytes(get, 0)))
                       : failed(p, SL_RETRY);
    }
    sqlite3_reset(get);
    return is_good;
}

static bool step_to_end(struct sqlite_port *p, sqlite3_stmt *statement)
{
    bool is_done = done_or_failed(p, sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
    return is_done;
}

static bool write_item(struct sqlite_port *p, struct step *step, struct sl_span item)
{
    sqlite3_stmt *put = step->table->put;
    return bind_text(p, put, 1, step->key) && bind_text(p, put, 2, item) && step_to_end(p, put);
}

static bool remove_item(struct sqlite_port *p, struct step *step)
{
    sqlite3_stmt *remove = step->table->remove;
    return bind_text(p, remove, 1, step->key) && step_to_end(p, remove);
}

/* Refused because of what the table holds: that may be taken back, and the refusal with it. */
static bool refuse(struct step *step, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_refuse(step->result, arena, error);
    step->result->not_sent = false;
    return true;
}

static bool update_item(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_span item = step->item.ptr ? step->item : step->op->key;
    if (sl_item_update(step->op, item, p->scratch, &item, &error) == SL_OK &&
        sl_table_check_bytes(item, &error) == SL_OK)
        return write_item(p, step, item);
    return refuse(step, arena, &error);
}

/* Tests, then reads or writes; false when the database failed. */
static bool carry_out(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    const struct sl_table_op *op = step->op;
    struct sl_error error = SL_NO_ERROR;
    bool holds = true;
    if (sl_item_test(op, step->item, &holds, &error) != SL_OK)
        return refuse(step, arena, &error);
    if (!holds) {
        sl_table_condition_failed(step->result, arena, op, step->item);
        return true;
    }
    switch (op->verb) {
    case SL_TABLE_GET:
    case SL_TABLE_PEEK:
        if (step->item.ptr)
            step->result->item = sl_span(sl_arena_copy(arena, step->item), step->item.len);
        return true;
    case SL_TABLE_PUT:
        return write_item(p, step, op->item);
    case SL_TABLE_DELETE:
        return remove_item(p, step);
    case SL_TABLE_UPDATE:
        return update_item(p, step, arena);
    case SL_TABLE_CHECK:
        return true;
    }
    return true;
}

static bool run_step(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    step->table = table_open(p, step->op->table.ptr ? step->op->table : sl_span_str(p->own));
    return step->table && read_item(p, step) && carry_out(p, step, arena);
}

/* ---- units: one operation, or a whole group ---- */

struct unit {
    struct step *steps;
    struct sl_result *results;
    size_t n;
    struct sl_arena *arena;
};

static bool check_group(const struct sqlite_port *p, const struct unit *unit)
{
    struct sl_span *keys = sl_arena_alloc(p->scratch, unit->n * sizeof(*keys));
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_span table = unit->steps[i].op->table, key = unit->steps[i].key;
        const char *text = sl_arena_printf(p->scratch, "%.*s%.*s", SL_ARG(table), SL_ARG(key));
        keys[i] = sl_span(text, table.len + key.len);
    }
    return sl_table_group_check(&(struct sl_table_group){
        .keys = keys, .results = unit->results, .n = unit->n, .target = p->path, .arena = unit->arena});
}

/* Whether the unit can be carried out; if not, its results say why. */
static bool check_unit(struct sqlite_port *p, const struct unit *unit)
{
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (check_op(p, &unit->steps[i], &error) != SL_OK)
            sl_result_refuse(&unit->results[i], unit->arena, &error);
    }
    return unit->steps[0].op->group ? check_group(p, unit) : unit->results[0].status == SL_OK;
}

/* What was carried out of a group in which something was refused is taken back. Returns whether something
 * was. */
static bool cancel_rest(const struct sqlite_port *p, const struct unit *unit)
{
    bool any_refused = false;
    for (size_t i = 0; i < unit->n; i++)
        any_refused = any_refused || unit->results[i].status != SL_OK;
    for (size_t i = 0; i < unit->n && any_refused; i++)
        if (unit->results[i].status == SL_OK)
            sl_table_cancel(&unit->results[i], unit->arena, p->path, SL_REJECT);
    return any_refused;
}

/* A unit that is refused is rolled back alone. False when the database failed. */
static bool run_unit(struct sqlite_port *p, const struct unit *unit)
{
    sl_arena_reset(p->scratch);
    if (!check_unit(p, unit))
        return true;
    if (!run(p, "SAVEPOINT unit"))
        return false;
    for (size_t i = 0; i < unit->n; i++)
        if (!run_step(p, &unit->steps[i], unit->arena))
            return false;
    if (cancel_rest(p, unit)) {
        if (!run(p, "ROLLBACK TO unit"))
            return false;
        forget_tables(p, false);
    }
    return run(p, "RELEASE unit");
}

/* ---- apply: one transaction ---- */

static bool run_all(struct sqlite_port *p, struct step *steps, struct sl_result *results, size_t n,
                    struct sl_arena *arena)
{
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t group = steps[i].op->group;
        for (end = i + 1; group && end < n && steps[end].op->group == group;)
            end++;
        if (!run_unit(p, &(struct unit){&steps[i], &results[i], end - i, arena}))
            return false;
    }
    return true;
}

/* Nothing of this apply stays. A condition may have failed because of a write that is taken back, so that
 * answer does not count either; only what was refused before it was looked at is. */
static void take_back(struct sqlite_port *p, struct sl_result *results, size_t n, struct sl_arena *arena)
{
    struct sl_result failure;
    sl_result_fail(&failure, arena, p->failure.status, sl_arena_copy(arena, sl_span_str(p->failure.code)),
                   "%s", p->failure.text);
    for (size_t i = 0; i < n; i++)
        if (!results[i].not_sent)
            results[i] = failure;
    if (!sqlite3_get_autocommit(p->db)) /* SQLite ends the transaction by itself after some failures */
        (void)sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
    forget_tables(p, true);
}

static void sqlite_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                         struct sl_result *results, const struct sl_call *call)
{
    struct sqlite_port *p = (struct sqlite_port *)port;
    int64_t left = call->deadline_ms - p->clock->now_ms(p->clock);
    sqlite3_busy_timeout(p->db, left > BUSY_MS ? BUSY_MS : left > 0 ? (int)left : 0);
    p->failure = (struct sl_error)SL_NO_ERROR;
    struct step *steps = sl_arena_zalloc(call->arena, n * sizeof(*steps));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        steps[i] = (struct step){.op = &ops[i], .result = &results[i]};
    }
    if (run(p, "BEGIN IMMEDIATE") && run_all(p, steps, results, n, call->arena) && run(p, "COMMIT"))
        keep_tables(p);
    else
        take_back(p, results, n, call->arena);
}

/* ---- opening ---- */

static void sqlite_close(struct sl_table_port *port)
{
    struct sqlite_port *p = (struct sqlite_port *)port;
    if (!p)
        return;
    forget_tables(p, true);
    sqlite3_close(p->db);
    sl_buffer_clean_up(&p->key);
    sl_arena_destroy(p->scratch);
    free(p->path);
    free(p->own);
    free(p);
}

/* SQLite does not wait for other processes when it changes to the write-ahead log: without this loop, several
 * that open a new file at once would refuse each other. */
static bool use_wal(struct sqlite_port *p)
{
    int64_t end = p->clock->now_ms(p->clock) + BUSY_MS;
    while (sqlite3_exec(p->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) != SQLITE_OK) {
        if ((sqlite3_errcode(p->db) & 0xFF) != SQLITE_BUSY || p->clock->now_ms(p->clock) >= end)
            return failed(p, SL_FATAL);
        p->clock->sleep_ms(p->clock, 5);
    }
    return true;
}

static enum sl_status open_db(struct sqlite_port *p, struct sl_error *error)
{
    if (sl_disk_make_parent(p->path, error) != SL_OK)
        return SL_FATAL;
    int code = sqlite3_open_v2(p->path, &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!p->db)
        sl_die("out of memory");
    sqlite3_busy_timeout(p->db, BUSY_MS);
    /* A commit counts when it is on disk: FULL syncs the log at each. */
    if (done_or_failed(p, code == SQLITE_OK) && use_wal(p) && run(p, "PRAGMA synchronous=FULL") &&
        table_open(p, sl_span_str(p->own))) {
        keep_tables(p);
        return SL_OK;
    }
    return sl_fail(error, SL_FATAL, "DatabaseError", "cannot open %s", p->failure.text);
}

static enum sl_status parse(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                            struct sl_error *error)
{
    if (sl_url_parse(text, arena, url, error) != SL_OK)
        return SL_FATAL;
    struct sl_span table = sl_url_param(url, "table");
    if (sl_url_done(url, "table", error) != SL_OK)
        return SL_FATAL;
    if (url->rest.len == 0 || url->has_slashes || !sl_table_is_name(table, 1))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: write it as sqlite:file.db?table=name (A-Z a-z 0-9 _ - . in the name)",
                       SL_ARG(text));
    return SL_OK;
}

enum sl_status sl_sqlite_check(struct sl_span text, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(text, arena, &url, error);
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_sqlite_open(struct sl_sinks *sinks, struct sl_span text, struct sl_table_port **out,
                              struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(text, arena, &url, error);
    struct sqlite_port *p = calloc(1, sizeof(*p));
    if (!p)
        sl_die("out of memory");
    p->port = (struct sl_table_port){.size = sizeof(p->port),
                                     .max_item_bytes = SL_ITEM_BYTES,
                                     .apply = sqlite_apply,
                                     .close = sqlite_close};
    p->clock = sinks->clock;
    p->scratch = sl_arena_new(16 * 1024);
    if (status == SL_OK) {
        struct sl_span own = sl_url_param(&url, "table");
        p->path = strndup(url.rest.ptr, url.rest.len);
        p->own = strndup(own.ptr, own.len);
    }
    /* Two attributes of name and value, each byte six in JSON at worst. */
    sl_buffer_init(&p->key, 6 * (2 * SL_PARTITION_KEY_BYTES + 2 * 255) + 64);
    if (status == SL_OK)
        status = open_db(p, error);
    sl_arena_destroy(arena);
    if (status != SL_OK) {
        sqlite_close(&p->port);
        return status;
    }
    *out = &p->port;
    return SL_OK;
}
