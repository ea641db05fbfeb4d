/* Findings of a turn, in objects. */
#include "runtime/work/lines.h"

#define LINE_BYTES ((size_t)1024 * 1024)

void sl_work_lines_init(struct sl_work_lines *l, struct sl_work_item *item, const char *below,
                        struct sl_span run, uint64_t piece, uint64_t turn)
{
    *l = (struct sl_work_lines){.item = item,
                                .below = below,
                                .run = run,
                                .piece = (unsigned)piece,
                                .turn = (unsigned)turn,
                                .failure = SL_NO_ERROR};
    sl_buffer_init(&l->lines, SL_WORK_LINES_BYTES + LINE_BYTES);
}

void sl_work_lines_clean_up(struct sl_work_lines *l)
{
    sl_buffer_clean_up(&l->lines);
}

struct sl_span sl_work_lines_name(const struct sl_work_lines *l, const char *below, unsigned n)
{
    return sl_span_str(sl_arena_printf(l->item->call.arena, "%s%.*s/%06u-%04u-%04u.jsonl", below,
                                       SL_ARG(l->run), l->piece, l->turn, n));
}

static bool flush(struct sl_work_lines *l)
{
    bool good = l->failure.status == SL_OK;
    if (good && l->lines.len)
        good = sl_work_put(l->item->work, sl_work_lines_name(l, l->below, l->n_objects++),
                           sl_buffer_span(&l->lines), &l->item->call, &l->failure) == SL_OK;
    sl_buffer_reset(&l->lines);
    l->n_lines = 0;
    return good;
}

void sl_work_lines_add(struct sl_work_lines *l, struct sl_span line)
{
    bool is_full = l->n_lines == SL_WORK_LINES || l->lines.len + line.len > SL_WORK_LINES_BYTES;
    if (l->failure.status != SL_OK || (is_full && !flush(l)))
        return;
    sl_buffer_add_span(&l->lines, line);
    l->n_lines++;
}

enum sl_status sl_work_lines_end(struct sl_work_lines *l, struct sl_error *error)
{
    if (flush(l))
        return SL_OK;
    *error = l->failure;
    return error->status;
}
