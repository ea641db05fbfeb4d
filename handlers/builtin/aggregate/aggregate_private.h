/* Inside the aggregate handler: what its files share. docs/HANDLERS.md says what it promises.
 *
 * Words: a counter row is one row of the totals, named by its key. A term is a number that one item (or
 * event) contributes to one attribute of one counter row. A contribution is all terms of an item (or event).
 * A unit is what is counted once: an item, or an event. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_PRIVATE_H

#include "handlers/builtin/toolkit/expired.h"
#include "handlers/builtin/toolkit/keymap.h"
#include "handlers/builtin/toolkit/loop.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/source.h"
#include "handlers/builtin/toolkit/text.h"

#define AGGREGATE_COUNTERS 40

/* The attribute of every row of the route, if the totals are in the source table. */
#define AGGREGATE_OWN "sluice_row"

/* The ledger's row keeps the order of the item's last change, and what was counted for it. */
#define AGGREGATE_ROW_ORDER "order"
#define AGGREGATE_ROW_SUMS  "sums"
/* When that change was made, in milliseconds. Rows of earlier releases do not have it. */
#define AGGREGATE_ROW_AT "at"

#define AGGREGATE_NONE UINT32_MAX

/* A number, and the attribute of the counter row that it goes into. */
struct aggregate_amount {
    enum sl_set_verb verb; /* SL_ADD; SL_SET_MAX, SL_SET_MIN: a running value */
    struct sl_span name;
    struct sl_span constant; /* absent: the template's */
    struct sl_render_template value;
    uint32_t attribute; /* its number in every tally */
};

struct aggregate_counter {
    const struct sl_when *when;      /* on the item; NULL: every one contributes */
    struct sl_render_template *keys; /* one for each of the handler's `key_names` */
    struct aggregate_amount *amounts;
    size_t n_amounts;
};

struct aggregate_owner;

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
    size_t shard_key;    /* which of `key_names` the sub-counter's number is appended to */
    int64_t forget_s;    /* how long the ledger keeps rows of removed items, and of events; 0: for ever */
    struct sl_span name; /* the ledger's */
    struct sl_span ledger_table; /* absent: the totals' own */
    struct sl_span ledger_keys[2];
    size_t n_ledger_keys;
    bool has_at;                   /* rows can have AGGREGATE_ROW_AT: no key attribute has this name */
    struct aggregate_owner *owner; /* what this process knows of the ledger's source */
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
                              struct sl_error *error) SL_MUST_USE;

/* ---- what a slice's records contribute ---- */

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

/* A record that contributed to a running value. */
struct aggregate_feed {
    uint32_t record, extreme;
};

/* More groups than that in one slice are found by their keys. */
#define AGGREGATE_KNOWN_SOURCES 4096

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

/* ---- aggregate_counter.c: one counter, and one image of one record ---- */

struct aggregate_look {
    struct aggregate_tally *t;
    struct sl_render in;
};

struct aggregate_look aggregate_look_at(struct aggregate_tally *t, const struct sl_record *r,
                                        enum sl_image image);

/* Does the counter's `when` match the image? */
bool aggregate_matches(const struct aggregate_look *look, const struct aggregate_counter *c);

/* The number of the counter row that the image belongs to. */
enum sl_status aggregate_counter_find(const struct aggregate_look *look, const struct aggregate_counter *c,
                                      uint32_t *out, struct sl_error *error) SL_MUST_USE;

