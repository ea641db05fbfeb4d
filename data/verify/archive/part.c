/* Changes of an archive as objects. */
#include "data/verify/archive/part.h"

#include "base/array.h"
#include "base/span.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BITS 32 /* of where an object's name is */

static const uint64_t name_mask = ((uint64_t)1 << NAME_BITS) - 1;

void sl_changes_part_init(struct sl_changes_part *p)
{
    *p = (struct sl_changes_part){.n = 0};
    sl_buffer_init(&p->names, SL_CHANGES_NAMES_BYTES);
}

void sl_changes_part_clean_up(struct sl_changes_part *p)
{
    free(p->list);
    sl_buffer_clean_up(&p->names);
}

uint64_t sl_changes_part_object(struct sl_changes_part *p, struct sl_span key)
{
    uint64_t at = p->names.len;
    sl_buffer_add_span(&p->names, key);
    sl_buffer_add_char(&p->names, '\n');
    return at << SL_CHANGE_OBJECT_SHIFT;
}

void sl_changes_part_add(struct sl_changes_part *p, const struct sl_sorter_entry *change)
{
    SL_PUSH(p->list, p->n, p->room, "an archive's changes") = *change;
}

static size_t share_of(const struct sl_sorter_entry *change)
{
    return change->key[0] % SL_PART_SHARES;
}

enum sl_status sl_changes_part_write(const struct sl_changes_part *p, struct sl_span before,
                                     struct sl_arena *arena, struct sl_buffer *out, struct sl_error *error)
{
    struct sl_part_head head = {.before = before};
    size_t starts[SL_PART_SHARES + 1] = {0};
    for (size_t i = 0; i < p->n; i++)
        starts[share_of(&p->list[i]) + 1]++;
    for (size_t i = 1; i <= SL_PART_SHARES; i++) {
        starts[i] += starts[i - 1];
        head.ends[i - 1] = starts[i] * sizeof(p->list[0]);
    }
    sl_part_begin(out);
    char *at = sl_buffer_reserve(out, p->n * sizeof(p->list[0]));
    for (size_t i = 0; at && i < p->n; i++)
        memcpy(at + starts[share_of(&p->list[i])]++ * sizeof(p->list[0]), &p->list[i], sizeof(p->list[0]));
    out->len += at ? p->n * sizeof(p->list[0]) : 0;
    sl_buffer_add_span(out, sl_buffer_span(&p->names));
    out->failed = out->failed || p->names.failed;
    return sl_part_end(&head, arena, out, error);
}

enum sl_status sl_changes_part_take(struct sl_span bytes, uint64_t number, struct sl_sorter *sorter,
                                    struct sl_error *error)
{
    struct sl_sorter_entry change;
    enum sl_status status = SL_OK;
    for (; bytes.len && status == SL_OK; bytes = sl_span_from(bytes, sizeof(change))) {
        if (bytes.len >= sizeof(change))
            memcpy(&change, bytes.ptr, sizeof(change));
        if (bytes.len < sizeof(change) || change.order_bytes != sizeof(change.order) ||
            change.flags >> (NAME_BITS + SL_CHANGE_OBJECT_SHIFT))
            return sl_fail(error, SL_REJECT, "BadPart", "an object of a turn: its shares are no changes");
        change.flags += number << (NAME_BITS + SL_CHANGE_OBJECT_SHIFT);
        status = sl_sorter_add(sorter, &change, sl_span(NULL, 0), error);
    }
    return status;
}

uint64_t sl_changes_part_number(const struct sl_sorter_entry *change)
{
    return change->flags >> (NAME_BITS + SL_CHANGE_OBJECT_SHIFT);
}

uint64_t sl_changes_part_name_at(const struct sl_sorter_entry *change)
{
    return change->flags >> SL_CHANGE_OBJECT_SHIFT & name_mask;
}
