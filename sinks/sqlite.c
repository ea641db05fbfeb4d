#include "sinks/sqlite.h"

#include "sinks/file.h"
#include "sinks/item.h"
#include "sinks/result.h"
#include "sinks/url.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* TransactWriteItems takes 100 actions. */
#define GROUP_OPS 100
/* Longest that another writer is waited for, however late the deadline. */
#define BUSY_MS 10000

struct table {
    struct table *next;
    char *name;
    sqlite3_stmt *get, *put, *remove;
};

struct sqlite_port {
    struct sl_table_port port;
    struct sl_clock *clock;
    sqlite3 *db;
    char *path;
    struct table *tables; /* the target's own one first, then side tables as they are met */
    struct sl_buffer key;
};

/* One operation on its way. */
struct step {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct table *table;
    json_t *item; /* as it is in the table, NULL when absent */
    const char *text;
};

static enum sl_status sqlite_status(int code)
{
    switch (code & 0xFF) {
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CORRUPT:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
    case SQLITE_NOTADB:
        return SL_FATAL;
    case SQLITE_TOOBIG:
        return SL_REJECT;
    default:
        return SL_RETRY;
    }
}

static void refuse(struct sl_result *result, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_fail(result, arena, error->status, "ValidationException", "%s", error->text);
    result->not_sent = true;
}

static void db_failed(struct sqlite_port *p, struct sl_result *result, struct sl_arena *arena)
{
    int code = sqlite3_extended_errcode(p->db);
    const char *name = (code & 0xFF) == SQLITE_FULL   ? "NoSpace"
                       : (code & 0xFF) == SQLITE_BUSY ? "Busy"
                                                      : "DatabaseError";
    sl_result_fail(result, arena, sqlite_status(code), name, "%s: %s", p->path, sqlite3_errmsg(p->db));
}

static bool run(struct sqlite_port *p, const char *sql)
{
    return sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* ---- tables ---- */

static bool is_table_name(struct sl_span name)
{
    if (name.len < 1 || name.len > 255)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-' || c == '.'))
            return false;
    }
    return true;
}

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

/* The table by name, made when it is new; NULL when the database refuses. */
static struct table *table_open(struct sqlite_port *p, struct sl_span name)
{
    struct table **end = &p->tables;
    for (; *end; end = &(*end)->next)
        if (sl_span_is(name, (*end)->name))
            return *end;
    struct table *table = calloc(1, sizeof(*table));
    if (!table || !(table->name = strndup(name.ptr, name.len)))
        sl_die("out of memory");
    char *sql = sqlite3_mprintf(
        "CREATE TABLE IF NOT EXISTS \"%w\" (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID",
        table->name);
    bool made = run(p, sql);
    sqlite3_free(sql);
    if (made && prepare(p, &table->get, "SELECT item FROM \"%w\" WHERE key = ?1", table->name) &&
        prepare(p, &table->put, "INSERT OR REPLACE INTO \"%w\" VALUES (?1, ?2)", table->name) &&
        prepare(p, &table->remove, "DELETE FROM \"%w\" WHERE key = ?1", table->name)) {
        *end = table;
        return table;
    }
    table_destroy(table);
    return NULL;
}

/* ---- one operation ---- */

/* What is wrong with an operation before the table is looked at. Leaves the key's text in p->key. */
static enum sl_status check_op(struct sqlite_port *p, const struct sl_table_op *op, struct sl_error *error)
{
    if (op->table.ptr && !is_table_name(op->table))
        return sl_fail(error, SL_REJECT, "ValidationException", "bad table name %.*s", SL_ARG(op->table));
    sl_buffer_reset(&p->key);
    json_t *key = sl_item_parse(op->key, error);
    enum sl_status status = key ? sl_item_key_text(key, &p->key, error) : SL_REJECT;
    json_t *item = status == SL_OK && op->verb == SL_TABLE_PUT ? sl_item_parse(op->item, error) : NULL;
    if (status == SL_OK && op->verb == SL_TABLE_PUT) {
        const char *name;
        json_t *value;
        status = item ? SL_OK : SL_REJECT;
        json_object_foreach(key, name, value) if (item && !json_equal(json_object_get(item, name), value))
            status =
                sl_fail(error, SL_REJECT, "ValidationException", "the item lacks its key attribute %s", name);
        if (item && status == SL_OK)
            status = sl_item_check(item, error);
        if (item && sl_item_bytes(item) > SL_ITEM_BYTES)
            status =
                sl_fail(error, SL_REJECT, "ValidationException",
                        "the item has %zu bytes; an item may have %d", sl_item_bytes(item), SL_ITEM_BYTES);
    }
    json_decref(item);
    json_decref(key);
    return status;
}

static bool bind_key(struct sqlite_port *p, sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    return sqlite3_bind_text64(statement, 1, p->key.ptr, p->key.len, SQLITE_TRANSIENT, SQLITE_UTF8) ==
           SQLITE_OK;
}

