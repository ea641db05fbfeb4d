/* The checkpoint file of a long job: which job it is of, and its state. */
#ifndef SL_CLI_BACKFILL_CHECKPOINT_H
#define SL_CLI_BACKFILL_CHECKPOINT_H

#include "base/arena.h"
#include "base/error.h"

struct sl_checkpoint {
    const char *path;     /* NULL: nothing is kept */
    const char *source;   /* what the job reads: another text is another job's */
    const char *content;  /* digest of what is read, where it can be made anew; NULL: none */
    bool is_done;         /* the job was, or now is, at its end */
    struct sl_span state; /* as it was read; absent: the job has not begun */
    struct sl_span place; /* likewise: the state's member "place" */
};

/* Reads the file. SL_REJECT: it is not a checkpoint, or of another source, or there could be none: nobody may
 * write to its folder. */
enum sl_status sl_checkpoint_open(struct sl_checkpoint *c, struct sl_arena *arena,
                                  struct sl_error *error) SL_MUST_USE;

/* What the job reads has this digest: it is saved, and SL_REJECT when a checkpoint was read that is of
 * another one. `content` is borrowed. */
enum sl_status sl_checkpoint_bind(struct sl_checkpoint *c, const char *content,
                                  struct sl_error *error) SL_MUST_USE;

/* Replaces it: a crash leaves the old one or the new one. */
enum sl_status sl_checkpoint_save(const struct sl_checkpoint *c, struct sl_span state,
                                  struct sl_error *error) SL_MUST_USE;

#endif
