/* A piece of a verification, or of the repair of what one found:
 *
 *   {"do":"verify","piece":7,"segment":7,"of":256,"run":"verify-1","max_lag":60,...}
 *   {"do":"repair","piece":7,"findings":"verify/verify-1/000007-0000-0001.jsonl","run":"repair-1",...}
 *
 * with "routes", "wait", "read_units" and "write_units" (this worker's share), of a repair "delete" and
 * "save"; and from the second turn on "turn" and "counts". What a turn hands to the next one is larger than
 * a state's payload may be: it is the object verify/RUN/places/DO-PIECE-TURN.json below SLUICE_WORK_PLACE. */
#ifndef SL_RUNTIME_WORK_VERIFY_PIECE_H
#define SL_RUNTIME_WORK_VERIFY_PIECE_H

#include "base/buffer.h"
#include "data/repair/repair.h"
#include "runtime/work/config.h"

/* Below SLUICE_WORK_PLACE. */
#define SL_WORK_FINDINGS "verify/"
#define SL_WORK_REPAIRS  "repair/"

struct sl_work_verify_piece {
    bool is_repair;
    uint64_t piece;
    uint64_t segment, of;                      /* of the tables */
    struct sl_span findings;                   /* of a repair: the key of an object of findings */
    struct sl_span run;                        /* the execution */
    struct sl_span routes;                     /* names with commas; absent: every one that can be compared */
    uint64_t max_lag_s, wait_s;                /* as of `sluice verify` */
    double read_units, write_units;            /* 0: no limit */
    bool may_delete, saves;                    /* of a repair */
    uint64_t turn;                             /* from 0 on */
    uint64_t outcomes[SL_REPAIRED_FAILED + 1]; /* of the turns before */
};

#define SL_WORK_RUN_BYTES 80

/* Letters, digits, '-' and '_', SL_WORK_RUN_BYTES at most: what an execution may be called, and CloudWatch
 * can show. */
bool sl_work_is_run(struct sl_span run);

/* Where the sum of a verification is kept, beside its findings. */
struct sl_span sl_work_sum_key(struct sl_span run, struct sl_arena *arena);

/* Holds the piece to the configuration: it is of a table that is scanned, its objects lie below
 * SLUICE_WORK_PLACE. On failure: SL_REJECT, code "BadWorkItem" or "OutsideSource". */
enum sl_status sl_work_verify_piece_check(const struct sl_work_verify_piece *piece,
                                          const struct sl_work_config *config,
                                          struct sl_error *error) SL_MUST_USE;

/* Reads the checked JSON, and checks the piece. */
enum sl_status sl_work_verify_piece_read(struct sl_span text, const struct sl_work_config *config,
                                         struct sl_arena *arena, struct sl_work_verify_piece *out,
                                         struct sl_error *error) SL_MUST_USE;

void sl_work_verify_piece_write(const struct sl_work_verify_piece *piece, struct sl_buffer *out);

/* {"written":1,...} as a member. */
void sl_work_add_outcomes(struct sl_buffer *out, const char *name, const uint64_t *outcomes);

#endif