/* The amount that the image contributes. */
enum sl_status aggregate_amount_of(const struct aggregate_look *look, const struct aggregate_amount *amount,
                                   struct sl_span *out, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_terms.c: contributions and their differences ---- */

void aggregate_tally_init(struct aggregate_tally *t, const struct aggregate *a, struct sl_arena *arena,
                          size_t records);
void aggregate_term_add(struct aggregate_terms *terms, const struct aggregate_term *term);

/* The contribution of an item as it is in one image (SL_NEW_IMAGE, SL_OLD_IMAGE), or of an event
 * (SL_ANY_IMAGE). SL_REJECT when a part of it cannot be made. */
enum sl_status aggregate_contribution(struct aggregate_tally *t, const struct sl_record *r,
                                      enum sl_image image, struct aggregate_part *out,
                                      struct sl_error *error) SL_MUST_USE;

/* What marks a counter row as the route's own. */
struct sl_set aggregate_own_mark(const struct aggregate_tally *t);

/* `to` less `from`, appended to `out`: terms that are in both cancel. */
void aggregate_difference(const struct aggregate_tally *t, struct aggregate_part from,
                          struct aggregate_part to, struct aggregate_terms *out);

/* ---- aggregate_ledger.c: rows that say what has been counted ---- */

struct aggregate_row {
    bool exists;
    struct sl_span order;
    int64_t at_ms; /* 0: the row does not say */
    struct aggregate_part terms;
};

/* The JSON of the key of the unit's row: an item's, or an event's. */
struct sl_span aggregate_ledger_key(const struct aggregate *a, const struct sl_record *r,
                                    struct sl_arena *arena);

/* The contribution as the ledger keeps it: {"L":[...]}. */
struct sl_span aggregate_ledger_text(const struct aggregate_tally *t, struct aggregate_part part);

/* A row to be written: an item's, or an event's, which has no order, no time and no sums. */
struct aggregate_entry {
    struct sl_span key;
    struct sl_order order;
    int64_t at_ms;
    struct sl_span sums; /* the ledger's text */
    bool is_over;        /* the item is gone, so that its row may be forgotten */
};

struct sl_span aggregate_ledger_row(const struct aggregate_tally *t, const struct aggregate_entry *entry);

/* Reads a row as the sink returned it. Absent text: there is no row. SL_FATAL when aggregate did not write
 * it. */
enum sl_status aggregate_ledger_read(struct aggregate_tally *t, struct sl_span item,
                                     struct aggregate_row *out, struct sl_error *error) SL_MUST_USE;

/* ---- a slice ---- */

/* What a record makes of its item. */
struct aggregate_change {
    struct sl_order order;
    int64_t at_ms;               /* when it was made; 0: not said */
    struct aggregate_part after; /* the item's contribution from then on */
    bool keeps;                  /* `after` stays in the totals, and does not belong to the item any more */
    bool is_older;               /* the ledger refused it as older, although it is newer by time */
    uint32_t next;               /* of the same unit, in order; AGGREGATE_NONE */
};

enum aggregate_state { AGGREGATE_PENDING, AGGREGATE_DONE, AGGREGATE_FAILED };

struct aggregate_unit {
    uint32_t first, last; /* its changes, by record; AGGREGATE_NONE: it has none */
    enum aggregate_state state;
    bool is_blocked;     /* a record of it was rejected, and the later ones wait */
    bool is_idle;        /* the images add nothing: only a row of an earlier epoch is to be replaced */
    bool is_known;       /* its ledger row was read: nothing is guessed */
    bool is_asked;       /* its ledger row is read before the next round */
    struct sl_span key;  /* of its ledger row; absent: it has none */
    struct sl_span item; /* the row to be written */
    struct aggregate_part delta; /* of the slice's differences */
    struct sl_test tests[2];
    size_t n_tests;
};

struct aggregate_run {
    const struct aggregate *a;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct aggregate_tally tally;
    struct aggregate_terms deltas;
    struct sl_keymap keys; /* units by the keys of their ledger rows */
    struct aggregate_unit *units;
    size_t n_units;
    struct aggregate_change *changes; /* one per record */
    struct sl_source source;          /* the table that the records come from */
    struct sl_span last[3];           /* where the last record came from: ARN, Region, table */
    size_t n_older;                   /* changes that are `is_older` */
    struct sl_span older;             /* the sequence number of one of them */
    bool is_repair;                   /* a row that is not the expected one is left alone */
};

/* ---- aggregate_take.c: records into units ---- */

/* The record has not the image that the totals need. */
enum sl_status aggregate_no_image(const struct aggregate *a, const struct sl_record *r, const char *image,
                                  struct sl_error *error) SL_MUST_USE;

/* Takes record `i` of the slice. A failure is the whole slice's. */
enum sl_status aggregate_take(struct aggregate_run *run, size_t i, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_source.c: the table that the ledger belongs to ---- */

void aggregate_source_init(struct aggregate *a, struct sl_arena *arena);

/* The slice's records have to come from the table that the ledger belongs to, and the route has to have the
 * ledger's epoch. The first slice that names its table makes the ledger belong to it. */
enum sl_status aggregate_source_check(struct aggregate_run *run, struct sl_error *error) SL_MUST_USE;

/* ---- aggregate_unit.c: what a unit adds, and what its ledger row is expected to be ---- */

/* Makes every unit's difference, row and tests; units that add nothing are done. */
void aggregate_prepare(struct aggregate_run *run);

/* The unit's transaction failed. SL_REJECT: this unit or another one is to blame. */
void aggregate_unit_failed(struct aggregate_run *run, struct aggregate_unit *unit,
                           const struct sl_error *error);

/* Reads the ledger rows of the pending units that are `is_asked`. */
void aggregate_units_ask(struct aggregate_run *run);

/* Tells of the changes that the ledger refused although they are newer by time. */
void aggregate_units_warn(const struct aggregate_run *run);

/* The unit's tests did not hold; `item` is its row. The unit is done, failed, or pending with other tests. */
void aggregate_unit_refused(struct aggregate_run *run, struct aggregate_unit *unit, struct sl_span item);

/* ---- aggregate_extreme.c: running values ---- */

/* Takes the running values of the slice's record `i`. */
enum sl_status aggregate_extremes_take(struct aggregate_tally *t, const struct sl_record *r, size_t i,
                                       enum sl_image image, struct sl_error *error) SL_MUST_USE;

void aggregate_extremes_write(struct aggregate_run *run);

/* ---- aggregate_write.c ---- */

/* Writes the units that are pending, in transactions with their sums; without a ledger each row of the totals
 * on its own. */
void aggregate_write_units(struct aggregate_run *run);

#endif
