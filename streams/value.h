/* Looking into one attribute value. Every result is a view of the payload, or of `arena` where the function
 * takes one. The text was checked before (see streams/decode/batch.h), so none of these can fail on it. */
#ifndef SL_STREAMS_VALUE_H
#define SL_STREAMS_VALUE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/number.h"
#include "streams/types.h"

struct sl_json_scan; /* base/json.h */

/* The string's text (S: unescaped, in `arena` only when it was escaped; N, B: as written). Absent for others.
 * */
struct sl_span sl_value_text(struct sl_value v, struct sl_arena *arena);

/* The bytes of a B, decoded into `arena`. Absent for others. */
struct sl_span sl_value_bytes(struct sl_value v, struct sl_arena *arena);

/* The value as DynamoDB's JSON: {"N":"1"}. */
struct sl_span sl_value_json(struct sl_value v, struct sl_arena *arena);

/* Writes the same at `at`, v.raw.len + SL_VALUE_JSON_BYTES bytes at most, and returns where it ends. */
char *sl_value_put(char *at, struct sl_value v);

/* True, and the number, when an N is an integer that fits. "1.50e1" is 15. */
bool sl_value_int64(struct sl_value v, int64_t *out);

/* True when a BOOL is true. */
bool sl_value_is_true(struct sl_value v);

struct sl_iter sl_value_iter(struct sl_value v);

/* The next element of an M, L or set; false at the end. `name` (may be NULL) gets an M's member name, still
 * escaped as in the text; `value` the element (set elements are S, N or B). */
bool sl_value_next(struct sl_iter *iter, struct sl_span *name, struct sl_value *value);

/* The member of an M by its (unescaped) name, SL_NONE when it has none. Reads the whole map. */
struct sl_value sl_value_member(struct sl_value map, struct sl_span name);

/* What the path names in an M, "a.b[0].c"; a name that holds '.', '[' or '`' is written in backquotes.
 * SL_NONE when it leads nowhere. */
struct sl_value sl_value_path(struct sl_value map, struct sl_span path);

/* The size of an item by DynamoDB's formula, of its image; 0 for what is not an M. */
uint64_t sl_value_item_bytes(struct sl_value image);

/* DynamoDB's equality: numbers by value, sets without order, maps without order. */
bool sl_value_equal(struct sl_value a, struct sl_value b);

/* The number of an N; false for others. */
bool sl_value_number(struct sl_value v, struct sl_number *out);

/* Bytes that the value counts for in its item, without its name. */
uint64_t sl_value_counted_bytes(struct sl_value v);

/* ---- text that nobody has checked ---- */

/* The value that the JSON holds, {"N":"1"}; SL_NONE: it is not one that a table takes. It has one known tag
 * with content of its kind, numbers and base64 are valid, no set is empty, and at most 32 containers are one
 * in another. (The service also refuses sets that hold an element twice.) Strings need not be text: see
 * sl_json_check_loose. */
struct sl_value sl_value_read(struct sl_span json);

/* The same of an item: from its '{' to the byte after it. NULL: one of its values is not such a value; `s`
 * says where and why. */
const char *sl_value_check_item(struct sl_json_scan *s, const char *p);

/* ---- for streams/ alone ---- */

/* A value whose text begins at `p` (the brace of {"S":...}), of checked text; `*next` is the byte after
 * it. */
struct sl_value sl_value_at(const char *p, const char *end, const char **next);

/* Whether the text is a path at all. */
bool sl_path_is_valid(struct sl_span path);

/* Takes a path's first name off; false when there is none. */
bool sl_path_name(struct sl_span *path, struct sl_span *name);

/* What the rest of a path, which begins with '.' or '[', names in the value. */
struct sl_value sl_value_walk(struct sl_value v, struct sl_span path);

/* The value's one canonical text: names and set elements in order and once, strings with the fewest escapes,
 * numbers in normal form. Equal values have equal texts. */
void sl_value_canonical(struct sl_value v, struct sl_buffer *out);

/* The same as DynamoDB's JSON, which a canonical text is not: there a set's elements have their tags. */
void sl_value_stored(struct sl_value v, struct sl_buffer *out);
/* The value as plain JSON, {"a":1,"b":["x"]}: names and set elements in order of their text and once, numbers
 * in normal form, a B as {"base64":"..."}. Equal values have equal texts. */
void sl_value_plain(struct sl_value v, struct sl_buffer *out);

/* No image's canonical text is longer: an escape of six bytes stands for each byte of a payload at most. */
#define SL_CANONICAL_BYTES ((size_t)6 * UINT32_MAX)

/* The tag that `name` spells, SL_NONE when it is not a tag. */
enum sl_type sl_value_tag(const char *name, size_t n);

#endif
