/* What the files of the report share: picture.c collects, page*.c write. */
#ifndef SL_CLI_OUTPUT_REPORT_PICTURE_PRIVATE_H
#define SL_CLI_OUTPUT_REPORT_PICTURE_PRIVATE_H

#include "cli/output/report/picture.h"
#include "base/map.h"

/* Lines that a browser scrolls through with ease, and rows of a table that somebody reads. What is left out
 * is counted, and the page says so. */
#define SL_PICTURE_MOST_ROWS   20000
#define SL_PICTURE_MOST_LOSSES 1000

#define SL_PICTURE_NO_ROW SIZE_MAX

/* What became of an invocation: the decision's verbs, and one more. The page has a shape for each. */
enum sl_picture_kind { SL_PICTURE_THROTTLED = SL_ESM_DISCARD + 1, SL_PICTURE_KINDS };

struct sl_picture_row {
    const struct sl_esm_shard *shard;
    size_t first, last, n; /* positions in the shard; n 0: a window's final call */
    size_t cut;            /* records before the failed one, or in the first half */
    int64_t time_ms, attempt;
    unsigned lane, kind; /* enum sl_esm_verb, or enum sl_picture_kind */
    bool is_final;
    uint32_t answer, reason, route; /* texts; the last two as our bootstrap says */
};

/* A record that was given up or parked. */
struct sl_picture_loss {
    bool is_parked;
    const struct sl_esm_shard *shard;
    const struct sl_esm_record *record;
    size_t row; /* of the invocation that decided it; SL_PICTURE_NO_ROW: there was none, or it is not drawn */
    enum sl_esm_condition condition; /* given up */
    size_t beside;                   /* records that were given up with it */
    int64_t times;                   /* given up: deliveries; parked: how often */
    uint32_t route, reason;          /* texts */
    uint32_t culprit;                /* text: the record that failed, when it is another one */
    char request_id[37];
};

struct sl_picture {
    const struct sl_esm_settings *settings;
    struct sl_picture_row *rows;
    size_t n, room, left_out;
    struct sl_picture_loss *losses;
    size_t n_losses, losses_room, given_up, parked; /* the last two: all, also those that are not listed */
    size_t settled;                                 /* losses before this one have their row */
    struct sl_map texts; /* each kept once: a million invocations have few different answers; 0: "" */
};

/* All of it. */
void sl_page_write(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                   const struct sl_run_summary *summary);

#endif
