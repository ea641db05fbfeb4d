/* The order of an item's changes, padded so that texts compare as numbers do. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_ORDER_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_ORDER_H

#include "handlers/handler.h"

/* Sequence numbers have 21 to 40 digits. */
#define SL_ORDER_DIGITS 40

/* Is the record an item that exists, and no change of it (an export's line, a scan's)? It is an INSERT whose
 * number, of 15 digits at most, is its event's name too. (It has no time, but gets one when it is redriven.)
 */
bool sl_order_is_of_item(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena);

/* The record's order; absent, which is lower than that of every change, for an item: the number that it has
 * is its name alone, and may be above the first changes of a stream (DynamoDB Local counts from 1). */
struct sl_span sl_order_digits(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena);

/* Is the record's order the time of its change, as with all that comes through Kinesis? Then changes of one
 * unit tie, and nothing says which was last. */
bool sl_order_is_time(const struct sl_host *host, const struct sl_record *r, struct sl_arena *arena);

/* What a table keeps of an order: the text, and the attribute value that holds it, {"S":"text"}. */
struct sl_order {
    struct sl_span text, value;
};

/* Writes the digits at `at`, with zeros before them up to SL_ORDER_DIGITS, and returns where they end. No
 * digits are all zeros: an item of a table export is older than any change. */
char *sl_order_put(char *at, struct sl_span digits);

/* An order of an epoch, at most SL_ORDER_BYTES: of epoch 0 the digits alone, of a later one ":", six digits
 * of the epoch, ":" and the digits. ':' is above '9', so every order of a later epoch is above those of the
 * earlier ones. Returns where it ends. */
#define SL_ORDER_BYTES     (SL_ORDER_DIGITS + 8)
#define SL_ORDER_EPOCH_MAX 999999
char *sl_order_put_epoch(char *at, int64_t epoch, struct sl_span digits);

/* Does the text have one of the two forms that sl_order_put_epoch writes? */
bool sl_order_is_known(struct sl_span text);

/* Are two such texts of one epoch? */
bool sl_order_is_same_epoch(struct sl_span a, struct sl_span b);

/* SL_REJECT, code "BadOrder", when there are more digits than SL_ORDER_DIGITS. */
enum sl_status sl_order_check(const struct sl_host *host, struct sl_span digits,
                              struct sl_error *error) SL_MUST_USE;

/* The text, which is borrowed and needs no escapes, with its attribute value in `arena`. */
struct sl_order sl_order_of(const struct sl_host *host, struct sl_arena *arena, struct sl_span text);

/* The order of an epoch and of digits, in `arena`. SL_REJECT as sl_order_check says. */
enum sl_status sl_order_make(const struct sl_host *host, int64_t epoch, struct sl_span digits,
                             struct sl_arena *arena, struct sl_order *out,
                             struct sl_error *error) SL_MUST_USE;

/* Below zero, zero or above, as `a` is before, the same as or after `b`: padded texts, bytewise. */
int sl_order_compare(struct sl_span a, struct sl_span b);

#endif
