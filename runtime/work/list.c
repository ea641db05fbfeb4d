/* A plan's list of pieces. */
#include "runtime/work/list.h"

#include "base/json_write.h"

/* A piece is some 300 bytes; with a list of routes and a table's ARN at most a few times that. */
#define LIST_BYTES ((size_t)128 * 1024 * 1024)

void sl_work_list_init(struct sl_work_list *list)
{
    *list = (struct sl_work_list){.pieces = 0};
    sl_buffer_init(&list->body, LIST_BYTES);
    sl_buffer_add_char(&list->body, '[');
}

void sl_work_list_clean_up(struct sl_work_list *list)
{
    sl_buffer_clean_up(&list->body);
}

struct sl_buffer *sl_work_list_next(struct sl_work_list *list)
{
    sl_buffer_add_str(&list->body, list->pieces++ ? ",\n" : "\n");
    return &list->body;
}

enum sl_status sl_work_list_write(struct sl_work_list *list, struct sl_work_item *item, const char *name,
                                  struct sl_error *error)
{
    const struct sl_span prefix = item->work->config.prefix;
    sl_buffer_add_str(&list->body, "\n]\n");
    if (list->body.failed)
        return sl_fail(error, SL_REJECT, "TooManyPieces", "the plan is longer than %zu bytes", LIST_BYTES);
    list->key = sl_span_str(sl_arena_printf(item->call.arena, "%.*splans/%s.json", SL_ARG(prefix), name));
    return sl_work_put(item->work, sl_span_from(list->key, prefix.len), sl_buffer_span(&list->body),
                       &item->call, error);
}

uint32_t sl_work_list_workers(const struct sl_work_config *config, uint64_t pieces)
{
    uint32_t workers = pieces < config->concurrency ? (uint32_t)pieces : config->concurrency;
    return workers ? workers : 1;
}

void sl_work_list_answer(const struct sl_work_list *list, struct sl_work_item *item)
{
    struct sl_buffer *out = &item->answer->body;
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "key", list->key);
    sl_json_add_integer(out, "pieces", (int64_t)list->pieces);
    sl_json_add_integer(out, "concurrency", sl_work_list_workers(&item->work->config, list->pieces));
}

void sl_work_list_answer_now(const struct sl_work_list *list, struct sl_work_item *item)
{
    struct sl_clock *clock = item->work->options.clock;
    struct sl_buffer *out = &item->answer->body;
    sl_work_list_answer(list, item);
    sl_json_add_raw(out, "items", SL_LIT("null"));
    sl_json_add_integer(out, "time", clock->wall_ns(clock) / 1000000);
}
