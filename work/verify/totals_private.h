/* Inside the check of totals: what its files share. */
#ifndef SL_WORK_VERIFY_TOTALS_PRIVATE_H
#define SL_WORK_VERIFY_TOTALS_PRIVATE_H

#include "handlers/pipeline/route.h"
#include "work/verify/totals.h"

#define TOTALS_LEDGERS 100 /* SL_CONFIG_ROUTES_MAX */
#define TOTALS_NAMES   200

/* The ledger of one route. */
struct totals_ledger {
    const char *route;
    struct sl_span prefix; /* of its rows' keys: "sluice:ledger:NAME:" */
    struct sl_span table;  /* absent: the totals' own */
    struct sl_span key;    /* the partition key's name */
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
    struct sl_span counted[TOTALS_NAMES]; /* attributes that have a ledger */
    size_t n_counted;
    /* Attributes that a route without a ledger adds to, or one that keeps what expired. */
    struct sl_span spoiled[TOTALS_NAMES];
    size_t n_spoiled;
};

/* ---- totals_config.c ---- */

/* Finds the totals of the pipeline. Everything is in `arena`. Returns how many there are. */
size_t sl_totals_find(const struct sl_totals_options *o, struct sl_arena *arena, struct totals **out);

/* ---- totals_groups.c: sums by group ---- */

/* One attribute of one row of the totals. */
struct group_sum {
    struct sl_span key;                        /* canonical text of the row's key */
    struct sl_span name;                       /* of the attribute */
    struct sl_decimal *total, *first, *second; /* of the totals; of the ledgers, in both scans */
    struct sl_span mark;                       /* SL_TOTALS_MARK's value, JSON; absent: there is none */
    uint64_t rows_first, rows_second;          /* digests of the ledgers' rows that count into it, added up */
    unsigned n_same; /* rounds in a row in which its rows stood still, with the same D */
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
