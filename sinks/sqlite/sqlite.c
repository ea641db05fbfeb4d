/* A table in SQLite: opens the file. */
#include "sinks/sqlite.h"

#include "base/disk.h"
#include "base/url.h"
#include "sinks/sqlite/sqlite_private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
                                     .apply = sl_sqlite_apply,
                                     .close = sqlite_close,
                                     .scan = sl_sqlite_scan,
                                     .describe = sl_sqlite_describe,
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
