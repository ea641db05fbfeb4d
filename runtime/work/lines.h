/* JSON lines that a turn finds, as objects of at most SL_WORK_LINES each: the pieces of a repair. A turn that
 * is done again writes the same objects anew. */
#ifndef SL_RUNTIME_WORK_LINES_H
#define SL_RUNTIME_WORK_LINES_H

#include "base/buffer.h"
#include "runtime/work/item.h"

#define SL_WORK_LINES       1000
#define SL_WORK_LINES_BYTES ((size_t)4 * 1024 * 1024)

struct sl_work_lines {
    struct sl_work_item *item;
    const char *below;
    struct sl_span run;
    unsigned piece, turn;
    struct sl_buffer lines; /* not written yet */
    unsigned n_lines, n_objects;
    struct sl_error failure; /* an object that could not be written: nothing more is taken */
};

/* `below` is SL_WORK_FINDINGS or another folder of SLUICE_WORK_PLACE; `run` is borrowed. */
void sl_work_lines_init(struct sl_work_lines *lines, struct sl_work_item *item, const char *below,
                        struct sl_span run, uint64_t piece, uint64_t turn);
void sl_work_lines_clean_up(struct sl_work_lines *lines); /* zeroed memory is fine */

/* BELOW/RUN/PIECE-TURN-N.jsonl. */
struct sl_span sl_work_lines_name(const struct sl_work_lines *lines, const char *below, unsigned n);

void sl_work_lines_add(struct sl_work_lines *lines, struct sl_span line);

/* Writes what is left; the failure, if any of them could not be written. */
enum sl_status sl_work_lines_end(struct sl_work_lines *lines, struct sl_error *error) SL_MUST_USE;

#endif
