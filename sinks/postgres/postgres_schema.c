/* Tables as the database has them. Nothing is created or changed here: a table that is missing, or other than
 * the target says, is refused with the statement that makes it. */
#include "base/json.h"
#include "base/json_walk.h"
#include "sinks/postgres.h"
#include "sinks/postgres/postgres_private.h"

const char *sl_postgres_quote(struct sl_span name, struct sl_arena *arena)
{
    char *quoted = sl_arena_alloc(arena, 2 * name.len + 3), *at = quoted;
    *at++ = '"';
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            *at++ = '"';
        *at++ = name.ptr[i];
    }
    *at++ = '"';
    *at = '\0';
    return quoted;
}

/* "schema.table" is two names; "table" is looked for in the search path. */
static const char *quote_table(struct sl_span name, struct sl_arena *arena)
{
    const char *dot = memchr(name.ptr, '.', name.len);
    if (!dot)
        return sl_postgres_quote(name, arena);
    size_t n = (size_t)(dot - name.ptr);
    return sl_arena_printf(arena, "%s.%s", sl_postgres_quote(sl_span(name.ptr, n), arena),
                           sl_postgres_quote(sl_span_from(name, n + 1), arena));
}

/* ---- what makes one ---- */

static const char *key_type(char type)
{
    return type == 'S' ? "text COLLATE \"C\"" : type == 'N' ? "numeric" : "bytea";
}

const char *sl_postgres_create(const char *name, const struct sl_table_key *keys, size_t n_keys,
                               const struct sl_postgres_column *columns, size_t n_columns,
                               struct sl_arena *arena)
{
    struct sl_buffer sql;
    sl_buffer_init_in(&sql, arena, 64 * 1024);
    sl_buffer_printf(&sql, "CREATE TABLE %s (", quote_table(sl_span_str(name), arena));
    for (size_t i = 0; i < n_keys; i++)
        sl_buffer_printf(&sql, "%s %s, ", sl_postgres_quote(keys[i].name, arena), key_type(keys[i].type));
    sl_buffer_add_str(&sql, "item jsonb NOT NULL, ");
    for (size_t i = 0; i < n_columns; i++)
        sl_buffer_printf(&sql, "%s %s, ", columns[i].quoted, sl_postgres_type_name(columns[i].type));
    sl_buffer_add_str(&sql, "PRIMARY KEY (");
    for (size_t i = 0; i < n_keys; i++)
        sl_buffer_printf(&sql, "%s%s", i ? ", " : "", sl_postgres_quote(keys[i].name, arena));
    sl_buffer_printf(&sql, "));%c", '\0');
    return sql.ptr;
}

const char *sl_postgres_statements(struct sl_sinks *sinks, struct sl_span url, struct sl_span table,
                                   const struct sl_table_key *keys, size_t n, bool has_tombstones,
                                   struct sl_arena *arena)
{
    struct sl_postgres_target target = {.own = NULL};
    struct sl_error ignored = SL_NO_ERROR;
    struct sl_buffer sql;
    if (!sl_span_starts(url, SL_LIT("postgres:")) ||
        sl_postgres_read_target(sinks, url, arena, &target, &ignored) != SL_OK)
        return NULL;
    bool is_own = !table.ptr;
    const char *name = is_own ? target.own : sl_arena_copy(arena, table);
    sl_buffer_init_in(&sql, arena, 64 * 1024);
    sl_buffer_add_str(
        &sql, sl_postgres_create(name, keys, n, target.columns, is_own ? target.n_columns : 0, arena));
    if (has_tombstones) {
        const char *quoted = quote_table(sl_span_str(name), arena);
        const char *live = quote_table(sl_span_str(sl_arena_printf(arena, "%s_live", name)), arena);
        sl_buffer_printf(&sql,
                         "\nCREATE INDEX ON %s (((item->'sluice_expires'->>'N')::numeric)) WHERE item ? "
                         "'sluice_deleted';\nCREATE VIEW %s AS SELECT * FROM %s WHERE NOT item ? "
                         "'sluice_deleted';",
                         quoted, live, quoted);
    }
    sl_buffer_add_char(&sql, '\0');
    return sql.ptr;
}

/* The attributes of a key's JSON. */
static size_t keys_of(struct sl_span key, struct sl_table_key out[2], struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(key), inner;
    struct sl_span name, value, tag, content;
    size_t n = 0;
    while (n < 2 && sl_json_walk_next(&walk, &name, &value)) {
        inner = sl_json_walk(value);
        if (sl_json_walk_next(&inner, &tag, &content) && tag.len == 1)
            out[n++] = (struct sl_table_key){sl_json_unescape(name, arena), *tag.ptr};
    }
    return n;
}

