/* A random history of one table: its changes as stream records, and what the table holds at the end, kept by
 * a plain map that knows nothing of the code under test. */
#ifndef SL_TESTS_SUPPORT_HISTORY_H
#define SL_TESTS_SUPPORT_HISTORY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct history_options {
    uint64_t seed;
    size_t changes, items;
    const char *view;  /* StreamViewType */
    const char *table; /* NULL: "orders" */
};

/* Items are orders: {"PK":{"S":"order#N"},"SK":{"N":"M"},"status":{"S":...},"total":{"N":...}, ...}; some
 * changes touch neither status nor total, some items lack a total, about a third of the removals are TTL's.
 */
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

/* Draws below `n`. */
size_t history_draw(uint64_t *state, size_t n);

#endif
