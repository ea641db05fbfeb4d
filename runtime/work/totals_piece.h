/* A piece of a verification of totals: a scan of a segment, or the judgement of a share of the groups.
 *
 *   {"do":"totals","step":"ledgers","piece":7,"run":"totals-1","round":0,"target":0,"table":0,"segment":7,"of":256,...}
 *   {"do":"totals","step":"totals","piece":7,"run":"totals-1","round":1,"target":0,"segment":7,"of":256,...}
 *   {"do":"totals","step":"judge","piece":3,"run":"totals-1","round":1,"rounds":5,"target":0,"from":96,"to":128}
 *
 * with "routes", "totals" (which these are) and "read_units" (this worker's share). Of a scan, from the
 * second turn on: "turn", "after" (a row's key), "before" (the object of the turn before), "rows" and "sums".
 *
 * A turn of a scan writes what its rows add up to as one object (runtime/work/steps.h). The index of a step
 * is ROUND-STEP.json. */
#ifndef SL_RUNTIME_WORK_TOTALS_PIECE_H
#define SL_RUNTIME_WORK_TOTALS_PIECE_H

#include "runtime/work/steps.h"

enum sl_work_totals_step { SL_WORK_LEDGERS, SL_WORK_TOTALS, SL_WORK_JUDGE };

struct sl_work_totals_piece {
    enum sl_work_totals_step step;
    uint64_t piece;
    struct sl_span run;           /* the execution */
    struct sl_span routes;        /* names with commas; absent: all */
    struct sl_span totals;        /* which these are (sl_work_totals_find) */
    uint64_t round, rounds;       /* from 1 on; 0: the first scan of the ledgers */
    uint64_t target, table;       /* which totals, and which of their ledgers' tables */
    uint64_t segment, of;         /* of a scan */
    uint64_t from, to;            /* of a judgement: shares */
    double read_units;            /* 0: no limit */
    uint64_t turn;                /* from 0 on */
    struct sl_span after, before; /* absent in the first turn */
    uint64_t rows, sums;          /* that the turns before have read, and written */
};

/* {"do":"totals",...}, of the plan's input and its steps: what an execution verifies, and how far it is. */
struct sl_work_totals_state {
    struct sl_span routes, totals; /* as of a piece */
    bool repairs;                  /* a person is asked whether what differs shall be repaired */
    uint64_t rounds, round;
    enum sl_work_totals_step step;
    uint64_t parts;                              /* judgements of one target */
    uint64_t equal, different, rows, not_judged; /* until here */
};

const char *sl_work_totals_step_name(enum sl_work_totals_step step);

struct sl_work_steps sl_work_totals_steps(struct sl_work_item *item, struct sl_span run);

/* The name of the sum of a step's answers. */
struct sl_span sl_work_totals_index(uint64_t round, enum sl_work_totals_step step, struct sl_arena *arena);

/* Read the checked JSON. On failure: SL_REJECT, code "BadWorkItem". */
enum sl_status sl_work_totals_piece_read(struct sl_span text, const struct sl_work_config *config,
                                         struct sl_arena *arena, struct sl_work_totals_piece *out,
                                         struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_totals_state_read(struct sl_span text, const char *what, struct sl_arena *arena,
                                         struct sl_work_totals_state *out,
                                         struct sl_error *error) SL_MUST_USE;

void sl_work_totals_piece_write(const struct sl_work_totals_piece *piece, struct sl_buffer *out);
void sl_work_totals_state_write(const struct sl_work_totals_state *state, struct sl_span run,
                                struct sl_buffer *out);

#endif
