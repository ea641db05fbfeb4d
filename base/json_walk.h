/* Walking over JSON text that sl_json_check has passed: the members of an object or the elements of an array,
 * as they are written. Nothing is built or copied; all spans point into the text. */
#ifndef SL_BASE_JSON_WALK_H
#define SL_BASE_JSON_WALK_H

#include "base/span.h"

struct sl_json_walk {
    const char *p, *end;
    bool is_object;
};

/* Begins before the first member or element. Text that is neither an object nor an array has none. */
struct sl_json_walk sl_json_walk(struct sl_span json);

/* The next one. False at the end, and at once when `name` is NULL for an object or not NULL for an array.
 * `name` becomes the member's name without its quotes, its escapes unresolved. */
bool sl_json_walk_next(struct sl_json_walk *walk, struct sl_span *name, struct sl_span *value);

/* The number of an array's elements; 0 for anything else. */
size_t sl_json_walk_count(struct sl_span json);

/* The first member of the object with this name; absent when it has none, or when the text is not an object.
 * */
struct sl_span sl_json_walk_member(struct sl_span json, struct sl_span name);

#endif
