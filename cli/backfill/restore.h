/* Point-in-time restore as `sluice backfill --until` runs it: the archive is folded to a file of items in the
 * temporary folder, which the backfill then reads.
 *
 * It may be killed at any moment. The same command finds the file when it is whole, and folds again when it
 * is not. Before the first item is written, the targets have to be empty; a mark in the folder says that they
 * were. */
#ifndef SL_CLI_BACKFILL_RESTORE_H
#define SL_CLI_BACKFILL_RESTORE_H

#include "handlers/pipeline/pipeline.h"
#include "data/source/source.h"

#include <signal.h>

struct sl_restore_job {
    /* Set by the caller; borrowed as long as the job. */
    const char *archive, *export; /* `export` NULL: there is no base */
    const char *config, *temp;
    const struct sl_pipeline
        *pipeline; /* its tables are looked at before the archive is read; NULL: not yet */
    int64_t until_ms, since_ms;
    const struct sl_source_options *options;
    struct sl_clock *clock;
    struct sl_arena *arena;
    bool any_gap, verify_first, is_quiet;
    const volatile sig_atomic_t *is_stopped;

    /* Set by sl_restore_job_fold. */
    const char *folder; /* of this job alone: another archive, moment or configuration has another one */
    const char *result; /* the file of items */
    const char *digest; /* of that file */
    uint64_t items;     /* in it */
    bool is_empty;      /* it has none: nothing is to be written */
};

/* Makes the file of items, or finds it: made of the objects that are listed now, and not changed since. The
 * folder has the mode 0700 and is this user's; another one is refused. Says on standard error what it does.
 * SL_RETRY: it was stopped. */
enum sl_status sl_restore_job_fold(struct sl_restore_job *job, struct sl_error *error) SL_MUST_USE;

/* Before the first write: SL_REJECT when a target of a route that takes part is not empty. */
enum sl_status sl_restore_job_begin(const struct sl_restore_job *job, const struct sl_pipeline *pipeline,
                                    struct sl_error *error) SL_MUST_USE;

/* Nothing will be written: the folder goes, unless the writing had begun in an earlier run. */
void sl_restore_job_refused(const struct sl_restore_job *job);

/* Whether the folder and the values in it stay for a later run. */
bool sl_restore_job_is_kept(const struct sl_restore_job *job);

/* All items are written: the folder goes. */
void sl_restore_job_done(const struct sl_restore_job *job);

#endif
