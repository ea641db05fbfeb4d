/* The outcomes of a slice's records, as the built-in handlers report them.
 *
 * A record is done unless one of these functions says otherwise. Failures are marked at once. A record that
 * is only suspected (an operation that several records share was refused) stays unmarked, and the host tries
 * it again with fewer others. Only then the done records are marked too, so that they are not called again.
 */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_OUTCOME_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_OUTCOME_H

#include "handlers/handler.h"

struct sl_outcome {
    const struct sl_host *host;
    struct sl_slice *slice;
    unsigned char *states; /* of the records */
    bool has_unknown;
    struct sl_error why; /* the first refusal of unknown records, or the first SL_FATAL */
};

void sl_outcome_init(struct sl_outcome *o, const struct sl_host *host, struct sl_slice *slice);

/* The record failed: `error` says why. */
void sl_outcome_fail(struct sl_outcome *o, size_t i, const struct sl_error *error);

/* The record may be to blame for the refusal, or another record. */
void sl_outcome_unknown(struct sl_outcome *o, size_t i, const struct sl_error *error);

/* One of the records whose common operation failed: a refusal leaves it unknown, anything else is true of it.
 */
void sl_outcome_shared(struct sl_outcome *o, size_t i, const struct sl_error *error);

/* A change failed into which records were folded, those of one item: `before` leads from `last` to each of
 * them, up to SL_OUTCOME_NO_RECORD. A refusal is the newest record's, and nobody knows whether the others
 * could be written. Every other failure is true of all of them. */
#define SL_OUTCOME_NO_RECORD UINT32_MAX
void sl_outcome_fail_folded(struct sl_outcome *o, uint32_t last, uint32_t newest, const uint32_t *before,
                            const struct sl_error *error);

/* The sink's result as an error. `error` is overwritten. */
void sl_outcome_error(const struct sl_host *host, const struct sl_result *result, struct sl_error *error);

/* The result that says why a transaction failed: the environment's failure before a refusal. NULL when there
 * is none: every operation succeeded, had a condition that did not hold, or was canceled with the others. */
const struct sl_result *sl_outcome_cause(const struct sl_result *results, size_t n);

/* What handle() returns. */
enum sl_status sl_outcome_end(struct sl_outcome *o, struct sl_error *error) SL_MUST_USE;

#endif
