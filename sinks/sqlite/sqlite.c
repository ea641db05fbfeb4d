/* A table in SQLite: opens the file. */
#include "sinks/sqlite.h"

#include "base/disk.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/url.h"
#include "sinks/result.h"
#include "sinks/sqlite/sqlite_private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- an apply is one SQLite transaction, with a savepoint for each group ---- */

/* One operation on its way. */
struct step {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span key; /* its text */
    struct sl_sqlite_table *table;
    struct sl_span item; /* as it is in the table, absent when there is none */
};

/* ---- one operation ---- */

static struct sl_span table_of(const struct sl_sqlite *p, const struct sl_table_op *op)
{
    return op->table.ptr ? op->table : sl_span_str(p->own);
}

static enum sl_status check_op(struct sl_sqlite *p, struct step *step, struct sl_error *error)
{
    enum sl_status status = sl_table_check_op(step->op, &p->key, error);
    step->key = sl_span(sl_arena_copy(p->scratch, sl_buffer_span(&p->key)), p->key.len);
    return status;
}

/* Reads the item as it is; false when the database failed. */
static bool read_item(struct sl_sqlite *p, struct step *step)
{
    sqlite3_stmt *get = step->table->get;
    if (!sl_sqlite_bind(p, get, 1, step->key))
        return false;
    int code = sqlite3_step(get);
    bool is_good = sl_sqlite_done_or_failed(p, code == SQLITE_ROW || code == SQLITE_DONE);
    if (code == SQLITE_ROW) {
        const struct sl_sqlite_row row = {step->table, get, 0};
        is_good = sl_sqlite_take_item(p, &row, p->scratch, &step->item);
    }
    sqlite3_reset(get);
    return is_good;
}

static bool step_to_end(struct sl_sqlite *p, sqlite3_stmt *statement)
{
    bool is_done = sl_sqlite_done_or_failed(p, sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
    return is_done;
}

static bool write_item(struct sl_sqlite *p, struct step *step, struct sl_span item)
{
    sqlite3_stmt *put = step->table->put;
    return sl_sqlite_bind(p, put, 1, step->key) && sl_sqlite_bind(p, put, 2, item) && step_to_end(p, put);
}

static bool remove_item(struct sl_sqlite *p, struct step *step)
{
    sqlite3_stmt *remove = step->table->remove;
    return sl_sqlite_bind(p, remove, 1, step->key) && step_to_end(p, remove);
}

/* Refused because of what the table holds: that may be taken back, and the refusal with it. */
static bool refuse(struct step *step, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_refuse(step->result, arena, error);
    step->result->not_sent = false;
    return true;
}

static bool update_item(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_span item = step->item.ptr ? step->item : step->op->key;
    if (sl_item_update(step->op, item, p->scratch, &item, &error) == SL_OK &&
        sl_table_check_bytes(item, &error) == SL_OK)
        return write_item(p, step, item);
    return refuse(step, arena, &error);
}

/* Tests, then reads or writes; false when the database failed. */
static bool carry_out(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
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

static bool run_step(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
{
    step->table = sl_sqlite_table(p, table_of(p, step->op));
    return step->table && read_item(p, step) && carry_out(p, step, arena);
}

/* ---- units: one operation, or a whole group ---- */

struct unit {
    struct step *steps;
    struct sl_result *results;
    size_t n;
    struct sl_arena *arena;
};

static bool check_group(const struct sl_sqlite *p, const struct unit *unit)
{
    struct sl_span *keys = sl_arena_alloc(p->scratch, unit->n * sizeof(*keys));
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_span table = table_of(p, unit->steps[i].op), key = unit->steps[i].key;
        const char *text = sl_arena_printf(p->scratch, "%.*s%.*s", SL_ARG(table), SL_ARG(key));
        keys[i] = sl_span(text, table.len + key.len);
    }
    return sl_table_group_check(&(struct sl_table_group){
        .keys = keys, .results = unit->results, .n = unit->n, .target = p->path, .arena = unit->arena});
}

/* Whether the unit can be carried out; if not, its results say why. */
static bool check_unit(struct sl_sqlite *p, const struct unit *unit)
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
static bool cancel_rest(const struct sl_sqlite *p, const struct unit *unit)
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
static bool run_unit(struct sl_sqlite *p, const struct unit *unit)
{
    sl_arena_reset(p->scratch);
    if (!check_unit(p, unit))
        return true;
    if (!sl_sqlite_run(p, "SAVEPOINT unit"))
        return false;
    for (size_t i = 0; i < unit->n; i++)
        if (!run_step(p, &unit->steps[i], unit->arena))
            return false;
    if (cancel_rest(p, unit)) {
        if (!sl_sqlite_run(p, "ROLLBACK TO unit"))
            return false;
        sl_sqlite_forget_tables(p, false);
    }
    return sl_sqlite_run(p, "RELEASE unit");
}

/* ---- apply: one transaction ---- */

static bool run_all(struct sl_sqlite *p, struct step *steps, struct sl_result *results, size_t n,
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
static void take_back(struct sl_sqlite *p, struct sl_result *results, size_t n, struct sl_arena *arena)
{
    struct sl_result failure;
    sl_result_fail(&failure, arena, p->failure.status, sl_arena_copy(arena, sl_span_str(p->failure.code)),
                   "%s", p->failure.text);
    for (size_t i = 0; i < n; i++)
        if (!results[i].not_sent)
            results[i] = failure;
    if (!sqlite3_get_autocommit(p->db)) /* SQLite ends the transaction by itself after some failures */
        (void)sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
    sl_sqlite_forget_tables(p, true);
}

static void sqlite_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                         struct sl_result *results, const struct sl_call *call)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    sl_sqlite_begin(p, call);
    struct step *steps = sl_arena_zalloc(call->arena, n * sizeof(*steps));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        steps[i] = (struct step){.op = &ops[i], .result = &results[i]};
    }
    if (sl_sqlite_run(p, "BEGIN IMMEDIATE") && run_all(p, steps, results, n, call->arena) &&
        sl_sqlite_run(p, "COMMIT"))
        sl_sqlite_keep_tables(p);
    else
        take_back(p, results, n, call->arena);
}

