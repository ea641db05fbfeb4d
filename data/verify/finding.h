/* Findings: one JSON line for each row that is not as it should be, or that could not be proven.
 * docs/VERIFY.md describes the members; `sluice repair` reads them. */
#ifndef SL_DATA_VERIFY_FINDING_H
#define SL_DATA_VERIFY_FINDING_H

#include "base/buffer.h"
#include "handlers/handler.h"

enum sl_finding_result {
    SL_FINDING_DIFFERENT,
    SL_FINDING_PENDING,
    SL_FINDING_UNSETTLED,
    SL_FINDING_NOT_COMPARABLE
};

struct sl_finding {
    enum sl_finding_result result;
    const char *route, *handler, *target; /* target: the URL as configured */
    struct sl_span source_key;
    const struct sl_expected *expected; /* NULL when the item has no row that could be compared */
    const struct sl_judge *judge;       /* of that row; NULL likewise */
    struct sl_span source;              /* the source's item; absent: there is none */
    const char *code, *why;             /* SL_FINDING_NOT_COMPARABLE */
    bool is_forward;                    /* found in the source; else in the target */
    bool shows_values;
    unsigned looks;
    int64_t seen_ms; /* wall time of the last look */
};

/* Is it known when the change was made that the row holds? What a damaged row says may be no time. */
bool sl_finding_has_time(const struct sl_judge *judge);

/* "missing", "left over", ... */
const char *sl_finding_kind(enum sl_verdict verdict);

/* Is it set right by removing the row? */
bool sl_finding_is_removal(enum sl_verdict verdict);

/* Adds the member: the first half of the value's SHA-256, in hexadecimal digits. Equal values have equal
 * digests, however they are written. Nothing is added for an absent item. */
void sl_finding_add_digest(struct sl_buffer *out, const char *name, struct sl_span item);

/* Appends the line, with its newline. */
void sl_finding_write(const struct sl_finding *f, struct sl_buffer *out);

#endif
