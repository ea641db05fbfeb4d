/* Rows: from items and keys to parameters, and back. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/number.h"
#include "base/utf8.h"
#include "sinks/postgres/postgres_private.h"
#include "streams/value.h"

#define UNFIT "U+0000 or half a surrogate pair, which PostgreSQL's text cannot"

/* Of an item's JSON: an escape of six bytes for each of its own. */
#define ITEM_BYTES ((size_t)6 * SL_ITEM_BYTES + 4096)

static struct sl_value value_in(struct sl_span item, struct sl_span name)
{
    struct sl_span json = sl_item_attribute(item, name);
    return json.ptr ? sl_value_read(json) : (struct sl_value){.type = SL_NONE};
}

bool sl_postgres_is_text(struct sl_span text)
{
    return (text.len == 0 || !memchr(text.ptr, '\0', text.len)) && sl_utf8_is_valid(text);
}

/* ---- keys ---- */

static enum sl_status key_param(struct sl_value value, struct sl_arena *arena, struct sl_postgres_param *out)
{
    struct sl_number number;
    if (value.type == SL_N && sl_value_number(value, &number)) {
        char *text = sl_arena_alloc(arena, SL_NUMBER_TEXT + 1);
        text[sl_number_text(&number, text)] = '\0';
        *out = (struct sl_postgres_param){text, 0};
    } else if (value.type == SL_B) {
        *out = sl_postgres_bytes(sl_value_bytes(value, arena));
    } else {
        struct sl_span text = sl_value_text(value, arena);
        if (!sl_postgres_is_text(text))
            return SL_REJECT;
        *out = (struct sl_postgres_param){sl_arena_copy(arena, text), 0};
    }
    return SL_OK;
}

enum sl_status sl_postgres_key_params(const struct sl_postgres *p, const struct sl_postgres_table *table,
                                      struct sl_span key, struct sl_postgres_param *out,
                                      struct sl_error *error)
{
    static const enum sl_type types[] = {['S'] = SL_S, ['N'] = SL_N, ['B'] = SL_B};
    for (size_t i = 0; i < table->n_keys; i++) {
        struct sl_value value = value_in(key, table->keys[i].name);
        if (value.type != types[(unsigned char)table->keys[i].type])
            return sl_fail(error, SL_FATAL, "OtherKey",
                           "%s: table %.*s has %.*s (%c) in its primary key, and the items' key has not",
                           p->target.shown, SL_ARG(table->name), SL_ARG(table->keys[i].name),
                           table->keys[i].type);
        if (key_param(value, p->scratch, &out[i]) != SL_OK)
            return sl_fail(error, SL_REJECT, "UnfitText", "%s: key attribute %.*s holds " UNFIT,
                           p->target.shown, SL_ARG(table->keys[i].name));
    }
    struct sl_json_walk walk = sl_json_walk(key);
    struct sl_span name, content;
    size_t n = 0;
    while (sl_json_walk_next(&walk, &name, &content))
        n++;
    if (n != table->n_keys)
        return sl_fail(error, SL_FATAL, "OtherKey",
                       "%s: the primary key of table %.*s has one column, the items' key two attributes",
                       p->target.shown, SL_ARG(table->name));
    return SL_OK;
}

/* ---- an item becomes a row ---- */

/* Of text that sl_value_stored has written: there the escape of a surrogate is that of a half. */
bool sl_postgres_is_json(struct sl_span json)
{
    const char *at = json.ptr, *end = json.ptr + json.len;
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        if (end - at >= 6 && at[1] == 'u' && (memcmp(at + 2, "0000", 4) == 0 || at[2] == 'd'))
            return false;
        at += 2;
    }
    return sl_utf8_is_valid(json);
}

static enum sl_status find_unfit(const struct sl_postgres *p, struct sl_span item, struct sl_error *error)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value))
        if (!sl_postgres_is_json(name) || !sl_postgres_is_json(value))
            break;
    return sl_fail(error, SL_REJECT, "UnfitText",
                   "%s: attribute %.*s holds " UNFIT "; drop or replace it with \"set\"", p->target.shown,
                   SL_ARG(name));
}

/* {"M":{...}} without its tag. */
static struct sl_span canonical_item(struct sl_postgres *p, struct sl_span item)
{
    struct sl_buffer text;
    sl_buffer_init_in(&text, p->scratch, ITEM_BYTES);
    sl_value_stored((struct sl_value){.type = SL_M, .raw = item}, &text);
    text.ptr[text.len - 1] = '\0';
    return sl_span(text.ptr + strlen("{\"M\":"), text.len - strlen("{\"M\":}"));
}

enum sl_status sl_postgres_make_row(struct sl_postgres *p, struct sl_postgres_step *step, struct sl_span item,
                                    struct sl_error *error)
{
    const struct sl_postgres_table *table = step->table;
    struct sl_span text = canonical_item(p, item);
    if (!sl_postgres_is_json(text))
        return find_unfit(p, text, error);
    step->row = sl_arena_zalloc(p->scratch, (1 + table->n_columns) * sizeof(*step->row));
    step->row[0].text = text.ptr;
    for (size_t i = 0; i < table->n_columns; i++)
        if (sl_postgres_column_text(&table->columns[i], value_in(text, table->columns[i].name), p->scratch,
                                    &step->row[1 + i].text, error) != SL_OK) {
            sl_error_context(error, "%s: table %.*s", p->target.shown, SL_ARG(table->name));
            return SL_REJECT;
        }
    return SL_OK;
}

/* ---- a row becomes an item ---- */

