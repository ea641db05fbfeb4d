/* The OnFailure destination of a simulated mapping. A file gets the failure records that AWS sends to SQS and
 * SNS, one a line. A folder (its name ends in '/') gets S3's objects, each with the whole event. */
#ifndef SL_CLI_OUTPUT_FAILURES_H
#define SL_CLI_OUTPUT_FAILURES_H

#include "esm/esm.h"

#include <stdio.h>

struct sl_failures {
    const struct sl_esm_settings *settings;
    const char *target; /* a folder when `file` is NULL; NULL: nothing is written */
    FILE *file;
    struct sl_buffer line, payload;
    int failure; /* the first write's errno */
};

/* Records that were given up may be all that is left of a change, so none are written over by mistake. */
enum sl_failures_mode {
    SL_FAILURES_NEW,      /* refuses a file that is not empty, and a folder that has something in it */
    SL_FAILURES_APPEND,   /* adds to what is there */
    SL_FAILURES_OVERWRITE /* begins the file anew; adds to a folder, over objects of the same key */
};

struct sl_failures_target {
    const char *path; /* NULL: nothing will be written */
    enum sl_failures_mode mode;
};

/* `settings` are borrowed until the end. SL_REJECT: "AlreadyThere", "CannotWrite". */
enum sl_status sl_failures_open(struct sl_failures *f, const struct sl_failures_target *target,
                                const struct sl_esm_settings *settings, struct sl_error *error) SL_MUST_USE;
void sl_failures_add(struct sl_failures *f, const struct sl_esm_discard *discard);
/* False: the file is incomplete, or an object is missing, which it has said. */
bool sl_failures_close(struct sl_failures *f);

#endif
