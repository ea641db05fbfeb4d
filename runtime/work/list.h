/* The list of a plan's pieces, which a Distributed Map reads as a JSON array. */
#ifndef SL_RUNTIME_WORK_LIST_H
#define SL_RUNTIME_WORK_LIST_H

#include "base/buffer.h"
#include "runtime/work/item.h"

struct sl_work_list {
    struct sl_buffer body;
    uint64_t pieces;
    struct sl_span key; /* its whole key, with the place's prefix; set by the write */
};

void sl_work_list_init(struct sl_work_list *list);
void sl_work_list_clean_up(struct sl_work_list *list);

/* The body, for the next piece to be appended. */
struct sl_buffer *sl_work_list_next(struct sl_work_list *list);

/* Writes it as plans/NAME.json. SL_REJECT, code "TooManyPieces": it is longer than any plan. */
enum sl_status sl_work_list_write(struct sl_work_list *list, struct sl_work_item *item, const char *name,
                                  struct sl_error *error) SL_MUST_USE;

/* How many workers so many pieces keep busy; at least 1. */
uint32_t sl_work_list_workers(const struct sl_work_config *config, uint64_t pieces);

/* "key", "pieces" and "concurrency" of a plan's answer, which begins with them. */
void sl_work_list_answer(const struct sl_work_list *list, struct sl_work_item *item);

/* And "items", which nobody knows, and "time", which is now. */
void sl_work_list_answer_now(const struct sl_work_list *list, struct sl_work_item *item);

#endif
