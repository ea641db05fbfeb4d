#include "tests/support/tables.h"

#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{'report_batch_item_failures':true,'on_failure':'report','routes':[%s]}"

struct tables *tables_new(const char *routes)
{
    struct tables *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->s = stage_new(json_printf(CONFIG, routes), NULL);
    t->v = verbs_new();
    verb_set(t->v, t->s->list[0]);
    disk_fault->skips_sleep = true;
    tables_sql(t, "src.db", "CREATE TABLE orders (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
    return t;
}

void tables_destroy(struct tables *t)
{
    disk_fault->skips_sleep = false;
    verbs_destroy(t->v);
    stage_destroy(t->s);
    free(t);
}

/* ---- changes ---- */

static const char *item_of(const char *id, const char *attributes)
{
    return json_printf("{'PK':{'S':'%s'}%s%s}", id, *attributes ? "," : "", attributes);
}

/* "": there is none. */
static const char *item_now(struct tables *t, const char *id)
{
    char sql[200];
    snprintf(sql, sizeof(sql), "SELECT item FROM orders WHERE key = '{\"PK\":{\"S\":\"%s\"}}'", id);
    char *rows = (char *)(uintptr_t)tables_rows(t, "src.db", sql);
    rows[strcspn(rows, "\n")] = '\0';
    return rows;
}

static void set_item(struct tables *t, const char *id, const char *item)
{
    if (*item)
        tables_sql(t, "src.db", "INSERT OR REPLACE INTO orders VALUES ('{\"PK\":{\"S\":\"%s\"}}', '%s')", id,
                   item);
    else
        tables_sql(t, "src.db", "DELETE FROM orders WHERE key = '{\"PK\":{\"S\":\"%s\"}}'", id);
}

static const char *image_of(const char *name, const char *item)
{
    return *item ? json_printf(",'%s':%s", name, item) : "";
}

static void change(struct tables *t, const char *id, const char *item)
{
    const char *before = item_now(t, id);
    unsigned n = ++t->n_changes;
    set_item(t, id, item);
    stage_deliver_all(
        t->s,
        json_printf("{'Records':[{'eventID':'e%u','eventName':'%s','eventVersion':'1.1','eventSource':'aws:"
                    "dynamodb','awsRegion':'eu-west-1','dynamodb':{'ApproximateCreationDateTime':%u,"
                    "'Keys':{'PK':{'S':'%s'}}%s%s,'SequenceNumber':'1%020u','SizeBytes':10,'StreamViewType':"
                    "'NEW_AND_OLD_IMAGES'},'eventSourceARN':'arn:aws:dynamodb:eu-west-1:123456789012:table/"
                    "orders/stream/2026-01-01T00:00:00.000'}]}",
                    n,
                    !*item    ? "REMOVE"
                    : *before ? "MODIFY"
                              : "INSERT",
                    1767265199 + n, id, image_of("NewImage", item), image_of("OldImage", before), n));
}

void tables_put(struct tables *t, const char *id, const char *attributes)
{
    change(t, id, item_of(id, attributes));
}

void tables_remove(struct tables *t, const char *id)
{
    change(t, id, "");
}

void tables_put_unseen(struct tables *t, const char *id, const char *attributes)
{
    set_item(t, id, item_of(id, attributes));
}

/* ---- SQL ---- */

int tables_sql(struct tables *t, const char *file, const char *format, ...)
{
    sqlite3 *db = NULL;
    char path[512], *text = NULL, *error = NULL;
    va_list list;
    va_start(list, format);
    assert_true(vasprintf(&text, format, list) > 0);
    va_end(list);
    snprintf(path, sizeof(path), "%s/%s", t->s->folder, file);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", text, error);
    int changed = sqlite3_total_changes(db);
    sqlite3_close(db);
    free(text);
    return changed;
}

const char *tables_rows(struct tables *t, const char *file, const char *sql)
{
    char *rows = stage_query(t->s, file, sql);
    const char *kept = json_printf("%s", rows); /* nothing in JSON is a ' */
    free(rows);
    return kept;
}

/* ---- verbs ---- */

static int SL_PRINTF(2, 0) run(struct tables *t, const char *format, va_list list)
{
    char *line = NULL;
    assert_true(vasprintf(&line, format, list) > 0);
    size_t name = strcspn(line, " ");
    int status = verb(t->v, "%.*s --config %s --table sqlite:%s/src.db?table=orders --max-lag 0%s", (int)name,
                      line, t->s->config_path, t->s->folder, line + name);
    free(line);
    return status;
}

int tables_run(struct tables *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int status = run(t, format, list);
    va_end(list);
    return status;
}

void tables_verb(struct tables *t, int status, const char *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int is = run(t, format, list);
    va_end(list);
    verb_assert(t->v, is, status, text);
}
