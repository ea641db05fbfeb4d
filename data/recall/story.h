/* The story of some items: each change that an archive holds of them, once, item by item and in order. */
#ifndef SL_DATA_RECALL_STORY_H
#define SL_DATA_RECALL_STORY_H

#include "data/recall/recall.h"
#include "streams/types.h"

struct sl_story;

/* `recall` was opened for the items, of which it has `n`; `folder` exists and holds temporary files. All are
 * borrowed until the close. */
struct sl_story *sl_story_open(struct sl_recall *recall, const char *folder, struct sl_span ttl_attribute);
void sl_story_close(struct sl_story *story); /* NULL is fine */

/* Reads on. SL_RETRY: the same step may be tried again. SL_REJECT: an object is no archive of whole changes,
 * or changes of two tables are among the items': their keys may be the same. */
enum sl_status sl_story_read(struct sl_story *story, int64_t deadline_ms, bool *is_read,
                             struct sl_error *error) SL_MUST_USE;

/* A change, borrowed until the next call. */
struct sl_story_change {
    size_t item; /* of the recall's */
    const struct sl_record *record;
    struct sl_span object;  /* the key of the object that holds it */
    struct sl_value before; /* the item before it: its OldImage, else the NewImage of the change before;
                               SL_NONE: there was none, or it is not known */
    bool before_is_known;   /* `before` is how the item was, or SL_NONE because there was none */
    const char *gap;        /* why a change is missing right before it; NULL: nothing shows that one is */
    bool is_tied; /* another change of the item has the same time, and nothing says which came first */
};

/* The next change, once all is read. `*has` is false after the last one. */
enum sl_status sl_story_next(struct sl_story *story, struct sl_story_change *out, bool *has,
                             struct sl_error *error) SL_MUST_USE;

uint64_t sl_story_doubles(const struct sl_story *story);     /* changes that were archived more than once */
struct sl_span sl_story_table(const struct sl_story *story); /* the table's name; absent: no change says it */

#endif
