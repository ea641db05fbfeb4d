/* Pages of a table in the order of its primary key: each begins after the last key of the one before, so no
 * snapshot is held in between. A segment is the keys whose hash leaves its number. */
#include "base/array.h"
#include "sinks/postgres/postgres_private.h"
#include "sinks/result.h"

#include <stdlib.h>

#define PAGE_BYTES ((size_t)1024 * 1024) /* of items, as DynamoDB's */
#define PAGE_ROWS  500                   /* that are asked for at once */

static void fail(struct sl_result *result, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_fail(result, arena, error->status, sl_arena_copy(arena, sl_span_str(error->code)), "%s",
                   error->text);
}

/* ---- the statement ---- */

/* "(a, b)" of the key's columns. */
static void add_keys(struct sl_buffer *sql, const struct sl_postgres_table *table, const char *before,
                     const char *between, const char *cast)
{
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(sql, "%s%s%s", i ? between : before, table->keys[i].quoted, cast);
}

static const char *page_sql(struct sl_postgres *p, const struct sl_postgres_table *table,
                            const struct sl_table_scan *asked, size_t rows)
{
    static const char *const casts[] = {['S'] = "text", ['N'] = "numeric", ['B'] = "bytea"};
    struct sl_buffer sql;
    sl_buffer_init_in(&sql, p->scratch, 64 * 1024);
    sl_buffer_printf(&sql, "SELECT %s FROM %s WHERE true", table->wanted, table->quoted);
    if (asked->after.ptr) {
        add_keys(&sql, table, " AND (", ", ", "");
        for (size_t i = 0; i < table->n_keys; i++)
            sl_buffer_printf(&sql, "%s$%zu::%s", i ? ", " : ") > (", i + 1,
                             casts[(unsigned char)table->keys[i].type]);
        sl_buffer_add_char(&sql, ')');
    }
    if (asked->of > 1) {
        add_keys(&sql, table, " AND mod(hashtextextended(", " || E'\\x1f' || ", "::text");
        sl_buffer_printf(&sql, ", 0), %u) IN (%d, %d)", asked->of, (int)asked->segment,
                         (int)asked->segment - (int)asked->of);
    }
    add_keys(&sql, table, " ORDER BY ", ", ", "");
    sl_buffer_printf(&sql, " LIMIT %zu%c", rows, '\0');
    return sql.ptr;
}

/* ---- a page ---- */

static void take_rows(struct sl_postgres *p, const struct sl_postgres_table *table,
                      const struct sl_table_scan *asked, const PGresult *rows, size_t limit,
                      struct sl_table_page *page, struct sl_arena *arena)
{
    size_t n = (size_t)PQntuples(rows), bytes = 0;
    page->items = sl_arena_alloc(arena, (n + 1) * sizeof(*page->items));
    size_t i = 0;
    for (; i < n && bytes < PAGE_BYTES; i++) {
        struct sl_error ignored = SL_NO_ERROR;
        struct sl_span item;
        /* Of what others wrote there is a key; whoever compares finds that the rest is missing. */
        if (sl_postgres_take_item(p, table, rows, (int)i, arena, &item, &ignored) != SL_OK)
            item = sl_postgres_take_key(table, rows, (int)i, arena);
        bytes += sl_item_bytes(item);
        page->items[page->n++] = sl_table_project(asked, item, arena);
    }
    if (i && (i < n || n == limit))
        page->next = sl_postgres_take_key(table, rows, (int)i - 1, arena);
}

static enum sl_status check_scan(struct sl_postgres *p, const struct sl_table_scan *asked,
                                 struct sl_error *error)
{
    sl_buffer_reset(&p->key);
    if ((asked->table.ptr && sl_table_check_name(asked->table, error) != SL_OK) ||
        sl_table_check_scan(asked, error) != SL_OK)
        return SL_REJECT;
    return asked->after.ptr ? sl_table_key_text(asked->after, &p->key, error) : SL_OK;
}

