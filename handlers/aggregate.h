/* Inside the aggregate handler: what its files share. docs/HANDLERS.md says what it promises.
 *
 * Words: a counter row is one row of the totals, named by its key. A term is a number that one item (or
 * event) contributes to one attribute of one counter row; a contribution is all its terms. A unit is what is
 * counted once: an item, or an event. */
#ifndef SL_HANDLERS_AGGREGATE_H
#define SL_HANDLERS_AGGREGATE_H

#include "handlers/keymap.h"
#include "handlers/loop.h"
#include "handlers/outcome.h"
#include "handlers/text.h"

/* TransactWriteItems takes 100 actions and 4 MB. An item that moves between groups touches two rows a
 * counter, and its own ledger row. */
#define AGGREGATE_TX_OPS   100
#define AGGREGATE_TX_BYTES (3 * 1024 * 1024)
#define AGGREGATE_COUNTERS 40

/* Every row of ours carries it when the totals live in the source table. */
#define AGGREGATE_OWN "sluice_row"

enum aggregate_expired { AGGREGATE_SUBTRACT, AGGREGATE_KEEP, AGGREGATE_KEEP_ANY };

/* A number, and the attribute of the counter row that it goes into. */
struct aggregate_amount {
    enum sl_set_verb verb; /* SL_ADD; SL_SET_MAX, SL_SET_MIN: a running value */
    struct sl_span name;
    struct sl_span constant; /* absent: the template's */
    struct sl_text_template value;
    uint32_t attribute; /* its number in every tally */
};

struct aggregate_counter {
    const struct sl_when *when;    /* on the item; NULL: every one contributes */
    struct sl_text_template *keys; /* one for each of the handler's `key_names` */
    struct aggregate_amount *amounts;
    size_t n_amounts;
};

struct aggregate {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_table_port *table;
    struct sl_loop target;
    bool per_event, has_ledger, marks_own;
    enum sl_missing missing;
    enum aggregate_expired expired;
    int64_t shards;              /* 0: none */
    size_t shard_key;            /* which of `key_names` the sub-counter's number is appended to */
    int64_t forget_s;            /* how long the ledger remembers removed items, and events; 0: for ever */
    struct sl_span name;         /* the ledger's */
    struct sl_span ledger_table; /* absent: the totals' own */
    struct sl_span ledger_keys[2];
    size_t n_ledger_keys;
    struct sl_span expires_attribute;
    struct sl_span key_names[2]; /* of counter rows, in their order as text */
    size_t n_key_names;
    struct aggregate_counter *counters;
    size_t n_counters;
    bool has_extremes;
    unsigned events; /* that the route lets through, as bits 1 << SL_INSERT, ... */
};

/* ---- aggregate_config.c ---- */

extern const struct sl_option aggregate_options[];
enum sl_status aggregate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error);

/* ---- aggregate_terms.c: what an item contributes ---- */

struct aggregate_term {
    uint32_t counter, attribute; /* numbers in the slice's key maps */
    struct sl_span number;
    bool begins;   /* the first of a counter's */
    bool subtract; /* in a difference */
};

struct aggregate_terms {
    const struct sl_host *host;
    struct sl_arena *arena;
    struct aggregate_term *list;
    uint32_t n, room;
};

/* Terms from `first` on. */
struct aggregate_part {
    uint32_t first, n;
};

/* A running value: the slice's best for one attribute of one row. */
struct aggregate_extreme {
    uint32_t counter;
    const struct aggregate_amount *of;
    struct sl_span number;
};

/* That record fed that running value. */
struct aggregate_feed {
    uint32_t record, extreme;
};

/* What a slice's records contribute. */
struct aggregate_tally {
    const struct aggregate *a;
    struct sl_arena *arena;
    struct sl_decimal *scratch;
    struct sl_keymap counters; /* counter rows by their key's JSON */
    struct sl_keymap sources;  /* what keys were made of, and the rows they led to */
    uint32_t *counter_of;
    struct sl_keymap attributes; /* of counter rows, by name */
    struct aggregate_terms terms;
    struct sl_keymap extreme_of; /* row, verb and attribute -> extreme */
    struct aggregate_extreme *extremes;
    struct aggregate_feed *feeds;
    uint32_t room_extremes, n_feeds, room_feeds;
};

