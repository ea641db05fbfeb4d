/* Inside the aggregate handler: what a slice's records contribute, and how the ledger keeps it. */
#ifndef SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_TALLY_PRIVATE_H
#define SL_HANDLERS_BUILTIN_AGGREGATE_AGGREGATE_TALLY_PRIVATE_H

#include "base/map.h"
#include "handlers/builtin/aggregate/aggregate_private.h"

/* What a row is that terms go into. */
enum aggregate_kind {
    AGGREGATE_SUMS,  /* a counter's row */
    AGGREGATE_VALUE, /* of one value of one group: a term is an item that has it */
    AGGREGATE_MEMBER /* of one item of one group: it is there when its terms add up to 1 */
};

struct aggregate_place {
    enum aggregate_kind kind;
    uint32_t group, attribute; /* VALUE: the counter row, and the attribute that counts its values */
    struct sl_span shown;      /* VALUE: the value. MEMBER: the number. Attribute value JSON */
    struct sl_span item;       /* MEMBER: the row; absent: only its key is known */
    bool is_read, is_there;    /* VALUE: `held` is what the row says; there is a row */
    bool is_left;              /* SUMS: something was taken away */
    unsigned n_short;          /* VALUE: how often less was held than is to be taken away */
    int64_t held;
};

struct aggregate_term {
    uint32_t counter, attribute; /* numbers in the slice's key maps */
    struct sl_span number;
    bool begins;   /* in a row that is written: the first of a counter's, each of a value's and a member's */
    bool subtract; /* in a difference */
};

struct aggregate_terms {
    struct sl_arena *arena;
    struct aggregate_term *list;
    uint32_t n;
    size_t room;
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
    struct sl_map counters;         /* rows by their key's JSON */
    struct aggregate_place *places; /* what they are, by the same numbers */
    size_t room_places;
    uint32_t count;        /* the attribute of terms of values and members */
    struct sl_map sources; /* what keys were made of, and the rows they led to */
    uint32_t *counter_of;
    struct sl_map attributes; /* of counter rows, by name */
    struct aggregate_terms terms;
    struct sl_map extreme_of; /* row, verb and attribute -> extreme */
    struct aggregate_extreme *extremes;
    struct aggregate_feed *feeds;
    uint32_t n_feeds;
    size_t room_extremes, room_feeds;
};

/* ---- aggregate_number.c: numbers as texts that sort as they do ---- */

/* A letter, three digits of a power of ten, 38 digits, and an end. */
#define AGGREGATE_SORT_BYTES 48

/* The number, in its normal form (decimal_text's), as a text; docs/AGGREGATE.md has the format. Returns its
 * bytes. */
size_t aggregate_number_sort(struct sl_span number, char out[AGGREGATE_SORT_BYTES]);

/* Can thousands of such numbers be added up within 38 digits? */
bool aggregate_number_is_moderate(struct sl_span number);

/* ---- aggregate_place.c: rows that terms go into ---- */

/* The number of the row with that key; a new one is a counter's. */
uint32_t aggregate_place_at(struct aggregate_tally *t, struct sl_span key);

/* The number of the value's row; AGGREGATE_NONE when its key is another row's. `value`: canonical JSON, or
 * what aggregate_value_short made of it. */
uint32_t aggregate_place_value(struct aggregate_tally *t, uint32_t group, uint32_t attribute,
                               struct sl_span value);

/* A long value's digest, as a value of a type that no value has: {"M":{"sha256":{"S":...}}}. */
struct sl_span aggregate_value_short(const struct aggregate_tally *t, struct sl_span value);

/* A value as a row keeps it, in the form in which equal values are equal texts. Absent: it is no such value.
 */
struct sl_span aggregate_value_read(const struct aggregate_tally *t, struct sl_value value);

/* The value's row with that count. */
struct sl_span aggregate_value_row(const struct aggregate_tally *t, uint32_t place, struct sl_span count);

/* The number of the row of the record's item under the group's key. SL_REJECT: it cannot have one. */
enum sl_status aggregate_place_member(struct aggregate_tally *t, const struct sl_record *r, uint32_t group,
                                      struct sl_span number, uint32_t *out,
                                      struct sl_error *error) SL_MUST_USE;

/* The same by the row's key, as a ledger keeps it. */
uint32_t aggregate_place_member_key(struct aggregate_tally *t, struct sl_span key, struct sl_span number);

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

/* The value that the image has for a count of different values, as aggregate_place_value takes it. */
enum sl_status aggregate_value_of(const struct aggregate_look *look, const struct aggregate_distinct *of,
                                  struct sl_span *out, struct sl_error *error) SL_MUST_USE;

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

/* The JSON of the key of a row beside the ledger's: "sluice:KIND:NAME:TEXT". The text needs no escapes but of
 * quotes and backslashes; one that is too long for a key is replaced by its digest. */
struct sl_span aggregate_own_key(const struct aggregate *a, const char *kind, struct sl_span text,
                                 struct sl_arena *arena);

/* The mark of the route's own rows as a member of an item's JSON, with its comma; "" when it does not mark.
 */
struct sl_span aggregate_own_member(const struct aggregate *a, struct sl_arena *arena);

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

/* Terms as they are in a row, in the same text. False: aggregate did not write it. */
bool aggregate_ledger_terms(struct aggregate_tally *t, struct sl_value sums, struct aggregate_part *out);

/* Reads a row as the sink returned it. Absent text: there is no row. SL_FATAL when aggregate did not write
 * it. */
enum sl_status aggregate_ledger_read(struct aggregate_tally *t, struct sl_span item,
                                     struct aggregate_row *out, struct sl_error *error) SL_MUST_USE;

#endif
