/* What became of a slice's records, as the built-in handlers tell it to the host.
 *
 * A record that nothing is said of is done. Marks reach the host at once; records that are left unknown (a
 * refusal that one of several is to blame for) stay unmarked, and only then are the done ones marked too, so
 * that they are not called again. */
#ifndef SL_HANDLERS_OUTCOME_H
#define SL_HANDLERS_OUTCOME_H

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

/* The record may be to blame for the refusal, or another one. */
void sl_outcome_unknown(struct sl_outcome *o, size_t i, const struct sl_error *error);

/* What the sink said, as an error; `error` is overwritten. */
void sl_outcome_error(const struct sl_host *host, const struct sl_result *result, struct sl_error *error);

/* What handle() returns. */
enum sl_status sl_outcome_end(struct sl_outcome *o, struct sl_error *error);

#endif
