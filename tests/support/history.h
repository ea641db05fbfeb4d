/* A random history of one table: its changes as stream records, and what the table holds at the end, kept by
 * a plain map that knows nothing of the code under test. */
#ifndef SL_TESTS_SUPPORT_HISTORY_H
#define SL_TESTS_SUPPORT_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_options {
    uint64_t seed;
    size_t changes, items;
    const char *view;  /* StreamViewType */
    const char *table; /* NULL: "orders" */
    bool has_lines;    /* items have "lines", a list of {"id", "sku", "qty"} that grows, shrinks, is edited and
                          reordered; some lines have no sku, some items no list */
};

/* Items are orders: {"PK":{"S":"order#N"},"SK":{"N":"M"},"status":{"S":...},"total":{"N":...}, ...}; some
 * changes touch neither status nor total, some items lack a total, about a third of the removals are TTL's.
 * Keys, values and names have NULs in them, and SK is spelled in many ways. */
struct history {
    struct history_options options;
    json_t *table;    /* key text -> item as it is at the end */
    json_t *snapshot; /* the same, as it is after the first half of the changes */
    json_t *records;  /* all of them, in order */
};

void history_make(struct history *h, const struct history_options *options);
void history_clean_up(struct history *h);

/* The Lambda event of the records from `first` on; the caller frees it. */
char *history_event(const struct history *h, size_t first, size_t n);

/* The snapshot as `sluice replay` hands an export to a handler: an INSERT each, older than any change; the
 * caller frees it. */
char *history_export(const struct history *h);

/* The same of what the table held after the first `n` changes: the items from `first` on, at most `most` of
 * them. The view must have new images. NULL: there are none. */
char *history_export_at(const struct history *h, size_t n, size_t first, size_t most);

/* The number of the item with this key, or of this item: its key text in `table`. */
size_t history_item(const json_t *item);

/* What stands for NUL in the maps above: jansson does not hold names with NUL in them. Events have the escape
 * in its place. */
#define HISTORY_NUL "@NUL0@"
/* Puts the escape in its place, in JSON text; and the other way round, before jansson reads the text. */
void history_put_nul(char *json);
void history_take_nul(char *json);

/* Draws below `n`. */
size_t history_draw(uint64_t *state, size_t n);

#endif
