/* A segment of a table that is scanned page by page: where it goes on, and that its pages do not go round. */
#ifndef SL_DATA_SOURCE_SEGMENT_H
#define SL_DATA_SOURCE_SEGMENT_H

#include "base/cycle.h"
#include "base/error.h"
#include "sinks/port.h"

/* Zeroed: segment 0, not begun. */
struct sl_segment {
    uint32_t number;
    char *after; /* a key's JSON, its own; NULL: it begins at the beginning */
    bool is_done;
    struct sl_cycle cycle; /* of the keys that pages went on after */
};

/* The page was taken: the segment goes on after it, or is done. `name`: the table's, for the message; NULL:
 * none. SL_FATAL, "EndlessScan": the pages lead round to a key that was read already. */
enum sl_status sl_segment_move(struct sl_segment *segment, const struct sl_table_page *page, const char *name,
                               struct sl_error *error) SL_MUST_USE;

/* It goes on after this key. */
void sl_segment_go_on(struct sl_segment *segment, struct sl_span after);

/* Frees what it holds; it is zeroed. */
void sl_segment_clean_up(struct sl_segment *segment);

#endif
