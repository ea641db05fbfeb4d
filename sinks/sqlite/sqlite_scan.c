/* Pages of a table: its rows in the order of their keys' texts. A segment is the keys whose hash leaves its
 * number. */
#include "base/hash.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "sinks/result.h"
#include "sinks/sqlite/sqlite_private.h"

#define PAGE_BYTES ((size_t)1024 * 1024) /* of items, as DynamoDB's */

struct page {
    struct sl_sqlite *p;
    const struct sl_table_scan *asked;
    struct sl_table_page *out;
    struct sl_buffer items; /* spans */
    size_t bytes;
    struct sl_arena *arena; /* the call's */
};

static struct sl_span text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return sl_span(text ? text : "", (size_t)sqlite3_column_bytes(row, column));
}

/* ---- items ---- */

static bool is_full(const struct page *page)
{
    size_t n = page->items.len / sizeof(struct sl_span);
    return page->bytes >= PAGE_BYTES || (page->asked->limit && n >= page->asked->limit);
}

/* False when the database failed. */
static bool take_row(struct page *page, const struct sl_sqlite_table *table)
{
    struct sl_span key = text_of(table->scan, 0), item;
    const struct sl_sqlite_row row = {table, table->scan, 1};
    if (page->asked->of > 1 && sl_hash(key) % page->asked->of != page->asked->segment)
        return true;
    if (!sl_sqlite_take_item(page->p, &row, page->arena, &item))
        return false;
    page->bytes += sl_item_bytes(item);
    item = sl_table_project(page->asked, item, page->arena);
    sl_buffer_add(&page->items, &item, sizeof(item));
    if (is_full(page))
        page->out->next = sl_span(sl_arena_copy(page->arena, key), key.len);
    return true;
}

/* ---- pages ---- */

static bool run_page(struct page *page, struct sl_span after)
{
    struct sl_sqlite *p = page->p;
    struct sl_span name = page->asked->table.ptr ? page->asked->table : sl_span_str(p->own);
    struct sl_sqlite_table *table = sl_sqlite_table(p, name);
    if (!table || !sl_sqlite_bind(p, table->scan, 1, after))
        return false;
    int code = SQLITE_ROW;
    bool is_good = true;
    while (is_good && !page->out->next.ptr && (code = sqlite3_step(table->scan)) == SQLITE_ROW)
        is_good = take_row(page, table);
    is_good = is_good && sl_sqlite_done_or_failed(p, code == SQLITE_ROW || code == SQLITE_DONE);
    sqlite3_reset(table->scan);
    if (is_good)
        sl_sqlite_keep_tables(p);
    else
        sl_sqlite_forget_tables(p, true);
    return is_good;
}

static enum sl_status check(struct sl_sqlite *p, const struct sl_table_scan *asked, struct sl_error *error)
{
    if (asked->table.ptr && !sl_table_is_name(asked->table, 1))
        return sl_fail(error, SL_REJECT, "ValidationException", "\"%.*s\" is not a table name",
                       SL_ARG(asked->table));
    sl_buffer_reset(&p->key);
    if (sl_table_check_scan(asked, error) != SL_OK)
        return SL_REJECT;
    return asked->after.ptr ? sl_table_key_text(asked->after, &p->key, error) : SL_OK;
}

static void fail(const struct sl_sqlite *p, struct sl_result *result, struct sl_arena *arena)
{
    sl_result_fail(result, arena, p->failure.status, sl_arena_copy(arena, sl_span_str(p->failure.code)), "%s",
                   p->failure.text);
}

void sl_sqlite_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                    struct sl_table_page *pages, const struct sl_call *call)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    for (size_t i = 0; i < n; i++) {
        struct page page = {.p = p, .asked = &scans[i], .out = &pages[i], .arena = call->arena};
        struct sl_error error = SL_NO_ERROR;
        sl_sqlite_begin(p, call);
        pages[i] = (struct sl_table_page){.result = {.status = SL_OK}};
        sl_buffer_init_in(&page.items, call->arena, SIZE_MAX);
        if (check(p, &scans[i], &error) != SL_OK) {
            sl_result_refuse(&pages[i].result, call->arena, &error);
        } else if (run_page(&page, sl_span(p->key.ptr ? p->key.ptr : "", p->key.len))) {
            pages[i].items = (struct sl_span *)(void *)page.items.ptr;
            pages[i].n = page.items.len / sizeof(struct sl_span);
        } else {
            pages[i] = (struct sl_table_page){.n = 0};
            fail(p, &pages[i].result, call->arena);
        }
    }
}

/* ---- facts ---- */

/* A key's text names its attributes in order. */
static void take_keys(struct sl_table_facts *facts, struct sl_span key, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(sl_span(sl_arena_copy(arena, key), key.len));
    struct sl_span name, value, tag, content;
    while (facts->n_keys < 2 && sl_json_walk_next(&walk, &name, &value)) {
        struct sl_json_walk inner = sl_json_walk(value);
        if (!sl_json_walk_next(&inner, &tag, &content) || tag.len != 1)
            return;
        facts->keys[facts->n_keys++] = (struct sl_table_key){sl_json_unescape(name, arena), *tag.ptr};
    }
}

/* All rows are read: a table on this machine. */
static bool read_facts(struct sl_sqlite *p, struct sl_span name, struct sl_table_facts *facts,
                       struct sl_arena *arena)
{
    struct sl_sqlite_table *table = sl_sqlite_table(p, name);
    if (!table || !sl_sqlite_bind(p, table->scan, 1, SL_LIT("")))
        return false;
    int code;
    bool is_good = true;
    while (is_good && (code = sqlite3_step(table->scan)) != SQLITE_DONE) {
        const struct sl_sqlite_row row = {table, table->scan, 1};
        struct sl_span item;
        sl_arena_reset(p->scratch);
        is_good = sl_sqlite_done_or_failed(p, code == SQLITE_ROW) &&
                  sl_sqlite_take_item(p, &row, p->scratch, &item);
        if (is_good && facts->items++ == 0)
            take_keys(facts, text_of(table->scan, 0), arena);
        facts->bytes += is_good ? sl_item_bytes(item) : 0;
    }
    sqlite3_reset(table->scan);
    return is_good;
}

void sl_sqlite_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                        const struct sl_call *call)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    struct sl_error error = SL_NO_ERROR;
    sl_sqlite_begin(p, call);
    *facts = (struct sl_table_facts){.is_on_demand = true};
    if (table.ptr && !sl_table_is_name(table, 1)) {
        (void)sl_fail(&error, SL_REJECT, "ValidationException", "\"%.*s\" is not a table name",
                      SL_ARG(table));
        sl_result_refuse(&facts->result, call->arena, &error);
    } else if (read_facts(p, table.ptr ? table : sl_span_str(p->own), facts, call->arena)) {
        sl_sqlite_keep_tables(p);
    } else {
        sl_sqlite_forget_tables(p, true);
        *facts = (struct sl_table_facts){.items = 0};
        fail(p, &facts->result, call->arena);
    }
}
