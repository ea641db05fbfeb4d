/* Inside the check of totals: what its files share. */
#ifndef SL_WORK_VERIFY_TOTALS_PRIVATE_H
#define SL_WORK_VERIFY_TOTALS_PRIVATE_H

#include "handlers/pipeline/route.h"
#include "work/verify/totals.h"

#define TOTALS_LEDGERS 100 /* SL_CONFIG_ROUTES_MAX */

/* The ledger of one route. */
struct totals_ledger {
    const char *route;
    struct sl_span prefix; /* of its rows' keys: "sluice:ledger:NAME:" */
    struct sl_span deltas; /* likewise of rows that are to be folded into the totals: "sluice:delta:NAME:" */
    struct sl_span values; /* and of rows of values that are counted once: "sluice:distinct:NAME:" */
    struct sl_span table;  /* absent: the totals' own */
    struct sl_span key;    /* the partition key's name */
};

/* Attributes of totals, each once. */
struct totals_names {
    struct sl_span *list;
    size_t n, room;
};

/* Totals that several routes may share. */
struct totals {
    const char *url;
    struct sl_table_port *port;
    bool is_chosen;
    struct sl_span keys[2]; /* of their rows, in the order of the first route's configuration */
    size_t n_keys;
    bool has_shards;
    struct totals_ledger ledgers[TOTALS_LEDGERS];
    size_t n_ledgers;
    struct totals_names counted; /* attributes that have a ledger */
    /* Attributes that a route without a ledger adds to, or one that keeps what expired. */
    struct totals_names spoiled;
};

/* ---- totals_config.c ---- */

/* Finds the totals of the pipeline. Everything is in `arena`. Returns how many there are. */
size_t sl_totals_find(const struct sl_totals_options *o, struct sl_arena *arena, struct totals **out);

/* ---- totals_rows.c: what the rows of a ledger and of the totals say ---- */

enum totals_scan { TOTALS_FIRST, TOTALS_TOTAL, TOTALS_SECOND };

struct groups;

/* What rows are added up into, and where; of one page. */
struct totals_rows {
    const struct totals *t;
    struct groups *groups;
    struct sl_arena *arena;
    struct sl_buffer *key;
    enum totals_scan scan;
    uint64_t digest; /* of the rows of the ledgers, added up */
};

/* A row of the ledger's table. */
void sl_totals_ledger_row(struct totals_rows *r, const struct totals_ledger *l, struct sl_value row);

/* A row of the totals' table. */
void sl_totals_row(struct totals_rows *r, struct sl_value row);

/* Is the attribute the sum of what the ledgers say, and of nothing else? */
bool sl_totals_is_judged(const struct totals *t, struct sl_span name);

/* ---- totals_groups.c: sums by group ---- */

/* Beside the attributes of a row: whether the rows of values of an attribute, and of the members of a group,
 * are those that the ledgers name. A row counts as a number that is made of its key; so D is 0 when they are,
 * and not 0 when they are not, but for one in two thousand million. */
#define TOTALS_VALUES  "sluice_values:"
#define TOTALS_MEMBERS "sluice_members"

/* One attribute of one row of the totals. */
struct group_sum {
    struct sl_span key;                        /* canonical text of the row's key */
    struct sl_span name;                       /* of the attribute */
    struct sl_decimal *total, *first, *second; /* of the totals; of the ledgers, in both scans */
    struct sl_span mark;                       /* SL_TOTALS_MARK's value, JSON; absent: there is none */
    uint64_t rows_first, rows_second;          /* digests of the ledgers' rows that count into it, added up */
    unsigned n_same;          /* rounds in a row in which its rows stood still, with the same D */
    struct sl_decimal *still; /* that D */
    bool is_settled;
    bool has_interval; /* D was seen between these */
    struct sl_decimal *low, *high;
};

struct groups {
    struct sl_arena *arena;
    struct group_sum *list;
    size_t n, room;
    uint32_t *slots;
    size_t n_slots;
    uint64_t part, of; /* the pass: groups whose hash % of == part */
    bool is_full;      /* there are more than SL_TOTALS_GROUPS */
};

void sl_groups_init(struct groups *g, uint64_t part, uint64_t of);
void sl_groups_clean_up(struct groups *g);

/* The group; NULL: it is of another pass, or, if `makes` is false, not there. */
struct group_sum *sl_groups_find(struct groups *g, struct sl_span key, struct sl_span name, bool makes);

#endif