void aggregate_tally_init(struct aggregate_tally *t, const struct aggregate *a, struct sl_arena *arena,
                          size_t records);
void aggregate_term_add(struct aggregate_terms *terms, const struct aggregate_term *term);

/* The contribution of an item as it is in one image (SL_NEW_IMAGE, SL_OLD_IMAGE), or of an event
 * (SL_ANY_IMAGE). SL_REJECT when a part of it cannot be made. */
enum sl_status aggregate_contribution(struct aggregate_tally *t, const struct sl_record *r,
                                      enum sl_image image, struct aggregate_part *out,
                                      struct sl_error *error);

/* Takes the running values of the slice's record `i` into the tally's. */
enum sl_status aggregate_extremes(struct aggregate_tally *t, const struct sl_record *r, size_t i,
                                  enum sl_image image, struct sl_error *error);

/* `to` less `from`, appended to `out`: terms that are in both cancel. */
void aggregate_difference(const struct aggregate_tally *t, struct aggregate_part from,
                          struct aggregate_part to, struct aggregate_terms *out);

/* ---- aggregate_ledger.c: rows that say what has been counted ---- */

struct aggregate_row {
    bool exists;
    struct sl_span order;
    struct aggregate_part terms;
};

/* The JSON of the key of the unit's row: an item's, or an event's. */
struct sl_span aggregate_ledger_key(const struct aggregate *a, const struct sl_record *r,
                                    struct sl_arena *arena);

/* "0000000000000000000000000000000000000111": the record's order in 40 digits, which stand in an attribute
 * value, {"S":"..."}. SL_REJECT when it has more. */
#define AGGREGATE_ORDER_DIGITS 40
enum sl_status aggregate_order(const struct aggregate *a, const struct sl_record *r, struct sl_arena *arena,
                               struct sl_span *out, struct sl_error *error);

/* The contribution as the ledger keeps it: {"L":[...]}. */
struct sl_span aggregate_ledger_text(const struct aggregate_tally *t, struct aggregate_part part);

/* The whole row. An event's has no terms. */
struct sl_span aggregate_ledger_row(const struct aggregate_tally *t, struct sl_span key, struct sl_span order,
                                    struct sl_span text, bool is_over);

/* Reads a row as the sink returned it; absent text is no row. SL_FATAL when it is not one of ours. */
enum sl_status aggregate_ledger_read(struct aggregate_tally *t, struct sl_span item,
                                     struct aggregate_row *out, struct sl_error *error);

/* ---- aggregate_write.c: units into transactions ---- */

enum aggregate_state { AGGREGATE_PENDING, AGGREGATE_DONE, AGGREGATE_FAILED };

struct aggregate_unit {
    uint32_t first, last; /* for the functions: its records */
    enum aggregate_state state;
    bool is_over;                /* the item is gone, its row may be forgotten */
    struct sl_span key;          /* of its ledger row; absent: it has none */
    struct sl_span item;         /* the row to be written */
    struct aggregate_part delta; /* of the tally's differences */
    struct sl_test tests[2];
    size_t n_tests;
};

struct aggregate_write {
    struct aggregate_tally *tally;
    struct sl_slice *slice;
    struct aggregate_terms *deltas;
    struct aggregate_unit *units;
    size_t n_units;
    void *arg; /* of the functions */
    /* The transaction with the unit failed for that reason; REJECT: this unit or another one is to blame. */
    void (*failed)(void *arg, struct aggregate_unit *unit, const struct sl_error *error);
    /* The unit's tests did not hold; `item` is its row. Makes it DONE, FAILED, or PENDING with other tests.
     */
    void (*refused)(void *arg, struct aggregate_unit *unit, struct sl_span item);
};

/* Writes the units that are pending, in transactions with their sums; without a ledger each row of the totals
 * on its own. */
void aggregate_write_units(struct aggregate_write *w);

#endif
