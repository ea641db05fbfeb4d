/* Lies that are made by hand, of one operation each; and what a scan's answer may say. */
#ifndef SL_TESTS_SUPPORT_LIES_H
#define SL_TESTS_SUPPORT_LIES_H

#include "base/buffer.h"

#include <jansson.h>
#include <stdbool.h>

#define LIES_ENTRIES 3 /* of each request */

struct lies_special {
    const char *operation;
    int status;
    const char *body; /* with ' for ", unless it is XML */
    bool proven[LIES_ENTRIES];
    bool is_of_sums; /* only of an UpdateItem that adds */
};

/* Ends with a NULL operation. */
extern const struct lies_special lies_specials[];

/* Header lines beside the body 0123456789, which is not what they say, or not what was asked for: an object
 * from its beginning, at most 100 bytes. Ends with NULL. */
extern const char *const lies_ranges[];

/* An answer in which one member, each in turn, is there twice: before it one of its name with another value.
 */
struct lies_twins {
    struct sl_buffer lie; /* cleaned up at the end */
    char *truth, *at;
    size_t other;
};

struct lies_twins lies_twins_of(struct sl_span truth);

/* Makes the next one; false: there are no more. */
bool lies_twins_next(struct lies_twins *twins);

/* Which entries SQS's answer says it took, by a reading of its own. */
void lies_find_sent(const json_t *answer, bool *proven);

/* Whether it is a page of documents of the last of four segments, by a reading of its own. */
bool lies_is_search(const json_t *answer);

/* Whether it is a page of items, by a reading of its own. */
bool lies_is_page(const json_t *answer);

#endif