static enum sl_status no_table(struct sl_postgres *p, struct sl_span name, struct sl_span key,
                               struct sl_error *error)
{
    struct sl_table_key keys[2];
    size_t n = key.ptr ? keys_of(key, keys, p->scratch) : 0;
    bool is_own = sl_span_is(name, p->target.own);
    const char *own = sl_arena_copy(p->scratch, name);
    const char *create =
        n ? sl_postgres_create(own, keys, n, p->target.columns, is_own ? p->target.n_columns : 0, p->scratch)
          : "sluice check --tables prints how to make it";
    return sl_fail(error, SL_FATAL, "NoTable", "%s: there is no table %s; make it: %s", p->target.shown, own,
                   create);
}

/* ---- what there is ---- */

/* Of each column: name, type, place in the primary key (-1: none), whether its collation tells all texts
 * apart, whether it may be written. And whether a commit is on a disk when it is answered. */
static const char columns_sql[] =
    "SELECT a.attname, t.typname, coalesce(array_position(i.indkey::int2[], a.attnum), -1), "
    "coalesce(c.collname IN ('C', 'POSIX', 'ucs_basic'), true), a.attgenerated = '' AND a.attidentity <> "
    "'a', "
    "current_setting('synchronous_commit') "
    "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
    "LEFT JOIN pg_collation c ON c.oid = a.attcollation "
    "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
    "WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 3, a.attnum";

static bool is_true(const PGresult *rows, int row, int column)
{
    return *PQgetvalue(rows, row, column) == 't';
}

static enum sl_status unfit(struct sl_postgres *p, const struct sl_postgres_table *table, const char *why,
                            struct sl_span what, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "UnfitTable",
                   "%s: table %.*s: %s%.*s; compare it with what sluice check "
                   "--tables prints",
                   p->target.shown, SL_ARG(table->name), why, SL_ARG(what));
}

static enum sl_status take_key(struct sl_postgres *p, struct sl_postgres_table *table, const PGresult *rows,
                               int row, struct sl_error *error)
{
    struct sl_span name = sl_span_str(sl_arena_copy(p->known, sl_span_str(PQgetvalue(rows, row, 0))));
    const char *type = PQgetvalue(rows, row, 1);
    char tag = strcmp(type, "text") == 0      ? 'S'
               : strcmp(type, "numeric") == 0 ? 'N'
               : strcmp(type, "bytea") == 0   ? 'B'
                                              : '\0';
    if (!tag)
        return unfit(p, table, "its key is text, numeric or bytea, not so column ", name, error);
    if (!is_true(rows, row, 3))
        return unfit(p, table, "a key of text has COLLATE \"C\", not so column ", name, error);
    if (table->n_keys == 2)
        return unfit(p, table, "its primary key has more than two columns", SL_LIT(""), error);
    table->keys[table->n_keys++] = (struct sl_postgres_key){name, sl_postgres_quote(name, p->known), tag};
    return SL_OK;
}

static int find_column(const PGresult *rows, struct sl_span name)
{
    for (int i = 0; i < PQntuples(rows); i++)
        if (sl_span_is(name, PQgetvalue(rows, i, 0)))
            return i;
    return -1;
}

static enum sl_status check_column(struct sl_postgres *p, const struct sl_postgres_table *table,
                                   const PGresult *rows, struct sl_span name, const char *type,
                                   struct sl_error *error)
{
    int row = find_column(rows, name);
    const char *quoted = sl_postgres_quote(name, p->scratch);
    if (row < 0)
        return sl_fail(error, SL_FATAL, "UnfitTable",
                       "%s: table %.*s has no column %.*s; make it: ALTER TABLE %s ADD COLUMN %s %s;",
                       p->target.shown, SL_ARG(table->name), SL_ARG(name), table->quoted, quoted, type);
    if (strcmp(PQgetvalue(rows, row, 1), type[0] == 'b' && type[1] == 'i'   ? "int8"
                                         : type[0] == 'b' && type[1] == 'o' ? "bool"
                                                                            : type) != 0)
        return sl_fail(error, SL_FATAL, "UnfitTable", "%s: table %.*s: column %.*s is %s, not %s",
                       p->target.shown, SL_ARG(table->name), SL_ARG(name), PQgetvalue(rows, row, 1), type);
    if (!is_true(rows, row, 4))
        return unfit(p, table, "this column is generated, nobody can write it: ", name, error);
    return SL_OK;
}

/* What is answered there may be lost, and the record is not delivered again. */
static void warn_of_loss(struct sl_postgres *p, const PGresult *rows)
{
    if (p->has_warned || strcmp(PQgetvalue(rows, 0, 5), "off") != 0 || !p->sinks->log)
        return;
    p->has_warned = true;
    sl_log(p->sinks->log, SL_WARN,
           "%s: synchronous_commit is off: a crash of the server may lose what it has answered; "
           "ALTER ROLE \"%s\" SET synchronous_commit = on",
           p->target.shown, p->target.user);
}

