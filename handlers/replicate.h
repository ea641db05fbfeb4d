/* Inside the replicate handler: what its files share. docs/HANDLERS.md says what it promises. */
#ifndef SL_HANDLERS_REPLICATE_H
#define SL_HANDLERS_REPLICATE_H

#include "handlers/loop.h"
#include "handlers/text.h"

/* Where the order of the last change of an item is kept. */
enum replicate_guard {
    REPLICATE_INLINE, /* on the replica's item */
    REPLICATE_SIDE,   /* in a row of a side table, in the same transaction */
    REPLICATE_NONE
};

/* Which removals stay without effect. */
enum replicate_expired { REPLICATE_DELETE, REPLICATE_KEEP, REPLICATE_KEEP_ANY };

/* What becomes of an attribute. */
struct replicate_rule {
    struct sl_span name;
    bool is_kept;           /* named in `project` */
    bool is_dropped;        /* named in `drop`, or its place is taken by another attribute's new name */
    struct sl_span renamed; /* its new name; absent: none */
};

/* An attribute of the replica's key that a template makes. */
struct replicate_key {
    struct sl_span name;
    struct sl_text_template value;
};

struct replicate {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_table_port *table;
    struct sl_table_port *source; /* read back from; NULL: never */
    enum replicate_guard guard;
    struct sl_span guard_attribute;        /* inline: its name on the item */
    struct sl_span guard_table, guard_key; /* side: the table, and the name of its partition key */
    struct sl_loop target;
    struct sl_span deleted_attribute, ttl_attribute;
    int64_t epoch, tombstone_s;
    enum replicate_expired expired;
    bool copies_replicated; /* changes that a replicate made go on */
    bool is_projected;      /* only what `project` names, and the key */
    unsigned events;        /* that the route lets through, as bits 1 << SL_INSERT, ... */
    struct replicate_rule *rules;
    size_t n_rules;
    struct replicate_key *keys;
    size_t n_keys; /* 0: the source's key */
};

/* ---- replicate_config.c ---- */

extern const struct sl_option replicate_options[];
enum sl_status replicate_open(const struct sl_host *host, struct sl_route *route, void **self,
                              struct sl_error *error);

/* ---- replicate_order.c: the order of changes as guards keep it ---- */

/* "000000:0000000000000000000000000000000000000111:0001480642020000": epoch, order, and the time of the
 * change in ms, which tells a write that was refused although it is newer. */
#define REPLICATE_ORDER_DIGITS 40
#define REPLICATE_GUARD_BYTES  (6 + 1 + REPLICATE_ORDER_DIGITS + 1 + 16)

/* SL_REJECT when the record's order has more digits than any sequence number. */
enum sl_status replicate_order(const struct replicate *p, const struct sl_record *r, struct sl_span order,
                               struct sl_arena *arena, struct sl_span *guard, struct sl_error *error);

/* The guard as an attribute value, {"S":"..."}. */
struct sl_span replicate_guard_value(struct sl_span guard);

/* By length, then bytes: orders are decimal digits without leading zeros. */
int replicate_order_compare(struct sl_span a, struct sl_span b);

/* Is the change newer by time than the guard which refused it? `item` is what the sink returned: the item or
 * the side table's row. */
bool replicate_is_refused_newer(const struct replicate *p, struct sl_span guard, struct sl_span item);

/* Was the change made by a replicate itself? SL_FATAL when the stream's view type cannot tell. `may_carry` is
 * false when the record's image carries no guard for sure. */
enum sl_status replicate_is_echo(const struct replicate *p, const struct sl_record *r, bool *is_echo,
                                 bool *may_carry, struct sl_error *error);

/* ---- replicate_item.c: the replica's items ---- */

/* The replica's key, as JSON. */
enum sl_status replicate_key(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                             struct sl_span *key, struct sl_error *error);

/* What the item is afterwards. */
struct replicate_image {
    struct sl_value value; /* SL_NONE: nothing, it is deleted */
    bool may_carry;        /* a guard of the source's own */
    bool is_read_back;
};

/* The replica's item: the image, reshaped as configured, with its inline guard. SL_REJECT, code
 * "ItemTooLargeForGuard", when only the guard makes it too large. */
enum sl_status replicate_item(const struct replicate *p, const struct sl_record *r,
                              struct replicate_image image, struct sl_span key, struct sl_span guard,
                              struct sl_arena *arena, struct sl_span *item, struct sl_error *error);

/* What stands in place of a deleted item: its key, guard, a mark, and when it may go. */
struct sl_span replicate_tombstone(const struct replicate *p, struct sl_span key, struct sl_span guard,
                                   struct sl_arena *arena);

/* Does the image carry the attribute? Looks without making an index. */
struct sl_value replicate_find(const struct replicate *p, struct sl_value image, struct sl_span name);

#endif
