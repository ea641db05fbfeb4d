/* Where the pages of a segment lead. */
#include "data/source/segment.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

void sl_segment_go_on(struct sl_segment *s, struct sl_span after)
{
    free(s->after);
    s->after = strndup(after.ptr, after.len);
    if (!s->after)
        sl_die("out of memory: a key of a scan");
}

enum sl_status sl_segment_move(struct sl_segment *s, const struct sl_table_page *page, const char *name,
                               struct sl_error *error)
{
    if (!page->next.ptr) {
        uint32_t number = s->number;
        sl_segment_clean_up(s);
        s->number = number;
        s->is_done = true;
        return SL_OK;
    }
    sl_segment_go_on(s, page->next);
    if (!sl_cycle_closes(&s->cycle, page->next))
        return SL_OK;
    return sl_fail(error, SL_FATAL, "EndlessScan",
                   "%s%sthe pages of segment %u%s lead round to a key that was read already: neither "
                   "DynamoDB nor OpenSearch answers so. See what is behind the endpoint",
                   name ? name : "", name ? ": " : "", s->number, name ? "" : " of a scan");
}

void sl_segment_clean_up(struct sl_segment *s)
{
    free(s->after);
    sl_cycle_clean_up(&s->cycle);
    *s = (struct sl_segment){0};
}
