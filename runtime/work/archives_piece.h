/* A piece of a verification of archives: the objects of a range of names are read, or what was read of a
 * share of the items is walked.
 *
 *   {"do":"archives","step":"read","piece":7,"run":"archives-1","target":0,"after":"A","to":"B"}
 *   {"do":"archives","step":"again","piece":7,...}   what came since "read"
 *   {"do":"archives","step":"walk","piece":3,"run":"archives-1","target":0,"from":96,"until":128}
 *
 * with "routes" and "archives" (which these are). Names are greater than "after", absent for the first, and
 * not greater than "to", absent for the last. From the second turn on: "turn", "before" (the object of the
 * turn before), and what the turns before have counted; "after" is the last name that was read.
 *
 * A plan that has not listed all names when its time is up leaves the others to the plan of a next round of
 * "read". "again" has as many rounds, and then there is one of "walk". A piece says its round, from 0 on, and
 * a piece of "walk" the last one; and how many pieces the rounds before had, "first": what it writes is named
 * by the sum of that and its number.
 *
 * A turn writes the changes that it read as one object (runtime/work/steps.h). The index of a round of a step
 * is STEP.json, or STEP-ROUND.json from the second round on. The pieces of "read" are kept as pieces.json,
 * likewise: "again" takes the same. */
#ifndef SL_RUNTIME_WORK_ARCHIVES_PIECE_H
#define SL_RUNTIME_WORK_ARCHIVES_PIECE_H

#include "data/verify/archive/changes.h"
#include "runtime/work/steps.h"

enum sl_work_archives_step { SL_WORK_READ, SL_WORK_AGAIN, SL_WORK_WALK };

/* Objects of a piece, unless the plan is given another number. */
#define SL_WORK_PIECE_OBJECTS 5000

struct sl_work_archives_piece {
    enum sl_work_archives_step step;
    uint64_t piece, round, first;
    struct sl_span run;             /* the execution */
    struct sl_span routes;          /* names with commas; absent: all */
    struct sl_span archives;        /* which these are (sl_work_archives_find) */
    uint64_t target;                /* which of them */
    struct sl_span after, to;       /* of a reading: names */
    uint64_t from, until;           /* of a walk: shares */
    uint64_t turn;                  /* from 0 on */
    struct sl_span before;          /* absent in the first turn */
    struct sl_chain_counts counted; /* by the turns before */
};

/* {"do":"archives",...}, of the plan's input and its steps: what an execution verifies, and how far it is. */
struct sl_work_archives_state {
    struct sl_span routes, archives; /* as of a piece */
    uint64_t piece_objects;
    enum sl_work_archives_step step;
    uint64_t round, last_round;
    uint64_t target;                /* its names, and those of the targets behind it, are yet to be listed: */
    struct sl_span after;           /* those greater than this; absent: all are listed, or none yet */
    uint64_t pieces;                /* of the rounds of "read" that are planned */
    uint64_t not_judged;            /* archives that prove nothing, are not there or empty */
    struct sl_chain_counts counted; /* until here */
};

const char *sl_work_archives_step_name(enum sl_work_archives_step step);
struct sl_work_steps sl_work_archives_steps(struct sl_work_item *item, struct sl_span run);

/* What the names of a round end with. */
const char *sl_work_archives_round(uint64_t round, struct sl_arena *arena);

/* The names of the index of a step's round and of the pieces that a round planned, and what the names of a
 * target's parts begin with. */
struct sl_span sl_work_archives_index(enum sl_work_archives_step step, uint64_t round,
                                      struct sl_arena *arena);
struct sl_span sl_work_archives_pieces(uint64_t round, struct sl_arena *arena);
struct sl_span sl_work_archives_parts(enum sl_work_archives_step step, uint64_t target,
                                      struct sl_arena *arena);

/* Read the checked JSON. On failure: SL_REJECT, code "BadWorkItem". */
enum sl_status sl_work_archives_piece_read(struct sl_span text, struct sl_arena *arena,
                                           struct sl_work_archives_piece *out,
                                           struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_archives_state_read(struct sl_span text, const char *what, struct sl_arena *arena,
                                           struct sl_work_archives_state *out,
                                           struct sl_error *error) SL_MUST_USE;

void sl_work_archives_piece_write(const struct sl_work_archives_piece *piece, struct sl_buffer *out);
void sl_work_archives_state_write(const struct sl_work_archives_state *state, struct sl_span run,
                                  struct sl_buffer *out);

/* The counts of a sum; and those of the pieces of a step, added. */
void sl_work_archives_put_counts(const struct sl_chain_counts *counts, json_t *out);
void sl_work_archives_sum_counts(struct sl_chain_counts *sum, const json_t *counts);

#endif