static enum sl_status read_page(struct sl_postgres *p, const struct sl_table_scan *asked,
                                struct sl_table_page *page, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_span name = asked->table.ptr ? asked->table : sl_span_str(p->target.own);
    struct sl_postgres_table *table;
    struct sl_postgres_param params[2];
    enum sl_status status = sl_postgres_table(p, name, asked->after, &table, error);
    if (status == SL_OK && asked->after.ptr)
        status = sl_postgres_key_params(p, table, asked->after, params, error);
    if (status != SL_OK)
        return status;
    size_t limit = asked->limit && asked->limit < PAGE_ROWS ? asked->limit : PAGE_ROWS;
    struct sl_postgres_statement ask = {.sql = page_sql(p, table, asked, limit),
                                        .params = params,
                                        .n_params = asked->after.ptr ? (int)table->n_keys : 0};
    status = sl_postgres_ask(p, &ask, table, error);
    if (status == SL_OK)
        take_rows(p, table, asked, ask.result, limit, page, arena);
    p->is_stale = p->is_stale || status == SL_FATAL;
    sl_postgres_drop(&ask, 1);
    return status;
}

void sl_postgres_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                      struct sl_table_page *pages, const struct sl_call *call)
{
    struct sl_postgres *p = (struct sl_postgres *)port;
    for (size_t i = 0; i < n; i++) {
        struct sl_error error = SL_NO_ERROR;
        sl_postgres_begin(p, call);
        pages[i] = (struct sl_table_page){.n = 0};
        if (check_scan(p, &scans[i], &error) != SL_OK)
            sl_result_refuse(&pages[i].result, call->arena, &error);
        else if (read_page(p, &scans[i], &pages[i], call->arena, &error) != SL_OK)
            fail(&pages[i].result, call->arena, &error);
    }
}

/* ---- facts ---- */

/* The planner's count; of a table that nobody has analyzed, the rows are counted. */
static const char facts_sql[] =
    "SELECT CASE WHEN c.reltuples > 10000 THEN c.reltuples::bigint ELSE (SELECT count(*) FROM %s) END, "
    "pg_table_size(c.oid) FROM pg_class c WHERE c.oid = to_regclass($1)";

static enum sl_status read_facts(struct sl_postgres *p, struct sl_span name, struct sl_table_facts *facts,
                                 struct sl_arena *arena, struct sl_error *error)
{
    struct sl_postgres_table *table;
    enum sl_status status = sl_postgres_table(p, name, (struct sl_span){NULL, 0}, &table, error);
    if (status != SL_OK)
        return status;
    struct sl_postgres_param param = {table->quoted, 0};
    struct sl_postgres_statement ask = {
        .sql = sl_arena_printf(p->scratch, facts_sql, table->quoted), .params = &param, .n_params = 1};
    status = sl_postgres_ask(p, &ask, table, error);
    if (status == SL_OK && PQntuples(ask.result) == 1) {
        facts->items = strtoull(PQgetvalue(ask.result, 0, 0), NULL, 10);
        facts->bytes = strtoull(PQgetvalue(ask.result, 0, 1), NULL, 10);
    }
    for (size_t i = 0; status == SL_OK && i < table->n_keys; i++)
        facts->keys[facts->n_keys++] = (struct sl_table_key){
            sl_span(sl_arena_copy(arena, table->keys[i].name), table->keys[i].name.len), table->keys[i].type};
    sl_postgres_drop(&ask, 1);
    return status;
}

void sl_postgres_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                          const struct sl_call *call)
{
    struct sl_postgres *p = (struct sl_postgres *)port;
    struct sl_error error = SL_NO_ERROR;
    sl_postgres_begin(p, call);
    *facts = (struct sl_table_facts){.is_on_demand = true};
    if (table.ptr && sl_table_check_name(table, &error) != SL_OK) {
        sl_result_refuse(&facts->result, call->arena, &error);
        return;
    }
    if (read_facts(p, table.ptr ? table : sl_span_str(p->target.own), facts, call->arena, &error) == SL_OK)
        return;
    *facts = (struct sl_table_facts){.items = 0};
    fail(&facts->result, call->arena, &error);
}
