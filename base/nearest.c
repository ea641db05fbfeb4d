/* Distances between names, in edits. */
#include "base/nearest.h"

#include "base/span.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 64

/* The edits between two names: a byte inserted, deleted or changed, or two swapped. Of the usual table, the
 * rows of the last three bytes of `a` are kept. */
static size_t distance(struct sl_span a, struct sl_span b)
{
    size_t rows[3][NAME_BYTES + 1];
    if (a.len > NAME_BYTES || b.len > NAME_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

struct sl_nearest sl_nearest_begin(struct sl_span name)
{
    size_t limit = name.len / 3 > 2 ? name.len / 3 : 2;
    return (struct sl_nearest){.name = name, .distance = limit + 1};
}

void sl_nearest_consider(struct sl_nearest *search, const char *known)
{
    size_t d = distance(search->name, sl_span_str(known));
    if (d < search->distance) {
        search->best = known;
        search->distance = d;
    }
}

void sl_nearest_list(char *list, size_t room, const char *known)
{
    size_t n = strlen(list);
    snprintf(list + n, room - n, "%s%s", n ? ", " : "", known);
}