/* Pages of a table: its rows in the order of their keys' texts. A segment is the keys whose hash leaves its
 * number. */

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
    sl_buffer_reset(&p->key);
    if ((asked->table.ptr && sl_table_check_name(asked->table, error) != SL_OK) ||
        sl_table_check_scan(asked, error) != SL_OK)
        return SL_REJECT;
    return asked->after.ptr ? sl_table_key_text(asked->after, &p->key, error) : SL_OK;
}

static void fail(const struct sl_sqlite *p, struct sl_result *result, struct sl_arena *arena)
{
    sl_result_fail(result, arena, p->failure.status, sl_arena_copy(arena, sl_span_str(p->failure.code)), "%s",
                   p->failure.text);
}

static void sqlite_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
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

static void sqlite_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                            const struct sl_call *call)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    struct sl_error error = SL_NO_ERROR;
    sl_sqlite_begin(p, call);
    *facts = (struct sl_table_facts){.is_on_demand = true};
    if (table.ptr && sl_table_check_name(table, &error) != SL_OK) {
        sl_result_refuse(&facts->result, call->arena, &error);
    } else if (read_facts(p, table.ptr ? table : sl_span_str(p->own), facts, call->arena)) {
        sl_sqlite_keep_tables(p);
    } else {
        sl_sqlite_forget_tables(p, true);
        *facts = (struct sl_table_facts){.items = 0};
        fail(p, &facts->result, call->arena);
    }
}

/* ---- the port ---- */

static void sqlite_close(struct sl_table_port *port)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    if (!p)
        return;
    sl_sqlite_forget_tables(p, true);
    sqlite3_close(p->db);
    sl_buffer_clean_up(&p->key);
    sl_arena_destroy(p->scratch);
    free(p->path);
    free(p->own);
    free(p);
}