/* Reads the item as it is; false when the database failed. */
static bool read_item(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    sqlite3_stmt *get = step->table->get;
    if (!bind_key(p, get))
        return false;
    int code = sqlite3_step(get);
    if (code == SQLITE_ROW) {
        struct sl_span text =
            sl_span((const char *)sqlite3_column_text(get, 0), (size_t)sqlite3_column_bytes(get, 0));
        step->text = sl_arena_copy(arena, text);
        step->item = sl_item_parse(text, NULL);
    }
    sqlite3_reset(get);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool write_item(struct sqlite_port *p, struct step *step, struct sl_span item)
{
    sqlite3_stmt *put = step->table->put;
    if (!bind_key(p, put) ||
        sqlite3_bind_text64(put, 2, item.ptr, item.len, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK)
        return false;
    int code = sqlite3_step(put);
    sqlite3_reset(put);
    return code == SQLITE_DONE;
}

static bool remove_item(struct sqlite_port *p, struct step *step)
{
    if (!bind_key(p, step->table->remove))
        return false;
    int code = sqlite3_step(step->table->remove);
    sqlite3_reset(step->table->remove);
    return code == SQLITE_DONE;
}

static bool update_item(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    struct sl_error error = {0};
    json_t *item = step->item ? json_incref(step->item) : sl_item_parse(step->op->key, &error);
    enum sl_status status = sl_item_update(item, step->op->sets, step->op->n_sets, &error);
    if (status == SL_OK && sl_item_bytes(item) > SL_ITEM_BYTES)
        status = sl_fail(&error, SL_REJECT, "ValidationException", "the item would have more than %d bytes",
                         SL_ITEM_BYTES);
    bool done = true;
    if (status != SL_OK) {
        refuse(step->result, arena, &error);
    } else {
        char *text = json_dumps(item, JSON_COMPACT);
        done = text && write_item(p, step, sl_span_str(text));
        free(text);
    }
    json_decref(item);
    return done;
}

static void condition_failed(struct step *step)
{
    *step->result = (struct sl_result){
        .status = SL_REJECT,
        .condition_failed = true,
        .code = step->op->group ? "ConditionalCheckFailed" : "ConditionalCheckFailedException",
        .text = "the condition does not hold",
        .item = step->op->want_item ? sl_span_str(step->text) : sl_span(NULL, 0),
    };
}

/* Tests, then writes; false when the database failed, which then stands in the result. */
static bool carry_out(struct sqlite_port *p, struct step *step, struct sl_arena *arena)
{
    const struct sl_table_op *op = step->op;
    struct sl_error error = {0};
    bool holds = true;
    if (sl_item_test(op, step->item, &holds, &error) != SL_OK) {
        refuse(step->result, arena, &error);
        return true;
    }
    if (!holds) {
        condition_failed(step);
        return true;
    }
    switch (op->verb) {
    case SL_TABLE_GET:
        step->result->item = sl_span_str(step->text);
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

static void run_op(struct sqlite_port *p, const struct sl_table_op *op, struct sl_result *result,
                   struct sl_arena *arena)
{
    struct sl_error error = {0};
    struct step step = {.op = op, .result = result};
    *result = (struct sl_result){0};
    if (check_op(p, op, &error) != SL_OK) {
        refuse(result, arena, &error);
        return;
    }
    step.table = op->table.ptr ? table_open(p, op->table) : p->tables;
    if (!step.table || !read_item(p, &step, arena) || !carry_out(p, &step, arena))
        db_failed(p, result, arena);
    json_decref(step.item);
}

/* ---- groups ---- */

static const char *group_problem(const struct sl_table_op *ops, size_t n, struct sl_arena *arena)
{
    if (n > GROUP_OPS)
        return "a transaction has 100 operations at most";
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            if (sl_span_eq(ops[i].key, ops[k].key) && sl_span_eq(ops[i].table, ops[k].table))
                return "a transaction holds one operation for each item";
        for (size_t k = 0; k < ops[i].n_sets; k++)
            if (ops[i].sets[k].verb == SL_SET_MAX || ops[i].sets[k].verb == SL_SET_MIN)
                return sl_arena_printf(arena, "the running value of %.*s cannot be part of a transaction",
                                       SL_ARG(ops[i].sets[k].name));
    }
    return NULL;
}

static void run_group(struct sqlite_port *p, const struct sl_table_op *ops, size_t n,
                      struct sl_result *results, struct sl_arena *arena)
{
    const char *problem = group_problem(ops, n, arena);
    bool refused = problem != NULL;
    for (size_t i = 0; i < n; i++) {
        if (problem)
            sl_result_fail(&results[i], arena, SL_REJECT, "ValidationException", "%s", problem);
        else
            run_op(p, &ops[i], &results[i], arena);
        refused = refused || results[i].status != SL_OK;
    }
    if (!refused)
        return;
    enum sl_status others = SL_REJECT;
    for (size_t i = 0; i < n; i++)
        if (results[i].status == SL_RETRY || results[i].status == SL_FATAL)
            others = results[i].status;
    for (size_t i = 0; i < n; i++)
        if (results[i].status == SL_OK)
            sl_result_fail(&results[i], arena, others, "TransactionCanceled",
                           "another operation of the transaction was refused");
}

/* One operation, or a whole group: its failure is rolled back alone. */
static void run_unit(struct sqlite_port *p, const struct sl_table_op *ops, size_t n,
                     struct sl_result *results, struct sl_arena *arena)
{
    if (!run(p, "SAVEPOINT unit")) {
        for (size_t i = 0; i < n; i++)
            db_failed(p, &results[i], arena);
        return;
    }
    if (ops[0].group)
        run_group(p, ops, n, results, arena);
    else
        run_op(p, ops, results, arena);
    bool failed = results[0].status != SL_OK;
    if ((failed && !run(p, "ROLLBACK TO unit")) || !run(p, "RELEASE unit"))
        for (size_t i = 0; i < n; i++)
            db_failed(p, &results[i], arena);
}

static void fail_all(struct sqlite_port *p, size_t n, struct sl_result *results, struct sl_arena *arena,
                     bool only_ok)
{
    struct sl_result failure;
    db_failed(p, &failure, arena);
    for (size_t i = 0; i < n; i++)
        if (!only_ok || results[i].status == SL_OK)
            results[i] = failure;
}

static void sqlite_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                         struct sl_result *results, const struct sl_call *call)
{
    struct sqlite_port *p = (struct sqlite_port *)port;
    int64_t left = call->deadline_ms - p->clock->now_ms(p->clock);
    sqlite3_busy_timeout(p->db, left > BUSY_MS ? BUSY_MS : left > 0 ? (int)left : 0);
    if (!run(p, "BEGIN IMMEDIATE")) {
        fail_all(p, n, results, call->arena, false);
        return;
    }
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; ops[i].group && end < n && ops[end].group == ops[i].group;)
            end++;
        run_unit(p, ops + i, end - i, results + i, call->arena);
    }
    if (!run(p, "COMMIT")) {
        fail_all(p, n, results, call->arena, true);
        run(p, "ROLLBACK");
    }
}

