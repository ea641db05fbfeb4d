/* Texts, each kept once: a million invocations have few different answers. */
#ifndef SL_REPLAY_OUTPUT_REPORT_TEXTS_H
#define SL_REPLAY_OUTPUT_REPORT_TEXTS_H

#include "base/arena.h"

struct sl_texts {
    struct sl_arena *arena;
    struct sl_span *list;
    size_t n, room;
    uint32_t *slots; /* 1 + place in the list; 0: free. Twice as many as `room` */
};

void sl_texts_init(struct sl_texts *texts);
void sl_texts_clean_up(struct sl_texts *texts);

/* The number of the text, which is copied when it is new. Text 0 is the empty one. */
uint32_t sl_texts_add(struct sl_texts *texts, struct sl_span text);

#endif
