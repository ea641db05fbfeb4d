/* What the files of backfill share. backfill.h says what it promises. */
#ifndef SL_DATA_BACKFILL_BACKFILL_PRIVATE_H
#define SL_DATA_BACKFILL_BACKFILL_PRIVATE_H

#include "data/source/budget.h"
#include "handlers/dispatch/dispatch.h"
#include "handlers/pipeline/route.h"
#include "data/backfill/backfill.h"

struct sl_backfill {
    struct sl_backfill_options options;
    struct sl_arena *lasting;
    struct sl_backfill_report report;
    struct sl_backfill_route *routes;
    struct sl_buffer place;

    struct sl_arena *arena;     /* the piece's */
    struct sl_arena *try_arena; /* of one try to write it: a piece may be tried for a long time */
    struct sl_source_piece piece;
    bool has_piece; /* pulled, and not durable yet */
    bool is_done;
    struct sl_answer answer;

    /* What paces it. */
    struct sl_table_units units; /* consumed by the routes' tables so far */
    struct sl_budget budget;     /* of write units */
    double units_per_byte;       /* of text, as of late; 0: not known */
    size_t piece_bytes;
    unsigned failures; /* in a row */
};

/* ---- backfill_routes.c: which routes take part, and until when ---- */

enum sl_status sl_backfill_choose(struct sl_backfill *b, struct sl_error *error) SL_MUST_USE;
void sl_backfill_forget_units(struct sl_backfill *b);
enum sl_status sl_backfill_check_order(const struct sl_backfill *b, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_backfill_check_due(const struct sl_backfill *b, struct sl_error *error) SL_MUST_USE;

#endif
