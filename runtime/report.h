/* What a batch did, as one JSON line: for `sluice replay`'s summary, or for any other reader of
 * SLUICE_REPORT_FD. */
#ifndef SL_RUNTIME_REPORT_H
#define SL_RUNTIME_REPORT_H

#include "handlers/dispatch/dispatch.h"

/* {"requestId":...,"records":N,"checkpoint":K,"parked":N,"routes":[{"name":...,"handler":...,"to":...,
 * "matched":N,"applied":N,"parked":N,"failed":N,"skipped":N,"calls":N,"bytes":N}],
 * "notes":[{"parked":BOOL,"route":...,"id":...,"code":...,"message":...}]}, in one write. A note says why a
 * record was parked, or which record failed at the checkpoint. */
void sl_report_batch(int fd, const struct sl_pipeline *p, const char *request_id, size_t records,
                     const struct sl_answer *answer);

#endif
