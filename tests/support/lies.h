/* Lies that are made by hand, of one operation each; and what a scan's answer may say. */
#ifndef SL_TESTS_SUPPORT_LIES_H
#define SL_TESTS_SUPPORT_LIES_H

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

/* Whether it is a page of documents of the last of four segments, by a reading of its own. */
bool lies_is_search(const json_t *answer);

/* Whether it is a page of items, by a reading of its own. */
bool lies_is_page(const json_t *answer);

#endif