/* ---- opening ---- */

static void sqlite_close(struct sl_table_port *port)
{
    struct sqlite_port *p = (struct sqlite_port *)port;
    if (!p)
        return;
    for (struct table *t = p->tables, *next; t; t = next) {
        next = t->next;
        table_destroy(t);
    }
    sqlite3_close(p->db);
    sl_buffer_clean_up(&p->key);
    free(p->path);
    free(p);
}

/* Changing to the write-ahead log is the one thing for which SQLite's own waiting does not work: several
 * processes that open a new file at once would refuse each other. */
static bool use_wal(struct sqlite_port *p)
{
    int64_t end = p->clock->now_ms(p->clock) + BUSY_MS;
    while (!run(p, "PRAGMA journal_mode=WAL")) {
        if ((sqlite3_errcode(p->db) & 0xFF) != SQLITE_BUSY || p->clock->now_ms(p->clock) >= end)
            return false;
        p->clock->sleep_ms(p->clock, 5);
    }
    return true;
}

static enum sl_status open_db(struct sqlite_port *p, struct sl_span table, struct sl_error *error)
{
    char *slash = strrchr(p->path, '/');
    if (slash && slash != p->path) {
        *slash = '\0';
        enum sl_status status = sl_file_make_folder(p->path, error);
        *slash = '/';
        if (status != SL_OK)
            return status;
    }
    int code = sqlite3_open_v2(p->path, &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (code == SQLITE_OK)
        sqlite3_busy_timeout(p->db, BUSY_MS);
    /* A commit is on disk before it counts: FULL syncs the log at every one. */
    if (code != SQLITE_OK || !use_wal(p) || !run(p, "PRAGMA synchronous=FULL") || !table_open(p, table))
        return sl_fail(error, SL_FATAL, "DatabaseError", "cannot open %s: %s", p->path,
                       p->db ? sqlite3_errmsg(p->db) : "out of memory");
    return SL_OK;
}

static enum sl_status parse(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                            struct sl_error *error)
{
    if (sl_url_parse(text, arena, url, error) != SL_OK)
        return SL_FATAL;
    struct sl_span table = sl_url_param(url, "table");
    if (sl_url_done(url, "table", error) != SL_OK)
        return SL_FATAL;
    if (url->rest.len == 0 || url->has_slashes || !is_table_name(table))
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
    p->path = strndup(url.rest.ptr ? url.rest.ptr : "", url.rest.len);
    /* Two attributes of name and value, each byte six in JSON at worst. */
    sl_buffer_init(&p->key, 6 * (2 * SL_PARTITION_KEY_BYTES + 2 * 255) + 64);
    if (status == SL_OK)
        status = open_db(p, sl_url_param(&url, "table"), error);
    sl_arena_destroy(arena);
    if (status != SL_OK) {
        sqlite_close(&p->port);
        return status;
    }
    *out = &p->port;
    return SL_OK;
}