/* SQLite does not wait for other processes when it changes to the write-ahead log: without this loop, several
 * that open a new file at once would refuse each other. */
static bool use_wal(struct sl_sqlite *p)
{
    int64_t end = p->clock->now_ms(p->clock) + SL_SQLITE_BUSY_MS;
    while (sqlite3_exec(p->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) != SQLITE_OK) {
        if ((sqlite3_errcode(p->db) & 0xFF) != SQLITE_BUSY || p->clock->now_ms(p->clock) >= end)
            return sl_sqlite_failed(p, SL_FATAL);
        p->clock->sleep_ms(p->clock, 5);
    }
    return true;
}

static enum sl_status open_db(struct sl_sqlite *p, struct sl_error *error)
{
    if (sl_disk_make_parent(p->path, error) != SL_OK)
        return SL_FATAL;
    int code = sqlite3_open_v2(p->path, &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!p->db)
        sl_die("out of memory");
    sqlite3_busy_timeout(p->db, SL_SQLITE_BUSY_MS);
    /* A commit counts when it is on disk: FULL syncs the log at each. */
    if (sl_sqlite_done_or_failed(p, code == SQLITE_OK) && use_wal(p) &&
        sl_sqlite_run(p, "PRAGMA synchronous=FULL") && sl_sqlite_table(p, sl_span_str(p->own))) {
        sl_sqlite_keep_tables(p);
        return SL_OK;
    }
    return sl_fail(error, SL_FATAL, "DatabaseError", "cannot open %s", p->failure.text);
}

static enum sl_status open_db_to_read(struct sl_sqlite *p, struct sl_error *error)
{
    /* Not SQLITE_OPEN_READONLY: that cannot read a write-ahead log that another process left. */
    int code = sqlite3_open_v2(p->path, &p->db, SQLITE_OPEN_READWRITE, NULL);
    if (!p->db)
        sl_die("out of memory");
    sqlite3_busy_timeout(p->db, SL_SQLITE_BUSY_MS);
    if ((code & 0xFF) == SQLITE_CANTOPEN && access(p->path, F_OK) != 0 && errno == ENOENT)
        return sl_fail(error, SL_REJECT, "NoTable", "%s: there is no such file", p->path);
    struct sl_sqlite_table *own =
        sl_sqlite_done_or_failed(p, code == SQLITE_OK) ? sl_sqlite_table(p, sl_span_str(p->own)) : NULL;
    if (!own)
        return sl_fail(error, SL_FATAL, "DatabaseError", "cannot open %s", p->failure.text);
    if (own->is_absent)
        return sl_fail(error, SL_REJECT, "NoTable", "%s: there is no table \"%s\" in it", p->path, p->own);
    sl_sqlite_keep_tables(p);
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

static enum sl_status open_port(struct sl_sinks *sinks, struct sl_span text, bool only_reads,
                                struct sl_table_port **out, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse(text, arena, &url, error);
    struct sl_sqlite *p = calloc(1, sizeof(*p));
    if (!p)
        sl_die("out of memory");
    p->port = (struct sl_table_port){.size = sizeof(p->port),
                                     .max_item_bytes = SL_ITEM_BYTES,
                                     .apply = sqlite_apply,
                                     .close = sqlite_close,
                                     .scan = sqlite_scan,
                                     .describe = sqlite_describe,
                                     .can = SL_TABLE_ALL};
    p->only_reads = only_reads;
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
        status = only_reads ? open_db_to_read(p, error) : open_db(p, error);
    sl_arena_destroy(arena);
    if (status != SL_OK) {
        sqlite_close(&p->port);
        return status;
    }
    *out = &p->port;
    return SL_OK;
}

enum sl_status sl_sqlite_open(struct sl_sinks *sinks, struct sl_span text, struct sl_table_port **out,
                              struct sl_error *error)
{
    return open_port(sinks, text, false, out, error);
}

enum sl_status sl_sqlite_open_to_read(struct sl_sinks *sinks, struct sl_span text, struct sl_table_port **out,
                                      struct sl_error *error)
{
    return open_port(sinks, text, true, out, error);
}
