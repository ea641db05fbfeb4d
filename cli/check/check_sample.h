/* What `sluice check` says of templates: those that are written as other languages write them; and with
 * --sample FILE those that no record of the sample fills, and the conditions that none matches. A name that
 * is mistyped is found so before it parks a record. */
#ifndef SL_CLI_CHECK_CHECK_SAMPLE_H
#define SL_CLI_CHECK_CHECK_SAMPLE_H

#include "data/source/source.h"
#include "handlers/pipeline/route.h"
#include "cli/config/lint.h"

/* Records of the sample that are looked at. */
#define SL_CHECK_SAMPLE_RECORDS 10000

struct sl_check_sample {
    struct sl_pipeline *pipeline;
    const char *path; /* a file, or "-", in any shape that `replay` reads; NULL: no sample */
    const struct sl_vars *vars;
    struct sl_arena *arena;
    sl_lint_fn find;
    void *arg;
};

/* The error is the sample's: it cannot be read. `keys` gets the names of its first record's key attributes,
 * in the arena; none without a sample. */
enum sl_status sl_check_sample(const struct sl_check_sample *c, struct sl_source_keys *keys,
                               struct sl_error *error) SL_MUST_USE;

#endif
