/* Conditions on records: a route's `when`, and the filters of an event source mapping.
 *
 * {"expired": true|"any", "events": ["INSERT",...], "changed": ["attr",...], "keys": {...}, "item": {...},
 * "old_item": {...}, "pattern": [{...}, ...]}; members are ANDed, patterns ORed. Patterns are
 * FilterCriteria's (EventBridge's language, with the facts recorded on AWS). keys, item and old_item are
 * conditions on plain values (docs/WHEN.md): of the key, of the item after the change, and before it.
 * Compiled once. */
#ifndef SL_STREAMS_WHEN_WHEN_H
#define SL_STREAMS_WHEN_WHEN_H

#include "base/buffer.h"
#include "streams/record.h"

/* Compiles the JSON text of a `when` object. `out` lives in `arena` and borrows nothing of `json`. What no
 * record can ever meet is refused too. On failure: SL_REJECT, the byte in `json`, and a text that begins with
 * the JSON path inside it
 * ("pattern[0].dynamodb"). */
enum sl_status sl_when_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                               struct sl_error *error) SL_MUST_USE;

/* The same for one bare FilterCriteria pattern: {"eventName":["INSERT"]}. */
enum sl_status sl_pattern_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                                  struct sl_error *error) SL_MUST_USE;

/* Tells what in a FilterCriteria pattern can match no record of DynamoDB, although AWS takes it: a mistyped
 * name, a value of another kind. Each finding is one line that begins with the path in the pattern; its text
 * lives until `found` returns. What is not a pattern is an error, as above. */
typedef void (*sl_when_found_fn)(void *arg, const char *text);
enum sl_status sl_pattern_judge(struct sl_span json, sl_when_found_fn found, void *arg,
                                struct sl_error *error) SL_MUST_USE;

/* Compiles one bare condition on plain values: {"status":["PAID"]}. For sl_where_match alone. */
enum sl_status sl_where_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                                struct sl_error *error) SL_MUST_USE;

/* `item` is an M, or absent. */
bool sl_where_match(const struct sl_when *where, struct sl_value item, struct sl_arena *scratch);

/* Writes the filter of an event source mapping that is nearest to `when`: it lets through every record that
 * `when` does. Of a `when` with patterns it is about the other members alone. */
enum sl_when_nearest {
    SL_WHEN_NO_FILTER,    /* none would keep any record back: nothing was written */
    SL_WHEN_FILTER_EXACT, /* it lets through the same records */
    SL_WHEN_FILTER_WIDER
};
enum sl_when_nearest sl_when_filter(const struct sl_when *when, struct sl_buffer *out);

/* NULL matches everything. `scratch` is for what must be unescaped. */
bool sl_when_match(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch);

/* The images, as bits 1 << enum sl_image, without which nobody can tell whether the record
 * matches: what changed, keys, item and old_item need of a change of its kind, and it does not carry. Such a
 * record does not match. 0 for nearly all records: ask where sl_when_match said no. */
unsigned sl_when_lacks(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch);

/* Does a stream of this view type carry all that changed, item and old_item need? */
bool sl_when_accepts(const struct sl_when *when, enum sl_view view);

/* Does the JSON object's text match the pattern? For patterns on something else than a record: an item. */
bool sl_pattern_match(const struct sl_when *pattern, struct sl_span json, struct sl_arena *scratch);

/* Events that the condition can let through, as bits 1 << SL_INSERT, ...; all of them for NULL. `expired`
 * leaves SL_REMOVE alone. */
unsigned sl_when_events(const struct sl_when *when);

/* Is it true of an item, whatever happens to the item? Only keys, and patterns on dynamodb.Keys, are. */
bool sl_when_is_of_keys(const struct sl_when *when);

/* Images that the condition looks into, as bits 1 << SL_NEW_IMAGE, 1 << SL_OLD_IMAGE: for `sluice check`. */
unsigned sl_when_images(const struct sl_when *when);

#endif
