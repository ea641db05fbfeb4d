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
    const struct sl_when *where;     /* on the item; NULL: every one contributes */
    const struct sl_when *when;      /* a pattern on the item, with its types; the same */
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

/* ---- aggregate_source.c ---- */

void aggregate_source_init(struct aggregate *a, struct sl_arena *arena);

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

/* Does the image meet the counter's `where` and `when`? */
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

#endif
