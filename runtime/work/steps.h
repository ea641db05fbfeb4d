/* Executions of several steps: what the pieces of one leave for those of the next.
 *
 * A turn writes what it found as one object, verify/RUN/FOLDER/NAME, whose name nobody else writes: a turn
 * that Lambda gave up and that still runs cannot change what another one wrote. Its head
 * (data/verify/part.h) names the object of the turn before. The name of a piece's last object is in the
 * piece's answer, as "last", and the sum of a step's answers keeps these names as an object, the index. */
#ifndef SL_RUNTIME_WORK_STEPS_H
#define SL_RUNTIME_WORK_STEPS_H

#include "data/verify/part.h"
#include "runtime/work/item.h"

#include <jansson.h>

/* Of the objects of a turn. */
#define SL_WORK_PART_BYTES ((size_t)256 * 1024 * 1024)

struct sl_work_steps {
    struct sl_work_item *item;
    const char *folder;
    struct sl_span run;
};

/* The key below SLUICE_WORK_PLACE; in the item's arena, as what is read whole. */
struct sl_span sl_work_steps_key(const struct sl_work_steps *steps, struct sl_span name);
enum sl_status sl_work_steps_put(const struct sl_work_steps *steps, struct sl_span name, struct sl_span body,
                                 struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_steps_get(const struct sl_work_steps *steps, struct sl_span name, struct sl_span *out,
                                 struct sl_error *error) SL_MUST_USE;

struct sl_work_range {
    struct sl_span name;
    uint64_t from; /* behind the head */
    size_t most;
    struct sl_span bytes; /* fewer at the object's end; absent: they could not be read */
};

/* The ranges, in flight together. The error is the first range's that failed. */
enum sl_status sl_work_steps_ranges(const struct sl_work_steps *steps, struct sl_work_range *ranges, size_t n,
                                    struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

/* What is read of each part: its shares from `from` until before `until`, and as much as there is of `rest`
 * bytes behind them. */
struct sl_work_wanted {
    uint64_t from, until;
    size_t rest;
};

/* Borrowed until the function returns. */
struct sl_work_part {
    struct sl_span name;
    const struct sl_part_head *head;
    struct sl_span bytes;
};

typedef enum sl_status sl_work_steps_fn(void *arg, const struct sl_work_part *part, struct sl_error *error);

/* The parts of all pieces of a step whose names begin with `own`, of each piece the last one first, of some
 * pieces together. SL_REJECT, code "BadPart": a part has fewer bytes than its head says. */
enum sl_status sl_work_steps_each(const struct sl_work_steps *steps, struct sl_span index, struct sl_span own,
                                  const struct sl_work_wanted *wanted, sl_work_steps_fn *each, void *arg,
                                  struct sl_error *error) SL_MUST_USE;

/* Keeps "last" of the counts as the index, and takes it out of them. */
enum sl_status sl_work_steps_keep(const struct sl_work_steps *steps, struct sl_span index, json_t *counts,
                                  struct sl_error *error) SL_MUST_USE;

/* What is verified has this digest. `*of` says which it was when the execution began, and is set when it is
 * absent. SL_REJECT with the code: another configuration was deployed since, and what its pieces find would
 * have nothing to do with what was found before. `what` is "totals", for the message. */
enum sl_status sl_work_steps_are_of(const struct sl_work_item *item, uint64_t digest, struct sl_span *of,
                                    const char *code, const char *what, struct sl_error *error) SL_MUST_USE;

/* "outcome" is "again", and "next" what is planned then. SL_REJECT, code "PlaceTooLong". */
enum sl_status sl_work_steps_again(struct sl_span next, json_t *counts, struct sl_error *error) SL_MUST_USE;

#endif
