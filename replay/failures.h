/* The OnFailure destination of a simulated mapping: a file gets the records that AWS sends to SQS and SNS,
 * one a line; a folder (its name ends in '/') gets S3's objects, with the whole event in each. */
#ifndef SL_REPLAY_FAILURES_H
#define SL_REPLAY_FAILURES_H

#include "replay/esm.h"

struct sl_failures {
    const struct sl_esm_settings *settings;
    const char *folder; /* NULL: `file` */
    void *file;         /* FILE * */
    struct sl_buffer line, payload;
    uint64_t written, failed;
};

/* `target` NULL: nothing is written. What it held before is overwritten. */
enum sl_status sl_failures_open(struct sl_failures *f, const char *target,
                                const struct sl_esm_settings *settings, struct sl_error *error) SL_MUST_USE;
void sl_failures_add(struct sl_failures *f, const struct sl_esm_discard *discard);
void sl_failures_close(struct sl_failures *f);

#endif
