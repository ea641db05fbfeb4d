/* What a verification has counted, as JSON. */
#ifndef SL_DATA_VERIFY_SUMMARY_H
#define SL_DATA_VERIFY_SUMMARY_H

#include "base/buffer.h"
#include "data/verify/verify.h"

/* All routes' counts, added to those of `sum`. */
void sl_verify_sum(const struct sl_verify *work, struct sl_verify_route *sum);

/* "equal", "different", "pending", "unsettled" and "not_comparable". */
void sl_verify_add_counts(struct sl_buffer *out, const struct sl_verify_route *route);

/* "routes":{NAME:{...,"kinds":{"missing":1}}}, with the kinds of differences that there are. */
void sl_verify_add_routes(struct sl_buffer *out, const struct sl_verify *work);

#endif
