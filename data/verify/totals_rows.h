/* Inside the check of totals: which totals there are, and what the rows of ledgers and totals add up to, by
 * group. What the rows look like is what docs/AGGREGATE.md promises. */
#ifndef SL_DATA_VERIFY_TOTALS_ROWS_H
#define SL_DATA_VERIFY_TOTALS_ROWS_H

#include "base/buffer.h"
#include "base/decimal.h"
#include "data/verify/totals.h"

#define SL_TOTALS_LEDGERS 100 /* SL_CONFIG_ROUTES_MAX */

/* The ledger of one route. */
struct sl_totals_ledger {
    const char *route;
    struct sl_span prefix; /* of its rows' keys: "sluice:ledger:NAME:" */
    struct sl_span deltas; /* likewise of rows that are to be folded into the totals: "sluice:delta:NAME:" */
    struct sl_span values; /* and of rows of values that are counted once: "sluice:distinct:NAME:" */
    size_t table;          /* in the target's list */
    struct sl_span key;    /* the partition key's name */
};

/* Attributes of totals, each once. */
struct sl_totals_names {
    struct sl_span *list;
    size_t n, room;
};

/* Totals that several routes may share. */
struct sl_totals_target {
    const char *url;
    struct sl_table_port *port;
    bool is_chosen;
    struct sl_span keys[2]; /* of their rows, in the order of the first route's configuration */
    size_t n_keys;
    bool has_shards;
    struct sl_totals_ledger ledgers[SL_TOTALS_LEDGERS];
    size_t n_ledgers;
    struct sl_totals_names counted; /* attributes that have a ledger */
    /* Attributes that a route without a ledger adds to, or one that keeps what expired. */
    struct sl_totals_names spoiled;
    struct sl_span tables[SL_TOTALS_LEDGERS]; /* of the ledgers, each once; absent: the totals' own */
    size_t n_tables;
};

/* Finds the totals of the pipeline. Everything is in `arena`. Returns how many there are. */
size_t sl_totals_find(struct sl_pipeline *pipeline, const bool *is_chosen, struct sl_arena *arena,
                      struct sl_totals_target **out);

/* Of all that decides what rows count into: the same for the same totals. */
uint64_t sl_totals_digest(const struct sl_totals_target *targets, size_t n);

/* Is the attribute the sum of what the ledgers say, and of nothing else? */
bool sl_totals_is_judged(const struct sl_totals_target *t, struct sl_span name);

/* ---- sums by group ---- */

/* Beside the attributes of a row: whether the rows of values of an attribute, and of the members of a group,
 * are those that the ledgers name. A row counts as a number that is made of its key; so D is 0 when they are,
 * and not 0 when they are not, but for one in two thousand million. */
#define SL_TOTALS_VALUES  "sluice_values:"
#define SL_TOTALS_MEMBERS "sluice_members"

/* One attribute of one row of the totals. */
struct sl_totals_sum {
    struct sl_span key;                        /* canonical text of the row's key */
    struct sl_span name;                       /* of the attribute */
    uint64_t home;                             /* decides which part it is in */
    struct sl_decimal *total, *first, *second; /* of the totals; of the ledgers, in both scans */
    struct sl_span mark;                       /* SL_TOTALS_MARK's value, JSON; absent: there is none */
    uint64_t rows_first, rows_second;          /* digests of the ledgers' rows that count into it, added up */
    unsigned n_same;          /* rounds in a row in which its rows stood still, with the same D */
    struct sl_decimal *still; /* that D */
    bool is_settled;
    bool has_interval; /* D was seen between these */
    struct sl_decimal *low, *high;
};

/* A table that is hashed by row and attribute. */
struct sl_totals_sums {
    struct sl_arena *arena;
    struct sl_totals_sum *list;
    size_t n, room, most;
    uint32_t *slots;
    size_t n_slots;
    uint64_t part, of; /* only groups whose home % of == part */
    bool is_closed;    /* all that is to be judged is there: a sum that is added is settled */
    bool is_full;      /* there were more than `room`: what came then is missing */
};

/* Room for `most`. */
void sl_totals_sums_init(struct sl_totals_sums *sums, size_t most, uint64_t part, uint64_t of);
void sl_totals_sums_clean_up(struct sl_totals_sums *sums); /* zeroed memory is fine */

/* The text of a row's key, and the home of its groups: of all rows that are, or may be, parts of one group it
 * is the same. */
struct sl_totals_key {
    struct sl_span text; /* absent: it is no key of the totals */
    uint64_t home;
};

/* NULL: it is of another part, or there is no room; or, if `makes` is false, it is not there. */
struct sl_totals_sum *sl_totals_sums_find(struct sl_totals_sums *sums, struct sl_totals_key key,
                                          struct sl_span name, bool makes);

/* A new round: totals are 0, and what the second scan of the ledgers saw is the first scan now. */
void sl_totals_sums_begin_round(struct sl_totals_sums *sums);

/* ---- rows ---- */

enum sl_totals_scan { SL_TOTALS_FIRST, SL_TOTALS_TOTAL, SL_TOTALS_SECOND };

/* What rows are added up into. */
struct sl_totals_rows {
    const struct sl_totals_target *t;
    struct sl_totals_sums *sums;
    enum sl_totals_scan scan;
    bool is_apart;          /* the ledgers' sums are elsewhere: rows of the totals keep their own keys */
    struct sl_arena *arena; /* of a page */
    struct sl_buffer *key;
    uint64_t digest; /* of the rows of the ledgers, added up */
};

/* Adds up each row of a page: of the ledgers' table `table`, or with SL_TOTALS_TOTAL of the totals. */
void sl_totals_take_page(struct sl_totals_rows *rows, size_t table, const struct sl_table_page *page);

/* Of a key's canonical text, {"M":{...}}: the sum that it counts into, or NULL as of sl_totals_sums_find. A
 * row of the totals that may be part of another's group (`is_part`) is, unless the ledgers, which are there
 * by then, have a group of its name. */
struct sl_totals_sum *sl_totals_sum_of(struct sl_totals_rows *rows, struct sl_span key, struct sl_span name,
                                       bool is_part);

#endif