static void add_key(struct sl_buffer *out, const struct sl_postgres_key *key, const char *text)
{
    struct sl_number number;
    sl_json_add_string(out, key->name);
    if (key->type == 'N' && !sl_number_parse(sl_span_str(text), &number)) {
        char normal[SL_NUMBER_TEXT];
        sl_buffer_printf(out, ":{\"N\":\"%.*s\"}", (int)sl_number_text(&number, normal), normal);
        return;
    }
    sl_buffer_printf(out, ":{\"%c\":", key->type);
    sl_json_add_string(out, sl_span_str(text));
    sl_buffer_add_char(out, '}');
}

static void add_keys(struct sl_buffer *out, const struct sl_postgres_table *table, const PGresult *rows,
                     int row)
{
    for (size_t i = 0; i < table->n_keys; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        add_key(out, &table->keys[i], PQgetvalue(rows, row, (int)i));
    }
}

struct sl_span sl_postgres_take_key(const struct sl_postgres_table *table, const PGresult *rows, int row,
                                    struct sl_arena *arena)
{
    struct sl_buffer key;
    sl_buffer_init_in(&key, arena, 64 * 1024);
    sl_buffer_add_char(&key, '{');
    add_keys(&key, table, rows, row);
    sl_buffer_add_char(&key, '}');
    return sl_buffer_span(&key);
}

/* An attribute whose column says otherwise than the item: neither is to be taken for what was put, so it
 * comes back as a map of both. Whoever compares finds it. */
static void add_torn(struct sl_buffer *out, struct sl_span item, const char *column)
{
    sl_buffer_add_str(out, ":{\"M\":{\"column\":");
    if (column) {
        sl_buffer_add_str(out, "{\"S\":");
        sl_json_add_string(out, sl_span_str(column));
        sl_buffer_add_char(out, '}');
    } else {
        sl_buffer_add_str(out, "{\"NULL\":true}");
    }
    sl_buffer_add_str(out, ",\"item\":");
    if (item.ptr)
        sl_json_add_compact(out, item);
    else
        sl_buffer_add_str(out, "{\"NULL\":true}");
    sl_buffer_add_str(out, "}}");
}

/* The column's number of the attribute when the row has another value there; else -1. */
static int differs(struct sl_postgres *p, const struct sl_postgres_table *table, struct sl_span item,
                   const PGresult *rows, int row, size_t i)
{
    int at = (int)(table->n_keys + 1 + i);
    const char *have = PQgetisnull(rows, row, at) ? NULL : PQgetvalue(rows, row, at), *wanted = NULL;
    struct sl_error ignored = SL_NO_ERROR;
    bool fits = sl_postgres_column_text(&table->columns[i], value_in(item, table->columns[i].name),
                                        p->scratch, &wanted, &ignored) == SL_OK;
    bool is_same = fits && (have ? wanted && strcmp(have, wanted) == 0 : !wanted);
    return is_same ? -1 : at;
}

/* Adds what the item has beside its keys. */
static void add_rest(struct sl_postgres *p, const struct sl_postgres_table *table, struct sl_span item,
                     const PGresult *rows, int row, struct sl_buffer *out)
{
    struct sl_json_walk walk = sl_json_walk(item);
    struct sl_span name, value;
    bool *is_torn = sl_arena_zalloc(p->scratch, table->n_columns + 1);
    for (size_t i = 0; i < table->n_columns; i++) {
        int at = differs(p, table, item, rows, row, i);
        is_torn[i] = at >= 0;
        if (!is_torn[i])
            continue;
        sl_buffer_add_char(out, ',');
        sl_json_add_string(out, table->columns[i].name);
        add_torn(out, sl_item_attribute(item, table->columns[i].name),
                 PQgetisnull(rows, row, at) ? NULL : PQgetvalue(rows, row, at));
    }
    while (sl_json_walk_next(&walk, &name, &value)) {
        struct sl_span plain = sl_json_unescape(name, p->scratch);
        bool is_left = !sl_postgres_is_key(table, plain);
        for (size_t i = 0; i < table->n_columns && is_left; i++)
            is_left = !(is_torn[i] && sl_span_eq(plain, table->columns[i].name));
        if (!is_left)
            continue;
        sl_buffer_add_str(out, ",\"");
        sl_buffer_add_span(out, name);
        sl_buffer_add_str(out, "\":");
        sl_json_add_compact(out, value);
    }
}

enum sl_status sl_postgres_take_item(struct sl_postgres *p, const struct sl_postgres_table *table,
                                     const PGresult *rows, int row, struct sl_arena *arena,
                                     struct sl_span *out, struct sl_error *error)
{
    int at = (int)table->n_keys;
    struct sl_span item = sl_span(PQgetvalue(rows, row, at), (size_t)PQgetlength(rows, row, at));
    struct sl_error why = SL_NO_ERROR;
    if (sl_item_read(item, &why) != SL_OK || sl_item_check(item, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, "NotAnItem",
                       "%s: table %.*s: what a row has in item is no item, so somebody else wrote it: %s; "
                       "remove the row, or the item will not change",
                       p->target.shown, SL_ARG(table->name), why.text);
    struct sl_buffer text;
    sl_buffer_init_in(&text, arena, 2 * ITEM_BYTES);
    sl_buffer_add_char(&text, '{');
    add_keys(&text, table, rows, row);
    add_rest(p, table, item, rows, row, &text);
    sl_buffer_add_char(&text, '}');
    *out = sl_buffer_span(&text);
    return SL_OK;
}