bool sl_postgres_is_key(const struct sl_postgres_table *table, struct sl_span name)
{
    for (size_t i = 0; i < table->n_keys; i++)
        if (sl_span_eq(table->keys[i].name, name))
            return true;
    return false;
}

static enum sl_status take_columns(struct sl_postgres *p, struct sl_postgres_table *table,
                                   const PGresult *rows, struct sl_error *error)
{
    for (int i = 0; i < PQntuples(rows); i++)
        if (*PQgetvalue(rows, i, 2) != '-' && take_key(p, table, rows, i, error) != SL_OK)
            return SL_FATAL;
    warn_of_loss(p, rows);
    size_t n_declared = sl_span_is(table->name, p->target.own) ? p->target.n_columns : 0;
    table->columns = sl_arena_alloc(p->known, (n_declared + 1) * sizeof(*table->columns));
    if (table->n_keys == 0)
        return unfit(p, table, "it has no primary key", SL_LIT(""), error);
    if (check_column(p, table, rows, SL_LIT("item"), "jsonb", error) != SL_OK)
        return SL_FATAL;
    for (size_t i = 0; i < n_declared; i++) {
        const struct sl_postgres_column *column = &p->target.columns[i];
        if (check_column(p, table, rows, column->name, sl_postgres_type_name(column->type), error) != SL_OK)
            return SL_FATAL;
        if (!sl_postgres_is_key(table, column->name)) /* it is written as one */
            table->columns[table->n_columns++] = *column;
    }
    return SL_OK;
}

/* The list of a SELECT: the keys as text, the item, and the declared columns as sl_postgres_column_text makes
 * them. */
static void make_wanted(struct sl_postgres *p, struct sl_postgres_table *table)
{
    struct sl_buffer sql;
    sl_buffer_init_in(&sql, p->known, 64 * 1024);
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(
            &sql, table->keys[i].type == 'B' ? "translate(encode(%s, 'base64'), E'\\n', ''), " : "%s::text, ",
            table->keys[i].quoted);
    sl_buffer_add_str(&sql, "item::text");
    for (size_t i = 0; i < table->n_columns; i++) {
        sl_buffer_add_str(&sql, ", ");
        sl_postgres_column_read(&table->columns[i], &sql);
    }
    sl_buffer_add_char(&sql, '\0');
    table->wanted = sql.ptr;
}

enum sl_status sl_postgres_ask(struct sl_postgres *p, struct sl_postgres_statement *statement,
                               const struct sl_postgres_table *table, struct sl_error *error)
{
    statement->is_last = true;
    for (unsigned tries = 0;; tries++) {
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = sl_postgres_connect(p, &why);
        if (status == SL_OK)
            status = sl_postgres_run(p, statement, 1, &why);
        if (status == SL_OK && statement->end == SL_POSTGRES_DONE)
            return SL_OK;
        if (status == SL_OK) {
            enum sl_postgres_fault fault = sl_postgres_judge(p, statement->result, table, &why);
            status = why.status;
            if (fault == SL_POSTGRES_PASSES)
                sl_postgres_disconnect(p);
        }
        sl_postgres_drop(statement, 1);
        statement->end = SL_POSTGRES_NOT_RUN;
        if (status != SL_RETRY || tries == 3 || !sl_postgres_wait(p, tries)) {
            *error = why;
            return status;
        }
    }
}

enum sl_status sl_postgres_table(struct sl_postgres *p, struct sl_span name, struct sl_span key,
                                 struct sl_postgres_table **out, struct sl_error *error)
{
    for (*out = p->tables; *out; *out = (*out)->next)
        if (sl_span_eq((*out)->name, name))
            return SL_OK;
    struct sl_postgres_table *table = sl_arena_zalloc(p->known, sizeof(*table));
    table->name = sl_span(sl_arena_copy(p->known, name), name.len);
    table->quoted = quote_table(table->name, p->known);
    struct sl_postgres_param param = {table->quoted, 0};
    struct sl_postgres_statement ask = {.sql = columns_sql, .params = &param, .n_params = 1};
    enum sl_status status = sl_postgres_ask(p, &ask, table, error);
    if (status == SL_OK)
        status = PQntuples(ask.result) == 0 ? no_table(p, name, key, error)
                                            : take_columns(p, table, ask.result, error);
    sl_postgres_drop(&ask, 1);
    if (status != SL_OK)
        return status;
    make_wanted(p, table);
    table->next = p->tables;
    p->tables = *out = table;
    return SL_OK;
}
