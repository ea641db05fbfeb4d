/* Inside the aggregate handler: what its files share. docs/AGGREGATE.md says what it promises.
 *
 * Words: a counter row is one row of the totals, named by its key. A term is a number that one item (or
 * event) contributes to one attribute of one counter row. A contribution is all terms of an item (or event).
 * A unit is what is counted once: an item, or an event. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_PRIVATE_H

#include "handlers/builtin/toolkit/expired.h"
#include "base/map.h"
#include "handlers/builtin/toolkit/loop.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/source_table.h"
#include "handlers/builtin/toolkit/text.h"

#define AGGREGATE_COUNTERS 40

/* The attribute of every row of the route, if the totals are in the source table. */
#define AGGREGATE_OWN "sluice_row"

/* The ledger's row keeps the order of the item's last change, and what was counted for it. */
#define AGGREGATE_ROW_ORDER "order"
#define AGGREGATE_ROW_SUMS  "sums"
/* When that change was made, in milliseconds. Rows of earlier releases do not have it. */
#define AGGREGATE_ROW_AT "at"

/* The row of a value that is counted once: how many items have it, of which group, for which attribute. */
#define AGGREGATE_VALUE_COUNT     "n"
#define AGGREGATE_VALUE_GROUP     "group"
#define AGGREGATE_VALUE_ATTRIBUTE "attribute"
#define AGGREGATE_VALUE_VALUE     "value"

/* A member's row: the number by which it is sorted, and the key attributes of its item. */
#define AGGREGATE_MEMBER_BY   "by"
#define AGGREGATE_MEMBER_ITEM "item"

#define AGGREGATE_NONE UINT32_MAX

/* A number, and the attribute of the counter row that it goes into. */
struct aggregate_amount {
    enum sl_set_verb verb; /* SL_ADD; SL_SET_MAX, SL_SET_MIN: a running value */
    struct sl_span name;
    struct sl_span constant; /* absent: the template's */
    struct sl_render_template value;
    uint32_t attribute; /* its number in every tally */
};

/* An attribute that counts different values. */
struct aggregate_distinct {
    struct sl_span name;
    struct sl_render_template value;
    uint32_t attribute; /* its number in every tally */
};

struct aggregate_counter {
    const struct sl_when *where;     /* on the item; NULL: every one contributes */
    const struct sl_when *when;      /* a pattern on the item, with its types; the same */
    struct sl_render_template *keys; /* one for each of the handler's `key_names` */
    struct aggregate_amount *amounts;
    size_t n_amounts;
    struct aggregate_distinct *distinct;
    size_t n_distinct;
    bool has_members;
    struct aggregate_amount by; /* of members */
};

struct aggregate {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_table_port *table;
    struct sl_loop loop;
    bool per_event, has_ledger, marks_own;
    enum sl_missing missing;
    enum sl_expired expired;
    int64_t epoch;       /* goes before every order */
    int64_t shards;      /* 0: none */
    size_t shard_key;    /* which of `key_names` was written first: the partition key. The sub-counter's
                            number is appended to it */
    int64_t forget_s;    /* how long the ledger keeps rows of removed items, and of events; 0: for ever */
    struct sl_span name; /* the ledger's */
    struct sl_span ledger_table; /* absent: the totals' own */
    struct sl_span ledger_keys[2];
    size_t n_ledger_keys;
    bool has_at;                   /* rows can have AGGREGATE_ROW_AT: no key attribute has this name */
    struct sl_source_table *owner; /* what this process knows of the ledger's source; in the route's arena */
    struct sl_span expires_attribute;
    struct sl_span key_names[2]; /* of counter rows, in their order as text */
    size_t n_key_names;
    struct aggregate_counter *counters;
    size_t n_counters;
    bool has_extremes;
    bool has_distinct, has_members; /* any counter */
    bool deletes_empty;
    unsigned events; /* that the route lets through, as bits 1 << SL_INSERT, ... */
};

/* ---- aggregate_config.c ---- */

extern const struct sl_option aggregate_options[];
enum sl_status aggregate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_check.c ---- */

/* Does the attribute say how many items there are? It is an amount, and always 1. */
bool aggregate_counts_items(const struct aggregate *a, struct sl_span name);

/* Does an item that is there count for anything? Else the route keeps nothing but running values, which do
 * not follow from the items that are there. */
bool aggregate_has_sums(const struct aggregate *a);

/* Do the options go together? SL_FATAL: `error` says which do not, and why. */
enum sl_status aggregate_check(const struct aggregate *a, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_source.c ---- */

void aggregate_source_init(struct aggregate *a, struct sl_arena *arena);

/* ---- write/aggregate_write_price.c ---- */

enum sl_status aggregate_price(void *self, struct sl_price *price, struct sl_error *error) SL_MUST_USE;

#endif
